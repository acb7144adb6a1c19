"""Measures of how much of a response its references share."""
