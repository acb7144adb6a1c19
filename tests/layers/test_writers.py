"""Files are written by `core.files`; whatever writes by itself is listed here with the reason."""

from __future__ import annotations

import ast
from pathlib import Path

import dialeval

PACKAGE = Path(dialeval.__file__).parent
IN_A_FOLDER_THAT_IS_RENAMED = "into a folder that `core.files.build_folder` renames when it is whole"
BESIDE = "to the path that `core.files.replace_file` hands out"
ALLOWED = {
    "core/files.py": "the writer itself",
    "cli/help.py": "it writes texts of the help into click's formatter, and no file",
    "human/store.py": "an empty database; SQLite changes it in place and loses nothing",
    "cli/tools.py": "a copy of the sample in a new folder",
    "cli/main.py": "the null device takes the place of a closed stream",
    "cli/output.py": "the null device takes the place of a closed pipe",
    "io/download.py": "a part of a download, which is gone on with; and its lock",
    "judges/weights.py": IN_A_FOLDER_THAT_IS_RENAMED,
    "suites/lsdscc/data.py": IN_A_FOLDER_THAT_IS_RENAMED,
    "suites/multiwoz/pack.py": IN_A_FOLDER_THAT_IS_RENAMED,
    "io/packs.py": IN_A_FOLDER_THAT_IS_RENAMED,
    "io/vectors.py": IN_A_FOLDER_THAT_IS_RENAMED,
    "core/states.py": "to memory",
}
WRITERS = {"write_bytes", "write_text", "rename", "tofile", "save_file", "copyfile", "copytree", "copy2", "move"}
NUMPY_WRITERS = {"save", "savez", "savez_compressed", "savetxt"}


def writes(call: ast.Call) -> bool:
    """Whether a call writes to a file by itself, as far as its name tells."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id == "np" and name in NUMPY_WRITERS:
        return True
    if isinstance(owner, ast.Name) and owner.id == "os" and name in {"open", "replace", "link"}:
        return any("O_" in ast.unparse(given) and "O_RDONLY" not in ast.unparse(given) for given in call.args[1:])
    if name == "open":
        modes = [ast.unparse(given) for given in (*call.args[-2:], *(word.value for word in call.keywords))]
        return any(mode.strip("'\"b") in {"w", "x", "a", "r+", "w+", "a+"} for mode in modes) or " if " in str(modes)
    return owner is not None and name in WRITERS


def test_only_the_writer_writes() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        if lines := [call.lineno for call in calls if writes(call)]:
            found[path.relative_to(PACKAGE).as_posix()] = lines
    strange = {file: lines for file, lines in found.items() if file not in ALLOWED}
    assert not strange, "write by core.files, or say here why not"
    assert found.keys() == ALLOWED.keys(), "what does not write any more is taken off the list"
