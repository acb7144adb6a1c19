"""The sample that ships with dialeval: an invented town's conversations, three systems that answer in them.

Everything runs on it without a download. What each file holds is said in `README.md` beside this file.
"""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """Where the sample's files are."""
    return Path(__file__).resolve().parent
