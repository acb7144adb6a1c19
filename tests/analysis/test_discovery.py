"""Slices that nobody named: planted ones are found by their own words, and nothing is found where nothing is."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.analysis.discovery import UserTurns, _make_pool, choose_groups, measure_group
from dialeval.core.errors import SettingError

SYLLABLES = ("ba", "do", "ki", "lu", "me", "no", "pa", "ri", "so", "tu", "ven", "zor")
WORDS = [one + other for one in SYLLABLES for other in SYLLABLES]
COMMON = 1 / np.arange(1, len(WORDS) + 1) / (1 / np.arange(1, len(WORDS) + 1)).sum()
KEY = "score:quality"
NAMES = ("found", "other groups", "with no theme", "with no theme and no halves")


def rows_of(
    seed: int, share: float = 0.1, effect: float = 0.5, dialogues: int = 400, replies: int = 5, system: int = 0
) -> list[dict[str, Any]]:
    """Logs with scores of SD 1 per reply; in a share of the dialogues a user says "refund", and replies are worse."""
    rng = np.random.default_rng(seed)
    themes = rng.random(dialogues) < share
    said = [[list(rng.choice(WORDS, rng.integers(4, 12), p=COMMON)) for _ in range(replies)] for _ in themes]
    for at in np.flatnonzero(themes):
        said[at][rng.integers(replies)].insert(2, "refund")
    noise = np.random.default_rng([seed, system])
    level = rng.normal(0, np.sqrt(0.1), dialogues)
    return [
        {
            "dialog_id": f"d{at}",
            "turn": turn,
            "context": [" ".join(said[at][turn])],
            "response": "ok",
            "scores": {"quality": float(level[at] + noise.normal(0, np.sqrt(0.9)) - effect * themes[at])},
        }
        for at in range(dialogues)
        for turn in range(replies)
    ]


def run_of(*systems: list[dict[str, Any]], **more: Any) -> dialeval.Run:
    names = ["old", "new"] if len(systems) > 1 else ["bot"]
    return dialeval.evaluate(dict(zip(names, systems, strict=True)), metrics="scores", **more)


@pytest.mark.parametrize("design", ["alone", "paired", "unpaired"])
def test_a_planted_theme_is_found_by_its_word(design: str) -> None:
    first = rows_of(1, effect=1.2)
    if design == "alone":
        run = run_of(first)
    elif design == "paired":
        run = run_of(rows_of(1, effect=0), rows_of(1, effect=1.2, system=1))
    else:
        run = run_of(rows_of(2, effect=0), [{**row, "dialog_id": f"x{row['dialog_id']}"} for row in first])
    found = dialeval.discover(run, metrics=[KEY])
    best = found.groups[0]
    assert best.significant
    assert best.worse
    assert "refund" in best.name.split(", ")
    assert best.interval[0] <= -1.2 * 0.6 <= best.interval[1] + 0.6
    assert all("refund" in example or best.name != "refund" for example in best.examples)
    assert best.dialogues + best.rest == (800 if design == "unpaired" else 400) // 2
    assert best.baseline == (None if design == "alone" else "old")
    assert sum(one for one, _ in found.halves.values()) == best.dialogues + best.rest
    assert found.halves.keys() == ({"old", "new"} if design == "unpaired" else {best.system})


def test_theme_by_half_and_nothing_by_chance() -> None:
    """A smaller form of the table in docs/slices.md: a theme of half a standard deviation, and none at all."""
    hits, false = 0, 0
    for seed in range(20):
        themed = [group for group in dialeval.discover(run_of(rows_of(seed))).groups if group.significant]
        hits += any("refund" in group.name for group in themed)
        false += any(group.significant for group in dialeval.discover(run_of(rows_of(seed, share=0))).groups)
    assert hits >= 12
    assert false <= 3


@pytest.mark.slow
def test_planted_slices_and_errors_over_many_data_sets() -> None:
    """What docs/slices.md states; without the split nearly every data set has a "significant" group."""
    hits = named = false = unsplit = 0
    for seed in range(200):
        themed = [group for group in dialeval.discover(run_of(rows_of(seed))).groups if group.significant]
        hits += any("refund" in group.name for group in themed)
        named += any("refund" not in group.name for group in themed)
        run = run_of(rows_of(seed, share=0))
        false += any(group.significant for group in dialeval.discover(run).groups)
        pool = _make_pool(run, "bot", None, None, seed)
        samples, everything = pool.collect(KEY), np.ones(400, np.bool_)
        groups = choose_groups(samples, everything, pool.candidates, pool.kinds)
        measured = [measure_group(samples, everything, members, 0.95, seed) for _, _, members in groups]
        unsplit += any(each is not None and each["p"] * len(groups) < 0.05 for each in measured)
    for name, count in zip(NAMES, (hits, named, false, unsplit), strict=True):
        sys.stdout.write(f"{name}: {count / 2:.1f}%\n")
    assert hits >= 140
    assert named <= 0.1 * hits
    assert false <= 12
    assert unsplit > 3 * max(false, 12)


def test_fields_tools_and_lengths_are_candidates_and_a_user_stays_in_one_half() -> None:
    rows = []
    for row in rows_of(3, share=0, replies=3):
        at = int(row["dialog_id"][1:])
        bad = at % 4 == 0
        row["scores"]["quality"] -= 1.5 * bad
        row["context"] = [*(["hello", "[call find_loan({})]"] if bad else []), *row["context"]]
        rows.append({**row, "channel": "phone" if bad else "web", "user": f"u{at // 2}"})
    run = run_of(rows, keep=["channel", "user"])
    found = dialeval.discover(run, metrics=[KEY])
    assert {"words", "tool", "field"} <= found.candidates.keys()
    assert found.groups[0].significant
    assert sum(group.significant for group in found.groups) == 1, "one group, however many names it has"
    assert any("--cluster user" in note for note in found.notes)
    by_user = dialeval.discover(run, metrics=[KEY], cluster="user")
    assert sum(by_user.halves["bot"]) == 400
    assert by_user.groups[0].significant
    assert by_user.groups[0].dialogues + by_user.groups[0].rest == 200, "dialogues make groups, and not users"


def test_user_turns_are_those_of_users() -> None:
    chat = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    rows = [{"messages": [*chat, {"role": "assistant", "content": "four"}]}, {"messages": chat[:2]}]
    table = dialeval.evaluate({"bot": rows}, metrics="length")["bot"].table
    assert table is not None
    turns = UserTurns.of(table)
    assert (list(turns.texts), turns.dialogues.tolist()) == (["one", "three", "one"], [0, 0, 1])
    cut = [{"context": ["a", "b", "c"], "response": "d"}, {"context": ["prompt"], "response": "e"}, {"response": "f"}]
    table = dialeval.evaluate({"bot": cut}, metrics="length")["bot"].table
    assert table is not None
    assert list(UserTurns.of(table).texts) == ["a", "c", "prompt"]


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(SettingError, match="too few to find groups"):
        dialeval.discover(run_of(rows_of(1, dialogues=30)))
    run = dialeval.evaluate({"bot": rows_of(1, dialogues=60)}, metrics=["distinct-1", "length"])
    found = dialeval.discover(run, metrics=["distinct-1", "length"])
    assert found.left_out == {"distinct-1": "distinct-1 is a corpus value, which no single dialogue has"}
    with pytest.raises(SettingError, match="corpus value"):
        dialeval.discover(run, metrics="distinct-1")


def test_the_seed_decides_and_the_order_of_rows_does_not_change_what_is_true() -> None:
    run = run_of(rows_of(1, effect=1.5))
    assert dialeval.discover(run, seed=3).to_dict() == dialeval.discover(run, seed=3).to_dict()
    assert [dialeval.discover(run, seed=seed).groups[0].name for seed in (1, 2, 3)] == ["refund"] * 3
