"""Metrics of responses, one module each, and the registry of all metrics."""
