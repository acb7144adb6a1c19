"""Documents against types: every mismatch with its path, and none where msgspec finds none."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from dialeval.io.schemas import (
    PackFile,
    SentenceConfig,
    TransformerConfig,
    VectorEntry,
    _find_mismatches,
    _fits,
    check_types,
)


class _Place(Struct):
    name: str
    notes: list[str] | None = None
    kind: Literal["inn", "hill"] = "inn"
    height: Annotated[int, Meta(ge=0, description="a height from 0 on")] = 0


class _Closed(Struct, forbid_unknown_fields=True):
    name: str = ""
    open: bool = True


PLACES = dict[str, list[_Place]]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"town": [{"name": "inn", "notes": ["x"], "more": 5}], "hill": []}, []),
        ({"town": [{"name": "inn", "notes": None}, {"name": "", "kind": "hill", "height": 3}]}, []),
        ({"town": ({"name": "inn", "notes": ("x",)},)}, []),
        ({"town": [{"name": "\ud800", "notes": ["\udfff"]}]}, []),
        (MappingProxyType({"town": [MappingProxyType({"name": "inn"})]}), []),
        (7, ["FILE: is a number, not an object; give places"]),
        ({"town": {}}, ["FILE: town: is an object, not a list of places; give places"]),
        ({"town": [{}]}, ["FILE: town[0]: has no name; name it"]),
        (
            {"town": [{"name": "x"}, {"name": None, "notes": ["a", 1, True]}, 5], "hill": "y"},
            [
                "FILE: town[1].name: is null, not a text; name it",
                "FILE: town[1].notes[1]: is a number, not a text; give places",
                "FILE: town[1].notes[2]: is true or false, not a text; give places",
                "FILE: town[2]: is a number, not an object with name, notes, kind, height; give places",
                "FILE: hill: is a string, not a list of places; give places",
            ],
        ),
        (
            {"town": [{"name": "x", "kind": "sea", "height": -1}]},
            [
                "FILE: town[0].kind: is a string, not one of inn, hill; give places",
                "FILE: town[0].height: is a number, not a height from 0 on; give places",
            ],
        ),
    ],
)
def test_every_mismatch_with_its_path(document: Any, expected: list[str]) -> None:
    assert [
        str(problem) for problem in check_types(document, PLACES, "FILE", "give places", name="name it")
    ] == expected


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


SIZES = dict.fromkeys(
    ("hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings", "vocab_size"), 1
)
TRANSFORMER: dict[str, object] = {**SIZES, "intermediate_size": 1}
ENTRY: dict[str, object] = {
    "dtype": "<f4",
    "shape": [1, 1],
    "content": "a",
    "header": False,
    "warning": None,
    "files": {"x": 1},
}


@pytest.mark.parametrize(
    ("kind", "document", "field", "sound", "wrong"),
    [
        *(
            (TransformerConfig, TRANSFORMER, field, [1, 1 << 24], [0, (1 << 24) + 1])
            for field in ("hidden_size", "vocab_size")
        ),
        (TransformerConfig, TRANSFORMER, "num_hidden_layers", [0, 1 << 10], [-1, (1 << 10) + 1]),
        (TransformerConfig, TRANSFORMER, "layer_norm_eps", [1e-15, 1], [9e-16, 1.01, 2]),
        (TransformerConfig, {**TRANSFORMER, "hidden_size": 6}, "num_attention_heads", [1, 2, 3, 6], [0, 4, 12]),
        (SentenceConfig, {}, "max_seq_length", [None, 1, 1 << 24], [0, (1 << 24) + 1]),
        (PackFile, {"sha256": "a" * 64}, "size", [0, 1 << 53], [-1, (1 << 53) + 1]),
        (PackFile, {"size": 0}, "sha256", ["0" * 64], ["a" * 63, "a" * 65, "g" * 64, "a" * 64 + "\n"]),
        (VectorEntry, ENTRY, "dtype", ["<f2", "<f4", "<f8"], ["<f1", ">f4", "<f4\n", "<i4"]),
        (
            VectorEntry,
            ENTRY,
            "shape",
            [[0, 0], [1 << 53, 1 << 20]],
            [[(1 << 53) + 1, 1], [1, (1 << 20) + 1], [-1, 1], [1, -1]],
        ),
        (VectorEntry, ENTRY, "content", ["a" * 64], ["", "a" * 65, "A", "a\n"]),
        (VectorEntry, ENTRY, "files", [{}, {"x": 1 << 53}], [{"x": -1}, {"x": (1 << 53) + 1}]),
    ],
)
def test_limits_of_the_schemas(
    kind: type[Struct], document: dict[str, object], field: str, sound: list[object], wrong: list[object]
) -> None:
    assert [value for value in sound if not _fits({**document, field: value}, kind)] == []
    assert [value for value in wrong if _fits({**document, field: value}, kind)] == []


def test_defaults_of_a_transformer() -> None:
    config = TransformerConfig(1, 1, 1, 1, 1, 1)
    assert (config.model_type, config.hidden_act, config.layer_norm_eps) == ("", "", 1e-12)
    assert config.position_embedding_type == "absolute"
    assert SentenceConfig().max_seq_length is None


@pytest.mark.parametrize(
    ("document", "kind", "problem"),
    [
        ([1], list[str], "FILE: [0]: is a number, not a text; give it"),
        (7, list[str], "FILE: is a number, not a list of texts; give it"),
        (7, tuple[list[int], ...], "FILE: is a number, not a list of lists; give it"),
        (7, frozenset[int], "FILE: is a number, not a list of ints; give it"),
        ("x", list[dict[str, int]], "FILE: is a string, not a list of objects; give it"),
        (7, dict[str, int], "FILE: is a number, not an object; give it"),
        ({"a": 1.5}, dict[str, int], "FILE: a: is a number, not a whole number; give it"),
        ({"a": 1}, dict[str, bool], "FILE: a: is a number, not true or false; give it"),
        (7, list[str] | None, "FILE: is a number, not a list of texts; give it"),
    ],
)
def test_words_for_types(document: Any, kind: Any, problem: str) -> None:
    assert [str(each) for each in check_types(document, kind, "FILE", "give it")] == [problem]
