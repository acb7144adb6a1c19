from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.io import json
from dialeval.io.json import OBJECT, Shape, shape_problems

TEXT = Shape((str,), "a text", "write one")
NAME = Shape((str,), "a name", "name it", required=True)
NOTES = Shape((list,), "a list of texts", "list them", TEXT, or_nothing=True)
PLACE = Shape(OBJECT, "a place", "give a name and notes", {"name": NAME, "notes": NOTES})
PLACES = Shape(OBJECT, "an object of places", "give places", Shape((list,), "a list of places", "list them", PLACE))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"town": [{"name": "inn", "notes": ["x"], "more": 5}], "hill": []}, []),
        ({"town": [{"name": "inn", "notes": None}, {"name": "", "notes": {}}]}, []),
        (7, ["FILE: is a number, not an object of places; give places"]),
        ({"town": {}}, ["FILE: town: is an object, not a list of places; list them"]),
        ({"town": [{}]}, ["FILE: town[0]: has no name; name it"]),
        (
            {"town": [{"name": "x"}, {"name": None, "notes": ["a", 1, True]}], "hill": "y"},
            [
                "FILE: town[1].name: is null, not a name; name it",
                "FILE: town[1].notes[1]: is a number, not a text; write one",
                "FILE: town[1].notes[2]: is true or false, not a text; write one",
                "FILE: hill: is a string, not a list of places; list them",
            ],
        ),
    ],
)
def test_every_mismatch_with_its_path(document: Any, expected: list[str]) -> None:
    assert [str(problem) for problem in shape_problems(document, PLACES, "FILE")] == expected


names = st.one_of(st.text(max_size=1), st.none(), st.integers())
notes: st.SearchStrategy[Any] = st.one_of(st.lists(names, max_size=2), st.none(), st.just({}), st.just({"x": 1}))
places = st.one_of(st.fixed_dictionaries({}, optional={"name": names, "notes": notes, "more": names}), names)
documents = st.dictionaries(st.sampled_from("ab"), st.one_of(st.lists(places, max_size=2), names), max_size=2)


@given(documents)
def test_what_fits_at_once_has_no_problem_and_the_other_way_round(document: Any) -> None:
    problems: list[Any] = []
    json._check(document, PLACES, (), "FILE", problems)
    assert json._fit([document], PLACES) == (not problems)
