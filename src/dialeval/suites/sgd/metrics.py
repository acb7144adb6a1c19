"""Schema-guided state tracking: intents, requested slots, values of slots and their spans, frame by frame.

A frame is a service in a user turn. Of a frame with its true one:

    active-intent-accuracy   1 if the active intents are equal (NONE is an intent), else 0
    requested-slots-f1       2 P R / (P + R), with P the fraction of predicted requests that are true, and R the
                             fraction of true requests that are predicted; P is 1 if nothing is predicted, R if nothing
    is true slot-tagging-f1          the same of the spans of non-categorical slots, each a slot with its words in the
    turn average-goal-accuracy    mean score of the slots that have a true value
    joint-goal-accuracy      product of the scores of all slots of the service

The score of a slot that only one of both has is 0, of one that none has 1. The predicted value is the first that is
given. Of a categorical slot the score is 1 if it equals the first true value, else 0. Of another it is the best token
sort ratio with a true value, from 0 to 1 (`text/similarity.py`; `match=exact`: 1 if it equals one, else 0). The `cat`
and `noncat` measures are over slots of one of both kinds. The value of a system is the mean over frames.

Paper: Rastogi et al. 2020, "Towards Scalable Multi-Domain Conversational Agents: The Schema-Guided Dialogue Dataset",
AAAI.

The same as evaluate.py of schema_guided_dst, which takes its ratio from fuzzywuzzy: `match=blocks` is fuzzywuzzy alone,
as that program requires it, and `match=edits` fuzzywuzzy with python-Levenshtein.

Edge cases: a frame without a true value has no average goal accuracy, and a service without slots of a kind no joint
one: NaN. A frame in which nothing is requested and nothing is predicted has F1 1, as in the program, although its
description leaves such frames out. Predicted slots that the schema does not have change nothing. Frames that the system
does not give are not scored, unless `missing=failed`: then they are 0. Slot tagging is there if a system gives spans in
some frame; frames without any are as frames that it does not give.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import nan, prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.fold import RowMetric
from dialeval.metrics.counting import Missing
from dialeval.suites.sgd import FRAMES, SCHEMA, SPANS, TRUE_FRAMES
from dialeval.text.similarity import token_sort_ratio

if TYPE_CHECKING:
    from dialeval.suites.sgd.data import Schema

Match = Literal["blocks", "edits", "exact"]
Of = Literal["f1", "precision", "recall"]
Slots = Mapping[str, Sequence[str]]
Pair = tuple[Any, Mapping[str, Any]]
"""What a system gives, and the true frame."""
WRONG = 0.0


@dataclass(frozen=True)
class FrameMetric(RowMetric):
    """A mean over frames; a subclass says what the value of a frame that the system gives is."""

    subject = FRAMES
    needs = frozenset({FRAMES, TRUE_FRAMES})
    better = "higher"
    bounds = (0.0, 1.0)

    missing: Missing = "ignored"

    @abstractmethod
    def score_frames(self, batch: Batch, pairs: Sequence[Pair]) -> list[float]:
        """Return the value of each frame, given with the true one."""

    def score(self, batch: Batch) -> Floats:
        pairs = list(zip(batch.objects(self.subject), batch.objects(TRUE_FRAMES), strict=True))
        is_given = np.array([frame is not None for frame, _ in pairs], np.bool_)
        scores = np.full(len(pairs), nan if self.missing == "ignored" else WRONG)
        scores[is_given] = self.score_frames(batch, [pair for pair in pairs if pair[0] is not None])
        return scores


@dataclass(frozen=True)
class IntentAccuracy(FrameMetric):
    """Whether the active intent is right."""

    family = "intent-accuracy"
    presets = {"active-intent-accuracy": {}}

    def score_frames(self, batch: Batch, pairs: Sequence[Pair]) -> list[float]:
        return [float(predicted["active_intent"] == true["active_intent"]) for predicted, true in pairs]


@dataclass(frozen=True)
class RequestedSlots(FrameMetric):
    """How well requested slots are found."""

    family = "requested-slots"
    presets = {f"requested-slots-{of}": {"of": of} for of in get_args(Of)}

    of: Of = "f1"

    def score_frames(self, batch: Batch, pairs: Sequence[Pair]) -> list[float]:
        both = ([frame["requested_slots"] for frame in pair] for pair in pairs)
        return [_score_sets(predicted, true, self.of) for predicted, true in both]


@dataclass(frozen=True)
class SlotTagging(FrameMetric):
    """How well the words of a turn that are values of slots are found."""

    family = "slot-tagging"
    presets = {f"slot-tagging-{of}": {"of": of} for of in get_args(Of)}
    subject = SPANS
    needs = frozenset({SPANS, TRUE_FRAMES, SCHEMA})

    of: Of = "f1"

    def score_frames(self, batch: Batch, pairs: Sequence[Pair]) -> list[float]:
        schema: Schema = batch.resource(SCHEMA)

        def free(spans: Iterable[Sequence[str]], service: str) -> list[tuple[str, ...]]:
            # True for slots that the schema does not have: they are left out with the categorical ones.
            return [tuple(span) for span in spans if not schema.services[service].get(span[0], True)]

        sides = ((free(predicted, true["service"]), free(true["spans"], true["service"])) for predicted, true in pairs)
        return [_score_sets(*both, self.of) for both in sides]


@dataclass(frozen=True)
class GoalAccuracy(FrameMetric):
    """How well the values of slots are tracked."""

    family = "goal-accuracy"
    presets = {
        "joint-goal-accuracy": {"of": "joint"},
        "average-goal-accuracy": {"of": "average"},
        "joint-cat-accuracy": {"of": "joint", "slots": "cat"},
        "joint-noncat-accuracy": {"of": "joint", "slots": "noncat"},
        "average-cat-accuracy": {"of": "average", "slots": "cat"},
        "average-noncat-accuracy": {"of": "average", "slots": "noncat"},
    }
    needs = frozenset({FRAMES, TRUE_FRAMES, SCHEMA})

    of: Literal["joint", "average"] = "joint"
    slots: Literal["all", "cat", "noncat"] = "all"
    match: Match = "blocks"

    def score_frames(self, batch: Batch, pairs: Sequence[Pair]) -> list[float]:
        schema: Schema = batch.resource(SCHEMA)

        def make() -> list[list[_ScoredSlot]]:
            match = self.match
            likeness = cache(lambda a, b: float(a == b) if match == "exact" else token_sort_ratio(a, b, match) / 100)
            services = schema.services
            return [
                list(_score_slots(predicted["slot_values"], true["slot_values"], services[true["service"]], likeness))
                for predicted, true in pairs
            ]

        return [self._score_frame(slots) for slots in batch.derive(("slots of frames", self.match), make)]

    def _score_frame(self, slots: Sequence[_ScoredSlot]) -> float:
        counted = [slot for slot in slots if self.slots == "all" or slot.categorical == (self.slots == "cat")]
        if self.of == "average":
            scores = [slot.score for slot in counted if slot.active]
            return sum(scores) / len(scores) if scores else nan
        return prod(slot.score for slot in counted) if counted else nan


class _ScoredSlot(NamedTuple):
    """A slot of a service in a frame."""

    score: float
    active: bool
    """Whether it has a true value."""
    categorical: bool


def _score_sets(predicted: Sequence[Hashable], true: Sequence[Hashable], of: Of) -> float:
    """Return precision, recall or F1 of what is given; what occurs twice counts twice."""
    right = (Counter(predicted) & Counter(true)).total()
    precision = right / len(predicted) if predicted else 1.0
    recall = right / len(true) if true else 1.0
    if of == "f1":
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return precision if of == "precision" else recall


Likeness = Callable[[str, str], float]
"""How like its true value (first) a value is, from 0 to 1."""


def _score_slots(
    predicted: Slots, true: Slots, categories: Mapping[str, bool], likeness: Likeness
) -> Iterator[_ScoredSlot]:
    """Yield the slots of a service, in the order of the schema."""
    for name, categorical in categories.items():
        guess, truth = predicted.get(name), true.get(name)
        if guess is None or truth is None:
            score = float(guess is truth)
        elif categorical:
            score = float(guess[0] == truth[0])
        else:
            score = max(likeness(value, guess[0]) for value in truth)
        yield _ScoredSlot(score, truth is not None, categorical)
