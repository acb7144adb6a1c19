"""Runs as tables: a line for every estimate, a line for every item."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dialeval
from core.test_result import make_run
from dialeval import sample
from dialeval.core.fold import Level
from dialeval.multiwoz import Evaluator

ROWS = [{"dialog_id": f"d{n // 2}", "turn": n % 2, "response": "one two three"[: 3 + n]} for n in range(6)]


@pytest.fixture(scope="module")
def run() -> dialeval.Run:
    return dialeval.evaluate({"a": ROWS, "b": [row["response"] for row in ROWS]}, metrics="length,distinct")


@pytest.fixture(scope="module")
def town() -> dialeval.Run:
    return Evaluator(data="town").run(sample.folder() / "town" / "predictions")


def test_a_line_per_system_and_key(run: dialeval.Run) -> None:
    lines = run.to_arrow().to_pylist()
    assert [(line["system"], line["metric"]) for line in lines] == [(name, key) for name in run for key in run[name]]
    for line in lines:
        estimate = run[line["system"]][line["metric"]]
        assert (line["mean"], line["std"], line["rows"], line["scored"]) == (
            *(estimate.mean, estimate.std, estimate.rows, estimate.scored),
        )
        assert (line["low"], line["high"]) == (estimate.interval or (None, None))
        assert line["signature"] == str(estimate.signature)
        assert line["of"] == ("corpus" if estimate.corpus else "rows")
    own = run["a"].to_arrow()
    assert "system" not in own.column_names
    assert own["mean"].to_pylist() == [estimate.mean for estimate in run["a"].values()]


def test_nothing_is_lost_where_there_is_nothing() -> None:
    empty = dialeval.Run({}, "0.1.0")
    assert empty.to_arrow().num_rows == empty.item_table.to_arrow().num_rows == 0
    assert empty.to_arrow().schema == make_run(np.array([1.0])).to_arrow().schema
    means = make_run(np.array([1.0])).to_arrow()["mean"].to_pylist()
    assert sum(math.isnan(mean) for mean in means) == 1


def test_a_line_per_row_with_its_place_and_text(run: dialeval.Run) -> None:
    frame = run.item_table.to_pandas()
    assert list(frame.columns) == [
        *("system", "level", "row", "dialog_id", "turn", "response", "length", "distinct-1", "distinct-2"),
    ]
    own = frame[frame["system"] == "a"]
    assert own["length"].tolist() == run["a"]["length"].items.tolist()  # type: ignore[union-attr]
    assert own["response"].tolist() == [row["response"] for row in ROWS]
    assert own["dialog_id"].tolist() == [row["dialog_id"] for row in ROWS]
    assert own["turn"].tolist() == [row["turn"] for row in ROWS]
    assert frame[frame["system"] == "b"]["dialog_id"].isna().all()
    assert run.item_table.to_polars().shape == frame.shape


def test_items_of_dialogues_stand_below_those_of_turns(town: dialeval.Run) -> None:
    table = town.item_table.to_polars()
    for system in town:
        for level in Level:
            own = table.filter((table["system"] == system) & (table["level"] == level.value))
            items = {k: e.items for k, e in town[system].items() if e.level is level and e.items is not None}
            assert len(own) == len(next(iter(items.values())))
            for key, values in items.items():
                np.testing.assert_array_equal(own[key].to_numpy(), values)
    dialogues = table.filter(table["level"] == "dialogue")
    assert dialogues["dialog_id"].null_count() == 0
