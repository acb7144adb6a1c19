"""Mutants are made where code is wrong in a way that a test can see, and nowhere else."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
from tools.mutants import Mutant, chosen, mutants

from tools import mutants as tool


def changed(source: str) -> set[str]:
    """The changed lines of all mutants of a source."""
    return {mutant.after for mutant in mutants(source, "module.py")}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("a <= b", {"a < b", "a > b"}),
        ("a == b != c", {"a != b != c", "a == b == c"}),
        ("a is not None", {"a is None"}),
        ("a is None", {"a is not None"}),
        ("a not in b", {"a in b"}),
        ("a in inside", {"a not in inside"}),
        ("(a) + (b)", {"(a) - (b)"}),
        ("a // b", {"a * b"}),
        ("a ** b", {"a * b"}),
        ("a << b", {"a >> b"}),
        ("a and b and c", {"a or b and c", "a and b or c"}),
        ("not a", {"(a)"}),
        ("x = True", {"x = False"}),
        ("x = 7", {"x = 8", "x = 6"}),
        ("x = 0", {"x = 1"}),
        ("x = 0.5", {"x = 1.5"}),
        ("x += y", {"x -= y"}),
        ("min(a, b)", {"max(a, b)"}),
        ("np.argmax(a)", {"np.argmin(a)"}),
        ("a if b else c", {"a if not b else c"}),
        ("ö, a < b", {"ö, a <= b", "ö, a >= b"}),
    ],
)
def test_a_line(line: str, expected: set[str]) -> None:
    assert changed(line) == expected


@pytest.mark.parametrize(
    ("returned", "expected"),
    [("bool", "not (f(x))"), ("int", "(f(x)) + 1"), ("str", '""'), ("Thing", "None")],
)
def test_another_value_is_returned(returned: str, expected: str) -> None:
    assert changed(f"def g(x) -> {returned}:\n    return f(x)\n") == {f"return {expected}"}
    assert changed(f"def g(x) -> {returned}:\n    return math.nan\n") == set()


def test_another_default() -> None:
    source = 'def g(x=1, *, how="well", what=None):\n    pass\n'
    assert changed(source) == {
        'def g(x=2, *, how="well", what=None):',
        'def g(x=0, *, how="well", what=None):',
        'def g(x=1, *, how="wellx", what=None):',
    }
    assert changed('class A:\n    how: str = "well"\n') == {'how: str = "wellx"'}


def test_loops_go_on_and_end_elsewhere() -> None:
    assert changed("for x in y:\n    if x:\n        continue\n    break\n") == {"if not x:", "break", "continue"}


LEFT_ALONE = '''
"""Of 3 things < 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    LIMIT = 5

__all__ = ["a", "b"]

Answer: TypeAlias = Literal[1] | None
T = TypeVar("T", bound=Literal[True])


@decorated(cache=True, size=3)
class Thing(Base[1]):
    """Has 2 sides."""

    count: Literal[1, 2]
    name: str | None

    @decorated(4)
    def f(self, x: Literal[3]) -> Literal[4]:
        """Gives 1 + 1."""
        zip(x, strict=True)
        raise ValueError(f"there are {x + 1} and not {x < 2}" + "!")
'''


def test_what_is_left_alone() -> None:
    assert changed(LEFT_ALONE) == set()


def test_every_mutant_is_another_program_that_compiles() -> None:
    path = Path(tool.__file__).with_name("metric_tables.py")
    source = path.read_text(encoding="utf-8")
    made = [mutant for mutant in mutants(source, path.name) if mutant.compiles()]
    assert len(made) > 20
    for mutant in made:
        assert ast.dump(ast.parse(mutant.source)) != ast.dump(ast.parse(source))
        line = source.splitlines()[mutant.line - 1]
        assert mutant.before.startswith(" ".join(line.split()))
        assert mutant.before != mutant.after


def test_an_edit_elsewhere_leaves_the_choice_as_it_was() -> None:
    lines = [f"x{number} = a{number} + b" for number in range(50)]
    every = mutants("\n".join(lines), "module.py")
    some = chosen(every, 10, seed=1)
    assert len({mutant.line for mutant in some}) == 10
    assert {mutant.identity for mutant in chosen(every, 10, seed=2)} != {mutant.identity for mutant in some}
    lines.insert(0, "# a comment")
    again = chosen(mutants("\n".join(lines), "module.py"), 10, seed=1)
    assert [mutant.identity for mutant in again] == [mutant.identity for mutant in some]
    assert [mutant.line for mutant in again] == [mutant.line + 1 for mutant in some]


def mutant(line: int) -> Mutant:
    return Mutant("src/dialeval/core/a.py", line, f"x = {line}", f"x = {line + 1}", b"", range(line, line + 1))


def test_the_score(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = tmp_path / "survivors.toml"
    reasons.write_text(
        '[[survivor]]\nfile = "src/dialeval/core/a.py"\nbefore = "x = 1"\nafter = ["x = 0", "x = 2"]\n'
        'reason = "never read"\n'
    )
    monkeypatch.setattr(tool, "EXPLAINED", reasons)
    fates = ["", "test_a", "test_b", ""]
    assert tool.report([mutant(line) for line in (1, 2, 3, 4)], fates, at_least=67) == 1
    said = capsys.readouterr().out
    assert "a.py:1: x = 1  ->  x = 2\n    never read" in said
    assert "a.py:4: x = 4  ->  x = 5\n    survived and is not explained" in said
    assert "2 of 3 killed: 66.7 %; 1 more" in said
    assert tool.report([mutant(1), mutant(2)], ["", "test_a"], at_least=100) == 0


SOURCE = """\
def larger(
    a, b
):
    if a > b:
        return (a
                > b)
    try:
        return False
    except ValueError as error:
        raise TypeError(1) from error
"""


@pytest.mark.parametrize(
    ("line", "expected"), [(2, range(1, 4)), (4, range(4, 5)), (6, range(5, 7)), (8, range(8, 9)), (10, range(10, 11))]
)
def test_the_lines_of_a_statement(line: int, expected: range) -> None:
    found = [lines for lines in tool.statement_lines(SOURCE) if line in lines]
    assert min(found, key=len) == expected


def test_tests_that_run_the_line_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "STEP_SECONDS", (9.5, 50.0, 50.0))
    seconds = {"test_c.py::x": 5.0, "test_c.py::y": 1.0, "test_d.py::x": 3.0, "test_d.py::y": 12.0}
    others = {"test_a.py::x": 9.0, "test_e.py::x": 30.0, "test_e.py::y": 18.0}
    lines = {1: {"test_d.py::x", "test_c.py::x"}, 2: {"test_a.py::x", "test_d.py::x", "test_e.py::x", "test_e.py::y"}}
    known = tool.Map({"src/dialeval/core/a.py": lines}, seconds | others)
    # Of test_c, a short file, all tests; test_e::y would take too long. The file of the module's name is first.
    ran, others_of_module = known.steps(mutant(1))
    assert ran == ["test_d.py::x", "test_c.py::x", "test_c.py::y"]
    assert others_of_module == ["test_a.py::x", "test_e.py::x"]
    assert known.steps(mutant(3)) == [["test_a.py::x", "test_d.py::x", "test_c.py::x", "test_c.py::y", "test_e.py::x"]]
    monkeypatch.setattr(tool, "STEP_SECONDS", (4.0, 5.5, 50.0))
    assert known.steps(mutant(1)) == [["test_d.py::x"], ["test_c.py::x"], ["test_a.py::x", "test_e.py::x"]]


@pytest.mark.long
def test_a_mutant_is_killed_in_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def larger(a, b):\n    return a > b\n\n\ndef unused():\n    return 1\n"
    checkout = tmp_path / "checkout"
    module = checkout / "src" / "dialeval" / "core" / "sizes.py"
    test = checkout / "tests" / "core" / "test_sizes.py"
    for path in (module, test, checkout / "tools" / "mutants.py"):
        path.parent.mkdir(parents=True)
    module.write_text(source)
    shutil.copy(tool.__file__, checkout / "tools")
    (checkout / "pytest.ini").write_text("[pytest]\nmarkers = slow\n    browser\n    ray\n    llm\n")
    test.write_text(
        "import sys\nsys.path.insert(0, 'src/dialeval/core')\nfrom sizes import larger\n\n"
        "def test_larger():\n    assert larger(2, 1)\n    assert not larger(1, 2)\n\n"
        "def test_nothing():\n    pass\n"
    )
    monkeypatch.setattr(tool, "ROOT", checkout)
    monkeypatch.setattr(tool, "SHORT_FILE", 0.0)
    tool.record(checkout, tmp_path / "map", jobs=1)
    known = tool.Map.read(tmp_path / "map")
    assert known.lines["src/dialeval/core/sizes.py"][2] == {"tests/core/test_sizes.py::test_larger"}
    fates = {
        each.after: tool.fate(each, checkout, known, steps=3)
        for each in mutants(source, "src/dialeval/core/sizes.py")
        if "=" in each.after
    }
    assert fates == {"return a >= b": "", "return a <= b": "tests/core/test_sizes.py::test_larger"}
    assert module.read_text() == source


def test_some_lines_of_a_module_with_given_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "src" / "dialeval" / "core" / "sizes.py"
    module.parent.mkdir(parents=True)
    module.write_text("a = 1\nb = 2\nc = 3\n")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    assert {each.line for each in tool.mutants_of("core")} == {1, 2, 3}
    assert {each.line for each in tool.mutants_of("core/sizes.py", "2-2")} == {2}
    assert {each.line for each in tool.mutants_of("core/sizes.py", "2-")} == {2, 3}
    with pytest.raises(SystemExit, match=r"core/size.py does not exist"):
        list(tool.mutants_of("core/size.py"))
    assert tool.Given(["tests/test_a.py"]).steps(mutant(1)) == [["tests/test_a.py"]]


def test_explained_mutants_are_those_of_the_source() -> None:
    """A reason whose line was edited would explain nothing."""
    reasons = set(tool.explained())
    files = {file for file, _, _ in reasons}
    made = {each.identity for file in files for each in mutants((tool.ROOT / file).read_text(encoding="utf-8"), file)}
    assert reasons - made == set()
