"""The template of a package that extends dialeval, built and installed: all its parts, under every engine."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "templates" / "plugin"
ENGINES = ["Threads(2)", "Processes(2)"]
METRICS = "openings,tone,resolved,length"
PROGRAM = """
import json, sys
import dialeval
from dialeval.engine import Cluster, Processes, Threads

if __name__ == "__main__":
    execution = dialeval.Execution(engine={engine}, chunk_bytes=700)
    result = dialeval.evaluate(sys.argv[1], metrics={metrics!r}, execution=execution)["tickets"]
    values = {{key: [repr(est.mean), est.units, est.scored, str(est.signature)] for key, est in result.items()}}
    print(json.dumps(values))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the package is installed."""
    place = tmp_path_factory.mktemp("plugin") / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*install, "--target", str(place), str(TEMPLATE)], check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": str(place)}


@pytest.fixture
def tickets(tmp_path: Path) -> Path:
    rows = [
        {
            "ticket_no": number // 2,
            "customer_said": "When does it leave?",
            "agent_said": ["Sorry, at nine. Thank you!", "At ten please.", "No."][number % 3],
            "ticket_resolved": number % 4 > 0,
            **({"channel": "test"} if number % 5 == 0 else {}),
        }
        for number in range(40)
    ]
    path = tmp_path / "tickets.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(environment: dict[str, str], folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def evaluate(environment: dict[str, str], tickets: Path, engine: str) -> dict[str, list[object]]:
    program = tickets.with_name("program.py")
    program.write_text(PROGRAM.format(engine=engine, metrics=METRICS))
    values: dict[str, list[object]] = json.loads(run(environment, tickets.parent, str(program), str(tickets)))
    return values


def test_every_engine_gives_the_same_values(installed: dict[str, str], tickets: Path) -> None:
    threads, processes = (evaluate(installed, tickets, engine) for engine in ENGINES)
    assert threads == processes
    assert list(threads) == METRICS.split(",")
    assert threads["openings"][:3] == [repr(3 / 40), 40, 40]
    assert threads["tone"][:3] == [repr((14 * 1.0 + 13 * 0.5) / 40), 40, 40]
    assert threads["resolved"][1:3] == [40, 32], "tickets of tests do not count"


@pytest.mark.ray
@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")
def test_ray_gives_the_same_values(installed: dict[str, str], tickets: Path) -> None:
    assert evaluate(installed, tickets, "Cluster()") == evaluate(installed, tickets, ENGINES[0])


def test_commands_and_the_report_know_the_package(installed: dict[str, str], tickets: Path) -> None:
    dialeval = ("-m", "dialeval")
    run(installed, tickets.parent, *dialeval, "score", "tickets.jsonl", "-m", METRICS, "-o", "out", "--jobs", "2")
    run(installed, tickets.parent, *dialeval, "report", "out", "--save", "page.html")
    page = (tickets.parent / "page.html").read_text(encoding="utf-8")
    assert "Different first words, divided by replies." in page
    assert "Help desk" in run(installed, tickets.parent, *dialeval, "metrics")
    assert "Different first words" in run(installed, tickets.parent, *dialeval, "metrics", "openings")


CHECKED = [str(TEMPLATE / "helpdesk"), str(Path(__file__).with_name("user_program.py"))]
MYPY = ["--strict", "--no-incremental", "--cache-dir", os.devnull, "--follow-imports=silent", *CHECKED]
PYRIGHT = ["--level", "error", "--pythonpath", sys.executable, "--project", "."]


@pytest.mark.parametrize(("checker", "options"), [("mypy", MYPY), ("basedpyright", PYRIGHT)])
def test_the_package_and_a_program_of_a_user_are_typed(
    checker: str, options: list[str], installed: dict[str, str], tmp_path: Path
) -> None:
    settings = {"include": CHECKED, "extraPaths": [str(TEMPLATE)], "typeCheckingMode": "basic"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    environment = {**installed, "MYPYPATH": str(TEMPLATE)}
    run(environment, tmp_path, "-m", checker, *options)
