"""Reading a saved run: parts of consecutive rows are put together, and what does not fit is refused with its file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import DataError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run, load
from dialeval.core.rowtable import PartWriter, RowTable
from sealing import write_sealed


def saved(folder: Path, values: list[list[float]], names: dict[str, str] | None = None) -> Path:
    """A run of one system whose items are in several parts."""
    parts = []
    for each in values:
        writer = PartWriter(str(folder.parent / "nowhere"))
        rows = RowTable(np.arange(len(each) + 1), [f"d{value}" for value in each])
        writer.add("s", {"turn": {"x": np.array(each)}}, rows)
        parts += [(part, names or {}) for part in writer.finish()]
    count = sum(map(len, values))
    estimate = Estimate(sum(map(sum, values)) / count, 0.0, count, count)
    return Run({(names or {}).get("s", "s"): Result({"x": estimate})}, "0").save(folder, parts)


def test_parts_are_read_as_one(tmp_path: Path) -> None:
    for number, cut in enumerate(([[1.0, 2.0, 3.0]], [[1.0], [2.0, 3.0]], [[1.0], [2.0], [3.0]])):
        result = load(saved(tmp_path / str(number), cut))["s"]
        np.testing.assert_array_equal(result["x"].scores, [1, 2, 3])
        assert result.rows == RowTable(np.arange(4), ["d1.0", "d2.0", "d3.0"])


def test_a_run_that_is_saved_again_leaves_no_old_parts(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run", [[1.0], [2.0], [3.0]])
    saved(folder, [[1.0]])
    assert sorted(path.name for path in folder.iterdir()) == ["rows-00000.parquet", "run.json", "scores-00000.parquet"]
    load(folder).save(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["rows.parquet", "run.json", "scores.parquet"]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    one, two = saved(tmp_path / "one", [[1.0], [2.0]]), saved(tmp_path / "two", [[3.0], [4.0]])
    part = one / "scores-00001.parquet"
    part.write_bytes((two / part.name).read_bytes())
    with pytest.raises(DataError, match=r"scores-00001.parquet"):
        load(one)
    document = json.loads((two / "run.json").read_text())
    document["scores"].pop()
    write_sealed(document, two / "run.json")
    with pytest.raises(DataError, match="1 values of x are saved for 2 rows"):
        load(two)


def test_no_digit_of_a_saved_run_is_changed_unnoticed(tmp_path: Path) -> None:
    """Each digit of `run.json` in turn is another one, as on a damaged disk or by somebody's hand."""
    file = saved(tmp_path, [[0.25, 0.5]]) / "run.json"
    sound = file.read_bytes()
    places = [place for place, byte in enumerate(sound) if chr(byte).isdigit()]
    assert len(places) > 50
    for place in places:
        digit = b"%d" % ((sound[place] - ord("0") + 5) % 10)
        file.write_bytes(sound[:place] + digit + sound[place + 1 :])
        with pytest.raises(DataError, match=r"run.json"):
            load(tmp_path)
    file.write_bytes(sound)
    assert load(tmp_path)["s"]["x"].mean == 0.375


def test_a_run_without_a_digest_is_refused_and_one_with_other_spaces_is_not(tmp_path: Path) -> None:
    file = saved(tmp_path, [[0.25, 0.5]]) / "run.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document))
    assert load(tmp_path)["s"]["x"].mean == 0.375
    del document["digest"]
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match="digest"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("mean", 0.97, "s: the values of x have the mean 0.375, and 0.97 is stated"),
        ("mean", None, "s: the values of x have the mean 0.375, and nan is stated"),
        ("mean", 0.375000001, "s: the values of x have the mean 0.375, and 0.375 is stated"),
        ("scored", 1, "s: 2 values of x are saved, and 1 are stated"),
    ],
)
def test_a_mean_that_its_items_do_not_have_is_refused_whatever_the_digest_says(
    tmp_path: Path, field: str, value: float | None, what: str
) -> None:
    file = saved(tmp_path, [[0.25, 0.5]]) / "run.json"
    document = json.loads(file.read_text())
    document["systems"]["s"]["metrics"]["x"][field] = value
    write_sealed(document, file)
    with pytest.raises(DataError, match=what):
        load(tmp_path)
