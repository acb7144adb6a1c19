"""Metrics of whole conversations: one value per dialogue.

Two kinds are here. `NAME@dialogue-HOW` condenses the values that a metric gives the replies of a dialogue
(`judge@dialogue-min`). The others look at the conversation itself and need no model:

    dialogue-turns         replies of the system
    talk-ratio             characters of the system's turns / characters of all turns, without whitespace
    self-repetition        trigrams of the system's later replies that it has used before / all trigrams in them
    repeated-questions     questions of the system that it has asked before, word for word / its questions
    user-rephrasing        user turns that repeat the user turn before in other words / user turns but the first
    unanswered-questions   user questions that got no statement in return / user questions

A conversation is the context and the response of the last row of a dialogue. Where a dialogue has more rows than that
context has replies, because contexts were cut, it is the last context turn and the response of each row. Speakers are
those of the rows; where rows do not name them, turns alternate backwards from the response. Words are runs of letters
and digits in lower case, and single characters of Chinese and Japanese. A rephrasing is a user turn whose set of words
has a Jaccard similarity of at least 0.5 with that of the user turn before (Jaccard 1901, Bull. Soc. Vaud. Sci. Nat.).
A question is a sentence that ends in a question mark. A reply without a sentence that ends otherwise is no statement.

Edge cases: a dialogue in which the denominator is 0 (one reply, no question) has no value. A reply of fewer than three
words counts as one trigram.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, nan
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level, Metric, RowMetric
from dialeval.core.signature import Signature

How = Literal["mean", "min", "max", "last"]
AT = "@dialogue-"
"""Between the name of a metric and how its values are condensed."""
_SYSTEM, _USER = "assistant", "user"
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_SENTENCE = re.compile(r"[^.!?。！？]+[.!?。！？]*|[.!?。！？]+")
_QUESTION = re.compile("[?？]")
_SIMILAR = 0.5


@dataclass(frozen=True)
class OverDialogue(RowMetric):
    """The values of a metric over the replies of a dialogue, condensed into one.

    `mean`, `min`, `max`; `last`, the value of the last reply. Replies without a value are left out.
    """

    level = Level.DIALOGUE
    family = "over-dialogue"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {}
    subject: ClassVar[Any] = property(attrgetter("inner.subject"))
    needs: ClassVar[Any] = property(attrgetter("inner.needs"))
    wants: ClassVar[Any] = property(attrgetter("inner.wants"))
    one_of: ClassVar[Any] = property(attrgetter("inner.one_of"))
    facts: ClassVar[Any] = property(attrgetter("inner.facts"))
    better: ClassVar[Any] = property(attrgetter("inner.better"))
    bounds: ClassVar[Any] = property(attrgetter("inner.bounds"))
    survey: ClassVar[Any] = property(attrgetter("inner.survey"))

    inner: Metric
    how: How = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner.level is not Level.TURN:
            raise SettingError(f"{self.inner} has one value per {self.inner.level} already; leave {AT}{self.how} out")

    def __str__(self) -> str:
        return f"{self.inner}{AT}{self.how}"

    def find_setting(self, name: str) -> Any:
        setting = super().find_setting(name)
        return self.inner.find_setting(name) if setting is None else setting

    def change_setting(self, name: str, value: object) -> OverDialogue:
        if name in self.setting_names():
            return replace(self, **{name: value})  # type: ignore[arg-type]
        return replace(self, inner=self.inner.change_setting(name, value))

    def settle(self, surveyed: object) -> Mapping[str, Metric]:
        settled = self.inner.settle(surveyed)
        return {f"{name}{str(self)[len(str(self.inner)) :]}": replace(self, inner=one) for name, one in settled.items()}

    def signature(self) -> Signature:
        settings = dict(self.inner.signature().fields)
        return Signature.of(self.name, **{**settings, "over_dialogue": self.how})

    def score(self, batch: Batch) -> Floats:
        items = self.inner.partial(batch).scores
        if self.inner.name not in items:
            raise SettingError(f"{self.inner} has no value per response, so that {self} has none per dialogue")
        values = items[self.inner.name]
        return np.array([self._condense(values[start:stop]) for start, stop in pairwise(batch.dialogues.tolist())])

    def _condense(self, values: Floats) -> float:
        values = values[~np.isnan(values)]
        if not len(values):
            return nan
        if self.how == "last":
            return float(values[-1])
        return float(values.mean() if self.how == "mean" else values.min() if self.how == "min" else values.max())


def parse_aggregate(text: str, parse: Any) -> OverDialogue | None:
    """Return the aggregate that a name such as `judge@dialogue-min` is; None for a name of another form."""
    name, at, how = text.rpartition(AT)
    if not at:
        return None
    if how not in get_args(How):
        remedy = "; dialeval survival has the turns until the first failure" if how.startswith("first-failure") else ""
        raise SettingError(f"a metric is condensed by {', '.join(get_args(How))}, not by {how!r}{remedy}")
    return OverDialogue(parse(name), how)  # type: ignore[arg-type]


# Conversations.


class SpokenTurn(NamedTuple):
    """A turn of a conversation."""

    speaker: str
    """`user`, `assistant`, or another role."""
    text: str


def list_conversations(batch: Batch) -> list[list[SpokenTurn]]:
    """Return the turns of each dialogue of a batch."""
    return batch.derive("conversations", lambda: list(_iterate_conversations(batch)))


def _iterate_conversations(batch: Batch) -> Iterator[list[SpokenTurn]]:
    responses, contexts = batch.texts(inputs.RESPONSE), batch.contexts()
    roles = batch.column(inputs.ROLES) if batch.has(inputs.ROLES) else None

    def list_turns(row: int) -> list[SpokenTurn]:
        texts = list(contexts[row])
        named = [""] * len(texts) if roles is None else list(roles[row])
        if not any(named):
            named = [_USER if back % 2 else _SYSTEM for back in range(len(texts), 0, -1)]
        return [*map(SpokenTurn, named, texts), SpokenTurn(_SYSTEM, responses[row])]

    for start, stop in pairwise(batch.dialogues.tolist()):
        turns = list_turns(stop - 1)
        if stop - start > sum(turn.speaker == _SYSTEM for turn in turns):
            turns = [turn for row in range(start, stop) for turn in list_turns(row)[-2:]]
        yield turns


@dataclass(frozen=True)
class ConversationMetric(RowMetric):
    """A value that the turns of a conversation give."""

    level = Level.DIALOGUE
    subject = inputs.CONTEXT
    needs = frozenset({inputs.RESPONSE, inputs.CONTEXT})
    wants = frozenset({inputs.ROLES})
    bounds = (0.0, 1.0)
    descriptive = True

    @abstractmethod
    def value(self, turns: Sequence[SpokenTurn]) -> float:
        """Return the value of a conversation; NaN where it has none."""

    def score(self, batch: Batch) -> Floats:
        return np.array([self.value(turns) for turns in list_conversations(batch)], np.float64)


@dataclass(frozen=True)
class DialogueTurns(ConversationMetric):
    """Number of replies of the system in a conversation."""

    family = "dialogue-turns"
    bounds = (0.0, inf)

    def value(self, turns: Sequence[SpokenTurn]) -> float:
        return float(len(_list_texts(turns, _SYSTEM)))


@dataclass(frozen=True)
class TalkRatio(ConversationMetric):
    """Fraction of a conversation's characters that the system said."""

    family = "talk-ratio"

    def value(self, turns: Sequence[SpokenTurn]) -> float:
        said = [(turn.speaker, len("".join(turn.text.split()))) for turn in turns if turn.speaker in (_SYSTEM, _USER)]
        return _ratio(sum(size for speaker, size in said if speaker == _SYSTEM), sum(size for _, size in said))


@dataclass(frozen=True)
class SelfRepetition(ConversationMetric):
    """Fraction of the trigrams in the system's later replies that it has used before in the conversation."""

    family = "self-repetition"
    better = "lower"

    def value(self, turns: Sequence[SpokenTurn]) -> float:
        asked_before: set[tuple[str, ...]] = set()
        repeated, total = 0, 0
        for number, text in enumerate(_list_texts(turns, _SYSTEM)):
            words = _split_words(text)
            grams = [tuple(words[at : at + 3]) for at in range(max(len(words) - 2, 1))] if words else []
            if number:
                repeated, total = repeated + sum(gram in asked_before for gram in grams), total + len(grams)
            asked_before.update(grams)
        return _ratio(repeated, total)


@dataclass(frozen=True)
class RepeatedQuestions(ConversationMetric):
    """Fraction of the system's questions that it has asked before in the conversation."""

    family = "repeated-questions"
    better = "lower"

    def value(self, turns: Sequence[SpokenTurn]) -> float:
        texts = _list_texts(turns, _SYSTEM)
        asked = [tuple(_split_words(each)) for text in texts for each in _split_sentences(text, questions=True)]
        return _ratio(len(asked) - len(set(asked)), len(asked))


@dataclass(frozen=True)
class UserRephrasing(ConversationMetric):
    """Fraction of user turns that repeat or rephrase the previous user turn."""

    family = "user-rephrasing"
    better = "lower"

    def value(self, turns: Sequence[SpokenTurn]) -> float:
        said = [set(_split_words(text)) for text in _list_texts(turns, _USER)]
        similar = [len(one & two) >= _SIMILAR * len(one | two) and bool(one) for one, two in pairwise(said)]
        return _ratio(sum(similar), len(similar))


@dataclass(frozen=True)
class UnansweredQuestions(ConversationMetric):
    """Fraction of user questions to which the system replied with nothing, or with questions alone."""

    family = "unanswered-questions"
    better = "lower"

    def value(self, turns: Sequence[SpokenTurn]) -> float:
        said = [turn for turn in turns if turn.speaker in (_SYSTEM, _USER)]
        replies = [
            two.text
            for one, two in pairwise(said)
            if one.speaker == _USER and two.speaker == _SYSTEM and _split_sentences(one.text, questions=True)
        ]
        return _ratio(sum(not _split_sentences(text, questions=False) for text in replies), len(replies))


def _list_texts(turns: Sequence[SpokenTurn], speaker: str) -> list[str]:
    return [turn.text for turn in turns if turn.speaker == speaker]


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _split_sentences(text: str, *, questions: bool) -> list[str]:
    """Return the sentences of a text that are questions, or those that are none; sentences without a word are none."""
    sentences = (each for each in _SENTENCE.findall(text) if _WORD.search(each.lower()))
    return [each for each in sentences if bool(_QUESTION.search(each)) is questions]


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else nan
