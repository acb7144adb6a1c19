"""Pages are short, have a place in the navigation, and the README says little and fits PyPI."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

import pytest
import yaml
from tools.package_readme import make_links_absolute
from tools.refresh_outputs import find_excerpt
from tools.sample_sentences import find_sentences
from tools.site.blocks import blocks, commands

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 1500
SECTIONS = ["Home", "Tutorials", "How-to guides", "Reference", "Explanation"]
APPENDICES = {"floors.md", "simulation-tables.md"}
"""Generated tables of numbers, which are not searched."""


def navigation(entry: object) -> list[str]:
    """The pages below an entry of the navigation."""
    if isinstance(entry, str):
        return [entry]
    below = entry.values() if isinstance(entry, dict) else entry
    return [page for part in below for page in navigation(part)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_are_short(path: Path) -> None:
    """Tables do not count: a row is looked up."""
    prose = re.sub(r"^\|.*\|$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(prose.split()) <= MOST_WORDS


def test_every_page_has_one_place() -> None:
    sections = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [next(iter(section)) for section in sections] == SECTIONS
    placed = navigation(sections)
    assert len(placed) == len(set(placed)) <= 45
    pages = {path.name for path in PAGES if path.parent.name == "docs"} - APPENDICES
    assert pages <= set(placed)
    assert len(pages) <= 40


def test_all_pages_together_are_short() -> None:
    pages = [path for path in PAGES if path.name not in APPENDICES]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in pages) <= 40_000


def test_tutorials_and_guides_show_what_commands_print() -> None:
    """A copy prints nothing, and a report is a page."""
    sections = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    guides = navigation([section for section in sections if set(section) & {"Tutorials", "How-to guides"}])
    lacking = []
    for path in (path for path in PAGES if path.relative_to(ROOT / "docs").as_posix() in guides):
        found = list(blocks(path.read_text(encoding="utf-8")))
        for block, after in zip_longest(found, found[1:]):
            if block.language == "sh" and block.reason is None and (after is None or after.language != "text"):
                lacking.append(f"{path.name}: {commands(block.code)[-1]}")
    assert [each for each in lacking if not re.search(r": (?:cp|dialeval report|dialeval sample-data) ", each)] == []
    assert len(lacking) < 10


def test_the_readme_says_little() -> None:
    introduction = README.partition("\n\n")[2].partition("<picture>")[0]
    assert len(introduction.split()) <= 60
    outputs = re.findall(r"^```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert [output.count("\n") <= 8 for output in outputs] == [True]
    assert README.index("make demo") < README.index("make test") < README.index("## Quick answers")
    table = README.partition("## Other tools")[2].partition("## ")[0]
    tools = ("sacreBLEU", "Hugging Face evaluate", "deepeval", "inspect_ai", "MultiWOZ_Evaluation")
    assert all(f"| {name}" in table for name in tools)
    assert len(re.findall(r"^\| ", table, re.MULTILINE)) == 6


def test_the_recording_shows_the_output_of_the_readme() -> None:
    recorded = (ROOT / "docs" / "images" / "terminal.svg").read_text(encoding="utf-8")
    shown = " ".join(re.sub("<[^>]+>", "", recorded).split())
    for block in (block for block in blocks(README) if block.reason is None):
        parts = {"sh": commands(block.code), "text": [block.code]}.get(block.language, [])
        assert all(" ".join(part.split()) in shown for part in parts)


def test_links_of_the_readme_are_absolute_in_the_package() -> None:
    source = "https://example.org/owner/name"
    made = make_links_absolute(README, source)
    assert f"]({source}/blob/main/docs/start.md)" in made
    assert f'src="{source}/raw/main/docs/images/report.png"' in made
    assert not re.findall(r"\]\((?!https:|#)", made)
    assert make_links_absolute(README, None) == README


def test_links_of_the_readme_lead_somewhere() -> None:
    paths = re.findall(r'(?:\]\(|(?:src|srcset)=")([^)"#]+)', README)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_a_stale_output_is_found_again() -> None:
    printed = [
        "unrelated\n",
        "Paired design.\n\nb is worse than a: -0.3 [-0.4, -0.2].\n\nmetric  a  b\nx  1  2\nlast line\n",
    ]
    stale = "b is worse than a: -0.2 [-0.3, -0.1].\n\nmetric  a  b\nx  1  3\n"
    assert find_excerpt(stale, printed) == "b is worse than a: -0.3 [-0.4, -0.2].\n\nmetric  a  b\nx  1  2\n"
    assert find_excerpt("x", []) is None


def test_sentences_are_found_without_code_and_tables() -> None:
    page = (
        "# A title here\n\nThe first sentence is here. The second one follows:\n\n```sh\nno sentence in code\n```\n\n"
        "| a | table has no sentence |\n\n- A point is a sentence too.\n"
    )
    found = [(sentence.line, sentence.text) for sentence in find_sentences("page", page)]
    assert found == [
        (3, "The first sentence is here."),
        (3, "The second one follows:"),
        (11, "A point is a sentence too."),
    ]
