"""Digests of changed documents computed anew, as a forger would: what is behind them is reached."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from dialeval.core.validation import content_digest


def write_sealed(document: dict[str, Any], file: Path) -> None:
    """Write a changed document with the digest of its content."""
    content = json.dumps(document, ensure_ascii=False)
    with suppress(TypeError, ValueError):  # half a character, numbers beyond 64 bits, too deep: it stays without
        document = {**document, "digest": content_digest(json.loads(content))}
    file.write_text(json.dumps(document, ensure_ascii=False), "utf-8", "surrogatepass")
