"""Interval, p, marks, bold values, verdict and gates of a comparison agree: all designs, metrics and corrections."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval
from dialeval.analysis.comparison import Comparison, compare, find_best_systems
from dialeval.analysis.difference import Difference
from dialeval.analysis.gates import check_baseline
from dialeval.analysis.verdict import decide
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports.comparisons import choose_mark
from dialeval.reports.formatting import BETTER, DIFFERENT, UNTESTED, WORSE

KINDS = {"rouge-l": "fraction", "accuracy": "yes/no", "call-errors": "count", "length": "count", "latency": "skewed"}


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Draw systems with items of several kinds in dialogues, and with texts for corpus values."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dialogues, shift = draw(st.integers(2, 25)), draw(st.sampled_from([0.0, 0.1, 0.4]))
    same, most = draw(st.booleans()), draw(st.sampled_from([1, 3]))
    sizes = rng.integers(1, most + 1, dialogues)
    systems = {}
    for at, name in enumerate(draw(st.sampled_from(["ab", "abc"]))):
        own = sizes if same else rng.integers(1, most + 1, dialogues)
        offsets = np.concatenate([[0], np.cumsum(own)])
        rows = int(offsets[-1])
        texts = [" ".join(f"w{word}" for word in rng.integers(0, 4 + 8 * at, 5)) for _ in range(rows)]
        references = ["w0 w1 w2 w3 w4"] * rows
        result = dialeval.evaluate({name: texts}, references, metrics="sacrebleu,distinct-1")[name]
        hard = np.repeat(rng.random(dialogues), own)
        values = {
            "fraction": np.clip(hard + 0.2 * rng.normal(size=rows) + shift * at, 0, 1),
            "yes/no": (hard + shift * at > draw(st.sampled_from([-1.0, 0.3, 0.8]))).astype(float),
            "count": np.minimum(rng.poisson(3 + 3 * shift * at, rows) / 10, 1.0),
            "skewed": np.where(rng.random(rows) < 0.2, rng.lognormal(size=rows), 0.0) + shift * at,
        }
        estimates = dict(result.estimates)
        for key, kind in KINDS.items():
            items = np.where(rng.random(rows) < draw(st.sampled_from([0.0, 0.1])), math.nan, values[kind])
            known = items[~np.isnan(items)]
            mean = float(known.mean()) if len(known) else math.nan
            estimates[key] = Estimate(mean, 0.0, rows, len(known), scores=items, signature=Signature.of(key))
        table = RowTable(offsets, [f"d{number}" for number in range(dialogues)])
        systems[name] = Result(estimates, table=table, contributions=result.contributions)
    return Run(systems, "0")


def excludes_0(interval: tuple[float, float] | None) -> bool:
    return interval is not None and not interval[0] <= 0 <= interval[1]


def check(found: Comparison, run: Run) -> None:
    best = find_best_systems(run, found.keys, comparison=found)
    numbers = {(each.system, each.key): each for each in found.verdict.numbers}
    try:
        gates = {(gate.system, gate.key): gate for gate in check_baseline(found, {})}
    except SettingError:
        gates = {}
    for row in found.differences:
        decision = decide(row)
        assert (decision == "untested") == math.isnan(row.p) == (choose_mark(row) == UNTESTED)
        if math.isnan(row.p):
            assert not row.significant
            continue
        assert row.p <= row.adjusted_p <= 1
        assert row.significant == (row.adjusted_p < found.alpha) == excludes_0(row.adjusted_interval)
        assert (row.p < (1 - found.confidence) * (1 - 1e-9)) == excludes_0(row.interval), row
        assert row.interval is not None
        assert row.interval[0] <= row.difference <= row.interval[1], row
        assert row.interval[0] < row.interval[1], "dialogues that are all the same do not tell a difference exactly"
        if found.alpha <= 1 - found.confidence and row.adjusted_interval is not None:
            (low, high), (least, largest) = row.interval, row.adjusted_interval
            assert least <= low + 1e-12 < high <= largest + 1e-12, "an adjusted interval is never narrower"
        marks = {"better": BETTER, "worse": WORSE, "different": DIFFERENT}
        assert choose_mark(row) == marks.get(decision, "")
        assert row.significant or decision in ("equivalent", "inconclusive")
        assert not row.significant or decision in marks or row.margin is not None or row.left_out is not None
        assert not (decision == "better" and row.left_out == "system")
        assert not (decision == "worse" and row.left_out == "baseline")
        check_bold(row, best.systems.get(row.key), found)
        if (row.system, row.key) in gates:
            failed = gates[row.system, row.key].failure is not None
            assert failed or not row.missing[1], "a gate passes on missing values"
            assert not (failed and decision in ("better", "equivalent")) or row.missing[1]
            assert not (not failed and decision == "worse")
            lost = row.significant and row.evidence and row.worse
            assert failed == (lost or row.missing[1] > 0) or row.margin is not None
        if (row.system, row.key) in numbers:
            assert numbers[row.system, row.key].kind == decision


def check_bold(row: Difference, bold: list[str] | None, found: Comparison) -> None:
    if bold is not None:
        assert row.better is not None
        assert not (decide(row) == "worse" and row.system in bold)
        assert not (decide(row) == "better" and row.baseline in bold)
        assert len(bold) < 1 + len(found.systems), "nothing is bold where nothing differs"
    elif decide(row) in ("better", "worse") and len(found.systems) == 1:
        raise AssertionError("one of two systems is better, and none is bold")


@given(run=runs(), design=st.sampled_from([None, "unpaired"]), more=st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_said_of_a_difference_agrees(run: Run, design: Any, more: st.DataObject) -> None:
    alpha = more.draw(st.sampled_from([0.01, 0.05, 0.2]))
    confidence = more.draw(st.sampled_from([1 - alpha, 0.95]))
    margin = more.draw(st.sampled_from([None, 0.0, 0.05, 0.5]))
    metrics = more.draw(
        st.sampled_from([None, ["rouge-l"], ["latency"], ["accuracy", "call-errors"], ["distinct-1", "sacrebleu"]])
    )
    weight = more.draw(st.sampled_from(["rows", "dialogues"]))
    chosen: Any = {"alpha": alpha, "confidence": confidence, "metrics": metrics, "margin": margin, "weight": weight}
    found = compare(run, design=design, trials=99, resamples=99, **chosen)
    check(found, run)
    assert found.verdict.kind in ("better", "worse", "mixed", "equivalent", "different", "inconclusive", "refused")
    assert found.to_dict()["verdict"]["kind"] == found.verdict.kind
