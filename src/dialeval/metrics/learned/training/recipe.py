"""Recipes: which of the ways to fit a judge is taken, and with which settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from dialeval.core.errors import SettingError
from dialeval.data.rows.ratings import OVERALL
from dialeval.metrics.learned.training.examples import TURNS, Examples
from dialeval.metrics.learned.training.fitting import AdemSettings, fit_adem, fit_identity
from dialeval.metrics.learned.training.paper import PaperSettings, fit_paper
from dialeval.metrics.learned.weights import Weights

KINDS = ("identity", "adem", "paper")


@dataclass(frozen=True)
class Recipe:
    """How a judge is made of ratings."""

    kind: str = "adem"
    adem: AdemSettings = field(default_factory=AdemSettings)
    paper: PaperSettings = field(default_factory=PaperSettings)
    turns: int = TURNS
    quality: str = OVERALL

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"a judge is one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.turns < 1:
            raise SettingError("a context has at least one turn")

    def fit(self, examples: Examples, kind: str | None = None) -> Weights:
        """The judge of all examples, of this recipe's kind or of another one with the same settings."""
        kind = kind or self.kind
        if kind == "identity":
            return fit_identity(examples)
        return fit_adem(examples, self.adem) if kind == "adem" else fit_paper(examples, self.paper)
