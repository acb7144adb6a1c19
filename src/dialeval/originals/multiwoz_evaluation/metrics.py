"""The names of the module `multiwoz_evaluation.metrics`."""

from dialeval.originals.mwzeval.metrics import *  # noqa: F403
