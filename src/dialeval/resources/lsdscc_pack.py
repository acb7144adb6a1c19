"""The data pack `lsdscc`: the reference groups that come with the LSDSCC program, from a user's copy of that program.

The copy is the JSON file (also `.gz` or `.zst`), or a folder that holds it: the program's repository, or its data
folder. It is read once before it is kept, so that an installed pack can be used.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.opening import read_bytes
from dialeval.data.lsdscc.data import read_groups
from dialeval.resources.packs import installed_pack
from dialeval.resources.progress import Progress

NAME = "lsdscc"
FILE = "test.group.json"
_PLACES = (FILE, f"data/{FILE}", f"lsdscc/data/{FILE}")


def reference_groups() -> Path:
    """Return the file of the installed pack, which has its digest; SettingError with the command that installs it."""
    pack = installed_pack(NAME)
    if FILE not in pack.files:
        raise DataError(Fault(str(pack.path), None, f"its manifest does not name {FILE}", pack.remedy))
    return pack.checked_file(FILE)


def build_local(source: Path, target: Path) -> None:
    """Build the pack from a file, or from a folder that holds it."""
    file = source
    if source.is_dir():
        file = next((source / place for place in _PLACES if (source / place).is_file()), source)
        if file == source:
            raise DataError(Fault(str(source), None, f"does not hold {FILE}", "name the JSON file of reference groups"))
    read_groups(file)
    (target / FILE).write_bytes(read_bytes(file).tobytes())


def build_remote(address: str, target: Path, progress: Progress | None) -> None:
    """Build the pack from an address of the user's that serves the JSON file."""
    from dialeval.resources.download import download

    with tempfile.TemporaryDirectory(prefix="dialeval-") as folder:
        file = Path(folder) / FILE
        download(address, file, None, progress)
        build_local(file, target)
