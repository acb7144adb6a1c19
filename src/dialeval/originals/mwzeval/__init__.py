"""The package `mwzeval`, which its documents also call `multiwoz_evaluation`, with its modules."""
