"""Rankings: from people's pairs and from a judge's, with what can and cannot be told apart."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import dialeval
from dialeval.core.errors import DataError, SettingError


def compared(number: int = 600, seed: int = 1, length: float = 0.0) -> list[dict[str, object]]:
    """Pairs of three systems, of which `x` and `y` are alike and `z` is worse; longer ones are preferred if asked."""
    rng = np.random.default_rng(seed)
    strength = {"x": 0.6, "y": 0.6, "z": -1.2}
    rows: list[dict[str, object]] = []
    for place in range(number):
        a, b = rng.permutation(list(strength))[:2].tolist()
        words = rng.integers(5, 30, size=2)
        if length:  # the weak system speaks at length
            words = words + np.array([20 * (name == "z") for name in (a, b)])
        odds = strength[a] - strength[b] + length * math.log(words[0] / words[1])
        tie = rng.random() < 0.2
        better = "tie" if tie else "a" if rng.random() < 1 / (1 + math.exp(-odds)) else "b"
        rows.append(
            {
                "dialog_id": f"d{place // 4}",
                "a": a,
                "b": b,
                "better": better,
                "response_a": "word " * int(words[0]),
                "response_b": "word " * int(words[1]),
            }
        )
    return rows


def test_a_ranking_of_peoples_pairs() -> None:
    found = dialeval.rank(compared())
    assert found.systems[-1].system == "z"
    assert (found.pairs, found.dialogues, found.unit) == (600, 150, "dialogues")
    assert [sorted(group) for group in found.groups] == [["x", "y"], ["z"]]
    for each in found.systems:
        assert each.interval[0] < each.strength < each.interval[1]
        assert each.score_interval[0] < each.score < each.score_interval[1]
        assert each.wins + each.ties + each.losses == sum(sum(row) for row in found.between[each.system].values())
    wins, ties, losses = found.between["x"]["z"]
    assert found.between["z"]["x"] == (losses, ties, wins)
    assert sum(each.wins for each in found.systems) == sum(each.losses for each in found.systems)
    assert min(found.p[found.systems[0].system].values()) < 0.05
    assert math.isnan(found.length)
    assert json.loads(json.dumps(found.to_dict()))["length"] is None


def test_equal_seeds_give_equal_rankings() -> None:
    rows = compared(100)
    assert dialeval.rank(rows).to_dict() == dialeval.rank(rows).to_dict()


def test_what_is_left_at_equal_length() -> None:
    rows = compared(1500, length=1.5)
    plain, held = dialeval.rank(rows), dialeval.rank(rows, length=True)
    by_name = {each.system: each.strength for each in held.systems}
    assert by_name["z"] == pytest.approx(-1.2, abs=0.35)
    assert {each.system: each.strength for each in plain.systems}["z"] > by_name["z"] + 0.5
    assert held.length_interval[0] < 1.5 < held.length_interval[1]
    assert held.length_interval[0] > 0


def preferred(first: float, place: float = 1.0, raters: int = 6, seed: int = 3) -> list[dict[str, object]]:
    """Two equal systems; what is shown first is preferred, and raters have tastes; `first`: how often that is `x`."""
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=raters)
    rows: list[dict[str, object]] = []
    for number in range(raters * 60):
        rater, dialogue = divmod(number, 60)
        a, b = ("x", "y") if rng.random() < first else ("y", "x")
        odds = place + taste[rater] * (1 if a == "x" else -1)
        better = "a" if rng.random() < 1 / (1 + math.exp(-odds)) else "b"
        rows.append(
            {"dialog_id": f"d{dialogue}", "a": a, "b": b, "better": better, "rater": f"r{rater}", "user": rater}
        )
    return rows


def test_what_is_shown_first_is_held_equal() -> None:
    rows = preferred(0.8)
    plain, held = dialeval.rank(rows), dialeval.rank(rows, position=True)
    assert plain.systems[0].system == "x"
    assert plain.systems[0].strength > 0.15 + max(each.strength for each in held.systems)
    assert held.position_interval[0] < 1 < held.position_interval[1]
    assert plain.warnings == [
        "x is a in 295 of 360 pairs: if a was shown first, its strength includes that (--position controls for it)"
    ]
    assert not held.warnings
    assert not dialeval.rank(preferred(0.5)).warnings
    with pytest.raises(SettingError, match="the same is always a"):
        dialeval.rank(preferred(1.0), position=True)


def test_intervals_for_other_raters_add_both_variances() -> None:
    rows = preferred(0.5)
    fixed, other = dialeval.rank(rows), dialeval.rank(rows, raters="random")
    assert (fixed.raters, other.raters, other.named_raters) == ("fixed", "random", 6)
    singles = [
        dialeval.rank([{**row, "dialog_id": key(row)} for row in rows])
        for key in (
            lambda row: row["dialog_id"],
            lambda row: row["rater"],
            lambda row: f"{row['dialog_id']} {row['rater']}",
        )
    ]
    one, two, both = ((each.systems[0].interval[1] - each.systems[0].strength) for each in singles)
    width = other.systems[0].interval[1] - other.systems[0].strength
    assert width > one
    assert width == pytest.approx(two, rel=0.2), "raters differ more than dialogues"
    assert both < two
    assert len(fixed.groups) >= len(other.groups)
    with pytest.raises(SettingError, match="at least 5 raters, each with a name"):
        dialeval.rank(preferred(0.5, raters=4), raters="random")
    with pytest.raises(SettingError, match="there are 6"):
        dialeval.rank([*rows, {"a": "x", "b": "y", "better": "a"}], raters="random")


def test_another_field_names_the_clusters() -> None:
    rows = preferred(0.5)
    found = dialeval.rank(rows, cluster="user")
    same = dialeval.rank([{**row, "dialog_id": f"u{row['user']}"} for row in rows])
    assert found.systems == same.systems
    assert (found.dialogues, found.unit) == (6, "clusters by user")
    with pytest.raises(DataError, match="has no session"):
        dialeval.rank(rows, cluster="session")


def test_a_system_that_one_rater_compared_is_warned_about() -> None:
    rows = [
        {**row, "rater": "ann" if "z" in (row["a"], row["b"]) else f"r{n % 3}"} for n, row in enumerate(compared(200))
    ]
    assert dialeval.rank(rows).warnings == ["all pairs of z are by one rater, so its strength is that rater's taste"]


def test_pairs_without_texts_are_left_out_at_equal_length() -> None:
    rows = compared(300)
    for row in rows[:30]:
        del row["response_a"]
    found = dialeval.rank(rows, length=True)
    assert (found.pairs, found.left_out) == (270, 30)
    with pytest.raises(SettingError, match="no pair has the texts"):
        dialeval.rank([{key: row[key] for key in ("a", "b", "better")} for row in rows], length=True)


def two_systems(wins: str) -> list[dict[str, str]]:
    """Pairs of `x` and `y`, two in a dialogue: `x` is the first or the second of them in turn."""
    return [
        {"dialog_id": f"d{n // 2}", "a": "xy"[n % 2], "b": "yx"[n % 2], "better": "ab"[("xy"[n % 2]) != won]}
        for n, won in enumerate(wins)
    ]


def test_a_difference_between_systems_that_are_alike_is_rarely_found() -> None:
    wrong = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = [
            {"dialog_id": str(n // 3), "a": "x", "b": "y", "better": "ab"[int(rng.random() < 0.5)]} for n in range(120)
        ]
        wrong += len(dialeval.rank(rows).groups) > 1
    assert wrong <= 6


@pytest.mark.parametrize(
    ("pairs", "settings", "words"),
    [
        ([{"a": "x", "b": "y", "better": "a"}], {}, "won against all others"),
        (compared(60), {"confidence": 1.0}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_ranked(pairs: object, settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        dialeval.rank(pairs, **settings)  # type: ignore[arg-type]
