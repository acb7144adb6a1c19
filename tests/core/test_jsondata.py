"""Plain data for JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dialeval.core.validation import dump, nan_to_null


def test_what_is_not_finite_is_null_at_any_depth() -> None:
    data = {"a": (1.5, math.nan), "b": [{"c": math.inf, "d": np.float64("-inf")}], "e": "nan", "f": 3, "g": None}
    assert nan_to_null(data) == {"a": [1.5, None], "b": [{"c": None, "d": None}], "e": "nan", "f": 3, "g": None}
    assert data["a"] == (1.5, data["a"][1])  # type: ignore[index]


def test_half_a_character_is_written_out() -> None:
    """As in the name of a file that is not UTF-8, which Python hands over with halves of characters."""
    assert json.loads(dump({"a\udcff": ["x", ("\udcffé", 1)]})) == {"a\\udcff": ["x", ["\\udcffé", 1]]}
    with pytest.raises(TypeError, match="not JSON serializable"):
        dump({"a": object()})


def test_documents_are_indented_and_end_in_a_line_feed() -> None:
    written = dump({"a": [1, "é"]}).decode()
    assert written == '{\n  "a": [\n    1,\n    "é"\n  ]\n}\n'
    assert json.loads(written) == {"a": [1, "é"]}
