"""The names of the module `lsdscc.data`: the file of reference groups is that of the installed data pack `lsdscc`."""

from pathlib import Path

from dialeval.suites.lsdscc.data import find_reference_groups

__all__ = ["default_reference_set"]

default_reference_set: Path


def __getattr__(name: str) -> Path:
    if name != "default_reference_set":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return find_reference_groups()
