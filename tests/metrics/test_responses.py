"""Entropy, divergence, embedding metrics and coherence against their naive twins, on any vocabulary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval
from dialeval.core.arrays import Floats
from dialeval.core.result import Result
from metrics import twins

WORDS = ["a", "b", "c", "d", "e", "<unk>", "f"]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
worlds = st.integers(1, 6).flatmap(
    lambda rows: st.fixed_dictionaries(
        {
            "responses": st.lists(texts, min_size=rows, max_size=rows),
            "references": st.lists(texts, min_size=rows, max_size=rows),
            "contexts": st.lists(texts, min_size=rows, max_size=rows),
            "train": st.lists(texts, min_size=1, max_size=5),
            "vocabulary": st.one_of(st.none(), st.lists(st.sampled_from(WORDS), min_size=1)),
            "vectors": st.dictionaries(
                st.sampled_from(WORDS), st.tuples(*[st.sampled_from([-2.0, -0.5, 0.0, 0.5, 2.0])] * 3), min_size=1
            ),
        }
    )
)


class Vectors:
    """Word vectors out of a dict."""

    name, digest, dimension = "dict", "0" * 12, 3

    def __init__(self, table: Mapping[str, tuple[float, ...]]) -> None:
        self.table = table

    def vectors_for(self, words: list[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        found = np.array([self.table.get(word, (0.0,) * 3) for word in words]).reshape(-1, 3)
        return found, np.array([word in self.table for word in words], np.bool_)


def evaluated(world: dict[str, Any], **more: Any) -> tuple[Result, set[str], dict[str, Floats]]:
    known = set(world["vocabulary"] or " ".join(world["train"]).split()) | set(world["vectors"])
    run = dialeval.evaluate(
        world["responses"],
        world["references"],
        world["contexts"],
        train=world["train"],
        vocabulary=world["vocabulary"],
        embeddings=Vectors(world["vectors"]),
        **more,
    )
    return run["system"], known, {word: np.array(vector) for word, vector in world["vectors"].items()}


def close(result: Result, key: str, expected: list[float]) -> None:
    items = result[key].items
    assert items is not None
    np.testing.assert_allclose(items, np.array(expected), rtol=1e-9, atol=1e-12, err_msg=key)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


@given(worlds)
def test_entropy(world: dict[str, Any]) -> None:
    result, known, _ = evaluated(world, metrics="train-entropy")
    for n, name in ((1, "unigram"), (2, "bigram")):
        bits = [twins.entropies(response, world["train"], n, known) for response in world["responses"]]
        close(result, f"per-{name}-entropy", [mean(row) for row in bits])
        close(result, f"utterance-{name}-entropy", [sum(row) if row else math.nan for row in bits])


@given(worlds)
def test_entropy_of_words_as_themselves(world: dict[str, Any]) -> None:
    result, _, _ = evaluated(world, metrics=["train-entropy(oov=self)"])
    bits = [twins.entropies(response, world["train"], 1, None) for response in world["responses"]]
    close(result, "train-entropy(oov=self)", [mean(row) for row in bits])


@given(worlds)
def test_divergence(world: dict[str, Any]) -> None:
    result, known, _ = evaluated(world, metrics="kl-div", batch_rows=2)
    for n, key in ((1, "unigram-kl-div"), (2, "bigram-kl-div")):
        bits = [
            twins.divergences(reference, world["responses"], world["references"], n, known)
            for reference in world["references"]
        ]
        close(result, key, [mean(row) for row in bits])


@given(worlds)
def test_divergence_without_a_vocabulary(world: dict[str, Any]) -> None:
    result = dialeval.evaluate(world["responses"], world["references"], metrics="bigram-kl-div")["system"]
    bits = [twins.divergences(text, world["responses"], world["references"], 2, None) for text in world["references"]]
    close(result, "bigram-kl-div", [mean(row) for row in bits])


@settings(max_examples=200)
@given(worlds)
def test_embeddings_and_coherence(world: dict[str, Any]) -> None:
    result, known, vectors = evaluated(world, metrics="embedding,coherence")

    def cosines(left: list[Floats | None], right: list[Floats | None]) -> list[float]:
        pairs = zip(left, right, strict=True)
        return [math.nan if a is None or b is None else twins.cosine(a, b) for a, b in pairs]

    averages, ends = (
        {
            side: [made(text, known, vectors, *more) for text in world[side]]
            for side in ("responses", "references", "contexts")
        }
        for made, more in ((twins.average, [world["train"]]), (twins.extrema, []))
    )
    close(result, "embedding-average", cosines(averages["responses"], averages["references"]))
    close(result, "embedding-extrema", cosines(ends["responses"], ends["references"]))
    close(result, "coherence", cosines(averages["contexts"], averages["responses"]))
    pairs = zip(world["responses"], world["references"], strict=True)
    close(result, "embedding-greedy", [twins.greedy(a, b, known, vectors) for a, b in pairs])


VECTORS = Vectors({"a": (1.0, 0.0, 0.0), "b": (0.6, 0.8, 0.0), "c": (-1.0, 0.0, 0.0)})


@pytest.mark.parametrize("by", ["average", "extrema", "greedy"])
def test_the_best_of_several_references_counts(by: str) -> None:
    several = dialeval.evaluate(["a"], [["c", "b", "", "zz"]], train=["x"], embeddings=VECTORS, metrics="embedding")
    single = dialeval.evaluate(["a"], ["b"], train=["x"], embeddings=VECTORS, metrics="embedding")
    key = f"embedding-{by}"
    assert several["system"][key].mean == pytest.approx(single["system"][key].mean)
    none = dialeval.evaluate(["a"], [[]], train=["x"], embeddings=VECTORS, metrics="embedding")
    assert none["system"][key].scored == 0


def test_coherence_takes_the_last_turn_or_all() -> None:
    given_: dict[str, Any] = {"contexts": [["c", "a a"]], "train": ["x"], "embeddings": VECTORS}
    last = dialeval.evaluate(["a"], metrics="coherence", **given_)["system"]["coherence"].mean
    every = dialeval.evaluate(["a"], metrics=["coherence(turns=all)"], **given_)["system"]["coherence(turns=all)"].mean
    assert last == pytest.approx(1.0)
    assert every == pytest.approx(1.0)  # a + a + c points the same way as a
    opposed = dialeval.evaluate(["a"], contexts=[["a", "c"]], metrics="coherence", train=["x"], embeddings=VECTORS)
    assert opposed["system"]["coherence"].mean == pytest.approx(-1.0)


def test_vectors_of_words_that_come_late_are_found() -> None:
    responses = [f"w{number}" for number in range(50)]
    table = {word: (1.0, float(number), 0.0) for number, word in enumerate(responses)}
    result = dialeval.evaluate(
        responses, responses, train=["w3"], embeddings=Vectors(table), metrics="embedding", batch_rows=3, threads=3
    )["system"]
    for by in ("average", "extrema", "greedy"):
        assert result[f"embedding-{by}"].items == pytest.approx(np.ones(50))
