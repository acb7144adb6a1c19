"""Attacks: responses that a good judge must not like, and the reference, which it must.

    reversed      the words of the response in reverse order
    dull          "i do not know ." whatever was said
    random        the response to another context (to what has another reference, where there are no contexts)
    context       the last turn of the context, repeated
    reference     the first reference itself; it is taken away from the references if there are others

For every attack: the mean score beside that of the real responses, how often the attack is scored at least as high as
the real response, and how closely its scores follow those of the real responses (a judge that reads the order of words
has little of that for `reversed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.judges.adem import Texts

DULL = "i do not know ."
ATTACKS = {
    "reversed": "its words in reverse order",
    "dull": f'"{DULL}" instead',
    "random": "the response to another context instead",
    "context": "the last turn of the context repeated instead",
    "reference": "the first reference instead",
}
"""What is said instead of the response."""


class Scores(Protocol):
    """Whatever scores responses: a judge of either kind."""

    def score(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Floats:
        """Return one score per response, NaN where it cannot be judged."""


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


def attack(judge: Scores, contexts: Texts, responses: Sequence[str], references: Texts, seed: int = 0) -> list[Attack]:
    """Try every attack that the rows allow; SettingError where no row has a context or a reference to judge it by."""
    real = judge.score(contexts, responses, references)
    if np.isnan(real).all():
        raise SettingError("no row has a context or a reference to judge it by; give rows with them, or -c or -r")
    attacks = []
    for name, replaced in _replacements(contexts, responses, references, seed).items():
        rows = [row for row, text in enumerate(replaced) if text is not None and not np.isnan(real[row])]
        if not rows:
            continue
        others = [_others(references[row]) if name == "reference" else references[row] for row in rows]
        scores = judge.score([contexts[row] for row in rows], [replaced[row] or "" for row in rows], others)
        attacks.append(_attack(name, real[rows], scores))
    return attacks


def _replacements(
    contexts: Texts, responses: Sequence[str], references: Texts, seed: int
) -> dict[str, Sequence[str | None]]:
    """Return by attack what is said instead of each response, None where there is nothing to say."""
    dice = np.random.default_rng(seed)
    asked = contexts if any(contexts) else references
    return {
        "reversed": [_reversed(text) for text in responses],
        "dull": [DULL] * len(responses),
        "random": [_elsewhere(row, asked, responses, dice) for row in range(len(responses))],
        "context": [context[-1] if context else None for context in contexts],
        "reference": [texts[0] if texts else None for texts in references],
    }


def _reversed(text: str) -> str | None:
    words = text.split()
    return " ".join(reversed(words)) if len(words) > 1 else None


def _elsewhere(row: int, asked: Texts, responses: Sequence[str], dice: np.random.Generator) -> str | None:
    """Sample a response to something else; None where every row has the same context."""
    for _ in range(20):
        other = int(dice.integers(len(responses)))
        if list(asked[other]) != list(asked[row]) and responses[other] != responses[row]:
            return responses[other]
    return None


def _others(references: Sequence[str]) -> Sequence[str]:
    return [text for text in references[1:] if text != references[0]] or references


def _attack(name: str, real: Floats, scores: Floats) -> Attack:
    constant = min(real.std(), scores.std()) < 1e-9
    correlation = float("nan") if constant else float(np.corrcoef(real, scores)[0, 1])
    return Attack(
        name, len(real), float(real.mean()), float(scores.mean()), float((scores >= real).mean()), correlation
    )
