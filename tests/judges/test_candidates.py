"""Candidates: what is drawn for a pair, and how sequences are laid out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tools.judge_training.pairs import Pairs

from dialeval.judges.judge import PairShape

pytest.importorskip("torch")

import torch
from tools.judge_training.cross_training import Corpus
from tools.judge_training.transformer import PieceBatch

FIRST, END = 1, 2
SHAPE = PairShape(3, 10, 8)


def corpus(lengths: list[int], device: str = "cpu") -> Corpus:
    """One dialogue; turn k has the pieces 10 k, 10 k + 1, ...; pieces that end in 3 go on with a word."""
    starts = np.cumsum([0, *(length + 1 for length in lengths)])
    pieces = np.concatenate([[*(10 * (turn + 1) + np.arange(many)), END] for turn, many in enumerate(lengths)])
    responses = np.arange(1, len(lengths))
    contexts = np.stack((np.maximum(responses - 3, 0), responses), axis=1)
    pairs = Pairs(pieces.astype(np.int32), starts, contexts, responses)
    return Corpus(pairs, SHAPE, (FIRST, END), np.arange(200) % 10 == 3, device)


def sequences(batch: PieceBatch) -> list[list[int]]:
    ids, bounds = batch.ids.tolist(), batch.bounds.tolist()
    return [ids[start:stop] for start, stop in pairwise(bounds)]


def test_a_pair_is_laid_out_as_the_other_encoder_reads_it() -> None:
    batch = corpus([2, 3, 1, 9]).batch(torch.tensor([0, 1, 2]))
    found = sequences(batch)
    assert found[0] == [FIRST, 10, 11, END, 20, 21, 22, END]
    assert found[1] == [FIRST, 10, 11, END, 20, 21, 22, END, 30, END]
    # Of the context the last nine pieces, of the response the first seven.
    assert found[2] == [FIRST, 10, 11, END, 20, 21, 22, END, 30, END, *range(40, 47), END]
    assert batch.longest == len(found[2])
    assert batch.second.tolist() == [False] * 4 + [True] * 4 + [False] * 8 + [True] * 2 + [False] * 10 + [True] * 8
    assert batch.places.tolist() == [place for ids in found for place in range(len(ids))]
    assert batch.owner.tolist() == [number for number, ids in enumerate(found) for _ in ids]


def test_an_empty_response_has_no_broken_copy() -> None:
    _, there, _ = corpus([3, 0, 2]).candidates(torch.tensor([0]), torch.Generator().manual_seed(0))
    assert not there[0, -1]
    assert there[0, 0]


def test_dull_responses_are_those_that_come_often() -> None:
    pieces = np.array([11, END, 12, END, 12, END, 12, END, 13, END], np.int32)
    responses = np.arange(1, 5)
    pairs = Pairs(pieces, np.arange(0, 12, 2), np.stack((responses - 1, responses), axis=1), responses)
    here = Corpus(pairs, SHAPE, (FIRST, END), np.zeros(20, np.bool_), "cpu")
    assert here.frequent.tolist() == [1]


def test_a_corpus_counts_by_the_root_of_its_size() -> None:
    here = corpus([2] * 102)
    here.parts = np.array([100, 1])
    rows = here.drawn(4000, np.random.default_rng(0))
    assert int(rows.max()) == 100
    assert float((rows == 100).float().mean()) == pytest.approx(1 / 11, abs=0.02)
    again = here.drawn(4000, np.random.default_rng(0))
    assert rows.equal(again)
