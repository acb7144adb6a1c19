"""`dialeval compat PROGRAM`: the flags of the originals, and what they print and write."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import Dialeval
from dialeval import sample_data
from dialeval.reports.tables import METRICS_TXT
from golden.dialog_eval import existing

HERE = sample_data.folder()
TOWN = str(HERE / "town" / "predictions" / "patient.json")


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HERE / "responses", tmp_path / "responses"))


def figures(text: str) -> dict[str, dict[str, list[float]]]:
    """A metrics.txt: file -> metric -> mean, deviation, confidence."""
    head, *lines = text.splitlines()
    keys = head.split()[1:]
    rows = [line.split() for line in lines if line]
    return {
        name: {key: [float(part) for part in cell.split(",")] for key, cell in zip(keys, cells, strict=True)}
        for name, *cells in rows
    }


def test_dialog_eval_writes_metrics_txt_beside_the_responses(dialeval: Dialeval, responses: Path) -> None:
    inputs = ["-tns", "train", "-tts", "contexts", "-ttt", "references", "-vv", "vectors"]
    flags = [part if part.startswith("-") else str(HERE / f"{part}.txt") for part in inputs]
    first = dialeval("compat", "dialog-eval", *flags, "-r", "responses")
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "written to responses/metrics.txt\n")
    found = figures((responses / "metrics.txt").read_text())
    assert list(found) == ["careful.txt", "chatty.txt", "generic.txt"]
    assert all(tuple(row) == METRICS_TXT for row in found.values())
    # what was written is no response file, and the long names are the short ones
    long = dict(zip(inputs[::2], ["--train_source", "--test_source", "--test_target", "--vector_vocab"], strict=True))
    again = dialeval(
        "compat", "dialog-eval", *(long.get(part, part) for part in flags), "--test_responses", "responses"
    )
    assert again.returncode == 0
    assert figures((responses / "metrics.txt").read_text()) == found


def test_dialog_eval_on_one_file_says_what_is_missing(dialeval: Dialeval, responses: Path) -> None:
    done = dialeval("compat", "dialog-eval", "-ttt", str(HERE / "references.txt"), "-r", "responses/careful.txt")
    assert done.returncode == 0
    (row,) = figures((responses / "metrics.txt").read_text()).values()
    missing = [key for key in METRICS_TXT if "entropy" in key or "embedding" in key or key == "coherence"]
    assert done.stderr.splitlines()[1:] == [f"not computed without -tns, -tts, -vv: {', '.join(missing)}"]
    assert tuple(row) == tuple(key for key in METRICS_TXT if key not in missing)


def test_dialog_eval_settings_count(dialeval: Dialeval, responses: Path) -> None:
    seen = []
    for flags in ([], ["-t", "3.94"], ["--t", "3.94", "-s", "7"], ["--bleu_smoothing", "7"]):
        inputs = ["-ttt", str(HERE / "references.txt"), "-r", "responses/careful.txt"]
        assert dialeval("compat", "dialog-eval", *inputs, *flags).returncode == 0
        seen.append(figures((responses / "metrics.txt").read_text())["careful.txt"]["bleu-4"])
    plain, wide, both, smoothed = seen
    assert plain[:2] == wide[:2]
    assert wide[2] == pytest.approx(2 * plain[2])
    assert both[:2] == smoothed[:2] != plain[:2]


def test_dialog_eval_knows_the_words_of_the_vocabulary(dialeval: Dialeval, responses: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("the\n")
    found = []
    for flags in ([], ["-tv", "vocab.txt"], ["--text_vocab", "vocab.txt"]):
        assert dialeval("compat", "dialog-eval", "-r", "responses/careful.txt", *flags).returncode == 0
        found.append(figures((responses / "metrics.txt").read_text())["careful.txt"]["distinct-1"][0])
    assert found[0] > found[1] == found[2]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".json", ".parquet", ".md", "", " of June"])
def test_dialog_eval_reads_every_input_as_text(
    dialeval: Dialeval, responses: Path, tmp_path: Path, suffix: str
) -> None:
    texts = {"train": "the cat\nthe dog\n", "vocabulary": "the\ncat\n", "references": "", "contexts": ""}
    texts["references"] = texts["contexts"] = (HERE / "references.txt").read_text()
    careful = (responses / "careful.txt").read_text()
    shutil.rmtree(responses)
    found = []
    for ending in (".txt", suffix):
        place = tmp_path / f"with{ending}"
        place.mkdir()
        for name, text in {**texts, "careful": careful}.items():
            (place / f"{name}{ending}").write_text(text)
        flags = {"-tns": "train", "-tv": "vocabulary", "-ttt": "references", "-tts": "contexts", "-r": "careful"}
        given = [part for flag, name in flags.items() for part in (flag, f"{place.name}/{name}{ending}")]
        done = dialeval("compat", "dialog-eval", *given)
        assert done.returncode == 0, done.stderr
        found.append((place / "metrics.txt").read_text().replace(f"careful{ending} ", "careful "))
    assert found[0] == found[1]


def test_dialog_eval_reads_every_file_of_a_folder_but_what_it_wrote(dialeval: Dialeval, responses: Path) -> None:
    careful = (responses / "careful.txt").read_text()
    for name in ("care ful.txt", "careful.csv", "careful.log", "careful"):
        (responses / name).write_text(careful)
    for name in ("vocab.txt", "vocab.npy", ".hidden"):
        (responses / name).write_text("the\n")
    done = dialeval("compat", "dialog-eval", "-ttt", str(HERE / "references.txt"), "-r", "responses")
    assert done.returncode == 0, done.stderr
    passed_over = "responses/.hidden, responses/vocab.npy, responses/vocab.txt"
    assert f"not read as responses: {passed_over}\n" in done.stderr
    head, *lines = (responses / "metrics.txt").read_text().splitlines()
    rows = [line.removesuffix(" ").rsplit(" ", len(head.split()) - 1) for line in lines]
    names = ["care ful.txt", "careful", "careful.csv", "careful.log", "careful.txt", "chatty.txt", "generic.txt"]
    assert [name for name, *_ in rows] == names  # the blank stays, as in the original
    assert len({tuple(cells) for name, *cells in rows if name.startswith("care")}) == 1


def test_dialog_eval_names_the_file_that_is_too_long(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a\n")
    (tmp_path / "theirs.tsv").write_text("a\nb\n")
    done = dialeval("compat", "dialog-eval", "-ttt", "theirs.tsv", "-r", "mine.csv")
    assert done.returncode == 2
    assert "has 1 rows, but theirs.tsv has 2" in done.stderr


def test_dialog_eval_takes_any_finite_factor(dialeval: Dialeval, responses: Path) -> None:
    inputs = ["-ttt", str(HERE / "references.txt"), "-r", "responses/careful.txt"]
    found = {}
    for t in ("1", "0", "-2"):
        assert dialeval("compat", "dialog-eval", *inputs, "-t", t).returncode == 0
        found[t] = figures((responses / "metrics.txt").read_text())["careful.txt"]["bleu-4"]
    mean, std, confidence = found["1"]
    assert confidence > 0
    assert found["0"] == [mean, std, 0]
    assert found["-2"] == [mean, std, -2 * confidence]
    assert dialeval("compat", "dialog-eval", *inputs, "-t", "nan").returncode == 2


@pytest.mark.golden
def test_dialog_eval_golden(dialeval: Dialeval, shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "dialog-eval" / "dbdc3-en"
    shutil.copytree(folder / "responses", tmp_path / "responses")
    named = {"-tns": "train_source", "-tts": "test_source", "-ttt": "test_target", "-tv": "vocab", "-vv": "vectors"}
    flags = [part for flag, name in named.items() for part in (flag, str(existing(folder / f"{name}.txt")))]
    assert dialeval("compat", "dialog-eval", *flags, "-r", "responses").returncode == 0
    found = figures((tmp_path / "responses" / "metrics.txt").read_text())
    golden = json.loads((folder / "golden.json").read_text())["responses"]
    assert len(found) == len(golden)
    for name, case in golden.items():
        (expected,) = figures(case["metrics_txt"]).values()
        row = found[f"{name}.txt"]
        assert list(row) == list(expected)
        for key, values in expected.items():
            assert row[key] == pytest.approx(values, rel=1e-9, abs=1e-12), (name, key)


def test_mwzeval_prints_and_writes(dialeval: Dialeval, tmp_path: Path) -> None:
    flags = ["--bleu", "--success", "--richness", "--input", TOWN, "--data", "town"]
    done = dialeval("compat", "mwzeval", *flags, "--output", "out.json")
    assert done.returncode == 0
    written = json.loads((tmp_path / "out.json").read_text())
    assert (list(written), written["dst"]) == (["bleu", "success", "richness", "dst"], None)
    assert (tmp_path / "out.json").read_text() == json.dumps(written, indent=2) + "\n"
    lines = done.stdout.splitlines()
    titles = [f"====== {name.upper()} ======" for name, values in written.items() if values is not None]
    assert [line for line in lines if "=" in line] == titles
    assert f"inform         {written['success']['inform']}" in lines
    assert f"msttr          {written['richness']['msttr']}" in lines
    short = dialeval("compat", "mwzeval", "-b", "-s", "-r", "-i", TOWN, "--data", "town")
    assert short.stdout == done.stdout
    assert json.loads((tmp_path / "evaluation_results.json").read_text()) == written


def test_mwzeval_leaves_out_what_is_not_asked_for(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("compat", "mwzeval", "-d", "-i", TOWN, "--data", "town", "-o", "out.json")
    written = json.loads((tmp_path / "out.json").read_text())
    assert [name for name, values in written.items() if values is not None] == ["dst"]
    assert done.stdout.startswith("====== DST ======\njoint_accuracy ")


@pytest.mark.golden
def test_mwzeval_golden(dialeval: Dialeval, shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "multiwoz"
    (tmp_path / "ubar.json").write_bytes(gzip.decompress((folder / "predictions" / "ubar.json.gz").read_bytes()))
    done = dialeval("compat", "mwzeval", "-b", "-s", "-r", "-i", "ubar.json", "--data", str(folder), "-o", "out.json")
    assert done.returncode == 0
    found: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    golden = json.loads((folder / "golden.json").read_text())["systems"]["ubar"]["outputs"]["as_shipped"]
    assert found["success"] == golden["success"]
    assert found["bleu"] == pytest.approx(golden["bleu"], abs=1e-6)
    assert found["richness"] == pytest.approx(golden["richness"], abs=1e-9)


def test_lsdscc_prints_three_lines(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text('{"hi": {"1": ["hello"], "2": ["good day"]}}')
    (tmp_path / "a.txt").write_text("hello </s> hello\n")
    (tmp_path / "b.txt").write_text("hello ; hello\n")
    done = dialeval("compat", "lsdscc", "a.txt", "-r", "groups.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "MaxBLEU: 1.000000\nMDS: 0.500000\nPDS: 0.500000\n"
    for eos in ("-e", "--eos"):
        assert dialeval("compat", "lsdscc", "b.txt", "--reference_file", "groups.json", eos, ";").stdout == done.stdout


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".jsonl", ".parquet", " 2"])
def test_lsdscc_reads_lines_and_json_whatever_the_suffixes(dialeval: Dialeval, tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"groups{suffix}").write_text('{"hi": {"1": ["hello"], "2": ["good day"]}}')
    (tmp_path / f"a{suffix}").write_text("hello </s> hello\n")
    done = dialeval("compat", "lsdscc", f"a{suffix}", "-r", f"groups{suffix}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "MaxBLEU: 1.000000\nMDS: 0.500000\nPDS: 0.500000\n"


@pytest.mark.golden
@pytest.mark.parametrize("case", ["fake_hypo", "generic", "retrieval"])
def test_lsdscc_golden(dialeval: Dialeval, shared_data: Path, case: str) -> None:
    folder = shared_data / "lsdscc"
    done = dialeval("compat", "lsdscc", str(folder / f"{case}.txt.gz"), "-r", str(folder / "test.group.json.gz"))
    golden = json.loads((folder / f"{case}.golden.json").read_text())["aligners"]["bleu"]["corpus"]
    expected = {"MaxBLEU": golden["max_bleu"], "MDS": golden["mds"], "PDS": golden["pds"]}
    assert done.stdout == "".join(f"{name}: {value:f}\n" for name, value in expected.items())


def test_dbdc_matches_by_position_and_goes_on(dialeval: Dialeval, tmp_path: Path) -> None:
    source = HERE / "breakdown"
    flags = ["-p", str(source / "data"), "-o", "labels", "-t", "0.5"]
    ours = ["labels", "-p", str(source / "data"), "-t", "0.5"]
    labels = Path(shutil.copytree(source / "keywords", tmp_path / "labels"))
    plain = dialeval("compat", "dbdc", *flags)
    assert plain.returncode == 0
    assert plain.stdout == dialeval("breakdown", *ours).stdout
    assert dialeval("compat", "dbdc", *flags[:-2]).stdout == dialeval("breakdown", *ours[:-2]).stdout != plain.stdout
    path = next(labels.iterdir())
    document = json.loads(path.read_text())
    for turn in document["turns"]:
        turn["turn-index"] += 100
    path.write_text(json.dumps(document))
    shifted = dialeval("compat", "dbdc", *flags)
    assert (shifted.returncode, shifted.stdout) == (0, plain.stdout)
    assert "warning" in shifted.stderr
    assert dialeval("breakdown", *ours).returncode == 2


def test_dbdc_counts_what_it_could_not_score(dialeval: Dialeval, tmp_path: Path) -> None:
    labels = Path(shutil.copytree(HERE / "breakdown" / "keywords", tmp_path / "labels"))
    flags = ["-p", str(HERE / "breakdown" / "data"), "-o", "labels"]
    first, *others = sorted(labels.iterdir())
    first.unlink()
    some = dialeval("compat", "dbdc", *flags)
    assert (some.returncode, some.stdout.splitlines()[-1]) == (0, "Scored: 12 of 16 system utterances")
    assert "dialogues without labels: in 1 file" in some.stderr
    for path in others:
        path.rename(path.with_name(f"another-{path.name}"))
    none = dialeval("compat", "dbdc", *flags)
    assert (none.returncode, none.stdout) == (2, "")
    assert "none of 16 annotated turns can be scored" in none.stderr


def test_dbdc_starts_without_numpy() -> None:
    source = HERE / "breakdown"
    arguments = ["dialeval", "compat", "dbdc", "-p", str(source / "data"), "-o", str(source / "keywords")]
    code = f"import atexit, sys; sys.argv = {arguments}; atexit.register(lambda: print('numpy' in sys.modules))"
    command = [sys.executable, "-c", f"{code}; from dialeval.cli.main import main; main()"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.endswith("###\nFalse\n")


def test_dbdc_takes_any_threshold(dialeval: Dialeval) -> None:
    source = HERE / "breakdown"
    flags = ["-p", str(source / "data"), "-o", str(source / "keywords")]

    def printed(threshold: str) -> str:
        done = dialeval("compat", "dbdc", *flags, "-t", threshold)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert printed("nan") == printed("inf") == printed("1.1")  # no share is as large
    assert printed("-inf") == printed("0") != printed("nan")


def test_dbdc_prints_one_detector(dialeval: Dialeval, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "both"), "gztar", HERE, "breakdown")
    done = dialeval("compat", "dbdc", "-p", archive, "-o", archive)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there are 2 detectors" in done.stderr


@pytest.mark.golden
def test_dbdc_golden(dialeval: Dialeval, shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "dbdc"
    shutil.unpack_archive(folder / "edge.tar.gz", tmp_path)
    compared = 0
    for case in json.loads((folder / "edge.golden.json").read_text())["cases"]:
        if case["exit_code"] == 0:
            done = dialeval("compat", "dbdc", "-p", case["data"], "-o", case["labels"], "-t", case["threshold"])
            assert (done.returncode, done.stdout) == (0, case["stdout"]), case["id"]
            compared += 1
    assert compared == 17


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dialog-eval", "-ttt", "references.txt"], "Missing option '-r'"),
        (["dialog-eval", "-r", "nowhere.txt"], "nowhere.txt: there is no such file"),
        (["dialog-eval", "-r", "a.txt", "-ttt", "nowhere.txt"], "nowhere.txt: there is no such file"),
        (["dialog-eval", "-r", "a.txt", "-s", "8"], "8 is not in the range"),
        (["mwzeval", "-i", TOWN, "--data", "town"], "name what to evaluate"),
        (["mwzeval", "-b"], "Missing option '-i'"),
        (["mwzeval", "-b", "-i", "bad.json", "--data", "town"], "bad.json"),
        (["lsdscc", "a.txt"], "dialeval data add lsdscc"),
        (["lsdscc", "-r", "bad.json"], "Missing argument 'HYPOTHESIS_FILE'"),
        (["dbdc", "-p", "nowhere"], "Missing option '-o'"),
        (["dbdc", "-p", "nowhere", "-o", "nowhere"], "nowhere"),
        (["nlg-eval"], "there is no command 'nlg-eval'"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_2(
    dialeval: Dialeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text("only one\n")
    (tmp_path / "bad.json").write_text('{"town01": [{"response": null}]}')
    done = dialeval("compat", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("program", ["dialog-eval", "mwzeval", "lsdscc", "dbdc"])
def test_every_door_has_help_with_an_example(dialeval: Dialeval, program: str) -> None:
    done = dialeval("compat", program, "--help")
    assert done.returncode == 0
    assert f"dialeval compat {program} " in done.stdout


def test_add_slot_domains_does_what_the_original_does(
    dialeval: Dialeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = ["a [hotel_name] near [Taxi_phone]", "[name] and [choice]", "[hospital_phone]s [value_area]", "bye"]
    document: dict[str, list[dict[str, Any]]] = {"x": [{"response": reply} for reply in replies]}
    flags = ["compat", "add-slot-domains", "-i", "in.json", "-o", "out.json"]
    expected = [["hotel", "taxi"], [], ["hospital"], []]

    def run(answer: str) -> tuple[int, Any]:
        (tmp_path / "in.json").write_text(json.dumps(document))
        (tmp_path / "out.json").write_text("old")
        monkeypatch.setattr("sys.stdin", StringIO(answer))
        status = dialeval(*flags).returncode
        text = (tmp_path / "out.json").read_text()
        return status, text if text == "old" else [turn["active_domains"] for turn in json.loads(text)["x"]]

    assert run("") == (0, expected)
    document["x"][0]["active_domains"] = ["train"]
    assert run("") == (0, expected)  # the original asks only where every turn has some
    for turn in document["x"]:
        turn["active_domains"] = ["train"]
    assert [run(answer) for answer in ("n\n", "y\n", "\n")] == [(0, "old"), (0, expected), (0, expected)]
    assert run("")[1] == "old"  # no answer
    monkeypatch.setattr("sys.stdin", StringIO("y"))
    assert dialeval(*flags[:2], "--input", "in.json", "--output", "in.json").returncode == 0
    assert json.loads((tmp_path / "in.json").read_text())["x"][0]["active_domains"] == ["hotel", "taxi"]
    (tmp_path / "in.json").write_text('{"x": [{"response": null}]}')
    assert "x[0].response: is null" in dialeval(*flags).stderr


OWN = """
from dialeval.originals.dialog_eval import adapt


class Overlap:
    def __init__(self):
        self.metrics = {"shared-words": [], "long-reply": []}

    def update_metrics(self, resp_words, gt_words, source_words):
        self.metrics["shared-words"].append(len(set(resp_words) & set(gt_words)))
        if resp_words:
            self.metrics["long-reply"].append(len(resp_words) > len(source_words))


shared, long = adapt(Overlap()).values()
"""


def test_own_metrics_of_dialog_eval_have_columns(
    dialeval: Dialeval, responses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "mine.py").write_text(OWN)
    with (responses / "careful.txt").open("a") as file:
        file.write("\n")
    texts = {name: (HERE / f"{name}.txt").read_text() + "the end\n" for name in ("references", "contexts")}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    flags = ["-ttt", "references.txt", "-tts", "contexts.txt", "-r", "responses/careful.txt"]
    done = dialeval("compat", "dialog-eval", *flags, "-m", "mine:shared", "-m", "mine:long")
    assert done.returncode == 0, done.stderr
    (row,) = figures((responses / "metrics.txt").read_text()).values()
    replies, *others = ([line.split() for line in text.splitlines()] for text in
                        ((responses / "careful.txt").read_text(), *texts.values()))  # fmt: skip
    lists: list[list[int]] = [[], []]  # the lists of the original: a value for each response that gets one
    for reply, truth, source in zip(replies, *others, strict=True):
        lists[0].append(len(set(reply) & set(truth)))
        lists[1] += [len(reply) > len(source)] if reply else []
    for key, values in zip(("shared-words", "long-reply"), lists, strict=True):
        assert row[key] == pytest.approx([np.mean(values), np.std(values), 1.97 * np.std(values) / len(values) ** 0.5])
    wrong = dialeval("score", "responses/careful.txt", "-m", "mine:Overlap")
    assert (wrong.returncode, "dialeval.originals.dialog_eval.adapt" in wrong.stderr) == (2, True)
