"""Splitting: which tokeniser the metrics of a run split by, and what is told about it.

`auto` is decided before any metric runs, by a pass of its own over all texts: the letters of responses and references
of all systems together (anchors aside) are counted by script, and every metric that asked for `auto` gets the one
tokeniser that suits them (`text.scripts`). So it does not depend on chunks, batches or workers, all systems are scored
alike, and signatures name the tokeniser that was taken.

Beside the metrics a fold counts texts that a tokeniser left whole because their script has no blanks; a line tells how
many there are, and which tokeniser to choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dialeval.core.fold import Metric
from dialeval.core.needs import Need
from dialeval.data.shards.sources import Source
from dialeval.engine.job import Job, System, SystemState
from dialeval.engine.plan import Plan, Planner
from dialeval.text.scripts import BY_BLANKS, ScriptCounts, UnsplitTexts, added, chosen, suggested
from dialeval.text.tokenise import AUTO, Tokeniser

_SCRIPTS = "scripts"
_UNSPLIT = "unsplit "
_SPLIT = (Need.RESPONSE, Need.HYPOTHESES)
"""Columns whose texts are looked at: those that are measured."""
_TEXTS = (*_SPLIT, Need.REFERENCE, Need.REFERENCE_GROUPS)


def asks_for_choice(plans: Sequence[Plan]) -> bool:
    """Whether a metric leaves the choice of its tokeniser to the run."""
    return any(_tokeniser(metric) == AUTO for plan in plans for metric in plan.folded)


def looking(job: Job) -> Job:
    """The job that counts scripts and does nothing else."""
    return replace(job, plans=tuple(Plan({}, details={_SCRIPTS: ScriptCounts(_TEXTS)}) for _ in job.plans))


def choice(states: Mapping[System, SystemState], sources: Sequence[Source]) -> Tokeniser:
    """The tokeniser for the texts of all systems, from what `looking` found."""
    return chosen(added([state.states[0] for (number, _), state in states.items() if sources[number].role == "system"]))


def settled(planner: Planner, tokeniser: Tokeniser) -> Planner:
    """The same plans with a tokeniser for every metric that left the choice to the run."""

    def plan(number: int, available: frozenset[Need]) -> Plan:
        given = planner(number, available)
        details = {
            name: replace(fold, metric=_settled(fold.metric, tokeniser)) if hasattr(fold, "metric") else fold  # type: ignore[type-var]
            for name, fold in given.details.items()
        }
        metrics = {name: _settled(metric, tokeniser) for name, metric in given.metrics.items()}
        return replace(given, metrics=metrics, details=details)

    return plan


def _settled(metric: Metric[Any], tokeniser: Tokeniser) -> Metric[Any]:
    return replace(metric, tokeniser=tokeniser) if _tokeniser(metric) == AUTO else metric  # type: ignore[call-arg]


def watched(job: Job) -> Job:
    """The job with folds that count the texts which a tokeniser cannot split, behind all others."""
    return replace(job, plans=tuple(replace(plan, details={**plan.details, **_watchers(plan)}) for plan in job.plans))


def _watchers(plan: Plan) -> dict[str, UnsplitTexts]:
    asked = dict.fromkeys((metric.subject, _tokeniser(metric)) for metric in plan.folded)
    return {
        f"{_UNSPLIT}{tokeniser}": UnsplitTexts(need, tokeniser)
        for need, tokeniser in asked
        if need in _SPLIT and tokeniser in BY_BLANKS
    }


def unsplit_texts(job: Job, states: Mapping[System, SystemState], sources: Sequence[Source]) -> Iterator[str]:
    """A line for each tokeniser that could not split some texts of the systems."""
    found: dict[Tokeniser, list[Any]] = {}
    for (number, _), state in states.items():
        folds = job.folds("metrics", number)
        for fold, counts in zip(folds, state.states, strict=True):
            if isinstance(fold, UnsplitTexts) and sources[number].role == "system":
                found.setdefault(fold.tokeniser, []).append(counts)
    for tokeniser, several in found.items():
        texts, unsplit, *letters = map(sum, zip(*several, strict=True))
        if unsplit:
            name = suggested(texts, unsplit, letters)
            yield (
                f"{tokeniser} cannot split {unsplit:,} of {texts:,} responses, whose script puts no blanks between "
                f"words: each sentence counts as one word; choose --tokeniser {name}, "
                f"tokeniser={name!r} in Python"
            )


def _tokeniser(metric: Metric[Any]) -> Tokeniser | None:
    found: Tokeniser | None = getattr(metric, "tokeniser", None)
    return found
