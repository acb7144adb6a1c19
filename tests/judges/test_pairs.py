"""Pairs and dialogues that judges learn from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools.judge_training.pairs import Pairs, continuations, read_dialogues

from dialeval.core.errors import DataError
from dialeval.judges.cross_encoder import PairTokenizer
from dialeval.metrics.encoder_files import EncoderFiles, find_encoder
from tiny_encoder import WORDS, write_encoder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> EncoderFiles:
    return find_encoder(write_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module")
def tokenizer(files: EncoderFiles) -> PairTokenizer:
    return PairTokenizer(files)


def words(pairs: Pairs, pair: int) -> tuple[str, str]:
    """Context and response of a pair, in pieces."""
    start, stop = pairs.starts[pairs.contexts[pair]]
    response = pairs.responses[pair]
    parts = (start, stop), (pairs.starts[response], pairs.starts[response + 1])
    context, said = (" ".join(WORDS[piece] for piece in pairs.pieces[first:last]) for first, last in parts)
    return context, said


def test_a_negation_that_corpora_detach_is_joined(tokenizer: PairTokenizer) -> None:
    detached, joined = tokenizer.split_pieces(["I do n't know", "I don't know"])
    np.testing.assert_array_equal(detached, joined)


def test_pieces_that_go_on_with_a_word_are_known(files: EncoderFiles) -> None:
    assert [WORDS[piece] for piece in np.flatnonzero(continuations(files))] == ["##s"]


def test_replies_stand_beside_the_dialogues_that_have_them(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"turns": ["a"], "replies": ["b", "c"]}\n{"turns": ["d", "e"]}\n')
    assert read_dialogues([path]) == [(["a"], ["b", "c"]), (["d", "e"], [])]
    path.write_text('{"turns": ["a"], "replies": 3}\n')
    with pytest.raises(DataError, match="replies"):
        read_dialogues([path])
