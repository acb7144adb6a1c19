"""What everything else stands on: errors, needs, columns, the fold, exact sums, signatures, results.

Nothing here reads a file format, splits a text or knows a metric.
"""
