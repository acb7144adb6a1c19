"""The names of the module `multiwoz_evaluation.metrics`; see `dialeval.multiwoz`."""

from dialeval.multiwoz import Evaluator

__all__ = ["Evaluator"]
