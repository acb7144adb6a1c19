"""`dialeval compare` and `--intervals` as a user meets them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import dialeval as package
from analysis.test_agreement import rated
from analysis.test_discovery import rows_of
from conftest import Dialeval
from human.rated_runs import run_of

WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "by"]
QUICK = ("--resamples", "100", "--trials", "200")


def texts(seed: int, words: int = 8) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS[:words], size=6)) for _ in range(30)]


@pytest.fixture
def runs(tmp_path: Path) -> None:
    package.evaluate({"bot": texts(1)}, texts(9), metrics="bleu-1,distinct-1,length").save(tmp_path / "main")
    package.evaluate({"bot": texts(2)}, texts(9), metrics="bleu-1,distinct-1,length").save(tmp_path / "same")
    package.evaluate({"bot": texts(3, words=2)}, texts(9), metrics="bleu-1,distinct-1,length").save(tmp_path / "poor")
    package.evaluate({"other": texts(2)}, texts(8), metrics="bleu-1").save(tmp_path / "elsewhere")


@pytest.mark.usefixtures("runs")
def test_prints_a_table_that_says_what_it_means(dialeval: Dialeval) -> None:
    done = dialeval("compare", "main", "poor", *QUICK, "--detect", "0.01")
    assert done.returncode == 0, done.stderr
    for part in (
        "main/bot",
        "poor/bot",
        "distinct-1",
        "difference (95% CI)",
        "needed",
        "approximate randomization test with 200 trials",
    ):
        assert part in done.stdout
    assert done.stderr == ""


@pytest.mark.usefixtures("runs")
def test_json_and_csv_hold_the_same(dialeval: Dialeval) -> None:
    document = json.loads(dialeval("compare", "main", "poor", *QUICK, "-f", "json").stdout)
    assert (document["baseline"], document["systems"], document["seed"]) == ("main/bot", ["poor/bot"], 12345)
    table = list(csv.DictReader(io.StringIO(dialeval("compare", "main", "poor", *QUICK, "-f", "csv").stdout)))
    assert [float(row["p"]) for row in table] == [row["p"] for row in document["differences"]]
    assert [float(row["low"]) for row in table] == [row["interval"][0] for row in document["differences"]]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ("1e-300", "alpha must be between 1e-09 and 1"),
        ("1e-8", "000 trials, more than the limit of 1,000,000"),
    ],
)
def test_an_alpha_that_would_take_for_ever_is_refused(dialeval: Dialeval, alpha: str, message: str) -> None:
    done = dialeval("compare", "main", "poor", "--alpha", alpha)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert dialeval("compare", "main", "poor", "--alpha", "1e-8", "--trials", "100").returncode == 0


@pytest.mark.usefixtures("runs")
def test_tables_may_be_transposed(dialeval: Dialeval, tmp_path: Path) -> None:
    plain, swapped = dialeval("table", "main"), dialeval("table", "main", "--transpose", "--save", "table.tex")
    assert (plain.returncode, swapped.returncode) == (0, 0), swapped.stderr
    assert "system & " in plain.stdout
    assert "metric & " in (tmp_path / "table.tex").read_text()


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(("format_", "sign"), [("md", "| bleu-1 ↑ |"), ("latex", r"\toprule"), ("table", "bleu-1")])
def test_writes_to_a_file(dialeval: Dialeval, tmp_path: Path, format_: str, sign: str) -> None:
    done = dialeval("compare", "main", "poor", *QUICK, "-f", format_, "--save", "deep/table.txt")
    assert (done.returncode, done.stdout) == (0, "")
    assert sign in (tmp_path / "deep" / "table.txt").read_text()


@pytest.mark.usefixtures("runs")
def test_runs_of_other_references_are_independent(dialeval: Dialeval) -> None:
    done = dialeval("compare", "main", "elsewhere", "-m", "bleu-1", *QUICK)
    assert done.returncode == 0
    assert "\nUnpaired design: " in done.stdout
    assert dialeval("compare", "main", "elsewhere", "-m", "bleu-1", *QUICK, "--design", "paired").returncode == 2


@pytest.mark.usefixtures("runs")
def test_gates(dialeval: Dialeval) -> None:
    assert dialeval("compare", "same", "--no-worse-than", "main", *QUICK).returncode == 0
    worse = dialeval("compare", "poor", "--no-worse-than", "main", *QUICK)
    assert worse.returncode == 1
    assert "gate failed: bleu-1 of poor/bot is" in worse.stderr
    assert "distinct" not in worse.stderr, "the verdict says that it is different, not worse"
    named = dialeval("compare", "poor", "--no-worse-than", "main", "-m", "distinct-1,length", *QUICK)
    assert "gate failed: distinct-1 of poor/bot is" in named.stderr
    assert "poor/bot is worse than main/bot" in named.stdout
    assert "length" not in named.stderr
    strict = dialeval("compare", "same", "--no-worse-than", "main", "--margin", "bleu-1=0", *QUICK)
    assert strict.returncode == 1
    assert "may be worse by" in strict.stderr
    loose = dialeval("compare", "same", "--no-worse-than", "main", "--margin", "bleu-1=0.9", *QUICK)
    assert loose.returncode == 0, loose.stderr
    under = dialeval("compare", "main", "poor", "--fail-under", "distinct-1=0.03", *QUICK)
    assert under.returncode == 1
    assert under.stderr.count("gate failed") == 1, "the baseline is not held to the gate"


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["main"], "needs two systems"),
        (["main", "nowhere"], "there is no such folder"),
        (["main", "poor", "--baseline", "main/bat"], "did you mean"),
        (["main", "poor", "--margin", "length=1"], "neither higher nor lower values of length are better"),
        (["main", "poor", "--no-worse-than", "main", "--margin", "bleu-1=x"], "--margin takes"),
        (["main", "poor", "--no-worse-than", "main", "--baseline", "poor"], "leave --baseline out"),
        (["main", "poor", "--alpha", "2"], "alpha must be between"),
    ],
)
def test_what_is_wrong_is_said(dialeval: Dialeval, arguments: list[str], message: str) -> None:
    done = dialeval("compare", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.usefixtures("runs")
def test_a_run_is_one_however_it_is_spelt(dialeval: Dialeval, tmp_path: Path) -> None:
    for bar in ("main", "main/", str(tmp_path / "main"), "main/run.json"):
        done = dialeval("compare", "same", "main/", "--no-worse-than", bar, "-m", "bleu-1", "-f", "json", *QUICK)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["systems"] == ["same/bot"], bar


@pytest.mark.usefixtures("runs")
def test_a_file_of_a_run_that_is_gone_is_named(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "main" / "rows.parquet").unlink()
    done = dialeval("compare", "main", "same")
    assert done.returncode == 2
    assert "rows.parquet" in done.stderr


def test_looking_as_often_as_one_likes(dialeval: Dialeval, tmp_path: Path) -> None:
    run_of(dialogues=60)[0].save(tmp_path / "watched")
    done = dialeval("compare", "watched", "--sequential", "-m", "judge")
    assert done.returncode == 0, done.stderr
    assert "confidence sequences" in " ".join(done.stdout.split())
    found = json.loads(dialeval("compare", "watched", "--sequential", "-m", "judge", "-f", "json").stdout)
    assert found["differences"][0]["by"] == "asymptotic"
    for other in (["--no-worse-than", "a"], ["--detect", "0.1"], ["--fail-under", "judge=1"]):
        assert dialeval("compare", "watched", "--sequential", *other).returncode == 2


@pytest.fixture
def rows(tmp_path: Path) -> None:
    """Two systems, of which the second is bad at taxis; 36 dialogues of two rows."""
    for name, bad in (("old", ""), ("new", "taxi")):
        lines = []
        for row, reference in enumerate((texts(1) + texts(2) + texts(4))[:72]):
            topic = ("taxi", "train", "hotel")[row // 2 % 3]
            response = "x y" if topic == bad else " ".join(reference.split()[: 3 + row % 3])
            fields = {"dialog_id": row // 2, "turn": row % 2, "reference": reference, "topic": topic}
            lines.append(json.dumps({**fields, "response": response}))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))


@pytest.mark.usefixtures("rows")
def test_slices_of_rows_and_of_saved_runs(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("score", "old.jsonl", "new.jsonl", "-m", "rouge-l", "--by", "topic,turn", "-o", "run")
    assert done.returncode == 0, done.stderr
    sentence = "new loses most to old where topic is taxi: rouge-l −"
    assert sentence in " ".join(done.stdout.split())
    assert done.stdout.index("rouge-l ↑ by topic") < done.stdout.index("rouge-l ↑ by turn")
    again = dialeval("compare", "run", "--by", "topic", *QUICK)
    assert again.returncode == 0, again.stderr
    assert sentence in " ".join(again.stdout.split())
    document = json.loads(dialeval("compare", "run", "--by", "topic", "-f", "json", *QUICK).stdout)
    assert [each["slice"] for each in document["slices"]["slices"]] == ["hotel", "taxi", "train"]
    assert document["differences"]
    table = list(csv.DictReader(io.StringIO(dialeval("compare", "run", "--by", "topic", "-f", "csv", *QUICK).stdout)))
    assert {line["slice"] for line in table if line["significant"] == "True"} == {"taxi"}
    done = dialeval("compare", "run", "--by", "topic", "--save", "table.txt", *QUICK)
    assert done.stdout == ""
    written = (tmp_path / "table.txt").read_text()
    assert "difference (95% CI)" in written
    assert "rouge-l ↑ by topic" in written
    scored = json.loads(dialeval("score", "old.jsonl", "-m", "rouge-l", "--by", "topic", "-f", "json").stdout)
    assert scored["systems"]["old"]["metrics"]["rouge-l"]["units"] == 72
    assert [each["units"] for each in scored["slices"]["slices"]] == [24, 24, 24]
    done = dialeval("report", "run", "--by", "topic,length", "--save", "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"where"' in page
    assert "taxi" in page


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "old.jsonl", "--by", "mood"], "no row of old has a value in the field 'mood'"),
        (["score", "old.jsonl", "--by", "system"], "already compares the systems"),
        (["score", "old.jsonl", "--by", ","], "name a field"),
        (
            ["score", "old.jsonl", "--by", "turn", "--jobs", "1"],
            "--replicate and --intervals studentized need all rows",
        ),
        (["score", "old.jsonl", "--by", "turn", "-f", "metrics-txt"], "metrics-txt has no slices"),
        (["compare", "run", "--by", "mood"], "did not keep a field 'mood', only turn, length, history"),
        (["report", "run", "--by", "mood"], "did not keep a field 'mood'"),
    ],
)
def test_what_cannot_be_cut_is_refused(dialeval: Dialeval, arguments: list[str], message: str) -> None:
    assert dialeval("score", "old.jsonl", "new.jsonl", "-m", "rouge-l", "-o", "run").returncode == 0
    done = dialeval(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in " ".join(done.stderr.split())


@pytest.mark.usefixtures("runs")
def test_gates_as_test_results_and_for_a_pull_request(dialeval: Dialeval, tmp_path: Path) -> None:
    gated = ["compare", "poor", "--no-worse-than", "main", "-m", "distinct", *QUICK]
    done = dialeval(*gated, "-f", "junit", "--save", "gates.xml")
    assert done.returncode == 1
    assert 'classname="poor/bot" name="distinct-1 no worse than main/bot"' in (tmp_path / "gates.xml").read_text()
    done = dialeval(*gated, "-f", "github")
    assert done.returncode == 1
    assert done.stdout.startswith("### dialeval: ")
    assert "gate failed: distinct-1 of poor/bot" in done.stderr
    none = dialeval("compare", "main", "poor", "-f", "junit")
    assert (none.returncode, "none is set" in none.stderr) == (2, True)
    for other in (["--by", "length"], ["--sequential"]):
        assert (
            "cannot show slices, sequential tests or trends"
            in dialeval("compare", "main", "poor", "-f", "github", *other).stderr
        )


# The commands `discover`, `survival` and `users` on the logs of users: chat logs, saved runs, every format.


@pytest.fixture
def logs(tmp_path: Path, dialeval: Dialeval) -> Path:
    for name, rows in {"old": rows_of(1, effect=0), "new": rows_of(1, effect=1.5, system=1)}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = dialeval("score", "old.jsonl", "new.jsonl", "-m", "scores", "-o", "run")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_commands_say_what_was_found(dialeval: Dialeval, logs: Path) -> None:
    done = dialeval("discover", "run")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "new is worse against old in" in text
    assert "dialogues with: refund" in text
    done = dialeval("discover", "run", "-f", "json")
    assert json.loads(done.stdout)["groups"][0]["name"].startswith("refund")
    done = dialeval("survival", "run", "-m", "score:quality", "--below", "-1", "-f", "md")
    assert "new does not clearly differ from old" in done.stdout
    done = dialeval("users", "old.jsonl", "new.jsonl", "-f", "csv")
    assert done.stdout.startswith("name,real,simulated")
    assert len(done.stdout.splitlines()) == 12
    assert "cannot be told apart" in " ".join(dialeval("users", "run", "old.jsonl").stdout.split())


def test_what_is_refused_says_why(dialeval: Dialeval, logs: Path) -> None:
    done = dialeval("survival", "run", "-m", "score:quality")
    assert done.returncode == 2
    assert "--below" in done.stderr


# `dialeval agreement` as a user meets it.


FEW = ["--resamples", "20"]


@pytest.fixture(autouse=True)
def ratings(tmp_path: Path) -> Path:
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rated()))
    return file


def test_rated_rows_alone(dialeval: Dialeval) -> None:
    done = dialeval("agreement", "ratings.jsonl", "--human", "overall", "-m", "rouge-l,length", "-f", "json", *FEW)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["agreement"]) == ["rouge-l", "length"]
    assert set(found["agreement"]["length"]) == {"turn", "dialogue", "system"}
    assert found["ceiling"]["n"] == 60


def test_a_saved_run_with_ratings(dialeval: Dialeval) -> None:
    assert dialeval("score", "ratings.jsonl", "-m", "rouge-l,chrf", "-o", "run").returncode == 0
    done = dialeval("agreement", "run", "--human", "ratings.jsonl", "--quality", "fluent", "-f", "json", *FEW)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["quality"] == "fluent"
    assert list(found["agreement"]) == ["rouge-l", "chrf", "length"]
    assert "no response has the values of two annotators" in found["ceiling"]["reason"]


def test_the_table_goes_to_stdout_or_to_a_file(dialeval: Dialeval, tmp_path: Path) -> None:
    same = ["agreement", "ratings.jsonl", "--human", "overall", "-m", "rouge-l", "--level", "turn", *FEW]
    table = dialeval(*same).stdout
    assert table.startswith("length has the highest correlation with human ratings: Spearman rho 0.")
    assert "\nturn level, n = 60\nmetric" in table
    assert "dialogue level" not in table
    written = dialeval(*same, "--save", "table.csv", "-f", "csv")
    assert written.stdout == ""
    assert (tmp_path / "table.csv").read_text().startswith("metric,level,n,pearson")


def test_tables_of_ratings(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "answer,mark,who\n" + "".join(f"{'word ' * n},{n % 5},s{n % 4}\n" for n in range(1, 30))
    )
    names = ["--field", "response=answer", "--field", "scores=mark", "--field", "system=who"]
    done = dialeval("agreement", "r.csv", "--human", "overall", "-m", "length", *names, "-f", "json", *FEW)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agreement"]["length"]["turn"]["n"] == 29


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.jsonl", "--human", "overall"], "does not exist"),
        (["ratings.jsonl", "--human", "funny"], "no ratings of 'funny'"),
        (["ratings.jsonl", "--human", "overall", "-m", "blue-4"], "did you mean 'bleu-4'?"),
        (["ratings.jsonl", "--human", "overall", "--quality", "fluent"], "--human fluent names it"),
        (["ratings.jsonl"], "--human"),
        (["ratings.jsonl", "--human", "overall", "--confidence", "95"], "between 0 and 1"),
        ([".", "--human", "missing.jsonl"], "no file"),
        ([".", "--human", "ratings.jsonl"], "holds no saved run"),
        (["broken.jsonl", "--human", "overall"], "broken.jsonl:2"),
    ],
)
def test_bad_input_is_one_clear_message(dialeval: Dialeval, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "broken.jsonl").write_text('{"response": "a", "scores": 1}\n{"response": "b", "scores": "good"}\n')
    done = dialeval("agreement", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_an_example(dialeval: Dialeval) -> None:
    done = dialeval("agreement", "--help")
    assert "dialeval agreement ratings.jsonl --human overall" in done.stdout
