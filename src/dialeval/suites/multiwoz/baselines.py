"""Floors and ceilings of task dialogues: systems made of the data, scored next to the real ones.

- `ceiling/gold`: the references as replies, with the true states. It does not reach 100 in Inform and Success, because
  annotations have errors and active domains are estimated; BLEU is 100 by construction.
- `floor/shuffled-gold`: the replies of other dialogues, with the true states of its own.
- `floor/constant`: "i do not know ." with an empty state in every turn.
- `floor/every-word`: every word of an offer and every word that a goal may ask for, in every turn, with the true
  states. It shows how far Inform and Success can be raised without a sentence, so it is no floor of a standing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dialeval.core.arrays import offsets_of
from dialeval.engine.baselines import (
    CONSTANT,
    CONSTANT_RESPONSE,
    GOLD,
    SEED,
    SHUFFLED,
    Baselines,
    check_names,
    derangement,
)
from dialeval.suites.multiwoz.data import TaskData
from dialeval.suites.multiwoz.predictions import Predictions, predictions_of

EVERY_WORD = "floor/every-word"


def make_baselines(systems: Sequence[Predictions], task: TaskData) -> tuple[list[Predictions], Baselines]:
    """Return the floors and ceilings that the data of a task allows."""
    check_names(system.rows.system for system in systems)
    documents, left_out = _documents(task)
    made = [predictions_of(document, task.files, name, name) for name, document in documents.items()]
    return made, Baselines([each.rows for each in made], left_out, systems[0].rows.system)


def _documents(task: TaskData) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
    turns, states = task.files.turns, task.files.states
    constant = {"response": CONSTANT_RESPONSE, "state": {}, "active_domains": []}
    documents: dict[str, Mapping[str, Any]] = {}
    left_out: dict[str, str] = {}
    if states is None:
        left_out |= dict.fromkeys((GOLD, SHUFFLED, EVERY_WORD), "the data has no gold_states.json")
    elif task.files.references is None:
        left_out |= dict.fromkeys((GOLD, SHUFFLED), "the data has no references")
    else:
        gold = gold_replies(task)
        documents[GOLD] = _by_dialogue(turns, gold)
        order = derangement(offsets_of(turns.values()), SEED)
        if order is None:
            left_out[SHUFFLED] = "more than half of the turns are of one dialogue"
        else:
            documents[SHUFFLED] = _by_dialogue(turns, [gold[at] for at in order.tolist()])
    documents[CONSTANT] = {dialogue: [constant] * count for dialogue, count in turns.items()}
    if states is not None:
        offers = [domain.offer for domain in task.ontology.domains.values() if domain.table is not None]
        words = " ".join(dict.fromkeys((*offers, *task.ontology.requested)))
        documents[EVERY_WORD] = _by_dialogue(turns, [_placeholders(task.ontology.words)(words)] * sum(turns.values()))
    return documents, left_out


def gold_replies(task: TaskData) -> list[str]:
    """Return the first reference of every turn, with placeholders for its words: what normalizes to it."""
    assert task.files.references is not None  # noqa: S101  (callers ask before)
    first = next(iter(task.files.references.sets.values()))
    write = _placeholders(task.ontology.words)
    return [write(text) for dialogue in task.files.turns for text in first[dialogue]]


def _by_dialogue(turns: Mapping[str, int], replies: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    bounds = offsets_of(turns.values()).tolist()
    return {
        dialogue: [{"response": reply} for reply in replies[start:stop]]
        for dialogue, start, stop in zip(turns, bounds, bounds[1:], strict=False)
    }


def _placeholders(words: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that writes words of normalized responses as placeholders."""
    slots: dict[str, str] = {}
    for slot, word in words.items():
        slots.setdefault(word, slot)
    known = re.compile("|".join(sorted(map(re.escape, slots), key=len, reverse=True)) or "(?!)")
    return lambda text: known.sub(lambda match: f"[{slots[match[0]]}]", text)
