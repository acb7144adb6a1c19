"""The order of dialogues in a file changes no interval and no p-value, and the seed no decision."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import dialeval

_WORDS = [
    "yes",
    "no",
    "it",
    "is",
    "open",
    "at",
    "nine",
    "and",
    "costs",
    "ten",
    "euros",
    "near",
    "the",
    "old",
    "town",
    "hall",
]
METRICS = "length,distinct-2,bleu(per=corpus),rouge-l"


def make_log(seed: int, kind: str, dialogues: int = 40) -> list[list[dict[str, Any]]]:
    """Dialogues of a few rows, with repeated replies; `kind`: what identifies them."""
    said, asked = random.Random(seed), random.Random(1 if kind != "unpaired" else 10 + seed)
    log = []
    for number in range(dialogues):
        topic, context, rows = asked.choice(["hotel", "train"]), list[str](), []
        for _ in range(1 if kind == "lines" else asked.randint(1, 3)):
            context = [*context, f"user {asked.randint(0, 9)} {number if kind == 'prompts' else ''}"]
            reply = " ".join(said.choices(_WORDS, k=said.choice([1, 1, 2, 5])))
            row: dict[str, Any] = {"response": reply, "reference": " ".join(asked.choices(_WORDS, k=3)), "topic": topic}
            if kind != "lines":
                row |= {"context": context}
            if kind == "ids":
                row |= {"dialog_id": f"d{number}"}
            rows.append(row)
            context = [*context, reply]
        log.append(rows)
    return log


def score(logs: dict[str, list[list[dict[str, Any]]]], keep: str = "topic") -> dialeval.Run:
    rows = {name: [row for dialogue in log for row in dialogue] for name, log in logs.items()}
    return dialeval.evaluate(rows, metrics=METRICS, keep=[keep])


@pytest.mark.parametrize("kind", ["ids", "prompts", "lines", "unpaired"])
def test_the_order_of_dialogues_changes_nothing(kind: str) -> None:
    logs = {f"v{seed}": make_log(seed, kind) for seed in (1, 2, 3)}
    straight = score(logs)
    order = random.Random(5).sample(range(40), 40)
    turned = score({name: [log[at] for at in order] for name, log in logs.items()})
    settings: dict[str, Any] = {"trials": 300, "resamples": 200}
    settings |= {"design": "unpaired"} if kind == "unpaired" else {}
    found, again = (dialeval.compare(run, **settings) for run in (straight, turned))
    assert found.design.name == ("unpaired" if kind == "unpaired" else "paired")
    assert [row.to_dict() for row in found.differences] == [row.to_dict() for row in again.differences]
    assert found.ranking == again.ranking


def test_the_order_of_dialogues_changes_no_interval_of_a_score() -> None:
    log = make_log(1, "lines", 1100)
    for name in METRICS.split(","):
        intervals: list[Any] = []
        for each in (log, log[::-1]):
            run = dialeval.evaluate([row for rows in each for row in rows], metrics=name)
            intervals.append(
                [estimate.interval for estimate in dialeval.with_intervals(run, resamples=50)["system"].values()]
            )
        np.testing.assert_array_equal(intervals[0], intervals[1])


@pytest.mark.parametrize("kind", ["ids", "prompts", "unpaired"])
def test_the_order_of_dialogues_changes_nothing_where_users_are_the_clusters(kind: str) -> None:
    """Some dialogues are of nobody."""
    logs = {f"v{seed}": make_log(seed, kind) for seed in (1, 2)}
    for log in logs.values():
        for number, row in ((number, row) for number, rows in enumerate(log) for row in rows):
            row["user"] = f"u{number // 3}" if number < 24 else ""
    order = random.Random(5).sample(range(40), 40)
    turned = {name: [log[at] for at in order] for name, log in logs.items()}
    rows = [
        dialeval.compare(
            score(each, "user"),
            design="unpaired" if kind == "unpaired" else None,
            cluster="user",
            resamples=200,
        ).differences
        for each in (logs, turned)
    ]
    for one, other in zip(*rows, strict=True):
        assert one.interval is not None
        assert one.interval == pytest.approx(other.interval, rel=1e-9)
        assert (one.p, one.adjusted_p) == pytest.approx((other.p, other.adjusted_p), rel=1e-9)


@dialeval.metric_of_rows("number", better="higher")
def number(response: str) -> float:
    return float(response)


def test_p_values_near_alpha_take_more_trials_so_that_seeds_agree() -> None:
    """A difference of 60 dialogues with Student's p of 0.052, and one that is clear."""
    noise = np.random.default_rng(4).normal(size=60)
    noise = (noise - noise.mean()) / noise.std(ddof=1) * np.sqrt(60)
    near, clear = ({"old": ["0"] * 60, "new": [repr(value + t) for value in noise.tolist()]} for t in (1.98, 4.0))
    found = [dialeval.compare(dialeval.evaluate(near, metrics=[number]), seed=seed) for seed in range(6)]
    assert min(each.trials for each in found) >= 8000
    assert [row.significant for each in found for row in each.differences] == [False] * 6
    once = [dialeval.compare(dialeval.evaluate(near, metrics=[number]), seed=seed, trials=200) for seed in range(6)]
    assert len({row.significant for each in once for row in each.differences}) == 2, "as many trials as were asked for"
    assert dialeval.compare(dialeval.evaluate(clear, metrics=[number])).trials == 2000


def test_intervals_that_decide_near_alpha_take_more_resamples_so_that_seeds_agree() -> None:
    """Forty differences with a mean below 0 and their tail above it, where the interval has the larger p-value."""
    values = np.random.default_rng(2).lognormal(size=40)
    away = (values - values.mean()) / values.std(ddof=1) - 1.05 * 2.6 / math.sqrt(40)
    run = dialeval.evaluate({"old": ["0"] * 40, "new": list(map(repr, away.tolist()))}, metrics=[number])
    found = [dialeval.compare(run, seed=seed) for seed in range(6)]
    assert min(each.resamples for each in found) >= 4000
    assert len({each.differences[0].significant for each in found}) == 1
    assert {dialeval.compare(run, resamples=200, trials=2000, seed=seed).resamples for seed in range(3)} == {200}


def test_slices_near_alpha_take_more_trials_so_that_seeds_agree() -> None:
    noise = np.random.default_rng(4).normal(size=60)
    noise = (noise - noise.mean()) / noise.std(ddof=1) * np.sqrt(60)
    rows = [{"response": repr(value + 2.27), "half": "first"} for value in noise.tolist()]
    rows += [{"response": repr(value), "half": "second"} for value in noise.tolist()]
    before = [{**row, "response": "0"} for row in rows]
    run = dialeval.evaluate({"old": before, "new": rows}, metrics=[number], keep="half")
    found = [dialeval.compare_slices(run, by="half", seed=seed).slices for seed in range(6)]
    trials = [part.comparison.trials for parts in found for part in parts if part.comparison is not None]
    assert min(trials) >= 8000
    decided = [part.difference("new", "number") for parts in found for part in parts[:1]]
    assert len({one.significant for one in decided if one is not None}) == 1
    (first, _) = dialeval.compare_slices(run, by="half", trials=2000).slices
    assert first.comparison is not None
    assert first.comparison.trials == 2000, "as many as were asked for"


def test_trials_near_alpha_are_those_of_all_metrics() -> None:
    """A p-value that no trials are for takes none, and one that takes more is still adjusted with all others."""
    noise = np.random.default_rng(4).normal(size=60)
    values = (noise - noise.mean()) / noise.std(ddof=1) * np.sqrt(60) + 2.2
    answers = [f"{value!r} {'yes' if at < 13 else 'no'}" for at, value in enumerate(values.tolist())]
    before = [f"0 {'yes' if 13 <= at < 18 else 'no'}" for at in range(60)]
    first = dialeval.metric_of_rows("first", better="higher")(lambda response: float(response.split()[0]))
    agreed = dialeval.metric_of_rows("agreed", better="higher", bounds=(0.0, 1.0))(
        lambda response: float(response.split()[1] == "yes")
    )
    yes_no, both = (
        dialeval.compare(dialeval.evaluate({"old": before, "new": answers}, metrics=metrics))
        for metrics in ([agreed], [first, agreed])
    )
    assert (yes_no.differences[0].interval_by, yes_no.trials) == ("tango", 2000)
    assert 0.04 < yes_no.differences[0].adjusted_p < 0.06
    assert both.trials == 8000
    assert all(row.p <= row.adjusted_p < 2 * row.p for row in both.differences)


@pytest.mark.parametrize("metric", ["rouge-l", "bleu(per=corpus)"])
def test_all_pairs_of_systems_are_permuted_alike(metric: str) -> None:
    """Two differences that are one take no correction for two tests, in files without ids."""
    logs = {"old": make_log(1, "lines"), "new": make_log(2, "lines"), "again": make_log(1, "lines")}
    found = dialeval.compare(score(logs), metrics=[metric])
    assert [(row.system, row.key) for row in found.differences] == [("new", metric), ("again", metric)]
    assert found.pairs == 1
    assert found.differences[0].p < 1
    assert found.differences[0].adjusted_p == pytest.approx(found.differences[0].p)
