"""What a metric can ask for, and how a user gives it.

A need is a column of the rows (`COLUMNS`) or a resource from outside of them: the training text, the list of known
words, word vectors. The plan switches a metric off when one of its needs is not met, and quotes `remedy` so that the
user knows what to pass.
"""

from __future__ import annotations

from enum import Enum


class Need(str, Enum):
    """Something a metric declares before it may look at it."""

    RESPONSE = "response"
    REFERENCE = "reference"
    CONTEXT = "context"
    TRAIN = "train"
    VOCABULARY = "vocabulary"
    EMBEDDINGS = "embeddings"

    def __str__(self) -> str:
        return self.value

    @property
    def argument(self) -> str:
        """The keyword of `dialeval.evaluate` that brings it."""
        return f"{self.value}s" if self in COLUMNS else self.value

    @property
    def flag(self) -> str:
        """The option of `dialeval score` that brings it."""
        return _FLAGS[self]

    @property
    def remedy(self) -> str:
        """One line for a metric that lacks it."""
        return f"needs {self.argument}: pass {self.argument}=... ({self.flag} on the command line)"


COLUMNS = frozenset({Need.RESPONSE, Need.REFERENCE, Need.CONTEXT})
"""The needs that are columns of the rows."""

_FLAGS = {
    Need.RESPONSE: "RESPONSES",
    Need.REFERENCE: "-r",
    Need.CONTEXT: "-c",
    Need.TRAIN: "--train",
    Need.VOCABULARY: "--vocab",
    Need.EMBEDDINGS: "--vectors",
}
