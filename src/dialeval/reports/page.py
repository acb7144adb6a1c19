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


def page(title: str, lead: str, sections: Sequence[Section], data: str, scripts: Sequence[str]) -> str:
    """The page; `lead` and `data` are markup, `scripts` run in this order, the first before anything is shown."""
    style = asset("report.css")
    scripts = [re.sub("</(?=script)", r"<\\/", each, flags=re.IGNORECASE) for each in scripts]
    allowed = " ".join(map(_hash, scripts))
    policy = f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    contents = "".join(f'<li><a href="#{each.name}">{each.title}</a></li>' for each in sections)
    body = "".join(
        f'<section id="{each.name}" aria-labelledby="{each.name}-title">'
        f'<h2 id="{each.name}-title">{each.title}</h2>{each.content}</section>\n'
        for each in sections
    )
    first, *rest = (f"<script>{each}</script>\n" for each in scripts)
    shown = escape(plain(title))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{shown}</title>\n<style>{style}</style>\n{first}</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the results</a>\n'
        f'<header><div class="top"><h1><bdi dir="auto">{shown}</bdi></h1>{_THEME}</div>{lead}</header>\n'
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f'<main id="main" tabindex="-1">\n{body}</main>\n{data}{"".join(rest)}</body>\n</html>\n'
    )


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
