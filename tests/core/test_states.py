"""States survive a file without pickles, and nothing but what they may hold comes out of one."""

from __future__ import annotations

import io
import os
import pickle
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.states import DamagedStateError, check_like, from_bytes, to_bytes
from dialeval.core.validation import InvalidError
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda parts: st.lists(parts, max_size=4) | st.tuples(parts, parts) | st.dictionaries(st.text(), parts, max_size=3),
    max_leaves=12,
)


@given(plain)
def test_plain_data_comes_back(value: Any) -> None:
    assert repr(from_bytes(to_bytes(value), None)) == repr(value)


@given(st.lists(st.floats(allow_infinity=False), max_size=5))
def test_exact_sums_come_back(items: list[float]) -> None:
    moments = Moments.of(np.array(items, np.float64))
    assert from_bytes(to_bytes((moments, moments)), (Moments(),)) == (moments, moments)


def counted(texts: list[str], n: int, vocabulary: Vocabulary) -> NgramCounts:
    tokens = tokenize(TextColumn.from_strings(texts), vocabulary)
    return NgramCounts.of(NgramColumn.of(tokens, n), vocabulary)


@dataclass
class Stranger:
    size: int


def test_only_classes_of_the_template_come_out() -> None:
    content = to_bytes([Stranger(3)])
    assert from_bytes(content, Stranger(0)) == [Stranger(3)]
    with pytest.raises(DamagedStateError, match="Stranger"):
        from_bytes(content, Moments())


def test_counters_and_sets_survive_and_objects_are_refused() -> None:
    state = (Counter("abca"), {1, 2}, frozenset({"x"}), {"nested": [Counter({2: 5})]})
    assert from_bytes(to_bytes(state), state) == state
    assert isinstance(from_bytes(to_bytes(state), state)[0], Counter)
    with pytest.raises(SettingError, match="a state that holds a object cannot be sent or saved"):
        to_bytes([object()])


def test_pickles_and_rubbish_are_refused() -> None:
    hidden = io.BytesIO()
    np.savez(hidden, tree=np.array([{"a": 1}], object))
    for content in (b"", b"PK", pickle.dumps([1]), hidden.getvalue(), to_bytes(1)[:-30]):
        with pytest.raises(DamagedStateError):
            from_bytes(content, None)


@pytest.mark.parametrize("tree", [b"1.5", b'{"float": 1}', b'{"what": 1}', b'{"array": "a9"}', b"{}", b"[1]", b"nul"])
def test_trees_of_other_shapes_are_refused(tree: bytes) -> None:
    target = io.BytesIO()
    np.savez(target, tree=np.frombuffer(tree, np.uint8))
    with pytest.raises(DamagedStateError):
        from_bytes(target.getvalue(), None)


class Planted:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import os; os.environ['DIALEVAL_PLANTED'] = 'ran'",)


def test_a_pickled_array_is_not_unpickled() -> None:
    target = io.BytesIO()
    np.savez(target, allow_pickle=True, tree=np.array([Planted()], object))
    with pytest.raises(DamagedStateError, match="allow_pickle=False"):
        from_bytes(target.getvalue(), ())
    assert "DIALEVAL_PLANTED" not in os.environ


def test_arrays_that_are_like_an_example() -> None:
    check_like(np.ones(3), np.zeros(3))
    check_like(np.ones((3, 2)), None)
    for value, example in (
        (np.ones(4), np.zeros(3)),
        (np.ones((5, 3)), np.zeros((0, 2))),
        (np.ones(5), np.zeros((0, 2))),
    ):
        with pytest.raises(InvalidError):
            check_like(value, example)
