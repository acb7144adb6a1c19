"""The names of the module `ADEM`, whose methods are given a TensorFlow session; see `dialeval.adem`."""

from __future__ import annotations

from typing import Any

from dialeval import adem
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError

__all__ = ["ADEM", "ADEMWithEncoder"]

LEARNING_RATE = 0.1
MAX_GRAD_NORM = 5.0


class _WithSession:
    """Methods that are given a session first, which is not looked at and may be None."""

    def train_on_single_batch(self, train_session: object, *batch: object, **named: object) -> tuple[Floats, float]:
        return super().train_on_single_batch(*batch, **named)  # type: ignore[misc]

    def predict_on_single_batch(self, predict_session: object, *batch: object, **named: object) -> Floats:
        return super().predict_on_single_batch(*batch, **named)  # type: ignore[misc]

    def assign_learning_rate(self, train_session: object, learning_rate: float) -> None:
        super().assign_learning_rate(learning_rate)  # type: ignore[misc]


# One argument more than what they stand in for: that is what the stand-ins are for.
class ADEM(_WithSession, adem.ADEM):  # type: ignore[misc]
    """The model for vectors that you have already; `others` are settings of `dialeval.adem.ADEM`."""

    def __init__(
        self,
        context_dim: int,
        model_response_dim: int,
        reference_response_dim: int,
        learning_rate: float = LEARNING_RATE,
        max_grad_norm: float = MAX_GRAD_NORM,
        **others: Any,
    ) -> None:
        dimensions = context_dim, model_response_dim, reference_response_dim
        super().__init__(*dimensions, learning_rate, max_grad_norm=max_grad_norm, **others)


class ADEMWithEncoder(_WithSession, adem.ADEMWithEncoder):  # type: ignore[misc]
    """The model for words or characters that were mapped to indices.

    The encoder is an `EncoderSettings` of `dialeval.adem`, the same for contexts, responses and references. Word
    vectors are never read from a pickle. `others` are settings of `dialeval.adem.ADEMWithEncoder`.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        context_encoder: object,
        model_response_encoder: object = None,
        reference_response_encoder: object = None,
        embedding_lut_path: object = None,
        learn_embedding: bool = False,
        learning_rate: float = LEARNING_RATE,
        max_grad_norm: float = MAX_GRAD_NORM,
        **others: Any,
    ) -> None:
        if not isinstance(context_encoder, adem.EncoderSettings):
            raise SettingError("an encoder is described by dialeval.adem.EncoderSettings, not by a dictionary")
        if any(each not in (None, context_encoder) for each in (model_response_encoder, reference_response_encoder)):
            raise SettingError("contexts, responses and references have one EncoderSettings; give the same, or None")
        if embedding_lut_path is not None:
            raise SettingError("word vectors are not read from a pickle; give them as an array: embeddings=")
        super().__init__(
            vocab_size,
            embedding_size,
            context_encoder,
            learning_rate,
            train_embeddings=learn_embedding,
            max_grad_norm=max_grad_norm,
            **others,
        )

    @classmethod
    def _from_settings(cls, settings: dict[str, Any], device: str) -> ADEMWithEncoder:
        sizes = settings.pop("vocabulary_size"), settings.pop("embedding_size")
        encoder = adem.EncoderSettings(**settings.pop("encoder"))
        return cls(*sizes, encoder, learn_embedding=settings.pop("train_embeddings"), **settings, device=device)
