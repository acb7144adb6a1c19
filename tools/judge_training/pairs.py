"""Pairs of context and reply as word pieces, and what ships of a trained matrix; without PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints
from dialeval.io.fields import FieldReader
from dialeval.io.opening import PathSource
from dialeval.io.reading import read_objects
from dialeval.io.rows import FieldNames, RowObject
from dialeval.judges.judge import CONTEXT_TOKENS, RESPONSE_TOKENS, TURNS, PairShape, PairTokenizer, Pieces
from dialeval.metrics.encoder_files import EncoderFiles, Singles

_LEVELS = 127


class Dialogue(NamedTuple):
    """The turns of a dialogue, and where known `replies`: other replies to its last turn."""

    turns: list[str]
    replies: list[str]


def read_dialogues(paths: Sequence[PathSource]) -> list[Dialogue]:
    """Read JSONL files of dialogues: `{"turns": [texts]}` or a chat with `messages`, and `replies` where known."""
    return read_objects(paths, "dialogues", "turns or messages", FieldNames(), _read_dialogue)


def _read_dialogue(reader: FieldReader, row: RowObject, _: str) -> Iterator[Dialogue]:
    given = row.get("turns", row.get("messages"))
    if given is None:
        reader.add_problem("is an object without turns", "give a list of texts as `turns`, or `messages`")
    turns, replies = reader.read_turns(given, "turns"), reader.read_turns(row.get("replies") or [], "replies")
    yield Dialogue([turn.shown for turn in turns], [turn.shown for turn in replies])


def shape_within(most: int) -> PairShape:
    """Return the usual shape of a pair, or a smaller one for an encoder that takes fewer tokens."""
    context = min(CONTEXT_TOKENS, most * CONTEXT_TOKENS // (CONTEXT_TOKENS + RESPONSE_TOKENS))
    return PairShape(TURNS, context, min(RESPONSE_TOKENS, most - context))


def continuations(files: EncoderFiles) -> npt.NDArray[np.bool_]:
    """Return by word piece whether it goes on with the word of the piece before."""
    tokenizer = files.read_tokenizer()
    pieces = map(tokenizer.id_to_token, range(tokenizer.get_vocab_size()))
    return np.array([piece.startswith("##") for piece in pieces], np.bool_)


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


def _texts(pieces: Sequence[Sequence[int]]) -> tuple[Pieces, Ints]:
    starts: Ints = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    return np.fromiter(chain.from_iterable(pieces), np.int32, int(starts[-1])), starts


def rated_pairs(
    tokenizer: PairTokenizer, contexts: Sequence[Sequence[str]], responses: Sequence[str], turns: int = TURNS
) -> Pairs:
    """Return a pair for each row: the last turns of its context that are not empty, and its response."""
    kept = [[turn for turn in context if turn.strip()][-turns:] for context in contexts]
    counts = np.fromiter(map(len, kept), np.int64, len(kept))
    texts = [text for context, response in zip(kept, responses, strict=True) for text in (*context, response)]
    behind = np.cumsum(counts + 1)
    first = behind - counts - 1
    return Pairs(*_texts(tokenizer.split_pieces(texts)), np.stack((first, behind - 1), axis=1), behind - 1)


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
    return Pairs(*_texts(tokenizer.split_pieces(texts)), table[:, :2], table[:, 2])


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
