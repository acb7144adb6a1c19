"""Start-up stays light, and numba is not imported."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import conftest
import dialeval
from dialeval import sample_data

PACKAGE = Path(dialeval.__file__).parent
HEAVY = {"msgspec", "numba", "scipy", "nltk", "torch", "pandas", "polars", "pyarrow", "sacrebleu", "rich", "vl_convert"}


def loaded_by(program: str) -> set[str]:
    code = f"{program}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_dialeval_loads_nothing_heavy() -> None:
    assert not loaded_by("import dialeval") & (HEAVY | {"numpy", "click", "orjson"})


@pytest.mark.parametrize(
    "command",
    [
        ["--help"],
        ["score", "--help"],
        ["metrics", "--help"],
        ["lsdscc", "--help"],
        ["adem", "train", "--help"],
        ["compat", "dialog-eval", "--help"],
    ],
)
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    assert not loaded_by(_running(command)) & HEAVY


def _running(command: list[str]) -> str:
    return (
        "import contextlib, io, sys\n"
        f"sys.argv = ['dialeval', *{command!r}]\n"
        "from dialeval.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): main()"
    )


def test_a_small_run_as_json_loads_no_threads_log_or_pages() -> None:
    program = _running(
        ["multiwoz", "-i", str(sample_data.folder() / "town" / "predictions"), "--data", "town", "-f", "json"]
    )
    loaded_by(program)
    assert not loaded_by(program) & {"numba", "pyarrow", "rich", "concurrent", "logging", "html"}


def test_the_registry_loads_no_compiler() -> None:
    program = "from dialeval.metrics.registry import registry; registry().select('all')"
    assert not loaded_by(program) & (HEAVY - {"rich", "msgspec"})


def test_task_dialogues_and_breakdowns_need_no_compiler() -> None:
    program = (
        "from dialeval import sample_data\n"
        "from dialeval.breakdown import evaluate_breakdown\n"
        "from dialeval.multiwoz import evaluate\n"
        "from dialeval.sgd import evaluate_sgd\n"
        "here = sample_data.folder()\n"
        "evaluate(here / 'town' / 'predictions', data='town', dst=True)\n"
        "evaluate_sgd(here / 'frames' / 'steady', here / 'frames' / 'references')\n"
        "evaluate_breakdown(here / 'breakdown' / 'data', here / 'breakdown' / 'keywords')"
    )
    loaded_by(program)  # the first run on a machine compiles
    assert "numba" not in loaded_by(program)


@pytest.mark.parametrize(
    ("run", "suites"),
    [("responses", set()), ("town", {"multiwoz"}), ("breakdown", {"breakdown"}), ("lsdscc", {"lsdscc"})],
)
def test_a_saved_run_loads_only_the_suite_of_its_details(run: str, suites: set[str]) -> None:
    folder = Path(__file__).parents[1] / "golden" / "saved_runs" / run
    code = (
        "import sys, dialeval\n"
        f"dialeval.load({str(folder)!r})\n"
        "print(*{name.split('.')[2] for name in sys.modules\n"
        "       if name.startswith('dialeval.suites.') and name.count('.') > 2 and not name.endswith('.feature')})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == suites


def test_the_package_does_not_import_numba() -> None:
    """Kernels are compiled when the package is built (`tools/compile_kernels.py`)."""
    importing = re.compile(r"^\s*(import|from) (numba|llvmlite)", re.MULTILINE)
    assert [path for path in PACKAGE.rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))] == []


def test_only_learned_metrics_import_torch() -> None:
    learned = PACKAGE / "judges"
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "import torch" in text or "from torch" in text or "safetensors.torch" in text:
            assert learned in path.parents, f"{path.name} imports torch"


def test_a_judge_is_used_without_torch() -> None:
    program = (
        "from dialeval.adem import open_judge, train\n"
        "from dialeval.judges import fitting\n"
        "from dialeval.engine.evaluate import evaluate"
    )
    assert not loaded_by(program) & {"torch", "tokenizers", "safetensors", "numba"}


# What the markers name by its path is there: a test that was renamed would silently become part of `make check`.


TESTS = Path(__file__).parent.parent


@pytest.mark.parametrize("place", [*conftest.FIRST, *conftest.SPREAD, *conftest.JOINED, *conftest.JOINED.values()])
def test_a_place_is_there(place: str) -> None:
    file, _, test = place.partition("::")
    assert (TESTS / file).exists()
    assert not test or f"def {test}" in (TESTS / file).read_text(encoding="utf-8")


def test_workers_take_whole_files(request: pytest.FixtureRequest) -> None:
    """Except of files that are split. Names of tests are as pytest passes them to the workers."""
    file = "tests/layers/test_imports.py"
    assert request.node.nodeid.startswith(f"{file}::")
    assert conftest.worker_unit(request.node.nodeid) == conftest.worker_unit(f"{file}::test_a_place_is_there[cli/]")
    one, other = (f"tests/{conftest.SPREAD[0]}::test_blocks[{page}]" for page in ("README.md", "docs/index.md"))
    assert conftest.worker_unit(one) != conftest.worker_unit(other)
    assert conftest.worker_unit("tests/browser/test_site.py::a") == conftest.worker_unit("tests/docs/test_site.py::b")


# Names have one meaning in the whole package.


COMPATIBLE = PACKAGE / "originals"
"""Its classes have the names of the original programs, whatever else has them."""


def test_a_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if COMPATIBLE not in path.parents:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert len(places) > 200
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


# Files are written by `core.files`; whatever writes by itself is listed here with the reason.


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
    "core/fold.py": "to memory",
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


# Nothing below the layer of features names one: not by an import (import-linter) and not by a text.


LAYERS = [
    "core",
    "text stats",
    "io",
    "metrics",
    "engine",
    "analysis",
    "reports",
    "judges",
    "suites human",
    "cli originals",
]
RANKS = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders.split()}
PLACE = re.compile(r"dialeval\.(\w+)[\w.]*(:[\w,]+)?")


def list_texts(path: Path) -> Iterator[str]:
    """The texts of a module that are not docstrings; of a table, its whole text line by line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from re.findall(r'"([^"]*)"', text)
        return
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_only_features_name_modules_of_higher_layers() -> None:
    upward: dict[str, list[str]] = {}
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml")]:
        folder = path.relative_to(PACKAGE).parts[0]
        is_feature = path.name == "feature.py" or (
            path.parent.parent == PACKAGE / "suites" and path.name == "__init__.py"
        )
        if is_feature or folder not in RANKS:
            continue
        for text in list_texts(path):
            place = PLACE.fullmatch(text.strip())
            if place is not None and RANKS.get(place[1], -1) > RANKS[folder]:
                upward.setdefault(path.relative_to(PACKAGE).as_posix(), []).append(text)
    assert upward == {}


@pytest.mark.parametrize("suite", ["sgd", "lsdscc"])
def test_a_suite_is_registered_by_one_line(suite: str) -> None:
    """No other module of the package names it, but for its public module and the flags of the original."""
    lines = (PACKAGE / "features.ini").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if f"suites.{suite}" in line] == [f"{suite} = dialeval.suites.{suite}:FEATURE"]
    allowed = {PACKAGE / f"{suite}.py", PACKAGE / "cli" / "compat.py"}
    naming = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path not in allowed and not {PACKAGE / "suites" / suite, PACKAGE / "originals"} & set(path.parents)
        if f"suites.{suite}" in path.read_text(encoding="utf-8")
    ]
    assert naming == []
