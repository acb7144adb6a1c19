"""The schemas of the JSON files that come with resources: encoders, judges, data packs and the caches of vectors.

A module of its own, since msgspec is imported with it; who reads such a file imports it then. Fields that are not named
here may hold anything and are left out, but for a judge, whose other fields are facts for people.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Any

from msgspec import Meta, Struct

from dialeval.core.validation import SHA256
from dialeval.io import judge_settings
from dialeval.io.judge_settings import BreakdownScale, PairShape

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Size = Annotated[int, Meta(ge=1, le=1 << 24)]
Digest = Annotated[str, Meta(pattern=SHA256)]
Digits = Annotated[str, Meta(pattern=r"^[0-9a-f]{1,64}\Z")]


def check_inside(name: str) -> None:
    """Raise ValueError for a path that leaves its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name:
        raise ValueError(f"{name!r} is no path inside of the folder")


class TransformerConfig(Struct):
    """`config.json` of a transformer."""

    hidden_size: Size
    num_hidden_layers: Annotated[int, Meta(ge=0, le=1 << 10)]
    num_attention_heads: Size
    max_position_embeddings: Size
    vocab_size: Size
    intermediate_size: Size
    model_type: str = ""
    hidden_act: str = ""
    layer_norm_eps: Annotated[float, Meta(ge=1e-15, le=1)] = 1e-12
    """Above 0: what does not vary is divided by its root."""
    position_embedding_type: str = "absolute"

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"{self.hidden_size} numbers cannot be shared by {self.num_attention_heads} heads")


class EncoderModule(Struct):
    """An entry of `modules.json`."""

    type: str
    path: str

    def __post_init__(self) -> None:
        check_inside(self.path)


class SentenceConfig(Struct):
    """`sentence_bert_config.json`."""

    max_seq_length: Size | None = None


class JudgeEncoder(Struct):
    """The encoder that a judge is for."""

    name: str
    digest: str
    tokens: Annotated[int, Meta(ge=0, le=1 << 24)]


Scale = tuple[float, float]


class Calibration(Struct):
    """alpha and beta of each case."""

    both: Scale
    context: Scale
    reference: Scale

    def __post_init__(self) -> None:
        if not all(beta for _, beta in (self.both, self.context, self.reference)):
            raise ValueError("a beta is 0")


class Judge(Struct):
    """`judge.json`."""

    format: Annotated[int, Meta(ge=1)]
    kind: str
    identity: float
    calibration: Calibration
    encoder: JudgeEncoder
    turns: Size
    sha256: Digest
    digest: Digest
    """SHA-256 of all else in the document, see `validation.content_digest`."""


class PlainEncoder(Struct):
    """The encoder that a judge of dialogue changes."""

    name: str
    digest: str


class DialogueJudge(Struct):
    """`judge.json` of a judge of dialogue."""

    format: Annotated[int, Meta(ge=1)]
    kind: str
    scale: judge_settings.Scale
    shape: PairShape
    encoder: PlainEncoder
    sha256: Digest
    digest: Digest
    breakdown: BreakdownScale = BreakdownScale()


class Model(Struct):
    """The JSON file of a model that PyTorch trained."""

    format: Annotated[int, Meta(ge=1)]
    kind: str
    settings: dict[str, Any]
    sha256: Digest
    digest: Digest


class PackFile(Struct, frozen=True):
    """What the manifest of a data pack says about a file."""

    sha256: Digest
    size: Count


class PackManifest(Struct):
    """`manifest.json` of a data pack."""

    name: str
    version: str
    origin: str
    files: dict[str, PackFile]

    def __post_init__(self) -> None:
        for name in self.files:
            check_inside(name)


class VectorEntry(Struct):
    """`entry.json` of parsed word vectors."""

    dtype: Annotated[str, Meta(pattern=r"^<f[248]\Z")]
    shape: tuple[Count, Annotated[int, Meta(ge=0, le=1 << 20)]]
    content: Digits
    """Digest of the words and numbers."""
    header: bool
    warning: str | None
    files: dict[str, Count]
    """The CRC-32 of each file but the matrix."""
