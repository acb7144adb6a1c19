"""Schemas of JSON files that come with resources (encoders, data packs, caches of vectors), and checks against types.

A module of its own, since it imports msgspec; it is imported only where such a file is read. Fields that are not named
here may hold anything and are ignored. `check_types` compares parsed documents of suites with types of msgspec: every
mismatch is a problem with its path inside the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from dialeval.core.errors import Problem
from dialeval.core.validation import SHA256
from dialeval.io.rows import LISTS, kind_of

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
    """The entry of a file in the manifest of a data pack."""

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
    words_check: Count
    """The CRC-32 of `words.json`."""


_LEAVES = {str: "a text", int: "a whole number", bool: "true or false"}
Mismatch = tuple[str, str, str]
"""The path of what does not fit, what is wrong with it, and the field that it is in, or that is missing."""
_THINGS = {str: "texts", list: "lists", dict: "objects"}


def check_types(document: object, kind: object, where: str, form: str, **remedies: str) -> list[Problem]:
    """Return a problem for each value of a document that does not fit, at a place such as `FILE: pmul1635[3].state`.

    A `Struct` is an object with named fields, of which those with a default may be missing. Values may be mappings and
    tuples too. `form` is the remedy, but for fields that have one of their own.
    """
    if _fits(document, kind):
        return []
    return [
        Problem(f"{where}: {path.removeprefix('.')}" if path else where, None, what, remedies.get(field, form))
        for path, what, field in _find_mismatches(document, kind, "", "")
    ]


def _fits(value: object, kind: object) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError, AttributeError):  # the last two: half a character, and a range
        return False
    return True


def _find_mismatches(value: object, kind: object, path: str, field: str) -> Iterator[Mismatch]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        if not _fits(value, kind):
            yield from _find_mismatches(value, inner[0], path, field)
    elif origin in (list, tuple, frozenset) and isinstance(value, LISTS):
        for at, item in enumerate(value):
            yield from _find_mismatches(item, inner[0], f"{path}[{at}]", field)
    elif origin is dict and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _find_mismatches(item, inner[1], f"{path}.{name}", field)
    elif _is_struct(kind) and isinstance(value, Mapping):
        yield from _check_fields(value, kind, path)
    elif not (isinstance(value, kind) if kind in _LEAVES else _fits(value, kind)):
        yield path, f"is {kind_of(value)}, not {_describe(kind)}", field


def _check_fields(value: Mapping[str, object], kind: Any, path: str) -> Iterator[Mismatch]:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for name, field in fields.items():
        if name in value:
            yield from _find_mismatches(value[name], field.type, f"{path}.{name}", name)
        elif field.required:
            yield path, f"has no {name}", name
    if kind.__struct_config__.forbid_unknown_fields:
        names = ", ".join(sorted(fields))
        what = f"is not an entry; there are {names}"
        yield from ((f"{path}.{name}", what, name) for name in value if name not in fields)


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _describe(kind: Any) -> str:
    """Return what a type is, in words for messages; of a number with limits its description."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (list, tuple, frozenset):
        item = get_origin(inner[0]) or inner[0]
        return f"a list of {_THINGS.get(item) or item.__name__.strip('_').lower() + 's'}"
    if origin is Annotated:
        return str(inner[1].description)
    if origin is Literal:
        return f"one of {', '.join(inner)}"
    if _is_struct(kind):
        return f"an object with {', '.join(kind.__struct_fields__)}"
    return _LEAVES.get(kind, "an object")
