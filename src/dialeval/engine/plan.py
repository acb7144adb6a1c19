"""The plan: which metrics run on which inputs, and what the others lack. It is made before any work is done.

A metric that was asked for by its own name and cannot run is an error. One that was asked for as part of a group
(`all`, a family, or nothing in particular) is skipped, with one line that names the missing input. `all` means all
metrics whose subject is there: scoring responses does not list the metrics of breakdown labels. Metrics that are
costly, because they take longer than all others together, are not among them; `all,adem` adds one. Where a reply of
some system failed, `failure-rate` comes first, also where only metrics are asked for that do not score it.

Where nothing in particular is asked for (`default`), responses are scored by a few metrics of `GROUPS`, and by the
judge if it is installed, there are contexts, and rows are few (`MOST_JUDGED`); other subjects by all their metrics.

The tokenizer "auto" is chosen before any metric runs, by a pass of its own over all texts: the letters of responses and
references of all systems together (floors and ceilings aside) are counted by script, and every metric that asked for
"auto" gets the one tokenizer that fits them (`text.tokenizers`). So the choice does not depend on chunks, batches or
workers, all systems are scored alike, and signatures name the tokenizer that was chosen. By default, where neither
metrics nor a tokenizer are named, rows in memory whose script has no spaces get a tokenizer in the same way.

Checks of the rows, folded next to the metrics: a run warns of what they find.

- `DialogueIds`: dialogues whose rows are not consecutive. Confidence intervals take consecutive rows of a dialogue for
  one cluster; an id that comes back later makes a second cluster of the same dialogue. All ids are kept as sorted
  64-bit hashes: the ids themselves would take several times the space. Such a state grows with the rows, so it is cut
  by ranges of hashes.
- `text.tokenizers.UnsplitTexts`: texts that a tokenizer left whole because their script has no spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from dialeval.core import inputs
from dialeval.core.account import FAILURES
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Fact, Metric
from dialeval.core.inputs import Column, Input
from dialeval.engine.resources import explain_missing
from dialeval.metrics.registry import ALL, GROUP_SETTINGS, GROUPS, PANEL, registry, split_names
from dialeval.text.ngrams import Hashes, hash_column
from dialeval.text.tokenizers import (
    AUTO,
    DEFAULT,
    SPLIT_AT_SPACES,
    ScriptCounts,
    Tokenizer,
    UnsplitTexts,
    choose_installed,
    choose_tokenizer,
    suggest_tokenizer,
)

Asked: TypeAlias = str | Metric | Callable[..., Any] | Iterable[str | Metric | Callable[..., Any]] | None
"""Metrics by names, families, objects, and functions of `metric_of_rows`; None: the group `default`."""

Settings: TypeAlias = Mapping[str, Mapping[str, object]]
"""By family: settings that differ from their defaults."""

MOST_JUDGED = 200
"""Responses of all systems together that are judged unasked: about two seconds of work for two processors."""
TRIALS = "trials"
"""The detail of a run that lists its trials, by system."""
_TOKENIZER = "tokenizer"
"""The setting of that name."""
_OF_PANEL = frozenset({inputs.RESPONSE, inputs.CONTEXT, inputs.TURN_LABELS, inputs.LATENCY})
"""Subjects of which only the metrics of the panel are scored unasked; of others all metrics are."""
_SCRIPT_COUNTS = ScriptCounts((inputs.RESPONSE, inputs.HYPOTHESES, inputs.REFERENCE, inputs.REFERENCE_GROUPS))
"""Counts the scripts of the columns by which a tokenizer is chosen."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The metrics to compute, in order, and those left out with the reason."""

    metrics: Mapping[str, Metric]
    """By the name under which their results are shown: that by which they were asked for."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Fact] = field(default_factory=dict)
    """Folds next to the metrics that give no estimate but plain data, by name. They see the batch as it is."""
    by_script: frozenset[str] = frozenset()
    """Metrics that get another tokenizer where the script of the texts has no spaces."""
    unasked: bool = False
    """Whether `failure-rate` was not asked for: it is left out where no other metric leaves out what failed."""

    @property
    def folded(self) -> list[Metric]:
        """Every metric once, whatever it is called."""
        return list(dict.fromkeys(self.metrics.values()))

    def name_results(self, name: str, results: Iterable[str]) -> dict[str, str]:
        """Return the keys that a metric gives its results -> those they are shown under.

        The main result is called as the metric was asked for, and so are its parts (`inform/hotel`).
        """
        prefix = self.metrics[name].name
        return {
            key: name + key[len(prefix) :] if key == prefix or key.startswith(f"{prefix}/") else key for key in results
        }


Planner: TypeAlias = Callable[[int, frozenset[Input]], Plan]
"""The plan for a source, by its number, and what is available for it."""


def make_planner(
    asked: Asked, settings: Settings | None = None, tokenizer: Tokenizer | None = None, rows: int | None = None
) -> Planner:
    """Return a planner of the same metrics and settings, with a plan for each set of inputs."""
    names = list_asked(asked)
    plan = cache(lambda available: make_plan(names, available, settings, tokenizer, rows))
    return lambda _source, available: plan(available)


def list_fields(asked: Asked) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Return the fields of rows that the metrics ask for, and the names of scores (`*`: all)."""
    names = [name for name in list_asked(asked) if not registry().is_group(name)]
    columns: dict[Column, None] = {}
    scores: dict[str, None] = {}
    for metric in registry().select(names):
        for need in (*metric.needs, *metric.wants):
            if isinstance(need, Column) and need.field is not None:
                columns[need] = None
        if metric.subject == inputs.SCORES:
            scores[metric.find_setting("of") or "*"] = None
    return tuple(columns), tuple(scores)


def list_asked(asked: Any) -> list[Any]:
    """Return what was asked for as a list; for nothing, the group `default`."""
    if asked is None or isinstance(asked, str):
        return [PANEL] if asked is None else split_names(asked)
    return [asked] if isinstance(asked, Metric) or callable(asked) else list(asked)


def make_plan(
    asked: Asked,
    available: frozenset[Input],
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
    rows: int | None = None,
) -> Plan:
    """Decide what to compute from the inputs that are there.

    `settings` changes the defaults of families, `tokenizer` that of every metric whose name has none. A group
    has settings of its own; its metrics keep the names of their presets. `rows`: those of all systems in memory.
    """
    names = [registry().canonicalize(name) for name in list_asked(asked)]
    if not names:
        raise SettingError("no metric was asked for; name some, or `all`")
    metrics: dict[str, Metric] = {}
    skipped: dict[str, str] = {}
    for name in names:
        if name == PANEL:
            chosen = registry().select(GROUPS[PANEL]) if inputs.RESPONSE in available else []
            chosen += [*registry().list_measuring(available - _OF_PANEL), *_judge_if_fast(available, rows, skipped)]
        else:
            chosen = registry().list_measuring(available) if name == ALL else registry().select([name])
        for plain in chosen:
            if name == ALL and plain.costly:
                continue
            metric = _configure(plain, name, settings or {}, tokenizer)
            reasons = _explain_missing(metric, available)
            if not reasons:
                metrics[plain.name] = metric
            elif registry().is_group(name):
                skipped[plain.name] = reasons
            else:
                raise NeedError(f"{plain.name} {reasons}")
    fails = available >= {inputs.OUTCOME, inputs.RESPONSE}
    unasked = fails and FAILURES not in metrics
    if fails:
        metrics = {FAILURES: registry().parse(FAILURES), **metrics}
    if not metrics:
        reasons = "; ".join(f"{key} {reason}" for key, reason in skipped.items())
        raise NeedError(f"nothing can be computed: {reasons}")
    skipped = {name: reason for name, reason in skipped.items() if name not in metrics}
    by_script = metrics.keys() & GROUPS[PANEL] if PANEL in names and tokenizer is None and rows is not None else ()
    details: dict[str, Fact] = {}
    if any(metric.subject == inputs.TRIALS for metric in metrics.values()):
        from dialeval.metrics.trials import TrialTable

        details = {TRIALS: TrialTable()}
    return Plan(metrics, skipped, details, frozenset(by_script), unasked)


def _judge_if_fast(available: frozenset[Input], rows: int | None, skipped: dict[str, str]) -> list[Metric]:
    """Return the judge if it can run and rows are few; where they are many, explain in `skipped` how to ask for it."""
    if inputs.DIALOGUE_JUDGE not in available or _explain_missing(judge := registry().parse("judge"), available):
        return []
    if rows is not None and rows <= MOST_JUDGED:
        return [judge]
    large = f"more than {MOST_JUDGED} responses, or for files that are read in chunks"
    skipped[judge.name] = f"takes long for {large}: ask for it by -m default,judge"
    return []


def _explain_missing(metric: Metric, available: frozenset[Input]) -> str:
    """Return why a metric cannot run; empty if it can."""
    reasons = [explain_missing(need) or need.remedy for need in sorted(metric.needs - available)]
    if metric.one_of and not metric.one_of & available:
        reasons.append(" or ".join(need.remedy for need in sorted(metric.one_of)))
    return "; ".join(reasons)


def _configure(metric: Metric, asked: object, settings: Settings, tokenizer: Tokenizer | None) -> Any:
    """Return the metric with the settings of its group and its family, unless it was asked for with its own.

    It gets the tokenizer if it takes one and the name by which it was asked for has none; an object keeps its own.
    """
    of_group = GROUP_SETTINGS.get(asked, {}) if isinstance(asked, str) else {}
    taken = {name: value for name, value in of_group.items() if name in metric.setting_names()}
    changes = {**taken, **settings.get(metric.family, {})}
    unknown = [name for name in changes if name not in metric.setting_names()]
    if unknown:
        raise SettingError(f"{metric.family} has no setting {unknown[0]!r}; it has {', '.join(metric.setting_names())}")
    metric = metric.with_settings(**changes) if metric.name in metric.presets else metric
    if tokenizer is None or not isinstance(asked, str) or f"{_TOKENIZER}=" in asked.replace(" ", ""):
        return metric
    return metric.change_setting(_TOKENIZER, tokenizer) if find_tokenizer(metric) else metric


class EarlyPass(NamedTuple):
    """A pass over all rows before the metrics, from whose values the plans follow."""

    facts: Sequence[Fact]
    settle: Callable[[Planner, Mapping[Fact, object]], tuple[Planner, dict[str, object]]]
    """Return the planner of the passes that follow, and details for the run."""


def survey_columns(plans: Sequence[Plan]) -> EarlyPass:
    """Collect what metrics have to know of the rows of all systems, such as the names of all labels."""

    def settle(planner: Planner, surveyed: Mapping[Fact, object]) -> tuple[Planner, dict[str, object]]:
        @cache
        def expand(name: str, metric: Metric) -> Mapping[str, Metric]:
            if metric.survey is None:
                return {name: metric}
            settled = metric.settle(surveyed[metric.survey])
            return {name if key == metric.name else key: one for key, one in settled.items()}

        def plan(number: int, available: frozenset[Input]) -> Plan:
            before = planner(number, available)
            settled = (expand(name, metric).items() for name, metric in before.metrics.items())
            return replace(before, metrics=dict(chain.from_iterable(settled)))

        return plan, {}

    surveys = (metric.survey for plan in plans for metric in plan.folded)
    return EarlyPass(list(dict.fromkeys(survey for survey in surveys if survey is not None)), settle)


def choose_by_script(plans: Sequence[Plan]) -> EarlyPass:
    """Count the scripts of all texts where a metric leaves the choice of a tokenizer to the run."""
    unasked = any(plan.by_script for plan in plans)

    def settle(planner: Planner, counted: Mapping[Fact, Any]) -> tuple[Planner, dict[str, object]]:
        tokenizer = choose_tokenizer(counted[_SCRIPT_COUNTS])
        tokenizer = choose_installed(tokenizer) if unasked else tokenizer

        def choose(metric: Metric, by_script: bool = False) -> Metric:
            left = (AUTO, *(SPLIT_AT_SPACES if by_script and tokenizer != DEFAULT else ()))
            return metric.change_setting(_TOKENIZER, tokenizer) if find_tokenizer(metric) in left else metric

        def plan(number: int, available: frozenset[Input]) -> Plan:
            before = planner(number, available)
            details = {name: fact.change_metric(choose) for name, fact in before.details.items()}
            metrics = {name: choose(metric, name in before.by_script) for name, metric in before.metrics.items()}
            return replace(before, metrics=metrics, details=details)

        return plan, {} if tokenizer == DEFAULT else {_TOKENIZER: tokenizer}

    asked = unasked or any(find_tokenizer(metric) == AUTO for plan in plans for metric in plan.folded)
    return EarlyPass([_SCRIPT_COUNTS] if asked else [], settle)


EARLY_PASSES = (survey_columns, choose_by_script)
"""In this order: a metric that a survey decides on may leave the choice of a tokenizer to the run."""


def find_tokenizer(metric: Metric) -> Tokenizer | None:
    """Return the tokenizer of a metric that has one."""
    return cast("Tokenizer | None", metric.find_setting(_TOKENIZER))


_MEASURED = (inputs.RESPONSE, inputs.HYPOTHESES)
"""Columns whose texts are checked: those that are measured."""

Checked = Iterable[tuple[Fact, Any]]
"""Checks of a system with their states."""


def with_checks(plan: Plan) -> Plan:
    """Return the plan with the checks behind its own details."""
    asked = dict.fromkeys((metric.subject, find_tokenizer(metric)) for metric in plan.folded)
    checks: dict[str, Fact] = {
        f"unsplit {tokenizer}": UnsplitTexts(need, tokenizer)
        for need, tokenizer in asked
        if need in _MEASURED and tokenizer in SPLIT_AT_SPACES
    }
    return replace(plan, details={**plan.details, **checks, "dialogue ids": DialogueIds()})


def warn_of_unsplit_texts(systems: Iterable[Checked]) -> Iterator[str]:
    """Yield a warning for each tokenizer that could not split some texts of the systems."""
    by_tokenizer: dict[Tokenizer, list[object]] = {}
    for checks in systems:
        for fold, counts in checks:
            if isinstance(fold, UnsplitTexts):
                by_tokenizer.setdefault(fold.tokenizer, []).append(counts)
    for tokenizer, several in by_tokenizer.items():
        texts, unsplit, *letters = map(sum, zip(*several, strict=True))
        if unsplit:
            name = suggest_tokenizer(texts, unsplit, letters)
            yield (
                f"{tokenizer} cannot split {unsplit:,} of {texts:,} responses, whose script puts no spaces between "
                f"words: each sentence counts as one word; choose --tokenizer {name}, "
                f"tokenizer={name!r} in Python"
            )


def warn_of_split_dialogues(
    systems: Mapping[str, Checked], ids_of: Callable[[str], Iterable[Sequence[str]]]
) -> Iterator[str]:
    """Yield a warning for each system with dialogues whose rows are not consecutive.

    `ids_of` gives the ids of a system's dialogues, some at a time, where they are kept.
    """
    for system, checks in systems.items():
        for fold, state in checks:
            if isinstance(fold, DialogueIds) and (split := fold.finish(state)):
                example = split.find_name(ids_of(system))
                what = f"rows of {split.dialogues} dialogues of {system} are not consecutive"
                what += "" if example is None else f", such as those of {example!r}"
                yield f"{what}: each part counts as a dialogue, and intervals are too narrow; sort the rows by dialogue"


@dataclass(frozen=True, eq=False, slots=True)
class SeenIds:
    """The hashes of ids in ascending order, and of those that came back."""

    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    split: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    closed: int = 0
    """How many more came back, in parts that are closed."""


class SplitDialogues(NamedTuple):
    """Dialogues whose rows are not consecutive."""

    dialogues: int
    example: int
    """The hash of the id of one of them."""

    def find_name(self, ids: Iterable[Sequence[str]]) -> str | None:
        """Return the id of the example, where it is among the given ones."""
        for some in ids:
            places = np.flatnonzero(hash_column(TextColumn.from_strings(some)) == np.uint64(self.example))
            if len(places):
                return some[int(places[0])]
        return None


@dataclass(frozen=True)
class DialogueIds(Fact[SeenIds, SplitDialogues | None]):
    """A search for dialogues whose rows are not consecutive."""

    grows = True

    def empty(self) -> SeenIds:
        return SeenIds()

    def gather(self, batch: Batch) -> SeenIds:
        if batch.ids is None:
            return SeenIds()
        hashes, counts = np.unique(hash_column(batch.ids), return_counts=True)
        return SeenIds(hashes, hashes[counts > 1])

    def merge(self, left: SeenIds, right: SeenIds) -> SeenIds:
        both = np.concatenate((left.hashes, right.hashes))
        both.sort(kind="stable")  # two ascending runs
        again = np.zeros(len(both), np.bool_)
        again[1:] = both[1:] == both[:-1]
        split = np.unique(np.concatenate((left.split, right.split, both[again])))
        return SeenIds(both[~again], split, left.closed + right.closed)

    def split_state(self, state: SeenIds, parts: int) -> list[SeenIds]:
        edges = np.array([(number << 64) // parts for number in range(1, parts)], np.uint64)
        hashes, split = (np.split(every, np.searchsorted(every, edges)) for every in (state.hashes, state.split))
        return [SeenIds(*part) for part in zip(hashes, split, strict=True)]

    def close_part(self, state: SeenIds) -> SeenIds:
        """Return how many came back; one of them stays as an example."""
        return SeenIds(split=state.split[:1], closed=state.closed + len(state.split[1:]))

    def finish(self, state: SeenIds) -> SplitDialogues | None:
        return SplitDialogues(state.closed + len(state.split), int(state.split[0])) if len(state.split) else None
