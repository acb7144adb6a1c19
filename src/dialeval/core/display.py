"""How results show themselves: in one line (`repr`), and in a notebook as the report shows them.

Pages and drawings are made in a layer above, which core does not know. The package `dialeval`, which knows where its
public names live, says where that is when it is imported (`home`); that module is loaded when something is shown.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from itertools import islice
from typing import Any

from dialeval.core.plain_text import plain

home = ""
"""The module that has `html` and `plot`."""

MOST_NAMED = 3


def maker() -> Any:
    """Return the module that shows results."""
    return import_module(home)


class Shown:
    """What shows itself in a notebook."""

    def _repr_html_(self) -> str:
        shown: str = maker().html(self)
        return shown


def listed(names: Collection[str], noun: str) -> str:
    """`1 system (damd)`, `12 systems (damd, ubar, mintl and 9 more)`: a line, whatever the names are."""
    many = f"{len(names):,} {noun}" + ("" if len(names) == 1 else "s")
    more = len(names) - MOST_NAMED
    first = ", ".join(map(plain, islice(names, MOST_NAMED))) + (f" and {more:,} more" if more > 0 else "")
    return f"{many} ({first})" if names else many
