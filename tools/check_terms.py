"""Report words that `tools/terms.txt` replaces: British spellings, and phrases for which the field has a term.

    python tools/check_terms.py               # src/, docs/ and the pages in the root; status 1 if anything is found
    python tools/check_terms.py docs/start.md

A term is a regular expression, matched as whole words regardless of case; an underscore ends a word, and a space also
matches a line end and a comment mark. A term is looked for in all of a source file, names included. Before a term,
`prose:` restricts it to comments and strings, `message:` to strings that are no docstrings. The help of the command
line consists of such strings. In Markdown, code is skipped: it quotes names and real output.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TERMS = Path(__file__).with_name("terms.txt")
CHECKED = ("src", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
SUFFIXES = frozenset({".py", ".md", ".js", ".css"})
SKIPPED = "src/dialeval/sample_data/"
"""Invented dialogues: data, not prose."""
SCOPES = ("all", "prose", "message")
_MARKDOWN_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_PROSE = re.compile(r'#[^\n]*|"""(.*?)"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
"""Comments and strings of Python as ruff formats them."""
_EXPRESSION = re.compile(r"\{[^{}\n]*\}")


class Finding(NamedTuple):
    """A word in a file that has a replacement."""

    path: str
    line: int
    found: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.found!r}: write {self.replacement}"


class Terms:
    """The content of a list of terms."""

    def __init__(self, path: Path) -> None:
        """Read a list; ValueError for a line that is not of its form."""
        self._terms: dict[str, list[tuple[str, str]]] = {scope: [] for scope in SCOPES}
        """Patterns and replacements by scope."""
        self._allowed: list[tuple[str, re.Pattern[str]]] = []
        """Globs of files, and what may be in them whatever the terms say."""
        in_allowed = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line == "[allowed]":
                in_allowed = True
            elif line and not line.startswith("#"):
                first, separator, rest = line.partition(" : " if in_allowed else " -> ")
                if not separator:
                    raise ValueError(f"{path.name}:{number}: write {'GLOB : TEXT' if in_allowed else 'WORD -> WORD'}")
                if in_allowed:
                    self._allowed.append((first, re.compile(_with_line_ends(rest.rpartition("  # ")[0]))))
                else:
                    scope, colon, pattern = first.partition(": ")
                    self._terms[scope if colon else "all"].append((_with_line_ends(pattern or first), rest))
        # One pattern for all words of a scope is several times as fast as one after the other.
        self._any = {
            scope: re.compile(rf"(?<![a-z])(?:{'|'.join(pattern for pattern, _ in terms)})(?![a-z])")
            for scope, terms in self._terms.items()
            if terms
        }

    def check(self, path: str, text: str) -> list[Finding]:
        """Find every word of a file that has a replacement and is not allowed there."""
        if path.endswith(".md"):
            text = _MARKDOWN_CODE.sub(_blank_out, text)
        for glob, allowed in self._allowed:
            if fnmatch(path, glob):
                text = allowed.sub(_blank_out, text)
        findings = []
        for scope, pattern in self._any.items():
            searched = _restrict(text, path, scope).lower()
            for match in pattern.finditer(searched):
                line = searched.count("\n", 0, match.start()) + 1
                findings.append(Finding(path, line, " ".join(match[0].split()), self._replacement(scope, match[0])))
        return sorted(findings, key=lambda finding: finding.line)

    def _replacement(self, scope: str, found: str) -> str:
        return next(replacement for pattern, replacement in self._terms[scope] if re.fullmatch(pattern, found))


def _with_line_ends(pattern: str) -> str:
    """Return a pattern whose spaces also match a line end and a comment mark."""
    return pattern.replace(" ", r"\s+(?:(?:#|//|\*)\s*)?")


def _blank_out(match: re.Match[str]) -> str:
    """Return as many lines and characters without words."""
    return re.sub(r"[^\n]", " ", match[0])


def _restrict(text: str, path: str, scope: str) -> str:
    """Return the text without whatever is not of a scope; Markdown is prose, and other files are taken as a whole."""
    if scope == "all" or (scope == "prose" and path.endswith(".md")):
        return text
    if not path.endswith(".py"):
        return ""
    kept, end = [], 0
    for match in _PROSE.finditer(text):
        kept.append("\n" * text.count("\n", end, match.start()) + " ")
        is_message = match[0][0] != "#" and match[1] is None
        kept.append(_EXPRESSION.sub("", match[0]) if scope == "prose" or is_message else "\n" * match[0].count("\n"))
        end = match.end()
    return "".join(kept)


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """Find the files to check among files and folders."""
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in files if file.suffix in SUFFIXES and file.is_file())


def check_files(paths: Iterable[Path], terms: Terms, root: Path = ROOT) -> list[Finding]:
    """Check files and folders below a root."""
    findings: list[Finding] = []
    for path in files_of(paths):
        name = path.resolve().relative_to(root).as_posix()
        if not name.startswith(SKIPPED):
            findings += terms.check(name, path.read_text(encoding="utf-8"))
    return findings


def main(arguments: list[str]) -> int:
    """Print every finding; 1 if there is one."""
    findings = check_files(map(Path, arguments) if arguments else (ROOT / name for name in CHECKED), Terms(TERMS))
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
