"""Print sentences of the documentation, drawn at random, to be read one by one.

    python tools/sample_sentences.py --seed 1
    python tools/sample_sentences.py --seed 1 --number 50

Each sentence comes with its page and line. Code, tables, headings and HTML are left out. The same seed and the same
pages give the same sentences.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**/*.md")
_SKIPPED = re.compile(r"^ *```.*?^ *```$|^\|.*?$|^#.*?$|^<.*?>$|^---\n.*?^---$|^    .*?$", re.DOTALL | re.MULTILINE)
_END = re.compile(r"(?<=[.!?])(?=\s+[A-Z`*\[\"(])|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")


class Sentence(NamedTuple):
    """A sentence and where it is."""

    page: str
    line: int
    text: str


def find_sentences(page: str, markdown: str) -> Iterator[Sentence]:
    """Find the sentences of a page.

    Args:
        page: The name of the page.
        markdown: Its text.

    Yields:
        The sentences of at least four words, in order.
    """
    prose = _SKIPPED.sub(lambda match: re.sub(r"[^\n]", "", match[0]), markdown)
    start = 0
    for end in [*(match.start() for match in _END.finditer(prose)), len(prose)]:
        text = re.sub(r"^(?:[-*]|\d+\.) ", "", " ".join(prose[start:end].split()))
        first = len(prose[start:end]) - len(prose[start:end].lstrip())
        if len(text.split()) >= 4:
            yield Sentence(page, prose.count("\n", 0, start + first) + 1, text)
        start = end


def main() -> None:
    """Print a sample."""
    parser = argparse.ArgumentParser(description="Print sentences of the documentation, drawn at random.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--number", type=int, default=50)
    given = parser.parse_args()
    paths = sorted(path for pattern in PAGES for path in ROOT.glob(pattern))
    sentences = [
        sentence
        for path in paths
        for sentence in find_sentences(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]
    for page, line, text in sorted(random.Random(given.seed).sample(sentences, given.number)):
        print(f"{page}:{line}: {text}")
    print(f"{given.number} of {len(sentences)} sentences, seed {given.seed}")


if __name__ == "__main__":
    main()
