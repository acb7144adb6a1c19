"""The paper's recipe: vectors reduced to few principal components, then M and N by Adam with L1 and early stopping.

Offered to be compared with, not to be used: it leaves the identity and learns the words of its training sets; on sets
that it has not seen it is behind the untrained identity, and the further it is trained the more so.

Differences from the paper: the vectors come from a frozen sentence encoder; components are those of the uncentred
vectors, so that the result is again a bilinear form in the full vectors and one format holds every judge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.metrics.learned.training.examples import Examples
from dialeval.metrics.learned.training.fitting import calibrated, signs_of
from dialeval.metrics.learned.weights import Mask, Weights


@dataclass(frozen=True)
class PaperSettings:
    """The settings of the recipe; `patience=None` trains on to the last epoch."""

    components: int = 50
    learning_rate: float = 0.01
    l1: float = 0.02
    epochs: int = 100
    batch_size: int = 32
    patience: int | None = 5
    validation_share: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.components < 1 or not 0 < self.validation_share < 1:
            raise SettingError("there is at least one component, and some but not all contexts are held out")


_USUAL = PaperSettings()


def fit_paper(examples: Examples, settings: PaperSettings = _USUAL) -> Weights:
    """The judge of the paper's recipe; contexts, not rows, are held out to know when to stop."""
    try:
        from dialeval.metrics.learned.training.model import ADEM
    except ModuleNotFoundError:
        raise SettingError("the paper's recipe needs PyTorch; run: pip install 'dialeval[learned]'") from None

    axes = _components(examples, settings.components)
    context, response, reference = (
        part.astype(np.float64) @ axes for part in (examples.context, examples.response, examples.reference)
    )
    held = _held_out(examples, settings)
    size = axes.shape[1]
    model = ADEM(size, size, size, settings.learning_rate, l1=settings.l1)
    model.fit(
        context[~held],
        response[~held],
        reference[~held],
        examples.scores[~held],
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        validation=(context[held], response[held], reference[held], examples.scores[held]) if held.any() else None,
        patience=settings.epochs if settings.patience is None else settings.patience,
        seed=settings.seed,
    )
    one, other = (matrix.detach().cpu().double().numpy() for matrix in (model.head.M, model.head.N))
    width = examples.response.shape[1]
    return calibrated(Weights("paper", 0.0, axes @ one, axes, axes @ other, axes, np.zeros(width), {}), examples)


def _components(examples: Examples, many: int) -> Floats:
    """The directions in which the vectors of all three kinds are longest, as columns."""
    every = np.concatenate(
        [part.astype(np.float64) for part in (examples.context, examples.response, examples.reference)]
    )
    sizes, directions = np.linalg.eigh(every.T @ every)
    chosen: Floats = directions[:, np.argsort(-sizes)[:many]]
    return chosen * signs_of(chosen)


def _held_out(examples: Examples, settings: PaperSettings) -> Mask:
    """Whole contexts, drawn by the seed; none where all rows share one (`fit` then draws rows)."""
    contexts = np.unique(examples.contexts)
    dice = np.random.default_rng(settings.seed)
    many = min(max(1, round(len(contexts) * settings.validation_share)), len(contexts) - 1)
    return np.isin(examples.contexts, dice.permutation(contexts)[:many])
