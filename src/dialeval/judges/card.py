"""The model cards of judges, and the tables they are made of: training data, agreement with people, and weaknesses.

Everything in a card comes out of the training command; nothing is written by hand. Numbers are rounded to two digits
for people; `judge.json` next to it holds them in full.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dialeval.core.errors import escape_controls
from dialeval.core.validation import parse_toml
from dialeval.judges.adem import AdemWeights, Facts
from dialeval.reports.documents import escape_markdown
from dialeval.stats.resampling import DEFAULT_RESAMPLES

Rows = list[list[str]]

_TEXTS = parse_toml((Path(__file__).parent / "cards.toml").read_bytes(), "cards.toml", "install dialeval again")
_NAMES = {"dull": "A dull answer", "random": "A response to something else", "context": "Echoing the context"}
NOT_VALIDATED = (
    "too few rated rows or contexts to leave any out, so the agreement of this judge with human ratings is unknown."
)
_MEAN = "mean of sets with references"


DULL = "i do not know ."
ATTACKS = {
    "reversed": "its words in reverse order",
    "dull": f'"{DULL}" instead',
    "random": "the response to another context instead",
    "context": "the last turn of the context repeated instead",
    "reference": "the first reference instead",
}
"""What is said instead of the response."""


@dataclass(frozen=True)
class HumanCorrelation:
    """Correlations with mean human ratings on one set, or their mean over sets, with confidence intervals."""

    rows: int
    pearson: float
    spearman: float
    pearson_interval: tuple[float, float]
    spearman_interval: tuple[float, float]


@dataclass(frozen=True)
class Validation:
    """Agreement by set and then by judge or baseline; `mean` is that over the sets with references."""

    sets: Mapping[str, Mapping[str, HumanCorrelation]]
    mean: Mapping[str, HumanCorrelation]
    referenced: Sequence[str]
    resamples: int = DEFAULT_RESAMPLES


@dataclass(frozen=True)
class Attack:
    """The scores of a judge under one attack."""

    name: str
    rows: int
    real: float
    """Mean score of the real responses."""
    mean: float
    """Mean score under the attack."""
    not_worse: float
    """Fraction of rows in which the attack is scored at least as high as the real response."""
    correlation: float
    """Pearson's, between the scores of the real responses and those under the attack; NaN where one is constant."""


@dataclass(frozen=True, eq=False)
class JudgeCard:
    """A trained judge of `adem` with its model card."""

    weights: AdemWeights
    validation: Validation | None
    attacks: Sequence[Attack]
    command: str
    title: str

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `judge.safetensors`, `judge.json` and the card."""
        return self.weights.save(folder, self.to_markdown())

    def list_tables(self) -> list[tuple[str, Rows]]:
        """Return the tables that the training command prints."""
        tables = [("Attacks", list_attacks(self.attacks))]
        if self.validation is not None and self.validation.sets:
            tables.insert(0, ("Spearman's rho on sets left out", list_validation(self.validation)))
        return tables

    def to_markdown(self) -> str:
        """Return the card, in Markdown."""
        weights, validation = self.weights, self.validation
        data = [[entry["name"], str(entry["rows"]), entry["license"]] for entry in weights.facts["data"]]
        texts = _TEXTS["adem"]
        parts = begin_card(self.title, texts, [["data set", "rows", "license"], *data], weights.facts)
        parts.append(f"Made by: {to_code(self.command)}")
        if validation is not None and validation.sets:
            how = texts["how"].format(resamples=validation.resamples)
            parts += ["## Results", how, write_card_table(list_validation(validation))]
            parts += ["Pearson's r:", write_card_table(list_pearson(validation))]
        elif validation is not None:
            parts += ["## Results", f"None: {NOT_VALIDATED}"]
        parts.append("## Weaknesses")
        if self.attacks:
            listed = "\n".join(f"- {describe_attack(entry)}" for entry in self.attacks)
            parts += [listed, write_card_table(list_attacks(self.attacks))]
        made_for = f"for vectors of {weights.encoder} ({weights.encoder_digest})"
        parts += [texts["limits"], f"Weights: {weights.kind}@{weights.digest}, {made_for}."]
        return "\n\n".join(parts) + "\n"


def begin_card(title: str, texts: Mapping[str, str], data: Rows, facts: Facts) -> list[str]:
    """Return the parts that every card begins with; the last column of the data is free text."""
    head, *rest = data
    settings = {name.replace("_", " "): str(value) for name, value in facts.get("settings", {}).items()}
    return [
        f"# {escape_markdown(title)}",
        texts["purpose"],
        "## Data",
        write_card_table([head, *([*cells, escape_markdown(free_text)] for *cells, free_text in rest)]),
        texts["stored"],
        "## Settings",
        "\n".join(f"- {escape_controls(name)}: {escape_controls(value)}" for name, value in settings.items()),
    ]


def list_validation(validation: Validation) -> Rows:
    """Return a header, a row per set and the mean: Spearman's rho with its interval, a column per judge or baseline."""
    columns = _list_columns(validation)
    rows = [["data set", "rows", *columns]]
    for name, row in asdict(validation)["sets"].items():
        shown = name if name in validation.referenced else f"{name} (no references)"
        most = max(correlation["rows"] for correlation in row.values())
        rows.append([shown, str(most), *(show_spearman(row.get(c)) for c in columns)])
    if validation.mean:
        rows.append([_MEAN, "", *(show_spearman(asdict(validation)["mean"].get(c)) for c in columns)])
    return rows


def list_pearson(validation: Validation) -> Rows:
    """Return the same with Pearson's r, without intervals."""
    columns = _list_columns(validation)
    groups = {**validation.sets, **({_MEAN: validation.mean} if validation.mean else {})}
    rows = [[name, *(show_number(row[c].pearson) if c in row else "" for c in columns)] for name, row in groups.items()]
    return [["data set", *columns], *rows]


def _list_columns(validation: Validation) -> list[str]:
    return list(dict.fromkeys(name for row in validation.sets.values() for name in row))


def list_attacks(attacks: Iterable[Attack]) -> Rows:
    """Return a header and a row per attack."""
    rows = [["attack", "rows", "real mean", "attack mean", "at least as high", "correlation"]]
    for attack in attacks:
        numbers = f"{attack.real:.2f}", f"{attack.mean:.2f}", f"{100 * attack.not_worse:.0f}%"
        rows.append([attack.name, str(attack.rows), *numbers, show_number(attack.correlation)])
    return rows


def describe_attack(attack: Attack) -> str:
    """Return the result of an attack in plain words."""
    share = f"{100 * attack.not_worse:.0f}% of cases"
    if attack.name == "reversed":
        kept = "hardly reads word order" if attack.correlation > 0.8 else "reads word order only in part"
        return (
            f"It {kept}: the score of a response with its words reversed has a correlation of "
            f"{show_number(attack.correlation)} with that of the real one, and is at least as high in {share}."
        )
    said = ATTACKS[attack.name]
    if attack.name == "reference":
        return f"A person's own answer ({said}) gets {attack.mean:.2f}; real responses get {attack.real:.2f}."
    return (
        f"{_NAMES[attack.name]} ({said}) gets {attack.mean:.2f} on average where real responses get {attack.real:.2f}, "
        f"and at least as much as the real one in {share}."
    )


def show_spearman(correlation: Facts | None) -> str:
    """Return Spearman's rho with its interval; nothing where it was not computed."""
    if correlation is None:
        return ""
    low, high = correlation["spearman_interval"]
    return f"{show_number(correlation['spearman'])} [{show_number(low)}, {show_number(high)}]"


def show_number(value: float | None) -> str:
    """Return a number with two digits and no leading zero; in a file NaN is null."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)


def write_card_table(rows: Rows) -> str:
    """Return a table; its head and the first column hold names, the other cells numbers."""
    head, *rest = rows
    named = ([escape_markdown(name), *cells] for name, *cells in rest)
    lines = [list(map(escape_markdown, head)), ["---"] * len(head), *named]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def to_code(text: str) -> str:
    """Return a text as code, between more backticks than are anywhere in it."""
    most = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (most + 1), " " if most else ""
    return f"{fence}{space}{escape_controls(text)}{space}{fence}"
