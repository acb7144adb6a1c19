"""Documents against types: every mismatch with its path, and none where msgspec finds none."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from dialeval.io.schemas import _find_mismatches, _fits, check_types


class _Place(Struct):
    name: str
    notes: list[str] | None = None
    kind: Literal["inn", "hill"] = "inn"
    height: Annotated[int, Meta(ge=0, description="a height from 0 on")] = 0


class _Closed(Struct, forbid_unknown_fields=True):
    name: str = ""
    open: bool = True


PLACES = dict[str, list[_Place]]


def test_entries_that_nobody_knows_are_refused_where_a_type_does() -> None:
    assert [str(problem) for problem in check_types({"nam": 1, "open": "no"}, _Closed, "FILE", "see the docs")] == [
        "FILE: open: is a string, not true or false; see the docs",
        "FILE: nam: is not an entry; there are name, open; see the docs",
    ]


names = st.one_of(st.text(max_size=1), st.none(), st.integers())
notes: st.SearchStrategy[Any] = st.one_of(st.lists(names, max_size=2), st.none(), st.just({}), st.just({"x": 1}))
fields = {"name": names, "notes": notes, "kind": st.sampled_from(["inn", "sea"]), "height": names, "more": names}
places = st.one_of(st.fixed_dictionaries({}, optional=fields), names)
documents = st.dictionaries(st.sampled_from("ab"), st.one_of(st.lists(places, max_size=2), names), max_size=2)


@given(documents)
def test_what_fits_at_once_has_no_problem_and_the_other_way_round(document: Any) -> None:
    assert _fits(document, PLACES) == (not list(_find_mismatches(document, PLACES, "", "")))
