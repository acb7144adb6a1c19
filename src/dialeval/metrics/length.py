"""Response length: the number of words of a response.

    length = number of tokens

An empty response has length 0 and is scored: no answer is an answer of length zero. Length is the control for every
other metric, since many of them move with it.

The same as in dialog-eval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch, Need
from dialeval.core.fold import RowMetric
from dialeval.text.tokenizers import DEFAULT, Tokenizer, tokens


@dataclass(frozen=True)
class Length(RowMetric):
    """Number of words in the response."""

    family = "length"
    presets = {"length": {}}
    needs = frozenset({Need.RESPONSE})
    bounds = (0.0, math.inf)

    tokenizer: Tokenizer = DEFAULT

    def score(self, batch: Batch) -> Floats:
        return tokens(batch, Need.RESPONSE, self.tokenizer).lengths.astype(np.float64)
