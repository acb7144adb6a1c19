"""Labels, distances, references and tables of breakdown detection."""

from __future__ import annotations

import json
import math
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Dialeval
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.errors import DataError, SettingError
from dialeval.metrics.breakdown import (
    BreakdownDetection,
    BreakdownDistance,
    Codes,
    DetectionCounts,
    LabelAccuracy,
    count_tables,
    find_best_constant,
    hard_reference,
    lenient_reference,
    make_floors,
    mean_distribution,
    repeat_label,
    shares,
)
from dialeval.suites.breakdown.report import average_over_datasets, score_categories
from laws.breakdown import NAN, WORLD, Row
from laws.worlds import Place
from suites.breakdown.naive import GROUPS, distance, references

rows = st.lists(
    st.builds(
        Row,
        st.sampled_from([0.0, 1.0, 2.0, 3.0]),
        st.just((0.2, 0.3, 0.5)),
        st.tuples(*[st.integers(0, 9)] * 3).filter(any),
    ),
    min_size=1,
)


@given(rows, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_figures_are_those_of_counting(made: list[Row], threshold: float) -> None:
    hard: Counter[tuple[int, int]] = Counter()
    lenient: Counter[tuple[int, int]] = Counter()
    for row in made:
        one, other = references(row.counts, threshold)
        hard[int(row.label), one] += 1
        lenient[int(row.label), other] += 1
    place = Place(WORLD, made)

    def value(metric: LabelAccuracy | BreakdownDetection) -> float:
        (estimate,) = metric.finish(place.scored(metric, made).state).values()
        return estimate.mean

    assert value(LabelAccuracy(threshold)) == pytest.approx(sum(hard[code, code] for code in range(3)) / len(made))
    for of, table, labeled in (("x", hard, [2]), ("tx", lenient, [1, 2])):
        found = sum(table[code, 2] for code in labeled)
        said = sum(table[code, reference] for code in labeled for reference in range(3))
        real = sum(table[code, 2] for code in range(3))
        expected = {
            "precision": found / said if said else 0,
            "recall": found / real if real else 0,
            "f1": 2 * found / (said + real) if found else 0,
        }
        for figure, number in expected.items():
            metric = BreakdownDetection(figure, of, threshold)  # type: ignore[arg-type]
            assert value(metric) == pytest.approx(number)


def test_undefined_figures_are_zero_as_in_the_original() -> None:
    nothing = DetectionCounts()
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)
    some = DetectionCounts(found=2, labeled=4, real=8)
    assert (some.precision, some.recall, some.f1) == (0.5, 0.25, 1 / 3)


PROBABILITIES = (0.2, 0.3, 0.5)
annotated_rows = st.lists(
    st.builds(
        Row,
        st.sampled_from([0.0, 1.0, 2.0, 3.0]),
        st.just(PROBABILITIES),
        st.tuples(*[st.integers(0, 9)] * 3).filter(any),
    ),
    min_size=1,
)


@given(annotated_rows, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_as_counted_turn_by_turn(made: list[Row], threshold: float) -> None:
    hard: Counter[tuple[int, int]] = Counter()
    lenient: Counter[tuple[int, int]] = Counter()
    for row in made:
        one, other = references(row.counts, threshold)
        hard[int(row.label), one] += 1
        lenient[int(row.label), other] += 1
    labels = np.array([[row.label, *PROBABILITIES] for row in made])
    share = shares(np.array([row.counts for row in made], np.float64))
    tables = count_tables(Codes.of(labels, share, threshold), 1, threshold)
    names = "OTX"
    assert tables.confusion == {
        name: {other: hard[label, code] for code, other in enumerate(names)} for label, name in enumerate(names)
    }
    assert tables.confusion_lenient == {
        name: {"O": lenient[label, 0], "X": lenient[label, 2]} for label, name in enumerate(names)
    }
    assert (tables.turns, tables.scored) == (len(made), len(made))
    assert tables.correct == sum(hard[code, code] for code in range(3))
    place = Place(WORLD, made)
    for counts, metric in (
        (tables.x, BreakdownDetection("f1", "x", threshold)),
        (tables.tx, BreakdownDetection("f1", "tx", threshold)),
    ):
        (estimate,) = metric.finish(place.scored(metric, made).state).values()
        assert counts.f1 == estimate.mean


JAPANESE = ["こんにちは。", "今日は何をしましたか。", "わたしは犬です。", "犬が話せるのですか。"]


def dialogue(name: str, judgments: list[str], texts: list[str] | None = None) -> dict[str, object]:
    turns: list[dict[str, object]] = []
    for at, judged in enumerate(judgments):
        annotations = [{"breakdown": letter, "annotator-id": str(number)} for number, letter in enumerate(judged)]
        said = texts or ["hello", "and you ?"]
        turns.append({"turn-index": 2 * at, "speaker": "S", "utterance": said[0], "annotations": annotations})
        turns.append({"turn-index": 2 * at + 1, "speaker": "U", "utterance": said[1], "annotations": []})
    return {"dialogue-id": name, "turns": turns}


def labels(name: str, letters: str) -> dict[str, object]:
    sure = {letter: {f"prob-{other}": float(other == letter) for other in "OTX"} for letter in "OTX"}
    entries = [{"turn-index": 2 * at, "labels": [{"breakdown": each, **sure[each]}]} for at, each in enumerate(letters)]
    return {"dialogue-id": name, "turns": entries}


DATA = {
    "english": [dialogue("a", ["OOO"] * 4), dialogue("b", ["XXX"] * 4)],
    "japanese": [dialogue("c", ["XXO"], JAPANESE), dialogue("d", ["OOT"], JAPANESE[2:])],
}
LABELS = {"detector": [labels("a", "OOOO"), labels("b", "XXXO"), labels("c", "O"), labels("d", "O")]}


def test_every_data_set_counts_equally() -> None:
    run = evaluate_breakdown(DATA, LABELS, 0.5)
    averages = average_over_datasets(run)
    found = averages["detector"]["accuracy"]
    by_dataset = [averages[f"detector/{name}"]["accuracy"].mean for name in ("english", "japanese")]
    assert by_dataset == [7 / 8, 1 / 2]
    assert found.mean == pytest.approx((7 / 8 + 1 / 2) / 2)
    assert run["detector"]["accuracy"].mean == pytest.approx(8 / 10)
    assert "floor/always-X" in averages
    alone = evaluate_breakdown(DATA["english"], [labels("a", "OOOO"), labels("b", "XXXO")], 0.5)
    assert alone["labels"]["accuracy"].mean == 7 / 8
    with pytest.raises(SettingError, match="there is one data set"):
        average_over_datasets(alone)


def test_the_command(dialeval: Dialeval, tmp_path: Path) -> None:
    for name, documents in DATA.items():
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in documents)
        )
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(each) + "\n" for each in LABELS["detector"]))
    data = ("-p", "en=english.jsonl", "-p", "ja=japanese.jsonl")
    done = dialeval("breakdown", "mine.jsonl", *data, "-t", "0.5", "--macro", "-f", "json", "--no-baselines")
    assert done.returncode == 0, done.stderr
    systems = json.loads(done.stdout)["systems"].items()
    means = {name: system["metrics"]["accuracy"]["mean"] for name, system in systems}
    assert means == {"mine": 0.6875, "mine/en": 0.875, "mine/ja": 0.5}
    assert "mine/ja" in dialeval("breakdown", "mine.jsonl", *data, "--macro").stdout
    refused = dialeval("breakdown", "mine.jsonl", *data, "--macro", "-f", "original")
    assert refused.returncode == 2
    # Without --macro the data sets are one.
    assert "Accuracy : \t\t0.800000 (8/10)" in dialeval("breakdown", "mine.jsonl", *data, "-t", "0.5").stdout


@pytest.mark.golden
def test_values_of_each_data_set_are_those_of_the_challenge(shared_data: Path, tmp_path: Path) -> None:
    golden = json.loads((shared_data / "dbdc" / "golden.json").read_text())
    sets = ("en-CIC_50", "en-IRIS_50", "ja-DCM")
    (tmp_path / "labels").mkdir()
    for name in sets:
        with tarfile.open(shared_data / "dbdc" / f"{name}.tar.gz") as archive:
            archive.extractall(tmp_path, filter="data")
        for file in (tmp_path / name / "noisy-oracle").iterdir():
            shutil.copy(file, tmp_path / "labels")
    run = evaluate_breakdown(
        {name: tmp_path / name / "data" for name in sets}, tmp_path / "labels", 0.5, baselines=False
    )
    averages = average_over_datasets(run)
    found = averages["labels"]["accuracy"]
    cases = {
        case["set"]: case["figures"]["accuracy"]
        for case in golden["cases"]
        if case["detector"] == "noisy-oracle" and case["threshold"] == "0.5"
    }
    for name in sets:
        assert averages[f"labels/{name}"]["accuracy"].mean == pytest.approx(cases[name])
    assert found.mean == pytest.approx(np.mean([cases[name] for name in sets]))
    assert found.interval is not None
    assert found.interval[0] < found.mean < found.interval[1]


CATEGORIZED = [
    {
        "dialogue-id": name,
        "turns": [
            {"turn-index": 0, "speaker": "S", "utterance": "わたしは犬です。", "annotations": first},
            {"turn-index": 1, "speaker": "U", "utterance": "え？", "annotations": []},
            {"turn-index": 2, "speaker": "S", "utterance": "そうです。", "annotations": [{"breakdown": "O"}]},
        ],
    }
    for name, first in (
        ("p", [{"breakdown": "X", "error": ["矛盾", "無視"]}, {"breakdown": "X", "error": "矛盾"}, {"breakdown": "T"}]),
        ("q", [{"breakdown": "X", "error": ["無視"]}, {"breakdown": "X", "error": ["無視", "矛盾"]}]),
    )
]


def test_error_categories_are_sets_of_labels(dialeval: Dialeval, tmp_path: Path) -> None:
    given = [
        {"dialogue-id": "p", "turns": [{"turn-index": 0, "labels": [{"breakdown": "X", "error": ["矛盾"]}]}]},
        {"dialogue-id": "q", "turns": [{"turn-index": 0, "labels": [{"breakdown": "X", "error": ["無視", "矛盾"]}]}]},
    ]
    found = score_categories(CATEGORIZED, {"mine": given, "silent": []}, "error")
    # True: 矛盾 (two of three), and 無視 (both); 矛盾 of the second is one of two, which is not more than half.
    match, f1 = found["mine"]["exact-match"], found["mine"]["f1"]
    assert (match.scored, match.mean) == (2, 1 / 2)
    assert f1.mean == pytest.approx(2 * 2 / (3 + 2))
    assert [found["silent"][key].mean for key in ("exact-match", "f1")] == [0, 0]
    # Of two dialogues a resample has either twice, or both.
    assert match.interval == (0.0, 1.0)
    assert f1.interval == pytest.approx((2 / 3, 1.0))
    with pytest.raises(SettingError, match="no annotated turn has a category in 'error_category' that more than half"):
        score_categories(CATEGORIZED, {"mine": given})
    with pytest.raises(SettingError, match="no annotated turn has a category in 'other'"):
        score_categories(CATEGORIZED, {"mine": given}, "other")
    with pytest.raises(DataError, match="has no turns with labels"):
        score_categories(CATEGORIZED, {"mine": [{"dialogue-id": "p"}]}, "error")
    for name, documents in (("data", CATEGORIZED), ("mine", given)):
        lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in documents)
        (tmp_path / f"{name}.jsonl").write_text(lines, "utf-8")
    done = dialeval("breakdown", "mine.jsonl", "-p", "data.jsonl", "--error-categories", "error")
    assert done.returncode == 0, done.stderr
    assert "exact-match" in done.stdout


def test_without_an_interval_of_each_data_set_there_is_none_of_the_average() -> None:
    data = {**DATA, "japanese": DATA["japanese"][:1]}
    run = evaluate_breakdown(data, {"detector": LABELS["detector"][:3]}, 0.5, baselines=False)
    found = average_over_datasets(run)["detector"]["accuracy"]
    assert (found.mean, found.interval) == (7 / 16, None)


@given(st.tuples(*[st.one_of(st.floats(1e-9, 1), st.just(0.0))] * 3), st.tuples(*[st.integers(0, 30)] * 3).filter(any))
def test_distances_are_the_formulas(p: tuple[float, float, float], counts: tuple[int, int, int]) -> None:
    row = Row(0.0, p, counts)
    q = [count / sum(counts) for count in counts]
    for measure in ("jsd", "mse"):
        for grouping, groups in GROUPS.items():
            metric = BreakdownDistance(measure, grouping)  # type: ignore[arg-type]
            (found,) = Place(WORLD, [row]).scored(metric, [row]).scores[metric.name]
            left, right = ([sum(side[code] for code in group) for group in groups] for side in (p, q))
            assert found == pytest.approx(distance(measure, left, right), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("probabilities", [(-0.1, 0.6, 0.5), (NAN, 0.5, 0.5), (math.inf, 0.0, 0.0), (1e300, 0.0, 0.0)])
def test_what_is_no_probability_is_not_scored(probabilities: tuple[float, float, float]) -> None:
    row = Row(0.0, probabilities)
    for name in BreakdownDistance.presets:
        metric = BreakdownDistance(**BreakdownDistance.presets[name])  # type: ignore[arg-type]
        (found,) = Place(WORLD, [row]).scored(metric, [row]).scores[name]
        assert np.isnan(found)


counts = st.tuples(*[st.integers(0, 30)] * 3).filter(any)


@given(st.lists(counts, min_size=1), st.sampled_from([-1.0, 0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.1]))
def test_both_references_are_the_naive_ones(rows: list[tuple[int, int, int]], threshold: float) -> None:
    share = shares(np.array(rows, np.float64))
    expected = [references(row, threshold) for row in rows]
    found = zip(hard_reference(share, threshold), lenient_reference(share, threshold), strict=True)
    assert [(int(hard), int(lenient)) for hard, lenient in found] == expected


def test_the_example_of_the_original_document() -> None:
    share = shares(np.array([[2.0, 3.0, 5.0]]))
    assert hard_reference(share, 0.5)[0] == 2
    assert hard_reference(share, 0.51)[0] == 0


COUNTS = np.array([[4.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.0]])


def test_floors_by_hand() -> None:
    assert find_best_constant(COUNTS, 0.0) == 1
    assert find_best_constant(COUNTS, 0.9) == 0
    assert mean_distribution(COUNTS) == pytest.approx([5 / 12, 6 / 12, 1 / 12])
    found = make_floors(COUNTS, [0.0, 0.9])
    names = ["floor/best-constant-T", "floor/best-constant-O", "floor/always-X", "floor/mean-of-test-set"]
    assert list(found) == names
    assert found["floor/always-X"].tolist() == [[2.0, 0.0, 0.0, 1.0]] * 4
    assert found["floor/mean-of-test-set"][0] == pytest.approx([1.0, 5 / 12, 6 / 12, 1 / 12])
    known = make_floors(COUNTS, [0.0], np.array([[0.0, 0.0, 2.0]]))
    assert known["floor/mean-of-development-set"][0].tolist() == [2.0, 0.0, 0.0, 1.0]
    assert repeat_label(1, 1).tolist() == [[1.0, 0.0, 1.0, 0.0]]
