"""From runs to typed results: comparisons, slices, gates, sequential tests, agreement with human ratings."""
