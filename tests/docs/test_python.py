"""The pages about Python and CI work as they show: Python, workflow, recipes for loggers, query."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tools.site.blocks import blocks

import dialeval
from dialeval import sample_data

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = [block for name in ("python.md", "ci.md") for block in blocks((DOCS / name).read_text(encoding="utf-8"))]
SAFE = re.compile(r"[A-Za-z0-9_.\-/]+")
METRICS = "rouge-l,distinct"


def block_with(text: str, kind: str = "python") -> str:
    (found,) = [block.code for block in BLOCKS if block.language == kind and text in block.code]
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the responses of a branch, and the saved run of the main branch."""
    here = sample_data.folder()
    texts = (here / "responses" / "careful.txt").read_text().splitlines()
    (tmp_path / "references.txt").write_text((here / "references.txt").read_text())
    (tmp_path / "main.txt").write_text("\n".join(texts) + "\n")
    texts[7] = "yes , of course ."
    (tmp_path / "branch.txt").write_text("\n".join(texts) + "\n")
    monkeypatch.chdir(tmp_path)
    dialeval.evaluate("main.txt", "references.txt", metrics=METRICS).save("results/main")
    return tmp_path


@pytest.fixture
def run() -> dialeval.Run:
    return dialeval.evaluate({"my bot": ["a b", "c"], "b": ["a", "d e"]}, metrics=["length", "distinct(n=1)"])


def test_a_tally_and_a_function() -> None:
    names: dict[str, Any] = {}
    exec(block_with("tally.reset()"), names)
    assert names["estimate"].units == 3
    assert len(names["run"]["system"]) == 2
    exec(block_with("metric_of_rows"), names)


def test_every_block_of_python_is_tried_here() -> None:
    tried = ("tally.reset()", "metric_of_rows", "all_gather_object", "mlflow", "wandb", "SummaryWriter")
    programs = [block.code for block in blocks((DOCS / "python.md").read_text("utf-8")) if block.language == "python"]
    assert [code for code in programs if not any(word in code for word in (*tried, "Feature("))] == []


def test_the_plugin_is_the_template() -> None:
    """tests/packaging/test_plugin.py builds, installs and runs it."""
    plugin = DOCS.parent / "templates" / "plugin"
    assert block_with("Feature(") in (plugin / "helpdesk" / "__init__.py").read_text(encoding="utf-8")
    shown = {block.title: block.code for block in BLOCKS if block.language == "toml"}
    assert shown["pyproject.toml"] in (plugin / "pyproject.toml").read_text(encoding="utf-8")
    assert shown["formats.toml"] in (plugin / "helpdesk" / "formats.toml").read_text(encoding="utf-8")


def test_ranks_of_torch_distributed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        exec(block_with("all_gather_object"), {"dialeval": dialeval})
    finally:
        dist.destroy_process_group()
    expected = dialeval.evaluate(["hello there"], ["hello"], metrics="bleu-4")["system"]["bleu-4"].mean
    assert capsys.readouterr().out == f"{expected}\n"


def test_pytest(folder: Path) -> None:
    dialeval.evaluate("branch.txt", "references.txt", metrics=METRICS).save("results/branch")
    (folder / "test_model.py").write_text(block_with("results/branch"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_model.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout


def test_mlflow(run: dialeval.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a real store of files."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    exec(block_with("mlflow"), {"run": run})
    import mlflow

    client = mlflow.MlflowClient()
    (logged,) = client.search_runs([experiment.experiment_id for experiment in client.search_experiments()])
    assert logged.data.metrics == run.flat()
    (document,) = (tmp_path / "mlruns").rglob("dialeval.json")
    assert json.loads(document.read_text()) == json.loads(json.dumps(run.to_dict()))


def test_weights_and_biases(run: dialeval.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block as it is, with a module in the place of the package, which needs an account."""
    logged: list[dict[str, float]] = []
    wandb = ModuleType("wandb")
    wandb.__dict__["init"] = lambda project: SimpleNamespace(log=logged.append)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    exec(block_with("wandb"), {"run": run})
    assert logged == [run.flat()]
    assert all(SAFE.fullmatch(name) for name in logged[0])


def test_tensorboard(run: dialeval.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block as it is, with a writer that keeps what it is given; TensorBoard rewrites other letters in a tag."""
    logged: dict[str, float] = {}

    class SummaryWriter:
        def __enter__(self) -> SummaryWriter:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def add_scalar(self, tag: str, value: float, global_step: int) -> None:
            assert re.sub(r"[^-/\w\.]", "_", tag).lstrip("/") == tag
            logged[tag] = value

    board = ModuleType("torch.utils.tensorboard")
    board.__dict__["SummaryWriter"] = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", board)
    for parent in ("torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, parent, ModuleType(parent))
    exec(block_with("SummaryWriter"), {"run": run})
    assert logged == run.flat()


@pytest.mark.parametrize("streamed", [False, True])
def test_the_query(folder: Path, streamed: bool) -> None:
    import duckdb

    rows = [
        {"dialog_id": f"d{n // 2}", "turn": n % 2, "system": "ab"[n // 6], "response": f"so {n}", "reference": "so 3 8"}
        for n in range(12)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = "rows.json[l]" if streamed else "rows.jsonl"
    dialeval.evaluate(source, metrics="rouge-l", output="results/main", execution=dialeval.Execution(force=True))
    query = block_with("filename = true" if streamed else "USING", "sql")  # the rows of a stream have no texts
    found = duckdb.connect().execute(query).fetchall()
    scores = dialeval.evaluate("rows.jsonl", metrics="rouge-l")
    items = {system: scores[system]["rouge-l"].scores for system in "ab"}
    assert len(found) == 3
    for system, dialogue, turn, said, value in found:
        number = said - 1 if streamed else int(said.split()[1]) - 6 * "ab".index(system)
        assert (dialogue, turn) == (f"d{(number + 6 * 'ab'.index(system)) // 2}", number % 2)
        column = items[system]
        assert column is not None
        assert column[number] == value == min(column)
