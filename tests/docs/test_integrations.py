"""The places where people work: the GitHub Action, the pytest plugin, hooks, the container and the agents' skill."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.site.blocks import Runner, blocks, commands

from conftest import Dialeval
from dialeval import sample_data

ROOT = Path(__file__).parents[2]
LOGS = sample_data.folder() / "logs"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
BIN = Path(sys.executable).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("v1", "v2"):
        shutil.copy(LOGS / f"{name}.jsonl", tmp_path)
    return tmp_path


def test_every_command_of_the_skill_runs(dialeval: Dialeval, folder: Path) -> None:
    text = dialeval("skill").stdout
    assert re.match(r"---\nname: dialeval\ndescription: .+\n---\n", text)
    runner = Runner(folder)
    ran = [command for block in blocks(text) if block.language == "sh" for command in commands(block.code)]
    for command in ran:
        runner.command(command)
    assert len(ran) == 6
    assert (folder / "report.html").exists()
    assert (folder / "comparison.json").exists()


def run_action(folder: Path, inputs: dict[str, str], old_comment: str = "") -> tuple[int, str, list[str]]:
    """Run the steps of the action by a shell; returns its status, the summary and the calls of `gh`."""
    given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | {"version": "none"} | inputs
    fake = folder / "bin"
    fake.mkdir(exist_ok=True)
    (fake / "gh").write_text(f'#!/bin/sh\necho "$@" >> {folder}/gh.txt\ncase "$*" in *jq*) echo {old_comment};; esac\n')
    (fake / "gh").chmod(0o755)
    (folder / "output").write_text("")
    values = {f"inputs.{name}": value for name, value in given.items()}
    values |= {"github.repository": "owner/name", "github.event.pull_request.number": "7"}
    environment = {**os.environ, "PATH": f"{fake}:{BIN}:{os.environ['PATH']}"}
    environment |= {"GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "GITHUB_OUTPUT": str(folder / "output")}
    for step in ACTION["runs"]["steps"]:
        if step["name"] == "Install":
            continue
        values["steps.compare.outputs.status"] = (folder / "output").read_text().strip().removeprefix("status=")
        env = {
            name: re.sub(r"\$\{\{ (.+?) \}\}", lambda match: values[match[1]], str(value))
            for name, value in step.get("env", {}).items()
        }
        assert "${{" not in step["run"], "values of a pull request reach the shell as variables only"
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=folder, env=environment | env, capture_output=True, text=True, check=False)
        if done.returncode:
            break
    calls = (folder / "gh.txt").read_text().splitlines() if (folder / "gh.txt").exists() else []
    return done.returncode, (folder / "summary.md").read_text(), calls


def test_the_steps_of_the_action(folder: Path) -> None:
    token = {"token": "secret"}
    status, summary, calls = run_action(folder, {"logs": "v1.jsonl", "score": "-m length,failure-rate", **token})
    assert (status, "nothing was compared" in summary) == (0, True)
    assert "--method POST repos/owner/name/issues/7/comments -F body=@dialeval-comment.md" in calls[-1]
    (folder / "dialeval-run").rename(folder / "dialeval-baseline")
    # The next version is compared with that run; its gate is one of the arguments.
    gate = {
        "logs": "v2.jsonl",
        "score": "-m length,failure-rate",
        "compare": "-m length,failure-rate --fail-over length=15",
        **token,
    }
    status, summary, calls = run_action(folder, gate, old_comment="42")
    assert (status, "length" in summary) == (1, True)
    assert "--method PATCH repos/owner/name/issues/comments/42" in calls[-1]
    assert "<failure" in (folder / "dialeval-gates.xml").read_text()
    lacking = "--allow-missing 0.125"  # the next version has 7 of the 8 dialogues
    assert run_action(folder, {**gate, "compare": f"-m failure-rate {lacking}"})[0] == 0
    status, summary, _ = run_action(folder, {**gate, "compare": "-m length"})
    assert (status, "> dialeval: no metric says which replies are better" in summary) == (2, True)
    assert "secret" not in (folder / "summary.md").read_text()


def test_the_workflow_of_the_page(dialeval: Dialeval, tmp_path: Path) -> None:
    """Its YAML is what GitHub expects, and the action accepts its arguments."""
    texts = [block.code for block in blocks((ROOT / "docs" / "ci.md").read_text()) if "runs-on" in block.code]
    workflow = yaml.safe_load(texts[0])
    assert set(workflow) == {"name", True, "permissions", "jobs"}  # YAML 1.1 takes `on` for a yes
    assert workflow[True] == "pull_request"
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    ((job),) = workflow["jobs"].values()
    (step,) = [step for step in job["steps"] if step["uses"].startswith("OWNER/dialeval@v")]
    assert set(step["with"]) <= set(ACTION["inputs"])
    shutil.copy(sample_data.folder() / "references.txt", tmp_path)
    for name in ("main", "branch"):
        shutil.copy(sample_data.folder() / "responses" / "careful.txt", tmp_path / f"{name}.txt")
    assert dialeval("score", "main.txt", *step["with"]["score"].split(), "-o", step["with"]["baseline"]).returncode == 0
    # Sixty equal lines do not exclude a loss of the page's margin.
    wider = step["with"]["compare"].replace("rouge-l=0.02", "rouge-l=0.1")
    status, summary, _ = run_action(tmp_path, step["with"] | {"compare": wider})
    assert (status, "rouge-l" in summary) == (0, True)
    (upload,) = [step for step in job["steps"] if "upload" in step["uses"]]
    assert (tmp_path / upload["with"]["path"]).exists()


TESTS = """
def test_version(dialeval):
    run = dialeval.evaluate("{responses}", "references.txt", metrics="rouge-l")
    dialeval.assert_no_worse(run, "rouge-l")
"""


def run_pytest(folder: Path, responses: str, *options: str) -> tuple[int, str]:
    (folder / "test_version.py").write_text(TESTS.format(responses=responses))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_pytest_plugin(dialeval: Dialeval, tmp_path: Path) -> None:
    for name in ("references.txt", "responses/careful.txt", "responses/generic.txt"):
        shutil.copy(sample_data.folder() / name, tmp_path)
    assert dialeval("score", "careful.txt", "-r", "references.txt", "-m", "rouge-l", "-o", "base").returncode == 0
    status, text = run_pytest(tmp_path, "careful.txt", "--dialeval-baseline", "base")
    assert status == 0, text
    assert "= dialeval =" in re.sub("=+", "=", text)
    assert "test_version.py::test_version: " in text
    status, text = run_pytest(tmp_path, "generic.txt", "--dialeval-baseline", "base")
    assert (status, "test_version.py::test_version: rouge-l of generic is" in text) == (1, True), text
    status, text = run_pytest(tmp_path, "generic.txt", "-rs")
    assert (status, "no baseline: pass --dialeval-baseline FOLDER" in text) == (0, True)


def test_the_plugin_imports_nothing_heavy() -> None:
    code = "import dialeval.pytest_plugin, sys; print({'numpy', 'numba', 'click'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_the_hook_names_a_command_that_reads_files(dialeval: Dialeval, folder: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    entry: list[str] = hook["entry"].split()[1:]
    assert re.search(hook["files"], "evaluation/logs/v1.jsonl")
    assert dialeval(*entry, "v1.jsonl", "v2.jsonl").returncode == 0
    (folder / "bad.jsonl").write_text("{\n")
    assert dialeval(*entry, "bad.jsonl").returncode == 2


def test_the_container_file_has_an_entry_and_no_root_user() -> None:
    """Its syntax only: nothing is built here."""
    instructions: list[Any] = re.findall(r"^([A-Z]+) ", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert instructions == ["FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"]
