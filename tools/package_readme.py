"""Make the links of README.md absolute in the package, where PyPI shows it (hatchling's custom metadata hook).

The address is `Source` under `[project.urls]` in pyproject.toml, and is written nowhere else. Without it links stay
relative.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGES = (".png", ".svg")
_LINK = re.compile(r'(?P<before>\]\(|(?:src|srcset|href)=")(?P<path>(?![a-z]+:|#|/)[^)"#\s]+)')


def make_links_absolute(text: str, source: str | None) -> str:
    """Return a page of the repository's root with links that work anywhere.

    Args:
        text: The page, in Markdown.
        source: The address of the repository, such as `https://github.com/OWNER/NAME`; None leaves the links.

    Returns:
        The page; images lead to the files themselves, other links to the pages about them.
    """
    if source is None:
        return text

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match["path"].endswith(IMAGES) else "blob"
        return f"{match['before']}{source.rstrip('/')}/{kind}/main/{match['path']}"

    return _LINK.sub(link, text)


class ReadmeHook(MetadataHookInterface):
    """Set `readme` of the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read README.md and make its links absolute."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": make_links_absolute(text, source)}
