"""Rows to rate: drawn with the probabilities that are said, in every design."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval import sample_data
from dialeval.core.errors import DataError, SettingError
from dialeval.core.result import Run
from dialeval.human import sample as sampling
from dialeval.human.sample import find_strata, sample_systematically, select_tables
from dialeval.human.sample_files import read_sample
from human.rated_runs import run_of

RUN, _ = run_of()


def test_every_unit_has_its_probability_and_their_number_is_fixed() -> None:
    rng = np.random.default_rng(1)
    wanted = np.array([2, 4, 6, 8, 10, 30]) / 30
    taken = np.array([sample_systematically(wanted, rng) for _ in range(20_000)])
    assert set(taken.sum(axis=1)) == {2}
    assert taken.mean(axis=0) == pytest.approx(wanted, abs=0.012)


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 99))
def test_a_unit_is_taken_if_a_point_falls_on_it(units: int, n: int, seed: int) -> None:
    probabilities = np.full(units, min(n, units) / units)
    rng = np.random.default_rng(seed)
    order, start = rng.permutation(units), rng.random()
    wanted, end = np.zeros(units, bool), 0.0
    for place in order.tolist():
        begin, end = end, end + probabilities[place]
        wanted[place] = any(begin <= start + k < end for k in range(units))
    taken = sample_systematically(probabilities, np.random.default_rng(seed))
    assert taken.sum() == min(n, units)
    if min(abs(start + k - end) for k in range(-1, units + 1)) > 1e-9:  # rounding of the last end
        assert taken.tolist() == wanted.tolist()


def test_equal_probabilities_make_every_set_equally_likely() -> None:
    rng = np.random.default_rng(2)
    sets = Counter(tuple(np.flatnonzero(sample_systematically(np.full(5, 0.4), rng)).tolist()) for _ in range(10_000))
    assert len(sets) == 10
    assert max(sets.values()) - min(sets.values()) < 250


def test_all_systems_are_rated_on_the_same_contexts() -> None:
    drawn = dialeval.sample(RUN, 40)
    assert len(drawn.responses) == 40
    by_system = {name: sorted(row.place for row in drawn.responses if row.system == name) for name in "ab"}
    assert by_system["a"] == by_system["b"]
    assert {row.probability for row in drawn.responses} == {20 / 180}
    design = drawn.design
    assert (design.unit, design.level) == ("contexts", "turn")
    assert (design.seed, design.stratify, design.format) == (12345, [], 1)
    assert {name: (each.rows, each.dialogues) for name, each in design.systems.items()} == {
        "a": (180, 60),
        "b": (180, 60),
    }
    assert len(dialeval.sample(RUN, 5, seed=0).responses) == 4
    context = dialeval.evaluate({"a": ["one"], "b": ["two"]}, contexts=[["hi"]], metrics="length")
    assert len(dialeval.sample(context, 1).responses) == 2, "one context at least"


def test_a_row_says_what_it_is_and_its_id_does_not() -> None:
    drawn = dialeval.sample(RUN, 10)
    row = drawn.responses[0]
    assert row.response == f"{row.system} says {row.place}"
    assert row.row == row.place + 1, "rows are counted from 1 in all output"
    assert row.context == [f"what {row.place}"]
    assert (row.dialog_id, row.turn) == (f"d{row.place // 3}", row.place % 3)
    assert repr(drawn) == "<Sample: 10 responses of 2 systems (a, b), unit contexts>"
    assert row.response in drawn._repr_html_()
    assert [line["id"] for line in drawn.lines()] == [each.id for each in drawn.responses]
    assert len({each.id for each in drawn.responses}) == 10
    assert all(len(each.id) == 8 for each in drawn.responses)
    assert [each.id for each in dialeval.sample(RUN, 10).responses] == [each.id for each in drawn.responses]
    assert [each.id for each in dialeval.sample(RUN, 10, seed=2).responses] != [each.id for each in drawn.responses]


def test_samples_of_a_run_have_no_id_in_common() -> None:
    drawn = [dialeval.sample(RUN, 30), dialeval.sample(RUN, 30, stratify=["turn"]), dialeval.sample(RUN, 30, seed=7)]
    ids = [row.id for sample in drawn for row in sample.responses]
    assert len(set(ids)) == len(ids)
    assert [row.id for row in dialeval.sample(RUN, 30).responses] == [row.id for row in drawn[0].responses]


def test_strata_of_turns() -> None:
    drawn = dialeval.sample(RUN, 60, stratify=["turn"])
    assert Counter(row.turn for row in drawn.responses) == {0: 20, 1: 20, 2: 20}
    assert set(drawn.design.strata) == {f"turn={turn}" for turn in (0, 1, 2)}
    assert sum(each.responses for each in drawn.design.strata.values()) == 360
    assert min(each.drawn_units for each in drawn.design.strata.values()) >= 2
    for row in drawn.responses:
        stratum = drawn.design.strata[row.stratum]
        assert row.probability == pytest.approx(stratum.drawn_units / stratum.units)
    again = find_strata(RUN, drawn)
    assert all(again[row.system][row.place] == row.stratum for row in drawn.responses)
    assert find_strata(RUN, dialeval.sample(RUN, 60)) == {name: ["all"] * 180 for name in "ab"}


def test_whole_dialogues() -> None:
    drawn = dialeval.sample(RUN, 60, dialogues=True)
    by_dialogue = Counter(row.dialog_id for row in drawn.responses)
    assert len(by_dialogue) == 10
    assert set(by_dialogue.values()) == {6}
    assert {row.probability for row in drawn.responses} == {10 / 60}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n": 0}, "^n must be at least 1 and the seed 0 or above, not 0 with 12345$"),
        ({"n": 10, "seed": -1}, "^n must be at least 1 and the seed 0 or above, not 10 with -1$"),
        ({"n": 361}, "360 responses, fewer than the 361"),
        ({"n": 1000}, "360 responses, fewer than the 1000"),
        ({"n": 4, "stratify": ["turn"]}, "3 strata give at least 6 units"),
        ({"n": 10, "stratify": ["mood"]}, "cannot be stratified by 'mood'"),
        ({"n": 10, "systems": ["c"]}, "no system is called 'c'"),
    ],
)
def test_what_cannot_be_drawn(settings: dict[str, object], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        dialeval.sample(RUN, **settings)  # type: ignore[arg-type]


def test_a_name_that_cannot_be_written_is_refused() -> None:
    run = Run({"\udcff": RUN["a"]}, "0")
    with pytest.raises(SettingError, match="half of a surrogate pair"):
        dialeval.sample(run, 10)


def test_logs_with_some_dialogues_in_common_are_sampled_together() -> None:
    logs = sample_data.folder() / "logs"
    run = dialeval.evaluate({"v1": logs / "v1.jsonl", "v2": logs / "v2.jsonl"}, metrics="length")
    rows = dialeval.sample(run, 40).responses
    asked: dict[str, set[str]] = {}
    for row in rows:
        asked.setdefault(row.context[-1], set()).add(row.system)
    assert sum(len(systems) == 2 for systems in asked.values()) >= len(asked) - 3, "two dialogues are in v1 alone"
    whole = dialeval.sample(run, 40, dialogues=True).responses
    openings = {system: {row.context[0] for row in whole if row.system == system} for system in ("v1", "v2")}
    assert openings["v2"] <= openings["v1"]


def test_systems_with_other_rows_are_drawn_from_apart() -> None:
    other, _ = run_of(dialogues=20)
    run = Run({"a": RUN["a"], "c": other["a"]}, "0")
    assert abs(len(dialeval.sample(run, 24).responses) - 24) <= 1


def test_roles_come_along(tmp_path: Path) -> None:
    said = [("user", "hello"), ("assistant", "hi"), ("user", "bye"), ("assistant", "see you")]
    chats = [{"messages": [{"role": role, "content": f"{text} {at}"} for role, text in said]} for at in range(20)]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    run = dialeval.evaluate(tmp_path / "chats.jsonl", metrics="length")
    drawn = dialeval.sample(run, 40).save(tmp_path / "drawn")
    for row in read_sample(drawn).responses:
        assert row.roles == ["user", "assistant", "user"][: len(row.context)]
    lines = [json.loads(line) for line in (drawn / "rows.jsonl").read_text().splitlines()]
    lines[0]["roles"] = ["user"] * 9
    (drawn / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    design = json.loads((drawn / "sample.json").read_text())
    design["rows"]["sha256"] = hashlib.sha256((drawn / "rows.jsonl").read_bytes()).hexdigest()
    (drawn / "sample.json").write_text(json.dumps(design))
    with pytest.raises(DataError, match="does not have a role for each turn"):
        read_sample(drawn)


def test_strata_by_a_field_that_the_run_kept() -> None:
    topics, tags = ("food", "taxi"), ("x", "y")
    rows = [
        {"dialog_id": f"d{n // 2}", "response": f"reply {n}", "topic": topics[n % 2], "tags": list(tags[: n % 3])}
        for n in range(60)
    ]
    run = dialeval.evaluate(rows, metrics="length", keep=["topic", "tags"])
    drawn = dialeval.sample(run, 20, stratify=["topic"])
    assert {name: each.drawn_responses for name, each in drawn.design.strata.items()} == {
        "topic=food": 10,
        "topic=taxi": 10,
    }
    assert all(row.stratum == f"topic={topics[row.place % 2]}" for row in drawn.responses)
    assert set(dialeval.sample(run, 20, stratify=["tags"]).design.strata) == {"tags=none", "tags=x", "tags=x + y"}
    with pytest.raises(SettingError, match="there are turn, topic, tags"):
        dialeval.sample(run, 20, stratify=["mood"])


def test_a_sample_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every response of a long chat has all messages before it as its context."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": "w" * 100} for n in range(400)]
    run = dialeval.evaluate({"bot": [{"messages": messages}]}, metrics="length")
    texts = sum(100 * (2 * n + 1) + 100 for n in range(200))
    assert sampling.MOST_BYTES == 256 * 2**20, "as the list of limits says"
    monkeypatch.setattr(sampling, "MOST_BYTES", texts)
    roles = 9 * 200 * 200  # who said each turn is text as well
    with pytest.raises(SettingError, match="sample fewer rows, or cut long chats into dialogues"):
        dialeval.sample(run, 200)
    monkeypatch.setattr(sampling, "MOST_BYTES", texts + roles)
    assert len(dialeval.sample(run, 200).responses) == 200


def test_floors_are_not_rated_unless_there_is_nothing_else() -> None:
    floor = replace(RUN["b"], role="floor")
    assert list(select_tables(Run({"a": RUN["a"], "low": floor}, "0"), None)) == ["a"]
    assert list(select_tables(Run({"low": floor}, "0"), None)) == ["low"]
    assert list(select_tables(Run({"a": RUN["a"], "low": floor}, "0"), ["low"])) == ["low"]
    with pytest.raises(SettingError, match=r"^no system is named$"):
        select_tables(RUN, [])


def test_rows_without_turns_have_none() -> None:
    run = dialeval.evaluate({"a": ["one", "two", "three"]}, metrics="length")
    assert {(row.turn, row.dialog_id) for row in dialeval.sample(run, 3).responses} == {(None, None)}
    with pytest.raises(SettingError, match="do not say which turn they are"):
        dialeval.sample(run, 3, stratify=["turn"])
    rows = [{"response": "hi", "dialog_id": f"d{n}", **({"turn": 5} if n % 2 else {})} for n in range(8)]
    some = dialeval.sample(dialeval.evaluate(rows, metrics="length"), 8, stratify=["turn"])
    assert sorted((row.stratum, row.turn or 0) for row in some.responses) == [
        *[("turn=5", 5)] * 4,
        *[("turn=none", 0)] * 4,
    ]
