"""The model card of a judge, and the tables it is made of: what it was trained on, what it is worth, where it fails.

Everything in it comes out of the training command; nothing is written by hand. Figures are rounded to two digits for
people; `judge.json` beside it holds them in full.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dialeval.analysis.judges import Agreed, Validation
from dialeval.metrics.learned.attack import Attack
from dialeval.metrics.learned.weights import Weights

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
_ATTACKS = {
    "reversed": "its words in reverse order",
    "dull": '"i do not know ." instead',
    "random": "the response to another context instead",
    "context": "the last turn of the context repeated instead",
    "reference": "the first reference instead",
}


NOT_VALIDATED = "too few rated rows or contexts to leave any out, so nothing is known of what this judge is worth."


def validation_rows(validation: Validation) -> Rows:
    """A header, a row per set and the mean: Spearman's rho with its interval, a column per judge or baseline."""
    columns = list(dict.fromkeys(name for row in validation.sets.values() for name in row))
    rows = [["data set", "rows", *columns]]
    for name, row in validation.sets.items():
        shown = name if name in validation.referenced else f"{name} (no references)"
        rows.append([shown, str(max(each.rows for each in row.values())), *(_shown(row.get(c)) for c in columns)])
    if validation.mean:
        rows.append(["mean of sets with references", "", *(_shown(validation.mean.get(c)) for c in columns)])
    return rows


def pearson_rows(validation: Validation) -> Rows:
    """The same with Pearson's r, without intervals."""
    columns = list(dict.fromkeys(name for row in validation.sets.values() for name in row))
    rows = [["data set", *columns]]
    groups = {**validation.sets, **({"mean of sets with references": validation.mean} if validation.mean else {})}
    return [
        *rows,
        *([name, *(_two(row[c].pearson) if c in row else "" for c in columns)] for name, row in groups.items()),
    ]


def attack_rows(attacks: Sequence[Attack]) -> Rows:
    """A header and a row per attack."""
    rows = [["attack", "rows", "real mean", "attack mean", "at least as high", "correlation"]]
    for each in attacks:
        share = f"{100 * each.not_worse:.0f}%"
        rows.append([each.name, str(each.rows), f"{each.real:.2f}", f"{each.mean:.2f}", share, _two(each.correlation)])
    return rows


def weaknesses(attacks: Sequence[Attack]) -> list[str]:
    """What the attacks show, in plain words."""
    found = {each.name: each for each in attacks}
    said = []
    if "reversed" in found:
        each = found["reversed"]
        kept = "hardly reads word order" if each.correlation > 0.8 else "reads word order only in part"
        said.append(
            f"It {kept}: the score of a response with its words reversed has a correlation of "
            f"{_two(each.correlation)} with that of the real one, and is at least as high in "
            f"{100 * each.not_worse:.0f}% of cases."
        )
    for name, verb in (
        ("dull", "A dull answer"),
        ("random", "A response to something else"),
        ("context", "Echoing the context"),
    ):
        if name in found:
            each = found[name]
            said.append(
                f"{verb} ({_ATTACKS[name]}) gets {each.mean:.2f} on average where real responses get {each.real:.2f}, "
                f"and at least as much as the real one in {100 * each.not_worse:.0f}% of cases."
            )
    if "reference" in found:
        each = found["reference"]
        said.append(
            f"A person's own answer ({_ATTACKS['reference']}) gets {each.mean:.2f}; real responses get {each.real:.2f}."
        )
    return said


def card(
    weights: Weights,
    data: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    validation: Validation | None,
    attacks: Sequence[Attack],
    command: str,
    title: str,
) -> str:
    """The card, in Markdown."""
    parts = [
        f"# {title}",
        _PURPOSE,
        "## Data",
        _markdown(
            [
                ["data set", "rows", "licence"],
                *([str(each["name"]), str(each["rows"]), str(each["licence"])] for each in data),
            ]
        ),
        "Only weights fitted to vectors of these texts are stored; no text is.",
        "## Settings",
        "\n".join(f"- {name}: {value}" for name, value in settings.items()),
        f"Made by: `{command}`",
    ]
    if validation is not None and not validation.sets:
        parts += ["## Results", f"None: {NOT_VALIDATED}"]
    elif validation is not None:
        parts += [
            "## Results",
            _HOW.format(resamples=validation.resamples),
            _markdown(validation_rows(validation)),
            "Pearson's r:",
            _markdown(pearson_rows(validation)),
        ]
    parts += ["## Weaknesses"]
    if attacks:
        parts += ["\n".join(f"- {line}" for line in weaknesses(attacks)), _markdown(attack_rows(attacks))]
    origin = f"Weights: {weights.kind}@{weights.digest}, for vectors of {weights.encoder} ({weights.encoder_digest})."
    return "\n\n".join([*parts, _LIMITS, origin]) + "\n"


def facts(
    data: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    validation: Validation | None,
    attacks: Sequence[Attack],
) -> dict[str, Any]:
    """What the card says, as plain data for `judge.json`."""
    found: dict[str, Any] = {"data": [dict(each) for each in data], "settings": dict(settings)}
    if validation is not None:
        found["validation"] = {
            "sets": {
                name: {c: _plain(asdict(each)) for c, each in row.items()} for name, row in validation.sets.items()
            },
            "mean": {c: _plain(asdict(each)) for c, each in validation.mean.items()},
            "resamples": validation.resamples,
        }
    found["attacks"] = [_plain(asdict(each)) for each in attacks]
    return found


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers rounded to what a resample can tell, so that the last bits of a machine do not change the file."""

    def number(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [number(part) for part in value]
        if isinstance(value, float):
            return None if math.isnan(value) else round(value, 4)
        return value

    return {name: number(value) for name, value in entry.items()}


def _shown(each: Agreed | None) -> str:
    if each is None:
        return ""
    low, high = each.spearman_interval
    return f"{_two(each.spearman)} [{_two(low)}, {_two(high)}]"


def _two(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)


def _markdown(rows: Rows) -> str:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
