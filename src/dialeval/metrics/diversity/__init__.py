"""Measures of how varied responses are."""
