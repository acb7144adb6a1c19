"""`dialeval.evaluate` with its options in one mapping, for tests that pass on what a case gives."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import dialeval

_READING, _EXECUTION = ({each.name for each in fields(kind)} for kind in (dialeval.Reading, dialeval.Execution))


def evaluate(*given: Any, **options: Any) -> dialeval.Run:
    """Evaluate; options of reading and execution stand next to the others."""
    reading = {name: options.pop(name) for name in _READING & options.keys()}
    execution = {name: options.pop(name) for name in _EXECUTION & options.keys()}
    options = {"reading": dialeval.Reading(**reading), "execution": dialeval.Execution(**execution), **options}
    return dialeval.evaluate(*given, **options)
