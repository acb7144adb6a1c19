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
    """Return the systems in order, the wins between all pairs, and what the numbers are."""
    letters = _letters(ranking)
    names = {each.system: shorten(plain(each.system)) for each in ranking.systems}
    systems = [
        [
            names[each.system],
            letters[each.system],
            show_rounded(each.strength, each.interval, signed=True),
            show_rounded(each.score, each.score_interval),
            f"{each.wins}/{each.ties}/{each.losses}",
        ]
        for each in ranking.systems
    ]
    between = [
        [names[name], *("" if name == other else "/".join(map(str, ranking.between[name][other])) for other in names)]
        for name in names
    ]
    tables = [
        Table(["system", "group", "strength", "score", "won/tied/lost"], systems),
        Table(["won/tied/lost against", *names.values()], between),
    ]
    return Document([], tables, _notes(ranking))


def table(ranking: Ranking) -> LaidOut:
    """Lay the ranking out for a rich console."""
    return laid_out(document(ranking))


def to_csv(ranking: Ranking) -> str:
    """Return a line per system."""
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


def _notes(ranking: Ranking) -> list[str]:
    """Return what the numbers are, a line each."""
    tests = len(ranking.systems) * (len(ranking.systems) - 1) // 2
    corrected = f", corrected by Holm for {tests} pairs of systems" if tests > 1 else ""
    level, clusters = f"{100 * ranking.intervals.level:g}%", f"{ranking.dialogues:,} {ranking.unit}"
    lines = [
        f"{ranking.pairs:,} pairs by {plain(ranking.source)}; {level} intervals over {clusters} (jackknife, Student).",
        "strength: logarithm of the odds (Bradley-Terry, ties after Davidson).",
        "score: expected share of wins against the others, a tie counting half.",
        f"group: systems with a letter in common cannot be told apart (5% level{corrected}).",
    ]
    if not math.isnan(ranking.length):
        factor, low, high = (2**effect for effect in (ranking.length, *ranking.length_interval))
        lines.append(
            f"At equal length: twice as long changes the odds by a factor of {show_fixed(factor, 2)} "
            f"{show_interval((low, high), 2)}, which is taken out of the strengths."
        )
    if ranking.left_out:
        lines.append(f"{ranking.left_out} pairs without texts are left out.")
    return lines


def _letters(ranking: Ranking) -> dict[str, str]:
    """Return the groups of each system, as letters."""
    letters = {each.system: "" for each in ranking.systems}
    for number, group in enumerate(ranking.groups):
        letter = ascii_lowercase[number % 26] * (number // 26 + 1)
        for name in group:
            letters[name] += letter
    return letters
