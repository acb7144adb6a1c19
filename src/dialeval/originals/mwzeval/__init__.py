"""The package `mwzeval`, which its documents also call `multiwoz_evaluation`; the evaluator is in `metrics`."""
