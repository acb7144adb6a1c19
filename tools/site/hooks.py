"""Hooks of MkDocs for the site (`make docs`): pages that are made from code, links that fit, and llms.txt.

CONTRIBUTING.md and others are in the root of the repository, the rest in docs/. All of them become pages of one site,
with links that fit. A link to a file that is no page (a source, a test) becomes its text.
"""

from __future__ import annotations

import re
import shutil
import sys
from itertools import cycle
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from dialeval import sample_data
from tools.site import blocks, figures, metrics, reference

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
BROUGHT = {
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/scale.md": "benchmarks/scale.md",
    "benchmarks/sizes.md": "benchmarks/sizes.md",
    "benchmarks/sizes.svg": "benchmarks/sizes.svg",
}
"""Pages and pictures outside of docs/, each with its place in the site."""
MADE = {
    "commands.md": reference.commands_page,
}
GALLERY = "report.md", "## Gallery\n"
STACKED_COLUMNS, STACKED_CHARACTERS = 3, 60
"""Tables with so many columns and such a long cell are stacked on phones; tables of numbers scroll."""
HOME = "Home"
_SECTIONS: dict[str, list[str]] = {}
"""Lines of llms.txt by section of the navigation, collected while pages are built."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Link to the home of the project if it has one."""
    _SECTIONS.clear()
    config.repo_url = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"].get("Source")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    texts = {place: (ROOT / name).read_text(encoding="utf-8") for name, place in BROUGHT.items()}
    texts |= {place: made() for place, made in MADE.items()}
    texts |= dict(metrics.pages())
    for place, text in texts.items():
        files.append(File.generated(config, place, content=text))
    with TemporaryDirectory() as folder:
        for path in gallery(Path(folder)):
            files.append(File.generated(config, f"gallery/{path.name}", content=path.read_bytes()))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt: every page with its first paragraph, for programs that read the site."""
    (Path(config.site_dir) / "llms.txt").write_text(_index(config), encoding="utf-8")


def _index(config: MkDocsConfig) -> str:
    parts = [f"# {config.site_name}", f"> {config.site_description}"]
    for section in (title for entry in config.nav or [] for title in entry):
        parts += [f"## {section}", "\n".join(_SECTIONS[section])]
    return "\n\n".join(parts) + "\n"


def gallery(folder: Path) -> list[Path]:
    """The reports and figures of the gallery, made in a folder by the commands on its page."""
    runner = blocks.Runner(folder)
    shutil.copytree(sample_data.folder(), folder / "sample")
    page, heading = GALLERY
    for block in blocks.blocks((ROOT / "docs" / page).read_text(encoding="utf-8").partition(heading)[2]):
        for command in blocks.commands(block.code):
            runner.command(command)
    return sorted([*folder.glob("*.html"), *figures.write(folder)])


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make links fit; names of metrics lead to their pages."""
    place = page.file.src_uri
    if page.meta.get("search", {}).get("exclude") is not True:
        *_others, section = (HOME, *(str(ancestor.title) for ancestor in page.ancestors))
        _SECTIONS.setdefault(section, []).append(f"- [{page.title}]({page.url}): {_summarize(markdown)}")
    if place == "metrics.md":
        markdown = metrics.linked(markdown)
    elif place == "formats.md":
        markdown = reference.list_formats(markdown)
    return fitted(markdown, place)


def on_page_content(html: str, **_: Any) -> str:
    """Label the cells of wide tables of text, which phones show below each other (docs/assets/site.css)."""
    return re.sub(r"<table>.*?</table>", lambda match: _labeled(match[0]), html, flags=re.DOTALL)


def _labeled(table: str) -> str:
    heads = [re.sub(r"<.*?>", "", head) for head in re.findall(r"<th[^>]*>(.*?)</th>", table, re.DOTALL)]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table, re.DOTALL)
    if len(heads) < STACKED_COLUMNS or max(map(len, cells), default=0) < STACKED_CHARACTERS:
        return table
    labels = cycle(heads)
    return re.sub("<td", lambda _: f'<td data-label="{next(labels)}"', table).replace("<table>", "<table data-stacked>")


def _summarize(markdown: str) -> str:
    """Return the first sentence of a page, without links."""
    prose = re.sub(r"^```.*?^```|^[#<|!].*?$|^---\n.*?^---$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    first = next((part for part in prose.split("\n\n") if part.strip()), "")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|\*\*", r"\1", " ".join(first.split()))
    return re.split(r"(?<=[.?:])\s", text, maxsplit=1)[0].rstrip(":")


def fitted(markdown: str, place: str) -> str:
    """A page with links that lead to pages of the site."""
    brought = {site: name for name, site in BROUGHT.items()}
    source = brought.get(place, f"docs/{place}")
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _linked(part, source, place) for part in parts)


def _linked(text: str, source: str, place: str) -> str:
    def link(match: re.Match[str]) -> str:
        said, target, anchor = match["said"], match["target"], match["anchor"] or ""
        if "://" in target or not target:
            return match[0]
        name = normpath(PurePosixPath(source).parent / target)
        there = BROUGHT.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else None)
        if there is None:
            return said
        return f"{match['image']}[{said}]({relpath(there, PurePosixPath(place).parent)}{anchor})"

    return re.sub(r"(?P<image>!?)\[(?P<said>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)", link, text)
