"""Inputs changed at random against a plain twin of each original's rules, where no golden output exists.

The twins are held by the golden files as well: here, or where they are from.
"""

from __future__ import annotations

import gzip
import json
import math
import tarfile
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import lsdscc as plain_lsdscc
from benchmarks.multiwoz import Plain as PlainTask
from benchmarks.multiwoz import plain_minutes, plain_ratio, plain_time
from benchmarks.plain import Plain as PlainResponses
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

import evaluating
from dialeval.breakdown import evaluate_breakdown, format_original
from dialeval.cli.compat import compat
from dialeval.core.errors import DataError
from dialeval.multiwoz import Evaluator
from dialeval.originals.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus
from dialeval.suites.breakdown.plain import evaluate_folders
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses
from dialeval.suites.multiwoz.data import TrueStates, load_task
from dialeval.suites.multiwoz.venues import count_minutes, normalize_time
from golden import mutations
from golden.dialog_eval import inputs, per_response
from suites.breakdown.challenge import Row, by_the_original, write
from suites.breakdown.naive import GROUPS, distance, references
from suites.lsdscc import twins

pytestmark = [pytest.mark.golden, pytest.mark.long]

# Shrinking inputs of this size takes minutes, so that what fails is printed as it was drawn.
few = settings(
    max_examples=30,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)
CLOSE = 1e-9
LONG_LINE = 1000
"""Characters; the twin compares every word with every other."""


def unpacked(path: Path) -> str:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


# MultiWOZ


class Task:
    """The data, a sound prediction file and the plain twin."""

    def __init__(self, folder: Path) -> None:
        self.data = load_task(folder)
        whole = json.loads(unpacked(folder / "predictions" / "augpt.json.gz"))
        self.predictions = dict(list(whole.items())[:12])
        self.twin = PlainTask(self.data)

    def with_empty_true_values(self) -> Task:
        """A copy in which every third slot of a true state has no value."""
        copy = object.__new__(Task)
        files = self.data.files
        assert files.states is not None
        states = {
            dialogue: [
                {
                    domain: {slot: "" if at % 3 == 0 else value for at, (slot, value) in enumerate(slots.items())}
                    for domain, slots in state.items()
                }
                for state in files.states.states[dialogue]
            ]
            for dialogue in self.predictions
        }
        copy.data = replace(self.data, files=replace(files, states=TrueStates({**files.states.states, **states}, "-")))
        copy.predictions = {
            dialogue: [{**turn, "state": state} for turn, state in zip(turns, states[dialogue], strict=True)]
            for dialogue, turns in self.predictions.items()
        }
        copy.twin = PlainTask(copy.data)
        return copy

    def tracking(self, document: dict[str, Any]) -> dict[str, float]:
        """Joint accuracy, F, precision and recall of states."""
        right, agree, wrong, missing = [], 0, 0, 0
        true = self.data.files.states
        assert true is not None
        for dialogue, turns in document.items():
            for at, turn in enumerate(turns):
                here, there = (
                    {(domain, slot): value for domain, slots in state.items() for slot, value in slots.items()}
                    for state in map(self.twin.state, (turn["state"], true.states[dialogue][at]))
                )
                same = sum(key in there and plain_ratio(here[key], there[key]) > 95 for key in here)
                right.append(same == len(here) == len(there))
                agree, wrong, missing = agree + same, wrong + len(here) - same, missing + len(there) - same
        precision, recall = agree / (agree + wrong + 1e-10), agree / (agree + missing + 1e-10)
        f1 = 2 * precision * recall / (precision + recall + 1e-10)
        return {
            "joint_accuracy": 100 * sum(right) / len(right),
            "slot_f1": 100 * f1,
            "slot_precision": precision,
            "slot_recall": recall,
        }


@pytest.fixture(scope="module")
def task(shared_data: Path) -> Task:
    return Task(shared_data / "multiwoz")


def has_all_states(document: dict[str, Any]) -> bool:
    return all("state" in turn for turns in document.values() for turn in turns)


def documents(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cases of a folder and the golden outputs."""
    cases, golden = (json.loads(unpacked(folder / f"{name}.json.gz")) for name in ("cases", "golden"))
    return cases, golden


def test_the_twin_of_multiwoz_gives_the_golden_figures(task: Task, shared_data: Path) -> None:
    folder = shared_data / "multiwoz" / "mutated"
    cases, golden = documents(folder)
    for name, document in list(cases.items())[::4]:
        expected, found = golden[name]["bsr"], task.twin.evaluate(document)
        assert found["bleu"] == pytest.approx(expected["bleu"]["mwz22"], abs=1e-6)
        for rate in ("inform", "success"):
            assert round(found[rate], 1) == expected["success"][rate]["total"]
        assert found["msttr"] == pytest.approx(expected["richness"]["msttr"], rel=CLOSE)
        if has_all_states(document):
            assert task.tracking(document) == pytest.approx(golden[name]["d"]["dst"], rel=CLOSE, abs=CLOSE)


def test_the_twin_of_multiwoz_reads_times_as_the_original_does(task: Task, shared_data: Path) -> None:
    cases, golden = documents(shared_data / "multiwoz" / "times")
    ended = 0
    for name, document in list(cases.items())[::2]:
        expected = golden[name]["s"]
        if "ERR" in expected:
            with pytest.raises(ValueError, match="invalid literal for int"):
                task.twin.evaluate(document)
            ended += 1
        else:
            assert round(task.twin.evaluate(document)["inform"], 1) == expected["success"]["inform"]["total"]
        assert task.tracking(document) == pytest.approx(golden[name]["d"]["dst"], rel=CLOSE, abs=CLOSE)
    assert 0 < ended < 6


@given(mutations.times)
@settings(max_examples=500)
def test_times(value: str) -> None:
    try:
        expected = plain_time(value)
        again = plain_time(expected)
        number = plain_minutes(again)
    except ValueError:
        event("the original ends")
        count_minutes(normalize_time(normalize_time(value)))
        return
    assert (normalize_time(value), normalize_time(normalize_time(value)), count_minutes(again)) == (
        expected,
        again,
        number,
    )


@given(st.data())
@few
def test_multiwoz(task: Task, data: Any) -> None:
    document = data.draw(mutations.predictions(task.predictions))
    assume(any(document.values()))
    tracked = has_all_states(document)
    found = Evaluator(dst=tracked, data=task.data).run(document)["predictions"]
    normal = {
        dialogue: [{**turn, "response": task.twin.normalized(turn["response"])} for turn in turns]
        for dialogue, turns in document.items()
    }
    try:
        inform, success = task.twin.rates(normal)
    except ValueError:
        event("the original ends")  # docs/differences.md: a time that is not one
        return
    assert found["inform"].mean == pytest.approx(inform, abs=CLOSE)
    assert found["success"].mean == pytest.approx(success, abs=CLOSE)
    assert found["bleu/mwz22"].mean == pytest.approx(task.twin.bleu(normal), abs=1e-6)
    if tracked:
        for key, value in task.tracking(document).items():
            assert found[key.replace("_", "-")].mean == pytest.approx(value, rel=CLOSE, abs=CLOSE), key
    try:
        richness = task.twin.richness(normal)
    except ZeroDivisionError:
        event("fewer than 50 words")
        return
    for key, value in richness.items():
        assert found[key].mean == pytest.approx(value, rel=CLOSE, abs=CLOSE), key


@pytest.fixture(scope="module")
def blank(task: Task) -> Task:
    return task.with_empty_true_values()


@given(st.data())
@few
def test_tracking_of_empty_values(blank: Task, data: Any) -> None:
    document = data.draw(mutations.predictions(blank.predictions))
    assume(any(document.values()) and has_all_states(document))
    found = Evaluator(False, False, False, True, data=blank.data).run(document)["predictions"]
    try:
        expected = blank.tracking(document)
    except ValueError:
        event("the original ends")
        return
    for key, value in expected.items():
        assert found[key.replace("_", "-")].mean == pytest.approx(value, rel=CLOSE, abs=CLOSE), key


# DBDC


def printed(rows: Sequence[Row], dialogues: int, threshold: float) -> str:
    """What the challenge's eval.py prints for rows of dialogues."""
    hard: Counter[tuple[int, int]] = Counter()
    lenient: Counter[tuple[int, int]] = Counter()
    sums: Counter[tuple[str, str]] = Counter()
    for counts, (code, *probabilities) in rows:
        one, other = references(tuple(counts), threshold)  # type: ignore[arg-type]
        hard[int(code), one] += 1
        lenient[int(code), other] += 1
        shares = [count / sum(counts) for count in counts]
        for grouping, groups in GROUPS.items():
            left, right = ([sum(side[at] for at in group) for group in groups] for side in (shares, probabilities))
            for measure in ("jsd", "mse"):
                sums[measure, grouping] += distance(measure, left, right)  # type: ignore[assignment]
    correct = sum(hard[at, at] for at in range(3))
    lines = ["######### Data Stats #########", f"File Num : \t\t{dialogues}", f"System Utterance Num : \t{len(rows)}"]
    lines += [f"{label} Label Num : \t\t{sum(hard[code, at] for code in range(3))}" for at, label in enumerate("OTX")]
    lines += ["", "######### Results #########"]
    lines.append(f"Accuracy : \t\t{correct / len(rows):f} ({correct}/{len(rows)})")
    for name, table, labeled in (("X", hard, [2]), ("T+X", lenient, [1, 2])):
        hits = sum(table[code, 2] for code in labeled)
        said = sum(table[code, reference] for code in labeled for reference in range(3))
        real = sum(table[code, 2] for code in range(3))
        precision, recall = (hits / number if number else 0.0 for number in (said, real))
        f = 2 * precision * recall / (precision + recall) if hits else 0.0
        lines += ["", f"Precision ({name}) : \t{precision:f} ({hits}/{said})"]
        lines += [f"Recall    ({name}) : \t{recall:f} ({hits}/{real})", f"F-measure ({name}) : \t{f:f}"]
    for measure, shown in (("jsd", "JS divergence"), ("mse", "Mean squared error")):
        lines.append("")
        for grouping, classes in (("o-t-x", "O,T,X"), ("o-tx", "O,T+X"), ("ot-x", "O+T,X")):
            lines.append(f"{shown} ({classes}) : \t{sums[measure, grouping] / len(rows):f}")
    return "\n".join([*lines, "###########################", ""])


@pytest.fixture(scope="module")
def challenge(shared_data: Path) -> list[tuple[Any, Any]]:
    """Three dialogues of the challenge, each cut to eight turns, with the labels of a detector."""
    folder, found = shared_data / "dbdc" / "example", []
    for path in sorted((folder / "data").iterdir()):
        log = json.loads(path.read_bytes())
        log["turns"] = log["turns"][:8]
        labels = json.loads((folder / "noisy-oracle" / f"{log['dialogue-id']}.labels.json").read_bytes())
        found.append((log, labels))
    return found


@given(st.data(), st.sampled_from([0.0, 0.3, 0.5, 1.1, -1.0]))
@settings(few, max_examples=60)
def test_breakdown(challenge: list[tuple[Any, Any]], data: Any, threshold: float) -> None:
    pairs = list(challenge)
    at = data.draw(st.integers(0, len(pairs) - 1))
    log, labels = pairs[at]
    if data.draw(st.booleans()):
        log = data.draw(mutations.document(log))
    if data.draw(st.booleans()):
        labels = data.draw(mutations.document(labels))
    pairs[at] = log, labels
    try:
        rows = [row for pair in pairs for row in by_the_original(*pair)]
        names = [each["dialogue-id"] for each, _ in pairs]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AssertionError):
        event("the original ends")
        rows, names = [], [each["dialogue-id"] for each, _ in challenge]
    if rows:
        assume(len(set(names)) == len(names))
        assume(all(0 <= number <= 1e9 for _, (_, *numbers) in rows for number in numbers))  # docs/differences.md
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, ((log, labels), dialogue) in enumerate(zip(pairs, names, strict=True)):
            write(folder / "data", f"{number}.log.json", log)
            write(folder / "labels", f"{dialogue}.labels.json", labels)
        try:
            run = evaluate_breakdown(
                folder / "data", folder / "labels", threshold, match="position", lenient=True, baselines=False
            )
        except DataError:
            assert not rows
            run = None
        # The standard library alone gives the same lines, or leaves files that need a warning to the engine.
        plain = evaluate_folders(str(folder / "data"), str(folder / "labels"), threshold)
    if plain is not None:
        assert run is not None
        assert (plain, run.warnings) == (format_original(run), ())
        event("plain")
    if rows:
        assert run is not None
        assert format_original(run) == printed(rows, len(pairs), threshold)


def test_the_twin_of_breakdown_prints_the_golden_lines(shared_data: Path, tmp_path: Path) -> None:
    cases = json.loads((shared_data / "dbdc" / "golden.json").read_text())["cases"]
    with tarfile.open(shared_data / "dbdc" / "en-CIC_50.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    compared = 0
    for case in cases:
        if case["set"] != "en-CIC_50" or case["threshold"] not in ("0.0", "0.5"):
            continue
        logs = [json.loads(path.read_bytes()) for path in sorted((tmp_path / case["data"]).iterdir())]
        folder = tmp_path / case["labels"]
        labels = [json.loads((folder / f"{log['dialogue-id']}.labels.json").read_bytes()) for log in logs]
        rows = [row for pair in zip(logs, labels, strict=True) for row in by_the_original(*pair)]
        assert printed(rows, len(logs), float(case["threshold"])) == case["stdout"]
        compared += 1
    assert compared == 8


# LSDSCC


@pytest.fixture(scope="module")
def coverage(shared_data: Path) -> tuple[list[str], dict[str, Any]]:
    """Lines of four hypotheses and groups of eight queries."""
    folder = shared_data / "lsdscc"
    lines = unpacked(folder / "retrieval.txt.gz").split("\n")[:8]
    groups = json.loads(unpacked(folder / "test.group.json.gz"))
    eos = plain_lsdscc.EOS
    return [eos.join(line.split(eos)[:4]) for line in lines], dict(list(groups.items())[:8])


smoothed = SmoothingFunction().method3
ALIGNERS: dict[str, tuple[dict[str, Any], Any]] = {
    **{f"bleu-{n}": ({"n": n}, lambda own, group, n=n: twins.add_one_bleu(own, group, n)) for n in (1, 4, 6)},
    "nltk": (
        {"aligner": "nltk-bleu", "smooth": 3},
        lambda own, group: float(sentence_bleu(group, own, smoothing_function=smoothed)),
    ),
}


@given(st.data(), st.sampled_from(list(ALIGNERS)))
@few
def test_lsdscc(coverage: tuple[list[str], dict[str, Any]], data: Any, name: str) -> None:
    how, align = ALIGNERS[name]
    lines = data.draw(mutations.hypotheses(coverage[0], plain_lsdscc.EOS))
    groups = data.draw(mutations.reference_groups(coverage[1]))
    with tempfile.TemporaryDirectory() as folder:
        hypotheses, references = Path(folder, "hypotheses.txt"), Path(folder, "groups.json")
        hypotheses.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        references.write_text(json.dumps(groups))
        queries = plain_lsdscc.read(hypotheses, references)
        run = evaluate_hypotheses(hypotheses, reference_groups=references, settings={"coverage": how})["hypotheses"]
    expected = np.array([twins.figures(query, align)[1:] for query in queries])
    for key, column in zip(("mds", "pds", "max-bleu"), expected.T, strict=True):
        np.testing.assert_allclose(run[key].scores, column, rtol=0, atol=CLOSE, err_msg=key)  # type: ignore[arg-type]


@given(st.data(), st.sampled_from(mutations.FILE_NAMES), st.sampled_from(mutations.FILE_NAMES))
@few
def test_lsdscc_files(coverage: tuple[list[str], dict[str, Any]], data: Any, name: str, other: str) -> None:
    lines = data.draw(mutations.hypotheses(coverage[0], plain_lsdscc.EOS))
    with tempfile.TemporaryDirectory() as folder:
        hypotheses, references = Path(folder, name), Path(folder, f"groups {other}")
        hypotheses.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        references.write_text(json.dumps(coverage[1]))
        queries = plain_lsdscc.read(hypotheses, references)
        done = CliRunner().invoke(compat, ["lsdscc", str(hypotheses), "-r", str(references)])
        loaded = compute_score_on_corpus(
            HypothesisSet.load_corpus(filename=hypotheses), ReferenceSet.load_json_corpus(filename=references)
        )
    mds, pds, max_bleu = np.mean(
        [twins.figures(query, lambda own, group: twins.add_one_bleu(own, group, 4))[1:] for query in queries], axis=0
    )
    assert loaded == pytest.approx((mds, pds, max_bleu), abs=CLOSE)
    printed_figures = dict(line.split(": ") for line in done.stdout.splitlines())
    assert {key: float(value) for key, value in printed_figures.items()} == pytest.approx(
        {"MaxBLEU": max_bleu, "MDS": mds, "PDS": pds}, abs=1e-6
    )


# dialog-eval


class Responses:
    """The inputs of a small set and the plain twin."""

    def __init__(self, folder: Path) -> None:
        self.inputs = inputs(folder)
        texts = {name: self.lines(path) for name, path in self.inputs.items()}
        self.references, self.contexts = texts["references"], texts["contexts"]
        self.responses = self.lines(folder / "responses" / "lf.txt.gz")
        vectors = {
            word: np.array(numbers, np.float64) for word, *numbers in (line.split(" ") for line in texts["vectors"])
        }
        self.train, self.listed = texts["train"], texts["vocabulary"]
        self.twin = PlainResponses(texts["train"], texts["vocabulary"], vectors)

    @staticmethod
    def lines(path: Path) -> list[str]:
        return unpacked(path).removesuffix("\n").split("\n")

    def rows(self, responses: list[str], references: list[str], contexts: list[str]) -> list[dict[str, float]]:
        ratios = {n: self.twin.ratios(responses, references, n) for n in (1, 2)}
        texts = zip(responses, references, contexts, strict=True)
        return [self.twin.row(*row, ratios) for row in texts]


@pytest.fixture(scope="module")
def dialog_eval(shared_data: Path) -> Responses:
    return Responses(shared_data / "dialog-eval" / "nasty-a")


def test_the_twin_of_dialog_eval_gives_the_golden_figures(dialog_eval: Responses, shared_data: Path) -> None:
    texts = (dialog_eval.responses, dialog_eval.references, dialog_eval.contexts)
    ratios = {n: dialog_eval.twin.ratios(*texts[:2], n) for n in (1, 2)}
    golden = per_response(shared_data / "dialog-eval" / "nasty-a", "lf")
    compared = 0
    for at, row in enumerate(zip(*texts, strict=True)):
        if max(map(len, row)) < LONG_LINE:
            found = dialog_eval.twin.row(*row, ratios)
            expected = {key: column[at] for key, column in golden.items()}
            assert found == pytest.approx(expected, rel=CLOSE, abs=CLOSE, nan_ok=True)
            compared += 1
    assert compared > 30


@given(st.data())
@few
def test_dialog_eval(dialog_eval: Responses, data: Any) -> None:
    sides = (dialog_eval.responses, dialog_eval.references, dialog_eval.contexts)
    short = [at for at, row in enumerate(zip(*sides, strict=True)) if max(map(len, row)) < LONG_LINE]
    rows = data.draw(st.lists(st.sampled_from(short), min_size=1, max_size=10))
    names = ("responses", "references", "contexts")
    texts = [data.draw(mutations.lines([side[row] for row in rows])) for side in sides]
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder, f"{name}.txt") for name in names}
        for name, side in zip(names, texts, strict=True):
            paths[name].write_text("".join(f"{text}\n" for text in side), encoding="utf-8")
        found = evaluating.evaluate(**{**dialog_eval.inputs, **paths}, metrics="dialog-eval")["responses"]
    expected = dialog_eval.rows(*texts)
    for key in expected[0]:
        column = [row[key] for row in expected]
        np.testing.assert_allclose(found[key].scores, column, rtol=CLOSE, atol=CLOSE, err_msg=key)  # type: ignore[arg-type]
    for n in (1, 2):
        grams = [gram for text in texts[0] for gram in twins.grams(dialog_eval.twin.unified(text), n).elements()]
        share = len(set(grams)) / len(grams) if grams else math.nan
        assert found[f"distinct-{n}"].mean == pytest.approx(share, nan_ok=True)


@given(st.data())
@few
def test_dialog_eval_files(dialog_eval: Responses, data: Any) -> None:
    sides = (dialog_eval.responses, dialog_eval.references, dialog_eval.contexts)
    short = [at for at, row in enumerate(zip(*sides, strict=True)) if max(map(len, row)) < LONG_LINE]
    rows = data.draw(st.lists(st.sampled_from(short), min_size=2, max_size=10))
    flags = {"-ttt": sides[1], "-tts": sides[2], "-tns": None, "-tv": None}
    texts = {flag: [side[row] for row in rows] for flag, side in flags.items() if side is not None}
    texts |= {"-tns": dialog_eval.train, "-tv": dialog_eval.listed}
    systems = {
        name: data.draw(mutations.lines([sides[0][row] for row in rows]))
        for name in data.draw(st.lists(st.sampled_from(mutations.FILE_NAMES), min_size=1, max_size=3, unique=True))
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "responses")
        folder.mkdir()
        arguments = ["-r", str(folder), "-vv", str(dialog_eval.inputs["vectors"])]
        for flag, lines in texts.items():
            path = Path(name, f"{flag[1:]}-{data.draw(st.sampled_from(mutations.FILE_NAMES))}")
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            arguments += [flag, str(path)]
        for system, lines in systems.items():
            (folder / system).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        if data.draw(st.booleans()):
            (folder / "vocab.txt").write_text("the\n")
        done = CliRunner().invoke(compat, ["dialog-eval", *arguments])
        assert done.exit_code == 0, done.output
        head, *table = (folder / "metrics.txt").read_text().splitlines()
    keys = head.split()[1:]
    found = {system: cells for system, *cells in (line[:-1].rsplit(" ", len(keys)) for line in table)}
    assert list(found) == sorted(systems)
    for system, cells in found.items():
        means = dict(zip(keys, (float(cell.split(",")[0]) for cell in cells), strict=True))
        expected = means_of(dialog_eval, systems[system], texts["-ttt"], texts["-tts"])
        assert means == pytest.approx(expected, rel=CLOSE, abs=CLOSE, nan_ok=True), system


def means_of(
    dialog_eval: Responses, responses: list[str], references: list[str], contexts: list[str]
) -> dict[str, float]:
    """The mean of every metric by the twin; NaN where no row has a value."""
    rows = dialog_eval.rows(responses, references, contexts)
    values = {key: [row[key] for row in rows if not math.isnan(row[key])] for key in rows[0]}
    means = {key: math.fsum(known) / len(known) if known else math.nan for key, known in values.items()}
    for n in (1, 2):
        grams = [gram for text in responses for gram in twins.grams(dialog_eval.twin.unified(text), n).elements()]
        means[f"distinct-{n}"] = len(set(grams)) / len(grams) if grams else math.nan
    return means
