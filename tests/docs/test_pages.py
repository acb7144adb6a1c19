"""Every code block of every page runs, in order, or says why it cannot; the rules are in `tools/site/blocks.py`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml
from tools.site.blocks import Block, Runner, blocks, commands

from docs.folders import FOLDERS, HERE, RATING, rated
from tools.site import metrics

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGES = [path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")))]
BLOCKS = {page: list(blocks((ROOT / page).read_text(encoding="utf-8"))) for page in PAGES}
METRIC_PAGES = dict(metrics.pages())
ELSEWHERE = {
    "docs/python.md": "tests/docs/test_python.py",  # several processes, a cluster, stores of loggers
}
"""Pages whose blocks are run by a test of their own."""
NOT_RUN = {
    "README.md": 1,  # installs the package
    "docs/agents.md": 2,  # needs public files
    "docs/ci.md": 1,  # what a failing test prints
    "docs/command-line.md": 1,  # needs other shells
    "docs/slices.md": 4,  # needs public data sets; what that prints
    "docs/judges.md": 2,  # installs packages; needs a GPU
    "docs/llm-judges.md": 2,  # needs a server
    "docs/multiwoz.md": 2,  # needs prediction files; the official files
    "docs/rating.md": 1,  # a server that runs until it is stopped
    "docs/scale.md": 1,  # needs a cluster
    "docs/simulations.md": 2,  # takes half an hour; ten minutes
    "docs/simulation-tables.md": 3,  # takes minutes, or an hour
    "docs/start.md": 1,  # installs the package
}
"""How many blocks of a page are not run. Whoever marks one more says here why."""
SHOWN = {"json", "toml", "yaml", "bibtex"}


def run(runner: Runner, block: Block) -> None:
    """Run or read a block."""
    if block.title is not None:
        (runner.folder / block.title).write_text(block.code)
    if block.language == "sh":
        for command in commands(block.code):
            runner.command(command)
            if RATING in command:
                rated(runner.folder)
    elif block.language == "python":
        runner.python(block.code)
    elif block.language == "text":
        assert runner.has_printed(block.code), f"nothing has printed this:\n{block.code}"
    elif block.language == "json":
        well_formed(block.code)
    elif block.language == "toml":
        tomllib.loads(block.code)
    elif block.language == "yaml":
        assert yaml.safe_load(block.code)
    else:
        assert block.language in SHOWN, f"a block in {block.language or 'no language'}: what is to be done with it?"


def well_formed(code: str) -> None:
    """A document, or one a line."""
    try:
        json.loads(code)
    except json.JSONDecodeError:
        assert all(json.loads(line) for line in code.splitlines())


def prepare(page: str, folder: Path) -> None:
    """Put the files that a page uses into a folder."""
    if page in FOLDERS:
        FOLDERS[page](folder)
    if not any("dialeval sample-data " in block.code for block in BLOCKS[page]):
        shutil.copytree(HERE, folder / "sample")


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCKS[page] and page not in ELSEWHERE])
def test_blocks(page: str, tmp_path: Path) -> None:
    prepare(page, tmp_path)
    runner = Runner(tmp_path)
    for block in BLOCKS[page]:
        if block.reason is None:
            try:
                run(runner, block)
            except Exception as error:
                raise AssertionError(f"{page}:{block.line}: {error}") from error


def test_blocks_that_are_not_run_are_counted() -> None:
    assert Counter(page for page in PAGES for block in BLOCKS[page] if block.reason is not None) == NOT_RUN


def test_lines_of_blocks_fit_80_columns() -> None:
    made = {page: list(blocks(text)) for page, text in METRIC_PAGES.items()}
    found = [(page, block.code.splitlines()) for page, some in {**BLOCKS, **made}.items() for block in some]
    assert [(page, line) for page, lines in found for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_command_stands_outside_of_a_block(page: str) -> None:
    """An indented command would not be run."""
    prose = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^ {4}(?:dialeval|pip|python|make|import|from) .*", prose, re.MULTILINE)


def test_the_commands_of_the_pages_of_metrics(tmp_path: Path) -> None:
    shutil.copytree(HERE, tmp_path / "sample")
    runner = Runner(tmp_path)
    ran = {
        command
        for text in METRIC_PAGES.values()
        for block in blocks(text)
        if block.language == "sh" and block.reason is None
        for command in commands(block.code)
    }
    for command in sorted(ran):
        runner.command(command)
    assert len(ran) > 12
