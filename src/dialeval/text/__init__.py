"""Text: tokenizers, the vocabulary, n-grams and their counts."""
