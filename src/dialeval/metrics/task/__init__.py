"""Metrics of task dialogues: was the right venue offered, was all told that was asked for, and how does it talk."""
