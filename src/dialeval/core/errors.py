"""The error tree: one root, and a message that says what is wrong, where, and what to do.

Library code raises these and nothing else for anything a user can cause. Only the command line catches the root.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dialeval.core.plain_text import plain

SHOWN_FAULTS = 5
"""A message lists this many faults and counts the rest; `dialeval validate` lists up to `MOST_FAULTS` of a file."""
MOST_FAULTS = 10_000
"""Problems of one file that are collected: reading stops there."""


class DialevalError(Exception):
    """Root of every error that dialeval raises on purpose."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an input: where it stands, what it is, what would mend it; printed as one line."""

    where: str
    line: int | None
    what: str
    remedy: str

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return plain(f"{place}: {self.what}; {self.remedy}")


class DataError(DialevalError):
    """An input cannot be used as it is. `faults` holds every fault found, in file order."""

    def __init__(self, faults: Fault | Iterable[Fault]) -> None:
        self.faults: Sequence[Fault] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.faults[:SHOWN_FAULTS]]
        more = len(self.faults) - SHOWN_FAULTS
        if more > 0:
            lines.append(f"and {more} more; of rows and lines `dialeval validate` lists all")
        return "\n".join(lines)


class UnsavedRunError(DataError):
    """A run was computed and cannot be saved. `run` holds it, so that it can be printed."""

    def __init__(self, faults: Iterable[Fault], run: object = None) -> None:
        super().__init__(faults)
        self.run = run


class FaultList(list[Fault]):
    """The problems of one input. It is raised as a DataError when it holds `MOST_FAULTS`, or before by who reads on."""

    def __init__(self) -> None:
        super().__init__()
        self.when_full: Callable[[], None] = self._raise

    def append(self, fault: Fault) -> None:
        """Add a problem; DataError where there are too many to go on."""
        super().append(fault)
        if len(self) == MOST_FAULTS:
            super().append(Fault(fault.where, None, "further problems are not listed", "correct these first"))
            self.when_full()

    def _raise(self) -> None:
        raise DataError(self)


class NeedError(DialevalError):
    """A metric was asked for without what it needs, or reached for what it had not declared."""


class SettingError(DialevalError):
    """A name or a setting that does not exist, or a value it cannot take."""
