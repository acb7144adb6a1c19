"""The data of a task: the shipped town, slots that are known, and goals that no ontology covers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dialeval import sample_data
from dialeval.core.errors import DataError
from dialeval.suites.multiwoz.data import load_task

pytestmark = pytest.mark.usefixtures("cache")


def test_goals_beyond_the_ontology_are_problems(tmp_path: Path) -> None:
    folder = shutil.copytree(sample_data.folder() / "town", tmp_path / "town")
    file = next(iter(folder.rglob("goals.json")))
    goals = json.loads(file.read_text("utf-8"))
    name, goal = next(iter(goals.items()))
    wishes = next(iter(goal.values()))
    goal["circus"] = {**wishes, "requestable": ["FAX"]}
    file.write_text(json.dumps(goals), "utf-8")
    with pytest.raises(DataError) as caught:
        load_task(folder)
    places = [problem.where.rpartition(": ")[2] for problem in caught.value.problems]
    assert places == [f"{name}.circus", f"{name}.circus.requestable"]
