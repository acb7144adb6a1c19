"""The cross-encoder in NumPy: what its heads say of a response, read together with its context.

The encoder's forward pass (`resources.encoder`) over [CLS] context [SEP] response [SEP], with what training changed.
The feature of a pair is the vector of its first piece and the mean over the pieces of the response; the heads are
linear in it. What is said of a pair is the same to the last bit whatever other pairs are read with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.metrics.learned.cross_weights import HEADS, Changes, encoder_weights, merged
from dialeval.metrics.learned.pairs import Pairs, PairTokeniser, rated_pairs
from dialeval.resources.encoder import Transformer, groups
from dialeval.resources.encoder_files import EncoderFiles, Singles
from dialeval.resources.judge_settings import PairShape


class CrossEncoder:
    """An encoder's files with changes to its layers, and heads."""

    def __init__(self, files: EncoderFiles, changes: Changes, shape: PairShape) -> None:
        self.shape = shape
        self._tokeniser = PairTokeniser(files)
        weights, layers = files.weights(), merged(encoder_weights(files), changes)
        parts = [
            {name: (layers[f"{number}.{name}.weight"], layers[f"{number}.{name}.bias"]) for name in layer}
            for number, layer in enumerate(weights.layers)
        ]
        self._transformer = Transformer(files, replace(weights, layers=parts))
        self._heads: tuple[Floats, Floats] = (
            changes["heads.weight"].astype(np.float64),
            changes["heads.bias"].astype(np.float64),
        )

    def heads(self, contexts: Sequence[Sequence[str]], responses: Sequence[str]) -> Floats:
        """What the heads say of each response, a row each; the columns in the order of `HEADS`."""
        pairs = rated_pairs(self._tokeniser, contexts, responses, self.shape.turns)
        read = [self.sequence(pairs, pair) for pair in range(len(pairs))]
        found = np.empty((len(pairs), sum(HEADS.values())))
        for group in groups([len(ids) for ids, _ in read]):
            found[group] = self._of_group([read[pair] for pair in group])
        return found

    def sequence(self, pairs: Pairs, pair: int) -> tuple[npt.NDArray[np.int32], int]:
        """The pieces of a pair, and how many of them are the response's."""
        first, behind = pairs.starts[pairs.contexts[pair]]
        first = max(first, behind - (self.shape.context_tokens - 1))
        start, stop = pairs.starts[pairs.responses[pair] : pairs.responses[pair] + 2]
        response = pairs.pieces[start:stop]
        if len(response) > self.shape.response_tokens:
            response = np.append(response[: self.shape.response_tokens - 1], np.int32(self._tokeniser.end))
        before = np.concatenate(([self._tokeniser.first], pairs.pieces[first:behind])).astype(np.int32)
        return np.concatenate((before, response)), len(response)

    def _of_group(self, read: Sequence[tuple[npt.NDArray[np.int32], int]]) -> Floats:
        seconds = [many for _, many in read]
        kept = [np.append(0, np.arange(len(ids) - many, len(ids))) for ids, many in read]
        weight, bias = self._heads
        found = []
        for rows in self._transformer.forward([ids for ids, _ in read], seconds, kept):
            said: Singles = rows[1:].sum(axis=0) / np.float32(len(rows) - 1)
            # Pair by pair: the shape of the product must not depend on their number.
            found.append(weight @ np.concatenate((rows[0], said)) + bias)
        return np.array(found)
