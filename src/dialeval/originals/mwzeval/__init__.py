"""The package `multiwoz_evaluation` under the name of its code, with the same modules."""

import sys

from dialeval.originals.multiwoz_evaluation import metrics, normalization, utils

for _module in (metrics, normalization, utils):
    sys.modules[_module.__name__.replace("multiwoz_evaluation", "mwzeval")] = _module
