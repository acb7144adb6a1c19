"""The names of the module `multiwoz_evaluation.normalization`."""

from dialeval.originals.mwzeval.normalization import *  # noqa: F403
