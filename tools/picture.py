"""Make the picture of the README, docs/images/report.png: the top of the report of the shipped sample, in a browser.

    python tools/picture.py

Needs Chromium on the path (tools/get-chromium.sh) and Playwright.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import dialeval
from dialeval import sample_data

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
METRICS = "bleu-4,rouge-l,chrf,embedding-greedy,distinct-2,length"
WIDTH, HEIGHT = 1400, 680


def main() -> None:
    """Write the picture."""
    here = sample_data.folder()
    run = dialeval.evaluate(
        {name: here / "responses" / f"{name}.txt" for name in ("careful", "chatty")},
        here / "references.txt",
        train=here / "train.txt",
        vectors=here / "vectors.txt",
        metrics=METRICS,
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("needs Chromium on the path: sh tools/get-chromium.sh")
    with TemporaryDirectory() as folder, sync_playwright() as started:
        path = dialeval.report(run, Path(folder) / "report.html", date="2026-01-01")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(path.as_uri())
        page.screenshot(path=PICTURE)
        browser.close()
    print(f"{PICTURE.name}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
