"""Crossed clusters: users and prompts, or dialogues and the replicates (generation seeds) of a system."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import dialeval
import evaluating
from dialeval.cli.main import dialeval_command
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.result import Run


@dialeval.metric_of_rows("grade", better="higher")
def grade(response: str) -> float:
    return float(response)


def score_seeds(values: dict[str, Floats], by_seed: bool = False, **keep: Any) -> Run:
    """Score systems whose values are dialogues by seeds; `by_seed`: the file has one seed after the other."""
    tables = {}
    for name, table in values.items():
        rows = [
            {"dialog_id": f"d{dialogue}", "seed": str(seed), "response": repr(float(value)), "reference": "1"}
            for (dialogue, seed), value in np.ndenumerate(table)
        ]
        tables[name] = sorted(rows, key=lambda row: row["seed"]) if by_seed else rows
    return evaluating.evaluate(tables, metrics=[grade], keep="seed", **keep)


def draw_seeds(rng: np.random.Generator, dialogues: int, seeds: int, spread: float) -> Floats:
    own = rng.normal(size=(dialogues, 1)) + spread * rng.normal(size=seeds)
    return np.asarray(own + rng.normal(size=(dialogues, seeds)))


def find_components(values: Floats) -> tuple[float, float]:
    """Return the variance of the mean over seeds, and over cells around the means of dialogues and seeds."""
    dialogues, seeds = values.shape
    away = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    of_cells = (away**2).sum() / ((dialogues - 1) * (seeds - 1)) / values.size
    return float(values.mean(axis=0).var(ddof=1) / seeds), float(of_cells)


@pytest.mark.parametrize("by_seed", [False, True])
@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_a_difference_has_the_variance_of_dialogues_and_of_seeds(spread: float, by_seed: bool) -> None:
    rng = np.random.default_rng(3)
    old, new = draw_seeds(rng, 40, 4, spread), draw_seeds(rng, 40, 3, spread)[:, [0, 1, 2, 2]]
    new[:, 3] += rng.normal(size=40)
    comparison = dialeval.compare(score_seeds({"old": old, "new": new}, by_seed), replicate="seed")
    (row,) = comparison.differences
    of_dialogues = (new - old).mean(axis=1).var(ddof=1) / 40
    (first, first_cells), (second, second_cells) = find_components(old), find_components(new)
    of_seeds = first + second
    variance = max(of_dialogues + of_seeds - first_cells - second_cells, of_dialogues, of_seeds)
    freedom = max(variance**2 / (of_dialogues**2 / 39 + of_seeds**2 / 6), 6)
    assert row.difference == pytest.approx(new.mean() - old.mean())
    assert row.error == pytest.approx(math.sqrt(variance))
    assert row.p == pytest.approx(2 * stats.t.sf(abs(row.difference) / row.error, freedom))
    assert row.interval == pytest.approx(stats.t.interval(0.95, freedom, row.difference, row.error))
    assert comparison.design.common == 40, "one id is one dialogue in all seeds"
    assert "3 and" not in str(comparison)
    assert "Clusters are dialogues, and 4 values of seed in each system." in str(comparison)


def test_an_interval_of_a_system_holds_for_other_seeds() -> None:
    values = draw_seeds(np.random.default_rng(5), 50, 5, 1.0)
    run = score_seeds({"v1": values})
    (plain,), (crossed,) = (each["v1"].values() for each in (run, dialeval.with_clusters(run, replicate="seed")))
    of_dialogues = values.mean(axis=1).var(ddof=1) / 50
    of_seeds, of_cells = find_components(values)
    variance = of_dialogues + of_seeds - of_cells
    freedom = variance**2 / (of_dialogues**2 / 49 + of_seeds**2 / 4)
    assert crossed.mean == plain.mean
    assert crossed.interval == pytest.approx(stats.t.interval(0.95, freedom, values.mean(), math.sqrt(variance)))
    assert crossed.half_width > 2 * plain.half_width


def score_users(rng: np.random.Generator, users: int, prompts: int, part: float) -> tuple[Run, dict[str, Any]]:
    """Score two systems on users who ask shared prompts, and return what was drawn."""
    who, what = (each.ravel() for each in np.indices((users, prompts)))
    kept = rng.random(len(who)) < part
    who, what = who[kept], what[kept]
    away = rng.normal(size=users)[who] + rng.normal(size=prompts)[what] + rng.normal(size=len(who))
    tables = {
        name: [
            {"dialog_id": f"d{at}", "user": f"u{who[at]}", "prompt_id": f"p{what[at]}", "response": repr(value)}
            for at, value in enumerate(values.tolist())
        ]
        for name, values in {"old": 0 * away, "new": away}.items()
    }
    run = dialeval.evaluate(tables, metrics=[grade], keep=["user", "prompt_id"])
    return run, {"user": who, "prompt_id": what, "both": who * prompts + what, "away": away}


def sum_squares(codes: Any, away: Floats) -> float:
    """Return the squared error of a mean of differences over some clusters (leave-one-out, as a ratio)."""
    codes = np.unique(codes, return_inverse=True)[1]
    sums, counts = np.bincount(codes, away - away.mean()), np.bincount(codes)
    influence = -sums / (len(away) - counts)
    influence -= influence.mean()
    return float((influence**2).sum() * (len(counts) - 1) / len(counts))


def test_users_and_prompts_are_crossed() -> None:
    run, drawn = score_users(np.random.default_rng(1), 20, 12, 0.4)
    comparison = dialeval.compare(run, cluster="user,prompt_id")
    (row,) = comparison.differences
    first, second, both = (sum_squares(drawn[name], drawn["away"]) for name in ("user", "prompt_id", "both"))
    error = math.sqrt(max(first + second - both, first, second))
    assert row.error == pytest.approx(error)
    assert row.interval == pytest.approx(stats.t.interval(0.95, 11, row.difference, error))
    one, other = (dialeval.compare(run, cluster=name).differences[0].error for name in ("user", "prompt_id"))
    assert (one, other) == pytest.approx((math.sqrt(first), math.sqrt(second)))
    assert "Clusters are the 20 values of user. Clusters are the 12 values of prompt_id." in str(comparison)
    crossed, plain = (dialeval.with_clusters(run, name)["new"]["grade"] for name in ("user,prompt_id", "user"))
    assert crossed.interval == pytest.approx(row.interval), "the other system is 0 everywhere"
    assert crossed.half_width > plain.half_width


@given(seed=st.integers(0, 2**32), ways=st.sampled_from([{"cluster": "user,prompt_id"}, {"replicate": "prompt_id"}]))
@settings(max_examples=25, deadline=None)
def test_crossed_differences_are_significant_exactly_if_the_interval_excludes_0(seed: int, ways: Any) -> None:
    rng = np.random.default_rng(seed)
    run, _ = score_users(rng, int(rng.integers(3, 9)), int(rng.integers(2, 6)), 1.0)
    for confidence in (0.8, 0.95):
        found = dialeval.compare(run, alpha=1 - confidence, confidence=confidence, **ways)
        for row in found.differences:
            assert row.interval is not None
            assert row.adjusted_interval is not None
            assert row.significant == (not row.adjusted_interval[0] <= 0 <= row.adjusted_interval[1])
            assert row.significant == (not row.interval[0] <= 0 <= row.interval[1])
            assert row.interval[0] < row.difference < row.interval[1]


def test_what_cannot_be_crossed_is_refused() -> None:
    run = score_seeds({"old": np.ones((4, 2)), "new": np.ones((4, 2))})
    for ways, message in (
        ({"cluster": "a,b,c"}, "one field or two"),
        ({"cluster": "seed", "replicate": "seed"}, "one field or two"),
        ({"replicate": "run"}, "kept no field 'run'; score again with --replicate run"),
        ({"replicate": "seed", "weight": "dialogues"}, "leave the weight of dialogues out"),
    ):
        with pytest.raises(SettingError, match=message):
            dialeval.compare(run, **ways)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="there must be two or more of seed"):
        dialeval.compare(score_seeds({"old": np.ones((4, 1)), "new": np.ones((4, 1))}), replicate="seed")


def test_three_systems_are_ranked_over_seeds() -> None:
    rng = np.random.default_rng(8)
    tables = {name: gain + draw_seeds(rng, 30, 3, 0.1) for name, gain in (("a", 0.0), ("b", 0.1), ("c", 4.0))}
    ranking = dialeval.compare(score_seeds(tables), replicate="seed").ranking
    assert ranking is not None
    assert ranking.systems[0] == "c"
    assert ["c"] in ranking.groups


def test_commands_cross_seeds(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for name in ("v1", "v2"):
        lines = [
            f'{{"dialog_id": "d{dialogue}", "seed": {seed}, "response": "{"well " * int(rng.integers(1, 9))}"}}'
            for dialogue in range(25)
            for seed in range(3)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    files = [str(tmp_path / f"{name}.jsonl") for name in ("v1", "v2")]
    flags = ["-m", "length", "--replicate", "seed"]
    scored = CliRunner().invoke(dialeval_command, ["score", *files, *flags, "-o", str(tmp_path / "run")])
    assert scored.exit_code == 0, scored.output
    assert "Confidence intervals: 95% over values of dialogue and seed (Student)." in scored.output
    compared = CliRunner().invoke(dialeval_command, ["compare", str(tmp_path / "run"), *flags])
    assert compared.exit_code == 0, compared.output
    for output in (scored.output, compared.output):
        assert "Clusters are dialogues, and 3 values of seed in each system." in " ".join(output.split())
    assert "Student's t test with the variances of both ways of clustering" in " ".join(compared.output.split())
