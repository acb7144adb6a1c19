"""Print the figures that docs/speed.md quotes: `python -m benchmarks [SECTION...]`; all sections but the long ones."""

from __future__ import annotations

import sys
from importlib import import_module

SECTIONS = [
    "startup",
    "tokenizing",
    "bleu",
    "responses",
    "lsdscc",
    "multiwoz",
    "breakdown",
    "adem",
    "judge",
    "intervals",
    "comparing",
]
LONG = ["memory", "scale", "sizes", "traces"]

for name in sys.argv[1:] or SECTIONS:
    section = import_module(f"benchmarks.{name}")
    print(f"\n{(section.__doc__ or '').splitlines()[0]}\n")
    for what, figure in section.figures():
        print(f"- {what}: {figure}", flush=True)
