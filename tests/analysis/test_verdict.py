"""Verdicts as data, margins, clusters above dialogues, weights, and gates of slices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dialeval
from dialeval.analysis.gates import check_baseline
from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports.tables import describe


def result(items: Floats, turns: Ints, fields: dict[str, list[str]] | None = None, key: str = "reward") -> Result:
    known = items[~np.isnan(items)]
    size, signature = len(items), Signature.of(key)
    estimate = Estimate(float(known.mean()), 0.0, size, len(known), scores=items, signature=signature)
    columns = {name: RaggedColumn.from_lists([[value] for value in values]) for name, values in (fields or {}).items()}
    names = [f"d{number}" for number in range(len(turns))]
    return Result({key: estimate}, table=RowTable(offsets_of(turns), names, fields=columns))


def pair(old: Result, new: Result) -> Run:
    return Run({"old": old, "new": new}, "0")


def moved(by: float, rows: int = 40, noise: float = 0.3, **more: Any) -> Run:
    rng = np.random.default_rng(3)
    base, turns = rng.normal(size=rows), np.ones(rows, np.int64)
    away = rng.normal(size=rows)
    after = base + by + noise * (away - away.mean()) / away.std()
    return pair(result(base, turns, **more), result(after, turns, **more))


@pytest.mark.parametrize(
    ("by", "margin", "kind", "passes"),
    [
        (0.4, None, "better", True),
        (-0.4, None, "worse", False),
        (0.05, None, "inconclusive", True),
        (0.05, 0.2, "equivalent", True),
        (0.05, 0.02, "inconclusive", False),
        (0.14, 0.2, "inconclusive", True),
        (-0.4, 0.2, "worse", False),
        (-0.3, 0.5, "equivalent", True),
        (0.4, 0.2, "better", True),
    ],
)
def test_kinds_follow_from_interval_and_margin(by: float, margin: float | None, kind: str, passes: bool) -> None:
    noise = 0.6 if by == 0.14 else 0.3
    found = dialeval.compare(moved(by, noise=noise), margin=margin)
    assert found.verdict.kind == kind
    assert [(each.kind, each.acceptable, each.margin) for each in found.verdict.numbers] == [(kind, passes, margin)]
    (gate,) = check_baseline(found, {})
    assert (gate.failure is None) == passes
    document = found.to_dict()["verdict"]
    assert (document["kind"], document["headline"]) == (kind, found.verdict.headline)
    assert str(found).splitlines() == [found.verdict.headline, *found.verdict.sentences]


def test_equivalence_is_two_one_sided_tests_each_at_half_of_alpha() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(0, 1, 30), rng.normal(0.1, 2, 50)
    for margin in np.linspace(0.4, 1.6, 13).tolist():
        logs = (result(items, np.ones(len(items), np.int64)) for items in (left, right))
        found = dialeval.compare(pair(*logs), design="unpaired", margin=margin)
        low = stats.ttest_ind(right, left - margin, equal_var=False, alternative="greater").pvalue
        high = stats.ttest_ind(right, left + margin, equal_var=False, alternative="less").pvalue
        assert (found.verdict.kind == "equivalent") == (max(low, high) < 0.025)


def test_margins_need_a_direction_and_a_number() -> None:
    with pytest.raises(SettingError, match="neither higher nor lower values of length are better"):
        dialeval.compare(moved(0.1, key="length"), margin={"length": 1.0})
    with pytest.raises(SettingError, match="a margin is 0 or above, not -1"):
        dialeval.compare(moved(0.1), margin=-1.0)


def test_the_verdict_states_what_could_be_detected_and_not_the_power_at_what_was_seen() -> None:
    found = dialeval.compare(moved(0.02))
    text = " ".join(found.verdict.sentences)
    assert f"Detectable at 80% power: {found.differences[0].detectable:.3f}." in text
    assert "takes about" not in text


def test_an_adjusted_interval_is_never_narrower() -> None:
    rng, turns = np.random.default_rng(58), np.ones(12, np.int64)
    before = {key: rng.normal(size=12) for key in ("reward", "latency")}
    gains = {"reward": rng.normal(size=12) + 0.75, "latency": rng.normal(size=12)}
    old, new = (
        Result(
            {key: result(items, turns, key=key)[key] for key, items in side.items()},
            table=result(turns.astype(np.float64), turns).table,
        )
        for side in (before, {key: items + gains[key] for key, items in before.items()})
    )
    row = dialeval.compare(pair(old, new), resamples=99, trials=200).differences[0]
    assert row.interval is not None
    assert row.adjusted_interval is not None
    assert row.p < row.adjusted_p < 0.05
    assert 0 < row.adjusted_interval[0] <= row.interval[0] < row.interval[1] <= row.adjusted_interval[1]


def users(rng: np.random.Generator, number: int, start: int) -> Result:
    who = np.repeat(np.arange(start, start + number), 4)
    values = 2 * rng.normal(size=number)[who - start] + rng.normal(size=len(who))
    names = [f"u{each}" for each in who]
    made = result(values, np.ones(len(who), np.int64), {"user": names})
    table = made.table
    assert table is not None
    ids = [f"{start}-{at}" for at in range(len(who))]
    return Result(made.estimates, table=RowTable(table.offsets, ids, fields=table.fields))


def test_users_are_clusters_where_they_are_named() -> None:
    logs = pair(users(np.random.default_rng(1), 15, 0), users(np.random.default_rng(2), 12, 100))
    alone, together = dialeval.compare(logs), dialeval.compare(logs, cluster="user")
    assert "60 dialogues are of 15 users; --cluster user takes that into account." in " ".join(alone.verdict.sentences)
    means = []
    for log in logs.values():
        items = log["reward"].scores
        assert items is not None
        means.append(items.reshape(-1, 4).mean(axis=1))
    expected = stats.ttest_ind(means[1], means[0], equal_var=False)
    assert together.differences[0].interval == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-6)
    assert together.differences[0].error > 1.5 * alone.differences[0].error
    assert not together.warnings
    (estimate,) = dialeval.with_clusters(Run({"old": logs["old"]}, "0"), "user")["old"].values()
    assert estimate.interval == pytest.approx(stats.t.interval(0.95, 14, means[0].mean(), stats.sem(means[0])))
    with pytest.raises(SettingError, match="no field 'topic' was kept"):
        dialeval.compare(logs, cluster="topic")


def test_users_are_clusters_of_paired_dialogues_too() -> None:
    rng = np.random.default_rng(5)
    fields = {"user": [f"u{at // 3}" for at in range(30)]}
    effect = np.repeat(rng.normal(size=10), 3)
    base = rng.normal(size=30)
    logs = (result(values, np.ones(30, np.int64), fields) for values in (base, base + effect))
    (row,) = dialeval.compare(pair(*logs), cluster="user").differences
    assert row.error == pytest.approx(stats.sem(effect[::3]))
    assert (row.wins or 0) + (row.losses or 0) == 10


def test_dialogues_that_are_compared_as_wholes_count_once() -> None:
    """The new version is better in every dialogue, and longer where users have a hard task."""
    hard = np.linspace(0, 1, 20)
    short = np.full(20, 2)
    longer = short + (8 * hard).astype(int)
    old, new = (np.repeat(0.9 - 0.6 * hard + gain, turns) for gain, turns in ((0.0, short), (0.06, longer)))
    found = dialeval.compare(pair(result(old, short), result(new, longer)))
    assert found.differences[0].difference == pytest.approx(0.06)
    assert found.verdict.kind == "better"
    assert "Means are per dialogue." in " ".join(found.verdict.sentences)
    per_reply = next(line for line in found.verdict.sentences if line.startswith("The weights decide about reward of"))
    assert "per reply it is lower;" in per_reply
    by_row = dialeval.compare(pair(result(old, short), result(old + 0.1, short)))
    assert "Means are per reply." in " ".join(by_row.verdict.sentences)


def test_a_verdict_that_depends_on_the_weights_says_so() -> None:
    turns = np.array([30, *[1] * 20])
    away = np.concatenate([np.full(30, -1.0), np.full(20, 0.4) + 0.1 * np.random.default_rng(1).normal(size=20)])
    found = dialeval.compare(pair(result(np.zeros(50), turns), result(away, turns)))
    assert found.differences[0].difference < 0 < found.differences[0].by_dialogue
    assert any(line.startswith("The weights decide about reward of new: −0.4") for line in found.verdict.sentences)


def test_a_slice_that_is_worse_fails_the_gate_of_slices() -> None:
    fields = {"topic": ["refund"] * 20 + ["faq"] * 20}
    rng = np.random.default_rng(2)
    base, turns = rng.normal(size=40), np.ones(40, np.int64)
    after = base + np.repeat([-1.0, 1.0], 20) + 0.1 * rng.normal(size=40)
    old, new = (Run({name: result(items, turns, fields)}, "0") for name, items in (("old", base), ("new", after)))
    assert dialeval.assert_no_worse(new, old, "reward").verdict.kind == "inconclusive"
    with pytest.raises(AssertionError, match="where topic is refund: significantly worse"):
        dialeval.assert_no_worse(new, old, "reward", by="topic")


def test_skewed_values_are_marked_in_the_table_without_being_asked() -> None:
    rows = [{"response": "a", "latency": 30.0 if at == 3 else 0.1 + at / 100} for at in range(30)]
    run = dialeval.evaluate(rows, metrics="latency,length")
    document = describe(run, None)
    assert any("~" in cell for line in document.tables[0].cells for cell in line)
    assert any(note.startswith("Confidence intervals") and "~ skewed" in note for note in document.notes)
    assert math.isfinite(run["system"]["latency"].mean)
