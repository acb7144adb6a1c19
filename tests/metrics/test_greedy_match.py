"""Greedy matching in context, against plain loops over BERTScore's formula, on a tiny encoder."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.metrics.embedding import GreedyMatch, match_greedily
from dialeval.metrics.encoder import Encoder, ShippedEncoder
from dialeval.metrics.encoder_files import Singles, find_encoder
from dialeval.text.vocabulary import Vocabulary
from tiny_encoder import WORDS, write_encoder

texts = st.lists(st.sampled_from([*WORDS[4:], "cats", "日本", "\U0001f600", "e\u0301"]), max_size=8).map(" ".join)
Rows = list[tuple[str, list[str]]]


def tiny_shipped_encoder(folder: Path) -> ShippedEncoder:
    return ShippedEncoder(Encoder(find_encoder(write_encoder(folder / "encoder")), 32))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> ShippedEncoder:
    return tiny_shipped_encoder(tmp_path_factory.mktemp("greedy"))


def batch_of(rows: Rows, encoder: ShippedEncoder) -> Batch:
    columns: dict[Input, ColumnData] = {
        inputs.RESPONSE: TextColumn.from_strings([response for response, _ in rows]),
        inputs.REFERENCE: RaggedColumn.from_lists([references for _, references in rows]),
    }
    return Batch(len(rows), columns, Vocabulary(), np.arange(len(rows) + 1), {inputs.ENCODER: encoder})


def bert_score(response: str, reference: str, encoder: ShippedEncoder) -> float:
    """As bert-score computes F for one pair without idf and baseline; marks have weight 0 but may be matched."""
    here, there = (vectors.astype(float) for vectors in encoder.encode_tokens([response, reference]))
    if len(here) == 2 or len(there) == 2:
        return 0.0
    cosine = [[float(a @ b / np.sqrt((a @ a) * (b @ b))) for b in there] for a in here]
    weights = [[0.0, *[1.0] * (len(side) - 2), 0.0] for side in (here, there)]
    precision = sum(w * max(0.0, *row) for w, row in zip(weights[0], cosine, strict=True)) / sum(weights[0])
    columns = zip(weights[1], zip(*cosine, strict=True), strict=True)
    recall = sum(w * max(0.0, *column) for w, column in columns) / sum(weights[1])
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


@given(rows=st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=2)), min_size=1, max_size=4))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_the_formula(rows: Rows, encoder: ShippedEncoder) -> None:
    expected = [max(bert_score(response, text, encoder) for text in references) for response, references in rows]
    np.testing.assert_allclose(GreedyMatch().score(batch_of(rows, encoder)), expected, rtol=1e-9, atol=1e-12)


def test_what_cannot_be_scored(encoder: ShippedEncoder) -> None:
    rows: Rows = [("", ["the cat"]), ("the cat", [""]), ("the cat", []), ("the cat", ["the cat"]), ("", [])]
    found = GreedyMatch().score(batch_of(rows, encoder))
    np.testing.assert_allclose(found, [0, 0, np.nan, 1, np.nan], rtol=1e-12)
    assert (np.nan_to_num(found) <= 1).all()


def test_opposite_vectors_match_nothing() -> None:
    one = np.eye(3)[[0, 0, 0]]
    assert match_greedily(one, -one) == 0
    assert match_greedily(one, one) == 1


def test_precision_and_recall_are_over_the_pieces_of_one_side_each() -> None:
    """A piece may be nearest to a mark, but marks are not asked for their nearest piece."""
    first, second, third = np.eye(3)
    response = np.array([first, second, third])  # one piece between two marks
    reference = np.array([second, first, third, first])  # two pieces
    # The piece of the response is nearest to a mark; both pieces of the reference are nearest to marks.
    assert match_greedily(response, reference) == 1
    half = np.array([first, (first + second) / np.sqrt(2), first])
    # P = cos 45 degrees; R = (1 + 0) / 2
    assert match_greedily(half, reference) == pytest.approx(2 * np.sqrt(0.5) * 0.5 / (np.sqrt(0.5) + 0.5))
    assert match_greedily(response[:2], reference) == match_greedily(reference, response[:2]) == 0
    assert match_greedily(1.5 * half, 1.5 * half) == 1, "no cosine is above 1"


def test_a_text_does_not_depend_on_its_neighbors(encoder: ShippedEncoder) -> None:
    rows: Rows = [("the cat sat", ["a dog sat on the mat"]), ("hello there " * 9, ["how are you ?"]), ("i", ["am"])]
    whole = GreedyMatch().score(batch_of(rows, encoder))
    alone = [GreedyMatch().score(batch_of([row], encoder))[0] for row in rows]
    assert whole.tolist() == alone


def test_pooled_tokens_are_the_vector_of_the_text(encoder: ShippedEncoder) -> None:
    several = ["the cat sat on the mat", "hello", "日本", "the " * 100]
    pooled = np.array([vectors.mean(axis=0) for vectors in encoder.encode_tokens(several)])
    lengths = np.sqrt((pooled * pooled).sum(axis=1))[:, None]
    np.testing.assert_allclose(pooled / lengths, encoder.encoder.encode(several), atol=1e-5)


def test_it_travels_as_its_place(encoder: ShippedEncoder) -> None:
    again = pickle.loads(pickle.dumps(encoder))
    assert again.digest == encoder.digest == f"{encoder.encoder.name}@{encoder.encoder.digest}"
    assert pickle.loads(pickle.dumps(ShippedEncoder()))._given is None


def test_a_text_is_encoded_once_while_it_is_kept(
    tmp_path: Path, encoder: ShippedEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches share references; where there is no room, those of the last texts are kept; results stay the same."""
    met: list[str] = []
    fresh = tiny_shipped_encoder(tmp_path)
    encode = fresh.encoder.encode_tokens

    def encode_and_record(texts: list[str]) -> list[Singles]:
        met.extend(texts)
        return encode(texts)

    monkeypatch.setattr(fresh.encoder, "encode_tokens", encode_and_record)
    rows: Rows = [("the cat", ["a dog"]), ("hello", ["a dog", "the cat"])]
    for _ in range(2):
        found = GreedyMatch().score(batch_of(rows, fresh))
        assert found.tolist() == GreedyMatch().score(batch_of(rows, encoder)).tolist()
    assert sorted(met) == ["a dog", "hello", "the cat"]
    monkeypatch.setattr("dialeval.metrics.encoder.KEPT_TOKENS", 4)
    for text in ("the cat sat", "hello", "the cat sat"):
        np.testing.assert_array_equal(fresh.encode_tokens([text])[0], encode([text])[0])
    assert met.count("the cat sat") == 2
