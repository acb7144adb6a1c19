"""The names of the module `multiwoz_evaluation.utils`."""

from dialeval.originals.mwzeval.utils import *  # noqa: F403
