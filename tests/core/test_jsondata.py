"""Plain data for JSON."""

from __future__ import annotations

import json

import pytest

from dialeval.core.validation import dump


def test_half_a_character_is_written_out() -> None:
    """As in the name of a file that is not UTF-8, which Python hands over with halves of characters."""
    assert json.loads(dump({"a\udcff": ["x", ("\udcffé", 1)]})) == {"a\\udcff": ["x", ["\\udcffé", 1]]}
    with pytest.raises(TypeError, match="not JSON serializable"):
        dump({"a": object()})
