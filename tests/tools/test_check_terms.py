"""The terms check: what it reports, what it skips, and that the pages of the repository pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.check_terms import CHECKED, ROOT, TERMS, Terms, check_files, main

PROGRAM = '''"""A colour beside a word."""


def front_door(problem: str) -> str:  # by
    # commas
    return f"told {problem} beside"
'''


@pytest.fixture(scope="module")
def terms(tmp_path_factory: pytest.TempPathFactory) -> Terms:
    path = tmp_path_factory.mktemp("terms") / "terms.txt"
    path.write_text(
        "# a comment\n"
        "colours? -> color\nfront door -> interface\nfront_door -> interface\nby commas -> comma-separated\n"
        "prose: beside|problem -> next to, problem\nmessage: told|word -> report\n"
        "\n[allowed]\n*.md : Colours of Paris  # a title\n"
    )
    return Terms(path)


def test_names_prose_and_messages(terms: Terms) -> None:
    found = [(finding.line, finding.found) for finding in terms.check("a.py", PROGRAM)]
    assert found == [(1, "colour"), (1, "beside"), (4, "front_door"), (4, "by # commas"), (6, "beside"), (6, "told")]


def test_code_in_markdown_and_allowed_uses_are_skipped(terms: Terms) -> None:
    page = "Colour `colour` Colours of Paris\n\n```sh\ncolour\n```\nby\ncommas, told\n"
    assert [str(each) for each in terms.check("a.md", page)] == [
        "a.md:1: 'colour': write color",
        "a.md:6: 'by commas': write comma-separated",
    ]


def test_a_line_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("colour = color\n")
    with pytest.raises(ValueError, match=r"terms\.txt:1: write WORD -> WORD"):
        Terms(tmp_path / "terms.txt")


def test_the_pages_pass() -> None:
    assert check_files([ROOT / name for name in CHECKED if name != "src"], Terms(TERMS)) == []


def test_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT / "README.md")]) == 0
    assert capsys.readouterr().out == ""
