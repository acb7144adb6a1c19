"""Gates: is a system good enough? A yes or no that a build can depend on.

`check_limits`: a system fails if its mean under a key is below or above the limit of that key, or was not computed.
Floors and ceilings are not held to limits: a floor is meant to be low. A key that nobody asked for is most likely
misspelled, so it is an error and no failed gate.

`check_baseline`, without a margin for a key: a system fails if the verdict (`verdict.decide`) is that it is worse than
the baseline (adjusted p below alpha). This gate stops what is shown to be worse and lets pass what might be.

With a margin for a key it fails unless the interval of the difference lies within the margin: the gate lets pass what
is shown to be no more than that much worse (non-inferiority) and stops what might be. Few rows give a wide interval, so
that such a gate needs enough of them; a difference that could not be tested fails it.

Keys for which neither higher nor lower is better (length, entropy) are never worse, and have no gate. With the same
runs and the same seed the answer is always the same.

`assert_no_worse` asks the question of `check_baseline` in a test:

    def test_the_new_model():
        run = dialeval.evaluate("new.txt", "references.txt")
        dialeval.assert_no_worse(run, "baseline/", "bleu-4")
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from dialeval.analysis.alignment import AlignedDialogues, DesignName, align_dialogues
from dialeval.analysis.comparison import Comparison, compare
from dialeval.analysis.difference import DEFAULT_ALPHA, Difference
from dialeval.analysis.pairing import collect_systems, find_key
from dialeval.analysis.slices import Slices, compare_slices
from dialeval.analysis.verdict import check_margins, find_gain, is_acceptable
from dialeval.core.account import FAILURES
from dialeval.core.errors import SettingError, escape_lines, suggest
from dialeval.core.result import Result, Run, load
from dialeval.metrics.registry import split_names
from dialeval.stats.resampling import DEFAULT_SEED

Saved = Run | str | os.PathLike[str]
"""A run, or the folder that it is saved in."""

"""A text of a row is shown up to here."""
_LEAST_P = 0.001
"""Smaller p-values are not shown in full."""
_MOST_DECIMALS = 15


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition on a system under a key, and whether it holds."""

    system: str
    key: str
    asked: str
    """The condition in words: `at least 0.2`."""
    failure: str | None = None
    """A line that says what is wrong; None where the gate holds."""
    difference: Difference | None = None
    """What was found, for a gate that asks for no worse than a baseline."""


def check_limits(
    results: Mapping[str, Result],
    lowest: Mapping[str, float],
    highest: Mapping[str, float],
    allow_missing: float = 0.0,
    baseline: str | None = None,
) -> Iterator[Gate]:
    """Yield a gate for each key and system: its mean was computed, of all that is due, and is within its limits.

    `allow_missing`: the fraction of what is due that may have no value. `baseline`: a system that has no limit and
    whose values may not be missing either.
    """
    _check_fraction(allow_missing)
    known = dict.fromkeys(key for result in results.values() for key in (*result, *result.skipped))
    lowest, highest = ({find_key(key, known): end for key, end in each.items()} for each in (lowest, highest))
    for key in (*lowest, *highest):
        if key not in known:
            raise SettingError(f"no system has {key!r}, so it cannot be checked against a limit; {suggest(key, known)}")
    for sign, words, limits in ((1, "at least", lowest), (-1, "at most", highest)):
        for key, limit in limits.items():
            for system, result in results.items():
                if result.role == "system":
                    mean = result[key].mean if key in result else None
                    shown = "not computed" if mean is None else _round(mean, limit)[0]
                    fails = mean is None or not sign * mean >= sign * limit
                    fails = fails and system != baseline
                    failure = f"{key} of {system} is {shown}, limit {limit:g}" if fails else None
                    if failure is None and key in result:
                        failure = _explain_missing(key, system, result[key].missing, result[key].units, allow_missing)
                    if failure is not None or system != baseline:
                        yield Gate(system, key, f"{words} {limit:g}", failure)


def _check_fraction(allow_missing: float) -> None:
    if not 0 <= allow_missing <= 1:
        raise SettingError(f"what may be missing is a fraction from 0 to 1, not {allow_missing:g}")


def _explain_missing(key: str, system: str, missing: int, due: int, allowed: float, what: str = "") -> str | None:
    """Return why a value does not count: more than the allowed fraction of what is due has none (`what`: in words)."""
    if missing <= allowed * due:
        return None
    what = what or f"is a value of {due - missing:,} of {due:,}: {missing:,} failed or have none"
    return f"{key} of {system} {what}; --allow-missing {math.ceil(1000 * missing / due) / 1000:g} lets so many pass"


def check_baseline(
    comparison: Comparison, margins: Mapping[str, float], named: bool = False, allow_missing: float = 0.0
) -> Iterator[Gate]:
    """Yield a gate for each system and key: it is no worse than the baseline; `margins` by key, in units of the metric.

    A value of less than what is due, or of less than that of the baseline, fails it, but for the fraction
    `allow_missing`, which is also the rate of failures that is allowed. So does a baseline with less than half.
    `named`: the metrics were asked for, so that one that cannot be compared is an error; so it is where none can be, or
    where less than half of the rows of either system are compared.
    """
    _check_fraction(allow_missing)
    margins = {find_key(key, comparison.keys): margin for key, margin in margins.items()}
    check_margins(margins, {row.key: row.better for row in comparison.differences})
    for system, design in comparison.designs.items():
        if design.compares_few:
            few = f"a gate takes half of the rows of {comparison.baseline} and {system}, or more"
            found = design.describe(comparison.baseline, system)
            raise SettingError(f"{few}; score both on the same dialogues, or use --design unpaired. {found}")
    gated = [
        replace(row, margin=margins.get(row.key, row.margin))
        for row in comparison.differences
        if row.evidence or row.key in margins or row.margin is not None
    ]
    if comparison.differences and not gated:
        raise SettingError("no metric says which replies are better, so no gate can fail; name the metrics of the gate")
    lacking = [row for row in (comparison.differences if named else gated) if _is_lacking(row)]
    for row in lacking:
        if named or row.margin is not None or len(lacking) == len(gated):
            raise SettingError(f"{row.system} cannot be compared with {row.baseline} on {row.key}: {row.reason}")
    for row in gated:
        if _is_lacking(row):
            continue
        if row.margin is not None:
            asked, loss = f"worse than {row.baseline} by at most {row.margin:g}", -find_gain(row)[0]
            by = "could not be tested" if math.isnan(loss) else f"may be worse by {_round(loss, row.margin)[0]}"
            failure = f"{_state_means(row)}: it {by}, the margin is {row.margin:g}"
        else:
            asked, failure = f"no worse than {row.baseline}", f"{_state_means(row)}: {_state_loss(row)}"
        missing = _explain_missing(row.key, row.system, row.missing[1], row.due[1], allow_missing)
        design = comparison.designs[row.system]
        if missing is None and design.name == "common":  # what the baseline answered, and the system was not asked
            own, all_units = design.system_units, design.baseline_units
            what = f"is of {own:,} {design.unit}, and that of {row.baseline} of {all_units:,}"
            missing = _explain_missing(row.key, row.system, all_units - own, all_units, allow_missing, what)
        if missing is None:
            least = max(allow_missing, 0.5)
            missing = _explain_missing(row.key, row.baseline, row.missing[0], row.due[0], least)
        allowed = row.key == FAILURES and 0 < row.mean <= allow_missing
        yield Gate(row.system, row.key, asked, missing if allowed or is_acceptable(row) else failure, row)


def _is_lacking(row: Difference) -> bool:
    """Return whether a gate has nothing to decide about; with a margin, what could not be tested fails it."""
    return row.reason is not None and (math.isnan(row.difference) or (math.isnan(row.p) and row.margin is None))


def check_slices(found: Slices, allow_missing: float = 0.0) -> Iterator[Gate]:
    """Yield a gate for each system, metric and slice: it is no worse than the baseline, corrected for all slices."""
    for each in found.slices:
        place = f"{each.field} is {each.label}"
        for row in each.differences:
            if row.evidence and not math.isnan(row.p):
                failure = f"{_state_means(row)} where {place}: {_state_loss(row)}"
                asked = f"no worse than {row.baseline} where {place}"
                missing = _explain_missing(row.key, row.system, row.missing[1], row.due[1], allow_missing)
                missing = missing and f"{missing} (where {place})"
                allowed = row.key == FAILURES and 0 < row.mean <= allow_missing
                yield Gate(row.system, row.key, asked, missing if allowed or is_acceptable(row) else failure, row)


def _state_means(row: Difference) -> str:
    mean, baseline = _round(row.mean, row.baseline_mean)
    return f"{row.key} of {row.system} is {mean}, of {row.baseline} {baseline}"


def _state_loss(row: Difference) -> str:
    p = "< 0.001" if row.adjusted_p < _LEAST_P else f"= {row.adjusted_p:.3f}"
    return f"significantly worse (adjusted p {p})"


def _round(*values: float) -> list[str]:
    """Return numbers with three significant digits of the largest, or more if it takes more to tell them apart."""
    size = max(map(abs, filter(math.isfinite, values)), default=0.0)
    decimals = max(2 - math.floor(math.log10(size)), 0) if size else 0
    while True:
        texts = [f"{value:,.{decimals}f}" for value in values]
        if len({*texts}) >= len({*values}) or decimals > _MOST_DECIMALS:
            return texts
        decimals += 1


def assert_no_worse(
    run: Saved,
    baseline: Saved,
    metrics: str | Iterable[str],
    *,
    margin: float | Mapping[str, float] | None = None,
    alpha: float = DEFAULT_ALPHA,
    seed: int = DEFAULT_SEED,
    rows: int = 3,
    design: DesignName | None = None,
    adjust: str | Iterable[str] | None = None,
    by: str | Iterable[str] | None = None,
    cluster: str | None = None,
    allow_missing: float = 0.0,
) -> Comparison:
    """Raise AssertionError if a system is worse than a baseline, for use in a test.

    Without a margin it fails if the system is significantly worse. With a margin it fails unless the confidence
    interval shows that the system is worse by no more than the margin (non-inferiority).

    Args:
        run: A run, or the folder of a saved one.
        baseline: A run of one system, or the folder of a saved one.
        metrics: The metrics, in a comma-separated text or a list; their p-values are adjusted together.
        margin: By how much a metric may be worse: one number, or one by metric.
        alpha: The significance level.
        seed: The seed of the test.
        rows: The number of dialogues that lost most to show for each metric in the message.
        design: `"paired"` (the same rows or dialogues in both systems), `"common"` (paired on those that both have),
            `"openings"` (paired on the rows before user turns differ), `"ids"` (paired by id, whatever users said) or
            `"unpaired"` (independent samples); None: chosen by what the systems have in common.
        adjust: Fields whose mix is made equal in an unpaired design.
        by: Fields that the runs kept: it also fails if the system is significantly worse in a slice, corrected for all.
        cluster: A field that the runs kept, such as the user, whose values are sampled as wholes.
        allow_missing: The fraction of what is due that may have no value, such as replies that failed.

    Returns:
        The comparison, if no system is worse.

    Raises:
        AssertionError: A system is worse; the message has values, interval, p-value and the dialogues that lost most.
        SettingError: A metric cannot be compared, or has no better direction.

    Examples:
        >>> import dialeval
        >>> references = [f"a table for {n}" for n in range(12)]
        >>> before = dialeval.evaluate({"old": references}, references, metrics="rouge-l")
        >>> after = dialeval.evaluate({"new": ["sorry ?"] * 12}, references, metrics="rouge-l")
        >>> dialeval.assert_no_worse(before, before, "rouge-l").tests
        1
        >>> try:
        ...     dialeval.assert_no_worse(after, before, "rouge-l")
        ... except AssertionError as error:
        ...     print(str(error).splitlines()[0])
        rouge-l of new is 0.00, of old 1.00: significantly worse (adjusted p < 0.001)
    """
    runs = {label: one if isinstance(one, Run) else load(one) for label, one in (("baseline", baseline), ("run", run))}
    known = collect_systems(runs)
    size = len(runs["baseline"])
    names = [name for name in list(known)[:size] if known[name].role == "system"]
    if len(names) != 1:
        raise SettingError(f"a baseline is a run of one system; this one has {', '.join(names) or 'none'}")
    names += [name for name in list(known)[size:] if known[name].role == "system"]
    found = compare(
        runs,
        baseline=names[0],
        systems=names,
        metrics=split_names(metrics) if isinstance(metrics, str) else metrics,
        alpha=alpha,
        seed=seed,
        design=design,
        adjust=adjust,
        pairwise=False,
        margin=margin,
        cluster=cluster,
    )
    undirected = [row.key for row in found.differences if row.better is None]
    if undirected:
        raise SettingError(f"neither higher nor lower values of {undirected[0]} are better, so it can never be worse")
    lines: list[str] = []
    for gate in check_baseline(found, {}, named=True, allow_missing=allow_missing):
        if gate.failure is not None and gate.difference is not None:
            aligned = align_dialogues({name: known[name] for name in (names[0], gate.system)}, design=design)
            lost = _list_losses(gate.difference, aligned, rows)
            lines += [gate.failure, *_describe(gate.difference, found), *lost]
    if by is not None:
        shared: dict[str, Any] = {"alpha": alpha, "seed": seed, "design": design, "cluster": cluster}
        sliced = compare_slices(runs, by, baseline=names[0], systems=names, metrics=found.keys, **shared)
        lines += [gate.failure for gate in check_slices(sliced, allow_missing) if gate.failure is not None]
    if lines:
        raise AssertionError(escape_lines("\n".join(lines)))
    return found


def _describe(row: Difference, found: Comparison) -> Iterator[str]:
    known = row.interval is not None and not math.isnan(row.interval[0])
    interval = " [{:+.4g}, {:+.4g}]".format(*row.interval or ()) if known else ""
    design, tests = found.designs[row.system], len(found.differences)
    over = f"{design.clusters:,} {design.unit}"
    yield f"  {design.describe(row.baseline, row.system)}"
    yield f"  difference {row.difference:+.4g}{interval}, {100 * found.confidence:g}% over {over}"
    adjusted = f", adjusted for {tests} tests {row.adjusted_p:.4g}" if tests > 1 else ""
    yield f"  p {row.p:.4g}{adjusted} (seed {found.seed}); alpha {found.alpha:g}"
    if row.reason is not None:
        yield f"  not tested: {row.reason}"
    if row.wins is not None:
        yield f"  won {row.wins:,}, tied {row.ties:,}, lost {row.losses:,}"


def _list_losses(row: Difference, aligned: AlignedDialogues, most: int) -> Iterator[str]:
    """List the dialogues in which the system lost most."""
    losses = aligned.differences(row.system, row.key) * (-1.0 if row.better == "higher" else 1.0)
    worst = [at for at in aligned.order_by_loss(row.system, row.key)[:most].tolist() if losses[at] > 0]
    if worst:
        yield "  lost most:"
    values = [aligned.list_values(name, row.key) for name in aligned.systems]
    for at in worst:
        before, after = (column[at] for column in values)
        yield f"    {aligned.name_dialogue(at)}: {before:.4g} -> {after:.4g}"
