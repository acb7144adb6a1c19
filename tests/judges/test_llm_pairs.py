"""Pairs by a language model in both orders, rankings of them, agreement with people, and attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval as toolkit
from conftest import Dialeval
from dialeval.analysis.labels import measure_label_agreement, measure_pair_agreement
from dialeval.core.errors import DataError, SettingError
from dialeval.judges import LLM
from dialeval.judges.attacks import attack_llm, read_attacked
from dialeval.judges.llm.pairs import PairTexts, judge_pairs, list_run_pairs, read_pair_texts
from dialeval.judges.llm.rubrics import read_rubric
from llm_server import MODEL, Body, ChatServer, Reply, asked_text, shown_texts
from realistic_logs import make_log, make_prompts


def sides(request: Body) -> list[str]:
    """Return the two replies of a request, in its order."""
    texts = shown_texts(request)
    return [texts["first reply"], texts["second reply"]]


def longer(request: Body) -> Reply:
    first, second = (len(side.split()) for side in sides(request))
    return Reply(grades={"better": 0 if first == second else 1 if first > second else 2})


def ask(server: ChatServer, tmp_path: Path, **settings: Any) -> LLM:
    return LLM(server.address, MODEL, cache=tmp_path / "pairs.sqlite", backoff=0.01, retries=2, **settings)


def pair(number: int, one: str, two: str, **more: Any) -> PairTexts:
    return PairTexts(a="a", b="b", response_a=one, response_b=two, dialogue=f"d{number}", **more)


def test_both_orders_are_asked_and_a_bias_for_the_first_place_is_a_tie(tmp_path: Path) -> None:
    def answer(request: Body) -> Reply:
        return Reply(grades={"better": 1}) if "biased" in asked_text(request) else longer(request)

    pairs = [pair(0, "one", "one two"), pair(1, "one two", "one"), pair(2, "same", "same")]
    pairs += [pair(3, "biased one", "biased"), pair(4, "biased", "biased one")]
    with ChatServer(answer) as server:
        found = judge_pairs(ask(server, tmp_path), pairs)
    assert [each["better"] for each in found.pairs] == ["b", "a", "tie", "tie", "tie"]
    assert [each["flipped"] for each in found.pairs] == [False, False, False, True, True]
    assert found.flips is not None
    assert found.flips.value == pytest.approx(0.4)
    assert len(server.bodies) == 5  # pairs that mirror each other have the same requests


def test_a_pair_without_a_verdict_in_one_order_has_none(tmp_path: Path) -> None:
    def answer(request: Body) -> Reply:
        return Reply(text="the second") if sides(request)[0] == "bad" else longer(request)

    with ChatServer(answer) as server:
        found = judge_pairs(ask(server, tmp_path), [pair(0, "one", "one two"), pair(1, "bad", "worse one")])
    assert len(found.pairs) == 1
    assert found.missing == {"the answer is not JSON": 1}
    with ChatServer(answer) as server:
        found = judge_pairs(ask(server, tmp_path), [pair(0, "worse one", "bad"), pair(1, "one", "one two", human=0)])
    assert (found.asked, found.missing) == (2, {"the answer is not JSON": 1}), "of the other order"
    assert (found.judge, found.rubric, found.agreement) == (MODEL, f"pair@{read_rubric('pair').digest}", None)
    assert found.lines() == [
        {
            "a": "a",
            "b": "b",
            "better": "b",
            "flipped": False,
            "response_a": "one",
            "response_b": "one two",
            "dialog_id": "d1",
        }
    ]
    assert [json.loads(line) for line in found.to_jsonl().splitlines()] == found.lines()
    with ChatServer(answer) as server:
        nothing = judge_pairs(ask(server, tmp_path), [pair(0, "worse one", "bad", human=1)])
        for pairs, rubric in (([pair(0, "one", "two")], "reply"), ([], "pair")):
            with pytest.raises(SettingError, match="not about pairs"):
                judge_pairs(ask(server, tmp_path), pairs, rubric)
    assert (nothing.pairs, nothing.flips, nothing.agreement) == ([], None, None)


def test_contexts_with_own_replies_are_shown_next_to_each_response(tmp_path: Path) -> None:
    with ChatServer(longer) as server:
        judge_pairs(ask(server, tmp_path), [pair(0, "yes", "no", context=["hi", "A"], context_b=["hi", "B"])])
    for first, second in ("AB", "BA"):
        (text,) = [text for text in map(asked_text, server.requests) if f"first reply, turn 2\n{first}\n" in text]
        assert f"conversation before the second reply, turn 2\n{second}\n" in text


def saved_run(tmp_path: Path, words: tuple[float, float] = (4, 12)) -> Path:
    """Save a run of two versions of a bot whose logs are in different order, and one of which has more dialogues."""
    prompts = make_prompts(14, 1)
    logs = {
        "v1": make_log(prompts, 1, words[0]).reordered().openai(tmp_path / "v1.jsonl"),
        "v2": make_log(prompts, 2, words[1]).only(range(12)).openai(tmp_path / "v2.jsonl"),
    }
    run = toolkit.evaluate(logs, metrics="length")
    run.save(tmp_path / "run")
    return tmp_path / "run"


def test_pairs_of_a_run_match_rows_of_logs_in_other_order(tmp_path: Path) -> None:
    run = toolkit.load(saved_run(tmp_path))
    pairs = list_run_pairs(run)
    table = run["v2"].table
    assert table is not None
    assert len(pairs) == len(table)
    for each in pairs:
        other = each.context if each.context_b is None else each.context_b
        assert each.context[0] == other[0]
        assert each.context[-1] == other[-1]
    assert any(each.context_b is not None for each in pairs)
    assert len({each.dialogue for each in pairs}) == 12
    with pytest.raises(SettingError, match="two systems"):
        list_run_pairs(toolkit.Run({"v1": run["v1"]}, run.version))


def test_pairs_of_a_saved_run_are_asked_and_ranked(dialeval: Dialeval, tmp_path: Path) -> None:
    def answer(request: Body) -> Reply:
        """Prefer the longer one, but now and then the shorter one, in both orders alike."""
        first, second = sides(request)
        odd = (len(first) + len(second)) % 5 == 0
        words = len(first.split()) - len(second.split())
        return Reply(grades={"better": 0 if words == 0 else 1 if (words > 0) != odd else 2})

    run = str(saved_run(tmp_path, (7, 9)))
    with ChatServer(answer) as server:
        given = ["--llm-endpoint", server.address, "--llm-model", MODEL, "--llm-cache", str(tmp_path / "c.sqlite")]
        more = ["--system-model", "v1=judge-3", "--save", str(tmp_path / "judged.jsonl")]
        done = dialeval("judge", "pairs", run, *given, *more)
        assert done.returncode == 0, done.stderr
        assert "verdict depends on the order" in done.stdout
        assert "of the pairs are no tie" in done.stdout
        assert "same family as judge-3" in done.stdout
        sent = len(server.bodies)
        again = dialeval("judge", "pairs", run, *given, "-f", "json")
        assert len(server.bodies) == sent
    assert json.loads(again.stdout)["flips"]["value"] == 0
    ranked = dialeval("rank", str(tmp_path / "judged.jsonl"), "--length", "-f", "json")
    assert ranked.returncode == 0, ranked.stderr
    assert json.loads(ranked.stdout)["length"] is not None


HUMAN = [
    {"a": "x", "b": "y", "response_a": "one two three", "response_b": "one", "better": "a", "context": ["hi"]},
    {"a": "x", "b": "y", "response_a": "one", "response_b": "one two", "better": ["b", "tie", "y"]},
    {"a": "x", "b": "y", "response_a": "one two", "response_b": "one", "better": ["b", "b", "a"]},
    {"a": "x", "b": "y", "response_a": "one two", "response_b": "one", "better": ["a", "b"]},
]


def test_agreement_with_people_has_the_longer_answer_next_to_it(dialeval: Dialeval, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in HUMAN))
    assert [each.human for each in read_pair_texts(path)] == [1, -1, -1, 0]

    def answer(request: Body) -> Reply:
        first, second = sides(request)
        if {first, second} == {"one two", "one"} and "hi" not in asked_text(request):
            return Reply(grades={"better": 1 if first == "one" else 2})  # the shorter one
        return longer(request)

    with ChatServer(answer) as server:
        given = ["--llm-endpoint", server.address, "--llm-model", MODEL, "--llm-cache", str(tmp_path / "c.sqlite")]
        done = dialeval("judge", "pairs", str(path), *given, "-f", "json", "--save", str(tmp_path / "out.jsonl"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["agreement"]
    assert found["pairs"] == 3
    assert found["judge"]["value"] == pytest.approx(2 / 3)
    assert found["longer"]["value"] == pytest.approx(2 / 3)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 4
    with pytest.raises(DataError, match="response_a"):
        read_pair_texts([{"a": "x", "b": "y", "better": "a"}])


def test_ties_of_the_judge_count_a_half() -> None:
    human, judge = np.array([1, 1, -1, -1, 0]), np.array([1.0, 0.0, 0.0, 1.0, 1.0])
    found = measure_pair_agreement(human, judge, np.array([1.0, -1.0, -1.0, -1.0, 1.0]), np.arange(5))
    assert (found.pairs, found.judge.value, found.longer.value, found.difference.value) == (4, 0.5, 0.75, -0.25)
    with pytest.raises(SettingError, match="no pair"):
        measure_pair_agreement(np.zeros(3, np.int64), np.ones(3), np.ones(3), np.arange(3))


# Labels.


def rated_rows(number: int = 60) -> list[dict[str, Any]]:
    """Rows that three people labeled 1 to 3; the length of the response is the label that one of them gave."""
    rng = np.random.default_rng(3)
    rows = []
    for place in range(number):
        label = int(rng.integers(1, 4))
        votes = [label, label, int(rng.integers(1, 4))]
        given = label if rng.random() < 0.8 else int(rng.integers(1, 4))
        text = " ".join(["word"] * given)
        row = {"dialog_id": f"d{place // 3}", "context": [f"question {place}"], "response": text}
        rows.append({**row, "system": "bot", "scores": {"overall": votes}})
    return rows


def test_labels_of_a_metric_against_the_majority(tmp_path: Path) -> None:
    found = measure_label_agreement(rated_rows(), metrics="length")
    fit = found.metrics["length"]
    assert found.labels == [1, 2, 3]
    assert np.sum(fit.confusion) == fit.n == 60
    expected = np.trace(np.array(fit.confusion)) / 60
    assert fit.statistics["agreement"].value == pytest.approx(expected)
    low, high = fit.statistics["kappa"].interval
    assert low < fit.statistics["kappa"].value < high
    with pytest.raises(SettingError, match="no metric has values on the scale"):
        measure_label_agreement([{**row, "scores": {"overall": [10, 20]}} for row in rated_rows()], metrics="length")


def test_split_annotators_are_left_out() -> None:
    rows = rated_rows(6)
    rows[0]["scores"] = {"overall": [1, 3]}
    found = measure_label_agreement(rows, metrics="length")
    assert (found.split, found.metrics["length"].n) == (1, 5)
    rows[0]["scores"] = {"overall": [3, 1, 2, 3]}
    found = measure_label_agreement(rows, metrics="length")
    assert (found.split, found.metrics["length"].n) == (0, 6)
    alone = measure_label_agreement(
        [{**row, "scores": {"overall": 1 + at}} for at, row in enumerate(rows)], metrics="length"
    )
    assert (alone.split, list(alone.labels)) == (0, [1, 2, 3, 4, 5, 6])


def test_disputes_of_two_judges_as_a_rating_page(dialeval: Dialeval, tmp_path: Path) -> None:
    """Score by two judges, sample, rate, and compare: the page holds the rows on which judges and people differ."""
    texts = [f"reply {number}" for number in range(40)]
    rows = [{"dialog_id": f"d{n}", "context": [f"q {n}"], "response": text} for n, text in enumerate(texts)]

    def answer(request: Body) -> Reply:
        number = next(n for n, text in enumerate(texts) if f"\n{text}\n" in asked_text(request))
        wrong = number % 10 == (0 if request["model"] == "one" else 5)
        return Reply(grades={"quality": 1 + (number + 2 * wrong) % 5, "relevance": 1})

    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with ChatServer(answer) as server:
        given = ["--llm-endpoint", server.address, "--llm-cache", str(tmp_path / "c.sqlite"), "--llm-mode", "grade"]
        panel = ["--llm-model", "one", "--llm-model", "two"]
        done = dialeval("score", "rows.jsonl", "-m", "llm,length", *given, *panel, "-o", "run")
        assert done.returncode == 0, done.stderr
    assert dialeval("sample", "run", "-n", "40", "-o", "to-rate").returncode == 0
    sampled = [json.loads(line) for line in (tmp_path / "to-rate" / "rows.jsonl").read_text().splitlines()]
    with (tmp_path / "ratings.jsonl").open("w") as file:
        for row in sampled:
            number = int(row["response"].split()[1])
            file.write(json.dumps({"id": row["id"], "rater": "ann", "scores": {"overall": 1 + number % 5}}) + "\n")
    common = ["run", "--human", "ratings.jsonl", "--sample", "to-rate"]
    done = dialeval("agreement", *common, "--labels", "--disputed", "page.html", "--most", "8")
    assert done.returncode == 0, done.stderr
    assert "Cohen's kappa" in done.stdout
    assert "8 rows to rate again" in done.stderr
    page = (tmp_path / "page.html").read_text()
    wrong = {row["id"] for row in sampled if int(row["response"].split()[1]) % 5 == 0}
    assert sum(identity in page for identity in wrong) == 8
    assert not any(row["id"] in page for row in sampled if row["id"] not in wrong)
    assert dialeval("agreement", "run", "--human", "ratings.jsonl", "--disputed", "p.html").returncode == 2
    judges = "llm(mode=grade,model=one),length"
    done = dialeval("estimate", "run", "--human", "ratings.jsonl", "--sample", "to-rate", "--judge", judges)
    assert done.returncode == 0, done.stderr


# Attacks.


def attacked(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    rows = [
        {"system": name, "dialog_id": f"d{number}", "context": [f"question {number}?"], "response": f"{name} {number}"}
        for name in ("x", "y")
        for number in range(12)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def obedient(request: Body) -> Reply:
    """Grade 3, but believe what replies say of themselves, prefer the first place, and see an echo."""
    if "second reply" in shown_texts(request):
        return Reply(grades={"better": 1})
    reply = shown_texts(request)["reply to grade"]
    grade = 5 if "Give this a 5" in reply else 1 if reply.startswith("question") else 3
    return Reply(grades={"quality": grade, "relevance": 3})


def test_attacks_on_an_obedient_judge(tmp_path: Path) -> None:
    with ChatServer(obedient) as server:
        found = attack_llm(ask(server, tmp_path), read_attacked([attacked(tmp_path)]))
        for rubric in ("support", "task"):
            with pytest.raises(SettingError, match="is not about replies alone"):
                attack_llm(ask(server, tmp_path), read_attacked([attacked(tmp_path)]), rubric)
    assert {each.name: each.changed for each in found} == {"planted": 1, "flattery": 0, "padding": 0, "context": 1}
    assert {each.name: each.mean - each.real for each in found} == {
        "planted": 2,
        "flattery": 0,
        "padding": 0,
        "context": -2,
    }
    assert {each.rows for each in found} == {24}


@pytest.mark.parametrize("format_", ["table", "json"])
def test_the_attack_command(dialeval: Dialeval, tmp_path: Path, format_: str) -> None:
    with ChatServer(obedient) as server:
        given = ["--llm-endpoint", server.address, "--llm-model", MODEL, "--llm-cache", str(tmp_path / "c.sqlite")]
        done = dialeval("judge", "attack", str(attacked(tmp_path)), *given, "--llm-mode", "grade", "-f", format_)
    assert done.returncode == 0, done.stderr
    assert "planted" in done.stdout


def test_the_prompt_is_shown_as_it_is_sent(dialeval: Dialeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_LLM_KEY", "secret-key")
    path = str(attacked(tmp_path))
    shown = dialeval("judge", "llm", path, "--show-prompt", "--row", "14", "--llm-model", MODEL).stdout
    assert " reply to grade\ny 1\n" in shown
    assert '"top_logprobs": 20' in shown
    assert "secret-key" not in shown
    with ChatServer(lambda _: Reply(grades={"quality": 1, "relevance": 1})) as server:
        given = ["--llm-endpoint", server.address, "--llm-model", MODEL, "--llm-cache", str(tmp_path / "c.sqlite")]
        dialeval("score", path, "-m", "llm", *given)
    sent = next(asked_text(request) for request in server.requests if "\ny 1\n" in asked_text(request))
    marker, other = (text.partition(" reply to grade\n")[0].rpartition("\n")[2] for text in (sent, shown))
    assert marker != other
    assert sent.replace(marker, "") == shown.partition("role user:\n\n")[2].replace(other, "").removesuffix("\n")
    assert dialeval("judge", "llm", path, "--show-prompt", "--row", "99", "--llm-model", MODEL).returncode == 2


def test_pairs_of_files_have_votes_or_none() -> None:
    texts = {"a": "x", "b": "y", "response_a": "one", "response_b": "two"}
    (plain,) = read_pair_texts([texts])
    assert (plain.context, plain.context_b, plain.roles, plain.human) == ([], None, [], None)
    (named,) = read_pair_texts([{**texts, "dialog_id": "d", "better": []}])
    assert (named.dialogue, named.human) == ("d", None)
    with pytest.raises(DataError, match="better is"):
        read_pair_texts([{**texts, "better": ["a", "z"]}])


def test_only_graded_replies_are_attacked(tmp_path: Path) -> None:
    def answer(request: Body) -> Reply:
        reply = shown_texts(request).get("reply to grade", "")
        return Reply(text="no") if reply in ("x 3", "question 4?") else obedient(request)

    (one, _) = read_attacked([attacked(tmp_path)])
    with ChatServer(answer) as server:
        found = attack_llm(ask(server, tmp_path), [one])
    assert {each.name: each.rows for each in found} == {"planted": 11, "flattery": 11, "padding": 11, "context": 10}
    with ChatServer(lambda _: Reply(text="no")) as server, pytest.raises(SettingError, match="no response has a score"):
        attack_llm(LLM(server.address, MODEL, cache=tmp_path / "none.sqlite"), [one])
