"""Reading tar archives from elsewhere without trusting them.

What an archive states about itself is not believed: it is refused where a member is a link or a device, and where it
unpacks to more than it should, beyond a number of bytes or so many times its own size.
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
_GZIP = b"\x1f\x8b"
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)


@dataclass(frozen=True)
class UntrustedArchive:
    """An archive by its name in messages, and what to do where it is refused."""

    where: str
    remedy: str

    def refusal(self, what: str) -> DataError:
        """The error that says what is wrong with the archive."""
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
        is_gzip = packed.read(len(_GZIP)) == _GZIP
        packed.seek(0)
        stream = gzip.GzipFile(fileobj=packed) if is_gzip else packed
        # As a stream, so that what is skipped counts too: every byte has to be unpacked to get past it.
        with tarfile.open(fileobj=_Limited(stream, limit, self), mode="r|") as opened:
            for member in opened:
                if not (member.isreg() or member.isdir()):
                    raise self.refusal(f"holds {member.name!r}, which is a link or a device")
                content = opened.extractfile(member) if member.isreg() else None
                if content is not None:
                    yield member.name, content


def unpacked_limit(packed_bytes: int, most_bytes: int) -> int:
    """How many bytes an archive of some size may unpack to."""
    return min(most_bytes, max(_SMALL, MOST_TIMES * packed_bytes))


class _Limited(io.RawIOBase):
    """A stream that refuses to give more bytes than its limit."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, limit: int, archive: UntrustedArchive) -> None:
        super().__init__()
        self._stream, self._left, self._archive = stream, limit, archive

    def read(self, size: int | None = -1) -> bytes:
        most = self._left + 1
        chunk = self._stream.read(most if size is None or size < 0 else min(most, size))
        self._left -= len(chunk)
        if self._left < 0:
            raise self._archive.refusal("unpacks to far more than it should")
        return chunk
