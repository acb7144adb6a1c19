"""Make the pictures of the README and of the home page, light and dark: the top of a report of the shipped sample.

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

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PICTURES = {"light": IMAGES / "report.png", "dark": IMAGES / "report-dark.png"}
METRICS = "bleu-4,rouge-l,chrf,embedding-greedy,distinct-2,length"
WIDTH, HEIGHT = 1400, 680


def main() -> None:
    """Write the pictures to docs/images/."""
    here = sample_data.folder()
    run = dialeval.evaluate(
        {name: here / "responses" / f"{name}.txt" for name in ("careful", "chatty")},
        here / "references.txt",
        train=here / "train.txt",
        vectors=here / "vectors.txt",
        metrics=METRICS,
    )
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        sys.exit("needs Chromium on the path: sh tools/get-chromium.sh")
    with TemporaryDirectory() as folder, sync_playwright() as started:
        path = dialeval.report(run, Path(folder) / "report.html", date="2026-01-01")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for scheme, picture in PICTURES.items():
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page.goto(path.as_uri())
            page.screenshot(path=picture)
            print(f"{picture.name}: {picture.stat().st_size} bytes")
        browser.close()


if __name__ == "__main__":
    main()
