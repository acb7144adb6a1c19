"""Evaluate task dialogues: read predictions, warn of what they lack, fold the metrics; and explain single dialogues.

`Evaluator` is the public interface; the functions below it do the work. The defaults give the values of the MultiWOZ
evaluation. Warnings report what that evaluation does silently: how much of the data a system covers and what the rest
would cost, where true states replace those of a system, which placeholders and slots are unknown. State tracking is
refused for a system without states.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from msgspec import to_builtins

from dialeval.core.arrays import offsets_of
from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Estimate, Metric
from dialeval.core.inputs import Input
from dialeval.core.result import Result, Run
from dialeval.core.validation import JsonObject
from dialeval.engine import baselines as common
from dialeval.engine.folding import Options
from dialeval.engine.plan import Plan
from dialeval.engine.resources import Resources
from dialeval.metrics.counting import Missing
from dialeval.suites.multiwoz import GOALS, STATES, TRUE_STATES
from dialeval.suites.multiwoz import data as tasks
from dialeval.suites.multiwoz.data import Predictions, TaskData, TaskFiles, TaskPredictions
from dialeval.suites.multiwoz.explanations import Explanation, group_by_cause
from dialeval.suites.multiwoz.lexicalized import delexicalize, has_placeholders
from dialeval.suites.multiwoz.metrics import Book, Combined, Complete, Inform, Success, TaskBleu, Tracking
from dialeval.suites.multiwoz.richness import Richness
from dialeval.suites.multiwoz.turns import (
    Criteria,
    Fallback,
    TurnCounting,
    collect_turns,
    count_unknown_placeholders,
)
from dialeval.text.similarity import Ratio
from dialeval.text.vocabulary import Vocabulary

TRANSCRIPTS, FAILURES = "transcripts", "failures"
MOST = 200
"""Dialogues of all systems together whose transcripts are kept: about a megabyte."""

Systems = Sequence[TaskPredictions]
Metrics: TypeAlias = dict[str, Metric]
Original: TypeAlias = JsonObject
"""The output of the MultiWOZ evaluation: `bleu`, `success`, `richness` and `dst`, each with its values by name."""


def _make_presets(family: type[Metric], **settings: object) -> Metrics:
    return {name: family(**preset, **settings) for name, preset in family.presets.items()}


@dataclass(eq=False)
class Evaluator:
    """Evaluates predictions against the data of a task, which is loaded once.

    `data`, `split` and `names` choose the data as in `load_task`; `data` may also be a loaded task. What departs from
    the original program (`fallback`, `strict`, `names` and so on) is in the signatures.

    Attributes:
        bleu: Compute BLEU.
        success: Compute Inform and Success.
        richness: Compute lexical richness.
        dst: Compute dialogue state tracking metrics.
        fallback: Where a turn lacks its state or active domains: `"file"` replaces those of the whole file, as the
            original does; `"turn"` replaces only what is lacking.
        strict: Count dialogues without a turn as failed, and missing turns as empty.
        unify_booking: Count `bookday` and `day` as one slot in state tracking.
        ratio: The partial ratio by which names are compared: `"historical"`, or `"exact"`, which finds the best
            alignment.
        baselines: Also score floor and ceiling systems, and add gold replies to explanations.
        lexicalized: Map values in replies (names, phone numbers) to placeholders first, for systems whose replies have
            none.
        dst_exact: Compare values exactly in state tracking, as papers on joint goal accuracy do.
        ignore_dontcare: Leave slots without a wish (dontcare, none) out of state tracking on both sides.
        completion: Compute the rates Complete and Book, after ConvLab.
        task: The data of the task.
        warnings: Remarks about the predictions that were evaluated last.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.multiwoz import Evaluator
        >>> predictions = sample_data.folder() / "town" / "predictions"
        >>> evaluator = Evaluator(data="town", bleu=False, richness=False)
        >>> evaluator.evaluate(predictions / "hasty.json")["success"]["success"]["total"]
        14.3
    """

    bleu: bool = True
    success: bool = True
    richness: bool = True
    dst: bool = False
    _: KW_ONLY
    data: InitVar[str | os.PathLike[str] | TaskData | None] = None
    split: InitVar[str | None] = None
    names: InitVar[tasks.Names] = "published"
    fallback: Fallback = "file"
    strict: bool = False
    unify_booking: bool = False
    ratio: Ratio = "historical"
    baselines: bool = False
    lexicalized: bool = False
    dst_exact: bool = False
    ignore_dontcare: bool = False
    completion: bool = False
    task: TaskData = field(init=False, repr=False)
    warnings: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(
        self, data: str | os.PathLike[str] | TaskData | None, split: str | None, names: tasks.Names
    ) -> None:
        self.task = data if isinstance(data, TaskData) else tasks.load_task(data, split, names)

    def read(self, predictions: Predictions) -> list[TaskPredictions]:
        """Read and check predictions, to pass them to several methods.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.

        Returns:
            The predictions of each system.

        Raises:
            DataError: The predictions have another form, or name dialogues that the task does not have.
        """
        systems = tasks.read_predictions(predictions, self.task.files)
        if not self.lexicalized or systems is predictions:
            return systems
        task = self.task
        return [system if has_placeholders(system, task) else delexicalize(system, task)[0] for system in systems]

    def run(self, predictions: Predictions, **options: Any) -> Run:
        """Evaluate one or several systems.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.
            **options: `confidence`, `intervals` and `t`, as in `dialeval.evaluate`, and other settings of a run.

        Returns:
            A run with intervals, and a value per dialogue or turn.

        Raises:
            DataError: The predictions have another form.
        """
        metrics, tracking = self._make_metrics(), self._make_tracking()
        if not metrics and not tracking:
            raise SettingError("nothing was asked for; choose bleu, success, richness or dst")
        systems = self.read(predictions)
        _refuse_tracking(systems, metrics, tracking, self.task)
        made, baselines = make_baselines(systems, self.task) if self.baselines else ([], None)

        def plan(_number: int, available: frozenset[Input]) -> Plan:
            return (
                Plan(metrics | tracking) if STATES in available else Plan(metrics, dict.fromkeys(tracking, _NO_STATES))
            )

        resources = Resources(ready=self.task.resources)
        # One thread: these metrics are plain Python, and threads would only wait for each other.
        one_thread = replace(Options(**options), threads=1)
        rows = [system.rows for system in systems]
        run = common.run_with_baselines(rows, baselines, plan, resources, one_thread).run
        warnings = [line for system in systems for line in _collect_warnings(system, run[system.rows.system], self)]
        mapped = [system.rows.system for system in systems if system.report is not None]
        run = replace(run, warnings=(*warnings, *run.warnings))
        run = _extend_signatures(run, self.task.files.version, mapped)
        gold = [system for system in made if system.rows.system == common.GOLD] if self.success else []
        if failures := {name: group_by_cause(lost, gold=True) for name, lost in self._explain(gold).items()}:
            run = replace(run, details={**run.details, FAILURES: failures})
        self.warnings = run.warnings
        return run

    @property
    def _missing(self) -> Missing:
        """What becomes of dialogues and turns that a system lacks."""
        return "failed" if self.strict else "ignored"

    def _make_metrics(self) -> Metrics:
        """Return the metrics that do not need states, by their usual names; settings are in the signature."""
        metrics: Metrics = {}
        missing, references = self._missing, self.task.files.references
        settings = self.fallback, missing, self.ratio
        if self.success:
            metrics |= {"inform": Inform(*settings), "success": Success(*settings)}
        if self.completion:
            metrics |= {"complete": Complete(*settings), "book": Book(*settings)}
        if self.bleu:
            if references is None:
                raise NeedError("the data has no references, so there is no BLEU; add references/NAME.json to it")
            sets = [TaskBleu(name, missing) for name in references.sets]
            metrics |= {metric.key: metric for metric in sets}
            if self.success:
                metrics |= {"combined": Combined(sets[0].references, *settings)}
        return metrics | (_make_presets(Richness) if self.richness else {})

    def _make_tracking(self) -> Metrics:
        """Return the metrics of state tracking."""
        if not self.dst:
            return {}
        return _make_presets(
            Tracking,
            booking="unified" if self.unify_booking else "apart",
            missing=self._missing,
            ratio=self.ratio,
            threshold=100.0 if self.dst_exact else 95.0,
            dont_care="ignored" if self.ignore_dontcare else "counted",
        )

    def evaluate(self, predictions: Predictions) -> Original:
        """Evaluate one system, with the output of the original program.

        Args:
            predictions: A mapping of dialogue ids to turns, or a file.

        Returns:
            The output of the original: `bleu`, `success`, `richness` and `dst`, None for what was not asked for.

        Raises:
            DataError: The predictions have another form.
            SettingError: There are several systems.
        """
        run = self.run(predictions)
        if (systems := len(run) - len(run.baselines)) != 1:
            raise SettingError(f"evaluate takes one system, and there are {systems}; use run for several")
        result = next(iter(run.values()))

        def collect(presets: Mapping[str, object]) -> dict[str, float] | None:
            if not presets.keys() <= set(result):
                return None
            return {name.replace("-", "_"): result[name].mean for name in presets}

        richness = collect(Richness.presets) or {}
        return {
            "bleu": {key.partition("/")[2]: result[key].mean for key in result if key.startswith("bleu/")} or None,
            "success": {name: _collect_rates(result, name) for name in ("inform", "success")} if self.success else None,
            "richness": {name: _to_count(name, value) for name, value in richness.items()} or None,
            "dst": collect(Tracking.presets) if self.dst else None,
        }

    def explain(self, predictions: Predictions, dialogue: str) -> dict[str, list[Explanation]]:
        """Explain why a dialogue lost Inform or Success.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.
            dialogue: The id of the dialogue.

        Returns:
            By system, the explanation; an empty list where a system does not have the dialogue.
        """
        turns = self.task.files.turns
        if dialogue not in turns:
            plain = dialogue.lower().removesuffix(".json")
            hint = f"did you mean {plain!r}?" if plain in turns else "check the id"
            raise SettingError(f"the data has no dialogue {dialogue!r}; {hint}")
        return self._explain(self._read_explained(predictions), dialogue)

    def _read_explained(self, predictions: Predictions) -> Systems:
        """Read the systems whose dialogues are explained: with baselines also gold."""
        systems = self.read(predictions)
        made = make_baselines(systems, self.task)[0] if self.baselines else []
        return [*systems, *(system for system in made if system.rows.system == common.GOLD)]

    def _explain(self, systems: Systems, dialogue: str | None = None) -> dict[str, list[Explanation]]:
        """Return the explanation of one dialogue, or of all that a system gives, by system."""
        explained = {}
        for system in systems:
            columns, offsets = system.rows.columns, offsets_of(filter(None, self.task.files.turns.values()))
            batch = Batch(
                len(system.rows), columns, Vocabulary(), offsets, self.task.resources, {TurnCounting(): system.counts}
            )
            criteria = Criteria.of_batch(batch, self.ratio)
            explained[system.rows.system] = [
                Explanation(name, turns, criteria)
                for name, turns in collect_turns(batch, self.fallback, self._missing)
                if turns is not None and dialogue in (None, name)
            ]
        return explained

    def with_transcripts(self, run: Run, predictions: Predictions, most: int = MOST) -> Run:
        """Return a run with the transcripts that a report shows, of failed dialogues first.

        Args:
            run: The run of these predictions.
            predictions: The predictions.
            most: The number of dialogues that are kept, of all systems together.

        Returns:
            The run with transcripts in its details.
        """
        explained = self._explain(self._read_explained(predictions))
        lost = {system: group_by_cause(dialogues, system == common.GOLD) for system, dialogues in explained.items()}
        chosen = _choose_dialogues(list(self.task.files.turns), lost, max(1, most // max(1, len(explained))))
        users = self.task.files.users or {}
        entries = {
            system: [one.to_transcript(users.get(one.dialogue)) for one in dialogues if one.dialogue in chosen]
            for system, dialogues in explained.items()
            if system in run
        }
        failures = {system: lost[system] for system in entries}
        return replace(run, details={**run.details, TRANSCRIPTS: to_builtins(entries), FAILURES: failures})

    def failures(self, predictions: Predictions) -> dict[str, list[Explanation]]:
        """Explain every dialogue that lost Inform or Success.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.

        Returns:
            By system, the explanations.
        """
        explained = self._explain(self._read_explained(predictions))
        return {system: [one for one in dialogues if one.causes] for system, dialogues in explained.items()}


def evaluate(predictions: Predictions, data: str | os.PathLike[str] | TaskData | None = None, **options: Any) -> Run:
    """Evaluate one or several systems on task dialogues.

    Args:
        predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.
        data: The data of the task; see `Evaluator`.
        **options: Further arguments of `Evaluator`.

    Returns:
        A run with intervals, and a value per dialogue or turn.

    Raises:
        DataError: The predictions have another form.

    Examples:
        >>> from dialeval import multiwoz, sample_data
        >>> run = multiwoz.evaluate(sample_data.folder() / "town" / "predictions", "town")
        >>> [round(run[name]["success"].mean, 3) for name in run]
        [14.286, 87.5]
    """
    return Evaluator(data=data, **options).run(predictions)


def _extend_signatures(run: Run, version: str | None, lexicalized: Sequence[str]) -> Run:
    """Return the run with more in its signatures: the version of the data where it counts, and lexicalized replies."""
    depending = {GOALS, TRUE_STATES}

    def sign(estimate: Estimate, system: str) -> Estimate:
        signature = estimate.signature
        if signature is None:
            return estimate
        if version is not None and depending & set(signature):
            signature = signature.with_fields(data=version)
        if system in lexicalized:
            signature = signature.with_fields(replies="lexicalized")
        return replace(estimate, signature=signature)

    signed = {name: {key: sign(estimate, name) for key, estimate in result.items()} for name, result in run.items()}
    return replace(run, systems={name: replace(run[name], estimates=estimates) for name, estimates in signed.items()})


_NO_STATES = "needs a `state` in every turn: without, the true states would be compared with themselves"


def _refuse_tracking(
    systems: Systems, metrics: Mapping[str, object], tracking: Mapping[str, object], task: TaskData
) -> None:
    if not tracking:
        return
    if task.files.states is None:
        raise NeedError("the data has no gold_states.json, so there is no state tracking")
    without = [system for system in systems if STATES not in system.rows.columns]
    if without and (len(without) == len(systems) or not metrics):
        lacking = "; ".join(
            f"{s.rows.system} has one in {s.counts.states:,} of {s.counts.turns:,} turns" for s in without
        )
        remedy = "give every turn one, an empty one {} if nothing is tracked, or leave --dst out"
        raise NeedError(f"state tracking (--dst) {_NO_STATES}; {lacking}; {remedy}")


def _collect_warnings(system: TaskPredictions, result: Result, evaluator: Evaluator) -> Iterator[str]:
    name, task = system.rows.system, evaluator.task
    yield from system.remarks
    if system.report is not None:
        yield system.report
    elif evaluator.lexicalized:
        yield f"{name} has placeholders already, so that its replies are taken as they are"
    yield from _warn_of_missing(system, result, task.files, evaluator.strict)
    if evaluator.success:
        yield from _warn_of_substitutes(system, evaluator.fallback)
    if unknown := count_unknown_placeholders((row["response"] or "" for row in system.given), task.ontology.words):
        yield f"{name}: placeholders that the ontology does not have were removed: {_write_counts(unknown, '[{}]')}"
    if unknown := _count_unknown_slots(system.given, task):
        yield f"{name}: slots of states that no goal, venue or true state has: {_write_counts(unknown, '{}')}"


def _write_counts(counts: Mapping[str, int], form: str) -> str:
    """Return each name once, with its count."""
    times = {name: "once" if count == 1 else f"{count:,} times" for name, count in counts.items()}
    return ", ".join(f"{form.format(name)} ({often})" for name, often in times.items())


def _warn_of_missing(system: TaskPredictions, result: Result, files: TaskFiles, is_strict: bool) -> Iterator[str]:
    """Yield what a system lacks, what becomes of it, and what it would cost if it counted."""
    dialogues, turns = len(files.turns), sum(files.turns.values())
    effects = {
        "missing dialogues are left out": system.dialogues < dialogues,
        "dialogues that lack turns are judged by those they have": system.short,
        f"dialogues without any turn ({system.without_turns:,}) are judged too": system.without_turns,
    }
    if not any(effects.values()):
        return
    cover = f"covers {system.dialogues:,} of {dialogues:,} dialogues and {system.counts.turns:,} of {turns:,} turns"
    strict = "--strict counts dialogues without a turn as failed and missing turns as empty"
    if is_strict:
        yield f"{system.rows.system} {cover}; {strict}"
    else:
        original = f"as in the original, {', '.join(effect for effect, occurs in effects.items() if occurs)}"
        changes = ", ".join(_score_missing_as_failed(system, result, files))
        yield f"{system.rows.system} {cover}; {original}; {strict}{': ' if changes else ''}{changes}"


def _score_missing_as_failed(system: TaskPredictions, result: Result, files: TaskFiles) -> Iterator[str]:
    """Yield what Inform and Success would be if dialogues without a turn counted as failed."""
    answered = {row["dialogue"] for row in system.given}
    for key in ("inform", "success"):
        if key in result and len(answered) < len(files.turns) and (items := result[key].scores) is not None:
            hits = [item for name, item in zip(files.turns, items.tolist(), strict=True) if name in answered]
            yield f"{key} {result[key].mean:.1f} would be {sum(hits) / len(files.turns):.1f}"


def _warn_of_substitutes(system: TaskPredictions, fallback: Fallback) -> Iterator[str]:
    """Yield where the true states or estimated domains replace those of a system."""
    name, turns = system.rows.system, system.counts.turns
    for what, count, instead in (
        ("state", system.counts.states, "the true states"),
        ("active domains", system.counts.domains, "estimates"),
    ):
        lacking = turns - count
        if not lacking:
            continue
        if not count:
            if what == "state":
                yield f"{name} gives no states: inform and success use {instead}"
        elif fallback == "turn":
            yield f"{name} gives no {what} in {lacking:,} of {turns:,} turns: {instead} are used there"
        else:
            yield (
                f"{name} gives no {what} in {lacking:,} of {turns:,} turns, so that inform and success use "
                f"{instead} in all turns, as in the original; --fallback turn uses them only there"
            )


def _count_unknown_slots(rows: Sequence[tasks.TaskRow], task: TaskData) -> dict[str, int]:
    """Return slots of states that nothing in the data has, each with the number of turns."""
    frames = Counter((domain, *slots) for row in rows for domain, slots in (row["state"] or {}).items())
    unknown: Counter[str] = Counter()
    for (domain, *slots), turns in frames.items():
        for slot in slots:
            if (domain, task.ontology.states.slot(slot)) not in task.known_slots:
                unknown[f"{domain}.{slot}"] += turns
    return dict(unknown.most_common())


def _collect_rates(result: Result, name: str) -> dict[str, float]:
    """Return rates in percent with one decimal, by domain and in total."""
    rates = ((key.partition("/"), estimate.mean) for key, estimate in result.items())
    return dict(sorted((domain or "total", round(mean, 1)) for (family, _, domain), mean in rates if family == name))


def _to_count(name: str, value: float) -> float:
    return int(value) if name.startswith("num_") and value == value else value


def list_dialogue_rows(run: Run, task: TaskData) -> Iterator[JsonObject]:
    """Yield a row per system and dialogue: whether each domain matched, and whether it succeeded.

    Args:
        run: The run of a task.
        task: The data of the task.

    Yields:
        Rows with `system`, `dialog_id`, `inform` and `success`, the last two by domain.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.multiwoz import list_dialogue_rows, evaluate, load_task
        >>> task = load_task("town")
        >>> run = evaluate(sample_data.folder() / "town" / "predictions", task)
        >>> next(list_dialogue_rows(run, task))["inform"]
        {'total': False, 'eatery': False}
    """
    for system, result in run.items():
        columns = [(key.partition("/"), estimate.scores) for key, estimate in result.items()]
        for at, dialogue in enumerate(task.files.turns):
            rates: dict[str, dict[str, bool]] = {"inform": {}, "success": {}}
            for (name, _, domain), items in columns:
                if name in rates and items is not None and not np.isnan(items[at]):
                    rates[name][domain or "total"] = bool(items[at] > 0)
            if rates["inform"]:
                yield {"system": system, "dialog_id": dialogue, **rates}


def _choose_dialogues(order: Sequence[str], lost: Mapping[str, Mapping[str, Sequence[str]]], most: int) -> set[str]:
    """Return the dialogues to keep: the first one that each cause lost, the second, ..."""
    ranks: dict[str, int] = {}
    for causes in lost.values():
        for names in causes.values():
            for rank, name in enumerate(names):
                ranks[name] = min(rank, ranks.get(name, rank))
    return set(sorted(order, key=lambda name: ranks.get(name, len(order)))[:most])


# Floors and ceilings of task dialogues: systems made of the data, scored next to the real ones.
#
# - `ceiling/gold`: the references as replies, with the true states. It does not reach 100 in Inform and Success,
#   because annotations have errors and active domains are estimated; BLEU is 100 by construction.
# - `floor/shuffled-gold`: the replies of other dialogues, with the true states of its own.
# - `floor/constant`: "i do not know ." with an empty state in every turn.
# - `floor/every-word`: every word of an offer and every word that a goal may ask for, in every turn, with the true
#   states. It shows how far Inform and Success can be raised without a sentence, so it is no floor of a standing.

EVERY_WORD = "floor/every-word"


def make_baselines(systems: Systems, task: TaskData) -> tuple[list[TaskPredictions], common.Baselines]:
    """Return the floors and ceilings that the data of a task allows."""
    common.check_names(system.rows.system for system in systems)
    turns, states = task.files.turns, task.files.states
    constant = {"response": common.CONSTANT_RESPONSE, "state": {}, "active_domains": []}
    documents: dict[str, Mapping[str, object]] = {}
    left_out: dict[str, str] = {}
    if states is None:
        left_out |= dict.fromkeys((common.GOLD, common.SHUFFLED, EVERY_WORD), "the data has no gold_states.json")
    elif task.files.references is None:
        left_out |= dict.fromkeys((common.GOLD, common.SHUFFLED), "the data has no references")
    else:
        gold = make_gold_replies(task)
        documents[common.GOLD] = _group_replies(turns, gold)
        order = common.derangement(offsets_of(turns.values()), common.SEED)
        if order is None:
            left_out[common.SHUFFLED] = "more than half of the turns are of one dialogue"
        else:
            documents[common.SHUFFLED] = _group_replies(turns, [gold[at] for at in order.tolist()])
    documents[common.CONSTANT] = {dialogue: [constant] * count for dialogue, count in turns.items()}
    if states is not None:
        offers = [domain.offer for domain in task.ontology.domains.values() if domain.table is not None]
        words = " ".join(dict.fromkeys((*offers, *task.ontology.requested)))
        documents[EVERY_WORD] = _group_replies(turns, [_make_writer(task.ontology.words)(words)] * sum(turns.values()))
    made = [tasks.make_predictions(document, task.files, name, name) for name, document in documents.items()]
    return made, common.Baselines([system.rows for system in made], left_out, systems[0].rows.system)


def make_gold_replies(task: TaskData) -> list[str]:
    """Return the first reference of every turn, with placeholders for its words: what normalizes to it."""
    assert task.files.references is not None  # noqa: S101  (callers ask before)
    first = next(iter(task.files.references.sets.values()))
    write = _make_writer(task.ontology.words)
    return [write(text) for dialogue in task.files.turns for text in first[dialogue]]


def _group_replies(turns: Mapping[str, int], replies: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    bounds = offsets_of(turns.values()).tolist()
    return {
        dialogue: [{"response": reply} for reply in replies[start:stop]]
        for dialogue, start, stop in zip(turns, bounds, bounds[1:], strict=False)
    }


def _make_writer(words: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that writes words of normalized responses as placeholders."""
    slots: dict[str, str] = {}
    for slot, word in words.items():
        slots.setdefault(word, slot)
    pattern = re.compile("|".join(sorted(map(re.escape, slots), key=len, reverse=True)) or "(?!)")
    return lambda text: pattern.sub(lambda match: f"[{slots[match[0]]}]", text)
