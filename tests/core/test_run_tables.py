"""Runs as tables: a line for every estimate, a line for every item."""

from __future__ import annotations

import math
import posixpath
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from core.test_result import make_run
from dialeval import sample_data
from dialeval.core.display import flatten_estimates
from dialeval.core.fold import Estimate, Level
from dialeval.multiwoz import Evaluator

ROWS = [{"dialog_id": f"d{n // 2}", "turn": n % 2, "response": "one two three"[: 3 + n]} for n in range(6)]


@pytest.fixture(scope="module")
def run() -> dialeval.Run:
    return dialeval.evaluate({"a": ROWS, "b": [row["response"] for row in ROWS]}, metrics="length,distinct")


@pytest.fixture(scope="module")
def town() -> dialeval.Run:
    return Evaluator(data="town").run(sample_data.folder() / "town" / "predictions")


def test_a_line_per_system_and_key(run: dialeval.Run) -> None:
    lines = run.to_arrow().to_pylist()
    assert [(line["system"], line["metric"]) for line in lines] == [(name, key) for name in run for key in run[name]]
    for line in lines:
        estimate = run[line["system"]][line["metric"]]
        assert (line["mean"], line["units"], line["scored"]) == (estimate.mean, estimate.units, estimate.scored)
        assert math.isnan(line["std"]) if estimate.corpus else line["std"] == estimate.std
        low, high = line["low"], line["high"]
        assert (low, high) == (estimate.interval or (None, None))
        assert math.isnan(line["half_width"]) if low is None else line["half_width"] == (high - low) / 2
        assert "confidence" not in line
        assert line["signature"] == str(estimate.signature)
        assert line["of"] == ("corpus" if estimate.corpus else "rows")
    own = run["a"].to_arrow()
    assert "system" not in own.column_names
    assert own["mean"].to_pylist() == [estimate.mean for estimate in run["a"].values()]


def test_nothing_is_lost_where_there_is_nothing() -> None:
    empty = dialeval.Run({}, "0.1.0")
    assert empty.to_arrow().num_rows == empty.score_table.to_arrow().num_rows == 0
    assert empty.to_arrow().schema == make_run(np.array([1.0])).to_arrow().schema
    means = make_run(np.array([1.0])).to_arrow()["mean"].to_pylist()
    assert sum(math.isnan(mean) for mean in means) == 1


def test_a_line_per_row_with_its_place_and_text(run: dialeval.Run) -> None:
    frame = run.score_table.to_pandas()
    assert list(frame.columns) == [
        *("system", "level", "row", "dialog_id", "turn", "response", "length", "distinct-1", "distinct-2")
    ]
    own = frame[frame["system"] == "a"]
    assert own["row"].tolist() == list(range(1, len(ROWS) + 1))
    assert own["length"].tolist() == run["a"]["length"].scores.tolist()  # type: ignore[union-attr]
    assert own["response"].tolist() == [row["response"] for row in ROWS]
    assert own["dialog_id"].tolist() == [row["dialog_id"] for row in ROWS]
    assert own["turn"].tolist() == [row["turn"] for row in ROWS]
    assert frame[frame["system"] == "b"]["dialog_id"].isna().all()
    assert run.score_table.to_polars().shape == frame.shape


def test_contexts_and_kept_fields_are_columns() -> None:
    """Also of a row with several values, of a field with the name of a metric, and of dialogues."""
    rows = [
        {"dialog_id": "x", "context": ["a"], "response": "yes", "city": "Bern", "length": "s", "topic": ["food", "b"]},
        {"dialog_id": "x", "context": ["a", "yes", "b"], "response": "no no", "city": "Genf", "length": "s"},
        {"dialog_id": "y", "context": [], "response": "so", "city": "Bern", "reference": "so so", "topic": ["bus"]},
    ]
    kept = dialeval.evaluate({"one": rows, "two": rows[:2]}, metrics="length,distinct-1", keep="city,length,topic")
    table = kept.score_table.to_arrow()
    assert [name for name in table.column_names if name not in kept.keys_in_order] == [
        *("system", "level", "row", "dialog_id", "context", "response", "reference", "city", "field/length", "topic")
    ]
    lines = [line for line in table.to_pylist() if line["system"] == "one"]
    assert [line["context"] for line in lines] == [row["context"] for row in rows]
    assert [line["reference"] for line in lines] == [[], [], ["so so"]]
    assert [line["city"] for line in lines] == ["Bern", "Genf", "Bern"]
    assert [line["field/length"] for line in lines] == ["s", "s", None]
    assert [line["topic"] for line in lines] == [["food", "b"], [], ["bus"]]
    assert [line["length"] for line in lines] == [1.0, 2.0, 1.0]


def test_rows_have_the_same_number_everywhere(run: dialeval.Run, tmp_path: Path) -> None:
    """In the item table, in the files of a saved run and in a sample."""
    rows = pq.read_table(run.save(tmp_path) / "rows.parquet").to_pylist()
    texts = {(line["system"], line["row"]): line["response"] for line in rows}
    saved = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert {(line["system"], line["row"]) for line in saved} == texts.keys()
    shown = {(line["system"], line["row"]): line["response"] for line in run.score_table.to_arrow().to_pylist()}
    assert shown == texts
    for row in dialeval.sample(run, 6).responses:
        assert texts[row.system, row.row] == row.response


def test_items_of_dialogues_stand_below_those_of_turns(town: dialeval.Run) -> None:
    table = town.score_table.to_polars()
    for system in town:
        for level in Level:
            own = table.filter((table["system"] == system) & (table["level"] == level.value))
            items = {k: e.scores for k, e in town[system].items() if e.level is level and e.scores is not None}
            assert len(own) == len(next(iter(items.values())))
            for key, values in items.items():
                np.testing.assert_array_equal(own[key].to_numpy(), values)
    dialogues = table.filter(table["level"] == "dialogue")
    assert dialogues["dialog_id"].null_count() == 0


def test_flat_figures_have_plain_names() -> None:
    run = dialeval.evaluate(
        {"my bot": ["a b", "c"], "my_bot": ["a", "b"], "../x": ["", ""]},
        metrics=["length", "distinct(n=3,per=response)"],
    )
    flat = run.flat()
    assert (flat["my_bot/length/mean"], flat["my_bot-2/length/mean"], flat["_/x/length/mean"]) == (1.5, 1.0, 0.0)
    assert (flat["my_bot/length/low"], flat["my_bot/length/high"]) == run["my bot"]["length"].interval
    distinct = "my_bot/distinct_n_3_per_response"
    assert (flat[f"{distinct}/units"], flat[f"{distinct}/scored"]) == (2, 0)
    assert f"{distinct}/mean" not in flat, "what could not be computed is left out"
    alone = run["my bot"].flat()
    assert alone == {key.removeprefix("my_bot/"): value for key, value in flat.items() if key.startswith("my_bot/")}


@given(
    names=st.lists(
        st.text("aA/ ._(é", max_size=4) | st.sampled_from(["mean", "rows", "mean/low", "a" * 500]), unique=True
    )
)
def test_flat_names_are_safe_and_never_clash(names: list[str]) -> None:
    estimate = Estimate(1.0, 0.0, 3, 2, interval=(0.5, 1.5))
    for systems in ({name: {"length": estimate} for name in names}, {None: dict.fromkeys(names, estimate)}):
        flat = flatten_estimates(systems)  # type: ignore[arg-type]
        assert len(flat) == 5 * len(names)
        assert len({name.lower() for name in flat}) == len(flat)
        folders = {name[:at].lower() for name in flat for at, letter in enumerate(name) if letter == "/"}
        assert not folders & {name.lower() for name in flat}, "a figure would be the folder of another"
        for name in flat:
            assert re.fullmatch(r"[A-Za-z0-9_.\-/]{1,250}", name)
            assert name == posixpath.normpath(name)
            assert not name.startswith(("/", "."))


def test_flat_keys_with_parts(town: dialeval.Run) -> None:
    flat = next(iter(town.values())).flat()
    assert "inform/mean" in flat
    assert any(re.fullmatch("inform/[a-z]+/mean", name) for name in flat)
