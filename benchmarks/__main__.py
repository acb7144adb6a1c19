"""Print every figure that the README quotes: `python -m benchmarks [SECTION...]`."""

from __future__ import annotations

import sys

from benchmarks import bleu, responses, startup, tokenising

SECTIONS = {"startup": startup, "tokenising": tokenising, "bleu": bleu, "responses": responses}

for name in sys.argv[1:] or SECTIONS:
    print(f"\n{(SECTIONS[name].__doc__ or '').splitlines()[0]}\n")
    for what, figure in SECTIONS[name].figures():
        print(f"- {what}: {figure}", flush=True)
