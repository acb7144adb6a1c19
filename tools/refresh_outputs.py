"""Run the code blocks of pages and replace outputs (```text blocks) that no longer match what the program prints.

    python tools/refresh_outputs.py                 # all pages
    python tools/refresh_outputs.py docs/start.md README.md

A stale output is replaced by the part of a later printed text that begins and ends with its most similar lines: read
`git diff` before a commit. The rules of blocks are those of `tools/site/blocks.py`; the folders in which pages run are
those of `tests/docs/folders.py`. A block that fails is reported and skipped.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from tools.site.blocks import Runner, blocks  # noqa: E402

from docs import test_pages  # noqa: E402


def find_excerpt(stale: str, printed: Sequence[str]) -> str | None:
    """Find the part of what was printed that corresponds to a stale output.

    Args:
        stale: The output that the page shows.
        printed: What the page's commands printed, in order.

    Returns:
        The excerpt most similar to the stale output, of the latest text among equals; None if nothing was printed.
    """
    old = [line.rstrip() for line in stale.strip().splitlines()]
    best: tuple[float, str] | None = None
    for text in reversed(printed):
        lines = [line.rstrip() for line in text.strip().splitlines()]
        if not lines:
            continue
        start = max(range(len(lines)), key=lambda number: _similarity(old[0], lines[number]))
        ends = range(start, len(lines))
        end = max(ends, key=lambda n: (_similarity(old[-1], lines[n]), -abs(n - start + 1 - len(old))))
        excerpt = "\n".join(lines[start : end + 1]) + "\n"
        likeness = _similarity("\n".join(old), excerpt)
        if best is None or likeness > best[0]:
            best = likeness, excerpt
    return None if best is None else best[1]


def refresh_page(page: str, folder: Path) -> int:
    """Replace the stale outputs of a page, and return how many there were."""
    path = ROOT / page
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    runner = Runner(folder)
    test_pages.prepare(page, folder)
    found: list[tuple[int, int, str]] = []
    for block in blocks("".join(lines)):
        if block.reason is not None:
            continue
        if block.language == "text" and not runner.has_printed(block.code):
            excerpt = find_excerpt(block.code, runner.printed)
            if excerpt is not None:
                found.append((block.line, block.line + block.code.count("\n"), excerpt))
            continue
        try:
            test_pages.run(runner, block)
        except Exception as error:
            print(f"{page}:{block.line}: {error}", file=sys.stderr)
    for start, end, excerpt in reversed(found):
        lines[start:end] = excerpt.splitlines(keepends=True)
    if found:
        path.write_text("".join(lines), encoding="utf-8")
    return len(found)


def _similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def main(pages: Sequence[str]) -> None:
    """Refresh pages, all of them unless some are named."""
    known = [page for page in test_pages.PAGES if test_pages.BLOCKS[page] and page not in test_pages.ELSEWHERE]
    if len(pages) == 1:
        with TemporaryDirectory() as folder:
            count = refresh_page(pages[0], Path(folder))
        print(f"{pages[0]}: {count} outputs replaced")
    else:  # a process per page, so that none inherits the threads and modules of another
        for page in pages or known:
            subprocess.run([sys.executable, __file__, page], check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
