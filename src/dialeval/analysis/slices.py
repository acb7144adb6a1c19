"""Slices: where does a system fail? The values of parts of the rows, and how systems differ in each part.

    compare_slices(run, by=["domain", "turn"])

A slice is the rows that have a value in a field, and it is a `Run` (`values.cut`). Each slice is compared with the
baseline like any run, and the p-values of all slices, keys and systems are one family (Holm): of many slices some look
bad by chance. A slice of fewer than `LEAST_DIALOGUES` dialogues is shown and not tested. Unless metrics are named, one
key of each family for which higher or lower is better is tested (`choose_main_keys`): every further test makes all
others less likely to find something.

Fields are

    turn       the number of the turn or, where rows do not say it, the place of the row in its dialogue
    history    how many turns the context has
    length     words of the reference (the mean of several); of the response where there is no reference and one system
    any other  a field of the rows that the run kept (`evaluate(keep=...)`, `--by`); a row with several values is in
               several slices, and rows without one are a slice of their own

Numbers of more than `MOST_NUMBERS` different values are cut into thirds of the rows. Of more than `MOST_VALUES` texts
the most frequent are slices, and all others are one. All systems are cut at the same values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import asdict

from dialeval.analysis.alignment import Alignment, DesignName, align
from dialeval.analysis.comparison import Comparison, adjust_together, choose_trials, compare_tested, draw_more
from dialeval.analysis.difference import DEFAULT_ALPHA, MOST_DRAWS, Difference, Settings
from dialeval.analysis.pairing import Runs, choose_main_keys, collect_compared, find_keys
from dialeval.analysis.unpaired import NO_VALUE
from dialeval.analysis.values import cut, find_better, require_table
from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.display import Displayable, Tabular, count_names
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Run
from dialeval.core.rowtable import NO_TURN, RowTable, Texts
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.io.rows import split_fields

LEAST_DIALOGUES = 10
"""A slice of fewer is not tested: few can be significant, and each makes all other tests harder to pass."""

_SHARE = 0.5
"""An adjusted p below this share of alpha must be possible: slices have one mark, and many tests take long."""
FOUND = ("turn", "length", "history")
"""What every run can be cut by, without a field that it kept."""
MOST_NUMBERS = 8
MOST_VALUES = 20
RANGES = 3
OTHER = "(other values)"

Parts: TypeAlias = Iterator[tuple[str, dict[str, Ints]]]
"""The slices of a field: its label, and by system the numbers of its rows."""


@dataclass(frozen=True)
class Slice:
    """The rows that have a value in a field, as a run, and how its systems differ.

    Attributes:
        field: The field.
        label: The value, or the range of values.
        run: The run of these rows.
        places: By system, the positions of these rows in the whole run, from 0.
        cuts_dialogues: Whether the slice has only a part of some dialogue.
        comparison: The comparison of the systems in this slice; None where it was not tested.
        reason: Why it was not tested, where other slices were.

    Examples:
        >>> import dialeval
        >>> rows = [{"response": "at nine sharp", "city": "Bern"}] * 12 + [{"response": "no", "city": "Basel"}] * 12
        >>> shorter = [{**row, "response": "no"} for row in rows]
        >>> run = dialeval.evaluate({"old": rows, "new": shorter}, metrics="length", keep="city")
        >>> basel = dialeval.compare_slices(run, by="city", metrics=["length"]).of("city")[0]
        >>> basel.label, basel.units, basel.estimate("old", "length").mean
        ('Basel', 12, 1.0)
    """

    field: str
    label: str
    run: Run
    places: Mapping[str, Ints]
    cuts_dialogues: bool = False
    comparison: Comparison | None = None
    reason: str | None = None

    @property
    def table(self) -> RowTable:
        """The rows of the slice; of the first system, where systems have others."""
        return require_table(next(iter(self.run.values())))

    @property
    def units(self) -> int:
        """The number of rows."""
        return len(self.table)

    @property
    def dialogues(self) -> int:
        """The number of dialogues with a row in the slice."""
        return len(self.table.offsets) - 1

    @property
    def unit(self) -> str:
        """What is counted as a dialogue: `dialogues`, or `rows` that are not part of one."""
        return "rows" if self.table.dialogues is None else "dialogues"

    @property
    def differences(self) -> Sequence[Difference]:
        """The differences of all systems and metrics; empty where nothing was tested."""
        return () if self.comparison is None else self.comparison.differences

    def estimate(self, system: str, key: str) -> Estimate | None:
        """Return the value of a system under a metric.

        Args:
            system: The system.
            key: The metric.

        Returns:
            The value; None if there is none.
        """
        return self.run[system].get(key) if system in self.run else None

    def difference(self, system: str, key: str) -> Difference | None:
        """Return the difference of a system to the baseline under a metric.

        Args:
            system: The system.
            key: The metric.

        Returns:
            The difference; None if there is none.
        """
        return next((row for row in self.differences if (row.system, row.key) == (system, key)), None)

    def to_dict(self) -> JsonObject:
        """Return plain data for JSON; NaN is None.

        Returns:
            The data.
        """
        return {
            "field": self.field,
            "slice": self.label,
            "units": self.units,
            "dialogues": self.dialogues,
            "systems": {name: system["metrics"] for name, system in self.run.to_dict()["systems"].items()},
            "differences": [row.to_dict() for row in self.differences],
            "not_tested": self.reason,
        }


class Loss(NamedTuple):
    """A slice in which a system is worse than the baseline, and by how much."""

    where: Slice
    by: Difference


_COMPARED = ("baseline", "difference", "difference_low", "difference_high", "p", "adjusted_p", "significant")


@dataclass(frozen=True, repr=False)
class Slices(Tabular, Displayable):
    """The result of `dialeval.compare_slices`: every slice of a run, field by field.

    Attributes:
        whole: The run of all rows.
        by: The fields.
        slices: The slices, in the order of fields and values.
        keys: The metrics that are tested and shown.

    Examples:
        >>> import dialeval
        >>> rows = [{"response": "at nine sharp", "city": "Bern"}] * 12 + [{"response": "no", "city": "Basel"}] * 12
        >>> shorter = [{**row, "response": "no"} for row in rows]
        >>> run = dialeval.evaluate({"old": rows, "new": shorter}, metrics="length", keep="city")
        >>> found = dialeval.compare_slices(run, by="city", metrics=["length"])
        >>> found
        <Slices: 2 by 1 field (city), 2 systems (old, new), 2 tests>
        >>> found.to_pandas().query("system == 'new'")[["slice", "mean", "difference"]].values.tolist()
        [['Basel', 1.0, 0.0], ['Bern', 1.0, -2.0]]
    """

    whole: Run
    by: Sequence[str]
    slices: Sequence[Slice]
    keys: Sequence[str]

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons of all slices that were tested, with p-values adjusted together."""
        return [each.comparison for each in self.slices if each.comparison is not None]

    @property
    def differences(self) -> list[Difference]:
        """The differences of all slices."""
        return [row for each in self.comparisons for row in each.differences]

    def __repr__(self) -> str:
        fields, systems = count_names(self.by, "field"), count_names(self.whole, "system")
        return f"<Slices: {len(self.slices):,} by {fields}, {systems}, {self.tests:,} tests>"

    def lines(self) -> list[JsonObject]:
        """Return a line per slice, system and metric: the value, and its difference to the baseline where tested.

        Returns:
            The lines, as `to_pandas` has them.
        """
        found = []
        for each in self.slices:
            place = {"field": each.field, "slice": each.label, "units": each.units, "dialogues": each.dialogues}
            for system, key, own in ((system, *item) for system, result in each.run.items() for item in result.items()):
                low, high = own.interval or (None, None)
                value = {"mean": own.mean, "std": own.std, "low": low, "high": high, "scored": own.scored}
                row, difference = each.difference(system, key), dict.fromkeys(_COMPARED)
                if row is not None:
                    low, high = row.interval or (None, None)
                    ends = {"difference_low": low, "difference_high": high}
                    difference |= {name: getattr(row, name) for name in _COMPARED if name not in ends} | ends
                line = {**place, "system": system, "metric": key, **value, **difference, "not_tested": each.reason}
                found.append(line)
        return found

    def of(self, field: str) -> list[Slice]:
        """Return the slices of one field, in the order of its values.

        Args:
            field: The field.

        Returns:
            The slices.
        """
        return [each for each in self.slices if each.field == field]

    def worst_first(self, field: str, key: str) -> list[Slice]:
        """Return the slices of one field, those first in which a system loses most or has the worst value.

        Args:
            field: The field.
            key: The metric.

        Returns:
            The slices.
        """
        return sorted(self.of(field), key=lambda each: self._find_least_gain(each, key))

    def _find_least_gain(self, each: Slice, key: str) -> float:
        if self.comparisons:
            return min((_gain(row) for row in each.differences if row.key == key), default=math.inf)
        sign = -1 if find_better(self.whole, key) == "lower" else 1
        values = [sign * result[key].mean for result in each.run.values() if key in result]
        return min((value for value in values if not math.isnan(value)), default=math.inf)

    def worst(self, system: str, keys: Sequence[str] | None = None) -> Loss | None:
        """Find the slice in which a system loses most to the baseline, among significant differences.

        Args:
            system: The system.
            keys: Only these metrics; None: all.

        Returns:
            The slice and the difference; None where none is significant.
        """
        losses = [
            Loss(each, row)
            for each in self.slices
            for row in each.differences
            if row.system == system and row.significant and row.worse and (keys is None or row.key in keys)
        ]
        return min(losses, key=lambda loss: _gain(loss.by), default=None)

    @property
    def tests(self) -> int:
        """The number of tests in all slices."""
        return sum(not math.isnan(row.p) for row in self.differences)

    def to_dict(self) -> JsonObject:
        """Return plain data for JSON; NaN is None.

        Returns:
            The data.
        """
        first = asdict(self.comparisons[0]) if self.comparisons else None
        return {
            "by": list(self.by),
            "baseline": first and first["baseline"],
            "settings": first and {name: first[name] for name in Settings.__struct_fields__},
            "tests": self.tests,
            "slices": [each.to_dict() for each in self.slices],
        }


def _gain(row: Difference) -> float:
    """Return the effect size, above zero where the system is better."""
    return -row.size if row.worse else row.size


def compare_slices(
    runs: Runs,
    by: str | Iterable[str],
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: Iterable[str] | None = None,
    compared: bool = True,
    alpha: float = DEFAULT_ALPHA,
    trials: int | None = None,
    design: DesignName | None = None,
    most_tests: int | None = None,
    **settings: Any,
) -> Slices:
    """Split the rows of a run by fields, and compare the systems in every slice.

    The p-values of all slices, metrics and systems are adjusted as one family. Slices of fewer than ten dialogues are
    shown and not tested.

    Args:
        runs: A run, a list of runs, or a mapping of names to runs.
        by: Fields in a comma-separated text or a list: `turn`, `length` (of the reference), `history` (turns of the
            context), or fields that the run kept (`evaluate(keep=...)`).
        baseline: The system that the others are compared with; None: the first.
        systems: Only these systems; None: all but floor and ceiling systems.
        metrics: The metrics to test and show; None: one of each family for which higher or lower is better.
        compared: False: values only, without tests.
        alpha: The significance level.
        trials: Trials of the randomization test; None: enough for the number of tests.
        design: `"paired"` (the same rows or dialogues in both systems), `"common"` (paired on those that both have),
            `"openings"` (paired on the rows before user turns differ), `"ids"` (paired by id, whatever users said) or
            `"unpaired"` (independent samples); None: chosen by what the systems have in common.
        most_tests: The largest number of tests.
        **settings: Further arguments of `dialeval.compare`.

    Returns:
        The slices, field by field.

    Raises:
        SettingError: The run did not keep a field, or keeps no rows.

    Examples:
        >>> import dialeval
        >>> rows = [{"response": "at nine sharp", "city": "Bern"}] * 12 + [{"response": "no", "city": "Basel"}] * 12
        >>> shorter = [{**row, "response": "no"} for row in rows]
        >>> run = dialeval.evaluate({"old": rows, "new": shorter}, metrics="length", keep="city")
        >>> found = dialeval.compare_slices(run, by="city", metrics=["length"])
        >>> [(each.label, each.units, each.difference("new", "length").difference) for each in found.slices]
        [('Basel', 12, 0.0), ('Bern', 12, -2.0)]
    """
    whole = Run(collect_compared(runs, baseline, systems), __version__)
    first, *others = whole
    keys = choose_main_keys(whole)
    if metrics is not None:
        keys = find_keys(metrics, whole.keys_in_order, "no system has", "there are")
    fields = split_fields(by)
    tables = {name: require_table(result) for name, result in whole.items()}
    check_fields(list(tables.values()), fields)
    found = [
        _make_slice(whole, field, label, here)
        for field in fields
        for label, places in split_by_field(tables, field)
        if (here := {name: rows for name, rows in places.items() if len(rows)})
    ]
    if not compared or not others:
        return Slices(whole, fields, found, keys)
    alignments = {name: align(whole[first], whole[name], design) for name in others}
    found = [replace(each, reason=_explain_untested(each, first, alignments)) for each in found]
    testable = max(1, sum(each.reason is None for each in found))
    pairs = sum(key in whole[first] and key in whole[name] for name in others for key in keys)
    asked = trials is not None
    if trials is None:
        most = math.inf if most_tests is None else max(most_tests, testable * len(keys))
        trials = choose_trials(int(min(testable * pairs, most)), alpha, _SHARE)
    # A slice has the design of the whole; of units in common some may be in the slice of one system only.
    designs = {alignment.design.name for alignment in alignments.values()}
    if design not in ("openings", "ids"):
        design = "unpaired" if designs == {"unpaired"} else "common" if "unpaired" not in designs else None
    settings |= {"alpha": alpha, "design": design}
    settings["most_tests"] = None if most_tests is None else most_tests // testable
    while True:
        compared_slices, done = [], []
        for each in found:
            shared = [key for key in keys if all(key in result for result in each.run.values())]
            try:
                if each.reason is None:
                    compared_slices.append(
                        compare_tested(each.run, metrics=shared, pairwise=False, trials=trials, **settings)
                    )
            except SettingError as error:
                each = replace(each, reason=str(error))
            done.append(each)
        together = adjust_together(compared_slices)
        tests = [test for _, tested in compared_slices for test in tested]
        rows = [row for each in together for row in each.differences]
        by_slice = {f"{at} {name}": each for at, part in enumerate(together) for name, each in part.designs.items()}
        drawn = Settings(alpha=alpha, trials=trials)
        more = min(draw_more(tests, rows, by_slice, drawn).trials, MOST_DRAWS // max(1, len(tests)))  # all are kept
        if asked or more <= trials:
            break
        trials = more
    adjusted = iter(together)
    done = [each if each.reason is not None else replace(each, comparison=next(adjusted)) for each in done]
    return Slices(whole, fields, done, keys)


def _make_slice(whole: Run, field: str, label: str, places: Mapping[str, Ints]) -> Slice:
    systems = {name: cut(whole[name], rows, f"{field}={label}") for name, rows in places.items()}
    tables = ((require_table(whole[name]), rows) for name, rows in places.items())
    cuts = any(len(rows) < np.diff(table.offsets)[np.unique(table.clusters[rows])].sum() for table, rows in tables)
    return Slice(field, label, Run(systems, whole.version), places, cuts)


def _explain_untested(each: Slice, first: str, alignments: Mapping[str, Alignment]) -> str | None:
    """Return why a slice is not tested; None where it is."""
    if min(len(require_table(result).offsets) - 1 for result in each.run.values()) < LEAST_DIALOGUES:
        return f"fewer than {LEAST_DIALOGUES} {each.unit}"
    if len(each.places) <= len(alignments):
        return "some system has no rows here"
    for name, alignment in alignments.items():
        # Rows that are matched by position cannot be matched again within a slice of other positions.
        if alignment.design.by == "position" and not np.array_equal(each.places[first], each.places[name]):
            return "the systems do not have the same rows here"
    return None


def list_kept_fields(run: Run) -> list[str]:
    """Return the fields that a run kept to be cut by."""
    tables = [result.table for result in run.values() if result.role == "system"]
    known = [table for table in tables if table is not None]
    return [name for name in list_fields(known) if name not in FOUND] if known and len(known) == len(tables) else []


def list_fields(tables: Sequence[RowTable]) -> list[str]:
    """Return what rows can be cut by: fields that were kept in all tables, then what is found in every row."""
    kept = [name for name in tables[0].fields if all(name in table.fields for table in tables)]
    return [*(name for name in kept if name not in FOUND), *FOUND]


def check_fields(tables: Sequence[RowTable], fields: Sequence[str]) -> None:
    """Refuse a field that rows cannot be cut by (SettingError)."""
    there = ", ".join(list_fields(tables))
    if not fields:
        raise SettingError(f"no field is named; there are {there}")
    for field in fields:
        if field == "system":
            raise SettingError("every slice already compares the systems; name a field other than system")
        if field not in list_fields(tables):
            remedy = f"score the rows again with --by {field} (keep=[{field!r}])"
            raise SettingError(f"the run did not keep a field {field!r}, only {there}; {remedy}")


def split_by_field(tables: Mapping[str, RowTable], field: str) -> Parts:
    """Return the slices of one field; some may be without a row."""
    if field in FOUND:
        return _split_by_number({name: _number_rows(table, field, len(tables) == 1) for name, table in tables.items()})
    values = {name: list(table.fields[field]) for name, table in tables.items()}
    numbers = _parse_numbers(values)
    return _split_by_text(values) if numbers is None else _split_by_number(numbers)


def _number_rows(table: RowTable, field: str, alone: bool) -> Floats:
    """Return a number of each row, NaN where it has none."""
    if field == "turn":
        if table.turns is not None:
            return np.where(table.turns == NO_TURN, np.nan, table.turns.astype(np.float64))
        return (np.arange(len(table)) - table.offsets[table.clusters]).astype(np.float64)
    if field == "history":
        contexts = table.texts.get("context")
        if contexts is None or isinstance(contexts, TextColumn):
            raise SettingError("the run has no contexts, so it cannot be sliced by history")
        return (contexts.ends - contexts.starts).astype(np.float64)
    texts = table.texts.get("reference") or (table.texts.get("response") if alone else None)
    if texts is None:
        raise SettingError("the run has no references, and responses are of other lengths in every system")
    return _measure_lengths(texts)


def _measure_lengths(texts: Texts) -> Floats:
    """Return the words of the texts of each row; of several the mean."""
    column = RaggedColumn.from_texts(texts) if isinstance(texts, TextColumn) else texts
    words = np.concatenate(([0], np.cumsum([len(text.split()) for text in column.values])))
    with np.errstate(invalid="ignore"):  # 0 / 0: a row without a text
        return np.asarray((words[column.ends] - words[column.starts]) / (column.ends - column.starts))


def _parse_numbers(values: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, Floats] | None:
    """Return the values of a field as numbers; None where a row has several, or something that is none."""
    if any(len(labels) > 1 for lists in values.values() for labels in lists):
        return None
    try:
        numbers = {
            name: [float(labels[0]) if labels else math.nan for labels in lists] for name, lists in values.items()
        }
    except ValueError:
        return None
    return {name: np.array(column, np.float64) for name, column in numbers.items()}


def _split_by_number(values: Mapping[str, Floats]) -> Parts:
    """Yield a slice for each number, or for each third of the rows where there are too many."""
    known = np.sort(np.concatenate([column[np.isfinite(column)] for column in values.values()]))
    different: Floats = np.unique(known)
    edges = different[1:]
    if len(different) > MOST_NUMBERS:
        edges = np.setdiff1d(known[[len(known) * part // RANGES for part in range(1, RANGES)]], different[:1])
    groups = {name: np.searchsorted(edges, column, "right") for name, column in values.items()}
    for number in range(len(edges) + 1 if len(different) else 0):
        inside = different[np.searchsorted(edges, different, "right") == number]
        ends = inside[[0, -1]].tolist()
        low, high = (str(int(end)) if end.is_integer() else f"{end:.4g}" for end in ends)
        label = low if low == high else f"{low}–{high}"
        yield label, {name: np.flatnonzero((groups[name] == number) & np.isfinite(values[name])) for name in values}
    yield NO_VALUE, {name: np.flatnonzero(~np.isfinite(column)) for name, column in values.items()}


def _split_by_text(values: Mapping[str, Sequence[Sequence[str]]]) -> Parts:
    """Yield a slice for each text, the most frequent first."""
    counts = Counter(label for lists in values.values() for labels in lists for label in set(labels))
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    named = ordered if len(ordered) <= MOST_VALUES else ordered[: MOST_VALUES - 1]
    places: dict[str, dict[str, list[int]]] = {label: {name: [] for name in values} for label in named}
    rest: dict[str, dict[str, list[int]]] = {label: {name: [] for name in values} for label in (OTHER, NO_VALUE)}
    for name, lists in values.items():
        for row, labels in enumerate(lists):
            for label in dict.fromkeys(labels):
                if label in places:
                    places[label][name].append(row)
            if any(label not in places for label in labels):
                rest[OTHER][name].append(row)
            if not labels:
                rest[NO_VALUE][name].append(row)
    for label, by_system in (*places.items(), *rest.items()):
        yield label, {name: np.array(rows, np.int64) for name, rows in by_system.items()}
