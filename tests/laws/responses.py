"""The world of response metrics: responses, references, contexts; a training text, known words, a few vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.columns import ColumnData, FieldColumn, RaggedColumn, TextColumn
from dialeval.core.inputs import Column, Input
from dialeval.judges.adem import Judge
from dialeval.judges.judge import DialogueJudge
from dialeval.judges.llm.rubrics import Grades, Parts, Rubric
from dialeval.metrics.checks import load_checks
from dialeval.metrics.encoder import SentenceVectors
from dialeval.metrics.words import KnownWords, TrainText, VectorTable
from dialeval.text.vocabulary import Vocabulary
from judges.tiny_judges import tiny_dialogue_judge, tiny_judge
from laws.worlds import World
from metrics.test_embedding import tiny_shipped_encoder

WORDS = ["the", "cat", "sat", "on", "a", "mat", "<unk>", "日本", "Ünder", "the-very-long-word"]
LISTED = [*WORDS[:5], "dog"]
TRAIN = ["the cat sat on the mat", "a dog sat on a mat", "the-very-long-word the", ""]
VECTORS = {"the": (1.0, 0.5, -0.25), "cat": (-0.5, 2.0, 0.1), "mat": (0.0, 0.0, 0.0), "日本": (0.3, -0.3, 0.9)}

# Hypothesis draws a string of digits faster than a list of words.
texts = st.text("0123456789", max_size=7).map(lambda digits: " ".join(WORDS[int(digit)] for digit in digits))


@dataclass(frozen=True)
class Row:
    """One row with everything in it."""

    response: str
    references: tuple[str, ...] = ("the cat sat",)
    context: tuple[str, ...] = ("mat",)


class FewVectors:
    """Word vectors that know four words."""

    name = "few"
    dimension = 3
    digest = "0123456789ab"

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        known = np.array([word in VECTORS for word in words], np.bool_)
        return np.array([VECTORS.get(word, (0.0, 0.0, 0.0)) for word in words]).reshape(-1, 3), known


def roles(turns: int) -> list[str]:
    """Of an even number of turns who said each; of others nobody knows."""
    return ["user" if turn % 2 else "assistant" for turn in range(turns)] if turns % 2 == 0 else [""] * turns


EXPECTED: dict[str, Any] = {
    **{rule: ["the", "cat"] for rule in ("contains", "not_contains", "starts_with", "equals", "regex")},
    "max_words": 3,
}
"""What checks expect of every row."""


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    return {
        inputs.RESPONSE: TextColumn.from_strings([row.response for row in rows]),
        inputs.REFERENCE: RaggedColumn.from_lists([row.references for row in rows]),
        inputs.CONTEXT: RaggedColumn.from_lists([row.context for row in rows]),
        inputs.ROLES: RaggedColumn.from_lists([roles(len(row.context)) for row in rows]),
        **{
            Column.of_field(f"expected_{rule}"): FieldColumn.of([wanted] * len(rows))
            for rule, wanted in EXPECTED.items()
        },
    }


def resources(vocabulary: Vocabulary) -> dict[Input, Any]:
    vectors = VectorTable(vocabulary, FewVectors())
    known = KnownWords(vocabulary, Vocabulary(LISTED), vectors)
    train = TrainText(vocabulary, TextColumn.from_strings(TRAIN), known)
    judges = {inputs.JUDGE: judge(), inputs.DIALOGUE_JUDGE: dialogue_judge(), inputs.LLM: GradesByDigest()}
    return {
        inputs.EMBEDDINGS: vectors,
        inputs.VOCABULARY: known,
        inputs.TRAIN: train,
        inputs.ENCODER: encoder(),
        **load_checks([{"rule": "contains", "text": "cat"}, {"rule": "not-max-words", "words": 3}]),
        **judges,
    }


class GradesByDigest:
    """A language model that asks nobody: grades follow from the texts, and some rows have none."""

    digest = "by-digest"
    warnings = ()

    def judge(self, _model: str) -> GradesByDigest:
        return self

    def __enter__(self) -> GradesByDigest:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def grade(self, rubric: Rubric, rows: Sequence[Parts], mode: str, samples: int) -> list[Grades]:
        return [self._grade(rubric, parts[-1][1], crc32(repr((parts, mode, samples)).encode())) for parts in rows]

    def _grade(self, rubric: Rubric, response: str, number: int) -> Grades:
        if not response.strip():
            return Grades({}, "no answer")
        return Grades({each.name: float(each.values[number % len(each.values)]) for each in rubric.question}, None, 0.9)


@cache
def encoder() -> SentenceVectors:
    """An encoder of a few random weights."""
    return tiny_shipped_encoder(Path(mkdtemp(prefix="dialeval-laws-")))


@cache
def dialogue_judge() -> DialogueJudge:
    """One that reads context and response together, over an encoder of the same kind."""
    return tiny_dialogue_judge(Path(mkdtemp(prefix="dialeval-laws-")))


@cache
def judge() -> Judge:
    """A judge over an encoder of a few random weights, which lie in a folder as long as the tests run."""
    return tiny_judge(Path(mkdtemp(prefix="dialeval-laws-")))


WORLD = World(
    rows=st.builds(Row, texts, st.lists(texts, max_size=2).map(tuple), st.lists(texts, max_size=2).map(tuple)),
    columns=columns,
    resources=resources,
    lone={
        "empty": Row(""),
        "blank": Row(" \t "),
        "one word": Row("cat"),
        "two words": Row("the cat"),
        "2,000 words": Row("word " * 2000),
        "no reference": Row("the cat", references=()),
        "empty reference": Row("the cat", references=("",)),
        "no context": Row("the cat", context=()),
    },
    rich=[
        Row("the cat sat on the mat", ("the cat sat on a mat",), ("the cat",)),
        Row("cat sat", ("the cat sat",), ("the",)),
    ],
)
