"""Metrics: one module per measure, and the registry that finds them by name."""
