"""Comparisons of realistic logs, from files to verdicts: the right design, the right numbers, a verdict or a reason.

The logs contain each version's own replies in the contexts. Numbers are compared with direct computations on the lists
of reply lengths.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval as package
from conftest import Dialeval
from dialeval.core.errors import SettingError
from realistic_logs import Log, make_log, make_prompts

PROMPTS = make_prompts(40, 1)
OLD, NEW = make_log(PROMPTS, 1, 8, None), make_log(PROMPTS, 2, 10, None)
OTHER_USERS = make_log(make_prompts(25, 9), 3, 10, None)
WRITERS: dict[str, Callable[[Log, Path], Path]] = {
    "openai": lambda log, path: log.openai(path.with_suffix(".jsonl")),
    "sharegpt": lambda log, path: log.sharegpt(path.with_suffix(".jsonl")),
    "rows": lambda log, path: log.jsonl(path.with_suffix(".jsonl")),
    "csv": lambda log, path: log.csv(path.with_suffix(".csv")),
    "parquet": lambda log, path: log.parquet(path.with_suffix(".parquet")),
}


@pytest.fixture
def compare(dialeval: Dialeval, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Score two logs in one of the formats, save the runs, and compare them."""

    def run(
        left: Log, right: Log, *options: str, written: str = "openai", score: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        for name, log in (("old", left), ("new", right)):
            path = WRITERS[written](log, tmp_path / name)
            scored = dialeval("score", str(path), "-m", "length,distinct-2", "-o", f"run-{name}", "--force", *score)
            assert scored.returncode == 0, scored.stderr
        found = dialeval("compare", "run-old", "run-new", "-f", "json", *options)
        assert found.returncode == 0, found.stderr
        document: dict[str, Any] = json.loads(found.stdout)
        return document

    return run


def length(document: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in document["differences"] if row["key"] == "length")


def mean(log: Log) -> float:
    return float(np.mean([size for sizes in log.lengths() for size in sizes]))


def paired_error(left: Log, right: Log) -> float:
    """The jackknife error of the difference of means over dialogues, in plain Python."""
    sides = [log.lengths() for log in (left, right)]
    count = len(sides[0])

    def value(without: int | None) -> float:
        means = [np.mean([size for at, each in enumerate(side) if at != without for size in each]) for side in sides]
        return float(means[1] - means[0])

    changes = [(count - 1) * (value(None) - value(at)) for at in range(count)]
    centered = np.array(changes) - np.mean(changes)
    return math.sqrt(float((centered**2).sum()) / (count * (count - 1)))


def unpaired_error(left: Log, right: Log) -> tuple[float, float]:
    """The clustered error of a difference of independent means and Welch's degrees of freedom, in plain Python."""
    variances, freedoms = [], []
    for log in (left, right):
        sizes = log.lengths()
        total, rows, count = sum(map(sum, sizes)), sum(map(len, sizes)), len(sizes)
        changes = [total / rows - (total - sum(each)) / (rows - len(each)) for each in sizes]
        variances.append((count - 1) / count * sum(change**2 for change in changes))
        freedoms.append(rows**2 / sum(len(each) ** 2 for each in sizes) - 1)
    pooled = sum(variances)
    return math.sqrt(pooled), pooled**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))


@pytest.mark.parametrize("written", ["openai", "sharegpt", "parquet"])
def test_own_replies_in_contexts_are_no_obstacle(compare: Callable[..., dict[str, Any]], written: str) -> None:
    named = [make_log(PROMPTS, seed, words, "d") for seed, words in ((1, 8), (2, 10))]
    for left, right in ((OLD, NEW), named) if written != "parquet" else (named,):
        found = compare(left, right, written=written)
        design = found["designs"]["new"]
        assert (design["name"], design["common"], design["unit"]) == ("paired", 40, "dialogues")
        assert design["by"] == ("prompts" if left is OLD else "ids")
        row = length(found)
        assert row["difference"] == pytest.approx(mean(right) - mean(left), rel=1e-12)
        assert row["error"] == pytest.approx(paired_error(left, right), rel=1e-9)
        assert row["significant"]


@pytest.mark.parametrize("written", ["openai", "rows", "csv"])
def test_reordered_rows_are_found_by_their_prompts(compare: Callable[..., dict[str, Any]], written: str) -> None:
    straight = compare(OLD, NEW, written=written)
    moved = compare(OLD, NEW.reordered(), written=written)
    assert moved["designs"]["new"] == straight["designs"]["new"]
    for here, there in zip(straight["differences"], moved["differences"], strict=True):
        for name in ("difference", "error", "p", "wins", "ties", "losses", "effect"):
            assert here[name] == pytest.approx(there[name], rel=1e-9), (here["key"], name)


def test_units_in_common_are_paired_and_the_rest_is_listed(compare: Callable[..., dict[str, Any]]) -> None:
    kept = [at for at in range(40) if at not in (3, 17)]
    found = compare(OLD, NEW.only(kept).reordered())
    design = found["designs"]["new"]
    assert (design["name"], design["common"], design["baseline_units"], design["system_units"]) == (
        "common",
        38,
        40,
        38,
    )
    assert design["baseline_only"] == ["dialogue 4", "dialogue 18"]
    row = length(found)
    assert row["baseline_mean"] == pytest.approx(mean(OLD.only(kept)))
    assert row["error"] == pytest.approx(paired_error(OLD.only(kept), NEW.only(kept)), rel=1e-9)
    distinct = next(row for row in found["differences"] if row["key"] == "distinct-2")
    straight = compare(OLD.only(kept), NEW.only(kept))
    same = next(row for row in straight["differences"] if row["key"] == "distinct-2")
    assert distinct["difference"] == pytest.approx(same["difference"], rel=1e-12)


def test_different_users_are_independent_samples(compare: Callable[..., dict[str, Any]]) -> None:
    found = compare(OLD, OTHER_USERS)
    design = found["designs"]["new"]
    assert (design["name"], design["common"], design["by"]) == ("unpaired", 0, "prompts")
    row = length(found)
    error, freedom = unpaired_error(OLD, OTHER_USERS)
    assert row["difference"] == pytest.approx(mean(OTHER_USERS) - mean(OLD))
    assert row["error"] == pytest.approx(error, rel=1e-9)
    from scipy.stats import t

    half = t.ppf(0.975, freedom) * error
    assert row["interval"] == pytest.approx([row["difference"] - half, row["difference"] + half], rel=1e-6)
    assert row["p"] == pytest.approx(1 / 2001)


def test_dialogues_with_other_numbers_of_turns_are_compared_as_wholes(compare: Callable[..., dict[str, Any]]) -> None:
    prompts = make_prompts(30, 4)
    later = [[own[0], *other[1:]] for own, other in zip(prompts, make_prompts(30, 5), strict=True)]
    left, right = make_log(prompts, 1, 8, "task"), make_log(later, 2, 9, "task")  # users go on differently
    found = compare(left, right)
    design = found["designs"]["new"]
    assert (design["name"], design["whole"], design["common"]) == ("paired", True, 30)
    row = length(found)
    away = [np.mean(there) - np.mean(here) for here, there in zip(left.lengths(), right.lengths(), strict=True)]
    assert row["difference"] == pytest.approx(np.mean(away)), "every dialogue counts once"
    assert row["error"] == pytest.approx(np.std(away, ddof=1) / np.sqrt(30), rel=1e-9)
    assert found["estimand"] == "dialogue"
    assert row["wins"] + row["ties"] + row["losses"] == 30


@pytest.mark.parametrize("ending", [" again", None])
def test_openings_are_compared_on_request_only(compare: Callable[..., dict[str, Any]], ending: str | None) -> None:
    """Users who go on differently, or leave after the first reply."""
    prompts = [["/start", *asked] for asked in make_prompts(30, 6, most=3)]
    changed = [
        asked[:1] if ending is None else [asked[0], *(f"{text}{ending}" for text in asked[1:])] for asked in prompts
    ]
    left, right = make_log(prompts, 1, 8, None), make_log(changed, 2, 9, None)
    assert compare(left, right)["designs"]["new"]["name"] == "unpaired"
    found = compare(left, right, "--design", "openings")
    design = found["designs"]["new"]
    assert (design["name"], design["common"], design["whole"]) == ("openings", 30, False)
    read = [sum(map(len, log.lengths())) for log in (left, right)]
    assert (design["rows"], design["compared"]) == (read, [30, 30])
    firsts = [np.mean([each[0] for each in log.lengths()]) for log in (left, right)]
    assert length(found)["difference"] == pytest.approx(firsts[1] - firsts[0])


def test_a_gate_needs_half_of_the_rows(dialeval: Dialeval, tmp_path: Path) -> None:
    """A bot that repeats itself after a scripted greeting does not pass on the greetings."""
    for name, seed, words in (("old", 1, 4), ("new", 2, 12)):
        log = make_log([["/start", *asked] for asked in make_prompts(50, seed)], seed, words, None)
        rows = [
            tuple((user, "hello" if not turn else reply) for turn, (user, reply) in enumerate(each.turns))
            for each in log.dialogues
        ]
        same = Log(tuple(replace(each, turns=turns) for each, turns in zip(log.dialogues, rows, strict=True)))
        same.openai(tmp_path / f"{name}.jsonl")
        assert dialeval("score", f"{name}.jsonl", "-m", "distinct-1,length", "-o", name).returncode == 0
    shown = dialeval("compare", "old", "new", "-m", "length")
    assert "\nUnpaired design: 50 dialogues (" in shown.stdout
    gate = "compare", "new", "--no-worse-than", "old", "-m", "distinct-1", "--margin", "distinct-1=0.01"
    assert dialeval(*gate).returncode == 1
    refused = dialeval(*gate, "--design", "openings")
    assert refused.returncode == 2
    message = " ".join(refused.stderr.split())
    assert "a gate takes half of the rows of old and new, or more; score both on the same dialogues" in message
    assert "Paired design on the common openings of 50 dialogues" in message
    assert "--design unpaired" in message
    with pytest.raises(SettingError, match="half of the rows"):
        package.assert_no_worse(tmp_path / "new", tmp_path / "old", "distinct-1", design="openings")


def test_ids_that_count_dialogues_of_other_users_do_not_pair_them(compare: Callable[..., dict[str, Any]]) -> None:
    left, right = make_log(make_prompts(40, 1), 1, 8, ""), make_log(make_prompts(25, 9), 3, 10, "")
    design = compare(left, right)["designs"]["new"]
    assert (design["name"], design["by"]) == ("unpaired", "prompts")
    (note,) = design["notes"]
    assert note.startswith("In 25 of 25 dialogues with the same id users begin differently")


@pytest.mark.parametrize("score", [("--jobs", "2"), ("--jobs", "1")])
def test_runs_that_keep_no_texts_are_aligned_too(
    compare: Callable[..., dict[str, Any]], score: tuple[str, ...]
) -> None:
    found = compare(OLD, NEW.reordered(), written="rows", score=score)
    assert found["designs"]["new"]["name"] == "paired"
    # Rows without an id are dialogues of their own.
    rows = [np.concatenate(log.lengths()) for log in (OLD, NEW)]
    error = float((rows[1] - rows[0]).std(ddof=1) / math.sqrt(len(rows[0])))
    assert length(found)["error"] == pytest.approx(error, rel=1e-9)


def test_what_is_impossible_is_refused_in_words(dialeval: Dialeval, tmp_path: Path) -> None:
    for name, log in (("old", OLD), ("week", OTHER_USERS), ("part", NEW.only(range(30)))):
        log.openai(tmp_path / f"{name}.jsonl")
        assert dialeval("score", f"{name}.jsonl", "-m", "length", "-o", name).returncode == 0
    refused = dialeval("compare", "old", "week", "--design", "paired")
    assert refused.returncode == 2
    assert "0 of 40 and 25 dialogues are in common by prompt; use --design unpaired" in refused.stderr
    refused = dialeval("compare", "old", "week", "--design", "common")
    assert refused.returncode == 2
    refused = dialeval("compare", "old", "part", "--design", "paired")
    assert refused.returncode == 2
    assert "30 of 40 and 30 dialogues are in common by prompt; use --design common or unpaired" in refused.stderr
    free = dialeval("compare", "old", "part", "--design", "unpaired")
    assert free.returncode == 0
    assert "\nUnpaired design: 40 dialogues (" in free.stdout
    assert "--force" not in dialeval("compare", "--help").stdout


def test_a_metric_with_other_inputs_is_left_out_and_the_others_go_on(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = [
        {"context": [f"question {n}"], "response": f"answer {n} now", "reference": f"answer {n}"} for n in range(60)
    ]
    for name, changed in (("one", 0), ("two", 3)):
        lines = [dict(row, reference="else") if at < changed else row for at, row in enumerate(rows)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
        assert dialeval("score", f"{name}.jsonl", "-m", "length,rouge-l", "-o", name).returncode == 0
    found = dialeval("compare", "one", "two")
    assert found.returncode == 0
    assert "rouge-l: not tested, references differ in 3 of 60 rows." in found.stdout
    assert "\nlength " in found.stdout
    gate = dialeval("compare", "two", "--no-worse-than", "one", "-m", "rouge-l")
    assert gate.returncode == 2
    assert "references differ in 3 of 60 rows" in gate.stderr
    assert dialeval("score", "two.jsonl", "-m", "length,rouge-l", "--tokenizer", "char", "-o", "char").returncode == 0
    other = dialeval("compare", "two", "char")
    assert other.returncode == 0
    assert "tokenizers differ: " in other.stdout
    nothing = dialeval("compare", "char", "--no-worse-than", "two")
    assert nothing.returncode == 2, "a gate that compares nothing does not pass"
    assert "tokenizers differ: " in nothing.stderr


def test_gates_and_junit_work_on_independent_logs(dialeval: Dialeval, tmp_path: Path) -> None:
    worse = make_log(make_prompts(40, 8), 5, 3, None)
    for name, log in (("old", OLD), ("week", OTHER_USERS), ("short", worse)):
        log.jsonl(tmp_path / f"{name}.jsonl")
        assert dialeval("score", f"{name}.jsonl", "-m", "distinct-2", "-o", name).returncode == 0
    passed = dialeval("compare", "short", "--no-worse-than", "old", "-m", "distinct-2", "-f", "junit")
    assert passed.returncode == 0, passed.stderr
    failed = dialeval("compare", "week", "--no-worse-than", "old", "-m", "distinct-2", "-f", "junit")
    assert failed.returncode == 1
    assert "<failure" in failed.stdout
    with pytest.raises(AssertionError, match="Unpaired design"):
        package.assert_no_worse(tmp_path / "week", tmp_path / "old", "distinct-2")


def test_an_empty_log_is_an_error_of_the_input(dialeval: Dialeval, tmp_path: Path) -> None:
    OLD.openai(tmp_path / "old.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    found = dialeval("score", "old.jsonl", "empty.jsonl", "-m", "length")
    assert found.returncode == 2
    assert "empty.jsonl" in found.stderr


def test_score_states_the_design_and_calls_nobody_better_by_diversity(dialeval: Dialeval, tmp_path: Path) -> None:
    OLD.openai(tmp_path / "old.jsonl")
    NEW.openai(tmp_path / "new.jsonl")
    found = dialeval("score", "old.jsonl", "new.jsonl", "-m", "length,distinct-2")
    first = " ".join(found.stdout.split())
    assert "Paired design: the systems have the same 40 dialogues (90 rows), matched by prompt." in first
    assert first.startswith("◆ No metric says which is better: new is 2")
    assert "better than" not in first
    assert "worse than" not in first
    assert "score with -m judge" in first


def test_slices_and_sequences_of_independent_logs(dialeval: Dialeval, tmp_path: Path) -> None:
    left, right = make_log(make_prompts(120, 1), 1, 8, None), make_log(make_prompts(100, 9), 3, 10, None)
    for name, log in (("old", left), ("week", right)):
        log.openai(tmp_path / f"{name}.jsonl")
        assert dialeval("score", f"{name}.jsonl", "-m", "length", "--by", "topic", "-o", name).returncode == 0
    found = json.loads(dialeval("compare", "old", "week", "--by", "topic", "-f", "json").stdout)
    for part in found["slices"]["slices"]:
        rows = [
            [
                size
                for each, sizes in zip(log.dialogues, log.lengths(), strict=True)
                if each.topic == part["slice"]
                for size in sizes
            ]
            for log in (left, right)
        ]
        assert part["dialogues"] == 60
        (row,) = part["differences"]
        assert row["difference"] == pytest.approx(np.mean(rows[1]) - np.mean(rows[0]))
        assert row["significant"]
    watched = json.loads(dialeval("compare", "old", "week", "--sequential", "-f", "json").stdout)
    (row,) = watched["differences"]
    assert row["interval"][0] > 0
    assert row["decided"] is not None
    assert watched["designs"]["week"]["name"] == "unpaired"


def test_the_case_mix_is_adjusted_for_and_warned_of(dialeval: Dialeval, tmp_path: Path) -> None:
    """Replies to `billing` are short and those to `travel` long in both logs; only the mix differs."""

    def log(seed: int, billing: int, travel: int) -> Log:
        short, long = (
            make_log(make_prompts(billing, seed), seed, 5, None),
            make_log(make_prompts(travel, seed + 50), seed, 15, None),
        )
        topics = [("billing", each) for each in short.dialogues] + [("travel", each) for each in long.dialogues]
        return Log(tuple(type(each)(None, topic, each.turns) for topic, each in topics))

    for name, made in (("old", log(1, 80, 20)), ("week", log(2, 30, 70))):
        made.openai(tmp_path / f"{name}.jsonl")
        assert dialeval("score", f"{name}.jsonl", "-m", "length", "--by", "topic", "-o", name).returncode == 0
    plain = dialeval("compare", "old", "week")
    assert "topic is distributed differently in old and week" in " ".join(plain.stdout.split())
    raw = length(json.loads(dialeval("compare", "old", "week", "-f", "json").stdout))
    assert raw["significant"]
    adjusted = length(json.loads(dialeval("compare", "old", "week", "--adjust", "topic", "-f", "json").stdout))
    assert adjusted["unadjusted"] == pytest.approx(raw["difference"])
    assert adjusted["interval"][0] < 0 < adjusted["interval"][1]
    assert abs(adjusted["difference"]) < 0.5
    missing = dialeval("compare", "old", "week", "--adjust", "channel")
    assert missing.returncode == 2
    assert "no field 'channel' to adjust for" in missing.stderr


def test_a_trend_over_versions(dialeval: Dialeval, tmp_path: Path) -> None:
    for number, words in enumerate((6, 7, 8, 9)):
        make_log(PROMPTS, number, words, None).openai(tmp_path / f"v{number}.jsonl")
        assert dialeval("score", f"v{number}.jsonl", "-m", "length", "-o", f"v{number}").returncode == 0
    found = json.loads(dialeval("compare", "v0", "v1", "v2", "v3", "--trend", "-f", "json").stdout)
    (row,) = found["metrics"]
    means = [mean(make_log(PROMPTS, number, words, None)) for number, words in enumerate((6, 7, 8, 9))]
    assert found["design"] == "paired"
    assert row["values"] == pytest.approx(means)
    assert row["slope"] == pytest.approx(np.polyfit(range(4), means, 1)[0])
    assert row["significant"]
    shown = dialeval("compare", "v0", "v1", "v2", "v3", "--trend")
    assert "length rises" in shown.stdout
    assert "Change points are not tested." in " ".join(shown.stdout.split())
    assert dialeval("compare", "v0", "v1", "v2", "--trend", "-f", "junit").returncode == 2
    assert dialeval("compare", "v0", "v1", "v2", "--trend", "--sequential").returncode == 2
    assert dialeval("compare", "v0", "v1", "v2", "--trend", "--baseline", "v0").returncode == 2
    short = dialeval("compare", "v0", "v1", "--trend")
    assert short.returncode == 2
    assert "at least three systems" in short.stderr


def test_agents_on_the_same_tasks_are_paired_by_task(dialeval: Dialeval, tmp_path: Path) -> None:
    """Simulated users speak freely, so that turns and prompts differ between agents and trials."""

    def agent(name: str, seed: int, passed: Callable[[int, int], bool]) -> None:
        lines = []
        for trial in range(3):
            log = make_log(make_prompts(12, 100 * seed + trial), seed, 8, None)
            for task, dialogue in enumerate(log.dialogues):
                said = [
                    {"role": role, "content": text}
                    for turn in dialogue.turns
                    for role, text in zip(("user", "assistant"), turn, strict=True)
                ]
                reward = float(passed(task, trial))
                lines.append({"dialog_id": str(task), "trial": trial, "reward": reward, "messages": said})
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    agent("one", 1, lambda task, trial: (task + trial) % 2 == 0)
    agent("two", 2, lambda task, trial: task % 3 > 0)
    scored = dialeval("score", "one.jsonl", "two.jsonl", "-m", "pass-hat,length", "-o", "run")
    assert scored.returncode == 0, scored.stderr
    assert "Paired design: the systems have the same 12 dialogues (87 and 85 rows), matched" in " ".join(
        scored.stdout.split()
    )
    found = json.loads(dialeval("compare", "run", "-f", "json").stdout)
    design = found["designs"]["two"]
    assert (design["name"], design["by"], design["whole"], design["common"]) == ("paired", "ids", True, 12)
    rows = {row["key"]: row for row in found["differences"]}
    assert rows["pass-hat-1"]["baseline_mean"] == pytest.approx(0.5)
    assert rows["pass-hat-1"]["mean"] == pytest.approx(2 / 3)
    assert rows["pass-hat-1"]["p"] <= 1
    assert found["panel"] == ["pass-hat-3"]
