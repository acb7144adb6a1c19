"""The package `multiwoz_evaluation` under the name of its code."""
