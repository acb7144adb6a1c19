"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from conftest import Dialeval
from dialeval import sample_data
from dialeval.cli import options
from dialeval.cli.main import dialeval_command


def test_intervals_of_every_command_that_scores(dialeval: Dialeval, tmp_path: Path) -> None:
    here = sample_data.folder()
    talks = here / "breakdown"
    commands = {
        "distinct-2": ["score", str(here / "responses"), "-m", "distinct-2"],
        "max-bleu": ["lsdscc", str(here / "lsdscc" / "varied.txt"), "-r", str(here / "lsdscc" / "groups.json")],
        "entropy": ["multiwoz", "-i", str(here / "town" / "predictions" / "patient.json"), "--data", "town"],
        "f1-x": ["breakdown", str(talks / "keywords"), "-p", str(talks / "data"), "--no-baselines"],
    }
    for key, command in commands.items():
        done = dialeval(*command, "-f", "json", "--intervals", "studentized", "--resamples", "50", "--seed", "3")
        assert done.returncode == 0, done.stderr
        metric = next(iter(json.loads(done.stdout)["systems"].values()))["metrics"][key]
        how = metric["interval_by"]
        method, resamples = ("jackknife", how["clusters"]) if key in ("distinct-2", "entropy") else ("studentized", 50)
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


def test_a_group_reaches_the_command_as_one_argument() -> None:
    both = options.combine_options(click.option("--before"), options.intervals, click.option("--after"))
    given, _ = invoked(both, "--intervals", "rows", "--after", "x")
    assert given == {"before": None, "intervals": options.IntervalOptions("rows", None, None), "after": "x"}


def test_resamples_without_intervals_are_refused() -> None:
    assert invoked(options.intervals)[0] == {"intervals": options.IntervalOptions(None, None, None)}
    given, _ = invoked(options.intervals, "--intervals", "studentized", "--seed", "3")
    assert given == {"intervals": options.IntervalOptions("studentized", None, 3)}
    assert "--intervals" in invoked(options.intervals, "--resamples", "10")[1].output


SCORING = ("score", "lsdscc", "multiwoz", "breakdown")
SHARED = {
    "--confidence",
    "--factor",
    "--fail-over",
    "--fail-under",
    "--format",
    "--intervals",
    "--output",
    "--resamples",
    "--seed",
    "--threads",
    "--transpose",
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
