"""What can be wrong with data of the breakdown challenge: collected over all files, an error or counted.

Where reading is strict, every fault of every file is raised at once. Where it is lenient, each kind of fault has its
consequence, and the warnings say how often it was met.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dialeval.core.errors import DataError, Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN_TURNS = 12


class Kind(NamedTuple):
    """A kind of fault: what it is called when it is counted, what mends it, what lenient reading does."""

    what: str
    remedy: str
    consequence: str


UNREADABLE_LOG = Kind(
    "dialogues that cannot be used", "write the challenge's format (dialogue-id, turns, annotations)", "left out"
)
UNREADABLE_LABELS = Kind(
    "labels files that cannot be used", "write the challenge's format (dialogue-id, turns, labels)", "not scored"
)
MARK = Kind(
    "files with a byte order mark", "the original reads no such file: save it as UTF-8 without the mark", "read without"
)
REPEATED_DIALOGUE = Kind("dialogues that are there twice", "give each dialogue an id of its own", "each is counted")
BAD_INDEX = Kind(
    "annotated turns without a number", "number the turns of a dialogue from 0 on", "matched by position alone"
)
OTHER_SPEAKER = Kind(
    "annotated turns of another speaker", 'write "S" for the system and "U" for the user', "counted as the system's"
)
NO_REFERENCE = Kind("turns without an annotation O, T or X", "annotate them, or take the annotations out", "not scored")
NO_LABELS = Kind("dialogues without labels", "write a labels file for every dialogue", "not scored")
MISSING_TURNS = Kind("annotated turns without labels", "label every annotated turn", "not scored")
UNKNOWN_LABEL = Kind("labels other than O, T, X", "write O, T or X in capitals", "counted as wrong")
NOT_PROBABLE = Kind(
    "probabilities below 0 or not finite", "write numbers from 0 to 1", "not scored by divergence and squared error"
)
ODD_SUM = Kind("probabilities that do not add up to 1", "divide them by their sum", "used as they are")
OTHER_DIALOGUE = Kind(
    "labels that name another dialogue", "write the labels of each dialogue into its own file", "used"
)
REPEATED_LABELS = Kind("labels that are there twice", "keep one of them", "the first is used")
BAD_ENTRY = Kind("entries that cannot be used", 'give each a "turn-index" and "labels" with one object', "passed over")


@dataclass
class Findings:
    """The faults met so far, and what else is worth saying."""

    lenient: bool = False
    faults: list[Fault] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _counts: dict[Kind, list[int]] = field(default_factory=dict)

    def add(self, kind: Kind, where: str, line: int | None, what: str, turns: int = 0) -> None:
        """Note a fault of a file that concerns some turns (or all of it)."""
        self.faults.append(Fault(where, line, what, kind.remedy))
        counted = self._counts.setdefault(kind, [0, 0])
        counted[0] += 1
        counted[1] += turns

    def add_error(self, kind: Kind, where: str, line: int | None, error: DataError) -> None:
        """Note why a document could not be read; `line` is its own line, if it stands on one."""
        first = error.faults[0]
        self.add(kind, where, first.line if line is None else line, first.what)

    def refuse(self, *faults: Fault) -> None:
        """Note faults that no leniency helps with."""
        self.faults += faults
        self.lenient = False

    def warnings(self) -> list[str]:
        """Raise all faults, or say how often each kind was met, where faults are to be counted only."""
        if self.faults and not self.lenient:
            raise DataError(self.faults)
        return [_counted(kind, *counted) for kind, counted in self._counts.items()] + self.remarks


def named_turns(turns: Sequence[object]) -> str:
    """Turns as a message names them: `turn 4`, `turns 4, 6 and 17 more`."""
    shown = ", ".join(str(turn) for turn in turns[:_SHOWN_TURNS])
    more = f" and {len(turns) - _SHOWN_TURNS} more" if len(turns) > _SHOWN_TURNS else ""
    return f"turn {shown}" if len(turns) == 1 else f"turns {shown}{more}"


def _counted(kind: Kind, files: int, turns: int) -> str:
    amount = f" ({turns} turn{'' if turns == 1 else 's'})" if turns else ""
    return f"{kind.what}: in {files} file{'' if files == 1 else 's'}{amount}; {kind.consequence}"
