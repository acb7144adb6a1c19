"""Task dialogues: read predictions, say what is missing in them, fold the metrics; and explain single dialogues.

The defaults give the figures of the MultiWOZ evaluation. What that evaluation does without a word is said here: how
much of the data a system covers and what the rest is worth, where true states stand in for a system's, which
placeholders and slots nobody knows. State tracking is refused to a system without states.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Metric
from dialeval.core.needs import Need
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__
from dialeval.data.task.predictions import Predictions, read_predictions
from dialeval.engine.evaluate import run_systems
from dialeval.engine.local import Local
from dialeval.metrics.task.bleu import TaskBleu
from dialeval.metrics.task.explain import Explanation, explain
from dialeval.metrics.task.inform import Inform
from dialeval.metrics.task.offers import World
from dialeval.metrics.task.richness import Richness
from dialeval.metrics.task.success import Success
from dialeval.metrics.task.turns import Fallback, WhatIsGiven, dialogue_turns
from dialeval.metrics.tracking import Tracking
from dialeval.resources.task import TaskData
from dialeval.text.delexicalised import unknown_placeholders
from dialeval.text.similarity import Ratio
from dialeval.text.vocabulary import Vocabulary

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Choices:
    """What is evaluated, and where it departs from the original."""

    bleu: bool = True
    success: bool = True
    richness: bool = True
    dst: bool = False
    fallback: Fallback = "file"
    strict: bool = False
    """Dialogues and turns that a system lacks count as failed."""
    unify_booking: bool = False
    ratio: Ratio = "historical"

    def metrics(self, task: TaskData) -> list[Metric[Any]]:
        """The metrics that do not need states."""
        missing: Any = "failed" if self.strict else "ignored"
        found: list[Metric[Any]] = []
        if self.success:
            rates: dict[str, Any] = {"fallback": self.fallback, "missing": missing, "ratio": self.ratio}
            found += [Inform(**rates), Success(**rates)]
        if self.bleu:
            if task.files.references is None:
                raise NeedError("the data has no references, so there is no BLEU; add references/NAME.json to it")
            found += [TaskBleu(name, missing) for name in task.files.references.sets]
        if self.richness:
            found += [Richness(**settings) for settings in Richness.presets.values()]  # type: ignore[arg-type]
        return found

    def tracking(self) -> list[Metric[Any]]:
        """The metrics of state tracking."""
        settings: dict[str, Any] = {
            "booking": "unified" if self.unify_booking else "apart",
            "missing": "failed" if self.strict else "ignored",
            "ratio": self.ratio,
        }
        presets: list[dict[str, Any]] = [dict(preset) for preset in Tracking.presets.values()]
        return [Tracking(**preset, **settings) for preset in presets] if self.dst else []


def evaluate_task(
    predictions: Any,
    task: TaskData,
    choices: Choices | None = None,
    *,
    t: float | None = None,
    confidence: float | None = None,
    progress: Progress | None = None,
) -> Run:
    """Evaluate one or several systems."""
    choices = choices or Choices()
    metrics, tracking = choices.metrics(task), choices.tracking()
    if not metrics and not tracking:
        raise SettingError("nothing was asked for; choose bleu, success, richness or dst")
    results: dict[str, Result] = {}
    warnings: list[str] = []
    with _without_collections():
        systems = read_predictions(predictions, task.files)
        _refuse_tracking(systems, metrics, tracking, task)
        for system in systems:
            name = system.rows.system
            there = [*metrics, *(tracking if Need.STATES in system.rows.columns else ())]
            options: dict[str, Any] = {"t": t, "confidence": confidence, "progress": progress}
            run = run_systems([system.rows], Vocabulary(), task.resources, metrics=there, **options)
            skipped = {metric.name: _NO_STATES for metric in tracking if metric not in there}
            results[name] = _renamed(run[name], there, skipped)
            warnings += _warnings(system, results[name], task, choices)
    return Run(results, __version__, tuple(warnings))


@contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from looking through objects that are all needed: it takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_NO_STATES = "needs a `state` in every turn: without, the true states would be compared with themselves"


def _refuse_tracking(
    systems: Sequence[Predictions], metrics: Sequence[Any], tracking: Sequence[Any], task: TaskData
) -> None:
    if not tracking:
        return
    if task.files.states is None:
        raise NeedError("the data has no gold_states.json, so there is no state tracking")
    without = [system for system in systems if Need.STATES not in system.rows.columns]
    if without and (len(without) == len(systems) or not metrics):
        lacking = "; ".join(f"{s.rows.system} has one in {s.with_state:,} of {s.turns:,} turns" for s in without)
        raise NeedError(
            f"state tracking (--dst) {_NO_STATES}; {lacking}; "
            "give every turn one, an empty one {} if nothing is tracked, or leave --dst out"
        )


def _renamed(result: Result, metrics: Sequence[Metric[Any]], skipped: Mapping[str, str]) -> Result:
    """The result under the names that people know: changed settings stand in the signature, not in the key."""
    shown = {metric.name: metric.key if isinstance(metric, TaskBleu) else _preset(metric) for metric in metrics}
    estimates = {}
    for key, estimate in result.items():
        name = key if key in shown else key.rpartition("/")[0]
        rest = key[len(name) :]
        estimates[f"{shown[name]}{rest}"] = estimate
    return replace(result, estimates=estimates, skipped={_bare(name): reason for name, reason in skipped.items()})


def _preset(metric: Metric[Any]) -> str:
    """The short name of a metric whatever its other settings."""
    for name, settings in metric.presets.items():
        if all(getattr(metric, setting) == value for setting, value in settings.items()):
            return name
    return metric.name


def _bare(name: str) -> str:
    return re.sub(r"\(.*\)$", "", name)


def _warnings(system: Predictions, result: Result, task: TaskData, choices: Choices) -> Iterator[str]:
    name, files = system.rows.system, task.files
    dialogues, turns = len(files.turns), sum(files.turns.values())
    if system.dialogues < dialogues or system.short:
        cover = f"{name} covers {system.dialogues:,} of {dialogues:,} dialogues and {system.turns:,} of {turns:,} turns"
        yield f"{cover}; {_worth(result, choices)}"
    if choices.success:
        yield from _substitutes(system, choices)
    responses = [row["response"] for row in system.given]
    if unknown := unknown_placeholders(responses, task.ontology.words):
        yield f"{name}: placeholders that the ontology does not have were removed: {_listed(unknown, '[{}]')}"
    if unknown := _unknown_slots(system, task):
        yield f"{name}: slots of states that no goal, venue or true state has: {_listed(unknown, '{}')}"


def _listed(counts: Mapping[str, int], form: str) -> str:
    """Each name once, with its count."""
    return ", ".join(f"{form.format(name)} ({_times(count)})" for name, count in counts.items())


def _worth(result: Result, choices: Choices) -> str:
    """What the dialogues that a system lacks would change."""
    if choices.strict:
        return "what is missing counts as failed"
    parts = []
    for key in ("inform", "success"):
        if key in result and result[key].scored < result[key].rows:
            estimate = result[key]
            failed = estimate.mean * estimate.scored / estimate.rows
            parts.append(f"{key} {estimate.mean:.1f} would be {failed:.1f}")
    worth = f": {', '.join(parts)}" if parts else ""
    return f"what is missing costs nothing, as in the original; --strict counts it as failed{worth}"


def _substitutes(system: Predictions, choices: Choices) -> Iterator[str]:
    """Where the true states or estimated domains stand in for a system's."""
    name = system.rows.system
    for what, count, instead in (
        ("state", system.with_state, "the true states"),
        ("active domains", system.with_domains, "estimates"),
    ):
        lacking = system.turns - count
        if not lacking:
            continue
        if not count:
            if what == "state":
                yield f"{name} gives no states: inform and success use {instead}"
        elif choices.fallback == "turn":
            yield f"{name} gives no {what} in {lacking:,} of {system.turns:,} turns: {instead} are used there"
        else:
            yield (
                f"{name} gives no {what} in {lacking:,} of {system.turns:,} turns, so that inform and success use "
                f"{instead} in all turns, as in the original; --fallback turn uses them only there"
            )


def _unknown_slots(system: Predictions, task: TaskData) -> dict[str, int]:
    """Slots of states that nothing in the data knows, each with the number of turns that have it."""
    slot_name, known = task.ontology.states.slot, task.known_slots
    found: Counter[str] = Counter()
    for row in system.given:
        for domain, slots in (row["state"] or {}).items():
            for slot in slots:
                if (domain, slot_name(slot)) not in known:
                    found[f"{domain}.{slot}"] += 1
    return dict(found.most_common())


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def explanations(
    predictions: Any, task: TaskData, choices: Choices | None = None, dialogue: str | None = None
) -> dict[str, list[Explanation]]:
    """The explanation of one dialogue, or of all that a system gives, by system."""
    choices = choices or Choices()
    if dialogue is not None and dialogue not in task.files.turns:
        plain = dialogue.lower().removesuffix(".json")
        hint = f"did you mean {plain!r}?" if plain in task.files.turns else "check the id"
        raise SettingError(f"the data has no dialogue {dialogue!r}; {hint}")
    world = World(task.files.goals, task.ontology, task.venues, choices.ratio)
    return {
        system.rows.system: [
            explain(name, turns, world)
            for name, turns in _turns(system, task, choices)
            if turns and dialogue in (None, name)
        ]
        for system in read_predictions(predictions, task.files)
    }


def _turns(system: Predictions, task: TaskData, choices: Choices) -> list[Any]:
    """The turns of every dialogue, as Inform and Success see them."""
    metric = Inform(fallback=choices.fallback, ratio=choices.ratio)
    local = Local(system.rows, Vocabulary(), task.resources)
    facts = local.find([metric])
    needs = metric.needs | metric.wants
    found: list[Any] = []
    for _, part in local.each(partial(_batch_turns, facts, needs, choices.fallback)):
        found += part
    return found


def _batch_turns(facts: Mapping[Any, Any], needs: frozenset[Need], fallback: Fallback, batch: Batch) -> list[Any]:
    return dialogue_turns(replace(batch, facts={WhatIsGiven(): facts[WhatIsGiven()]}).only(needs), fallback)


def original_output(result: Result, choices: Choices) -> dict[str, Any]:
    """One system's figures in the documented form of the MultiWOZ evaluation; None for what was not asked for."""
    output: dict[str, Any] = {
        "bleu": {key.partition("/")[2]: result[key].mean for key in result if key.startswith("bleu/")} or None,
        "success": {"inform": _rates(result, "inform"), "success": _rates(result, "success")}
        if choices.success
        else None,
        "richness": {name.replace("-", "_"): _count(result[name].mean, name) for name in Richness.presets}
        if choices.richness
        else None,
    }
    if choices.dst:
        there = all(name in result for name in Tracking.presets)
        output["dst"] = {name.replace("-", "_"): result[name].mean for name in Tracking.presets} if there else None
    return output


def _rates(result: Result, name: str) -> dict[str, float]:
    """Rates in per cent with one decimal, by domain and in total."""
    found = {
        key.partition("/")[2] or "total": round(result[key].mean, 1)
        for key in result
        if _bare(key.split("/")[0]) == name
    }
    return dict(sorted(found.items()))


def _count(value: float, name: str) -> float:
    return int(value) if name.startswith("num-") else value


def dialogue_rows(run: Run, task: TaskData) -> Iterator[dict[str, Any]]:
    """One row per system and dialogue that it gives: whether each domain matched, and whether it succeeded."""
    for system, result in run.items():
        for at, dialogue in enumerate(task.files.turns):
            row: dict[str, Any] = {"system": system, "dialog_id": dialogue}
            for name in ("inform", "success"):
                values = {
                    key.partition("/")[2] or "total": float(items[at])
                    for key, estimate in result.items()
                    if key.split("/")[0] == name and (items := estimate.items) is not None
                }
                row[name] = {domain: value > 0 for domain, value in values.items() if value == value}
            if row["inform"]:
                yield row
