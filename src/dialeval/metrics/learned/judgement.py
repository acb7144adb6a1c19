"""Judge: what people would say of a response, on the scale 1 to 5, by a model that reads it together with its context.

    judge                the score: what raters would say of the response, see `dialogue_judge`
    judge/relevance      how sure the model is that the response answers this context and not another one
    judge/fluency        how sure it is that the words are in order: not shuffled, doubled or left out
    judge/novelty        how sure it is that the response is no echo of what was said before
    judge/no-breakdown   the share of people who would see no breakdown of the dialogue, not even a possible one

All but the first lie between 0 and 1. The last is on the scale of the breakdown challenge, whose systems broke down
often: order turns and systems by it, and do not take it for the share of your users. A context is its last three turns.
A reference is used where there is one: the closest one counts. The judge that ships with the package needs no PyTorch
and no GPU; `--judge FOLDER` takes another one, which `dialeval judge train` makes.

What it is good for: ordering systems, and finding replies that do not follow. What it is not: a judge of facts, of
manners, or of fluent replies by large models among themselves. The model card beside the weights says how well it
agrees with people on thirteen sets of ratings, and how often it is fooled.

Edge cases: a row without a context is not scored. An empty response is scored as any text. A score does not depend on
the rows beside it, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.exact import Moments
from dialeval.core.fold import Bounds, Estimate, Metric, Partial
from dialeval.core.needs import Need
from dialeval.metrics.learned.dialogue_judge import Verdicts
from dialeval.metrics.learned.weights import HIGHEST, LOWEST

NO_BREAKDOWN = "no-breakdown"
PARTS = ("relevance", "fluency", "novelty", NO_BREAKDOWN)
"""What the judge says of a response beside its score."""

REASONS = {
    "relevance": "does not follow from the context",
    "fluency": "words are out of order, missing or doubled",
    "novelty": "repeats the context",
}
"""By part: what is said of a response where the judge is more sure of the opposite."""
UNSURE = 0.5

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
        return dict.fromkeys(self._keys.values(), Moments())

    def partial(self, batch: Batch) -> Partial[JudgementState]:
        verdicts = batch.derived("verdicts", lambda: _verdicts(batch))
        columns = {key: _part(verdicts, part) for part, key in self._keys.items()}
        dialogues = batch.dialogues
        return Partial({key: Moments.of(values, dialogues) for key, values in columns.items()}, columns)

    def merge(self, left: JudgementState, right: JudgementState) -> JudgementState:
        return {key: left[key] + right[key] for key in left}

    def finish(self, state: JudgementState) -> Mapping[str, Estimate]:
        return {key: Estimate.of_moments(moments, self.bounds_of(key)) for key, moments in state.items()}


def _part(verdicts: Verdicts, part: str) -> Floats:
    found: Floats = verdicts.breakdown[:, 0] if part == NO_BREAKDOWN else getattr(verdicts, part)
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
