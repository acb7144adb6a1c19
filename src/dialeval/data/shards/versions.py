"""Versions: that every shard is, to the end of a run, the file that it was at its beginning.

A run reads a shard in chunks, some of them twice, over hours. One that is changed, replaced, cut off or removed in
between would give a number of neither content. What the system knows of a file (size, times, which file it is) is noted
before any of it is read, and compared when a chunk of it has been read, on the machine on which it was noted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from dialeval.core.errors import DataError
from dialeval.data.formats.opening import changed
from dialeval.data.formats.streams import version_of
from dialeval.data.shards.sources import Source


class Versions:
    """What files were when a run began."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._versions = {path: version_of(path) for path in paths}

    @classmethod
    def of(cls, sources: Iterable[Source]) -> Versions:
        """Return the versions of all files of some sources."""
        return cls(dict.fromkeys(path for source in sources for shard in source.shards for path in shard.paths))

    def refuse_changed(self, paths: Iterable[str] | None = None) -> None:
        """DataError where some of the files, or any, are no longer what they were."""
        files = self._versions if paths is None else dict.fromkeys(paths)
        if faults := [changed(path) for path in files if self._now(path) != self._versions[path]]:
            raise DataError(faults)

    @contextmanager
    def behind_errors(self) -> Iterator[None]:
        """Report an error that comes of a changed file as that: half a line, an archive that is not whole."""
        try:
            yield
        except Exception as error:
            try:
                self.refuse_changed()
            except DataError as change:
                raise change from error
            raise

    def _now(self, path: str) -> Hashable:
        try:
            return version_of(path)
        except DataError:  # it is gone, or may no longer be read
            return None
