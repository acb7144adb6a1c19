"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from rich.text import Text

import dialeval
from conftest import Dialeval
from dialeval import sample_data
from dialeval.cli import options, output
from dialeval.cli.main import dialeval_command
from dialeval.core.errors import DataError, Problem, escape_controls


def test_intervals_of_every_command_that_scores(dialeval: Dialeval, tmp_path: Path) -> None:
    here = sample_data.folder()
    talks = here / "breakdown"
    commands = {
        "distinct-2": ["score", str(here / "responses"), "-m", "distinct-2"],
        "max-bleu": ["lsdscc", str(here / "lsdscc" / "varied.txt"), "-r", str(here / "lsdscc" / "groups.json")],
        "num-bigrams": ["multiwoz", "-i", str(here / "town" / "predictions" / "patient.json"), "--data", "town"],
        "f1-x": ["breakdown", str(talks / "keywords"), "-p", str(talks / "data"), "--no-baselines"],
    }
    for key, command in commands.items():
        done = dialeval(*command, "-f", "json", "--intervals", "studentized", "--resamples", "50", "--seed", "3")
        assert done.returncode == 0, done.stderr
        metric = next(iter(json.loads(done.stdout)["systems"].values()))["metrics"][key]
        how = metric["interval_by"]
        counted = key in ("distinct-2", "num-bigrams")
        method, resamples = ("jackknife", how["clusters"]) if counted else ("studentized", 50)
        assert (how["method"], how["resamples"], how["seed"], how["level"]) == (method, resamples, 3, 0.95)
        assert metric["interval"][0] <= metric["mean"] <= metric["interval"][1]
    wrong = dialeval("score", str(here / "responses"), "--seed", "3")
    assert wrong.returncode == 2
    assert "--intervals" in wrong.stderr


def test_intervals_without_resampling(dialeval: Dialeval) -> None:
    here = sample_data.folder()
    talks = here / "breakdown"
    town = ["multiwoz", "-i", str(here / "town" / "predictions" / "patient.json"), "--data", "town"]
    commands = {
        ("length", "student", "rows"): ["score", str(here / "responses"), "-m", "length"],
        ("mds", "student", "rows"): [
            "lsdscc",
            str(here / "lsdscc" / "safe.txt"),
            "-r",
            str(here / "lsdscc" / "groups.json"),
        ],
        ("inform", "wilson", "dialogues"): town,
        ("bleu/town", "wilson", "dialogues"): town,
        ("f1-x", "wilson", "dialogues"): ["breakdown", str(talks / "keywords"), "-p", str(talks / "data")],
    }
    for (key, method, over), command in commands.items():

        def found(*more: str, key: str = key, command: list[str] = command) -> dict[str, Any]:
            done = dialeval(*command, "-f", "json", *more)
            assert done.returncode == 0, done.stderr
            metric: dict[str, Any] = next(iter(json.loads(done.stdout)["systems"].values()))["metrics"][key]
            return metric

        default, rows, none = found(), found("--intervals", "rows"), found("--intervals", "none")
        assert default == found("--intervals", "clustered")
        assert (default["interval_by"]["method"], default["interval_by"]["over"]) == (method, over)
        assert default["interval_by"]["level"] == 0.95
        assert default["interval"][0] <= default["mean"] <= default["interval"][1]
        assert (none["interval"], none["interval_by"], none["half_width"]) == (None, None, None)
        if rows["of"] == "rows":
            assert rows["interval_by"]["method"] == "rows"
            assert rows["half_width"] == 1.97 * rows["std"] / math.sqrt(rows["scored"])
        else:
            assert (rows["interval"], rows["half_width"]) == (None, 0.0)


def test_the_level_of_resampled_intervals_is_the_confidence(dialeval: Dialeval) -> None:
    arguments = ["score", str(sample_data.folder() / "responses"), "-m", "length", "-f", "json"]
    document = json.loads(dialeval(*arguments, "--intervals", "studentized", "--confidence", "0.8").stdout)
    assert document["systems"]["careful"]["metrics"]["length"]["interval_by"]["level"] == 0.8


def invoked(option: options.Decorator, *arguments: str) -> tuple[dict[str, object], Result]:
    """What a command with these options is called with, and how it ended."""
    seen: dict[str, object] = {}
    done = CliRunner().invoke(options.command()(option(lambda **given: seen.update(given))), arguments)
    return seen, done


def test_pairs_and_numbers() -> None:
    given, _ = invoked(options.row_fields, "--field", "response=answer", "--field", "context=a=b")
    assert given == {"fields": {"response": "answer", "context": "a=b"}}
    given, _ = invoked(options.limits, "--fail-under", "bleu-4=.5", "--fail-under", "length=3", "--fail-over", "jsd=1")
    assert given == {"limits": options.Limits({"bleu-4": 0.5, "length": 3.0}, {"jsd": 1.0})}
    for wrong, message in (("x", "KEY=VALUE"), ("=1", "KEY=VALUE"), ("x=", "KEY=VALUE"), ("x=y", "KEY=NUMBER")):
        _, done = invoked(options.limits, "--fail-under", wrong)
        assert done.exit_code == 2
        assert message in done.output


def test_systems_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd=name.txt").touch()
    for arguments, systems in (
        (["a.txt"], "a.txt"),
        (["best=a.txt"], {"best": "a.txt"}),
        (["x/a.txt", "best=b.txt"], {"a": "x/a.txt", "best": "b.txt"}),
        (["odd=name.txt"], "odd=name.txt"),
        (["x/odd=a.txt"], "x/odd=a.txt"),
    ):
        assert invoked(options.responses(), *arguments)[0] == {"responses": systems}
    assert "two systems are called 'a'" in invoked(options.responses(), "a.txt", "x/a.txt")[1].output


def test_resamples_without_intervals_are_refused() -> None:
    assert invoked(options.intervals)[0] == {"intervals": options.IntervalOptions(None, None, None)}
    given, _ = invoked(options.intervals, "--intervals", "studentized", "--seed", "3")
    assert given == {"intervals": options.IntervalOptions("studentized", None, 3)}
    assert "--intervals" in invoked(options.intervals, "--resamples", "10")[1].output


SCORING = ("score", "lsdscc", "multiwoz", "breakdown")
SHARED = {
    "--confidence",
    "--fail-over",
    "--fail-under",
    "--format",
    "--intervals",
    "--output",
    "--resamples",
    "--seed",
    "--threads",
}


def flags_of(name: str) -> dict[str, click.Option]:
    command = dialeval_command.get_command(click.Context(dialeval_command), name)
    assert command is not None
    return {
        flag: each
        for each in command.params
        if isinstance(each, click.Option)
        for flag in (*each.opts, *each.secondary_opts)
    }


@pytest.mark.parametrize("name", SCORING)
def test_commands_that_score_share_their_flags(name: str) -> None:
    flags = flags_of(name)
    assert set(flags) >= SHARED
    assert not set(flags) & {"--save", "--report"}
    assert flags["-o"] is flags["--output"]
    assert isinstance(flags["-o"].type, click.Path)
    assert not flags["-o"].type.file_okay, "the folder of the run"
    assert flags["-o"].help == "Save the run in this folder."


def test_a_flag_means_the_same_in_every_command() -> None:
    found: dict[str, set[str | None]] = {}
    for name in (*SCORING, "compare", "agreement"):
        for flag, option in flags_of(name).items():
            found.setdefault(flag, set()).add(str(option.name).removeprefix("intervals_"))
    # References are texts or groups of them; richness and the threshold have the letters that the originals gave them.
    assert {flag for flag, names in found.items() if len(names) > 1} <= {"-r", "--references", "-t"}


# What commands print, write and save.


HARMLESS = re.compile("[\n\t -~\u00a0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]*")


@pytest.mark.parametrize("content", ["[bold] and more\n", Text("[bold] and more")])
def test_texts_and_tables_are_printed_or_written(
    content: str | Text, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output.print_content(content)
    assert capsys.readouterr() == ("[bold] and more\n", "")
    target = tmp_path / "new" / "file.txt"
    output.print_content(content, target, 80)
    assert target.read_text() == "[bold] and more\n"
    assert capsys.readouterr() == ("", f"written to {target}\n")


HOSTILE = "a\x1b[2J\x1b]8;;http://x/\x1b\\\x9b31m\r\a\u202eb"


def test_nothing_that_is_printed_is_obeyed_by_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    shown = escape_controls(HOSTILE)
    assert "\x1b" not in shown
    output.print_err(f"{HOSTILE}\nnext")
    output.print_out(HOSTILE)
    assert capsys.readouterr() == (f"{shown}\n", f"{shown}\nnext\n")
    output.print_content(Text(HOSTILE), width=200)
    output.print_tables([(HOSTILE, [["[red]", HOSTILE], [HOSTILE, "1"]])])
    out = capsys.readouterr().out
    assert HARMLESS.fullmatch(out)
    assert "[red]" in out


def test_data_is_exact_in_a_pipe_and_harmless_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output.print_content(f"{HOSTILE},1\n")
    assert capsys.readouterr().out == f"{HOSTILE},1\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.print_content(f"{HOSTILE},1\n")
    assert capsys.readouterr().out == f"{escape_controls(HOSTILE)},1\n"


def test_a_run_is_saved_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my data").mkdir()
    monkeypatch.setattr(sys, "argv", ["somewhere/dialeval", "score", str(tmp_path / "my data"), "-m", "not/a/path"])
    assert output.quote_command() == f"dialeval score '{tmp_path}/my data' -m not/a/path"
    assert output.quote_command(short_paths=True) == "dialeval score 'my data' -m not/a/path"
    run = dialeval.evaluate({"a": ["one two"]}, metrics="length")
    output.save_run(run, tmp_path / "run")
    assert dialeval.load(tmp_path / "run").details == {"command": output.quote_command()}
    assert run.details == {}


@pytest.mark.parametrize(("number", "lines", "last"), [(7, 7, "f:6: bad 6; mend it"), (1205, 201, "and 1,005 more")])
def test_all_problems_are_printed_up_to_a_limit(number: int, lines: int, last: str) -> None:
    @click.command()
    @output.print_all_problems
    def command() -> None:
        raise DataError(Problem("f", line, f"bad {line}", "mend it") for line in range(number))

    done = CliRunner().invoke(command)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == lines
    assert done.stderr.splitlines()[-1] == f"dialeval: {last}"


@pytest.mark.parametrize(
    "command",
    [
        "multiwoz -i {} --dialogues {}",
        "multiwoz -i . --dialogues {}",
        "multiwoz -i run.json -o .",
        "sgd run.json -r references/ -o .",
        "sgd mine/ -r references/ --schema run.json -o .",
        "breakdown labels.jsonl -p {} --turns {}",
        "breakdown mine={} -p data.jsonl --turns {}",
        "breakdown labels.jsonl -p run.json -o .",
        "lsdscc run.json -r groups.json -o .",
        "lsdscc answers.txt -r run.json -o .",
        "agreement {} --human overall --save {}",
        "compat mwzeval --bleu -i {} -o {}",
        "adem train --ratings judge.json -o .",
        "compat dialog-eval -r metrics.txt",
        "compat dialog-eval -r . -ttt metrics.txt",
    ],
)
def test_no_command_overwrites_what_it_reads(dialeval: Dialeval, tmp_path: Path, command: str) -> None:
    """The inputs hold nothing that could be read: they are compared before anything is."""
    before = dict.fromkeys(("in.json", "judge.json", "run.json", "metrics.txt"), b"{")
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    done = dialeval(*command.replace("{}", "in.json").split())
    assert done.returncode == 2
    assert "would be overwritten, but it is an input" in done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("route", [[], ["--jobs", "1"]])
def test_values_are_printed_where_a_run_cannot_be_saved(
    dialeval: Dialeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: list[str]
) -> None:
    from dialeval.core import result
    from dialeval.core.errors import DataError, Problem

    def full(*_: object, **__: object) -> None:
        raise DataError(Problem("run", None, "cannot be written (No space left on device)", "make room"))

    (tmp_path / "a.txt").write_text("one two\nthree\n")
    monkeypatch.setattr(result, "replace_files", full)
    done = dialeval("score", "a.txt", "-m", "length", "-o", "run", "-f", "csv", *route)
    assert done.returncode == 2
    assert "1.5" in done.stdout
    assert done.stderr.count("No space left on device") == 1
    assert "saved in" not in done.stderr


def test_a_link_that_leads_nowhere_is_refused_before_any_work(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    done = dialeval("score", "a.txt", "-m", "length", "-o", "link")
    assert (done.returncode, done.stdout) == (2, "")
    assert "link: is a link to" in done.stderr
