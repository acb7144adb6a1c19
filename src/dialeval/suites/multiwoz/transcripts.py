"""Transcripts of task dialogues for a saved run: what was said, believed, offered and told, and the verdict by domain.

A run knows that a dialogue was lost, but the goals, states and venues that say why lie in the data. What a reader needs
of them is put into `Run.details["transcripts"]`, by system a list of dialogues, from the same steps that Inform and
Success are read from. Only some dialogues: of those that a system lost some of each cause come first, and all systems
have the same ones. `Run.details["failures"]` holds by system the names of all the dialogues that each cause lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dialeval.core.columns import TextColumn
from dialeval.suites.multiwoz.evaluation import Choices, explanations
from dialeval.suites.multiwoz.explain import SHOWN_VENUES, by_cause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dialeval.core.result import Result, Run
    from dialeval.suites.multiwoz.data import TaskData
    from dialeval.suites.multiwoz.explain import Explanation
    from dialeval.suites.multiwoz.turns import Step

TRANSCRIPTS, FAILURES = "transcripts", "failures"
MOST = 200
"""Dialogues of all systems together: about a megabyte."""


def with_transcripts(
    run: Run, predictions: Any, task: TaskData, choices: Choices | None = None, most: int = MOST
) -> Run:
    """The run with transcripts of the dialogues of `predictions`, those from which it was made."""
    by_system = {
        system: {each.dialogue: each for each in explained}
        for system, explained in explanations(predictions, task, choices).items()
    }
    lost = {system: by_cause(mine.values()) for system, mine in by_system.items()}
    chosen = _chosen(list(task.files.turns), lost, max(1, most // max(1, len(by_system))))
    numbers = {dialogue: number for number, dialogue in enumerate(task.files.turns)}
    users = task.files.users or {}
    entries = {
        system: [_entry(mine[name], run[system], numbers[name], users.get(name)) for name in chosen if name in mine]
        for system, mine in by_system.items()
        if system in run
    }
    failures = {system: lost[system] for system in entries}
    return replace(run, details={**run.details, TRANSCRIPTS: entries, FAILURES: failures})


def _chosen(order: Sequence[str], lost: Mapping[str, Mapping[str, Sequence[str]]], most: int) -> list[str]:
    """The dialogues that are shown, in the order of the data: the first one that each cause lost, the second, ..."""
    ranks: dict[str, int] = {}
    for causes in lost.values():
        for names in causes.values():
            for rank, name in enumerate(names):
                ranks[name] = min(rank, ranks.get(name, rank))
    chosen = set(sorted(order, key=lambda name: ranks.get(name, len(order)))[:most])
    return [name for name in order if name in chosen]


def _entry(explanation: Explanation, result: Result, number: int, users: Sequence[str] | None) -> dict[str, Any]:
    verdict = explanation.verdict
    return {
        "dialogue": explanation.dialogue,
        "inform": verdict.inform,
        "success": verdict.success,
        "domains": [
            {
                "domain": domain,
                "wishes": dict(wishes["informable"]),
                "asked": list(wishes["requestable"]),
                "matched": verdict.matched.get(domain, False),
                "told": sorted(verdict.told.get(domain, ())),
                "complete": verdict.complete.get(domain, False),
            }
            for domain, wishes in explanation.goal.items()
        ],
        "turns": [
            {
                "turn": turn.at,
                "user": None if users is None else users[turn.at],
                "response": _said(result, number, turn.at) or turn.response,
                "active": list(turn.domains),
                "estimated": turn.estimated,
                "state": {domain: dict(slots) for domain, slots in turn.state.items()},
                "true_state": turn.true_state,
                "steps": [_step(step, explanation) for step in explanation.done if step.turn is turn],
            }
            for turn in explanation.turns
        ],
        "causes": [
            {"lost": cause.measure, "domain": cause.domain, "cause": cause.cause, "detail": cause.detail}
            for cause in explanation.causes
        ],
    }


def _step(step: Step, explanation: Explanation) -> dict[str, Any]:
    entry: dict[str, Any] = {"domain": step.domain, "told": sorted(step.told), "early": sorted(step.early)}
    if step.offer is not None:
        venues = explanation.criteria.venues[step.domain]
        entry["offer"] = {"venues": step.offer.bit_count(), "names": venues.labels(step.offer, SHOWN_VENUES)}
    return entry


def _said(result: Result, number: int, turn: int) -> str | None:
    """The response as the system gave it, before it was normalized."""
    rows = result.rows
    said = None if rows is None else rows.texts.get("response")
    return said[int(rows.offsets[number]) + turn] if rows is not None and isinstance(said, TextColumn) else None
