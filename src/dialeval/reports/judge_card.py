"""The model card of a judge, and the tables it is made of: what it was trained on, what it is worth, where it fails.

Everything in it comes out of the training command; nothing is written by hand. Figures are rounded to two digits for
people; `judge.json` beside it holds them in full.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialeval.analysis.judge_validation import Agreed, Validation
from dialeval.analysis.judges import MadeJudge
from dialeval.core.plain_text import plain
from dialeval.metrics.learned.attack import ATTACKS, Attack
from dialeval.reports.formats import markdown

Rows = list[list[str]]

_PURPOSE = (
    "A judge of dialogue responses for `dialeval score -m adem`. It gives 1 (bad) to 5 (good) to a response, given its "
    "context, a reference, or both. Use it to order systems and to find bad responses among many; do not use it to "
    "grade a single response, or a person."
)
_HOW = (
    "Each set was judged by weights fitted to the training sets above without that set and without any row that shares "
    "a context with it. Spearman's rho with the mean human score; in brackets the middle 95% of {resamples} bootstrap "
    "resamples of contexts. `identity` is the same formula untrained, `paper` the recipe of Lowe et al. on the same "
    "vectors. Of a set that has references for some rows only, those rows count. The default strengths were chosen "
    "among about forty settings by tables like this one on public sets; near the best they differ by .01 to .02, so "
    "differences of that size mean little."
)
_LIMITS = (
    "The scores are fitted to opinions about chit-chat in English, mostly short replies. Other languages, long texts, "
    "facts and safety are outside of what it has seen. It knows only what the encoder's vector keeps of a text: its "
    "subject more than its logic."
)
_NAMES = {"dull": "A dull answer", "random": "A response to something else", "context": "Echoing the context"}
NOT_VALIDATED = "too few rated rows or contexts to leave any out, so nothing is known of what this judge is worth."
_MEAN = "mean of sets with references"


@dataclass(frozen=True)
class JudgeCard:
    """A trained judge with its model card."""

    judge: MadeJudge

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `judge.safetensors`, `judge.json` and the card."""
        return self.judge.save(folder, self.text())

    def tables(self) -> list[tuple[str, Rows]]:
        """What the training command prints."""
        validation = self.judge.validation
        tables = [("Attacks", attack_rows(self.judge.attacks))]
        if validation is not None and validation.sets:
            tables.insert(0, ("Spearman's rho on sets left out", validation_rows(validation)))
        return tables

    def text(self) -> str:
        """The card, in Markdown."""
        judge, weights = self.judge, self.judge.weights
        data = [[str(each["name"]), str(each["rows"]), markdown(str(each["licence"]))] for each in judge.data]
        parts = [
            f"# {markdown(judge.title)}",
            _PURPOSE,
            "## Data",
            card_table([["data set", "rows", "licence"], *data]),
            "Only weights fitted to vectors of these texts are stored; no text is.",
            "## Settings",
            "\n".join(f"- {name}: {plain(str(value))}" for name, value in judge.settings.items()),
            f"Made by: {_code(judge.command)}",
            *_results(judge.validation),
            "## Weaknesses",
        ]
        if judge.attacks:
            listed = "\n".join(f"- {line}" for line in weaknesses(judge.attacks))
            parts += [listed, card_table(attack_rows(judge.attacks))]
        parts.append(_LIMITS)
        parts.append(
            f"Weights: {weights.kind}@{weights.digest}, for vectors of {weights.encoder} ({weights.encoder_digest})."
        )
        return "\n\n".join(parts) + "\n"


def _results(validation: Validation | None) -> list[str]:
    if validation is None:
        return []
    if not validation.sets:
        return ["## Results", f"None: {NOT_VALIDATED}"]
    how = _HOW.format(resamples=validation.resamples)
    tables = card_table(validation_rows(validation)), card_table(pearson_rows(validation))
    return ["## Results", how, tables[0], "Pearson's r:", tables[1]]


def validation_rows(validation: Validation) -> Rows:
    """A header, a row per set and the mean: Spearman's rho with its interval, a column per judge or baseline."""
    columns = _columns(validation)
    rows = [["data set", "rows", *columns]]
    for name, row in validation.sets.items():
        shown = name if name in validation.referenced else f"{name} (no references)"
        rows.append([shown, str(max(each.rows for each in row.values())), *(_spearman(row, c) for c in columns)])
    if validation.mean:
        rows.append([_MEAN, "", *(_spearman(validation.mean, c) for c in columns)])
    return rows


def pearson_rows(validation: Validation) -> Rows:
    """The same with Pearson's r, without intervals."""
    columns = _columns(validation)
    groups = {**validation.sets, **({_MEAN: validation.mean} if validation.mean else {})}
    rows = [[name, *(two(row[c].pearson) if c in row else "" for c in columns)] for name, row in groups.items()]
    return [["data set", *columns], *rows]


def _columns(validation: Validation) -> list[str]:
    return list(dict.fromkeys(name for row in validation.sets.values() for name in row))


def attack_rows(attacks: Sequence[Attack]) -> Rows:
    """A header and a row per attack."""
    rows = [["attack", "rows", "real mean", "attack mean", "at least as high", "correlation"]]
    for each in attacks:
        share = f"{100 * each.not_worse:.0f}%"
        rows.append([each.name, str(each.rows), f"{each.real:.2f}", f"{each.mean:.2f}", share, two(each.correlation)])
    return rows


def weaknesses(attacks: Sequence[Attack]) -> list[str]:
    """What the attacks show, in plain words."""
    return [_weakness(each) for each in attacks]


def _weakness(each: Attack) -> str:
    share = f"{100 * each.not_worse:.0f}% of cases"
    if each.name == "reversed":
        kept = "hardly reads word order" if each.correlation > 0.8 else "reads word order only in part"
        return (
            f"It {kept}: the score of a response with its words reversed has a correlation of "
            f"{two(each.correlation)} with that of the real one, and is at least as high in {share}."
        )
    said = ATTACKS[each.name]
    if each.name == "reference":
        return f"A person's own answer ({said}) gets {each.mean:.2f}; real responses get {each.real:.2f}."
    return (
        f"{_NAMES[each.name]} ({said}) gets {each.mean:.2f} on average where real responses get {each.real:.2f}, "
        f"and at least as much as the real one in {share}."
    )


def _spearman(row: Mapping[str, Agreed], column: str) -> str:
    if column not in row:
        return ""
    low, high = row[column].spearman_interval
    return f"{two(row[column].spearman)} [{two(low)}, {two(high)}]"


def two(value: float) -> str:
    """A number with two digits and no leading zero."""
    return "-" if math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)


def card_table(rows: Rows) -> str:
    """A table; its head and the first column hold names, the other cells figures."""
    head, *rest = rows
    named = ([markdown(name), *cells] for name, *cells in rest)
    lines = [list(map(markdown, head)), ["---"] * len(head), *named]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def _code(text: str) -> str:
    """A text as code, between more backticks than stand anywhere in it."""
    most = max(map(len, re.findall("`+", text)), default=0)
    fence, blank = "`" * (most + 1), " " if most else ""
    return f"{fence}{blank}{plain(text)}{blank}{fence}"
