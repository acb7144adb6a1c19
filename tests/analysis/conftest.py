"""A run that the tests of comparisons, gates and best systems share."""

from __future__ import annotations

import pytest

from analysis.test_comparison import made, texts
from dialeval.core.result import Run


@pytest.fixture(scope="session")
def run() -> Run:
    return made({"a": texts(1), "b": texts(2), "narrow": texts(3, words=4)})
