"""Pairs of context and response as word pieces, the way a cross-encoder reads them.

    [CLS] the last turns of the context, each ended by [SEP]   |   the response [SEP]

The first part has the token type 0, the second 1. Of a context that is too long the end counts, of a response that is
too long the beginning. Texts of all pairs lie in one array of pieces, each text ended by [SEP]; the turns of a dialogue
lie one behind the other, so that any context is one stretch of the array and a pair is two stretches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints
from dialeval.resources.encoder_files import EncoderFiles
from dialeval.resources.judge_settings import TURNS

Pieces = npt.NDArray[np.int32]

_DETACHED = re.compile(r"(\w) n't\b", re.IGNORECASE)
_AT_ONCE = 1 << 14


class PairTokeniser:
    """Cuts texts into the word pieces of an encoder."""

    def __init__(self, files: EncoderFiles) -> None:
        self._tokeniser: Any = files.tokeniser()
        self.first, self.end = (int(self._tokeniser.token_to_id(mark)) for mark in ("[CLS]", "[SEP]"))

    def continuations(self) -> npt.NDArray[np.bool_]:
        """By piece: whether it goes on with the word of the piece before."""
        size = self._tokeniser.get_vocab_size()
        return np.array([self._tokeniser.id_to_token(piece).startswith("##") for piece in range(size)], np.bool_)

    def pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """The pieces of each text, ended by [SEP]."""
        found: list[Pieces] = []
        for start in range(0, len(texts), _AT_ONCE):
            joined = [_DETACHED.sub(r"\1n't", text) for text in texts[start : start + _AT_ONCE]]
            encoded = self._tokeniser.encode_batch_fast(joined, add_special_tokens=False)
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

    def take(self, chosen: Ints | npt.NDArray[np.bool_]) -> Pairs:
        """Some of the pairs, over the same texts."""
        return Pairs(self.pieces, self.starts, self.contexts[chosen], self.responses[chosen])


def together(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of several corpora, one behind the other."""
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
    tokeniser: PairTokeniser, contexts: Sequence[Sequence[str]], responses: Sequence[str], turns: int = TURNS
) -> Pairs:
    """A pair for each row: the last turns of its context that are not empty, and its response."""
    kept = [[turn for turn in context if turn.strip()][-turns:] for context in contexts]
    counts = np.fromiter(map(len, kept), np.int64, len(kept))
    texts = [text for context, response in zip(kept, responses, strict=True) for text in (*context, response)]
    behind = np.cumsum(counts + 1)
    first = behind - counts - 1
    return Pairs(*_texts(tokeniser.pieces(texts)), np.stack((first, behind - 1), axis=1), behind - 1)


def dialogue_pairs(
    tokeniser: PairTokeniser,
    dialogues: Sequence[Sequence[str]],
    replies: Sequence[Sequence[str]],
    turns: int = TURNS,
) -> Pairs:
    """Every turn but the first as a response to those before it, and every reply as one to the whole dialogue.

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
    return Pairs(*_texts(tokeniser.pieces(texts)), table[:, :2], table[:, 2])
