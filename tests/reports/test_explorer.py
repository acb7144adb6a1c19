"""The rows of the explorer: side by side where they are the same, each text once, a fair part of very many."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.reports import explorer as module
from dialeval.reports.explorer import make_explorer
from dialeval.reports.html import render
from reports.test_html import Page


def result(items: dict[str, list[float]], rows: RowTable | None, level: Level = Level.TURN) -> Result:
    columns = {key: np.array(values) for key, values in items.items()}
    return Result(
        {key: Estimate(0.5, 0.1, len(c), len(c), scores=c, level=level) for key, c in columns.items()}, rows=rows
    )


def table(*responses: str, **texts: list[list[str]]) -> RowTable:
    columns = {name: RaggedColumn.from_lists(lists) for name, lists in texts.items()}
    columns_all: dict[str, Any] = {"response": TextColumn.from_strings(list(responses)), **columns}
    return RowTable(np.arange(len(responses) + 1), texts=columns_all)


def data_of(run: Run) -> dict[str, Any]:
    found = make_explorer(run)
    assert found is not None
    return found[1]


def test_who_said_the_turns_of_a_context() -> None:
    chat = [{"role": role, "content": f"by {role}"} for role in ("system", "user", "assistant", "user", "assistant")]
    data = data_of(dialeval.evaluate([{"messages": chat}], metrics="length"))
    (group,) = data["groups"]
    roles = [[data["texts"][at] for at in row] for row in group["roles"]]
    assert roles == [["user"], ["user", "assistant", "user"]]
    assert [[data["texts"][at] for at in row] for row in group["context"]] == [
        [f"by {role}" for role in row] for row in roles
    ]
    assert data_of(dialeval.evaluate(["a"], contexts=["b"], metrics="length"))["groups"][0]["roles"] is None


def test_of_many_rows_the_most_different_and_a_sample_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    far = [7, 13, 40, 77, 99]
    base = np.zeros(100)
    base[far] = 5
    rows = table(*map(str, range(100)))
    run = Run({"a": result({"k": base.tolist()}, rows), "b": result({"k": [0.0] * 100}, rows)}, "0")
    (group,) = data_of(run)["groups"]
    shown = group["rows"]
    assert (len(shown), group["total"]) == (10, 100)
    assert shown == sorted(set(shown))
    assert {row + 1 for row in far} <= set(shown)
    assert data_of(run)["groups"][0]["rows"] == shown
    assert "Of the 100 rows of" in Page(render(run)).text


def test_long_texts_make_fewer_rows_and_very_long_ones_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARACTERS", 10 * (100 + module.SCORE_CHARACTERS))
    monkeypatch.setattr(module, "MOST_OF_A_TEXT", 50)
    data = data_of(Run({"a": result({"k": [0.0] * 50}, table(*(f"{at:0100}" for at in range(50))))}, "0"))
    assert data["groups"][0]["shown"] == 10
    assert all(text.endswith("… (50 characters are left out)") for text in data["texts"])


def test_the_data_in_the_page_cannot_end_its_element() -> None:
    hostile = "</script><script>alert(1)</script><!-- & \u2028\u2029"
    run = dialeval.evaluate({hostile: [hostile]}, contexts=[hostile], references=[hostile], metrics="length")
    page = Page(render(run))
    types = [attrs.get("type") for attrs in page.of("script")]
    data = page.scripts[types.index("application/json")]
    assert not set("<>&\u2028\u2029") & set(data)
    assert json.loads(data)["texts"] == [hostile]


def test_saved_runs_have_their_rows(tmp_path: Any) -> None:
    run = dialeval.evaluate({"a": ["x y", "z"]}, contexts=["one", "two"], metrics="length")
    assert data_of(dialeval.load(run.save(tmp_path))) == data_of(run)


def test_of_a_long_context_the_last_turns_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TURNS", 2)
    messages = [{"role": ("user", "assistant")[turn % 2], "content": str(turn)} for turn in range(6)]
    data = data_of(dialeval.evaluate([{"messages": messages}], metrics="length"))
    (group,) = data["groups"]
    shown = [[data["texts"][at] for at in row] for row in group["context"]]
    assert shown == [
        ["0"],
        ["… (1 before these are left out)", "1", "2"],
        ["… (3 before these are left out)", "3", "4"],
    ]
