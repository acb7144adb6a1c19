"""Start-up stays light, and numba is imported in one place."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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
    assert not loaded_by(program) & (HEAVY - {"rich"})


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


def test_only_the_compiler_of_kernels_imports_numba() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "numba" not in text:
            continue
        tree = ast.parse(text)
        imported = {
            name.split(".")[0]
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        if "numba" in imported:
            assert path.stem == "kernels", f"{path.name} imports numba"


def test_a_warm_evaluation_does_not_import_numba() -> None:
    """What compiled kernels are loaded by is a few milliseconds away; the compiler is not."""
    program = "import dialeval; dialeval.evaluate(['a b c', 'a d'], references=['a b', 'c d'], metrics='bleu,distinct')"
    loaded_by(program)
    assert "numba" not in loaded_by(program)


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
