"""Measures of which words responses use, and how many."""
