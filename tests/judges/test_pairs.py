"""Pairs of context and response as word pieces: what is read, what is cut, and what is no pair."""

from __future__ import annotations

import numpy as np
import pytest
from tools.judge_training.pairs import Pairs, continuations

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
