"""Sentence vectors, each computed once: texts are deduplicated, and vectors kept on disk by the digest of their text.

The store is a folder of the user's cache, one for each encoder digest, with segments of (key, vector) that are written
whole and then only read, memory-mapped. It holds digests of texts and no texts. It grows to `LIMIT_BYTES` for each
encoder; then its oldest segments are removed. Many small segments are merged into one. Where the cache folder cannot
be written to, vectors are computed again each time.

A vector out of the store is the one that was computed, to the last bit: each has a CRC-32, and one that is damaged is
computed again, which a line of the log says. Only encoders whose vectors do not depend on the texts that they are
encoded with may use it (see `encoder`).
"""

from __future__ import annotations

import hashlib
import logging
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core import gate
from dialeval.core.errors import DataError, DialevalError
from dialeval.core.files import replacing
from dialeval.resources.cache import cache_folder
from dialeval.resources.encoder import SentenceEncoder
from dialeval.resources.encoder_files import Singles

LIMIT_BYTES = 1 << 30
_KEY_BYTES = 16
_LOG = logging.getLogger("dialeval")
_SEGMENTS = 32
_STEP = 4096
"""Texts that are encoded before they are kept, so that an interrupted run keeps what it has done."""

Keys = npt.NDArray[np.bytes_]


class SentenceVectors:
    """The vectors of texts by one encoder; `keep=False` leaves the disk alone."""

    def __init__(self, encoder: SentenceEncoder, keep: bool = True) -> None:
        self.encoder = encoder
        self._keep = keep

    def __reduce__(self) -> tuple[type[SentenceVectors], tuple[SentenceEncoder, bool]]:
        return type(self), (self.encoder, self._keep)

    @cached_property
    def _store(self) -> Store | None:
        with suppress(OSError, DialevalError):
            if self._keep:
                return Store(cache_folder("sentences", self.encoder.digest), self.encoder.dimension)
        return None

    def of(self, texts: Sequence[str], ends: bool = False) -> Singles:
        """Return one row per text; see `SentenceEncoder.encode`."""
        places: dict[str, int] = {}
        rows = np.fromiter((places.setdefault(text, len(places)) for text in texts), np.int64, len(texts))
        distinct = list(places)
        vectors: Singles = np.empty((len(distinct), self.encoder.dimension), np.float32)
        keys = _hash_texts(distinct, ends)
        missing = np.arange(len(distinct)) if self._store is None else self._store.fill(keys, vectors)
        for start in range(0, len(missing), _STEP):
            chosen = missing[start : start + _STEP]
            vectors[chosen] = self.encoder.encode([distinct[text] for text in chosen.tolist()], ends)
            if self._store is not None:
                self._store.add(keys[chosen], vectors[chosen])
        return vectors[rows]


def _hash_texts(texts: Sequence[str], ends: bool) -> Keys:
    salt = b"end" if ends else b""
    digests = [hashlib.blake2b(text.encode(), digest_size=_KEY_BYTES, salt=salt).digest() for text in texts]
    return np.array(digests, f"S{_KEY_BYTES}")


def _checksums(entries: Any) -> npt.NDArray[np.uint32]:
    """Return the CRC-32 of each key and its vector."""
    pairs = zip(entries["key"].tolist(), entries["vector"], strict=True)
    return np.array([zlib.crc32(vector, zlib.crc32(key)) for key, vector in pairs], np.uint32)


class Store:
    """Vectors by key in a folder of segments."""

    def __init__(self, folder: Path, dimension: int) -> None:
        self.folder = folder
        vector = ("vector", np.float32, (dimension,))
        self.dtype = np.dtype([("key", f"S{_KEY_BYTES}"), ("check", np.uint32), vector])
        self._segments: list[tuple[Keys, npt.NDArray[np.int64], Any]] = []
        files = self._remove_oldest()
        for file in files:
            # A segment that another run has just removed, or that a full disk has broken, is computed again.
            with suppress(DataError):
                self._remember(gate.read_array(file, self.dtype, ""))
        if len(self._segments) > _SEGMENTS:
            self._merge(files)

    def fill(self, keys: Keys, vectors: Singles) -> npt.NDArray[np.int64]:
        """Write the known vectors into `vectors`, and return the numbers of the keys that are missing."""
        missing = np.arange(len(keys))
        for ordered, order, entries in self._segments:
            wanted = keys[missing]
            at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
            hits = np.flatnonzero(ordered[at] == wanted)
            found = entries[order[at[hits]]]
            whole = found["check"] == _checksums(found)
            vectors[missing[hits[whole]]] = found["vector"][whole]
            missing = np.delete(missing, hits[whole])
            if not whole.all():
                _LOG.warning("%s: %d vectors are damaged and computed again", self.folder, np.count_nonzero(~whole))
        return missing

    def add(self, keys: Keys, vectors: Singles) -> None:
        """Keep more vectors; nothing happens where the folder cannot be written to."""
        entries = np.empty(len(keys), self.dtype)
        entries["key"], entries["vector"] = keys, vectors
        entries["check"] = _checksums(entries)
        self._remember(entries)
        with suppress(DialevalError):
            self._write(entries)

    def _write(self, entries: Any) -> None:
        with replacing(self.folder / f"{os.urandom(16).hex()}.npy") as beside, beside.open("wb") as stream:
            np.save(stream, entries, allow_pickle=False)

    def _remember(self, entries: Any) -> None:
        if len(entries):
            order = np.argsort(entries["key"], kind="stable")
            self._segments.append((entries["key"][order], order, entries))

    def _remove_oldest(self) -> list[Path]:
        """Remove the oldest segments beyond the limit, and return the others, the oldest first."""
        segments = []
        for file in self.folder.glob("*.npy"):
            with suppress(FileNotFoundError):  # another run removes too
                segments.append((file.stat().st_mtime, file.stat().st_size, file))
        segments.sort()
        total = sum(size for _, size, _ in segments)
        while total > LIMIT_BYTES:
            _, size, file = segments.pop(0)
            file.unlink(missing_ok=True)
            total -= size
        return [file for _, _, file in segments]

    def _merge(self, files: list[Path]) -> None:
        merged = np.concatenate([np.asarray(entries) for _, _, entries in self._segments])
        merged = merged[merged["check"] == _checksums(merged)]
        merged = merged[np.unique(merged["key"], return_index=True)[1]]
        self._segments = []
        self._remember(merged)
        with suppress(OSError, DialevalError):
            self._write(merged)
            for file in files:
                file.unlink(missing_ok=True)
