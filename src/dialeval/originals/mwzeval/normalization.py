"""The names of the module `mwzeval.normalization`."""

from dialeval.originals.multiwoz_evaluation.normalization import *  # noqa: F403
