"""`dialeval breakdown` as a user meets it."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown, format_original
from judges.tiny_judges import tiny_dialogue_judge

HERE = sample_data.folder() / "breakdown"
DATA, KEYWORDS, CAUTIOUS = (str(HERE / name) for name in ("data", "keywords", "cautious"))


def test_one_detector_prints_the_original_lines(dialeval: Dialeval) -> None:
    done = dialeval("breakdown", KEYWORDS, "-p", DATA, "-t", "0.5")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == format_original(evaluate_breakdown(DATA, KEYWORDS, 0.5))
    assert done.stdout.startswith("######### Data Stats #########\nFile Num : \t\t4\nSystem Utterance Num : \t16\n")


def test_several_detectors_stand_in_a_table_between_floors_and_ceilings(dialeval: Dialeval) -> None:
    done = dialeval("breakdown", KEYWORDS, f"shy={CAUTIOUS}", "-p", DATA)
    assert done.returncode == 0
    names = (
        "keywords",
        "shy",
        "floor/best-constant-O",
        "floor/always-X",
        "floor/mean-of-test-set",
        "ceiling/annotator",
    )
    assert all(name in done.stdout for name in names)
    assert "keywords, threshold 0: 4 dialogues, 16 turns" in done.stdout
    bare = dialeval("breakdown", KEYWORDS, "-p", DATA, "-f", "table", "--no-baselines")
    assert "floor/" not in bare.stdout


def test_json_holds_figures_and_tables_at_every_threshold(dialeval: Dialeval, tmp_path: Path) -> None:
    arguments = [KEYWORDS, "-p", DATA, "-t", "0,0.5", "--development", DATA, "-o", "saved"]
    done = dialeval("breakdown", *arguments, "-f", "json")
    run = json.loads(done.stdout)
    metrics = run["systems"]["keywords"]["metrics"]
    assert {"accuracy", "accuracy(threshold=0.5)", "f1-tx(threshold=0.5)", "jsd-o-t-x"} <= set(metrics)
    assert "threshold:0.5" in metrics["f1-x(threshold=0.5)"]["signature"]
    assert "floor/mean-of-development-set" in run["systems"]
    assert {"alpha-nominal", "alpha-ordinal"} <= set(run["systems"]["ceiling/annotator"]["metrics"])
    first, second = run["breakdown"]["keywords"]
    assert (first["threshold"], second["threshold"]) == (0.0, 0.5)
    assert sum(first["references"].values()) == first["turns"] == 16
    loaded = package.load(tmp_path / "saved")
    again = evaluate_breakdown(DATA, KEYWORDS, [0, 0.5], development=DATA).with_report_details()
    assert loaded.systems == again.systems
    assert loaded.details["breakdown"] == again.details["breakdown"]
    assert loaded.details["command"].startswith("dialeval breakdown ")
    rows = loaded["keywords"].table
    assert rows is not None
    texts = {name: next(iter(column)) for name, column in rows.texts.items()}
    assert texts["response"] == "O (O 0.63, T 0.25, X 0.12)", "what was said and labeled is kept for the report"
    assert loaded["keywords"]["accuracy"].scores is not None


@pytest.mark.parametrize(("format_", "sign"), [("md", "| accuracy"), ("latex", r"\toprule"), ("csv", "floor/always-X")])
def test_other_formats(dialeval: Dialeval, format_: str, sign: str) -> None:
    done = dialeval("breakdown", KEYWORDS, "-p", DATA, "-f", format_)
    assert done.returncode == 0
    assert sign in done.stdout


def test_a_row_per_turn(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("breakdown", KEYWORDS, CAUTIOUS, "-p", DATA, "--turns", "turns.csv")
    assert done.returncode == 0
    rows = list(csv.DictReader((tmp_path / "turns.csv").read_text().splitlines()))
    assert len(rows) == 32
    assert (rows[0]["system"], rows[0]["dialogue"], rows[0]["turn"]) == ("keywords", "library-hours", "2")
    correct = [row["correct"] == "True" for row in rows if row["system"] == "keywords"]
    assert sum(correct) / 16 == evaluate_breakdown(DATA, KEYWORDS)["keywords"]["accuracy"].mean
    assert all(
        float(row["share-O"]) + float(row["share-T"]) + float(row["share-X"]) == pytest.approx(1) for row in rows
    )


def test_all_problems_are_listed_and_lenient_goes_on(dialeval: Dialeval, tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    for path in Path(KEYWORDS).iterdir():
        (labels / path.name).write_text(path.read_text().replace('"breakdown": "O"', '"breakdown": "o"'))
    (labels / "library-hours.labels.json").unlink()
    done = dialeval("breakdown", "labels", "-p", DATA)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("dialeval: ") == 4
    assert "there are no labels for the dialogue 'library-hours'" in done.stderr
    assert "write O, T or X in capitals" in done.stderr
    lenient = dialeval("breakdown", "labels", "-p", DATA, "--lenient")
    assert lenient.returncode == 0
    assert "System Utterance Num : \t16\n" in lenient.stdout
    assert "warning: labels other than O, T, X: in 3 files" in lenient.stderr


def test_gates_and_usage(dialeval: Dialeval) -> None:
    gate = dialeval("breakdown", KEYWORDS, "-p", DATA, "-f", "csv", "--fail-under", "accuracy=1.1")
    assert gate.returncode == 1
    assert gate.stderr.count("gate failed") == 1, "floors and ceilings pass no gate"
    assert dialeval("breakdown", KEYWORDS, "-p", DATA, "-t", "half").returncode == 2
    several = dialeval("breakdown", KEYWORDS, CAUTIOUS, "-p", DATA, "-f", "original")
    assert several.returncode == 2
    assert "one detector at one threshold" in several.stderr


def test_the_original_lines_need_nothing_heavy() -> None:
    program = (
        "import sys\n"
        f"sys.argv = ['dialeval', 'breakdown', {KEYWORDS!r}, '-p', {DATA!r}]\n"
        "from dialeval.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print({name.split('.')[0] for name in sys.modules} & {'numba', 'pyarrow', 'rich', 'scipy', 'pandas'})"
    )
    before = os.times()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    assert seconds < 5, "0.3 s on a quiet machine; `python -m benchmarks breakdown` measures it"


def test_chats_are_labeled_and_the_labels_evaluated(dialeval: Dialeval, tmp_path: Path) -> None:
    tiny_dialogue_judge(tmp_path)
    judge = ["--judge-dir", str(tmp_path / "judge")]
    done = dialeval("breakdown", "detect", "-p", DATA, "-o", "labels", *judge)
    assert (done.returncode, done.stdout) == (0, "")
    assert " turns of 4 dialogues in labels: O " in done.stderr
    shown = dialeval("breakdown", str(tmp_path / "labels"), "-p", DATA)
    assert shown.stdout.startswith("######### Data Stats #########\nFile Num : \t\t4\n")
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "how are you ?"}]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"id": "d", "messages": messages}) + "\n")
    dialeval("breakdown", "detect", "chats.jsonl", "-o", "labels.jsonl", *judge)
    [document] = map(json.loads, (tmp_path / "labels.jsonl").read_text().splitlines())
    assert (document["dialogue-id"], [turn["turn-index"] for turn in document["turns"]]) == ("d", [1])
    assert dialeval("breakdown", "detect", "-o", "labels").returncode == 2
