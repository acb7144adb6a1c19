"""The dialogues in the data of the page: matched, each text once, a fair part of very many, calls as a difference."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval import sample_data
from dialeval.analysis.alignment import align_dialogues
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.reports import explorer as module
from reports.test_html import Page, render

HERE = sample_data.folder()


def result(items: dict[str, list[float]], rows: RowTable | None, level: Level = Level.TURN) -> Result:
    columns = {key: np.array(values) for key, values in items.items()}
    return Result(
        {key: Estimate(0.5, 0.1, len(c), len(c), scores=c, level=level) for key, c in columns.items()}, table=rows
    )


def table(*responses: str, **texts: list[list[str]]) -> RowTable:
    columns = {name: RaggedColumn.from_lists(lists) for name, lists in texts.items()}
    columns_all: dict[str, Any] = {"response": TextColumn.from_strings(list(responses)), **columns}
    return RowTable(np.arange(len(responses) + 1), texts=columns_all)


def data_of(run: Run) -> dict[str, Any]:
    """The data of the first block of a page, with the texts in place of their numbers."""
    page = Page(render(run))
    types = [attrs.get("type") for attrs in page.of("script")]
    data = json.loads(page.scripts[types.index("application/json")])[0]
    for side in data["sides"]:
        for name in ("context", "roles", "reference", "response"):
            if side[name] is not None and "groups" not in side:
                side[name] = [[data["texts"][at] for at in row] for row in side[name]]
    found: dict[str, Any] = data
    return found


def chats(*numbers: int, reply: str = "yes", turns: int = 2) -> list[dict[str, Any]]:
    """Chats of users who say the same in every system."""
    return [
        {
            "messages": [
                {"role": role, "content": f"{number} {turn}" if role == "user" else f"{reply} {number}"}
                for turn in range(turns)
                for role in ("user", "assistant")
            ]
        }
        for number in numbers
    ]


def test_logs_with_some_dialogues_in_common_are_next_to_each_other() -> None:
    logs = HERE / "logs"
    run = dialeval.evaluate({"v1": logs / "v1.jsonl", "v2": logs / "v2.jsonl"}, metrics="length")
    aligned = align_dialogues(run.systems)
    assert aligned.places.shape == (30, 2)
    assert len(aligned.find_common("v2")) == 28
    change = aligned.differences("v2", "length")
    comparison = dialeval.compare(run).of("v2")[0]
    weights = aligned.measure("v2", "length")[1]
    assert np.nansum(change * weights) / weights.sum() == pytest.approx(comparison.difference)
    worst = aligned.order_by_loss("v2", "length")
    assert len(worst) == 28
    data = data_of(run)
    at = data["numbers"].index(int(worst[0]) + 1)
    sides = [side["response"][side["offsets"][at] : side["offsets"][at + 1]] for side in data["sides"]]
    assert len(sides[0]) == len(sides[1]) > 0
    assert len(np.unique(np.concatenate(list(aligned.number_rows().values())))) == 60


def test_dialogues_of_other_lengths_and_other_users() -> None:
    longer = dialeval.evaluate({"a": chats(1, 2, 3), "b": chats(1, 2, 3, reply="no no", turns=3)}, metrics="length")
    wholes = data_of(Run({name: longer[name] for name in longer}, "0"))
    assert wholes["total"] >= 3
    others = dialeval.evaluate({"a": chats(1, 2, 3), "b": chats(7, 8, 9, reply="no no")}, metrics="length")
    unpaired = data_of(others)
    assert unpaired["unpaired"] == [False, True]
    assert unpaired["total"] == 6
    assert [np.diff(side["offsets"]).tolist() for side in unpaired["sides"]] == [[2] * 3 + [0] * 3, [0] * 3 + [2] * 3]


def test_only_the_new_turns_of_a_context_are_held() -> None:
    chat = [{"role": role, "content": f"by {role}"} for role in ("system", "user", "assistant", "user", "assistant")]
    (side,) = data_of(dialeval.evaluate([{"messages": chat}], metrics="length"))["sides"]
    assert side["roles"] == [["user"], ["user"]]
    assert side["context"] == [["by user"], ["by user"]]
    (side,) = data_of(dialeval.evaluate(["a"], contexts=["b"], metrics="length"))["sides"]
    assert side["roles"] is None


def test_of_many_rows_the_most_different_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    far = [7, 13, 40, 77, 99]
    base = np.zeros(100)
    base[far] = 5
    rows = table(*map(str, range(100)))
    data = data_of(Run({"a": result({"k": base.tolist()}, rows), "b": result({"k": [0.0] * 100}, rows)}, "0"))
    assert (len(data["numbers"]), data["total"]) == (10, 100)
    assert {row + 1 for row in far} <= set(data["numbers"])
    assert data["numbers"] == sorted(set(data["numbers"]))


def test_long_texts_make_fewer_rows_and_very_long_ones_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARACTERS", 10 * (100 + module.SCORE_CHARACTERS))
    monkeypatch.setattr(module, "MOST_OF_A_TEXT", 50)
    data = data_of(Run({"a": result({"k": [0.0] * 50}, table(*(f"{at:0100}" for at in range(50))))}, "0"))
    assert len(data["numbers"]) == 10
    assert all(text.endswith("… (50 characters are left out)") for text in data["texts"])


def test_the_data_in_the_page_cannot_end_its_element() -> None:
    hostile = "</script><script>alert(1)</script><!-- & \u2028\u2029"
    run = dialeval.evaluate({hostile: [hostile]}, contexts=[hostile], references=[hostile], metrics="length")
    page = Page(render(run))
    types = [attrs.get("type") for attrs in page.of("script")]
    data = page.scripts[types.index("application/json")]
    assert not set("<>&\u2028\u2029") & set(data)
    assert json.loads(data)[0]["texts"] == [hostile]


def test_saved_runs_have_their_dialogues(tmp_path: Any) -> None:
    run = dialeval.evaluate({"a": ["x y", "z"]}, contexts=["one", "two"], metrics="length")
    assert data_of(dialeval.load(run.save(tmp_path))) == data_of(run)


def test_of_a_long_context_the_last_turns_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TURNS", 2)
    context = [str(turn) for turn in range(6)]
    (side,) = data_of(dialeval.evaluate(["yes"], contexts=[context], metrics="length"))["sides"]
    assert side["context"] == [["… (4 before these are left out)", "4", "5"]]


def trial(number: int, reward: float, calls: list[str]) -> dict[str, Any]:
    def name(card: str) -> dict[str, Any]:
        return {"name": "find", "arguments": {"card": card}}

    made = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": call, "function": name(call)}]} for call in calls
    ]
    said = [{"role": "user", "content": "find it"}, *made, {"role": "assistant", "content": f"trial {number}"}]
    expected = [name("A"), name("B")]
    return {"dialog_id": "t", "trial": number, "reward": reward, "expected_calls": expected, "messages": said}


@pytest.mark.parametrize(
    ("calls", "signs"),
    [
        (["A", "B"], ["=", "="]),
        (["A"], ["=", "-"]),
        (["A", "X", "B"], ["=", "+", "="]),
        (["A", "B", "B"], ["=", "=", "+"]),
    ],
)
def test_calls_are_a_difference_from_expected_ones(calls: list[str], signs: list[str], tmp_path: Any) -> None:
    rows = [trial(0, 1.0, ["A", "B"]), trial(1, 0.0, calls)]
    run = dialeval.evaluate({"agent": rows}, metrics="call-f1,pass-hat-1")
    for shown in (run, dialeval.load(run.save(tmp_path))):
        (side,) = data_of(shown)["sides"]
        assert [trial["trial"] for begun in side["trials"].values() for trial in begun] == ["0", "1"]
        found = [[sign for sign, _, _ in lines] for lines in side["calls"].values()]
        assert found == [["=", "="], signs]


def test_calls_in_another_order_say_so() -> None:
    run = dialeval.evaluate({"agent": [trial(0, 0.0, ["B", "A"])]}, metrics="call-f1,pass-hat-1")
    lines = next(iter(data_of(run)["sides"][0]["calls"].values()))
    assert {about for sign, _, about in lines if sign != "="} <= {"called in another order", "in another order"}


def test_a_run_without_rows_has_no_dialogues() -> None:
    with pytest.raises(SettingError):
        align_dialogues({"a": result({"k": [1.0]}, None)})
    assert 'id="dialogues"' not in render(Run({"a": result({"k": [1.0]}, None)}, "0"))
