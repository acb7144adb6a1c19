"""Text: naming and splitting into words, the vocabulary, n-grams and their counts.

Modules whose names end in `_kernel` hold numba functions and are imported only when something is computed, so that
listing metrics or printing help never pays for a compiler.
"""
