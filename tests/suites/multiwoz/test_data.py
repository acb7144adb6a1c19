"""The data of a task: the shipped town, slots that are known, and goals that no ontology covers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from dialeval import sample_data
from dialeval.core.errors import DataError
from dialeval.suites.multiwoz.data import load_task
from dialeval.suites.multiwoz.feature import GOALS, ONTOLOGY, TRUE_STATES, VENUES

pytestmark = pytest.mark.usefixtures("cache")


def test_the_town_has_everything() -> None:
    town = load_task("town")
    assert set(town.resources) >= {GOALS, TRUE_STATES, ONTOLOGY, VENUES}
    domain, table = next(iter(town.venues.tables.items()))
    assert (domain, table.columns[0]) in town.known_slots
    assert ("no such domain", "name") not in town.known_slots


def test_the_digest_of_each_part_is_of_its_own_files(tmp_path: Path) -> None:
    def digests() -> tuple[str, str, str]:
        files = load_task(folder).files
        assert files.states is not None
        assert files.references is not None
        return files.goals.digest, files.states.digest, files.references.digest

    folder = shutil.copytree(sample_data.folder() / "town", tmp_path / "town")
    before = digests()
    assert [len(digest) for digest in before] == [12, 12, 12]
    assert len(set(before)) == 3
    for name, changed in (
        ("goals.json", 0),
        ("booked_domains.json", 0),
        ("gold_states.json", 1),
        ("references/town.json", 2),
    ):
        (file,) = folder.rglob(name)
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        assert [one != other for one, other in zip(before, digests(), strict=True)] == [
            at == changed for at in range(3)
        ]
        file.write_bytes(content)


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


def test_a_booking_without_slots_may_be_an_empty_list_and_no_other(tmp_path: Path) -> None:
    folder = shutil.copytree(sample_data.folder() / "town", tmp_path / "town")
    file = next(iter(folder.rglob("goals.json")))
    goals = json.loads(file.read_text("utf-8"))
    name, goal = next(iter(goals.items()))
    domain, wishes = next(iter(goal.items()))
    for empty in ("[]", "null", "{}"):
        wishes["booking"] = json.loads(empty)
        file.write_text(json.dumps(goals), "utf-8")
        load_task(folder)
    wishes["booking"] = [3]
    file.write_text(json.dumps(goals), "utf-8")
    with pytest.raises(DataError, match=rf"{name}\.{domain}\.booking: is a list, not an object"):
        load_task(folder)
