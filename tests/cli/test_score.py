"""`dialeval score` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data
from dialeval.engine import evaluate
from dialeval.reports.tables import METRICS_TXT
from engine.chats import write_shards

LINES = "-f", "json", "-m", "length,distinct,bleu"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path) -> None:
    write(tmp_path, a="one two three\nfour\n", b="one one one\n\n", refs="one two\nfour five\n")


def test_prints_a_table(dialeval: Dialeval, tmp_path: Path) -> None:
    write(tmp_path, b="one one one\none\n")
    done = dialeval("score", "a.txt", "b.txt", "-m", "length,distinct-1")
    assert done.returncode == 0
    assert "None of the tested metrics says which replies are better" in " ".join(done.stdout.split())
    assert re.search(r"\nlength +2", done.stdout)
    assert done.stderr == ""


def test_json_is_the_documented_run(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "b.txt", "-m", "length", "-f", "json", "--intervals", "rows")
    run = json.loads(done.stdout)
    assert run["dialeval"] == package.__version__
    assert list(run["systems"]) == ["a", "b"]
    length = run["systems"]["a"]["metrics"]["length"]
    assert {"mean", "std", "half_width", "interval", "units", "scored", "signature"} <= set(length)
    assert (length["mean"], length["std"], length["units"], length["scored"]) == (2.0, 1.0, 2, 2)
    assert length["half_width"] == pytest.approx(1.97 / 2**0.5)
    assert run["systems"]["a"]["skipped"] == {}
    assert run["warnings"] == []


def test_the_figure_of_sacrebleu_with_its_signature(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "b.txt", "-r", "refs.txt", "-m", "sacrebleu,chrf(per=corpus)")
    assert done.returncode == 0
    assert "sacreBLEU" not in done.stdout + done.stderr
    done = dialeval("score", "a.txt", "b.txt", "-r", "refs.txt", "-m", "sacrebleu,chrf(per=corpus)", "-v")
    lines = [line for line in done.stdout.replace("-\n", "-").splitlines() if line.startswith("sacreBLEU: ")]
    bleu = "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    chrf = "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"
    assert lines == [f"sacreBLEU: {bleu}", f"sacreBLEU: {chrf}"]


def test_the_panel_without_a_choice(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("score", "a.txt", "b.txt", "-r", "refs.txt", "-f", "json")
    panel = ["sacrebleu", "chrf", "rouge-l", "distinct-1", "distinct-2", "length"]
    assert list(json.loads(done.stdout)["systems"]["a"]["metrics"]) == ["failure-rate", *panel], "b has an empty line"
    write(tmp_path, zh="今天天气很好\n我不知道\n")
    assert "\nTokenizer: zh, since the texts are in a script without spaces" in dialeval("score", "zh.txt").stdout
    assert "Tokenizer" not in dialeval("score", "a.txt").stdout


def test_gates_take_aliases_and_any_case(dialeval: Dialeval) -> None:
    given = ["score", "a.txt", "-r", "refs.txt", "-m", "sacrebleu,Dist-1"]
    assert dialeval(*given, "--fail-under", "SacreBLEU=0", "--fail-under", "dist-1=0").returncode == 0
    assert dialeval(*given, "--fail-under", "DIST-1=1.1").returncode == 1


@pytest.mark.parametrize("format_", ["table", "md", "latex"])
def test_percent(dialeval: Dialeval, format_: str) -> None:
    """Scores, intervals and differences from 0 to 1 are times 100; lengths are not, nor is what is saved."""
    here = sample_data.folder()
    given = ["score", str(here / "responses"), "-r", str(here / "references.txt"), "-m", "chrf,length", "-f", format_]
    plain, percent = dialeval(*given).stdout, dialeval(*given, "--percent", "-o", "run").stdout
    assert "0.543" in plain
    assert "54.3" in percent
    assert "50.8 to 57.8" in percent or "[50.8, 57.8]" in percent.replace("\\", "")
    assert "14.00" in plain
    assert "14.00" in percent
    assert re.search(r"Scores .* (times|×|\$\\times\$) ?100", " ".join(percent.split()))
    assert package.load("run")["careful"]["chrf"].mean == pytest.approx(0.5431, abs=5e-5)
    assert format_ != "md" or plain == package.load("run").to_markdown()
    compared = dialeval("compare", "run", "--percent", "-f", "md").stdout
    assert "shown times 100" in compared
    assert "| chrf ↑ | 54.3 | 19.5 | ▼ −34.8 (−38.2 to −31.4)" in compared
    assert "| length | 14.0 | 23.6 | ◆ +9.6 (8.5 to 10.7)" in compared
    sliced = dialeval(*given[:-2], "--by", "length", "--percent").stdout
    assert "chrf −33.5" in " ".join(sliced.split())


@pytest.mark.parametrize("scale", [[], ["--jobs", "2"]])
def test_a_tokenizer_for_all_metrics(dialeval: Dialeval, tmp_path: Path, scale: list[str]) -> None:
    write(tmp_path, zh="今天天气很好\n我不知道\n")
    given = ["score", "zh.txt", "-m", "length,distinct-1", "-f", "json", *scale]
    for name, taken, length in (("auto", "zh", 5.0), ("char", "char", 5.0), ("13a", "13a", 1.0)):
        done = dialeval(*given, "--tokenizer", name)
        metrics = json.loads(done.stdout)["systems"]["zh"]["metrics"]
        assert metrics["length"]["mean"] == length
        assert all(f"|tokenizer:{taken}|" in each["signature"] for each in metrics.values())
        assert ("13a cannot split 1 of 2 responses" in done.stderr) == (name == "13a")
    assert dialeval(*given, "--tokenizer", "words").returncode == 2


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
def test_which_words_are_known(dialeval: Dialeval, tmp_path: Path, jobs: list[str]) -> None:
    """`a.txt` holds one, two, three and four; all that are unknown are one word."""
    write(tmp_path, train="one\n", vectors="3 2\none 1 0\ntwo 0.5 1\n\nthree 2 1\n")
    given = ["--train", "train.txt", "--vectors", "vectors.txt", "-m", "dialog-eval", "-f", "json"]
    done = dialeval("score", "a.txt", *given, *jobs)
    assert json.loads(done.stdout)["systems"]["a"]["metrics"]["distinct-1"]["mean"] == 2 / 4


@pytest.mark.parametrize(("format_", "sign"), [("md", "| length"), ("latex", r"\toprule"), ("metrics-txt", "length")])
def test_other_formats(dialeval: Dialeval, format_: str, sign: str) -> None:
    done = dialeval("score", "a.txt", "-m", "length", "-f", format_)
    assert done.returncode == 0
    assert sign in done.stdout


def test_csv_reads_back(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "-m", "length", "-f", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["system"], row["metric"], float(row["mean"])) == ("a", "length", 2.0)


def test_saves_a_run_that_loads(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("score", "a.txt", "-o", "out/run")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "saved in out/run; open it row by row: dialeval report out/run"
    assert package.load(tmp_path / "out" / "run")["a"]["length"].mean == 2.0


def test_a_directory_is_many_systems_and_names_can_be_given(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    write(tmp_path / "outputs", x="a\n", y="b c\n")
    run = json.loads(dialeval("score", "outputs", "-f", "json").stdout)
    assert list(run["systems"]) == ["x", "y"]
    run = json.loads(dialeval("score", "best=a.txt", "b.txt", "-f", "json").stdout)
    assert list(run["systems"]) == ["best", "b"]


def test_two_systems_of_one_name(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", a="x\n")
    done = dialeval("score", "a.txt", "other/a.txt")
    assert done.returncode == 2
    assert "two systems are called 'a'" in done.stderr


def test_rows_need_no_other_flag(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = [
        {"system": "x", "answer": "hi there", "context": ["hello"]},
        {"system": "y", "answer": "hi", "context": ["hello"]},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = dialeval("score", "rows.jsonl", "--field", "response=answer", "-f", "json", "-m", "length")
    systems = json.loads(done.stdout)["systems"]
    assert {name: systems[name]["metrics"]["length"]["mean"] for name in systems} == {"x": 2.0, "y": 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt"], "nowhere.txt"),
        (["a.txt", "-m", "distnct-2"], "did you mean 'distinct-2'"),
        (["a.txt", "-r", "one.txt"], "one.txt"),
        (["a.txt", "--field", "response"], "OURS=THEIRS"),
        (["a.txt", "--fail-under", "length=much"], "KEY=NUMBER"),
        ([], "Missing argument"),
        (["bad.txt"], "bad.txt:2"),
        (["empty.txt"], "empty.txt"),
        (["a.txt", "-o", "a.txt/below"], "cannot be written"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_2(
    dialeval: Dialeval, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write(tmp_path, one="only one line\n", empty="")
    (tmp_path / "bad.txt").write_bytes(b"fine\nnot \xff fine\n")
    done = dialeval("score", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_gates(dialeval: Dialeval) -> None:
    assert dialeval("score", "a.txt", "--fail-under", "length=2").returncode == 0
    done = dialeval("score", "a.txt", "b.txt", "-m", "length", "--fail-under", "length=1.9")
    assert done.returncode == 1
    assert done.stderr == "gate failed: length of b is 1.50, limit 1.9\n"
    assert dialeval("score", "a.txt", "-m", "length", "--fail-over", "length=2").returncode == 0
    done = dialeval("score", "a.txt", "b.txt", "-m", "length", "--fail-over", "length=1.9")
    assert (done.returncode, done.stderr.count("gate failed")) == (1, 1)
    missing = dialeval("score", "a.txt", "-m", "bleu,length", "--fail-under", "bleu-4=0")
    assert (missing.returncode, "bleu-4 of a is not computed" in missing.stderr) == (1, True)
    missing = dialeval("score", "a.txt", "--fail-under", "bleu-4=0")
    assert (missing.returncode, "bleu-4 needs references" in missing.stderr) == (2, True)
    done = dialeval("score", "a.txt", "-r", "refs.txt", "--fail-under", "bleu-4=0")
    assert done.returncode == 0, "what has a limit is computed"
    assert "bleu-4" in done.stdout
    for flag in ("--fail-under", "--fail-over"):
        wrong = dialeval("score", "a.txt", "-m", "length", flag, "lenght=2")
        assert (wrong.returncode, "did you mean 'length'?" in wrong.stderr) == (2, True)


def test_words_from_outside(dialeval: Dialeval, tmp_path: Path) -> None:
    write(tmp_path, train="one two three four five\n", vocab="one\ntwo\n", vectors="one 1 0\ntwo 0.5 1\n")
    outside = ["--train", "train.txt", "--vocabulary", "vocab.txt", "--vectors", "vectors.txt", "-c", "refs.txt"]
    every, group = (
        json.loads(dialeval("score", "a.txt", "-r", "refs.txt", *outside, *chosen, "-f", "json").stdout)["systems"]["a"]
        for chosen in (["-m", "all"], ["-m", "dialog-eval"])
    )
    assert set(METRICS_TXT) == set(group["metrics"]) < set(every["metrics"])
    assert [every["skipped"].keys(), group["skipped"]] == [{"checks"}, {}]
    fields = {field: f"|{field}:" for field in ("reference", "train", "vocabulary", "vectors", "weight")}
    there, here = (run["metrics"]["embedding-average"]["signature"] for run in (group, every))
    assert all(field in there for field in fields.values())
    assert [name for name, field in fields.items() if field not in here] == ["vocabulary"]


def test_the_table_of_dialog_eval_has_its_metrics(dialeval: Dialeval, tmp_path: Path) -> None:
    """`a.txt` has four different words, two of them in the vocabulary."""
    write(tmp_path, vocab="one\ntwo\n")
    header, values = dialeval("score", "a.txt", "--vocabulary", "vocab.txt", "-f", "metrics-txt").stdout.splitlines()
    table = dict(zip(header.split(" "), values.split(" "), strict=False))
    assert table["distinct-1"].startswith("0.75,")
    assert (
        json.loads(dialeval("score", "a.txt", "--vocabulary", "vocab.txt", "-f", "json").stdout)["systems"]["a"][
            "metrics"
        ]["distinct-1"]["mean"]
        == 1.0
    )


def test_what_is_missing_is_one_line_each(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "-m", "all")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    lacking = "needs references: -r on the command line, references=... in Python"
    (references,) = (line for line in lines if line.endswith(lacking))
    assert references.startswith("skipped ")
    assert " more: needs references" in references
    assert len([line for line in lines if "--train on the command line" in line]) == 1


def test_a_smoothing_method_keeps_the_names(dialeval: Dialeval) -> None:
    plain, smoothed = (
        json.loads(dialeval("score", "a.txt", "-r", "refs.txt", "-m", "bleu", "-f", "json", *more).stdout)
        for more in ([], ["--bleu-smoothing", "7"])
    )
    one, other = (run["systems"]["a"]["metrics"]["bleu-4"] for run in (plain, smoothed))
    assert one["mean"] != other["mean"]
    assert "|smooth:7|" in other["signature"]
    assert dialeval("score", "a.txt", "-r", "refs.txt", "--bleu-smoothing", "8").returncode == 2


def test_a_confidence_level(dialeval: Dialeval) -> None:
    same = ["score", "a.txt", "-m", "length", "--confidence", "0.95", "-f", "json"]
    length = json.loads(dialeval(*same, "--intervals", "rows").stdout)["systems"]["a"]["metrics"]["length"]
    assert length["half_width"] == pytest.approx(12.706 / 2**0.5, rel=1e-4)
    length = json.loads(dialeval(*same).stdout)["systems"]["a"]["metrics"]["length"]
    assert length["interval"] == pytest.approx([0, 2 + 12.706], rel=1e-4), "no length is below 0"
    assert dialeval("score", "a.txt", "--confidence", "95").returncode == 2


def test_anchors_stand_beside_the_systems(dialeval: Dialeval) -> None:
    same = ["score", "a.txt", "-r", "refs.txt", "-m", "bleu-1,length", "--baselines"]
    run = json.loads(dialeval(*same, "-f", "json").stdout)
    assert list(run["systems"]) == ["a", "ceiling/gold", "floor/shuffled-gold", "floor/constant"]
    assert 0 < run["baselines"]["standing"]["a"]["bleu-1"]["share"] < 1
    table = dialeval(*same, "--fail-under", "bleu-1=0.1")
    assert table.returncode == 0, "a floor may fail a gate"
    assert "Between floor (0%) and ceiling (100%)" in table.stdout
    markdown = dialeval(*same, "-f", "md").stdout
    assert "Between floor (0%) and ceiling (100%):\n\n| metric | a |\n| --- | ---: |\n| bleu-1 | " in markdown


def test_a_large_file_of_lines_is_read_in_chunks(
    dialeval: Dialeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = ["score", "a.txt", "-r", "refs.txt", *LINES]
    plain = json.loads(dialeval(*same, "-o", "plain").stdout)
    monkeypatch.setattr(evaluate, "LARGE_BYTES", 20)
    large = json.loads(dialeval(*same, "-o", "large").stdout)
    assert large["systems"] == plain["systems"]
    assert (tmp_path / "plain" / "scores.parquet").exists()
    assert (tmp_path / "large" / "scores-00000.parquet").exists()
    for key, estimate in package.load(tmp_path / "plain")["a"].items():
        assert package.load(tmp_path / "large")["a"][key].scores == pytest.approx(estimate.scores, nan_ok=True)
    # Whatever looks at all rows has them.
    assert "design" in dialeval("score", "a.txt", "b.txt", "-m", "length,distinct-1").stdout
    assert dialeval(*same, "--baselines").returncode == 0
    monkeypatch.setattr(evaluate, "LARGE_BYTES", 1 << 20)
    dialeval(*same, "-o", "large")
    assert sorted(path.name for path in (tmp_path / "large").iterdir()) == [
        path.name for path in sorted((tmp_path / "plain").iterdir())
    ]


def test_several_references(dialeval: Dialeval, tmp_path: Path) -> None:
    write(tmp_path, more="one two three\nnothing\n")
    one = json.loads(dialeval("score", "a.txt", "-r", "refs.txt", "-m", "bleu-1", "-f", "json").stdout)
    two = json.loads(
        dialeval("score", "a.txt", "-r", "refs.txt", "-r", "more.txt", "-m", "bleu-1", "-f", "json").stdout
    )
    means = [run["systems"]["a"]["metrics"]["bleu-1"]["mean"] for run in (one, two)]
    assert means[0] < means[1]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_shards(tmp_path / "logs", 50, 3)
    return tmp_path


def means(output: str) -> dict[str, dict[str, float]]:
    document = json.loads(output)
    return {
        name: {key: entry["mean"] for key, entry in system["metrics"].items()}
        for name, system in document["systems"].items()
    }


def test_a_pattern_and_a_folder_of_shards(dialeval: Dialeval, shards: Path) -> None:
    plain = dialeval("score", "bot=whole.jsonl", *LINES)
    assert plain.returncode == 0, plain.stderr
    for given in (["bot=logs", "--shards"], ["bot=logs/part-*.jsonl", "--jobs", "2"]):
        done = dialeval("score", *given, *LINES)
        assert done.returncode == 0, done.stderr
        assert means(done.stdout) == means(plain.stdout)


def test_lines_with_references_beside_them(dialeval: Dialeval, tmp_path: Path) -> None:
    for side in ("responses", "references"):
        (tmp_path / side).mkdir()
        for shard in range(3):
            content = "".join(f"{side[2:4]} is number {row} of {shard}\n" for row in range(20))
            (tmp_path / side / f"{shard}.txt").write_text(content)
    both = [
        "".join((tmp_path / side / f"{shard}.txt").read_text() for shard in range(3))
        for side in ("responses", "references")
    ]
    for name, content in zip(("a.txt", "b.txt"), both, strict=True):
        (tmp_path / name).write_text(content)
    plain = dialeval("score", "s=a.txt", "-r", "b.txt", *LINES)
    done = dialeval("score", "s=responses/*.txt", "-r", "references/*.txt", *LINES)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["systems"]["s"]["metrics"] == json.loads(plain.stdout)["systems"]["s"]["metrics"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing-*.jsonl"], "nothing-*.jsonl: no file matches; check the pattern"),
        (["logs/*.jsonl", "--engine", "ray", "--jobs", "2"], "--jobs is for this machine"),
        (["logs/*.jsonl", "--address", "auto"], "--address needs --engine ray"),
        (["whole.jsonl", "--address", "auto"], "--address needs --engine ray"),
        (["logs/*.jsonl", "-r", "whole.jsonl"], "rows carry their own references"),
        (["logs/*.jsonl", "-m", "coherence"], "coherence needs train"),
        (["logs/*.jsonl", "--intervals", "studentized"], "--intervals studentized need all rows in memory"),
        (["nothing.jsonl", "-o", "whole.jsonl/results"], "whole.jsonl/results: cannot be written"),
        (["s3q://bucket/*.jsonl"], "s3q://bucket/*.jsonl cannot be opened"),
    ],
)
def test_what_cannot_be_done(dialeval: Dialeval, shards: Path, arguments: list[str], message: str) -> None:
    done = dialeval("score", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_problem_in_a_worker_names_its_line(dialeval: Dialeval, shards: Path) -> None:
    with (shards / "logs" / "part-01.jsonl").open("a") as file:
        file.write('{"response": 7}\n')
    done = dialeval("score", "logs/*.jsonl", "-m", "length", "--jobs", "2")
    assert done.returncode == 2
    assert "part-01.jsonl:51: response is a number; make it a string" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("more", [[], ["--jobs", "1"]])
def test_inputs_are_never_overwritten(dialeval: Dialeval, tmp_path: Path, more: list[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"response": ["one two", "three"]}), tmp_path / "rows.parquet")
    before = (tmp_path / "rows.parquet").read_bytes()
    for given in (["rows.parquet"], ["x=rows.parquet"], ["*.parquet"], ["."], ["a.txt", "-r", "rows.parquet"]):
        done = dialeval("score", *given, "-m", "length", "-o", ".", *more, "--progress", "json")
        assert (done.returncode, done.stdout) == (2, "")
        assert "rows.parquet: would be overwritten, but it is an input" in done.stderr
        assert len(done.stderr.splitlines()) == 1, "before any work"
    done = dialeval("score", "a.txt", "-m", "length", "-o", ".", *more)
    assert "rows.parquet: would be overwritten, but dialeval did not write it" in done.stderr
    assert (tmp_path / "rows.parquet").read_bytes() == before
    assert not (tmp_path / "run.json").exists()


def test_a_run_is_saved_over_itself_and_beside_other_files(dialeval: Dialeval, tmp_path: Path) -> None:
    for _ in range(2):
        assert dialeval("score", "a.txt", "-m", "length", "-o", ".").returncode == 0
    assert (tmp_path / "refs.txt").read_text() == "one two\nfour five\n"
    for file in ("run.json", "scores.parquet", "rows.parquet"):
        done = dialeval("report", ".", "--save", file)
        assert f"{file}: would be overwritten, but it is an input" in done.stderr
        done = dialeval("compare", ".", "--save", file)
        assert f"{file}: would be overwritten, but it is an input" in done.stderr
    assert dialeval("report", "run.json", "--save", "report.html").returncode == 0
    assert dialeval("report", ".", "--save", "report.html").returncode == 0


def test_the_table_of_dialog_eval_has_its_confidence(dialeval: Dialeval) -> None:
    same = ["score", "a.txt", "-m", "length", "-f", "metrics-txt"]
    assert dialeval(*same).stdout == dialeval(*same, "--intervals", "rows").stdout
    assert dialeval(*same).stdout.splitlines()[1] == f"a.txt 2.0,1.0,{1.97 / 2**0.5!r} "
    assert dialeval(*same, "--intervals", "clustered").stdout != dialeval(*same).stdout


def test_intervals_of_shards_are_over_dialogues(dialeval: Dialeval, shards: Path) -> None:
    done = dialeval("score", "logs/*.jsonl", "-m", "length", "-f", "json", "--jobs", "1")
    how = next(iter(json.loads(done.stdout)["systems"].values()))["metrics"]["length"]["interval_by"]
    assert (how["over"], how["method"]) == ("dialogues", "student")
    none = dialeval("score", "logs/*.jsonl", "-m", "length", "-f", "json", "--intervals", "none")
    assert next(iter(json.loads(none.stdout)["systems"].values()))["metrics"]["length"]["interval"] is None


def test_gates_as_test_results_and_for_a_pull_request(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\nthree four\n")
    gated = ["score", "a.txt", "-m", "length", "--fail-under", "length=3"]
    done = dialeval(*gated, "-f", "junit")
    assert done.returncode == 1
    assert done.stderr == "gate failed: length of a is 2.00, limit 3\n"
    assert ET.fromstring(done.stdout).get("failures") == "1"
    done = dialeval(*gated, "-f", "github")
    assert (done.returncode, done.stdout.splitlines()[0]) == (1, "### dialeval: 1 of 1 gate failed")
    none = dialeval("score", "a.txt", "-m", "length", "-f", "junit")
    assert none.returncode == 2
    assert "none is set: --fail-under" in none.stderr
    slices = dialeval("score", "a.txt", "-m", "length", "--by", "length", "-f", "github")
    assert (slices.returncode, "github has no slices" in slices.stderr) == (2, True)


# The options that say how rows are read.


def test_a_separator_a_warning_and_prompts(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "windows.csv").write_bytes("response#reference\r\nGrüße an alle#ja\r\n".encode("cp1252"))
    done = dialeval("score", "windows.csv", "--separator", "#", "-m", "length", "-f", "json")
    assert json.loads(done.stdout)["systems"]["windows"]["metrics"]["length"]["mean"] == 3
    assert "Windows-1252" in done.stderr
    said = [{"role": role, "content": role} for role in ("system", "user", "assistant")]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": said}) + "\n")
    for more, context in (((), ["user"]), (("--system-prompts",), ["system", "user"])):
        assert dialeval("score", "chats.jsonl", "-m", "length", "-o", f"out{len(more)}", *more).returncode == 0
        rows = load(tmp_path / f"out{len(more)}")
        assert rows == [context]


@pytest.mark.parametrize(
    "command",
    [
        "score excel.csv -m length -o run",
        "score a.txt -r excel.csv -m rouge-l",
        "score a.txt -c excel.csv -m length",
        "score a.txt --train words.csv -m length,per-unigram-entropy",
        "score a.txt --vocabulary words.csv -m length",
        "score parts/*.csv -m length -o run",
        "score parts/*.csv -m length --jobs 2",
        "agreement excel.csv --human overall -m length",
        "rank pairs.csv",
    ],
)
def test_windows_1252_is_read_and_told_once_wherever_csv_is(dialeval: Dialeval, tmp_path: Path, command: str) -> None:
    (tmp_path / "parts").mkdir()
    rows = [f"{n % 3};Grüße an {n} alle;ja{' ja' * n};{n % 5}" for n in range(9)]
    table = "\r\n".join(["dialog_id;response;reference;scores", *rows, ""]).encode("cp1252")
    for name in ("excel.csv", "parts/a.csv"):
        (tmp_path / name).write_bytes(table)
    (tmp_path / "parts" / "b.csv").write_bytes(table.decode("cp1252").encode())
    (tmp_path / "a.txt").write_text("Grüße an alle\n" * 9, encoding="utf-8")
    (tmp_path / "words.csv").write_bytes("context\r\nGrüße an alle\r\n".encode("cp1252"))
    pairs = [f"Grüße;Ölung;{'ab'[n % 2]}" for n in range(9)]
    (tmp_path / "pairs.csv").write_bytes("\r\n".join(["a;b;better", *pairs, ""]).encode("cp1252"))
    done = dialeval(*command.split())
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "Windows-1252" in line]
    assert len(told) == 1, done.stderr
    assert told[0].startswith("warning: ")
    if "-o run" in command:
        assert "Windows-1252" in package.load(tmp_path / "run").warnings[0]


def load(folder: Path) -> list[list[str]]:
    table = package.load(folder)["chats"].table
    assert table is not None
    roles = [[role for role in turns if role] for turns in table.texts["roles"]]
    assert roles == [list(turns) for turns in table.texts["context"]], "each message here says its role"
    return roles
