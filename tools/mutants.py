"""Mutation testing: does a test fail when the source is wrong? `python tools/mutants.py --number 20 --area core`.

A mutant is a copy of the checkout with one small error in it: `<` for `<=`, `+` for `-`, `and` for `or`, a constant off
by one, a `not` left out, another default, `min` for `max`, another value returned. Tests that notice kill it. A mutant
that survives shows a line that no test holds, unless the change makes no difference; those are explained in
`mutants-survivors.toml` beside this file and counted apart.

Mutants are made from the syntax tree, never in docstrings, messages, annotations, decorators, `__all__` or
`if TYPE_CHECKING`. Which ones are taken depends on the seed and on the changed lines themselves, so that an edit
elsewhere leaves the choice as it was.

First the tests run once without a mutant, without those of `NOT_RECORDED`, and coverage.py records which lines each of
them runs. Then each mutant is run in a copy of the tree, with the tests that run its line and, if they pass, with those
that run other lines of its module; compiled kernels, for which no lines are recorded, have only these. A test that
never ends kills its mutant as well. `--map` keeps the record: as long as no source is edited, other seeds need no new
one. `--tests` runs given test files instead, without a record.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src") / "dialeval"
AREAS = ("core", "text", "io", "metrics", "engine", "stats", "analysis", "suites", "judges", "human")
EXPLAINED = Path(__file__).with_name("mutants-survivors.toml")
NOT_COPIED = (".*", "build", "dist", "dialeval-demo", "*.html")
RECORDED = "not slow and not browser and not llm"
NOT_RECORDED = ("browser", "packaging", "tools")
"""Folders of tests that are left out, though a test of them may kill a mutant: the score is a lower bound."""
RECORD = "DIALEVAL_RECORD_TESTS"
"""The variable that names the folder for what pytest records."""
STEP_SECONDS = (15.0, 60.0, 60.0)
"""As much as the tests of each step may take without a mutant."""
SHORT_FILE = 10.0
PATIENCE_TIMES, PATIENCE_SECONDS = 4, 60
"""A mutant's tests may take this many times as long as without a mutant, and so many seconds more."""

RUNNING: set[int] = set()
"""The runs of pytest under way, to be ended when this program is."""

COMPARISONS: dict[type[ast.cmpop], tuple[str, tuple[str, ...]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
}
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: (r"\*\*", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: (r"\|", "&"),
}
_PAIRS = [("min", "max"), ("any", "all"), ("minimum", "maximum"), ("argmin", "argmax"), ("floor", "ceil")]
UNCHANGED = ("nan", "math.nan", "np.nan", 'float("nan")')
"""Values to which nothing can be added."""
OPPOSITES = {name: other for pair in _PAIRS for name, other in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One change of one file: `before` and `after` are the changed lines, without what surrounds them."""

    file: str
    line: int
    before: str
    after: str
    source: bytes
    lines: range
    """Those of the whole statement; of its head where it has a body."""

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.file, self.before, self.after

    def compiles(self) -> bool:
        """Return whether the changed source is a program."""
        try:
            compile(self.source, self.file, "exec")
        except SyntaxError:
            return False
        return True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before}  ->  {self.after}"


@dataclass(frozen=True)
class Change:
    """The bytes from `start` to `stop` are replaced."""

    start: int
    stop: int
    text: str


class Changes(ast.NodeVisitor):
    """All changes that can be made to a source."""

    def __init__(self, source: str) -> None:
        self.source = source.encode()
        self.lines = [0]
        for line in self.source.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.changes: list[Change] = []
        self.returns: list[str] = []
        self.visit(ast.parse(source))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends, in bytes."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, stop = self.span(node)
        return self.source[start:stop].decode()

    def replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        self.changes.append(Change(*self.span(node), text))

    def between(self, left: ast.expr, right: ast.expr, pattern: str, text: str) -> None:
        """Replace the operator between two expressions."""
        start, stop = self.span(left)[1], self.span(right)[0]
        gap = self.source[start:stop].decode()
        found = re.search(pattern, gap)
        if found and "#" not in gap:
            self.changes.append(Change(start + found.start(), start + found.end(), text))

    # What is left alone

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Messages are read by people."""

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                self.visit(child)
            return
        self.negate(node.test)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and "TypeAlias" not in ast.unparse(node.annotation):
            self.default(node.value)
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        made_of_types = isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith(("TypeVar", "cast"))
        if not names & {"__all__", "__slots__"} and not made_of_types:
            self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for child in node.body:
            self.visit(child)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for value in (*node.args.defaults, *node.args.kw_defaults):
            if value is not None:
                self.default(value)
                self.visit(value)
        self.returns.append(ast.unparse(node.returns) if node.returns else "")
        for child in node.body:
            self.visit(child)
        self.returns.pop()

    # What is changed

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            pattern, others = COMPARISONS[type(operator)]
            for other in others:
                self.between(left, right, rf"(?<!\w){pattern}(?!\w)", other)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, rf"\b{word}\b", other)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        of_types = isinstance(node.op, ast.BitOr) and any(
            isinstance(side, ast.Constant) or (isinstance(side, ast.Name) and side.id in {"str", "int", "float"})
            for side in (node.left, node.right)
        )
        if type(node.op) in OPERATORS and not of_types and not self.is_text(node):
            self.between(node.left, node.right, *OPERATORS[type(node.op)])
        self.generic_visit(node)

    def is_text(self, node: ast.BinOp) -> bool:
        """Whether strings are put together: another operator would be a TypeError, which any test finds."""
        return any(
            isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
            for side in (node.left, node.right)
        )

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if type(node.op) in OPERATORS:
            self.between(node.target, node.value, *OPERATORS[type(node.op)])
        self.visit(node.value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self.replace(node, f"({self.text(node.operand)})")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self.negate(node.test)
        self.generic_visit(node)

    def negate(self, test: ast.expr) -> None:
        """A condition that is a plain value; comparisons and `not` are changed as such."""
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            self.replace(test, f"not {self.text(test)}")

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self.replace(node, str(node.value + 1))
            if node.value > 0:
                self.replace(node, str(node.value - 1))
        elif isinstance(node.value, float):
            self.replace(node, repr(node.value + 1))

    def default(self, node: ast.expr) -> None:
        """A default that is a string; numbers are changed as constants."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.replace(node, repr(node.value + "x").replace("'", '"'))

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in OPPOSITES:
            _, stop = self.span(node.func)
            self.changes.append(Change(stop - len(name), stop, OPPOSITES[name]))
        self.visit(node.func)
        for value in node.args:
            self.visit(value)
        for keyword in node.keywords:
            # zip(strict=True) and its like say what holds anyway.
            if keyword.arg != "strict":
                self.visit(keyword.value)

    def visit_Return(self, node: ast.Return) -> None:
        value = node.value
        if value is None:
            return
        text = self.text(value)
        if not isinstance(value, ast.Constant) and text not in UNCHANGED:
            others = {"bool": f"not ({text})", "int": f"({text}) + 1", "float": f"({text}) + 1", "str": '""'}
            self.replace(value, others.get(self.returns[-1], "None"))
        self.visit(value)

    def visit_Break(self, node: ast.Break) -> None:
        self.replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.replace(node, "break")


def mutants(source: str, file: str) -> list[Mutant]:
    """All mutants of a source, in the order of the source; a few of them cannot be compiled."""
    every = Changes(source)
    old = every.source
    statements = list(statement_lines(source))
    made = []
    for change in sorted(set(every.changes), key=lambda each: (each.start, each.stop, each.text)):
        new = old[: change.start] + change.text.encode() + old[change.stop :]
        first = old.rfind(b"\n", 0, change.start) + 1
        last = (old + b"\n").index(b"\n", change.stop)
        shown = (old[first:last], old[first : change.start] + change.text.encode() + old[change.stop : last])
        before, after = (" ".join(part.decode().split()) for part in shown)
        line = old.count(b"\n", 0, change.start) + 1
        lines = min((lines for lines in statements if line in lines), key=len)
        made.append(Mutant(file, line, before, after, new, lines))
    return made


def statement_lines(source: str) -> Iterator[range]:
    """Yield the lines of every statement; of its head where it has a body."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            body = getattr(node, "body", None)
            first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
            last = body[0].lineno - 1 if body else getattr(node, "end_lineno", None) or first
            yield range(first, max(first, last) + 1)


def chosen(every: Iterable[Mutant], number: int, seed: int) -> list[Mutant]:
    """Some mutants that compile, at most one for a line: those whose digests with the seed are the lowest."""

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(repr((seed, mutant.identity)).encode()).digest()

    taken: dict[tuple[str, int], Mutant] = {}
    for mutant in sorted(every, key=rank):
        if len(taken) == number:
            break
        if (mutant.file, mutant.line) not in taken and mutant.compiles():
            taken[mutant.file, mutant.line] = mutant
    return list(taken.values())


def mutants_of(area: str, lines: str | None = None) -> Iterator[Mutant]:
    """All mutants of a folder's modules, or of one module, or of some lines of it."""
    first, _, last = (lines or "1-").partition("-")
    wanted = range(int(first), int(last or 1 << 30) + 1)
    place = ROOT / PACKAGE / area
    if not place.exists():
        raise SystemExit(f"{PACKAGE / area} does not exist")
    for path in sorted(place.rglob("*.py")) or [place]:
        every = mutants(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
        yield from (mutant for mutant in every if mutant.line in wanted)


# Which tests run which lines: this file is also a plugin of pytest that records it with coverage.py.


class Recorder:
    """Record the lines that each test runs, and its seconds, in two files for each process of pytest."""

    def __init__(self, folder: Path) -> None:
        from coverage import Coverage

        self.name = folder / os.environ.get("PYTEST_XDIST_WORKER", "main")
        self.coverage = Coverage(f"{self.name}.sqlite", source=[str(PACKAGE)], concurrency="thread", messages=False)
        self.coverage.set_option("run:relative_files", True)
        self.seconds: dict[str, float] = {}
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record one test with its fixtures."""
        start = time.monotonic()
        self.coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")
            self.seconds[item.nodeid] = time.monotonic() - start

    def pytest_sessionfinish(self) -> None:
        """Write what was recorded."""
        self.coverage.stop()
        self.coverage.save()
        Path(f"{self.name}.json").write_text(json.dumps(self.seconds), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record tests; with workers, in those that run them."""
    if (folder := os.environ.get(RECORD)) and (hasattr(config, "workerinput") or not config.getoption("numprocesses")):
        config.pluginmanager.register(Recorder(Path(folder)))


@dataclass
class Map:
    """Which tests run a line, and how long each test takes."""

    lines: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, folder: Path) -> Map:
        """Read what processes of pytest have recorded."""
        from coverage import CoverageData

        found = cls({}, {})
        for path in sorted(folder.glob("*.json")):
            found.seconds.update(json.loads(path.read_text(encoding="utf-8")))
            data = CoverageData(str(path.with_suffix(".sqlite")))
            data.read()
            for file in data.measured_files():
                by_line = found.lines.setdefault(file, {})
                for line, tests in data.contexts_by_lineno(file).items():
                    by_line.setdefault(line, set()).update(filter(None, tests))
        return found

    def steps(self, mutant: Mutant) -> list[list[str]]:
        """Choose the tests of a mutant: a few that run the changed statement, more of these, others of its module."""
        by_line = self.lines.get(mutant.file, {})
        of_statement = set().union(*(by_line.get(line, ()) for line in mutant.lines))
        of_module = set().union(*by_line.values())
        own, taken, steps = f"test_{Path(mutant.file).stem}.py", set[str](), []
        for running, seconds in zip((of_statement, of_statement, of_module), STEP_SECONDS, strict=True):
            steps.append(self._choose(running - taken, own, seconds))
            taken.update(steps[-1])
        return [step for step in steps if step]

    def _choose(self, running: set[str], own: str, left: float) -> list[str]:
        """Take the file of the module's name and then those that take least, as long as seconds are left.

        Of a short file all tests are taken: only the first test that uses a fixture or a cached value makes it.
        """
        by_file: dict[str, list[str]] = {}
        for test in self.seconds:
            by_file.setdefault(test.partition("::")[0], []).append(test)
        wanted = {}
        for file in {test.partition("::")[0] for test in running}:
            is_short = sum(map(self.seconds.__getitem__, by_file[file])) < SHORT_FILE
            wanted[file] = by_file[file] if is_short else [test for test in by_file[file] if test in running]
        tests: list[str] = []
        for file in sorted(wanted, key=lambda name: (Path(name).name != own, self.time(wanted[name]), name)):
            for test in wanted[file]:
                left -= self.seconds[test]
                if left > 0:
                    tests.append(test)
        return tests

    def time(self, tests: Iterable[str]) -> float:
        """Return how long tests take without a mutant."""
        return sum(self.seconds[test] for test in tests)


@dataclass
class Given(Map):
    """Test files that run for every mutant."""

    def __init__(self, files: list[str]) -> None:
        super().__init__({}, dict.fromkeys(files, 10.0))

    def steps(self, mutant: Mutant) -> list[list[str]]:
        return [list(self.seconds)]


def record(tree: Path, folder: Path, jobs: int) -> None:
    """Run the tests once without a mutant; ends the program if one fails."""
    folder.mkdir(parents=True)
    ignored = [f"--ignore=tests/{name}" for name in NOT_RECORDED]
    arguments = ["-p", "tools.mutants", "-n", str(jobs), "--no-loadscope-reorder", *ignored, "-m", RECORDED]
    start = time.monotonic()
    if failed := run_tests(tree, arguments, None, **{RECORD: str(folder)}):
        shutil.rmtree(folder)
        raise SystemExit(f"the tests fail without a mutant: {failed}")
    print(f"{time.monotonic() - start:.0f} s for all tests without a mutant", flush=True)


def copied(source: Path, folder: Path) -> Path:
    """A copy of the tree in a folder, with the shared data beside it and its times as they were, for the caches."""
    tree = folder / "tree"
    shutil.copytree(source, tree, ignore=shutil.ignore_patterns(*NOT_COPIED))
    if (shared := ROOT.parent / "shared").exists():
        (folder / "shared").symlink_to(shared.resolve())
    return tree


def end(group: int) -> None:
    """Kill a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def run_tests(tree: Path, arguments: list[str], seconds: float | None, **variables: str) -> str:
    """What killed the mutant: a test, the time limit, a crash; nothing if all tests pass."""
    options = ["-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=tree,
        # On CI hypothesis tries the same every time.
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "CI": "1", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as run:
        RUNNING.add(run.pid)
        try:
            said, _ = run.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            said = ""
        finally:
            # Also what tests have left running.
            end(run.pid)
            RUNNING.discard(run.pid)
    if run.returncode in (0, 5):  # all passed, or there are none
        return ""
    if not said:
        return f"the time limit of {seconds:.0f} s"
    failed = re.search(r"^(?:FAILED|ERROR) (\S.*?)(?: - |$)", said, re.MULTILINE)
    if not failed and run.returncode == 4:
        raise SystemExit(f"pytest cannot run:\n{said}")
    return failed[1] if failed else f"a crash (exit status {run.returncode})"


def fate(mutant: Mutant, original: Path, tests: Map, steps: int) -> str:
    """What killed a mutant in the first steps of tests, or nothing."""
    with tempfile.TemporaryDirectory(prefix="dialeval-mutant-") as folder:
        tree = copied(original, Path(folder))
        (tree / mutant.file).write_bytes(mutant.source)
        for chosen_tests in tests.steps(mutant)[:steps]:
            names = Path(folder) / "tests"
            names.write_text("\n".join(chosen_tests), encoding="utf-8")
            seconds = PATIENCE_TIMES * tests.time(chosen_tests) + PATIENCE_SECONDS
            if killer := run_tests(tree, [f"@{names}"], seconds):
                return killer
    return ""


def explained() -> dict[tuple[str, str, str], str]:
    """Reasons why mutants make no difference."""
    table = tomllib.loads(EXPLAINED.read_text(encoding="utf-8")) if EXPLAINED.exists() else {}
    return {
        (each["file"], each["before"], after): each["reason"]
        for each in table.get("survivor", [])
        for after in ([each["after"]] if isinstance(each["after"], str) else each["after"])
    }


def main() -> int:
    """Run mutants, print the fate of each and the score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--number", type=int, default=100, help="mutants of all areas together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--area", action="append", help="a folder or module of the package, such as io or io/rows.py; may be repeated"
    )
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="exit status 1 below this score")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=len(STEP_SECONDS), help="1 is fast, and leaves more survivors")
    parser.add_argument("--lines", metavar="A-B", help="of a module given by --area: mutants of these lines only")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="run these test files instead of recorded tests")
    parser.add_argument("--map", type=Path, metavar="DIR", help="which tests run which lines, kept for the next time")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    areas = asked.area or AREAS
    share, rest = divmod(asked.number, len(areas))
    picked = [
        mutant
        for place, area in enumerate(areas)
        for mutant in chosen(mutants_of(area, asked.lines), share + (place < rest), asked.seed)
    ]
    if asked.list:
        print(*picked, sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="dialeval-mutants-") as folder:
        original = copied(ROOT, Path(folder))
        recorded = (asked.map or Path(folder) / "map").resolve()
        if not recorded.exists() and not asked.tests:
            record(original, recorded, asked.jobs)
        tests = Given(asked.tests) if asked.tests else Map.read(recorded)
        fates = []
        with ThreadPoolExecutor(asked.jobs) as pool:
            try:
                found = pool.map(lambda each: fate(each, original, tests, asked.steps), picked)
                for mutant, killer in zip(picked, found, strict=True):
                    fates.append(killer)
                    print(f"killed by {killer}:  {mutant}" if killer else f"SURVIVED  {mutant}", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for group in list(RUNNING):
                    end(group)
                raise
    return report(picked, fates, asked.at_least)


def report(picked: list[Mutant], fates: list[str], at_least: float) -> int:
    """Print the survivors and the score; the exit status."""
    reasons = explained()
    survivors = [mutant for mutant, killer in zip(picked, fates, strict=True) if not killer]
    equivalent = [mutant for mutant in survivors if mutant.identity in reasons]
    counted = len(picked) - len(equivalent)
    killed = len(picked) - len(survivors)
    score = 100 * killed / counted if counted else 100.0
    for mutant in survivors:
        print(f"\n{mutant}\n    {reasons.get(mutant.identity, 'survived and is not explained')}")
    print(f"\n{killed} of {counted} killed: {score:.1f} %; {len(equivalent)} more make no difference and are explained")
    return int(score < at_least)


if __name__ == "__main__":
    sys.exit(main())
