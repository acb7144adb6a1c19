"""Train a judge of `adem`: read ratings, fit, attack, and write the model card.

Everything in a card comes out of the training command; nothing is written by hand. Whether the judge agrees with people
is measured on other ratings (`dialeval agreement`), which refuses those that the judge learned from.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.validation import parse_toml
from dialeval.io.opening import PathSource
from dialeval.io.ratings import Ratings, digest_ratings, read_ratings
from dialeval.judges.adem import AdemWeights, Facts, Judge, open_vectors
from dialeval.judges.attacks import Attack, attack, list_attacks
from dialeval.judges.fitting import AdemSettings, fit_adem, make_examples
from dialeval.metrics.encoder_files import MINILM
from dialeval.reports.documents import escape_markdown

Rows = list[list[str]]

ATTACKED_ROWS = 500
"""Rated rows, drawn by a fixed seed, on which a new judge is attacked."""
_TEXTS = parse_toml((Path(__file__).parent / "cards.toml").read_bytes(), "cards.toml", "install dialeval again")


def train(
    ratings: Sequence[PathSource],
    *,
    encoder: str | os.PathLike[str] = MINILM,
    turns: int = 3,
    tokens: int | None = None,
    quality: str = "overall",
    licenses: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
    command: str = "dialeval.adem.train(...)",
    title: str = "A judge of dialogue responses",
    **strengths: Any,
) -> JudgeCard:
    r"""Train a judge of `adem` on files of rated rows. The command is `dialeval adem train`.

    Args:
        ratings: Files of rated rows to learn from.
        encoder: The sentence encoder.
        turns: Turns of a context that count, from its end.
        tokens: Word pieces of a text that count; None: as many as the encoder takes, at most 128.
        quality: Which of the scores to learn.
        licenses: By data set its license, for the card.
        fields: The names of fields in the files, by ours.
        command: The command, for the card.
        title: The title of the card.
        **strengths: `strength`, `response_strength` and `rank`; see `dialeval adem train --help`.

    Returns:
        The judge with its model card: `save(folder)` and `to_markdown()`.

    Raises:
        DataError: A file cannot be read.
        SettingError: A setting does not exist, or cannot have this value.

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from dialeval.adem import open_judge, train
        >>> rows = [
        ...     {"context": [f"tea {n} ?"], "response": "yes please" if n % 2 else "a train", "reference": "yes",
        ...      "scores": {"overall": 1 + 4 * (n % 2)}}
        ...     for n in range(8)
        ... ]
        >>> _ = Path("ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
        >>> folder = train(["ratings.jsonl"]).save("judge")
        >>> scores = open_judge(folder).score([["tea ?"]] * 2, ["yes please", "a train"], [["yes"]] * 2)
        >>> bool(scores[0] > scores[1])
        True
    """
    if turns < 1:
        raise SettingError("a context has at least one turn")
    settings = AdemSettings(**strengths)
    rated = read_ratings(ratings, fields)
    vectors = open_vectors(encoder, tokens)
    used, weights = vectors.encoder, fit_adem(make_examples(rated, vectors, turns, quality), settings)
    weights = replace(weights, encoder=used.name, encoder_digest=used.files.digest, tokens=used.tokens, turns=turns)
    attacks = attack_rated(Judge(weights, vectors), rated)
    facts = {
        "data": [
            {"name": name, "rows": rows, "license": (licenses or {}).get(name, "not stated")}
            for name, rows in Counter(rated.datasets).items()
        ],
        "settings": {
            "quality": quality,
            "turns of the context": turns,
            "encoder": weights.encoder,
            "encoder digest": weights.encoder_digest,
            "tokens of a text": weights.tokens,
            **{name.replace("_", " "): value for name, value in asdict(settings).items()},
        },
        "attacks": round_numbers([asdict(result) for result in attacks]),
        "trained_on": sorted(set(digest_ratings(rated))),
    }
    return JudgeCard(replace(weights, facts=facts), attacks, command, title)


def attack_rated(judge: Judge, ratings: Ratings) -> list[Attack]:
    """Attack a judge on some of the rated rows."""
    tried = sample_rows(ratings)
    return attack(judge, tried.contexts, tried.responses, tried.references)


def sample_rows(ratings: Ratings) -> Ratings:
    """Return rows with a context and a reference, where there are such; not more than `ATTACKED_ROWS`."""
    both = np.array([bool(c) and bool(r) for c, r in zip(ratings.contexts, ratings.references, strict=True)], np.bool_)
    rows = np.flatnonzero(both) if both.any() else np.arange(len(ratings))
    return ratings.take(np.sort(np.random.default_rng(0).permutation(rows)[:ATTACKED_ROWS]))


def round_numbers(value: object) -> Any:
    """Round numbers for a file to what resamples can tell, so that the last bits of a machine do not change it."""
    if isinstance(value, Mapping):
        return {name: round_numbers(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(part) for part in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 4)
    return value


@dataclass(frozen=True, eq=False)
class JudgeCard:
    """A trained judge of `adem` with its model card."""

    weights: AdemWeights
    attacks: Sequence[Attack]
    command: str
    title: str
    results: Sequence[str] = ()
    """Parts of the card about the agreement with people, where it was measured."""

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `judge.safetensors`, `judge.json` and the card."""
        return self.weights.save(folder, self.to_markdown())

    def to_markdown(self) -> str:
        """Return the card, in Markdown."""
        weights, texts = self.weights, _TEXTS["adem"]
        data = [[entry["name"], str(entry["rows"]), entry["license"]] for entry in weights.facts["data"]]
        parts = begin_card(self.title, texts, [["data set", "rows", "license"], *data], weights.facts)
        parts += [f"Made by: {to_code(self.command)}", "## Results", *(self.results or [texts["unknown"]])]
        parts += ["## Weaknesses", texts["attacks"], write_card_table(list_attacks(self.attacks))]
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
