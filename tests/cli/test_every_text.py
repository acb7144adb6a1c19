"""Texts of every kind through every command that reads texts: right to left, emoji, combining marks, long lines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data

TEXTS = [
    "שלום עולם",
    "\u202eمرحبا\u202c بالعالم \u2067x\u2069",
    "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁷󠁬󠁳󠁿 🇺🇳 ☝🏿",
    "e\u0301\u0323 n\u0303 Z" + "\u0335\u0321" * 40,
    "今天天气很好 สวัสดี \u2028\u0085\ufeff",
    "x" * 100_000,
    "y " * 50_000,
]
SHORT = TEXTS[:4]


def lines(path: Path, rows: list[Any]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the inputs of all commands, made of these texts."""
    folder, here = tmp_path_factory.mktemp("made"), sample_data.folder()
    rows = [
        {"dialog_id": f"{n} {text[:20]}", "context": [text], "response": text, "reference": text, "topic": text[:30]}
        for n, text in enumerate(TEXTS)
    ]
    lines(folder / "a.jsonl", rows)
    pairs = list(zip(rows, TEXTS, strict=True))
    lines(folder / "b.jsonl", [{**row, "response": f"{text} y" if len(text) < 20 else "y"} for row, text in pairs])
    plain = [text.replace("\u2028", " ") for text in TEXTS]
    (folder / "a.txt").write_text("".join(f"{text}\n" for text in plain), encoding="utf-8")
    (folder / "responses").mkdir()
    shutil.copy(folder / "a.txt", folder / "responses")
    lines(
        folder / "rated.jsonl", [{**row, "system": (n % 2 and "a") or "b", "scores": n} for n, row in enumerate(rows)]
    )
    lines(folder / "pairs.jsonl", [{"a": TEXTS[0], "b": TEXTS[2], "better": "ab"[n % 2]} for n in range(9)])
    run = package.evaluate({"a": folder / "a.jsonl", "b": folder / "b.jsonl"}, metrics="length,chrf")
    run.save(folder / "run")
    drawn = package.sample(run, 5)
    drawn.save(folder / "to-rate")
    said = [{"id": row.id, "rater": SHORT[0], "scores": {"overall": 1 + row.row % 5}} for row in drawn.responses]
    lines(folder / "ratings.jsonl", said)
    (folder / "hypotheses.txt").write_text("".join(f"{text} </s> y\n" for text in SHORT), encoding="utf-8")
    groups = {f"{n}": {"1": [text], "2": [TEXTS[5]]} for n, text in enumerate(SHORT)}
    (folder / "groups.json").write_text(json.dumps(groups, ensure_ascii=False), encoding="utf-8")
    town = json.loads((here / "town" / "predictions" / "patient.json").read_text(encoding="utf-8"))
    for number, turn in enumerate(turn for turns in town.values() for turn in turns):
        turn["response"] += f" {TEXTS[number % len(TEXTS)]}"
        turn["state"] = {"inn": {"name": TEXTS[number % len(TEXTS)]}}
    (folder / "town.json").write_text(json.dumps(town, ensure_ascii=False), encoding="utf-8")
    guided = json.loads((here / "frames" / "forgetful.json").read_text(encoding="utf-8"))
    for number, turn in enumerate(turn for dialogue in guided for turn in dialogue["turns"][::2]):
        for frame in turn["frames"]:
            frame["state"]["slot_values"] = {"landing": [TEXTS[number % len(TEXTS)]], "dish": [SHORT[0]]}
            frame["state"]["requested_slots"] = [SHORT[number % len(SHORT)]]
    (folder / "guided.json").write_text(json.dumps(guided, ensure_ascii=False), encoding="utf-8")
    shutil.copytree(here / "breakdown" / "data", folder / "data")
    for path in (folder / "data").iterdir():
        log = json.loads(path.read_text(encoding="utf-8"))
        for number, turn in enumerate(log["turns"]):
            turn["utterance"] = TEXTS[number % len(TEXTS)]
        path.write_text(json.dumps(log, ensure_ascii=False), encoding="utf-8")
    return folder


HERE = str(sample_data.folder())
COMMANDS = [
    *(f"score a.jsonl b.jsonl -m length,distinct,bleu,chrf --by topic -f {each}" for each in ("table", "json", "csv")),
    *(f"score a.jsonl b.jsonl -m length,distinct -f {each}" for each in ("md", "latex", "metrics-txt")),
    "score a.txt -r a.txt -c a.txt --train a.txt -m length,per-unigram-entropy,kl-div,rouge-l,nlg-bleu",
    *(f"score a.txt -r a.txt --tokenizer {each} -m bleu" for each in ("13a", "intl", "zh", "char", "rouge", "auto")),
    "score a.jsonl --shards -m length,chrf -o out",
    f"score {SHORT[0].split()[0]}=a.txt {SHORT[2].split()[0]}=a.txt -m length -o out",
    "validate a.jsonl a.txt rated.jsonl",
    "compare run --by length -f table",
    "compare run -f latex",
    "sample run -n 4 -o drawn",
    "rate page to-rate --save page.html",
    "rate merge ratings.jsonl --sample to-rate --save merged.jsonl",
    "estimate run --human ratings.jsonl --sample to-rate --judge chrf",
    "agreement rated.jsonl --human overall -m length,chrf",
    "rank pairs.jsonl",
    "lsdscc hypotheses.txt -r groups.json -f json",
    "lsdscc hypotheses.txt -r groups.json --aligner sacre --tokenizer char -o out",
    "multiwoz -i town.json --data town -b -s -r -d -o out",
    "multiwoz -i town.json --data town --failures",
    "multiwoz explain town01 -i town.json --data town",
    "compat add-slot-domains -i town.json -o domains.json",
    f"sgd guided.json -r {HERE}/frames/references -m all -o out",
    f"breakdown {HERE}/breakdown/keywords -p data -f table -o out",
    "compat dialog-eval -ttt a.txt -tts a.txt -r responses",
    "compat lsdscc hypotheses.txt -r groups.json",
    f"compat dbdc -p data -o {HERE}/breakdown/keywords",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_every_text(dialeval: Dialeval, tmp_path: Path, made: Path, command: str) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    done = dialeval(*command.split())
    assert done.returncode == 0, done.stderr
    if command.endswith("-o out"):
        assert dialeval("report", "out", "--save", "out.html").returncode == 0


def test_the_report_shows_every_text_whole(dialeval: Dialeval, tmp_path: Path, made: Path) -> None:
    assert dialeval("report", str(made / "run"), "--save", "report.html").returncode == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for text in TEXTS:
        assert json.dumps(text, ensure_ascii=False)[1:-1].replace("\u2028", "\\u2028") in page
