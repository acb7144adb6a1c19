"""The names of the module `mwzeval.metrics`; see `dialeval.multiwoz`."""

from dialeval.multiwoz import Evaluator

__all__ = ["Evaluator"]
