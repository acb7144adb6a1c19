"""What the markers name by its path is there: a test that was renamed would silently become part of `make check`."""

from __future__ import annotations

from pathlib import Path

import pytest

import conftest

TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize("place", [*conftest.FIRST, *conftest.SPREAD, *conftest.JOINED, *conftest.JOINED.values()])
def test_a_place_is_there(place: str) -> None:
    file, _, test = place.partition("::")
    assert (TESTS / file).exists()
    assert not test or f"def {test}" in (TESTS / file).read_text(encoding="utf-8")


def test_workers_take_whole_files(request: pytest.FixtureRequest) -> None:
    """Except of files that are split. Names of tests are as pytest passes them to the workers."""
    file = "tests/layers/test_markers.py"
    assert request.node.nodeid.startswith(f"{file}::")
    assert conftest.worker_unit(request.node.nodeid) == conftest.worker_unit(f"{file}::test_a_place_is_there[cli/]")
    one, other = (f"tests/{conftest.SPREAD[0]}::test_blocks[{page}]" for page in ("README.md", "docs/index.md"))
    assert conftest.worker_unit(one) != conftest.worker_unit(other)
    assert conftest.worker_unit("tests/browser/test_site.py::a") == conftest.worker_unit("tests/docs/test_site.py::b")
