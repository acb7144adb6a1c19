"""The engine: plan what can be computed, fold it over batches, finish."""
