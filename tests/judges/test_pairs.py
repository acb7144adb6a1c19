"""Pairs of context and response as word pieces: what is read, what is cut, and what is no pair."""

from __future__ import annotations

import numpy as np
import pytest
from tools.judge_training.pairs import Pairs, continuations, dialogue_pairs, rated_pairs, shape_within, together

from dialeval.judges.cross_encoder import PairShape, PairTokenizer
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


def test_a_row_is_its_last_turns_and_its_response(tokenizer: PairTokenizer) -> None:
    contexts = [["hello", "a", "", "cats", "the dog"], [], ["you ?"]]
    pairs = rated_pairs(tokenizer, contexts, ["I am", "fine .", ""])
    assert [words(pairs, row) for row in range(3)] == [
        ("a [SEP] cat ##s [SEP] the dog [SEP]", "i am [SEP]"),
        ("", "fine . [SEP]"),
        ("you ? [SEP]", "[SEP]"),
    ]


def test_every_turn_answers_those_before_it_and_replies_the_whole_dialogue(tokenizer: PairTokenizer) -> None:
    pairs = dialogue_pairs(
        tokenizer, [["a", "cat", " ", "sat", "on", "mat"], ["dog"], []], [["fine"], ["i", ""], ["am"]]
    )
    assert [words(pairs, pair) for pair in range(len(pairs))] == [
        ("a [SEP]", "cat [SEP]"),
        ("a [SEP] cat [SEP]", "sat [SEP]"),
        ("a [SEP] cat [SEP] sat [SEP]", "on [SEP]"),
        ("cat [SEP] sat [SEP] on [SEP]", "mat [SEP]"),
        ("sat [SEP] on [SEP] mat [SEP]", "fine [SEP]"),
        ("dog [SEP]", "i [SEP]"),
    ]


def test_corpora_stand_one_behind_the_other(tokenizer: PairTokenizer) -> None:
    parts = [
        dialogue_pairs(tokenizer, [["a", "cat", "sat"]], [[]]),
        dialogue_pairs(tokenizer, [["hello", "you ?"], ["i"]], [["fine"], ["am"]]),
    ]
    both = together(parts)
    expected = [words(part, pair) for part in parts for pair in range(len(part))]
    assert [words(both, pair) for pair in range(len(both))] == expected


def test_an_encoder_with_few_positions_reads_less() -> None:
    assert shape_within(256) == PairShape()
    assert shape_within(64) == PairShape(3, 39, 25)


def test_a_negation_that_corpora_detach_is_joined(tokenizer: PairTokenizer) -> None:
    detached, joined = tokenizer.split_pieces(["I do n't know", "I don't know"])
    np.testing.assert_array_equal(detached, joined)


def test_pieces_that_go_on_with_a_word_are_known(files: EncoderFiles) -> None:
    assert [WORDS[piece] for piece in np.flatnonzero(continuations(files))] == ["##s"]
