"""Data packs: large public data under a name, in the user's cache, checked by digests.

A pack is the folder `packs/NAME/VERSION` of the cache: the files, and `manifest.json` with the SHA-256 and size of
each. `add_pack` builds it from the official address over HTTP, from another address (argument, or the environment
variable `DIALEVAL_ADDRESS_NAME`, such as `DIALEVAL_ADDRESS_GLOVE_6B`), or from a local folder that holds the files or
the archive. A pack without an official address is built from a local copy. It is built under another name and renamed,
so it is complete or absent. The manifest also records the digest of the download.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.core import validation
from dialeval.core.errors import DataError, Problem, SettingError, suggest
from dialeval.core.features import list_features, list_installed, read_table
from dialeval.core.files import build_folder, cache_root, discard, sha256_of
from dialeval.core.fingerprint import short_digest

if TYPE_CHECKING:
    from dialeval.io.schemas import PackFile


# The type of functions that long work calls with its progress.

Progress = Callable[[int, int | None], None]
"""Called with the amount done and the total; None where that is not known.

The unit is the caller's: bytes of a download, epochs or steps of a training.
"""


_MANIFEST = "manifest.json"
_TABLE = "dialeval.io:packs.toml"
_MOST_BYTES = 1 << 33
"""The maximum size of an archive, and of its unpacked files."""


@dataclass(frozen=True, slots=True)
class PackSource:
    """The official source of a pack and its files that are kept: an entry of `packs.toml`, here or of a feature."""

    name: str
    version: str
    title: str
    license: str
    files: Sequence[str]
    """The files that are kept; the name of the pack alone means the first."""
    address: str | None = None
    """None where there is no official address: it is built from a local copy."""
    builder: str | None = None
    """Module with `build_local` and `build_remote`, where a pack is more than files out of one archive; both take the
    version last."""
    also: Sequence[str] = ()
    """Other names of it."""
    local: str | None = None
    """What a local copy is and where users get it, for a pack without an address."""

    @property
    def variable(self) -> str:
        """The environment variable that gives another address."""
        return f"DIALEVAL_ADDRESS_{self.name.upper().replace('-', '_')}"

    @property
    def command(self) -> str:
        """What a user runs to install it."""
        return f"dialeval data add {self.name}" + (f" --from FILE, where FILE is {self.local}" if self.local else "")


@dataclass(frozen=True, slots=True)
class Pack:
    """An installed pack."""

    name: str
    version: str
    path: Path
    origin: str
    files: Mapping[str, PackFile]

    @property
    def digest(self) -> str:
        """One digest over the names and digests of the files."""
        return short_digest(*(f"{facts.sha256}  {name}\n" for name, facts in sorted(self.files.items())))

    @property
    def remedy(self) -> str:
        """What to do where it is damaged."""
        return f"run: dialeval data remove {self.name}, then: dialeval data add {self.name}"

    def file(self, name: str) -> Path:
        """Return the path of a file; DataError where it is not the plain file of the manifest's size."""
        size, path = self.files[name].size, self.path / name
        if path.is_symlink() or not path.is_file():
            raise DataError(Problem(str(path), None, "no such file", self.remedy))
        if path.stat().st_size != size:
            raise DataError(Problem(str(path), None, f"{path.stat().st_size} bytes instead of {size}", self.remedy))
        return path

    def verify_file(self, name: str) -> Path:
        """Return the path of a file that has the manifest's digest; DataError where it does not."""
        path = self.file(name)
        if (digest := sha256_of(path)) != self.files[name].sha256:
            what = f"SHA-256 {digest} instead of {self.files[name].sha256}"
            raise DataError(Problem(str(path), None, what, self.remedy))
        return path

    @property
    def size(self) -> int:
        return sum(facts.size for facts in self.files.values())


def _read_sources(places: Iterable[str]) -> dict[str, PackSource]:
    return {name: PackSource(name, **entry) for place in places for name, entry in read_table(place).items()}


PACK_SOURCES = _read_sources((_TABLE, *(place for feature in list_features() for place in feature.packs)))


def source_of(name: str) -> PackSource:
    """Return the registered source of a pack, or raise SettingError with the nearest name."""
    for is_last in (False, True):
        for source in PACK_SOURCES.values():
            if name in (source.name, *source.also):
                return source
        if not is_last:  # only now, since looking for other packages takes long
            PACK_SOURCES.update(_read_sources(place for feature in list_installed() for place in feature.packs))
    raise SettingError(f"no data pack named {name!r}; {suggest(name, PACK_SOURCES)}")


def add_pack(
    name: str,
    address: str | None = None,
    from_folder: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    force: bool = False,
) -> Pack:
    """Install a pack, or return the one that is installed; without a folder this downloads it.

    `from_folder` may be a file where the pack is one. `progress` counts bytes of the file that is being downloaded. An
    installed pack is replaced by another source with `force` only.
    """
    source = source_of(name)
    if address is not None and from_folder is not None:
        raise SettingError("give an address or a folder, not both")
    target = _folder_of(source)
    installed = _read(target)
    if installed and not force:
        if from_folder is None:
            return installed
        raise SettingError(f"the data pack {name} is installed already; pass --force to replace it")
    if not installed and target.exists():  # a folder without its manifest is not a whole pack
        discard(target)
    with build_folder(target) as folder:
        if from_folder is not None:
            origin, digest = "local copy", _install_from_folder(source, Path(from_folder), folder)
        else:
            from dialeval.io.download import hide_query

            address = address or os.environ.get(source.variable) or source.address
            if address is None:
                raise SettingError(f"the data pack {name} has no address to download from; run: {source.command}")
            origin, digest = hide_query(address), _install_from_address(source, address, folder, progress)
        _write_manifest(source, folder, origin, digest)
        if installed:
            _discard_pack(installed, installed.path)
    pack = _read(target)
    if pack is None:
        raise DataError(Problem(str(target), None, "was removed while it was built", "run again"))
    return pack


def find_pack(name: str) -> Pack | None:
    """Return the installed pack of a name, in the version that is registered."""
    return _read(_folder_of(source_of(name)))


def _folder_of(source: PackSource) -> Path:
    return cache_root() / "packs" / source.name / source.version


def verify_pack(name: str) -> list[Problem]:
    """Read every byte of an installed pack and list what is not as the manifest says."""
    pack = require_pack(name)
    problems: list[Problem] = []
    for file_name in pack.files:
        try:
            pack.verify_file(file_name)
        except DataError as error:
            problems += error.problems
    return problems


def remove_pack(name: str) -> None:
    """Remove an installed pack, earlier versions of it, and what was parsed from it."""
    pack = require_pack(name)
    _discard_pack(pack, pack.path.parent)


def _discard_pack(pack: Pack, folder: Path) -> None:
    from dialeval.io.vectors import find_entry  # which imports this module

    for facts in pack.files.values():
        if (entry := find_entry(facts.sha256)).exists():
            discard(entry)
    discard(folder)


def require_pack(name: str) -> Pack:
    """Return the installed pack of a name, or raise SettingError with the command that installs it."""
    if pack := find_pack(name):
        return pack
    raise SettingError(f"the data pack {name} is not installed; run: {source_of(name).command}")


def _install_from_address(source: PackSource, address: str, folder: Path, progress: Progress | None) -> str | None:
    """Download and unpack what is kept; return the SHA-256 of the download, where it is one file."""
    # Imported here, since looking up a pack needs no network modules.
    from dialeval.io.download import download, hide_query, unpack

    if source.builder is not None:
        import_module(source.builder).build_remote(address, folder, progress, source.version)
        return None
    archive = folder / "download"
    download(address, archive, progress, _MOST_BYTES)
    unpack(archive, source.files, folder, _MOST_BYTES, hide_query(address))
    digest = sha256_of(archive)
    archive.unlink()
    return digest


def _install_from_folder(source: PackSource, local: Path, folder: Path) -> str | None:
    """Copy or unpack what is kept; return the SHA-256 of the archive, where there is one."""
    from dialeval.io.download import unpack

    if source.builder is not None:
        import_module(source.builder).build_local(local, folder, source.version)
        return None
    archive = local / (source.address or "").rpartition("/")[2]
    missing = [name for name in source.files if not (local / name).is_file()]
    if not missing:
        for name in source.files:
            shutil.copyfile(local / name, folder / name)
        return None
    if not archive.is_file():
        remedy = f"put these files or {archive.name} there"
        raise DataError(Problem(str(local), None, f"does not hold {', '.join(missing)}", remedy))
    unpack(archive, source.files, folder, _MOST_BYTES, str(archive))
    return sha256_of(archive)


def _write_manifest(source: PackSource, folder: Path, origin: str, download_sha256: str | None) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    facts = {
        "name": source.name,
        "version": source.version,
        "license": source.license,
        "origin": origin,
        "download_sha256": download_sha256,
        "files": {
            file.relative_to(folder).as_posix(): {"sha256": sha256_of(file), "size": file.stat().st_size}
            for file in files
        },
    }
    # `build_folder` renames the folder when it is whole.
    (folder / _MANIFEST).write_text(json.dumps(facts, indent=2) + "\n", "utf-8")


def _read(folder: Path) -> Pack | None:
    """Read the pack in a folder; None where there is no whole manifest of it."""
    from dialeval.io.schemas import PackManifest

    try:
        facts = validation.read_json(folder / _MANIFEST, PackManifest, "")
    except DataError:
        return None
    if (facts.name, facts.version) != (folder.parent.name, folder.name):
        return None
    return Pack(facts.name, facts.version, folder, facts.origin, facts.files)
