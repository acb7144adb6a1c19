"""Embedding metrics and coherence against their naive twins, on any vocabulary."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dialeval
import evaluating
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.core.result import Result
from dialeval.metrics.embedding import GreedyMatch
from dialeval.metrics.encoder import Encoder, SentenceVectors
from dialeval.metrics.encoder_files import Singles, find_encoder
from dialeval.metrics.words import KnownWords, VectorTable
from dialeval.text.vocabulary import Vocabulary
from metrics import twins
from metrics.evaluated import VECTORS, Vectors, close, evaluated, worlds
from tiny_encoder import WORDS, write_encoder


@settings(max_examples=200)
@given(worlds)
def test_embeddings_and_coherence(world: dict[str, Any]) -> None:
    result, known, vectors = evaluated(world, metrics="dialog-eval")
    compare_with_twins(result, world, known, vectors, twins.shares(world["train"], 1, known))


@given(worlds)
def test_words_with_a_vector_count_whatever_the_vocabulary_is(world: dict[str, Any]) -> None:
    result, _, vectors = evaluated(world, metrics="embedding,coherence")
    compare_with_twins(result, world, set(vectors), vectors, twins.shares(world["train"], 1, None))


def compare_with_twins(
    result: Result,
    world: dict[str, Any],
    known: set[str],
    vectors: dict[str, Floats],
    shares: dict[tuple[str, ...], float],
) -> None:

    def cosines(left: list[Floats | None], right: list[Floats | None]) -> list[float]:
        pairs = zip(left, right, strict=True)
        return [math.nan if a is None or b is None else twins.cosine(a, b) for a, b in pairs]

    averages, ends = (
        {
            side: [made(text, known, vectors, *more) for text in world[side]]
            for side in ("responses", "references", "contexts")
        }
        for made, more in ((twins.average, [shares]), (twins.extrema, []))
    )
    close(result, "embedding-average", cosines(averages["responses"], averages["references"]))
    close(result, "embedding-extrema", cosines(ends["responses"], ends["references"]))
    close(result, "coherence", cosines(averages["contexts"], averages["responses"]))
    pairs = zip(world["responses"], world["references"], strict=True)
    close(result, "embedding-greedy", [twins.greedy(a, b, known, vectors) for a, b in pairs])


@pytest.mark.parametrize("by", ["average", "extrema", "greedy"])
def test_the_best_of_several_references_counts(by: str) -> None:
    several = dialeval.evaluate(["a"], [["c", "b", "", "zz"]], train=["x"], vectors=VECTORS, metrics="embedding")
    single = dialeval.evaluate(["a"], ["b"], train=["x"], vectors=VECTORS, metrics="embedding")
    key = f"embedding-{by}"
    assert several["system"][key].mean == pytest.approx(single["system"][key].mean)
    none = dialeval.evaluate(["a"], [[]], train=["x"], vectors=VECTORS, metrics="embedding")
    assert none["system"][key].scored == 0


def test_a_chat_has_the_values_of_its_rows() -> None:
    said = ["a", "c", "b a", "", "c c a", "a b", "x", "b", "a c", "c"]
    messages = [{"role": ("user", "assistant")[turn % 2], "content": text} for turn, text in enumerate(said)]
    chats = [{"messages": messages}, {"messages": messages[1:]}, {"messages": messages[3:]}]
    rows = [
        {"response": said[turn], "context": said[start:turn]}
        for start in (0, 1, 3)
        for turn in range(start, 10)
        if turn % 2
    ]
    shared, apart = (
        dialeval.evaluate(given, metrics="coherence", train=["x"], vectors=VECTORS)["system"]["coherence"]
        for given in (chats, rows)
    )
    np.testing.assert_array_equal(shared.scores, apart.scores)
    assert shared.signature == apart.signature, "the digest of the contexts is the same"
    assert shared.mean == apart.mean


def test_coherence_takes_the_last_turn() -> None:
    given: dict[str, Any] = {"metrics": "coherence", "train": ["x"], "vectors": VECTORS}
    for turns, cosine in ((["c", "a a"], 1.0), (["a", "c"], -1.0)):
        run = evaluating.evaluate(["a"], contexts=[turns], **given)
        assert run["system"]["coherence"].mean == pytest.approx(cosine)


def test_vectors_of_words_that_come_late_are_found() -> None:
    responses = [f"w{number}" for number in range(50)]
    table = {word: (1.0, float(number), 0.0) for number, word in enumerate(responses)}
    result = dialeval.evaluate(
        responses,
        responses,
        train=["w3"],
        vectors=Vectors(table),
        metrics="embedding",
        execution=dialeval.Execution(batch_rows=3, threads=3),
    )["system"]
    for by in ("average", "extrema", "greedy"):
        assert result[f"embedding-{by}"].scores == pytest.approx(np.ones(50))


class Even:
    """Vectors for words that end in an even digit; notes what it is asked for."""

    name, digest, dimension = "even", "e" * 12, 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        self.asked += words
        known = np.array([word[-1] in "02468" for word in words], np.bool_)
        found = [[float(word[1:]), 1.0] if ok else [0.0, 0.0] for word, ok in zip(words, known, strict=True)]
        return np.array(found), known


def words(start: int, stop: int) -> TextColumn:
    return TextColumn.from_strings([f"w{number}" for number in range(start, stop)])


def test_a_zero_vector_is_no_direction() -> None:
    class Zero(Even):
        def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
            return np.zeros((len(words), 2)), np.ones(len(words), np.bool_)

    vocabulary = Vocabulary(["a"])
    table = VectorTable(vocabulary, Zero())
    assert table.collect_arrays()[0].tolist() == [0]
    assert table.compute_lengths()[0].tolist() == [-1]


def test_in_vocabulary_are_listed_or_have_a_vector() -> None:
    vocabulary = Vocabulary()
    known = KnownWords(vocabulary, Vocabulary(["w1", "w3", ""]), VectorTable(vocabulary, Even()))
    ids = vocabulary.add(words(0, 6))
    assert known.find_known()[ids].tolist() == [True, True, True, True, True, False]
    assert vocabulary.words(known.replace_unknown(ids)) == ["w0", "w1", "w2", "w3", "w4", "<unk>"]


def test_threads_may_meet_new_words_together() -> None:
    vocabulary = Vocabulary()
    known = KnownWords(vocabulary, None, VectorTable(vocabulary, Even()))

    def work(start: int) -> list[bool]:
        ids = vocabulary.add(words(start, start + 300))
        return list(known.find_known()[ids].tolist())

    with ThreadPoolExecutor(4) as pool:
        for start, mask in zip(range(0, 3000, 150), pool.map(work, range(0, 3000, 150)), strict=True):
            assert mask == [(start + k) % 2 == 0 for k in range(300)]


def test_digests_tell_apart_what_is_known() -> None:
    vocabulary = Vocabulary()
    vectors = VectorTable(vocabulary, Even())
    digests = {
        KnownWords(vocabulary, listed, table).digest
        for listed in (None, Vocabulary(["a"]), Vocabulary(["b"]))
        for table in (None, vectors)
    }
    assert len(digests) == 6


texts = st.lists(st.sampled_from([*WORDS[4:], "cats", "日本", "\U0001f600", "e\u0301"]), max_size=8).map(" ".join)
Rows = list[tuple[str, list[str]]]


def tiny_shipped_encoder(folder: Path) -> SentenceVectors:
    return SentenceVectors(Encoder(find_encoder(write_encoder(folder / "encoder")), 32))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> SentenceVectors:
    return tiny_shipped_encoder(tmp_path_factory.mktemp("greedy"))


def batch_of(rows: Rows, encoder: SentenceVectors) -> Batch:
    columns: dict[Input, ColumnData] = {
        inputs.RESPONSE: TextColumn.from_strings([response for response, _ in rows]),
        inputs.REFERENCE: RaggedColumn.from_lists([references for _, references in rows]),
    }
    return Batch(len(rows), columns, Vocabulary(), np.arange(len(rows) + 1), {inputs.ENCODER: encoder})


def bert_score(response: str, reference: str, encoder: SentenceVectors) -> float:
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
def test_it_is_the_formula(rows: Rows, encoder: SentenceVectors) -> None:
    expected = [max(bert_score(response, text, encoder) for text in references) for response, references in rows]
    np.testing.assert_allclose(GreedyMatch().score(batch_of(rows, encoder)), expected, rtol=1e-9, atol=1e-12)


def test_it_travels_as_its_place(encoder: SentenceVectors) -> None:
    again = pickle.loads(pickle.dumps(encoder))
    assert again.digest == encoder.digest == f"{encoder.encoder.name}@{encoder.encoder.digest}"
    assert pickle.loads(pickle.dumps(SentenceVectors()))._given is None


def test_a_text_is_encoded_once_while_it_is_kept(
    tmp_path: Path, encoder: SentenceVectors, monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.setattr("dialeval.metrics.encoder.MOST_KEPT", 4 * encoder.encoder.dimension)
    for text in ("the cat sat", "hello", "the cat sat"):
        np.testing.assert_array_equal(fresh.encode_tokens([text])[0], encode([text])[0])
    assert met.count("the cat sat") == 2
