"""The gate: what dialeval wrote itself or takes ready-made from others is checked here once, before anything uses it.

Saved runs, journals, judges, encoders, data packs and caches lie on disks where they are cut short, edited, mixed up,
or put by somebody who means harm. Each format has a schema: types and ranges for JSON (a `msgspec.Struct`), types and
shapes for arrays and tensors, types of columns for tables. What does not fit is a DataError that names the file and
says what is wrong with it; code behind the gate relies on the schema and checks nothing again.

Only plain files are opened (a pipe would block, a device never ends), and a name that a document gives for a file
stays in the document's folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from dialeval.core.errors import DataError, Fault

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

FILE_NAME = r"^(?!\.{1,2}$)[^/\\\x00-\x1f:]{1,255}$"
"""What a document may call a file beside it: one name, not a path."""
SHA256 = r"^[0-9a-f]{64}$"
LARGEST_DOCUMENT = 1 << 30
"""Bytes of a JSON document; all of it is held in memory."""
_SHOWN = 300


class UnfitError(ValueError):
    """What a check of a content says of it; `explained` adds the file."""


@contextmanager
def explained(where: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """What the block finds wrong with a content, or the system with a file, is a DataError that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(Fault(str(error.filename or where), None, f"cannot be read ({reason})", remedy)) from None
    except UnfitError as error:
        raise DataError(Fault(str(where), None, str(error)[:_SHOWN], remedy)) from None


def size_of(path: str | os.PathLike[str], remedy: str) -> int:
    """The size of a plain file; DataError for anything else."""
    with explained(path, remedy):
        status = Path(path).stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnfitError("is a folder" if stat.S_ISDIR(status.st_mode) else "is no plain file")
        return status.st_size


def read_bytes(path: str | os.PathLike[str], remedy: str, sha256: str | None = None, of: str = "it") -> bytes:
    """All bytes of a plain file; `sha256` is what `of` says of them."""
    size_of(path, remedy)
    with explained(path, remedy):
        content = Path(path).read_bytes()
        if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            raise UnfitError(f"does not belong to {of}")
    return content


def read_json(path: str | os.PathLike[str], kind: type[T], remedy: str) -> T:
    """The document in a plain file, as its schema says."""
    if size_of(path, remedy) > LARGEST_DOCUMENT:
        raise DataError(Fault(str(path), None, f"has more than {LARGEST_DOCUMENT:,} bytes", remedy))
    return fitting(parse_json(read_bytes(path, remedy), str(path), remedy), kind, str(path), remedy)


def parse_json(content: bytes, where: str, remedy: str) -> Any:
    """The document in some bytes, whatever it is; `where` names their file."""
    import orjson

    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DataError(Fault(where, error.lineno, f"not JSON ({error.msg})", remedy)) from None


def fitting(document: Any, kind: type[T], where: str, remedy: str) -> T:
    """Plain data as its schema says: whatever msgspec knows as a type."""
    import msgspec

    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise DataError(Fault(where, None, in_words(str(error)), remedy)) from None


def check_depth(document: Any) -> None:
    """UnfitError for plain data that is nested more deeply than it could be written again."""
    import orjson

    try:
        orjson.dumps(document)
    except TypeError as error:
        raise UnfitError(f"is nested too deeply ({error})") from None


def in_words(message: str) -> str:
    """What msgspec says of a value, with the place first."""
    what, _, place = message.partition(" - at `$")
    what = what.replace("`", "")[:1].lower() + what.replace("`", "")[1:]
    place = place.rstrip("`").removeprefix(".")
    return f"{place}: {what}"[:_SHOWN] if place else f"does not hold what it should: {what}"[:_SHOWN]


def read_array(
    path: str | os.PathLike[str], dtype: npt.DTypeLike, remedy: str, shape: tuple[int | None, ...] = (None,)
) -> npt.NDArray[Any]:
    """The array of an `.npy` file, mapped; None in the shape stands for any number."""
    size_of(path, remedy)
    with explained(path, remedy):
        try:
            array = np.asarray(np.lib.format.open_memmap(path, mode="r"))  # never unpickles
        except OSError:
            raise
        except Exception as error:  # a header is parsed as Python and may fail in any way
            raise UnfitError(f"is not a NumPy array ({type(error).__name__}: {error})") from None
        check_array(array, dtype, shape)
    return array


def check_array(array: npt.NDArray[Any], dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> None:
    """UnfitError for another type or shape."""
    fits = len(array.shape) == len(shape) and all(
        want in (None, have) for want, have in zip(shape, array.shape, strict=True)
    )
    if array.dtype != np.dtype(dtype) or not fits:
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise UnfitError(f"holds {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of {wanted}")


def read_tensors(
    path: str | os.PathLike[str], remedy: str, sha256: str | None = None, of: str = "it"
) -> dict[str, Any]:
    """The tensors of a safetensors file by name: arrays of finite floats."""
    from safetensors.numpy import load

    content = read_bytes(path, remedy, sha256, of)
    with explained(path, remedy):
        try:
            tensors = dict(load(content))
        except Exception as error:  # SafetensorError, and KeyError, TypeError or OverflowError of what it lets through
            raise UnfitError(f"holds no readable weights ({type(error).__name__}: {error})") from None
        for name, tensor in tensors.items():
            if not np.issubdtype(tensor.dtype, np.floating) and not np.issubdtype(tensor.dtype, np.integer):
                raise UnfitError(f"{name} holds {tensor.dtype}, not numbers")
            if not np.isfinite(tensor).all():
                raise UnfitError(f"{name} holds numbers that are not finite")
    return tensors


def tensor(tensors: Mapping[str, Any], name: str, shape: tuple[int | None, ...]) -> Any:
    """One of the tensors; UnfitError where it is not there or has another shape."""
    if name not in tensors:
        raise UnfitError(f"holds no {name}")
    found = tensors[name].shape
    if len(found) != len(shape) or any(want not in (None, have) for want, have in zip(shape, found, strict=True)):
        wanted = " x ".join("any" if size is None else str(size) for size in shape)
        raise UnfitError(f"{name} has the shape {found}, not {wanted}")
    return tensors[name]


def read_table(
    path: str | os.PathLike[str],
    columns: Mapping[str, pa.DataType],
    others: Callable[[pa.DataType], bool],
    remedy: str,
    sha256: str,
    of: str,
) -> pa.Table:
    """The table of a Parquet file: `columns` are there with these types and without a gap, `others` says yes to the rest.

    A name that ends in a question mark stands for a column that may be missing, and may have gaps.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = read_bytes(path, remedy, sha256, of)
    with explained(path, remedy):
        try:
            table = pq.ParquetFile(pa.BufferReader(content)).read()  # read_table would import pandas
            table.validate(full=True)
            names = table.column_names
        except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: a name that is not UTF-8
            raise UnfitError(
                f"not a readable Parquet file ({(str(error) or type(error).__name__).splitlines()[0]})"
            ) from None
        if len(set(names)) < len(names):
            raise UnfitError("has two columns of one name")
        wanted = {name.removesuffix("?"): (kind, name.endswith("?")) for name, kind in columns.items()}
        for name, (kind, optional) in wanted.items():
            if name not in names and not optional:
                raise UnfitError(f"has no column {name}")
            if name in names and table[name].type != kind:
                raise UnfitError(f"column {name} holds {table[name].type}, not {kind}")
            if name in names and table[name].null_count and not optional:
                raise UnfitError(f"column {name} has gaps")
        for name in names:
            if name not in wanted and not others(table[name].type):
                raise UnfitError(f"column {name!r} holds {table[name].type}")
    return table
