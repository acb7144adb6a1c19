"""Tables become data frames of libraries that are asked for only then."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pyarrow as pa
import pytest

from dialeval.core.display import Tabular
from dialeval.core.errors import NeedError


@dataclass
class Two(Tabular):
    def to_arrow(self) -> pa.Table:
        return pa.table({"key": ["a", "b"], "value": [1.5, None]})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_what_is_missing_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(NeedError, match=f"pip install {library}"):
        getattr(Two(), f"to_{library}")()
