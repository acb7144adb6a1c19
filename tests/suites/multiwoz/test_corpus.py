from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.suites.multiwoz.data import read_task


def test_the_files_of_a_task(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no goals.json"):
        read_task(tmp_path)
    (tmp_path / "goals.json").write_text(
        '{"a1": {"inn": {"informable": {"area": 3}, "requestable": "PHONE"}}, "b2": 1}'
    )
    (tmp_path / "gold_states.json").write_text('{"a1": [{"inn": "x"}, 3], "b2": {}}')
    (tmp_path / "references").mkdir()
    (tmp_path / "references" / "mwz22.json").write_text("[")
    with pytest.raises(DataError) as caught:
        read_task(tmp_path)
    text = "\n".join(map(str, caught.value.problems))
    for part in (
        "a1.inn.informable.area",
        "a1.inn.requestable",
        "b2: is a number",
        "a1[0].inn",
        "a1[1]",
        "mwz22.json:1",
    ):
        assert part in text
    with pytest.raises(SettingError, match="has no splits"):
        read_task(tmp_path, "dev")


def test_files_that_disagree_about_turns(tmp_path: Path) -> None:
    (tmp_path / "goals.json").write_text('{"a1": {}}')
    with pytest.raises(DataError, match="says nothing about turns"):
        read_task(tmp_path)
    (tmp_path / "gold_states.json").write_text('{"a1": [{}]}')
    (tmp_path / "booked_domains.json").write_text('{"a1": [[], []]}')
    with pytest.raises(DataError, match="a1: has 2 turns in booked_domains, 1 turns in gold_states"):
        read_task(tmp_path)
