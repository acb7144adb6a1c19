from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import DataError
from dialeval.suites.sgd.data import read_schema


def service(name: str, **slots: bool) -> dict[str, Any]:
    return {
        "service_name": name,
        "slots": [{"name": slot, "is_categorical": categorical} for slot, categorical in slots.items()],
    }


def problems_of(document: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_schema(document)
    return [str(problem) for problem in caught.value.problems]


def test_the_digest_is_of_what_counts() -> None:
    digest = read_schema([service("A_1", a=True, b=False)]).digest
    assert read_schema([{**service("A_1", a=True, b=False), "description": "x"}]).digest == digest
    for other in (service("A_2", a=True, b=False), service("A_1", a=True, b=True), service("A_1", b=False, a=True)):
        assert read_schema([other]).digest != digest


def test_every_problem_at_once(tmp_path: Path) -> None:
    assert problems_of({"a": 1}) == [
        "schema: is an object, not a list of services; give a list of services, each with service_name and slots"
    ]
    document = [{"slots": [{"name": 1, "is_categorical": "yes"}, {}]}, {"service_name": "A_1"}, 5]
    found = "\n".join(problems_of(document))
    for what in (
        "[0]: has no service_name",
        "[0].slots[0].name: is a number, not a text",
        "[0].slots[0].is_categorical: is a string, not true or false",
        "[0].slots[1]: has no name",
        "[0].slots[1]: has no is_categorical",
        "[1]: has no slots",
        "[2]: is a number",
    ):
        assert what in found
    twice = service("A_1", a=True)
    twice["slots"] *= 2
    assert problems_of([twice, service("A_1")]) == [
        "schema: [0].slots: the slot 'a' occurs twice; keep one of them",
        "schema: [1]: the service 'A_1' occurs twice; keep one of them",
    ]
    with pytest.raises(DataError, match="no such file"):
        read_schema(tmp_path / "schema.json")
