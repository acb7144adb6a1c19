"""Make the pictures of the README and of the docs: the top of reports of the shipped sample, and a terminal as SVG.

    python tools/picture.py

Reports are pictures in light and dark; they need Chromium on the path (tools/get-chromium.sh) and Playwright. The
terminal shows the README's command and what it prints.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

import dialeval
from dialeval import sample_data

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WIDTH, HEIGHT = 1280, 800
COLUMNS = 80
COMMAND = ("dialeval", "score", "v1.jsonl", "v2.jsonl", "-m", "judge,length", "-o", "results")
TERMINAL = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As of Rich, without the fonts that its own template loads from a network."""
ANNOTATED = "report"
PARTS = (".verdict svg", ".lead", ".read", ".key", "figure", "#dialogues", "#where")
"""What the picture of docs/report.md numbers, in the order of its list."""
MARK = """parts => parts.forEach((part, n) => {
    const mark = document.body.appendChild(document.createElement("b"));
    const {left, top} = document.querySelector(part).getBoundingClientRect();
    mark.textContent = n + 1;
    mark.style = `position: absolute; left: ${left - 42}px; top: ${top}px; width: 28px; border-radius: 50%;
        background: #7b3fc4; color: #fff; font: bold 16px/28px sans-serif; text-align: center`;
})"""


def make_runs() -> dict[str, dialeval.Run]:
    """Return the runs of the pictures by the name of their file."""
    logs, agents = sample_data.folder() / "logs", sample_data.folder() / "agents"
    chats = {name: logs / f"{name}.jsonl" for name in ("v1", "v2")}
    trials = {name: agents / f"{name}.jsonl" for name in ("careful", "quick")}
    return {
        "report": dialeval.evaluate(chats, metrics="judge,length", keep="place"),
        "report-agents": dialeval.evaluate(trials, metrics="pass-hat,call-f1,reward,length"),
    }


def draw_terminal() -> str:
    """Run the README's command on the sample in a terminal of 80 columns; return its output as SVG."""
    with TemporaryDirectory() as folder:
        for name in ("v1.jsonl", "v2.jsonl"):
            shutil.copy(sample_data.folder() / "logs" / name, folder)
        environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
        command = [sys.executable, "-m", *COMMAND]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ {' '.join(COMMAND)}\n{done.stdout}{done.stderr}".rstrip()))
    return console.export_svg(title="", code_format=TERMINAL, unique_id="terminal")


def main() -> None:
    """Write the pictures to docs/images/."""
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        sys.exit("needs Chromium on the path: sh tools/get-chromium.sh")
    (IMAGES / "terminal.svg").write_text(draw_terminal(), encoding="utf-8")
    with TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, run in make_runs().items():
            path = dialeval.report(run, Path(folder) / "report.html", date="2026-01-01")
            for scheme, ending in (("light", ""), ("dark", "-dark")):
                page = browser.new_page(
                    viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark" if ending else "light"
                )
                page.goto(path.as_uri())
                pictures = [IMAGES / f"{name}{ending}.png"]
                page.screenshot(path=pictures[0])
                if name == ANNOTATED:
                    page.set_viewport_size({"width": WIDTH, "height": 3 * HEIGHT // 2})
                    page.evaluate(MARK, PARTS)
                    pictures.append(IMAGES / f"{name}-annotated{ending}.png")
                    page.screenshot(path=pictures[1])
                for picture in pictures:
                    print(f"{picture.name}, {scheme}: {picture.stat().st_size} bytes")
        browser.close()


if __name__ == "__main__":
    main()
