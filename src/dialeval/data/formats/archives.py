"""Reading tar archives from elsewhere without trusting them.

What an archive states about itself is not believed: it is refused where a member is a link, a device or sparse, and
where it unpacks to more than it should: beyond a number of bytes, or so many times its own size. The last is looked at
while it is unpacked, a stretch at a time, so that a trap is left after little of it.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from dialeval.core.errors import DataError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_TIMES = 200
"""Text shrinks to a quarter or a twentieth; what unpacks to more than this many times its size is a trap."""
_SMALL = 1 << 20
"""Below this size the ratio says nothing."""
_STRETCH = 1 << 26
"""Bytes that are unpacked before their ratio is looked at."""
_READ_AHEAD = 1 << 17
"""Bytes that gzip may have read before, at most."""
_GZIP = b"\x1f\x8b"
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True)
class UntrustedArchive:
    """An archive by its name in messages, and what to do where it is refused."""

    where: str
    remedy: str

    def refusal(self, what: str) -> DataError:
        """Return the error that says what is wrong with the archive."""
        return DataError(Fault(self.where, None, f"the archive {what}", self.remedy))

    @contextmanager
    def damage_explained(self) -> Iterator[None]:
        """Refuse the archive where it turns out to be damaged while its members are read."""
        try:
            yield
        except _DAMAGE as error:
            raise self.refusal(f"is damaged: {error}") from None

    def tar_files(self, packed: IO[bytes], limit: int) -> Iterator[tuple[str, IO[bytes]]]:
        """Name and content of each file in a tar or tar.gz, the content to be read before the next is asked for."""
        unpacking = Unpacking(packed, limit, self)
        # As a stream, so that what is skipped counts too: every byte has to be unpacked to get past it.
        with tarfile.open(fileobj=unpacking, mode="r|") as opened:
            for member in opened:
                if member.issparse() or not (member.isreg() or member.isdir()):
                    raise self.refusal(f"holds {member.name!r}, which is a link or a device, or sparse")
                if member.size > unpacking.left:
                    raise self.refusal("unpacks to far more than it should")
                content = opened.extractfile(member) if member.isreg() else None
                if content is not None:
                    yield member.name, content


def unpacked_limit(packed_bytes: int, most_bytes: int) -> int:
    """Return how many bytes an archive of some size may unpack to."""
    return min(most_bytes, max(_SMALL, MOST_TIMES * packed_bytes))


class Unpacking(io.RawIOBase):
    """The bytes of an archive, unpacked if it is packed by gzip; refused beyond `limit`, or where they are a trap."""

    def __init__(self, packed: IO[bytes], limit: int, archive: UntrustedArchive) -> None:
        super().__init__()
        is_gzip = packed.read(len(_GZIP)) == _GZIP
        packed.seek(0)
        self._packed, self._archive = packed, archive
        self._stream = gzip.GzipFile(fileobj=packed) if is_gzip else packed
        self.left = limit
        self._stretch_left, self._stretch_packed = limit, 0

    def read(self, size: int | None = -1) -> bytes:
        """Return the next bytes."""
        most = min(self.left + 1, _STRETCH)
        chunk = self._stream.read(most if size is None or size < 0 else min(most, size))
        self.left -= len(chunk)
        if self.left < 0 or self._is_trap():
            raise self._archive.refusal("unpacks to far more than it should")
        return chunk

    def _is_trap(self) -> bool:
        """Return whether the stretch that is unpacked last is too many times the size of what it was unpacked from."""
        unpacked = self._stretch_left - self.left
        if unpacked < _STRETCH:
            return False
        place = self._packed.tell()
        packed = place - self._stretch_packed + _READ_AHEAD
        self._stretch_left, self._stretch_packed = self.left, place
        return unpacked > MOST_TIMES * packed
