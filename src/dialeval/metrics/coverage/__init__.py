"""Measures of how many of the things one could answer a set of sampled responses covers."""
