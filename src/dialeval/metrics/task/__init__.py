"""Metrics of task dialogues: was the right venue offered, was every request answered, and how is the language."""
