"""`dialeval metrics`, `formats` and `validate`."""

from __future__ import annotations

import io
import json
import os
import pty
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import dialeval as package
from conftest import Dialeval
from dialeval.cli.output import Meter, open_meter
from dialeval.cli.tools import formats
from dialeval.engine.folding import Done
from dialeval.io.row_shapes import OWN, SHAPES
from dialeval.metrics.registry import list_topics, registry
from engine.chats import write_shards
from local_site import Site, serving


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


# `dialeval demo`.


def test_demo_writes_a_report_and_prints_its_path_last(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("demo")
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert len(lines) <= 24, "one screen"
    assert max(map(len, lines[:-1])) <= 80
    assert lines[0] == "▼ v2 is worse than v1"
    assert lines[-2].startswith("Every dialogue with the replies")
    report = Path(done.stdout.splitlines()[-1])
    assert report == tmp_path / "dialeval-demo" / "report.html"
    assert report.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    run = json.loads((tmp_path / "dialeval-demo" / "run.json").read_text())
    assert list(run["systems"]) == ["v1", "v2"]
    assert package.load(tmp_path / "dialeval-demo")


def test_all_has_every_type_of_evaluation(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("demo", "--all")
    assert done.returncode == 0, done.stderr
    for name in ("responses", "sampled-answers", "task-dialogues", "breakdown-detection"):
        assert package.load(tmp_path / "dialeval-demo" / name)
    assert done.stdout.count("\ndialeval ") == 4


def test_the_report_is_opened_and_nothing_reaches_for_the_network(
    dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError("a socket was opened")

    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    done = dialeval("demo", "-o", "there", "--open")
    assert done.returncode == 0, done.stderr
    assert opened == [Path(done.stdout.splitlines()[-1]).as_uri()]


# `dialeval data` against a server on this machine.


VECTORS = "hello 1.0 0.0\nthere 0.5 0.5\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))


def archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("wiki-news-300d-1M.vec", VECTORS)
    return content.getvalue()


def test_a_pack_is_added_listed_used_verified_and_removed(dialeval: Dialeval, tmp_path: Path) -> None:
    assert "fasttext-en   not installed" in dialeval("data", "list").stdout
    content = archive()
    with serving(Site(content)) as site:
        added = dialeval("data", "add", "fasttext-en", "--address", f"{site.address}/vectors.zip")
    assert added.returncode == 0, added.stderr
    folder = Path(added.stdout.strip())
    assert (folder / "wiki-news-300d-1M.vec").read_text() == VECTORS
    assert "fasttext-en   installed" in dialeval("data", "list").stdout

    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "b.txt").write_text("there\n")
    scored = dialeval(
        "score", "a.txt", "-r", "b.txt", "--vectors", "fasttext-en", "-m", "embedding-greedy", "-f", "csv"
    )
    assert scored.returncode == 0, scored.stderr
    assert "0.707" in scored.stdout

    assert dialeval("data", "verify", "fasttext-en").returncode == 0
    (folder / "wiki-news-300d-1M.vec").chmod(0o644)
    (folder / "wiki-news-300d-1M.vec").write_text(VECTORS.replace("1.0", "2.0"))
    broken = dialeval("data", "verify", "fasttext-en")
    assert broken.returncode == 2
    assert "wiki-news-300d-1M.vec" in broken.stdout
    assert dialeval("data", "remove", "fasttext-en").returncode == 0
    assert not folder.exists()


def test_an_installed_pack_is_replaced_by_force_only(dialeval: Dialeval, tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "wiki-news-300d-1M.vec").write_text(
            VECTORS if name == "old" else VECTORS.replace("1.0", "2.0")
        )
    place = Path(dialeval("data", "add", "fasttext-en", "--from", "old").stdout.strip()) / "wiki-news-300d-1M.vec"
    for source in ("new", "nowhere"):
        refused = dialeval("data", "add", "fasttext-en", "--from", source)
        assert (refused.returncode, "--force" in refused.stderr, place.read_text()) == (2, True, VECTORS)
    assert dialeval("data", "add", "fasttext-en", "--from", "nowhere", "--force").returncode == 2
    assert place.read_text() == VECTORS
    assert dialeval("data", "add", "fasttext-en", "--from", "new", "--force").returncode == 0
    assert "2.0" in place.read_text()
    assert dialeval("data", "verify", "fasttext-en").returncode == 0


def test_a_local_copy_will_do(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "wiki-news-300d-1M.vec").write_text(VECTORS)
    assert dialeval("data", "add", "fasttext-en", "--from", "mine").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "glove-6bb"], "did you mean 'glove-6b'?"),
        (["add", "glove-6b", "--address", "ftp://example.invalid/x"], "http"),
        (["verify", "glove-6b"], "glove-6b"),
        (["remove", "glove-6b"], "glove-6b"),
    ],
)
def test_mistakes_are_one_clear_message(dialeval: Dialeval, arguments: list[str], message: str) -> None:
    done = dialeval("data", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


# Progress on stderr: bars for people, JSON lines for machines.


def test_a_meter_of_rows_in_memory_knows_the_total() -> None:
    meter = Meter()
    meter.update_run(Done(20, 40, 0.5))
    figures = meter.to_dict()
    assert (figures["rows"], figures["total"], figures["share"]) == (20, 40, 0.5)


def test_a_meter_of_files_knows_the_total_in_the_end() -> None:
    meter = Meter()
    meter.update_run(Done(5, None, 0.25))
    assert (meter.rows, meter.total, meter.share) == (5, None, 0.25)
    meter.update_run(Done(20, None, 1.0))
    assert (meter.rows, meter.total) == (20, 20)


@pytest.mark.parametrize("mode", ["none", "auto"])
def test_nothing_is_shown_unasked(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    with open_meter(mode) as meter:
        meter.update_run(Done(10, 10, 1.0))
    assert capfd.readouterr() == ("", "")


def test_progress_for_machines(dialeval: Dialeval, tmp_path: Path) -> None:
    write_shards(tmp_path / "logs", 50, 3)
    for given in (["logs/*.jsonl"], ["whole.jsonl"]):
        done = dialeval("score", *given, "-m", "length,distinct,bleu", "-f", "json", "--progress", "json")
        told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        assert told[-1]["rows"] == told[-1]["total"] == 150
        assert [each["share"] for each in told].count(1) == 1
        assert told[-1]["share"] == 1
        assert set(told[0]) == {"rows", "total", "share", "rate", "eta"}


def test_a_progress_bar_is_for_terminals(tmp_path: Path) -> None:
    """On a terminal something is drawn on stderr, and stdout stays clean."""
    (tmp_path / "a.txt").write_text("one two three\nfour\n")
    controller, terminal = pty.openpty()
    command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", "a.txt", "-f", "json"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, check=True)
    os.close(terminal)
    drawn = os.read(controller, 100_000)
    os.close(controller)
    assert json.loads(done.stdout)["systems"]["a"]
    assert b"a" in drawn
