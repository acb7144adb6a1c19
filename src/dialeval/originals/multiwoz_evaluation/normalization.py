"""The names of the module `multiwoz_evaluation.normalization`. Predictions are changed in place, as there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dialeval.suites.multiwoz.data import TaskTurns
from dialeval.suites.multiwoz.turns import make_normalizer
from dialeval.suites.multiwoz.venues import MULTIWOZ, Ontology, count_minutes, load_ontology

__all__ = ["normalize_data", "normalize_slot_name", "normalize_state_slot_value", "time_str_to_minutes"]

time_str_to_minutes = count_minutes


@cache
def _load() -> Ontology:
    return load_ontology(MULTIWOZ)


def normalize_data(input_data: Mapping[str, TaskTurns]) -> None:
    """Normalize the responses and states of predictions."""
    ontology = _load()
    normalize = make_normalizer(ontology.words)
    for turns in input_data.values():
        for turn in turns:
            turn["response"] = normalize(turn["response"])
            if "state" in turn:
                turn["state"] = dict(ontology.states(turn["state"]))


def normalize_slot_name(slot_name: str) -> str:
    """Return the word of a placeholder's slot; nothing for an unknown one."""
    return _load().words.get(slot_name.lower(), "")


def normalize_state_slot_value(slot_name: str, value: str) -> str:
    """Return the one spelling of a value."""
    states = _load().states
    return states.value(states.slot(slot_name), value)
