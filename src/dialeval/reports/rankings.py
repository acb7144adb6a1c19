"""A ranking as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["md"](ranking)           json, csv, md, latex, each a str
    console.print(table(ranking))    the terminal

A line per system, best first, with the groups that cannot be told apart as letters; then wins, ties and losses between
all pairs. JSON and CSV hold every digit.
"""

from __future__ import annotations

import math
from string import ascii_lowercase
from typing import TYPE_CHECKING

from dialeval.reports import formats
from dialeval.reports.documents import Document, laid_out, text_formats
from dialeval.reports.figures import plain, shorten, show_fixed, show_interval, show_rounded
from dialeval.reports.formats import LaidOut, Table

if TYPE_CHECKING:
    from dialeval.analysis.ranking import Ranking

_CSV = (
    *("rank", "system", "strength", "low", "high", "score", "score_low", "score_high"),
    *("wins", "ties", "losses", "groups"),
)


def document(ranking: Ranking) -> Document:
    """The systems in order, the wins between all pairs, and what the figures are."""
    return Document([], tables(ranking), notes(ranking))


def table(ranking: Ranking) -> LaidOut:
    """The ranking for a rich console."""
    return laid_out(document(ranking))


def to_csv(ranking: Ranking) -> str:
    """A line per system."""
    letters = _letters(ranking)
    rows = [
        [
            *(place, each.system, each.strength, *each.interval, each.score, *each.score_interval),
            *(each.wins, each.ties, each.losses, letters[each.system]),
        ]
        for place, each in enumerate(ranking.systems, 1)
    ]
    return formats.csv_text(_CSV, rows)


FORMATS = text_formats(document, to_csv)


def notes(ranking: Ranking) -> list[str]:
    """What the figures are, a line each."""
    tests = len(ranking.systems) * (len(ranking.systems) - 1) // 2
    corrected = f", corrected by Holm for {tests} pairs of systems" if tests > 1 else ""
    intervals = f"{100 * ranking.level:g}% intervals over {ranking.dialogues:,} {ranking.unit} (jackknife, Student)"
    lines = [
        f"{ranking.pairs:,} pairs by {plain(ranking.source)}; {intervals}.",
        "strength: logarithm of the odds (Bradley-Terry, ties after Davidson).",
        "score: expected share of wins against the others, a tie counting half.",
        f"group: systems with a letter in common cannot be told apart (5% level{corrected}).",
    ]
    if not math.isnan(ranking.length):
        lines.append(
            f"At equal length: twice as long changes the odds by a factor of {_doubled(ranking.length)} "
            f"{show_interval(_doubled_ends(ranking), 2)}, which is taken out of the strengths."
        )
    if ranking.left_out:
        lines.append(f"{ranking.left_out} pairs without texts are left out.")
    return lines


def _doubled(effect: float) -> str:
    return show_fixed(math.exp(effect * math.log(2)), 2)


def _doubled_ends(ranking: Ranking) -> tuple[float, float]:
    low, high = (math.exp(end * math.log(2)) for end in ranking.length_interval)
    return low, high


def _letters(ranking: Ranking) -> dict[str, str]:
    """The groups of each system, as letters."""
    letters = {each.system: "" for each in ranking.systems}
    for number, group in enumerate(ranking.groups):
        letter = ascii_lowercase[number % 26] * (number // 26 + 1)
        for name in group:
            letters[name] += letter
    return letters


def _systems(ranking: Ranking) -> Table:
    letters = _letters(ranking)
    rows = [
        [
            shorten(plain(each.system)),
            letters[each.system],
            show_rounded(each.strength, each.interval, signed=True),
            show_rounded(each.score, each.score_interval),
            f"{each.wins}/{each.ties}/{each.losses}",
        ]
        for each in ranking.systems
    ]
    return Table(["system", "group", "strength", "score", "won/tied/lost"], rows)


def _between(ranking: Ranking) -> Table:
    names = [each.system for each in ranking.systems]
    rows = []
    for name in names:
        cells = ["" if name == other else "/".join(map(str, ranking.between[name][other])) for other in names]
        rows.append([shorten(plain(name)), *cells])
    return Table(["won/tied/lost against", *(shorten(plain(name)) for name in names)], rows)


def tables(ranking: Ranking) -> tuple[Table, Table]:
    """The systems in order, and the wins between all pairs."""
    return _systems(ranking), _between(ranking)
