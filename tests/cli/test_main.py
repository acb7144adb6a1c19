"""The command itself: help, version, and how a process ends."""

from __future__ import annotations

import errno
import gzip
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import dialeval as package
from conftest import Dialeval
from dialeval.cli.help import find_section
from dialeval.cli.main import _COMMANDS, DEBUG, STATUSES, dialeval_command
from dialeval.core.errors import escape_controls

COMPLETED = [sys.executable, "-c", "from dialeval.cli.main import main; main()"]
HARMLESS = re.compile("[\n\t -~\u00a0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]*")


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_every_command_has_help_with_an_example(dialeval: Dialeval, command: str) -> None:
    done = dialeval(command, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"dialeval {command}" in done.stdout


@pytest.mark.parametrize(("given", "taken"), [(None, "1"), ("3", "3")])
def test_numpy_multiplies_in_one_thread_unless_told_otherwise(
    dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch, given: str | None, taken: str
) -> None:
    """The threads of a run share its rows already."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", given or "")
    if given is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    dialeval("--version")
    assert os.environ["OPENBLAS_NUM_THREADS"] == taken


def test_help_and_version(dialeval: Dialeval) -> None:
    listing = dialeval("-h").stdout
    assert all(command in listing for command in _COMMANDS)
    assert dialeval("--version").stdout == f"dialeval, version {package.__version__}\n"
    for wrong, meant in (("scroe", "score"), ("metirc", "metrics"), ("multiwoz explian", "explain")):
        done = dialeval(*wrong.split())
        assert done.returncode == 2
        assert f"did you mean {meant!r}?" in done.stderr
    assert dialeval("Metrics", "LENGTH").stdout.startswith("length: ")


@pytest.mark.parametrize("command", ["metrics", "--help"])
def test_a_reader_that_has_gone_is_no_failed_gate(command: str) -> None:
    """As after `dialeval ... | head`: the status of a process that a closed pipe ended, and not a word."""
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-c", "from dialeval.cli.main import main; main()", command]
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three\nfour\n")
    command = f"{sys.executable} -c 'from dialeval.cli.main import main; main()' score a.txt -f json | true"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_control_c_ends_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "slow.txt"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", str(pipe)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # an error until the command reads
            break
        except OSError:
            time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    os.close(writer)
    assert process.returncode == 130
    assert errors.strip() == "dialeval: interrupted"


def broken(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `dialeval metrics` raise something."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("dialeval.cli.tools._list_metrics", fail)


@pytest.mark.parametrize(
    "error", [KeyError("x\x1b[2J"), AssertionError(), RecursionError(), OSError("x"), SyntaxError()]
)
def test_an_internal_error_is_no_failed_gate(
    dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.delenv("DIALEVAL_DEBUG", raising=False)
    broken(monkeypatch, error)
    done = dialeval("metrics")
    assert done.returncode == 70
    assert done.stdout == ""
    assert f"dialeval: internal error: {type(error).__name__}" in done.stderr
    assert "Please report it" in done.stderr
    assert f"dialeval {package.__version__}, Python " in done.stderr
    assert "  dialeval metrics\n" in done.stderr
    assert "DIALEVAL_DEBUG=1 shows the traceback" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr


def test_the_traceback_of_an_internal_error_can_be_seen(dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_DEBUG", "1")
    broken(monkeypatch, ZeroDivisionError("x"))
    done = dialeval("metrics")
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert "in fail" in done.stderr


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOSPC, "No space left on device")])
def test_a_machine_that_is_full_is_no_internal_error(
    dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    broken(monkeypatch, error)
    assert dialeval("metrics").returncode == 2


def test_a_full_disk_under_the_output(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "metrics"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("dialeval: the output cannot be written (No space left on device)")
    assert "Traceback" not in done.stderr


def test_the_statuses_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    table = dict(re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE))
    assert {int(status): meaning.replace("`", "") for status, meaning in table.items()} == {
        status: meaning.replace("`", "") for status, meaning in STATUSES.items()
    }
    assert DEBUG in page


def test_the_root_help_fits_a_screen(dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = dialeval("--help").stdout.splitlines()
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Evaluate", "Suites", "Judges", "Human evaluation", "Tools"]
    assert "breakdown detect" in "".join(lines)


def every_command() -> dict[str, click.Command]:
    """All commands by their path, those inside of others too."""
    found: dict[str, click.Command] = {}

    def walk(command: click.Command, path: str) -> None:
        context = click.Context(command)
        names = command.list_commands(context) if isinstance(command, click.Group) else []
        inner = {name: command.get_command(context, name) for name in names} if isinstance(command, click.Group) else {}
        for name, each in {**inner, **getattr(command, "inner", {})}.items():
            assert each is not None
            found[f"{path} {name}".strip()] = each
            walk(each, f"{path} {name}".strip())

    walk(dialeval_command, "")
    return found


@pytest.mark.parametrize("path", every_command())
def test_no_option_is_listed_without_a_section(dialeval: Dialeval, path: str) -> None:
    """The help starts with the options that its examples use first, then the examples, then the sections."""
    command = every_command()[path]
    given = [each for each in command.params if isinstance(each, click.Option)]
    assert all(find_section(option, path) for option in given)
    shown = dialeval(*path.split(), "--help").stdout
    assert "\nOptions:" not in shown
    heads = [line.removesuffix(":") for line in shown.splitlines() if re.fullmatch(r"[A-Z][\w ]+:", line)]
    first = [each for each in heads if each in ("Most used", "Example", "Examples")]
    assert heads[: len(first)] == first
    assert first[-1:] in (["Example"], ["Examples"])
    assert all(option.opts[-1] in shown for option in given)


NAMES = ["a\x1b[31m\x1b]8;;mailto:x\x1b\\.txt", "b\r\x9b2J\u202e.jsonl", os.fsdecode(b"c\xff.txt")]


@pytest.mark.parametrize("name", NAMES, ids=["escapes", "controls", "not UTF-8"])
def test_names_of_files_are_shown_harmlessly(dialeval: Dialeval, tmp_path: Path, name: str) -> None:
    for content, status in ((b'"one two"\n"three"\n', 0), (b"{\xff\n", 2)):
        (tmp_path / name).write_bytes(content)
        for command in (("score", name, "-m", "length"), ("validate", name), ("score", name, "--" + name)):
            done = dialeval(*command)
            assert done.returncode == (2 if command[2:] == ("--" + name,) else status)
            assert HARMLESS.fullmatch(done.stdout + done.stderr)
            assert escape_controls(name.partition(".")[0]) in done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES, ids=["escapes", "controls", "not UTF-8"])
def test_runs_of_files_with_hostile_names(dialeval: Dialeval, tmp_path: Path, name: str) -> None:
    """In every format, saved and loaded."""
    (tmp_path / name).write_bytes(b'"one two"\n"three"\n')
    for format_ in ("json", "csv", "md", "latex", "metrics-txt"):
        assert dialeval("score", name, "-m", "length", "-f", format_).returncode == 0
    assert dialeval("score", name, "-m", "length", "-o", "run").returncode == 0
    (system,) = package.load(tmp_path / "run")
    assert system.encode().decode() == system
    assert dialeval("report", "run", "--save", "report.html").returncode == 0


def test_an_output_that_knows_ascii_only(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    program = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", "a.txt", "-m", "length"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sco", ["score"]),
        ("score --interv", ["--intervals"]),
    ],
)
def test_a_shell_can_complete(words: str, expected: list[str]) -> None:
    asked = {"_DIALEVAL_COMPLETE": "bash_complete", "COMP_WORDS": f"dialeval {words}"}
    environment = {**os.environ, **asked, "COMP_CWORD": str(len(words.split()))}
    done = subprocess.run(COMPLETED, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == expected


def test_a_shell_gets_its_script() -> None:
    environment = {**os.environ, "_DIALEVAL_COMPLETE": "zsh_source"}
    done = subprocess.run(COMPLETED, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "#compdef dialeval" in done.stdout


CLOSED = {
    ">&-": (2, "stdout is closed"),
    "2>&-": (0, ""),
    "<&-": (0, ""),
    "2>/dev/full": (0, ""),
    "<&- >&- 2>&-": (2, ""),
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("streams", CLOSED)
def test_closed_and_full_streams_are_no_failed_gate(tmp_path: Path, streams: str) -> None:
    (tmp_path / "a.txt").write_text("one two three\nfour\n")
    command = f"{sys.executable} -c 'from dialeval.cli.main import main; main()' score a.txt -m length,bleu {streams}"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    status, message = CLOSED[streams]
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


ODD = {
    "a long path": ["score", "x" * 5000],
    "a long path of a run": ["report", "x" * 5000],
    "a long path of references": ["score", "a.txt", "-r", "x" * 5000],
    "a long path to save in": ["score", "a.txt", "-m", "length", "-o", "x" * 5000],
    "a long path of a pack": ["data", "add", "glove-6b", "--from", "x" * 5000],
    "storage that asks for more": ["score", "reference://a.txt"],
    "storage without a name": ["score", "github://x"],
    "an archive": ["score", "zip://a.txt"],
    "no address of a file": ["score", "file://[::1/x"],
    "no address": ["data", "add", "glove-6b", "--address", "http://[::1"],
    "a port that is none": ["data", "add", "glove-6b", "--address", "http://localhost:123456/x"],
    "a long seed": ["sample", "run", "-n", "1", "-o", "s", "--seed", "12345678901234567890123"],
    "a wide interval": ["sample", "run", "--plan", "--width", "1e300"],
}


@pytest.mark.parametrize("arguments", ODD.values(), ids=ODD)
def test_odd_arguments_are_refused(dialeval: Dialeval, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "a.txt").write_text("one two\n")
    if "run" in arguments:
        assert dialeval("score", "a.txt", "-m", "length", "-o", "run").returncode == 0
    done = dialeval(*arguments)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr) < 6_000


@pytest.mark.parametrize("option", [["--jobs", "1"], ["--jobs", "2"], ["--shards"]])
def test_a_pipe_is_not_read_in_chunks(dialeval: Dialeval, tmp_path: Path, option: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    done = dialeval("score", "pipe.txt", "-m", "length", *option)
    assert done.returncode == 2
    assert "pipe.txt: is a pipe, and what is read in chunks must be a file" in done.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_sigterm_leaves_no_temporary_files(tmp_path: Path, jobs: str) -> None:
    """Signals at different moments of a run in chunks: what was begun in TMPDIR and in the output is gone."""
    (tmp_path / "rows.jsonl").write_text('{"response": "one two three four five six"}\n' * 400_000)
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    command = [*COMPLETED, "score", "rows.jsonl", "-m", "length,distinct", "--jobs", jobs, "-o", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143, errors
    assert errors.strip().endswith("dialeval: ended by SIGTERM")
    assert not [path for path in (tmp_path / "temporary").iterdir() if path.name.startswith("dialeval-")]
    assert not (tmp_path / "out").exists()


def test_no_module_of_the_working_folder_is_imported(tmp_path: Path) -> None:
    """`python -m` puts the working folder first."""
    for name in ("click", "numpy", "orjson", "rich", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('planted')")
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    command = [sys.executable, "-m", "dialeval", "score", "a.txt", "-m", "length"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "planted" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize("columns", ["0", "1"])
def test_a_terminal_without_width_shows_a_table(
    dialeval: Dialeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    monkeypatch.setenv("COLUMNS", columns)
    assert "length" in dialeval("score", "a.txt", "-m", "length").stdout


def test_a_file_beyond_a_limit_has_status_2(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b" " * (1 << 27)))
    done = dialeval("score", "a.jsonl.gz", "-m", "length")
    assert done.returncode == 2
    assert "a.jsonl.gz: unpacks to more than 200 times its size" in done.stderr
