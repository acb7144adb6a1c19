"""`dialeval metrics new` writes a package that can be installed, is known by name and passes its tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Dialeval
from dialeval.cli.metric_package import metric_package
from dialeval.core.errors import SettingError

PROGRAM = [sys.executable, "-c", "from dialeval.cli.main import main; main()"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    subprocess.run([*PROGRAM, "metrics", "new", "polite-words"], cwd=folder, check=True, capture_output=True)
    return folder / "dialeval-polite-words"


@pytest.fixture(scope="module")
def installed(package: Path) -> dict[str, str]:
    """An environment in which the package is installed, by pip, into a folder of its own."""
    place = package.parent / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", str(place), str(package)], check=True, capture_output=True)
    path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def test_its_own_tests_pass_where_it_is_installed(package: Path, installed: dict[str, str]) -> None:
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(package)]
    done = subprocess.run(test, cwd=package, env=installed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "12 passed" in done.stdout


def test_its_tests_can_fail(package: Path, installed: dict[str, str], tmp_path: Path) -> None:
    """A metric that looks at the batch that a row is in breaks a law, and the package's tests say so."""
    wrong = (package / "src" / "dialeval_polite_words" / "__init__.py").read_text()
    wrong = wrong.replace("for text in texts]", "and len(texts) > 2 for text in texts]")
    (tmp_path / "dialeval_polite_words.py").write_text(wrong)
    (tmp_path / "test_it.py").write_text((package / "tests" / "test_polite_words.py").read_text())
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]
    environment = {**installed, "PYTHONPATH": f"{tmp_path}{os.pathsep}{installed['PYTHONPATH']}"}
    done = subprocess.run(test, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "FAILED test_it.py::test_cutting_rows_into_batches_changes_nothing[1]" in done.stdout


def test_every_command_knows_it(package: Path, installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "responses.txt").write_text("why ?\nyes\n")
    for command, expected in {
        ("metrics", "polite-words"): "Polite words: the share of responses that end in a question mark.",
        ("score", "responses.txt", "-m", "polite-words", "-f", "csv"): "responses,polite-words,0.5,",
    }.items():
        done = subprocess.run(
            [*PROGRAM, *command], cwd=tmp_path, env=installed, capture_output=True, text=True, check=True
        )
        assert expected in done.stdout


def test_it_is_clean(package: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    for check in (["check", "--isolated", "--select", "B,E,F,I,UP,W"], ["format", "--isolated", "--check"]):
        done = subprocess.run(
            [*ruff, *check, "--line-length", "120", "."], cwd=package, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_nothing_is_overwritten(dialeval: Dialeval, tmp_path: Path) -> None:
    assert dialeval("metrics", "new", "mine", "-o", "here").returncode == 0
    (tmp_path / "here" / "README.md").write_text("mine")
    done = dialeval("metrics", "new", "mine", "-o", "here")
    assert done.returncode == 2
    assert "here is there already, and nothing is overwritten" in done.stderr
    assert (tmp_path / "here" / "README.md").read_text() == "mine"


def test_a_place_that_cannot_be_written(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = dialeval("metrics", "new", "mine", "-o", "file/here")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("name", ["Polite", "a b", "../up", "9lives", "-x", "x_y", "none", "", "é"])
def test_names_that_cannot_be_one(name: str) -> None:
    with pytest.raises(SettingError, match="no name for a metric"):
        metric_package(name)


@pytest.mark.parametrize("name", ["bleu", "length"])
def test_names_that_are_taken(name: str) -> None:
    with pytest.raises(SettingError, match="there is a metric"):
        metric_package(name)
