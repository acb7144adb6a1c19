"""The names of the module `mwzeval.metrics`."""

from dialeval.originals.multiwoz_evaluation.metrics import *  # noqa: F403
