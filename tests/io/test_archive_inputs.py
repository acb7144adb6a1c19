from __future__ import annotations

import io
import tarfile

import pytest

from dialeval.core.errors import DataError
from dialeval.io.download import UntrustedArchive, unpacked_limit

ARCHIVE = UntrustedArchive("a.tar.gz", "pack it again")


def packed(*members: tuple[str, bytes], mode: str = "w:gz", link: bytes = b"") -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if link:
                info.type, info.linkname, info.size = link, "/etc/passwd", 0
            archive.addfile(info, io.BytesIO(content))
    stream.seek(0)
    return stream


def contents(stream: io.BytesIO, limit: int = 1 << 20) -> dict[str, bytes]:
    with ARCHIVE.explain_damage():
        return {name: content.read() for name, content in ARCHIVE.tar_files(stream, limit)}


@pytest.mark.parametrize(
    ("stream", "what"),
    [
        (packed(("a", b""), link=tarfile.SYMTYPE), "holds 'a', which is a link or a device"),
        (packed(("a", b""), link=tarfile.LNKTYPE), "holds 'a', which is a link or a device"),
        (packed(("a", b""), link=tarfile.CHRTYPE), "holds 'a', which is a link or a device"),
        (packed(("a", b""), link=tarfile.FIFOTYPE), "holds 'a', which is a link or a device"),
        (packed(("a", bytes(1 << 21))), "unpacks to far more than its declared size"),
        (io.BytesIO(packed(("a", b"x" * 3000)).getvalue()[:40]), "is damaged"),
        (io.BytesIO(b"\x1f\x8b nothing"), "is damaged"),
    ],
)
def test_what_is_refused(stream: io.BytesIO, what: str) -> None:
    with pytest.raises(DataError, match=f"a.tar.gz: the archive {what}.*; pack it again"):
        contents(stream)


def test_a_size_that_is_beyond_the_limit_is_not_even_read() -> None:
    stream = packed(("a", bytes(3000)), mode="w")
    with pytest.raises(DataError, match="unpacks to far more than its declared size"):
        contents(stream, 2000)
    assert stream.tell() < 12000, "one block of the tar"


def test_sparse_files_are_refused() -> None:
    info = tarfile.TarInfo("a")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % (1 << 30)  # the size with all holes
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with pytest.raises(DataError, match="holds 'a', which is a link or a device, or sparse"):
        contents(io.BytesIO(bytes(header[:512]) + bytes(1024)))


def test_how_much_an_archive_may_unpack_to() -> None:
    assert [unpacked_limit(size, 10**9) for size in (1, 10**6, 10**8)] == [1 << 20, 2 * 10**8, 10**9]
