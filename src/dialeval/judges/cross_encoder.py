"""The cross-encoder in NumPy: a forward pass over context and response together, with linear heads.

    [CLS] the last turns of the context, each ended by [SEP]   |   the response [SEP]

The first part has the token type 0, the second 1. Of a context that is too long the end counts, of a response that is
too long the beginning. The feature of a pair is the vector of its first piece and the mean over the pieces of the
response; the heads are linear in it. The result of a pair is the same to the last bit whatever other pairs are read
with it.

What training changed is small enough to ship: thin factors in eight bits on top of the encoder (`metrics.encoder`).

    weight = the encoder's weight + left right'        left, right: int8 with a scale per column

Changes of vectors (biases, normalizations) and the heads are kept whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.metrics.encoder import Transformer, group_texts
from dialeval.metrics.encoder_files import EncoderFiles, Singles

Pieces = npt.NDArray[np.int32]

_DETACHED = re.compile(r"(\w) n't\b", re.IGNORECASE)
_AT_ONCE = 1 << 14

KINDS = ("true", "random", "echo", "broken")
"""What a candidate response is in training; the classes of the head `kind`."""

HEADS = {"rank": 1, "kind": len(KINDS), "rating": 1, "breakdown": 3}
"""What the heads say: how well the response follows, what kind of candidate it is, its mean rating, and the fractions
of annotators that would see no breakdown, perhaps one, and one."""

Changes = Mapping[str, npt.NDArray[Any]]
"""By name: factors (`NAME.left`, `NAME.right`, each with `.scale`), differences of vectors, and the heads."""


TURNS = 3
CONTEXT_TOKENS = 72
"""Word pieces of a context that count, with [CLS] and every [SEP]."""
RESPONSE_TOKENS = 44
"""Word pieces of a response that count, with its [SEP]."""
_MOST = 1 << 24


@dataclass(frozen=True)
class PairShape:
    """How much of a pair is read."""

    turns: int = TURNS
    context_tokens: int = CONTEXT_TOKENS
    response_tokens: int = RESPONSE_TOKENS

    def __post_init__(self) -> None:
        if not all(1 <= number <= _MOST for number in (self.turns, self.context_tokens, self.response_tokens)):
            raise ValueError("turns and tokens are whole numbers from 1 on")


class CrossEncoder:
    """An encoder's files with changes to its layers, and heads."""

    def __init__(self, files: EncoderFiles, changes: Changes, shape: PairShape) -> None:
        self.shape = shape
        self._tokenizer = PairTokenizer(files)
        weights, layers = files.read_weights(), merge_changes(name_weights(files), changes)
        parts = [
            {name: (layers[f"{number}.{name}.weight"], layers[f"{number}.{name}.bias"]) for name in layer}
            for number, layer in enumerate(weights.layers)
        ]
        self._transformer = Transformer(files, replace(weights, layers=parts))
        self._heads: tuple[Floats, Floats] = (
            changes["heads.weight"].astype(np.float64),
            changes["heads.bias"].astype(np.float64),
        )

    def compute_heads(self, contexts: Sequence[Sequence[str]], responses: Sequence[str]) -> Floats:
        """Return the values of the heads for each response, a row each; the columns in the order of `HEADS`."""
        read = self.make_sequences(contexts, responses)
        heads = np.empty((len(read), sum(HEADS.values())))
        for group in group_texts([len(ids) for ids, _ in read]):
            heads[group] = self._run_group([read[pair] for pair in group])
        return heads

    def make_sequences(self, contexts: Sequence[Sequence[str]], responses: Sequence[str]) -> list[tuple[Pieces, int]]:
        """Return the pieces of each pair, and how many of them are the response's."""
        kept = [[turn for turn in context if turn.strip()][-self.shape.turns :] for context in contexts]
        texts = [text for context, response in zip(kept, responses, strict=True) for text in (*context, response)]
        pieces, read = iter(self._tokenizer.split_pieces(texts)), []
        for context in kept:
            before = [piece for _ in context for piece in next(pieces)]
            response = next(pieces)
            if len(response) > self.shape.response_tokens:
                response = [*response[: self.shape.response_tokens - 1], self._tokenizer.end]
            before = before[max(len(before) - (self.shape.context_tokens - 1), 0) :]
            read.append((np.array([self._tokenizer.first, *before, *response], np.int32), len(response)))
        return read

    def _run_group(self, read: Sequence[tuple[npt.NDArray[np.int32], int]]) -> Floats:
        seconds = [many for _, many in read]
        kept = [np.append(0, np.arange(len(ids) - many, len(ids))) for ids, many in read]
        weight, bias = self._heads
        heads = []
        for rows in self._transformer.forward([ids for ids, _ in read], seconds, kept):
            said: Singles = rows[1:].sum(axis=0) / np.float32(len(rows) - 1)
            # Pair by pair: the shape of the product must not depend on their number.
            heads.append(weight @ np.concatenate((rows[0], said)) + bias)
        return np.array(heads)


def name_weights(files: EncoderFiles) -> dict[str, Singles]:
    """Return the weights of an encoder by the names that changes have."""
    weights = files.read_weights()
    named = {"words": weights.words, "positions": weights.positions, "second": weights.second}
    parts = {"norm": weights.norm}
    parts |= {f"{number}.{name}": part for number, layer in enumerate(weights.layers) for name, part in layer.items()}
    for name, (weight, bias) in parts.items():
        named |= {f"{name}.weight": weight, f"{name}.bias": bias}
    return named


def list_trained_names(base: Mapping[str, Singles]) -> Iterator[str]:
    """Return the names of the weights that are trained: those of the layers."""
    return (name for name in base if name.partition(".")[0].isdigit())


def merge_changes(base: Mapping[str, Singles], changes: Changes) -> dict[str, Singles]:
    """Return the weights of the layers with the changes."""
    merged = {}
    for name in list_trained_names(base):
        if f"{name}.left" in changes:
            left, right = (
                changes[f"{name}.{side}"].astype(np.float32) * changes[f"{name}.{side}.scale"]
                for side in ("left", "right")
            )
            merged[name] = base[name] + left @ right.T
        else:
            merged[name] = base[name] + changes[name].astype(np.float32)
    return merged


class PairTokenizer:
    """The word-piece tokenizer of an encoder, for pairs of texts."""

    def __init__(self, files: EncoderFiles) -> None:
        self._tokenizer: Any = files.read_tokenizer()
        self.first, self.end = (int(self._tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]"))

    def split_pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the pieces of each text, ended by [SEP]."""
        pieces: list[list[int]] = []
        for start in range(0, len(texts), _AT_ONCE):
            joined = [_DETACHED.sub(r"\1n't", text) for text in texts[start : start + _AT_ONCE]]
            encoded = self._tokenizer.encode_batch_fast(joined, add_special_tokens=False)
            pieces += [[*encoding.ids, self.end] for encoding in encoded]
        return pieces
