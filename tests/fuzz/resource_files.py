"""What lies outside of the rows: word vectors, training text, known words, archives of data packs."""

from __future__ import annotations

import gzip
import io
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import dialeval
from dialeval import sample_data
from dialeval.io.download import unpack
from dialeval.io.vectors import load_embeddings
from fuzz.harness import Files, target

LINES = (sample_data.folder() / "vectors.txt").read_bytes().splitlines()[:12]
WORDS = [line.split()[0] for line in LINES]
DIMENSION = 4


def rows() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The first numbers of some vectors of the sample."""
    return np.array([line.split()[1 : DIMENSION + 1] for line in LINES], np.float32)


def vector_files() -> list[Files]:
    """Text with and without a header, also packed, and the binary form of word2vec."""
    text = b"".join(b"%s %s\n" % (line.split()[0], b" ".join(line.split()[1 : DIMENSION + 1])) for line in LINES)
    header = b"%d %d\n" % (len(LINES), DIMENSION)
    binary = b"".join(word + b" " + row.tobytes() + b"\n" for word, row in zip(WORDS, rows(), strict=True))
    packed = {"v.txt.gz": gzip.compress(text, mtime=0)}
    return [{"v.txt": text}, {"v.vec": header + text}, {"v.bin": header + binary}, packed]


@target("vectors", seeds=vector_files)
def vectors(folder: Path) -> None:
    """Vectors of every kind, and a metric that looks words up; the cache is a folder that goes away."""
    names = ("v.bin", "v.vec", "v.txt.gz", "v.txt")
    main = [folder / name for name in names if (folder / name).exists()]
    before = os.environ.get("DIALEVAL_CACHE")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["DIALEVAL_CACHE"] = cache
        try:
            found = load_embeddings(main[0] if main else folder / "v.txt")
            found.vectors_for(["the", WORDS[0].decode()])
        finally:
            if before is None:
                del os.environ["DIALEVAL_CACHE"]
            else:
                os.environ["DIALEVAL_CACHE"] = before


def texts() -> list[Files]:
    """Training text with a list of known words."""
    return [{"train.txt": b"the library opens at nine\nit is closed\n", "vocab.txt": b"the\nlibrary\nit\nis\n"}]


@target("training-text", seeds=texts)
def training_text(folder: Path) -> None:
    """Entropy and divergence from a training text."""
    train, vocabulary = folder / "train.txt", folder / "vocab.txt"
    dialeval.evaluate(
        ["the library is closed"],
        ["it is"],
        train=train,
        metrics="all",
        reading=dialeval.Reading(vocabulary=vocabulary),
        execution=dialeval.Execution(threads=1),
    )


WANTED = ("glove.txt", "words.json")


def archives() -> list[Files]:
    """Two files of a pack in a zip."""
    inside = {"pack/glove.txt": b"a 1 2\nb 3 4\n", "pack/words.json": b'["a", "b"]', "pack/README": b"read me\n"}
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in inside.items():
            packed.writestr(zipfile.ZipInfo(name), content)
    return [{"pack.zip": zipped.getvalue()}]


@target("archives", seeds=archives)
def pack_archives(folder: Path) -> None:
    """Archives of data packs: nothing is written but the wanted files, into the folder that is named."""
    with tempfile.TemporaryDirectory() as place:
        inner = Path(place, "inner")
        inner.mkdir()
        try:
            unpack(folder / "pack.zip", WANTED, inner, 1 << 20, "pack.zip")
        finally:
            assert {path.name for path in Path(place).iterdir()} == {"inner"}
            assert {path.name for path in inner.iterdir()} <= set(WANTED)
            assert not any(path.is_symlink() for path in inner.iterdir())


def _addresses() -> list[Files]:
    """Addresses of downloads and of files."""
    texts = ("https://localhost:8080/a/b.zip?token=1#x", "http://[::1]:80/x", "file:///tmp/a%20b.txt")
    return [{"address.txt": text.encode()} for text in texts]


@target("addresses", seeds=_addresses)
def addresses(folder: Path) -> None:
    """An address as commands take it; nothing is asked for over a network."""
    from dialeval.io.download import check_address, hide_query
    from dialeval.io.opening import is_pattern, local_path

    text = (folder / "address.txt").read_bytes().decode("utf-8", "surrogateescape")
    hide_query(text)
    if text.startswith("file://"):
        local_path(text)
        is_pattern(text)
    else:
        check_address(text)
