"""The package `multiwoz_evaluation`, which is also called `mwzeval`, with its modules."""
