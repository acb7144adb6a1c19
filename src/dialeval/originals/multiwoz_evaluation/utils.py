"""The names of the module `multiwoz_evaluation.utils`. Predictions are changed in place; `data` as for `Evaluator`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.suites.multiwoz.data import TaskTurns, load_task
from dialeval.suites.multiwoz.turns import estimate_domains

__all__ = [
    "get_domain_estimates_from_state",
    "has_domain_predictions",
    "has_state_predictions",
    "load_booked_domains",
    "load_goals",
    "load_gold_states",
    "load_references",
]


def has_domain_predictions(data: Mapping[str, TaskTurns]) -> bool:
    """Return whether every turn has active domains."""
    return all("active_domains" in turn for turns in data.values() for turn in turns)


def has_state_predictions(data: Mapping[str, TaskTurns]) -> bool:
    """Return whether every turn has a state."""
    return all("state" in turn for turns in data.values() for turn in turns)


def get_domain_estimates_from_state(data: Mapping[str, TaskTurns]) -> None:
    """Estimate the active domains of every turn from its normalized states."""
    for turns in data.values():
        for turn, domains in zip(turns, estimate_domains([turn["state"] for turn in turns]), strict=True):
            turn["active_domains"] = domains


def load_goals(data: str | None = None) -> Mapping[str, Any]:
    """Return what the user of each dialogue wants."""
    return load_task(data).files.goals.goals


def load_booked_domains(data: str | None = None) -> Mapping[str, Any] | None:
    """Return the domains that are booked by each turn."""
    return load_task(data).files.goals.booked


def load_gold_states(data: str | None = None) -> Mapping[str, Any]:
    """Return the true state of each turn."""
    states = load_task(data).files.states
    return {} if states is None else states.states


def load_references(data: str | None = None) -> Mapping[str, Any]:
    """Return the reference sets by name."""
    references = load_task(data).files.references
    return {} if references is None else references.sets
