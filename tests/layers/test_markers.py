"""What the markers name by its path is there: a test that was renamed would silently become part of `make check`."""

from __future__ import annotations

from pathlib import Path

import pytest

import conftest

TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize("place", conftest.FIRST)
def test_a_place_is_there(place: str) -> None:
    file, _, test = place.partition("::")
    assert (TESTS / file).exists()
    assert not test or f"def {test}" in (TESTS / file).read_text(encoding="utf-8")
