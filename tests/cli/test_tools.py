"""`dialeval metrics`, `formats`, `schema` and `validate`."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from conftest import Dialeval
from dialeval.cli.tools import formats, schema
from dialeval.io.row_shapes import OWN, SHAPES
from dialeval.metrics.registry import list_topics, registry
from dialeval.reports import schemas


def test_metrics_lists_and_explains(dialeval: Dialeval) -> None:
    listing = dialeval("metrics").stdout
    head, *lines = listing.splitlines()
    assert head.split() == ["metric", "better", "needs", "what", "it", "measures"]
    titles = [title for title in list_topics() if title in lines]
    assert titles == list(list_topics())[:-1]
    rows = {line.split("  ")[0].partition(" (")[0]: line for line in lines}
    assert rows["bleu"].startswith("bleu (5)")
    assert rows["bleu"].split()[2:4] == ["higher", "-r"]
    assert rows["kl-div"].split()[2] == "lower"
    assert "distinct-2" not in listing
    every = dialeval("metrics", "--all").stdout
    assert all(f"\n{name} " in every for name in registry().presets)
    assert dialeval("metrics", "Default").stdout.count("\n") < 20
    explained = dialeval("metrics", "distinct-2").stdout
    assert all(word in explained for word in ("Li et al. 2016", "per = corpus", "Edge cases", "distinct-2|n:2"))
    assert "Range: 0 to 1; higher is better" in explained
    assert explained.endswith("Example: dialeval score responses.txt -m distinct-2\n")
    done = dialeval("metrics", "distnct")
    assert done.returncode == 2
    assert "did you mean" in done.stderr


def test_an_argument_that_gives_several_things_is_named_once(dialeval: Dialeval) -> None:
    (line,) = (line for line in dialeval("metrics").stdout.splitlines() if line.startswith("inform "))
    assert line.split()[:3] == ["inform", "higher", "--data"]
    assert line.count("--data") == 1
    assert dialeval("metrics", "inform").stdout.count("data (--data)") == 1


def test_formats_lists_every_shape_with_its_fields_and_an_example() -> None:
    result = CliRunner().invoke(formats, [])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) == 3 * (1 + len(SHAPES))
    for number, shape in enumerate((OWN, *SHAPES)):
        title, where, example = lines[3 * number : 3 * number + 3]
        assert title == f"{shape.name}: {shape.title} ({shape.origin})"
        assert where.strip() == shape.explained
        assert json.loads(example) == shape.example


def test_formats_explains_one_shape() -> None:
    result = CliRunner().invoke(formats, ["sharegpt"])
    assert result.output.startswith(
        "sharegpt: a chat of ShareGPT (read in a real file)\n  messages = conversations; dialog_id = id\n"
    )
    assert CliRunner().invoke(formats, ["nothing"]).exit_code == 2


def test_schema_lists_every_schema() -> None:
    result = CliRunner().invoke(schema, [])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list(schemas.WRITTEN)


def test_schema_prints_one() -> None:
    result = CliRunner().invoke(schema, ["run"])
    assert json.loads(result.output) == json.loads(json.dumps(schemas.make_schema("run")))


def test_schema_refuses_an_unknown_name() -> None:
    result = CliRunner().invoke(schema, ["xyz"])
    assert result.exit_code == 2
    assert "no schema 'xyz'; there are run," in result.output


def test_validate_lists_every_problem_of_every_file(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a\nb\n")
    (tmp_path / "bad.txt").write_bytes(b"a\n\xff\nb\n\xfe\n")
    (tmp_path / "bad.jsonl").write_text('{"response": "a"}\n{"respons": "b"}\n{broken\n')
    done = dialeval("validate", "good.txt", "bad.txt", "bad.jsonl", "nowhere.txt")
    assert done.returncode == 2
    places = [line.split(": ")[0] for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert places == ["good.txt", "bad.txt:2", "bad.txt:4", "bad.jsonl:2", "bad.jsonl:3", "nowhere.txt"]
    assert dialeval("validate", "good.txt").returncode == 0


def test_what_was_guessed_is_told(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "excel.csv").write_bytes("response;reference\r\nGrüße;ja\r\n".encode("cp1252"))
    done = dialeval("validate", "excel.csv")
    assert done.returncode == 0
    line, *_, note = done.stdout.splitlines()
    assert line == "excel.csv: csv, system excel: 1 conversation, 1 reply"
    assert "Windows-1252" in note
    assert dialeval("validate", "excel.csv", "--separator", "tab").returncode == 2


def test_validate_describes_what_a_file_or_folder_holds(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    rows = '{"response": "x", "system": "s", "dialog_id": 1, "turn": 2, "reference": "r"}\n{"response": "y"}\n'
    (tmp_path / "b.jsonl").write_text(rows)
    lines = dialeval("validate", "a.txt", "b.jsonl", ".").stdout.splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "a.txt: txt, system a: 1 conversation, 1 reply",
        "b.jsonl: jsonl, system s: 1 conversation, 1 reply",
        "b.jsonl: jsonl, system b: 1 conversation, 1 reply",
        ".: folder, system a: 1 conversation, 1 reply",
        ".: folder, system s: 1 conversation, 1 reply",
        ".: folder, system b: 1 conversation, 1 reply",
    ]
    assert lines[1:4] == [
        "  0 user turns, 0 tool calls, 0 scores; columns response",
        "  conversation 'row 1':",
        "    reply: x",
    ]
