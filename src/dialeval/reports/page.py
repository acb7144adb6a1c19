"""The frame of the page: head, policy, contents, sections, scripts.

A content security policy forbids every request. It allows the page's own style and scripts by their hashes and nothing
else: no handler in an attribute, no `eval`, no style attribute. What the scripts show comes from JSON in the page.
"""

from __future__ import annotations

import base64
import hashlib
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.reports.figures import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.reports.markup import Section

ASSETS = Path(__file__).with_name("assets")
_THEME = (
    '<button type="button" id="theme" hidden aria-label="Colours"><span aria-hidden="true">◐</span> '
    '<span id="theme-now">Auto</span></button>'
)


def asset(*files: str) -> str:
    """Files of the package that become part of the page, one after the other."""
    return "".join((ASSETS / file).read_text(encoding="utf-8") for file in files)


def script(*files: str) -> str:
    """Scripts of the package as one, with names of their own."""
    return f'(() => {{\n"use strict";\n{asset(*files)}}})();\n'


MARK = '<meta name="generator" content="dialeval">'
"""The line by which a page of ours is told from a file of somebody else."""


def page(title: str, lead: str, sections: Sequence[Section], data: str, scripts: Sequence[str]) -> str:
    """The page; `lead` and `data` are markup, `scripts` run in this order, the first before anything is shown."""
    contents = "".join(f'<li><a href="#{each.name}">{each.title}</a></li>' for each in sections)
    body = "".join(
        f'<section id="{each.name}" aria-labelledby="{each.name}-title">'
        f'<h2 id="{each.name}-title">{each.title}</h2>{each.content}</section>\n'
        for each in sections
    )
    return document(
        title,
        '<a class="skip" href="#main">Skip to the results</a>\n'
        f"{heading(title, lead)}"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f'<main id="main" tabindex="-1">\n{body}</main>\n{data}',
        asset("report.css"),
        scripts,
    )


def heading(title: str, lead: str) -> str:
    """The head of a page: its title, the choice of colours, and some markup."""
    shown = escape(plain(title))
    return f'<header><div class="top"><h1><bdi dir="auto">{shown}</bdi></h1>{_THEME}</div>{lead}</header>\n'


def document(title: str, body: str, style: str, scripts: Sequence[str], more_policy: str = "") -> str:
    """A whole document from its body, which is markup; the first script runs before anything is shown."""
    scripts = [re.sub("</(?=script)", r"<\\/", each, flags=re.IGNORECASE) for each in scripts]
    allowed = " ".join(map(_hash, scripts))
    policy = f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    first, *rest = (f"<script>{each}</script>\n" for each in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}{more_policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"{MARK}\n"
        f"<title>{escape(plain(title))}</title>\n<style>{style}</style>\n{first}</head>\n<body>\n"
        f"{body}{''.join(rest)}</body>\n</html>\n"
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
