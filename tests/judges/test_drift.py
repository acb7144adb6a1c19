"""Judge drift: the grades of two judges of the same replies."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from conftest import Dialeval
from dialeval.analysis.labels import estimate_rate, measure_label_agreement
from dialeval.core.errors import SettingError
from dialeval.core.fold import ANY_NUMBER
from dialeval.judges.drift import measure_judge_drift
from dialeval.reports.analyses import draw_bias
from dialeval.reports.documents import describe_result
from llm_server import MODEL, Body, ChatServer, Reply, shown_texts


def make_rows(grade: Any, systems: tuple[str, ...] = ("a", "b"), dialogues: int = 12) -> list[dict[str, Any]]:
    rows = []
    for system in systems:
        for number in range(dialogues):
            for turn in range(3):
                row = {"system": system, "dialog_id": f"d{number}", "context": [f"hi {number}"] * (2 * turn + 1)}
                scores = {"quality": grade(system, number, turn)}
                rows.append({**row, "response": f"reply {turn} of {system} in {number}", "scores": scores})
    return rows


def run(grade: Any, **settings: Any) -> dialeval.Run:
    return dialeval.evaluate(make_rows(grade, **settings), metrics="score:quality")


def test_shift_moves_and_order() -> None:
    first = run(lambda system, number, turn: 3 + (system == "a"))
    second = run(
        lambda system, number, turn: None if (number, turn) == (0, 0) else 5 if system == "b" else 4 - number % 2
    )
    drift = measure_judge_drift(first, second)
    assert [(each.system, each.rows, each.ungraded) for each in drift.systems] == [("a", 35, 1), ("b", 35, 1)]
    a, b = drift.systems
    assert a.before == 4
    assert a.after == pytest.approx(4 - 18 / 35)
    assert b.shift.value == 2
    assert drift.shift.value == pytest.approx((2 * 35 - 18) / 70)
    assert drift.shift.interval[0] > 0
    assert drift.agreement.value == pytest.approx(17 / 70)
    assert list(drift.moves) == [(3, 5, 35), (4, 3, 18), (4, 4, 17)]
    assert list(drift.reordered) == [("a", "b")]
    assert [row.system for row in drift.adjudicate[:35]] == ["b"] * 35
    assert len(drift.adjudicate) == 50
    shown = [json.loads(line) for line in drift.to_jsonl().splitlines()]
    assert set(shown[0]) == {"id", "system", "dialog_id", "context", "response"}
    assert dialeval.evaluate(shown, metrics="length")["a"]["length"].scored == 15


def test_without_a_change_few_intervals_exclude_zero() -> None:
    """Two judges with independent errors and no shift, 1,500 times."""
    chance, missed = np.random.default_rng(7), 0
    for _ in range(1500):
        dialogues = np.repeat(np.arange(20), 3)
        shift = chance.normal(0, 0.5, 20)[dialogues] + chance.normal(0, 1, 60)
        low, high = estimate_rate(np.rint(shift), dialogues, bounds=ANY_NUMBER).interval
        missed += not low <= 0 <= high
    assert 0.03 <= missed / 1500 <= 0.065


def test_what_cannot_be_compared_is_refused() -> None:
    first = run(lambda *_: 3)
    other = make_rows(lambda *_: 3)
    other[4]["response"] = "another reply"
    with pytest.raises(SettingError, match="1 replies of a differ between the runs"):
        measure_judge_drift(first, dialeval.evaluate(other, metrics="score:quality"))
    with pytest.raises(SettingError, match="name the grades to compare"):
        measure_judge_drift(first)
    with pytest.raises(SettingError, match="no system of both runs has the grades llm"):
        measure_judge_drift(first, first, metrics=["llm"])
    with pytest.raises(SettingError, match="no system"):
        measure_judge_drift(first, run(lambda *_: 3, systems=("c",)))


def test_the_command_compares_two_models(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = [
        {name: row[name] for name in ("system", "dialog_id", "context", "response")} for row in make_rows(lambda *_: 3)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(request: Body) -> Reply:
        is_strict = request["model"] != MODEL and "of b" in shown_texts(request)["reply to grade"]
        return Reply(grades={"quality": 2 if is_strict else 4, "relevance": 5})

    with ChatServer(answer) as server:
        for name, model in (("old", MODEL), ("new", "judge-2")):
            given = ["--llm-endpoint", server.address, "--llm-model", model, "--llm-mode", "grade", "-o", name]
            assert dialeval("score", "rows.jsonl", "-m", "llm", *given, "--llm-cache", "a.sqlite").returncode == 0
    done = dialeval("judge", "drift", "old", "new", "--save", "to-rate.jsonl")
    assert done.returncode == 0, done.stderr
    assert re.search(r"grades differently: mean shift .1\.00 \(.1\.00 to .1\.00\)", " ".join(done.stdout.split()))
    assert "nan" not in done.stdout
    assert "llm: judge-1" in " ".join(done.stdout.split())
    assert "36 replies to rate" in done.stderr
    assert len((tmp_path / "to-rate.jsonl").read_text().splitlines()) == 36
    measured = json.loads(dialeval("judge", "drift", "old", "new", "-f", "json").stdout)
    assert measured["shift"]["value"] == -1
    assert dialeval("judge", "drift", "old").returncode == 2


def test_a_yes_no_judge_is_checked_against_people_and_its_rates_corrected() -> None:
    """A judge that says yes too often: corrected rates of both systems contain the true ones."""
    chance = random.Random(3)
    rows, rated = [], []
    for number in range(1200):
        truth = chance.random() < (0.8 if number % 2 else 0.5)
        is_right = chance.random() < (0.95 if truth else 0.7)
        texts = {"system": "ab"[number % 2], "dialog_id": f"d{number // 4}", "context": [f"question {number}"]}
        row = {**texts, "response": f"reply {number}"}
        rows.append({**row, "scores": {"ok": int(truth == is_right)}})
        if number % 5 == 0:
            rated.append({**row, "scores": {"overall": int(truth)}})
    run = dialeval.evaluate(rows, metrics="score:ok")
    fit = measure_label_agreement(run, rated).metrics["score:ok"]
    assert fit.statistics["tpr"].interval[0] < 0.95 < fit.statistics["tpr"].interval[1]
    assert fit.statistics["tnr"].interval[0] < 0.7 < fit.statistics["tnr"].interval[1]
    for system, rate in (("a", 0.5), ("b", 0.8)):
        rates = fit.rates[system]
        assert rates.judged.n == 600
        assert rates.judged.value > rate
        assert rates.corrected.interval[0] < rate < rates.corrected.interval[1]
    assert "yes of a, corrected" in " ".join(table_texts(measure_label_agreement(run, rated)))


def test_errors_of_a_judge_are_explained_by_length_place_and_format() -> None:
    """A judge that likes lists by 1 and each doubling of the length by 0.5, and no turn or code."""
    chance, rated, graded = np.random.default_rng(5), list[Any](), list[Any]()
    for number in range(400):
        words, has_list, label = 2 ** int(chance.integers(1, 5)) - 1, chance.random() < 0.3, int(chance.integers(1, 6))
        text = "\n".join(["- a", "- b", "c " * (words - 4)] if has_list else ["w " * words])
        grade = label + has_list + 0.5 * np.log2(1 + len(text.split())) - 1.5 + chance.normal(0, 0.3)
        context = ["hi"] * int(chance.integers(1, 6))
        row = {"dialog_id": f"d{number // 4}", "context": context, "response": text, "system": "bot"}
        rated.append({**row, "scores": {"overall": label}})
        graded.append({**row, "scores": {"judge": float(np.clip(grade, 0.6, 5.4))}})
    run = dialeval.evaluate(graded, metrics="score:judge")
    found = measure_label_agreement(run, rated)
    bias = found.metrics["score:judge"].bias
    assert list(bias) == ["twice as many words", "twice as many turns before", "a list"]
    assert bias["a list"].interval[0] > 0.3
    assert bias["twice as many words"].interval[0] > 0.2
    low, high = bias["twice as many turns before"].interval
    assert low < 0 < high
    assert "twice as many words" in table_texts(found)
    assert "a list: +0.879 (0.812 to 0.945)" in draw_bias(found).description


def test_a_judge_that_likes_its_own_family_is_found_where_the_models_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialeval: Dialeval
) -> None:
    """The judge, a GPT, grades replies of the other GPT higher by 1 than people do."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(2)
    rows = []
    for number in range(120):
        label, system = chance.randrange(1, 6 - number % 2), "ab"[number % 2]
        row = {"dialog_id": f"d{number // 4}", "context": ["hi"], "response": f"reply {number}", "system": system}
        rows.append(
            json.dumps({**row, "scores": {"overall": label, "judge": label + (system == "b") + chance.gauss(0, 0.1)}})
        )
    Path("rows.jsonl").write_text("\n".join(rows))
    assert dialeval("score", "rows.jsonl", "-m", "score:judge", "-o", "run").returncode == 0
    compare = ["agreement", "run", "--human", "rows.jsonl", "--labels"]
    models = ["--model", "a=llama-3", "--model", "b=gpt-4o"]
    judge = ["--model", "score:judge=gpt-5"]
    done = dialeval(*compare, *models, *judge, "--figure", "bias.svg")
    assert done.returncode == 0, done.stderr
    assert re.search(r"same model family +(0\.9|1\.0)\d \((0\.9|1\.0)\d to (0\.9|1\.0)\d\)", done.stdout)
    assert "same model family: +" in Path("bias.svg").read_text()
    for given, missing in ((models, "no metric names the model of its judge"), ([*models[:2], *judge], "behind b is")):
        refused = dialeval(*compare, *given)
        assert refused.returncode == 2
        assert missing in " ".join(refused.stderr.split())
    only = dialeval(*compare, "--model", "a=gpt-4", *models[2:], *judge)
    assert re.search(r"same model family +–", only.stdout)


def table_texts(agreement: Any) -> list[str]:
    return [cell for table in describe_result(agreement).tables for line in table.cells for cell in line]
