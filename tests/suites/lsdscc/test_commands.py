"""`dialeval lsdscc` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data

GROUPS = {"what is it ?": {"2": ["a big black dog", "one black dog"], "1": ["a cat"]}, "why ?": {"1": ["because"]}}


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text(
        "a big black dog that barks </s> a small cat on a mat\nbecause of the rain outside\n"
    )
    (tmp_path / "b.txt").write_text("a black dog , i think\nno idea at all , sorry\n")
    (tmp_path / "groups.json").write_text(json.dumps(GROUPS))
    (tmp_path / "vectors.txt").write_text("dog 1 0\ncat 0 1\nbecause 1 1\nsorry -1 -1\nrain 1 0.5\n")


def test_prints_a_table(dialeval: Dialeval) -> None:
    done = dialeval("lsdscc", "a.txt", "b.txt", "-r", "groups.json")
    assert done.returncode == 0
    heads = [line.split()[0] for line in done.stdout.splitlines() if " " in line]
    assert heads[heads.index("metric") :][:5] == ["metric", "mds", "pds", "max-bleu", "Confidence"]
    assert "Paired design: the systems have the same 2 lines" in " ".join(done.stdout.split())
    assert done.stderr == ""


def test_without_references_those_of_the_data_pack_are_taken(dialeval: Dialeval) -> None:
    lacking = dialeval("lsdscc", "a.txt")
    assert lacking.returncode == 2
    assert "the data pack lsdscc is not installed; run: dialeval data add lsdscc --from FILE" in lacking.stderr
    assert dialeval("data", "add", "lsdscc", "--from", "groups.json").returncode == 0
    given, taken = (dialeval("lsdscc", "a.txt", "-f", "json", *more) for more in (["-r", "groups.json"], []))
    assert taken.returncode == 0, taken.stderr
    assert json.loads(taken.stdout)["systems"] == json.loads(given.stdout)["systems"]


def test_json_is_the_run_and_the_alignments(dialeval: Dialeval) -> None:
    done = dialeval("lsdscc", "a.txt", "best=b.txt", "-r", "groups.json", "-f", "json", "--aligner", "sacre")
    run = json.loads(done.stdout)
    assert list(run["systems"]) == ["a", "best"]
    mds = run["systems"]["a"]["metrics"]["mds"]
    assert (mds["mean"], mds["units"], mds["scored"]) == (1.0, 2, 2)
    assert "|aligner:sacre|n:4|" in mds["signature"]
    assert "|reference-groups:" in mds["signature"]
    first, second = run["alignments"]["best"]
    assert first["query"] == "what is it ?"
    assert [(each["text"], each["group"]) for each in first["hypotheses"]] == [("a black dog , i think", "2")]
    assert first["unreached"] == ["1"]
    assert second["hypotheses"][0]["group"] is None
    assert second["unreached"] == ["1"]


def test_settings_reach_the_signature_and_the_figures(dialeval: Dialeval) -> None:
    def best(*more: str) -> tuple[float, str]:
        done = dialeval("lsdscc", "a.txt", "-r", "groups.json", "-f", "json", *more)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["systems"]["a"]["metrics"]["max-bleu"]
        return found["mean"], found["signature"]

    seen = {
        best("-n", "2"): "|n:2|",
        best("--aligner", "nltk-bleu"): "|aligner:nltk-bleu|n:4|smooth:0|",
        best("--aligner", "nltk-bleu", "--bleu-smoothing", "3"): "|smooth:3|",
        best("--aligner", "nltk-nist", "-n", "2"): "|aligner:nltk-nist|n:2|",
        best("--aligner", "embedding", "--vectors", "vectors.txt"): "|aligner:embedding|",
        best("--eos", "big"): "|aligner:bleu|",
        best("--no-eos"): "|aligner:bleu|n:4|",
        best("-n", "8"): "|n:8|",
    }
    assert len({mean for mean, _ in seen}) == len(seen)
    for (_, signature), part in seen.items():
        assert part in signature


def test_references_without_groups(dialeval: Dialeval, tmp_path: Path) -> None:
    flat = {query: [text for group in groups.values() for text in group] for query, groups in GROUPS.items()}
    (tmp_path / "flat.json").write_text(json.dumps(flat))
    plain = dialeval("lsdscc", "a.txt", "-r", "flat.json")
    assert "warning: no query has more than one group" in plain.stderr


def test_saves_and_reports(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("lsdscc", "a.txt", "-r", "groups.json", "-o", "out")
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["saved in out; open it row by row: dialeval report out"]
    run = package.load(tmp_path / "out")
    assert run["a"]["mds"].mean == 1.0
    assert run.details["alignments"]["a"][0]["unreached"] == []
    assert dialeval("report", "out", "--save", "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert "Groups that were reached" in page
    assert "a small cat" in page


def test_short_hypotheses_are_warned_about(dialeval: Dialeval) -> None:
    folder = sample_data.folder() / "lsdscc"
    done = dialeval("lsdscc", str(folder / "varied.txt"), str(folder / "safe.txt"), "-r", str(folder / "groups.json"))
    assert done.returncode == 0
    assert [line.split(":")[:2] for line in done.stderr.splitlines()] == [["warning", " safe"]]


def test_unscored_queries_do_not_end_the_run(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("a big black dog\nnobody knows\n")
    done = dialeval("lsdscc", "c.txt", "-r", "groups.json", "--aligner", "nltk-nist", "-n", "4", "-f", "json")
    found = json.loads(done.stdout)["systems"]["c"]["metrics"]["mds"]
    assert (found["units"], found["scored"]) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt", "-r", "groups.json"], "nowhere.txt: there is no such file"),
        (["a.txt", "-r", "nowhere.json"], "nowhere.json: there is no such file"),
        (["one.txt", "-r", "groups.json"], "one.txt has hypotheses for 1 queries, groups.json has groups for 2"),
        (["a.txt", "-r", "a.txt"], "a.txt:1: not JSON"),
        (["a.txt", "-r", "groups.json", "--aligner", "rouge"], "rouge"),
        (["a.txt", "-r", "groups.json", "-n", "101"], "101 is not in the range"),
        (["a.txt", "-r", "groups.json", "--eos", ";", "--no-eos"], "--eos or --no-eos, not both"),
        (["a.txt", "-r", "groups.json", "-f", "metrics-txt"], "'metrics-txt' is not known"),
        (["a.txt", "-r", "groups.json", "--bleu-smoothing", "3"], "--bleu-smoothing is for --aligner nltk-bleu"),
        (["a.txt", "-r", "groups.json", "--vectors", "vectors.txt"], "--vectors is for --aligner embedding"),
        (["a.txt", "-r", "groups.json", "--aligner", "embedding"], "needs vectors"),
        (["a.txt", "-r", "groups.json", "--eos", ""], "separator"),
        (["a.txt", "a.txt", "-r", "groups.json"], "two systems are called 'a'"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_2(
    dialeval: Dialeval, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "one.txt").write_text("only one\n")
    done = dialeval("lsdscc", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_baselines(dialeval: Dialeval, tmp_path: Path) -> None:
    sample = sample_data.folder() / "lsdscc"
    done = dialeval(
        "lsdscc",
        str(sample / "varied.txt"),
        "-r",
        str(sample / "groups.json"),
        "--baselines",
        "-o",
        "run",
        "-f",
        "json",
    )
    assert done.returncode == 0, done.stderr
    run = package.load(tmp_path / "run")
    assert run.baselines == ["ceiling/gold", "floor/shuffled-gold", "floor/constant"]
    assert run["ceiling/gold"]["mds"].mean > run["floor/shuffled-gold"]["mds"].mean > run["floor/constant"]["mds"].mean
    entry = run.details["alignments"]["ceiling/gold"][0]
    # Each hypothesis is a reference of its own group, which it is not compared with where the group has others.
    kept = json.loads((sample / "groups.json").read_text())
    first = next(iter(kept.values()))
    assert [each["text"] for each in entry["hypotheses"]] == [group[0] for group in first.values()]
    assert [group["references"] for group in entry["groups"]] == [
        group[1:] if len(group) > 1 else group for group in first.values()
    ]
    assert dialeval("report", "run", "--save", "page.html").returncode == 0
