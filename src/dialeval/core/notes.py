"""Notes: what was guessed while something was read, told to whoever asked for it.

A reader does not print, and what it gives back (a column, ratings, pairs) has no room for remarks. So it calls `note`,
and whoever can tell people collects what was noted: an evaluation puts it into the warnings of its run, a worker into
the states that it sends back, the command line on stderr. Where nobody collects, it is a warning of Python.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_COLLECTING: ContextVar[dict[str, None] | None] = ContextVar("notes", default=None)


def note(line: str) -> None:
    """Tell something that was guessed."""
    notes = _COLLECTING.get()
    if notes is None:
        warnings.warn(line, UserWarning, stacklevel=2)
    else:
        notes[line] = None


@contextmanager
def noted() -> Iterator[dict[str, None]]:
    """Collect the warnings of the block, each line once and in order; nobody outside gets them."""
    notes: dict[str, None] = {}
    before = _COLLECTING.set(notes)
    try:
        yield notes
    finally:
        _COLLECTING.reset(before)
