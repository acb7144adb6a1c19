"""Measures of closeness in meaning, by word vectors."""
