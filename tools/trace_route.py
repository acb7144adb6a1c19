"""Trace a command: print how many functions of dialeval it calls, in how many modules, and how deeply they nest.

    python tools/trace_route.py score a.txt b.txt -r refs.txt -o run
    python tools/trace_route.py --list score a.txt b.txt -r refs.txt -o run

Without arguments it scores two small files that it makes itself. `--list` prints every module with the number of its
functions that were called. Comprehensions and lambdas count as part of the function that holds them. The last line
also has the number of functions with more than one line of code, which leaves out properties and other accessors.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

import dialeval
from dialeval.cli.main import main

PACKAGE = str(Path(dialeval.__file__).parent)


class Trace:
    """Count functions and frames of dialeval while commands run."""

    def __init__(self) -> None:
        self.called: set[CodeType] = set()
        self.deepest = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """Take in one event of `sys.setprofile`."""
        if event != "call" or not _is_function(frame.f_code):
            return
        self.called.add(frame.f_code)
        depth, caller = 0, frame.f_back
        while caller is not None:
            depth, caller = depth + _is_function(caller.f_code), caller.f_back
        self.deepest = max(self.deepest, depth + 1)


def _is_function(code: CodeType) -> bool:
    is_body = not code.co_flags & inspect.CO_OPTIMIZED  # of a module or a class
    return code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<") and not is_body


def trace(arguments: list[str]) -> Trace:
    """Run a command of dialeval and return its trace."""
    found = Trace()
    sys.argv = ["dialeval", *arguments]
    sys.setprofile(found)
    threading.setprofile(found)
    try:
        main()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return found


def _sample(folder: Path) -> list[str]:
    """Write two small systems and their references, and return the command that scores them."""
    texts = {
        "a.txt": "hello there\ni like it\nno idea\n",
        "b.txt": "hello\nit is good\ni know\n",
        "refs.txt": "hi there\ni like it a lot\nno\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return ["score", *(str(folder / name) for name in ("a.txt", "b.txt")), "-r", str(folder / "refs.txt")]


if __name__ == "__main__":
    lists_modules = "--list" in sys.argv
    given = [argument for argument in sys.argv[1:] if argument != "--list"]
    with tempfile.TemporaryDirectory() as place:
        command = given or [*_sample(Path(place)), "-o", str(Path(place) / "run")]
        result = trace(command)
    modules = Counter(str(Path(code.co_filename).relative_to(PACKAGE)) for code in result.called)
    if lists_modules:
        for module, number in sorted(modules.items()):
            print(f"{number:4}  {module}")
    # The line of `def` counts too.
    longer = sum(len({line for *_, line in code.co_lines() if line}) > 2 for code in result.called)
    print(f"{len(result.called)} functions ({longer} longer than a line) in {len(modules)} modules, ", end="")
    print(f"{result.deepest} frames deep")
