"""Typical mistakes: each message names the cause and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialeval as package
from conftest import Dialeval
from dialeval.metrics import encoder_files

FILES = {
    "a.txt": "one two\nthree four\nfive six\n",
    "b.txt": "one two\nthree five\nfive six\n",
    "short.txt": "one\ntwo\n",
    "empty.txt": "",
    "broken.jsonl": '{"response": "a"}\n{broken\n',
    "other.jsonl": '{"answer": "a"}\n' * 9,
    "plural.jsonl": '{"response": "a b", "references": ["a b"]}\n' * 3,
    "broken.json": "[1, 2",
    "page.txt": "<!DOCTYPE html>\n<html><title>502</title>\n</html>\n",
    "two.csv": "answer,reference\na,b\n",
}

MISTAKES: dict[str, tuple[str, ...]] = {
    # Paths and files
    "score nowhere.txt": ("nowhere.txt: there is no such file", "check the path"),
    "score a.txt -r nowhere.txt": ("nowhere.txt: there is no such file", "check the path"),
    "score a.txt -r short.txt": (
        "a.txt: has 3 rows, but short.txt has 2",
        "one line per response",
        "a.txt:3 is the first",
    ),
    "score a.txt -c short.txt": ("a.txt: has 3 rows, but short.txt has 2", "one line per response"),
    "score a.txt short.txt -r b.txt": ("short.txt: has 2 rows, but b.txt has 3",),
    "score empty.txt": ("empty.txt: is empty", "give one line per row"),
    "score folder": ("folder: holds no file of responses", "put one file per system into it"),
    "score latin.txt": ("latin.txt:1: byte 0xe9", "save the file as UTF-8"),
    "score page.txt": ("page.txt: is an HTML page", "give one reply per line"),
    "score a.zip": ("is a zip archive", "unpack it first"),
    "score run": ("run: is a saved run and no folder of responses", "dialeval compare"),
    "score": ("Missing argument 'RESPONSES...'",),
    "score a.txt a.txt": ("two systems are called 'a'", "write NAME=FILE for one"),
    # Rows
    "score broken.jsonl": ("broken.jsonl:2: not JSON", "write one JSON object per line"),
    "score broken.json": ("broken.json:1: not JSON", "correct it"),
    "score other.jsonl": (
        "other.jsonl:1: has no field 'response'",
        "--field response=answer",
        "(and 8 more rows)",
    ),
    "score two.csv": ("has no field 'response', only answer, reference", "--field response=answer"),
    "score other.jsonl --field answer": ("'answer' is not of the form OURS=THEIRS",),
    "score plural.jsonl -m chrf": ("chrf needs references",),
    "score a.txt --by topic": ("no row of a has a value in the field 'topic'", "check its name"),
    # Metrics
    "score a.txt -m bleu4": ("no metric is called 'bleu4'", "did you mean 'bleu-4'?"),
    "score a.txt -m BLEU-4": ("bleu-4 needs references", "-r on the command line"),
    "score a.txt -m METEOR": ("meteor is not implemented", "chrf", "bertscore"),
    "score a.txt -m judge": ("judge needs contexts", "-c on the command line"),
    "score a.txt -m distinct(k=3)": ("distinct has no setting 'k'", "it has n, per, oov, tokenizer"),
    "score a.txt -m distinct(n=x)": ("distinct takes a whole number for n, not 'x'",),
    "score a.txt --tokeniser 13a": ("No such option", "--tokenizer"),
    "score a.txt --tokenizer 13b": ("'13b' is not known", "did you mean '13a'?"),
    "score a.txt --vectors glove": ("no word vectors named 'glove'", "did you mean 'glove-6b'?"),
    "score a.txt --judge-dir folder -m judge -c b.txt": (
        "folder/judge.json: there is no such file",
        "the shipped judge",
    ),
    "metrics blue": ("no metric is called 'blue'", "did you mean 'bleu'?"),
    # Output and checks
    "score a.txt -f jsn": ("'jsn' is not known", "did you mean 'json'?"),
    "score a.txt -f json --percent": ("--percent needs -f table, md or latex",),
    "score a.txt -o a.txt": ("Directory 'a.txt' is a file",),
    "score short.txt -o run": ("run/run.json: holds a run in which a is of ", "--force"),
    "score a.txt --fail-under 0.3": ("'0.3' is not of the form KEY=VALUE",),
    "score a.txt --fail-under length=x": ("--fail-under takes KEY=NUMBER, such as sacrebleu=0.2",),
    "score a.txt --fail-under lenght=2": ("no system has 'lenght'", "did you mean 'length'?"),
    "score a.txt --confidence 95": ("a confidence level must be between 0 and 1, such as 0.95",),
    "score a.txt --seed 3": ("--seed", "--intervals studentized"),
    # Runs
    "compare a.txt": ("a.txt: is a file, and a saved run is expected", "dialeval score FILES -o FOLDER"),
    "compare nowhere": ("nowhere: there is no such folder", "dialeval score FILES -o FOLDER"),
    "report folder": ("folder: holds no saved run", "dialeval score FILES -o FOLDER"),
    "compare run --baseline bb": ("no system is called 'bb'", "did you mean 'b'?"),
    "compare run --systems a": ("a comparison needs two systems; there is a, b; named: a",),
    "compare run -m bleu-4": ("not every system has 'bleu-4'", "they share length, distinct-1, distinct-2"),
    "compare run --alpha 5": ("alpha must be between", "such as 0.05"),
    # Other commands
    "scroe a.txt": ("there is no command 'scroe'", "did you mean 'score'?"),
    "estimate run --human nowhere.jsonl": ("'nowhere.jsonl' does not exist",),
    "agreement run --human overall": ("no file 'overall' with ratings",),
    "multiwoz": ("name the predictions: -i",),
    "multiwoz -i a.txt --data town": ("a.txt:1: not JSON",),
    "breakdown a.txt": ("Missing option '-p' / '--data'",),
    "rank run": ("run is a folder", "`dialeval compare run`", "`judge pairs`"),
    "sample run -o sampled": ("how many responses to rate (-n)",),
    "data add glov": ("no data pack named 'glov'", "did you mean 'glove-6b'?"),
    "data verify glove-6b": ("glove-6b is not installed", "dialeval data add glove-6b"),
    "formats sharegp": ("there is no shape 'sharegp'", "did you mean 'sharegpt'?"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    """Write the files, and a saved run."""
    folder = tmp_path
    for name, content in FILES.items():
        (folder / name).write_text(content)
    (folder / "latin.txt").write_bytes("caf\xe9\n".encode("latin-1"))
    (folder / "a.zip").write_bytes(b"PK\x03\x04....")
    (folder / "folder").mkdir()
    systems = {name: folder / f"{name}.txt" for name in "ab"}
    package.evaluate(systems, metrics="length,distinct").save(folder / "run")
    return folder


@pytest.mark.parametrize("command", MISTAKES)
def test_a_message_names_the_cause_and_what_to_do(
    dialeval: Dialeval, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(folder / "cache"))
    done = dialeval(*command.split())
    assert done.returncode == 2, done.stdout
    message = " ".join(done.stderr.split())
    assert not [part for part in MISTAKES[command] if part not in message], message


def test_fields_in_the_plural_are_pointed_out(dialeval: Dialeval) -> None:
    assert (
        "the field 'references' is not read; rows have 'reference': --field" in dialeval("score", "plural.jsonl").stderr
    )
    done = dialeval("score", "plural.jsonl", "--field", "reference=references", "-f", "json")
    assert done.stderr.count("references") == 0
    assert json.loads(done.stdout)["systems"]["plural"]["metrics"]["chrf"]["mean"] == 1.0


def test_what_is_not_installed_is_named_with_its_command(dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_files, "find_spec", lambda _: None)
    done = dialeval("score", "a.txt", "-c", "b.txt", "-m", "judge")
    assert done.returncode == 2
    assert "judge needs the sentence encoder of the shipped judges; run: pip install" in done.stderr
    assert dialeval("score", "a.txt", "-c", "b.txt").returncode == 0, "the panel goes without"
    assert "judges and bertscore: needs the sentence encoder" in dialeval("metrics").stdout


PYTHON: dict[str, tuple[type[Exception], str]] = {
    "evaluate(['a'], metrics='distnct')": (package.SettingError, "did you mean 'distinct'?"),
    "evaluate(['a'], metrics='length')['b']": (KeyError, "no system is called 'b'; there are system"),
    "evaluate(['a'], metrics='length')['system']['lenght']": (KeyError, "did you mean 'length'?"),
    "evaluate(['a'])['system']['chrf']": (KeyError, "it was skipped: it needs references"),
    "evaluate({})": (package.DataError, ""),
    "load('nowhere')": (package.DataError, "nowhere: there is no such folder"),
}


@pytest.mark.parametrize("call", PYTHON)
def test_errors_of_python_suggest_names(call: str) -> None:
    kind, part = PYTHON[call]
    names: dict[str, Any] = {name: getattr(package, name) for name in ("evaluate", "compare", "load")}
    with pytest.raises(kind) as error:
        eval(call, names)
    assert part in str(error.value)
