"""The schemas of the JSON files that come with resources: encoders, data packs and the caches of vectors.

A module of its own, since msgspec is imported with it; who reads such a file imports it then. Fields that are not named
here may hold anything and are left out.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta, Struct

from dialeval.core.validation import SHA256

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Size = Annotated[int, Meta(ge=1, le=1 << 24)]
Digest = Annotated[str, Meta(pattern=SHA256)]
Digits = Annotated[str, Meta(pattern=r"^[0-9a-f]{1,64}\Z")]


def check_inside(name: str) -> None:
    """Raise ValueError for a path that leaves its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name:
        raise ValueError(f"{name!r} is not a path inside the folder")


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
