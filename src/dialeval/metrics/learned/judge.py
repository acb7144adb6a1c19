"""The judge: weights and the encoder they are for, from texts to scores. What `Need.JUDGE` stands for.

A context is the last few turns, joined by blanks; of several references the one closest to the response counts (the
highest cosine). An empty context or reference is none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.metrics.learned.weights import Encoded, Mask, Vectors, Weights, load, row_products, trained_on
from dialeval.resources.encoder import Encoder, SentenceEncoder
from dialeval.resources.encoder_files import Singles, check_libraries, find_encoder, lacking
from dialeval.resources.sentence_vectors import SentenceVectors

Texts: TypeAlias = Sequence[Sequence[str]]
"""Some texts for each row."""

SHIPPED = Path(__file__).parent / "checkpoints" / "dialogue"
"""The judge that comes with the package."""

DEVICES = ("cpu", "torch", "cuda")
"""Where texts are encoded: by NumPy, by PyTorch on the processor, or by PyTorch on a GPU in bfloat16."""


class Judge:
    """Scores responses by their context and references. Pickled as weights and the encoder's place."""

    def __init__(self, weights: Weights, vectors: SentenceVectors) -> None:
        encoder = vectors.encoder
        if weights.encoder_digest and weights.encoder_digest != files_digest(encoder):
            remedy = f"pass the encoder {weights.encoder!r} ({weights.encoder_digest}), or train a judge for this one"
            raise SettingError(f"the judge was fitted to other vectors than those of {encoder.name}; {remedy}")
        self.weights, self.vectors = weights, vectors

    @cached_property
    def digest(self) -> str:
        """The weights' digest, the encoder's name and digest."""
        return f"{self.weights.kind}@{self.weights.digest}+{self.vectors.encoder.name}@{self.vectors.encoder.digest}"

    @property
    def trained_on(self) -> list[str]:
        """The digests of the rated rows that it learned from."""
        return trained_on(self.weights.facts)

    @property
    def turns(self) -> int:
        """How many turns of a context count, from its end."""
        return self.weights.turns

    def score(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Floats:
        """One score per response, 1 to 5; NaN for a response without context and reference."""
        return self.weights.score(encoded(self.vectors, contexts, responses, references, self.turns))


class LazyJudge:
    """A judge that is opened when it is first asked for anything."""

    def __init__(
        self,
        source: str | os.PathLike[str] | None = None,
        encoder: str | os.PathLike[str] | None = None,
        device: str = "cpu",
    ) -> None:
        if device not in DEVICES:
            raise SettingError(f"texts are encoded on {', '.join(DEVICES)}, not on {device!r}")
        self._settings = source, encoder, device

    def __reduce__(self) -> tuple[type[LazyJudge], tuple[object, ...]]:
        return type(self), self._settings

    @property
    def shipped(self) -> bool:
        """Whether it is the one that comes with the package."""
        return self._settings[0] is None

    @cached_property
    def judge(self) -> Judge:
        """The judge itself."""
        return open_judge(*self._settings)

    @property
    def digest(self) -> str:
        """See `Judge.digest`."""
        return self.judge.digest

    @property
    def trained_on(self) -> list[str]:
        """See `Judge.trained_on`."""
        return self.judge.trained_on

    @property
    def turns(self) -> int:
        """See `Judge.turns`."""
        return self.judge.turns

    def score(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Floats:
        """See `Judge.score`."""
        return self.judge.score(contexts, responses, references)


def shipped_lacks() -> str | None:
    """The command that installs what the shipped judge lacks, or None."""
    return lacking()


def open_judge(
    source: str | os.PathLike[str] | None = None,
    encoder: str | os.PathLike[str] | None = None,
    device: str = "cpu",
) -> Judge:
    """The judge in a folder, or the shipped one; `encoder` says where its encoder lies if not where its name says."""
    check_libraries()
    weights = load(SHIPPED if source is None else source)
    return Judge(weights, open_vectors(encoder or weights.encoder, weights.tokens, device))


def open_vectors(encoder: str | os.PathLike[str], tokens: int | None = None, device: str = "cpu") -> SentenceVectors:
    """The sentence vectors of an encoder on a device; only those of NumPy are the same everywhere, and kept on disk.

    `tokens` of a text count; see `resources.encoder.TOKENS`.
    """
    files = find_encoder(encoder)
    if device == "cpu":
        return SentenceVectors(Encoder(files, tokens))
    try:
        from dialeval.metrics.learned.torch_encoder import TorchEncoder
    except ModuleNotFoundError:
        raise SettingError("PyTorch is not installed; run: pip install 'dialeval[learned]'") from None
    return SentenceVectors(TorchEncoder(files, tokens, "cpu" if device == "torch" else device), keep=False)


def joined(context: Sequence[str], turns: int) -> str:
    """The text that stands for a context: its last turns."""
    return " ".join(turn for turn in context[-turns:] if turn.strip())


def encoded(
    vectors: SentenceVectors, contexts: Texts, responses: Sequence[str], references: Texts, turns: int
) -> Encoded:
    """Rows as vectors: the last turns of the context, the response, and the reference closest to it."""
    response = vectors.of(responses)
    context, has_context = _context_vectors(vectors, [joined(context, turns) for context in contexts])
    reference, has_reference = _reference_vectors(vectors, references, response)
    return Encoded(context, reference, response, has_context, has_reference)


def _context_vectors(vectors: SentenceVectors, texts: Sequence[str]) -> tuple[Singles, Mask]:
    """The vector of each context, and whether there is one; of a long one the end counts."""
    has = np.fromiter(map(bool, texts), np.bool_, len(texts))
    context: Singles = np.zeros((len(texts), vectors.encoder.dimension), np.float32)
    context[has] = vectors.of([text for text in texts if text], ends=True)
    return context, has


def closest_cosines(vectors: SentenceVectors, responses: Sequence[str], references: Texts) -> Floats:
    """The cosine of each response with its closest reference, NaN where it has none."""
    response = vectors.of(responses)
    reference, has = _reference_vectors(vectors, references, response)
    found: Floats = np.where(has, _cosines(reference, response), np.nan)
    return found


def _reference_vectors(vectors: SentenceVectors, references: Texts, response: Singles) -> tuple[Singles, Mask]:
    """The vector of each response's closest reference, and whether there is one."""
    lists = [[text for text in texts if text.strip()] for texts in references]
    counts: Ints = np.fromiter(map(len, lists), np.int64, len(lists))
    rows = np.repeat(np.arange(len(lists)), counts)
    every = vectors.of([text for texts in lists for text in texts])
    # By row, then by cosine: the last one of each row is the closest.
    order = np.lexsort((_cosines(every, response[rows]), rows))
    has = counts > 0
    closest: Singles = np.zeros((len(lists), vectors.encoder.dimension), np.float32)
    closest[has] = every[order[np.cumsum(counts)[has] - 1]]
    return closest, has


def _cosines(left: Vectors, right: Vectors) -> Floats:
    lengths = np.sqrt(row_products(left, left) * row_products(right, right))
    cosines: Floats = row_products(left, right) / np.maximum(lengths, 1e-12)
    return cosines


def files_digest(encoder: SentenceEncoder) -> str:
    """The digest of an encoder's files, whatever computes its vectors."""
    files = getattr(encoder, "files", None)
    return encoder.digest if files is None else str(files.digest)
