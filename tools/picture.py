"""Make the pictures of the README and of the docs: a terminal, and the top of reports of the sample, light and dark.

    python tools/picture.py

Needs Chromium on the path (tools/get-chromium.sh) and Playwright.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import dialeval
from dialeval import sample_data

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WIDTH, HEIGHT = 1280, 800
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

COMMANDS = (
    "dialeval sample-data logs --part logs",
    "dialeval score logs/v1.jsonl logs/v2.jsonl -m judge,length -o results",
    "dialeval report results --save report.html",
)
COLUMNS, LINE, PAUSE = 80, 20, 1.5
STYLE = """text { font: 14px monospace; fill: #ddd; white-space: pre; animation: appear 0.1s backwards }
.command { fill: #7ec699 } .verdict { fill: #ff8f7a; font-weight: bold }
@keyframes appear { from { opacity: 0 } }"""


def record_terminal(folder: Path) -> str:
    """Run the commands in a folder, and return an SVG in which their lines appear one after the other."""
    texts: list[str] = []
    seconds = 0.0
    for command in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            cwd=folder,
            env={**os.environ, "COLUMNS": str(COLUMNS)},
            capture_output=True,
            text=True,
            check=True,
        )
        printed = f"{done.stdout}{done.stderr}".replace(f"{folder}/", "").splitlines()
        for number, line in enumerate([f"$ {command}", *printed, ""]):
            kind = "command" if number == 0 else "verdict" if line[:1] in tuple("▲▼") else "output"
            place = f'x="16" y="{(len(texts) + 2) * LINE}" style="animation-delay: {seconds:.2f}s"'
            texts.append(f'<text class="{kind}" {place}>{escape(line.rstrip())}</text>')
            seconds += 0.05 if number else PAUSE
    box = f'width="{COLUMNS * 9}" height="{(len(texts) + 2) * LINE}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-label="A comparison in a terminal">'
    return "\n".join([head, f"<style>{STYLE}</style>", f'<rect {box} rx="8" fill="#1d1f21"/>', *texts, "</svg>\n"])


def make_runs() -> dict[str, dialeval.Run]:
    """Return the runs of the pictures by the name of their file."""
    logs, agents = sample_data.folder() / "logs", sample_data.folder() / "agents"
    chats = {name: logs / f"{name}.jsonl" for name in ("v1", "v2")}
    trials = {name: agents / f"{name}.jsonl" for name in ("careful", "quick")}
    return {
        "report": dialeval.evaluate(chats, metrics="judge,length", keep="place"),
        "report-agents": dialeval.evaluate(trials, metrics="pass-hat,call-f1,reward,length"),
    }


def main() -> None:
    """Write the pictures to docs/images/."""
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        sys.exit("needs Chromium on the path: sh tools/get-chromium.sh")
    with TemporaryDirectory() as folder:
        (IMAGES / "terminal.svg").write_text(record_terminal(Path(folder)), encoding="utf-8")
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
