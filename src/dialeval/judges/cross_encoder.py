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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints
from dialeval.metrics.encoder import Transformer, groups
from dialeval.metrics.encoder_files import EncoderFiles, Singles

Pieces = npt.NDArray[np.int32]

_DETACHED = re.compile(r"(\w) n't\b", re.IGNORECASE)
_AT_ONCE = 1 << 14

KINDS = ("true", "random", "echo", "broken")
"""What a candidate response is in training; the classes of the head `kind`."""

HEADS = {"rank": 1, "kind": len(KINDS), "rating": 1, "breakdown": 3}
"""What the heads say: how well the response follows, what kind of candidate it is, its mean rating, and the fractions
of annotators that would see no breakdown, perhaps one, and one."""

_LEVELS = 127

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

    @classmethod
    def within(cls, most: int) -> PairShape:
        """Return the usual shape, or a smaller one for an encoder that takes fewer tokens."""
        context = min(CONTEXT_TOKENS, most * CONTEXT_TOKENS // (CONTEXT_TOKENS + RESPONSE_TOKENS))
        return cls(TURNS, context, min(RESPONSE_TOKENS, most - context))


class CrossEncoder:
    """An encoder's files with changes to its layers, and heads."""

    def __init__(self, files: EncoderFiles, changes: Changes, shape: PairShape) -> None:
        self.shape = shape
        self._tokenizer = PairTokenizer(files)
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
        """Return the values of the heads for each response, a row each; the columns in the order of `HEADS`."""
        pairs = rated_pairs(self._tokenizer, contexts, responses, self.shape.turns)
        read = [self.sequence(pairs, pair) for pair in range(len(pairs))]
        found = np.empty((len(pairs), sum(HEADS.values())))
        for group in groups([len(ids) for ids, _ in read]):
            found[group] = self._of_group([read[pair] for pair in group])
        return found

    def sequence(self, pairs: Pairs, pair: int) -> tuple[npt.NDArray[np.int32], int]:
        """Return the pieces of a pair, and how many of them are the response's."""
        first, behind = pairs.starts[pairs.contexts[pair]]
        first = max(first, behind - (self.shape.context_tokens - 1))
        start, stop = pairs.starts[pairs.responses[pair] : pairs.responses[pair] + 2]
        response = pairs.pieces[start:stop]
        if len(response) > self.shape.response_tokens:
            response = np.append(response[: self.shape.response_tokens - 1], np.int32(self._tokenizer.end))
        before = np.concatenate(([self._tokenizer.first], pairs.pieces[first:behind])).astype(np.int32)
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


def encoder_weights(files: EncoderFiles) -> dict[str, Singles]:
    """Return the weights of an encoder by the names that changes have."""
    weights = files.weights()
    found = {"words": weights.words, "positions": weights.positions, "second": weights.second}
    parts = {"norm": weights.norm}
    parts |= {f"{number}.{name}": part for number, layer in enumerate(weights.layers) for name, part in layer.items()}
    for name, (weight, bias) in parts.items():
        found |= {f"{name}.weight": weight, f"{name}.bias": bias}
    return found


def trained_names(base: Mapping[str, Singles]) -> Iterator[str]:
    """Return the names of the weights that are trained: those of the layers."""
    return (name for name in base if name.partition(".")[0].isdigit())


def factors(change: Singles, rank: int) -> tuple[Singles, Singles]:
    """Return two thin matrices, `rank` columns each, whose product left right' is nearest to a matrix."""
    left, sizes, right = np.linalg.svd(change, full_matrices=False)
    root = np.sqrt(sizes[:rank])
    # In the order of rows: safetensors writes the memory of an array as it lies.
    return np.ascontiguousarray(left[:, :rank] * root), np.ascontiguousarray(right[:rank].T * root)


def in_eight_bits(matrix: Singles) -> tuple[npt.NDArray[np.int8], Singles]:
    """Return the entries as multiples of a scale per column."""
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-12).astype(np.float32) / np.float32(_LEVELS)
    return np.rint(matrix / scale).astype(np.int8), scale


def merged(base: Mapping[str, Singles], changes: Changes) -> dict[str, Singles]:
    """Return the weights of the layers with the changes."""
    found = {}
    for name in trained_names(base):
        if f"{name}.left" in changes:
            left, right = (
                changes[f"{name}.{side}"].astype(np.float32) * changes[f"{name}.{side}.scale"]
                for side in ("left", "right")
            )
            found[name] = base[name] + left @ right.T
        else:
            found[name] = base[name] + changes[name].astype(np.float32)
    return found


class PairTokenizer:
    """Cuts texts into the word pieces of an encoder."""

    def __init__(self, files: EncoderFiles) -> None:
        self._tokenizer: Any = files.tokenizer()
        self.first, self.end = (int(self._tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]"))

    def continuations(self) -> npt.NDArray[np.bool_]:
        """Return by piece whether it goes on with the word of the piece before."""
        size = self._tokenizer.get_vocab_size()
        return np.array([self._tokenizer.id_to_token(piece).startswith("##") for piece in range(size)], np.bool_)

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Return the pieces of each text, ended by [SEP]."""
        found: list[Pieces] = []
        for start in range(0, len(texts), _AT_ONCE):
            joined = [_DETACHED.sub(r"\1n't", text) for text in texts[start : start + _AT_ONCE]]
            encoded = self._tokenizer.encode_batch_fast(joined, add_special_tokens=False)
            found += [np.array([*each.ids, self.end], np.int32) for each in encoded]
        return found


@dataclass(frozen=True, eq=False)
class Pairs:
    """Contexts and responses as stretches of one array of pieces; an entry per pair."""

    pieces: Pieces
    """Of all texts, one behind the other."""
    starts: Ints
    """Where each text begins, and where the last one ends."""
    contexts: Ints
    """By pair: the first text of its context and the one behind its last; two columns."""
    responses: Ints
    """By pair: the text of its response."""

    def __len__(self) -> int:
        return len(self.responses)


def together(parts: Sequence[Pairs]) -> Pairs:
    """Concatenate the pairs of several corpora."""
    texts: Ints = np.cumsum([0, *(len(part.starts) - 1 for part in parts)], dtype=np.int64)
    pieces: Ints = np.cumsum([0, *(len(part.pieces) for part in parts)], dtype=np.int64)
    return Pairs(
        np.concatenate([part.pieces for part in parts]),
        np.append(np.concatenate([part.starts[:-1] + at for part, at in zip(parts, pieces, strict=False)]), pieces[-1]),
        np.concatenate([part.contexts + at for part, at in zip(parts, texts, strict=False)]),
        np.concatenate([part.responses + at for part, at in zip(parts, texts, strict=False)]),
    )


def _texts(pieces: Iterable[Pieces]) -> tuple[Pieces, Ints]:
    every = list(pieces)
    starts: Ints = np.cumsum([0, *map(len, every)], dtype=np.int64)
    return np.concatenate(every) if every else np.empty(0, np.int32), starts


def rated_pairs(
    tokenizer: PairTokenizer, contexts: Sequence[Sequence[str]], responses: Sequence[str], turns: int = TURNS
) -> Pairs:
    """Return a pair for each row: the last turns of its context that are not empty, and its response."""
    kept = [[turn for turn in context if turn.strip()][-turns:] for context in contexts]
    counts = np.fromiter(map(len, kept), np.int64, len(kept))
    texts = [text for context, response in zip(kept, responses, strict=True) for text in (*context, response)]
    behind = np.cumsum(counts + 1)
    first = behind - counts - 1
    return Pairs(*_texts(tokenizer.pieces(texts)), np.stack((first, behind - 1), axis=1), behind - 1)


def dialogue_pairs(
    tokenizer: PairTokenizer,
    dialogues: Sequence[Sequence[str]],
    replies: Sequence[Sequence[str]],
    turns: int = TURNS,
) -> Pairs:
    """Return every turn but the first as a response to those before it, and every reply as one to the whole dialogue.

    `replies` has further replies to the last turn of each dialogue. Turns and replies that are empty are left out.
    """
    texts: list[str] = []
    rows: list[tuple[int, int, int]] = []
    for dialogue, more in zip(dialogues, replies, strict=True):
        start = len(texts)
        texts += [turn for turn in dialogue if turn.strip()]
        end = len(texts)
        rows += [(max(start, turn - turns), turn, turn) for turn in range(start + 1, end)]
        if end > start:
            for reply in more:
                if reply.strip():
                    rows.append((max(start, end - turns), end, len(texts)))
                    texts.append(reply)
    table: Ints = np.array(rows, np.int64).reshape(-1, 3)
    return Pairs(*_texts(tokenizer.pieces(texts)), table[:, :2], table[:, 2])
