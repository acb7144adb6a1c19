"""Judge: what people would say of a response, on the scale 1 to 5, by a model that reads it together with its context.

    judge                the score: what raters would say of the response, see `dialogue_judge`
    judge/relevance      how sure the model is that the response answers this context and not another one
    judge/fluency        how sure it is that the words are in order: not shuffled, doubled or left out
    judge/novelty        how sure it is that the response is no echo of what was said before
    judge/continuity     a score of how easily the dialogue goes on, learned from annotated breakdowns

All but the first lie between 0 and 1. The last orders turns and systems, and is no probability: nearly all of its
values lie between 0.28 and 0.44, whatever share of people see a breakdown. A context is its last three turns. A
reference is used where there is one: the closest one counts. The judge that ships with the package needs no PyTorch
and no GPU; `--judge FOLDER` takes another one, which `dialeval judge train` makes.

What it is good for: ordering systems, and finding replies that do not follow. What it is not: a judge of facts, of
manners, or of fluent replies by large models among themselves. The model card next to the weights says how well it
agrees with people on thirteen sets of ratings, and how often it is fooled. These sets hold short chat replies. Where
more than a tenth of the responses of a run are others (more than 60 words, several paragraphs, a code block, or a list
of two items or more), a warning of the run says so, with the agreement that `tools/judge_limits.py` measured on such
texts. The rule was chosen on one set of answers by large models (llm_pairs, of which 81% are others; of the thirteen
sets at most 3%), and finds 36% of another one (pandalm_pairs).

Edge cases: a row without a context is not scored. An empty response is scored as any text. A score does not depend on
the rows beside it, to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.exact import Moments
from dialeval.core.fold import Bounds, Estimate, Metric, Partial
from dialeval.core.needs import Need
from dialeval.metrics.learned.dialogue_judge import Verdicts
from dialeval.metrics.learned.weights import HIGHEST, LOWEST

CONTINUITY = "continuity"
PARTS = ("relevance", "fluency", "novelty", CONTINUITY)
"""What the judge says of a response beside its score."""

REASONS = {
    "relevance": "does not follow from the context",
    "fluency": "words are out of order, missing or doubled",
    "novelty": "repeats the context",
}
"""By part: what is said of a response where the judge is more sure of the opposite."""
UNSURE = 0.5

LONG = 60
"""Words of a response above which it is unlike the replies that the judge was validated on."""
_LAYOUT = re.compile(r"\S\s*\n\s*\n\s*\S|```")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+\S", re.MULTILINE)
OUTSIDE = "outside"
MOST_OUTSIDE = 0.1
"""The fraction of responses outside above which a run warns. In the thirteen sets of the card it is below 0.03."""

AGREEMENT = (
    "On pairs of such answers by large models it preferred the one that people prefer in 56% (llm_pairs) and 62% "
    "(pandalm_pairs) of cases; the longer one is preferred in 66% and 67%"
)
"""As `tools/judge_limits.py` printed it."""

JudgementState = Mapping[str, Moments]
"""By result key."""


@dataclass(frozen=True)
class Judgement(Metric[JudgementState]):
    """A learned judgement of the response, read together with its context, from 1 to 5."""

    family = "judge"
    presets = {"judge": {}}
    needs = frozenset({Need.RESPONSE, Need.CONTEXT, Need.DIALOGUE_JUDGE})
    wants = frozenset({Need.REFERENCE})
    costly = True
    better = "higher"
    bounds = (LOWEST, HIGHEST)

    def bounds_of(self, key: str) -> Bounds:
        return (0.0, 1.0) if key.rpartition("/")[2] in PARTS else self.bounds

    @property
    def _keys(self) -> dict[str, str]:
        """By the part of a verdict: the key of its result."""
        return {"score": self.name, **{part: f"{self.name}/{part}" for part in PARTS}}

    def empty(self) -> JudgementState:
        return dict.fromkeys([*self._keys.values(), OUTSIDE], Moments())

    def partial(self, batch: Batch) -> Partial[JudgementState]:
        verdicts = batch.derived("verdicts", lambda: _verdicts(batch))
        columns = {key: _part(verdicts, part) for part, key in self._keys.items()}
        state = {key: Moments.of(values, batch.dialogues) for key, values in columns.items()}
        return Partial({**state, OUTSIDE: _count_outside(batch)}, columns)

    def merge(self, left: JudgementState, right: JudgementState) -> JudgementState:
        return {key: left[key] + right[key] for key in left}

    def finish(self, state: JudgementState) -> Mapping[str, Estimate]:
        return {key: Estimate.of_moments(state[key], self.bounds_of(key)) for key in self._keys.values()}

    def warnings(self, states: Sequence[JudgementState]) -> Iterator[str]:
        counted = sum((state[OUTSIDE] for state in states), Moments())
        if counted.scored and counted.mean > MOST_OUTSIDE:
            yield (
                f"{self.name}: {round(counted.mean * counted.scored):,} of {counted.scored:,} responses are unlike the "
                f"chat replies it was validated on (over {LONG} words, several paragraphs, code or lists). {AGREEMENT}"
            )


def is_outside(response: str) -> bool:
    """Return whether a response is unlike the short chat replies that the shipped judge was validated on.

    That is one of more than `LONG` words, of several paragraphs, with a code block, or with a list of several items.
    """
    if len(response.split()) > LONG or _LAYOUT.search(response):
        return True
    return len(_LIST_ITEM.findall(response)) > 1


def _count_outside(batch: Batch) -> Moments:
    """Count the responses outside; nothing is counted for a judge other than the shipped one."""
    if not batch.resource(Need.DIALOGUE_JUDGE).shipped:
        return Moments()
    return Moments.of(np.array([is_outside(text) for text in batch.texts(Need.RESPONSE)], np.float64))


def _part(verdicts: Verdicts, part: str) -> Floats:
    found: Floats = verdicts.breakdown[:, 0] if part == CONTINUITY else getattr(verdicts, part)
    return found


def reasons(parts: Mapping[str, float]) -> list[str]:
    """In words, why a response is not liked; `parts` are the values of its parts by their keys or names."""
    named = {key.rpartition("/")[2]: value for key, value in parts.items()}
    return [reason for part, reason in REASONS.items() if named.get(part, 1.0) < UNSURE]


def _verdicts(batch: Batch) -> Verdicts:
    responses = list(batch.texts(Need.RESPONSE))
    references = list(batch.lists(Need.REFERENCE)) if batch.has(Need.REFERENCE) else [()] * len(responses)
    judge = batch.resource(Need.DIALOGUE_JUDGE)
    contexts = list(batch.contexts().last(judge.weights.shape.turns))
    verdicts: Verdicts = judge.verdicts(contexts, responses, references)
    return verdicts
