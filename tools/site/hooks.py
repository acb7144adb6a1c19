"""What MkDocs asks when it builds the site (`make docs`): pages that are made from code, and links that fit.

Pages stand where GitHub finds them: README.md, CONTRIBUTING.md and others in the root of the repository, the rest in
docs/. Here all of them become pages of one site, and links between them are made to fit. A link to a file that is no
page (a source, a test) is left as its text.
"""

from __future__ import annotations

import re
import shutil
import sys
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
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/scale.md": "benchmarks/scale.md",
    "benchmarks/sizes.md": "benchmarks/sizes.md",
    "benchmarks/sizes.svg": "benchmarks/sizes.svg",
}
"""Pages and pictures outside of docs/, each with its place in the site."""
MADE = {
    "python-reference.md": reference.python_page,
    "commands.md": reference.commands_page,
    "schemas.md": reference.schemas_page,
}
GALLERY = "gallery.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the metrics into the navigation, and link to the home of the project if it has one."""
    config.repo_url = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"].get("Source")
    for section in config.nav or []:
        if isinstance(section, dict) and "Metrics" in section:
            section["Metrics"].extend(metrics.navigation())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/."""
    texts = {place: (ROOT / name).read_text(encoding="utf-8") for name, place in BROUGHT.items()}
    texts |= {place: made() for place, made in MADE.items()}
    texts |= {**dict(metrics.pages()), **dict(reference.schemas())}
    for place, text in texts.items():
        files.append(File.generated(config, place, content=text))
    with TemporaryDirectory() as folder:
        for path in gallery(Path(folder)):
            files.append(File.generated(config, f"gallery/{path.name}", content=path.read_bytes()))
    return files


def gallery(folder: Path) -> list[Path]:
    """The reports and figures of the gallery, made in a folder by the commands on its page."""
    runner = blocks.Runner(folder)
    shutil.copytree(sample_data.folder(), folder / "sample")
    for block in blocks.blocks((ROOT / "docs" / GALLERY).read_text(encoding="utf-8")):
        for command in blocks.commands(block.code):
            runner.command(command)
    return sorted([*folder.glob("*.html"), *figures.write(folder)])


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make links fit; names of metrics lead to their pages."""
    place = page.file.src_uri
    if place == "metrics.md":
        markdown = metrics.linked(markdown)
    return fitted(markdown, place)


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
