"""SECURITY.md: every promise names tests that exist, and nothing that is read is run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ") and "`tests/" in line]
NAMED = sorted(set(re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", PAGE)))
_COMMENT = re.compile(r"<!-- (not tested|test): (.*?) -->", re.DOTALL)


def test_every_promise_names_its_tests() -> None:
    table = PAGE.partition("| promise | test |")[2].partition("\n\n")[0].strip().splitlines()[1:]
    assert len(table) == len(ROWS) > 10


def test_every_limit_names_its_tests() -> None:
    table = PAGE.partition("| limit | where |")[2].partition("\n\n")[0].strip().splitlines()[1:]
    assert len(table) > 10
    assert [line for line in table if "<!-- test: tests/" not in line] == []


def list_statements() -> list[tuple[str, str, str]]:
    """Return the texts outside of headings and tables, each with the comment after it."""
    lines = [line for line in PAGE.splitlines() if not line.startswith(("#", "|"))]
    parts = _COMMENT.split("\n".join(lines))
    assert not parts[-1].strip(), f"no test is named for: {parts[-1].strip()}"
    texts = [" ".join(text.split()) for text in parts[:-1:3]]
    return list(zip(texts, parts[1::3], parts[2::3], strict=True))


@pytest.mark.parametrize(("text", "kind", "said"), list_statements(), ids=[one[0][:40] for one in list_statements()])
def test_every_sentence_names_its_tests(text: str, kind: str, said: str) -> None:
    assert text
    if kind == "test":
        assert said.startswith("tests/")
        assert not re.search(r"[.:] [A-Z*`]", text), "one sentence, one comment"


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[f"{file}::{name}" for file, name in NAMED])
def test_the_tests_exist(file: str, name: str) -> None:
    source = (ROOT / file).read_text(encoding="utf-8")
    defined = {node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
    assert any(each.startswith("test_") for each in defined)
    assert not name or name in defined


FORBIDDEN = {
    *("eval", "exec", "compile", "__import__", "pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.loads"),
    *("shelve.open", "torch.load", "yaml.load", "os.system", "os.popen", "joblib.load", "dill.loads"),
}
"""Calls that run what they are given, or unpack what may run."""
ALLOWED = {("processes.py", "pickle.loads"): "what our own processes send each other through a pipe"}


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func)


def test_nothing_that_is_read_is_run() -> None:
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                if (path.name, _called(node)) in ALLOWED:
                    continue
                told = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                if _called(node) in FORBIDDEN or told.get("shell") == "True" or told.get("allow_pickle") == "True":
                    found.append(f"{path.name}:{node.lineno}: {_called(node)}")
                if _called(node) in ("np.load", "numpy.load") and told.get("allow_pickle") != "False":
                    found.append(f"{path.name}:{node.lineno}: np.load without allow_pickle=False")
    assert found == []
