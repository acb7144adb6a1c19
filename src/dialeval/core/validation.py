"""Validate files that dialeval wrote itself or takes ready-made from others, once, before anything uses them.

Saved runs, journals, judges, encoders, data packs and caches may be truncated, edited, mixed up or made by an attacker.
Each format has a schema: types and ranges for JSON (a `msgspec.Struct`), types and shapes for arrays and tensors, types
of columns for tables. A violation is a DataError that names the file and the problem; later code relies on the schema
and checks nothing again.

A document may hold a digest of its own content, so that a value that was edited, or damaged on a disk, is noticed. This
is no protection against intent: whoever changes a document can compute its digest too. So what a document states about
files and rows next to it is compared with these as well.

Only plain files are opened (a pipe would block, a device never ends), and a name that a document gives for a file
stays in the document's folder.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import orjson

from dialeval.core.errors import DataError, Problem, escape_surrogates

# Plain data for JSON: null for NaN and infinities, and the layout of every JSON file that users may open.


def nan_to_null(value: object) -> Any:
    """Return plain data with None for every float that is not finite, and lists for tuples."""
    return _map_leaves(value, lambda leaf: None if isinstance(leaf, float) and not math.isfinite(leaf) else leaf)


def _map_leaves(value: object, change: Callable[[object], object]) -> object:
    """Return plain data with every key and leaf changed, and lists for tuples."""
    if isinstance(value, Mapping):
        return {change(key): _map_leaves(inner, change) for key, inner in value.items()}
    return [_map_leaves(inner, change) for inner in value] if isinstance(value, list | tuple) else change(value)


def dump(document: object) -> bytes:
    """Return a document as indented JSON with a line feed at its end."""
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(document, option=option)
    except TypeError:  # half a character, as in the name of a file that is not UTF-8; anything else is raised again
        whole = _map_leaves(document, lambda leaf: escape_surrogates(leaf) if isinstance(leaf, str) else leaf)
        return orjson.dumps(whole, option=option)


T = TypeVar("T")
JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON document, as plain data."""
Array: TypeAlias = npt.NDArray[Any]

FILE_NAME = r"^(?!\.{1,2}\Z)[^/\\\x00-\x1f:]{1,255}\Z"
"""Valid names of a file next to a document: one name, not a path."""
SHA256 = r"^[0-9a-f]{64}\Z"
LARGEST_DOCUMENT = 1 << 30
"""Bytes of a JSON document; all of it is held in memory."""
_LONGEST = 300


class InvalidError(ValueError):
    """A content that fails its check; `explain_errors` adds the file."""


_SQLITE_REMEDIES = {
    "locked": "another program uses it: wait, or end that program",
    "full": "make room on the disk",
    "disk I/O": "make room on the disk, or check it",
}
"""What to do about an error of SQLite, by a part of its message."""


@contextmanager
def explain_errors(where: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """Turn an InvalidError or an OSError into a DataError that names the file."""
    try:
        yield
    except OSError as error:
        what = f"cannot be read ({error.strerror or error})"
        what = "there is no such file" if isinstance(error, FileNotFoundError) else what
        raise DataError(Problem(str(error.filename or where), None, what, remedy)) from None
    except InvalidError as error:
        raise DataError(Problem(str(where), None, str(error)[:_LONGEST], remedy)) from None


@contextmanager
def explain_sqlite_errors(where: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """Explain errors as `explain_errors` does, and those of SQLite."""
    import sqlite3

    try:
        with explain_errors(where, remedy):
            yield
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # ValueError: a path with a NUL, a text not in UTF-8
        remedy = next((advice for part, advice in _SQLITE_REMEDIES.items() if part in str(error)), remedy)
        raise DataError(Problem(str(where), None, f"cannot be used ({error})", remedy)) from None


def size_of(path: str | os.PathLike[str], remedy: str) -> int:
    """Return the size of a plain file; DataError for anything else."""
    with explain_errors(path, remedy):
        try:
            status = Path(path).stat()
        except ValueError:
            raise InvalidError("is not a path (it contains a NUL character)") from None
        if not stat.S_ISREG(status.st_mode):
            raise InvalidError("is a folder" if stat.S_ISDIR(status.st_mode) else "is not a regular file")
        return status.st_size


def read_bytes(path: str | os.PathLike[str], remedy: str, sha256: str | None = None, of: str = "it") -> bytes:
    """Read a plain file; `sha256` is the digest that `of` states."""
    size_of(path, remedy)
    with explain_errors(path, remedy):
        content = Path(path).read_bytes()
        if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            raise InvalidError(f"does not belong to {of}")
    return content


def read_document(path: str | os.PathLike[str], remedy: str, sha256: str | None = None, of: str = "it") -> object:
    """Read and parse a JSON document, as `read_bytes`; refuse one that is too large to be parsed."""
    if size_of(path, remedy) > LARGEST_DOCUMENT:
        raise DataError(Problem(str(path), None, f"has more than {LARGEST_DOCUMENT:,} bytes", remedy))
    return parse_json(read_bytes(path, remedy, sha256, of), str(path), remedy)


def read_json(path: str | os.PathLike[str], kind: type[T], remedy: str) -> T:
    """Read a JSON document and convert it to a type."""
    return convert(read_document(path, remedy), kind, str(path), remedy)


def read_manifest(
    path: str | os.PathLike[str], kind: type[T], remedy: str, layout: int | None = None, signed: bool = True
) -> tuple[T, JsonObject]:
    """Read a JSON document that dialeval wrote, as a type and as plain data.

    Args:
        path: The file.
        kind: The type of the document.
        remedy: What to do where it cannot be read.
        layout: The only `format` that is read; None for documents without one.
        signed: Whether the document carries a digest of its content.

    Raises:
        DataError: It cannot be read, has another layout, does not fit the type, or was changed.
    """
    document = read_json(path, JsonObject, remedy)
    if layout is not None and isinstance(saved_layout := document.get("format"), int) and saved_layout != layout:
        what = f"was saved in layout {saved_layout}, and this dialeval reads layout {layout}"
        raise DataError(Problem(str(path), None, what, "read it with the version that saved it, or make it again"))
    with explain_errors(path, remedy):
        check_depth(document)
        made = convert(document, kind, str(path), remedy)
        if signed and document.get("digest") != content_digest(document):
            raise InvalidError("was changed after it was saved: its content does not have the digest that it states")
    return made, document


def parse_json(content: bytes, where: str, remedy: str) -> object:
    """Parse JSON; `where` names the file."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DataError(Problem(where, error.lineno, f"not JSON ({error.msg})", remedy)) from None


def parse_toml(content: bytes, where: str, remedy: str) -> JsonObject:
    """Parse TOML; `where` names the file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: JsonObject = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # not only TOMLDecodeError: 5,000 digits are a ValueError
        raise DataError(Problem(where, None, f"not TOML ({error})", remedy)) from None
    return document


def convert(document: object, kind: type[T], where: str, remedy: str, strict: bool = True) -> T:
    """Convert plain data to a type that msgspec knows; unless `strict`, texts such as "nan" are numbers."""
    import msgspec  # slow to import, and most processes read no such document

    try:
        return msgspec.convert(document, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise DataError(Problem(where, None, describe_mismatch(str(error)), remedy)) from None


def check_depth(document: object) -> None:
    """Raise InvalidError for plain data that is nested more deeply than it could be written again."""
    try:
        orjson.dumps(document)
    except TypeError as error:
        raise InvalidError(f"is nested too deeply ({error})") from None


def content_digest(document: Mapping[str, object]) -> str:
    """Return the SHA-256 of a JSON object without its field `digest`; indentation does not matter."""
    content = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(orjson.dumps(content)).hexdigest()


def with_digest(document: Mapping[str, object]) -> bytes:
    """Return a document as JSON, with a digest of its content."""
    written: JsonObject = orjson.loads(dump({**document, "digest": None}))
    return dump({**written, "digest": content_digest(written)})


def describe_mismatch(message: str) -> str:
    """Return the message of msgspec with the place first."""
    what, _, place = message.partition(" - at `$")
    what = what.replace("`", "")[:1].lower() + what.replace("`", "")[1:]
    place = place.rstrip("`").removeprefix(".")
    return f"{place}: {what}"[:_LONGEST] if place else f"does not hold what it should: {what}"[:_LONGEST]


def read_array(
    path: str | os.PathLike[str],
    dtype: npt.DTypeLike | None,
    remedy: str,
    shape: tuple[int | None, ...] | None = (None,),
) -> Array:
    """Map the array of an `.npy` file; None is any type, any shape, and in a shape any number."""
    size_of(path, remedy)
    with explain_errors(path, remedy):
        try:
            array = np.asarray(np.lib.format.open_memmap(path, mode="r"))  # never unpickles
        except OSError:
            raise
        except Exception as error:  # a header is parsed as Python and may fail in any way
            raise InvalidError(f"is not a NumPy array ({type(error).__name__}: {error})") from None
        check_array(array, array.dtype if dtype is None else dtype, array.shape if shape is None else shape)
    return array


def map_array(path: str | os.PathLike[str], dtype: npt.DTypeLike, shape: tuple[int, ...], remedy: str) -> Array:
    """Memory-map a raw array after checking its size."""
    if size_of(path, remedy) != math.prod(shape) * np.dtype(dtype).itemsize:
        raise DataError(Problem(str(path), None, f"has another size than {_spell_shape(shape)} numbers", remedy))
    if not math.prod(shape):
        return np.empty(shape, dtype)
    with explain_errors(path, remedy):  # a plain view: slices of a `memmap` object itself are many times slower
        return np.asarray(np.memmap(path, dtype, "r", shape=shape))


def check_array(array: Array, dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> None:
    """Raise InvalidError for another type or shape."""
    if array.dtype != np.dtype(dtype) or not _has_shape(array, shape):
        wanted = f"{np.dtype(dtype)} of {_spell_shape(shape)}"
        raise InvalidError(f"holds {array.dtype} of shape {array.shape}, not {wanted}")


def read_tensors(
    path: str | os.PathLike[str], remedy: str, sha256: str | None = None, of: str = "it"
) -> dict[str, Array]:
    """Read the tensors of a safetensors file, by name; all numbers are finite."""
    from safetensors.numpy import load

    content = read_bytes(path, remedy, sha256, of)
    with explain_errors(path, remedy):
        try:
            tensors = dict(load(content))
        except Exception as error:  # SafetensorError, and what is raised for headers and types that it lets through
            raise InvalidError(f"holds no readable weights ({type(error).__name__}: {error})") from None
        for name, tensor in tensors.items():
            if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
                raise InvalidError(f"{name} holds numbers that are not finite")
    return tensors


def take_tensor(tensors: Mapping[str, Array], name: str, shape: tuple[int | None, ...]) -> npt.NDArray[np.float32]:
    """Return one of the float tensors in float32; InvalidError where it is missing or has another shape."""
    if name not in tensors or tensors[name].dtype not in (np.float16, np.float32):
        raise InvalidError(f"holds no {name}")
    if not _has_shape(tensors[name], shape):
        raise InvalidError(f"{name} has the shape {tensors[name].shape}, not {_spell_shape(shape)}")
    return tensors[name].astype(np.float32, copy=False)


def _has_shape(array: Array, shape: tuple[int | None, ...]) -> bool:
    pairs = zip(shape, array.shape, strict=False)
    return array.ndim == len(shape) and all(want in (None, have) for want, have in pairs)


def _spell_shape(shape: tuple[int | None, ...]) -> str:
    return " x ".join("any" if size is None else str(size) for size in shape)
