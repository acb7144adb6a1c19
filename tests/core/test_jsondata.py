"""Plain data for JSON."""

from __future__ import annotations

import json
import math

import numpy as np

from dialeval.core.jsondata import dump, null_for_nan


def test_what_is_not_finite_is_null_at_any_depth() -> None:
    data = {"a": (1.5, math.nan), "b": [{"c": math.inf, "d": np.float64("-inf")}], "e": "nan", "f": 3, "g": None}
    assert null_for_nan(data) == {"a": [1.5, None], "b": [{"c": None, "d": None}], "e": "nan", "f": 3, "g": None}
    assert data["a"] == (1.5, data["a"][1])  # type: ignore[index]


def test_documents_are_indented_and_end_in_a_line_feed() -> None:
    written = dump({"a": [1, "é"]}).decode()
    assert written == '{\n  "a": [\n    1,\n    "é"\n  ]\n}\n'
    assert json.loads(written) == {"a": [1, "é"]}
