"""The names of the module `mwzeval.utils`."""

from dialeval.originals.multiwoz_evaluation.utils import *  # noqa: F403
