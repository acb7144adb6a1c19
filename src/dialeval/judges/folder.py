"""Folders of trained weights: `NAME.safetensors`, `NAME.json` with the digests of both, and for judges a model card.

One format for the judges of `dialeval adem` and `dialeval judge` (NAME is `judge`) and for the models in PyTorch.
Nothing else is ever loaded, and no pickle. What a document has in addition to its schema are facts, for people.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dialeval.core import validation
from dialeval.core.errors import DataError, Problem
from dialeval.core.files import check_files, place_of, reading_together, replacing_together

CARD_FILE = "README.md"
JUDGE_FILE = "judge.json"
FORMAT = 1
"""The layout of the folder."""
_JUDGE_FILES = ("judge.safetensors", JUDGE_FILE, CARD_FILE)

LOWEST, HIGHEST = 1.0, 5.0
"""The scale of the scores of judges."""

Tensors = Mapping[str, npt.NDArray[Any]]


class _Document(Protocol):
    """What every document has."""

    @property
    def sha256(self) -> str:
        """The digest of the tensors."""


AnyDocument = TypeVar("AnyDocument", bound=_Document)


def save_weights(
    folder: str | os.PathLike[str],
    document: Mapping[str, Any],
    tensors: Tensors,
    card: str | None = None,
    name: str = "judge",
) -> Path:
    """Write tensors and document, and the model card if given, into a folder, which is made if it does not exist."""
    from safetensors.numpy import save

    # safetensors writes the memory of an array as it is.
    content = save({each: np.asarray(tensors[each], order="C") for each in sorted(tensors)})
    with replacing_together(Path(folder), f"{name}.json") as files:
        sha256 = files.add_bytes(f"{name}.safetensors", content)
        files.add_bytes(f"{name}.json", validation.with_digest({"format": FORMAT, **document, "sha256": sha256}))
        if card is not None:
            files.add_bytes(CARD_FILE, card.encode())
    return Path(folder)


def load_weights(
    folder: str | os.PathLike[str], schema: type[AnyDocument], remedy: str, name: str = "judge"
) -> tuple[AnyDocument, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read what `save_weights` wrote: the document by its schema, its other entries, and the tensors.

    Raises:
        DataError: A file cannot be read, is not what its digest says, or does not fit the schema.
    """
    from safetensors.numpy import load

    file = Path(folder) / f"{name}.json"

    def read() -> tuple[AnyDocument, dict[str, Any], dict[str, npt.NDArray[Any]]]:
        facts = validation.read_json(file, dict[str, Any], remedy)
        if isinstance(layout := facts.get("format"), int) and layout > FORMAT:
            what = f"layout {layout} is newer than this dialeval reads ({FORMAT})"
            raise DataError(Problem(str(file), None, what, "upgrade dialeval"))
        document = validation.fitting(facts, schema, str(file), remedy)
        with validation.explained(file, remedy):
            validation.check_digest(facts)
        place = place_of(file.with_suffix(".safetensors"), document.sha256)
        content = validation.read_bytes(place, remedy, document.sha256, file.name)
        with validation.explained(place, remedy):
            try:
                tensors = dict(load(content))
            except Exception as error:  # SafetensorError, and what is raised for headers and types that it lets through
                raise validation.InvalidError(f"holds no readable weights ({type(error).__name__}: {error})") from None
            for each, tensor in tensors.items():
                if tensor.dtype not in (np.int8, np.float16, np.float32):
                    raise validation.InvalidError(f"{each} holds other numbers than weights have")
                if not np.isfinite(tensor).all():
                    raise validation.InvalidError(f"{each} holds numbers that are not finite")
        fields = schema.__struct_fields__  # type: ignore[attr-defined]
        return document, {key: value for key, value in facts.items() if key not in fields}, tensors

    return reading_together(file, read)


def check_folder(folder: str | os.PathLike[str], *inputs: Any) -> None:
    """Raise DataError unless a judge may be saved in a folder: a judge may be replaced, other files and inputs not."""
    check_files(folder, _JUDGE_FILES, _own_files, *inputs)


def _own_files(folder: Path) -> Collection[str]:
    """Return the files of the judge in a folder; none if it holds no judge."""
    try:
        document = validation.read_json(folder / JUDGE_FILE, dict[str, Any], "")
    except DataError:
        return ()
    return _JUDGE_FILES if document.keys() >= {"kind", "encoder"} else ()


def trained_on(facts: Mapping[str, Any]) -> list[str]:
    """Return the digests of the rated rows that a judge learned from, as its document has them; none if it has none."""
    known = facts.get("trained_on")
    return [each for each in known if isinstance(each, str)] if isinstance(known, list) else []
