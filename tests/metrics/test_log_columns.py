"""Labels of replies and latency: how rows give them, their rates and percentiles, and the intervals of these."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dialeval
import evaluating
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.fold import Estimate
from dialeval.engine.intervals import compute_interval
from dialeval.metrics.log_columns import MOST_VALUES, Label, LabelNames, LatencyPercentile
from dialeval.metrics.registry import registry
from dialeval.text.vocabulary import Vocabulary


def items(rows: list[Any], metric: str) -> list[float | None]:
    """The value of each row, None where it is not scored."""
    found = dialeval.evaluate(rows, metrics=metric)["system"][metric].scores
    assert found is not None
    return [None if math.isnan(value) else value for value in found.tolist()]


def labeled(*labels: Any) -> list[dict[str, Any]]:
    return [{"response": "hello", "dialog_id": f"d{at}", "labels": each} for at, each in enumerate(labels)]


@pytest.mark.parametrize(
    ("labels", "metric", "value"),
    [
        ({"polite": True}, "label:polite", 1),
        ({"polite": 0}, "label:polite", 0),
        ({"polite": 0.4}, "label:polite", 0.4),
        ({"polite": [1, 0, None, True]}, "label:polite", 2 / 3),
        ({"polite": [True, False]}, "label:polite(annotators=majority)", 0),
        ({"polite": [True, False, True]}, "label:polite(annotators=majority)", 1),
        ([{"polite": True}, {"polite": False}, {}], "label:polite", 0.5),
        ({"class": "X"}, "label:class=X", 1),
        ({"class": "X"}, "label:class=O", 0),
        ([{"class": "X"}, {"class": "O"}, {"class": "X"}], "label:class=X", 2 / 3),
        ({"error": ["repetition", "ignored turn"]}, "label:error=ignored_turn", 1),
        ({"error": ["repetition", "repetition"]}, "label:error=repetition", 1),
        ({"error": []}, "label:error=repetition", 0),
        ({"error": [["repetition"], [], ["repetition", "other"]]}, "label:error=repetition", 2 / 3),
        ('{"class": "X"}', "label:class=X", 1),
        ({"polite": None}, "label:polite", None),
        ({"polite": []}, "label:polite", None),
        ({"other": True}, "label:polite", None),
        ({"class": ""}, "label:class=X", None),
        ({"class": "X"}, "label:class", None),
        ({"class": True}, "label:class=X", None),
        (None, "label:polite", None),
    ],
)
def test_the_value_of_a_reply(labels: Any, metric: str, value: float | None) -> None:
    known = {"polite": True, "class": ["O"], "error": ["none"]}
    assert items(labeled(labels, known), metric)[0] == value


def test_what_is_no_label_is_reported_and_does_not_count() -> None:
    run = dialeval.evaluate(labeled({"quality": 4, "polite": True}, {"quality": {"a": 1}}, 3, ["x"]), metrics="labels")
    assert list(run["system"]) == ["labels", "label:polite"]
    assert run["system"]["labels"].mean == 0.25
    assert sum("the label 'quality' is" in line for line in run.warnings) == 2


def test_free_texts_are_not_counted_unless_named() -> None:
    rows = labeled(*({"comment": f"text {number}", "polite": True} for number in range(MOST_VALUES + 1)))
    run = dialeval.evaluate(rows, metrics="labels")
    assert list(run["system"]) == ["labels", "label:polite"]
    assert "the label comment has more than 20 values; name one: -m label:comment=VALUE" in run.warnings
    assert sum(value or 0 for value in items(rows, "label:comment=text_3")) == 1


def test_labels_stand_for_those_of_all_systems_also_in_chunks(tmp_path: Path) -> None:
    """A value that one system never has is a rate of 0 there, and not a missing one."""
    one = labeled(*[{"class": "O"}] * 3)
    two = labeled(*[{"class": "O"}] * 40, *[{"class": "T", "polite": True}] * 2, None)
    for name, rows in (("one", one), ("two", two)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = dialeval.evaluate({"one": one, "two": two}, metrics="labels")
    assert list(whole["one"]) == ["labels", "label:class=O", "label:class=T", "label:polite"]
    assert whole["one"]["label:class=T"].mean == 0
    assert (whole["one"]["label:polite"].scored, whole["two"]["label:polite"].scored) == (0, 2)
    files = {name: f"{tmp_path}/{name}*.jsonl" for name in ("one", "two")}
    parts = dialeval.evaluate(files, metrics="labels", execution=dialeval.Execution(chunk_bytes=300))
    for name in ("one", "two"):
        for key, estimate in whole[name].items():
            assert repr(parts[name][key]) == repr(estimate)
            assert parts[name][key].interval == estimate.interval


def test_labels_of_messages_and_of_a_chat_with_one_reply() -> None:
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello", "labels": {"polite": True}},
        {"role": "assistant", "content": "bye"},
    ]
    assert items([{"messages": messages}], "label:polite") == [1, None]
    assert items([{"messages": messages[:1] + messages[2:], "labels": {"polite": False}}], "label:polite") == [0]
    run = dialeval.evaluate([{"messages": messages, "labels": {"polite": False}}], metrics="label:polite")
    assert any("of a whole chat" in line for line in run.warnings)


def test_names_read_back_and_missing_labels_are_named() -> None:
    for name in ("label:class=X", "label:polite(annotators=majority,better=higher)", "labels", "label:a@dialogue-mean"):
        assert str(registry().parse(name)) == name
        assert [str(metric) for metric in registry().select([name])] == [name]
    assert registry().parse("label:polite(better=lower)") == Label("polite", better="lower")
    with pytest.raises(SettingError, match="percent"):
        registry().parse("latency-percentile(percent=100)")
    with pytest.raises(SettingError, match="better"):
        registry().parse("label:polite(better=more)")
    with pytest.raises(NeedError, match="a field labels"):
        dialeval.evaluate(["hello"], metrics="labels")


@pytest.fixture(scope="module")
def abc_eval(shared_data: Path) -> list[dict[str, Any]]:
    """The behaviors of ABC-Eval by two annotators, with the dialogues that the ids of turns begin with."""
    with gzip.open(shared_data / "ratings" / "abc_eval.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row | {"dialog_id": row["dialog_id"].rpartition("_")[0]} for row in rows]


@pytest.mark.parametrize("annotators", ["mean", "majority"])
def test_abc_eval_agrees_with_a_direct_computation(abc_eval: list[dict[str, Any]], annotators: str) -> None:
    run = dialeval.evaluate(abc_eval, metrics=f"label(annotators={annotators})", fields={"labels": "scores"})
    assert len(run) == 4
    behaviors = [name for name in abc_eval[0]["scores"] if name != "overall"]
    for system, result in run.items():
        own = [row for row in abc_eval if row["system"] == system]
        for name in behaviors:
            values = np.array([np.mean(row["scores"][name]) for row in own])
            values = values > 0.5 if annotators == "majority" else values
            metric = f"label:{name}" + ("" if annotators == "mean" else "(annotators=majority)")
            assert result[metric].mean == pytest.approx(values.mean(), rel=1e-12)
            assert result[metric].scored == len(own)
            direct = _interval(values.astype(float), [row["dialog_id"] for row in own], annotators == "majority")
            assert result[metric].interval == pytest.approx(direct, rel=1e-9, abs=1e-12)


def _interval(values: Any, dialogues: list[str], yes_no: bool) -> tuple[float, float]:
    """Student's or Wilson's interval from the jackknife over dialogues, computed by leaving each out."""
    names = np.array(dialogues)
    kept = np.unique(names)
    sizes = np.array([(names == name).sum() for name in kept])
    without = np.array([values[names != name].mean() for name in kept])
    clusters, rows, mean = len(kept), len(values), values.mean()
    error = math.sqrt((clusters - 1) / clusters * ((without - mean) ** 2).sum())
    t = stats.t.ppf(0.975, max(rows**2 / (sizes**2).sum() - 1, 1))
    if not yes_no:
        return max(0.0, mean - t * error), min(1.0, mean + t * error)
    if mean in (0, 1):  # nothing about the spread is estimated
        size, t = clusters, stats.norm.ppf(0.975)
    else:
        size = min(mean * (1 - mean) / error**2, rows)
    center, width = mean + t**2 / (2 * size), t * math.sqrt(mean * (1 - mean) / size + t**2 / (4 * size**2))
    return (center - width) / (1 + t**2 / size), (center + width) / (1 + t**2 / size)


# Latency.

TIMES = {
    "ISO 8601": ("2026-03-01T10:00:00Z", "2026-03-01T10:00:01.500Z", "2026-03-01T10:00:09+00:00"),
    "seconds": (1772359200, 1772359201.5, 1772359209),
    "milliseconds": (1772359200000, 1772359201500, 1772359209000),
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
def test_the_latency_of_messages_begins_with_what_they_answer(times: tuple[Any, Any, Any]) -> None:
    """Calls of tools are part of the time until the reply, and what the system says unasked has none."""
    asked, called, replied = times
    messages = [
        {"role": "assistant", "content": "Hello!", "timestamp": asked},
        {"role": "user", "content": "a table?", "timestamp": asked},
        {"role": "assistant", "content": None, "tool_calls": [{"name": "book"}], "timestamp": called},
        {"role": "tool", "content": "ok", "timestamp": called},
        {"role": "assistant", "content": "Booked.", "timestamp": replied},
        {"role": "assistant", "content": "Anything else?", "timestamp": replied},
    ]
    assert items([{"messages": messages}], "latency") == [None, 9, 0]


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        ({"response": "a", "latency": 1.25}, 1.25),
        ({"response": "a", "latency": "1.5"}, 1.5),
        ({"response": "a", "latency": "soon"}, None),
        ({"response": "a", "latency": 10**400}, None),
        ({"response": "a", "latency": True}, None),
        ({"response": "a", "latency": -1}, None),
        (
            {
                "traceId": "t",
                "type": "GENERATION",
                "input": "hi",
                "output": "hello",
                "startTime": "2026-03-01T10:00:00.000Z",
                "endTime": "2026-03-01T10:00:02.250Z",
            },
            2.25,
        ),
        (
            {
                "context.trace_id": "t",
                "span_kind": "LLM",
                "attributes.output.value": "hello",
                "start_time": "2026-03-01T10:00:00+00:00",
                "end_time": "2026-03-01T10:00:00.750000+00:00",
            },
            0.75,
        ),
        ({"id": 1, "epoch": 1, "input": "hi", "output": {"completion": "hello", "time": 0.5}, "total_time": 3.0}, 3.0),
        ({"id": 1, "epoch": 1, "input": "hi", "output": {"completion": "hello"}, "working_time": 2.5}, 2.5),
        ({"input": "hi", "actual_output": "hello", "completion_time": 0.125}, 0.125),
        (
            {
                "sender_id": "c",
                "events": [
                    {"event": "user", "text": "hi", "timestamp": 1772359200.5},
                    {"event": "bot", "text": "hello", "timestamp": 1772359201.0},
                ],
            },
            0.5,
        ),
    ],
)
def test_latency_in_the_logs_of_programs(row: dict[str, Any], seconds: float | None) -> None:
    other: dict[str, Any] = {**row, "id": 2, "sender_id": "d", "latency": 1}
    if "response" in row:
        other = {"response": "b", "dialog_id": "other", "latency": 1}
    assert items([row, other], "latency")[0] == seconds


def test_latency_of_a_real_log_of_inspect_ai(shared_data: Path) -> None:
    path = shared_data / "logs" / "inspect" / "security-guide.json"
    expected = [sample["working_time"] for sample in json.loads(path.read_text(encoding="utf-8"))["samples"]]
    [result] = dialeval.evaluate(path, metrics="latency").systems.values()
    assert result["latency"].scores is not None
    assert sorted(result["latency"].scores.tolist()) == sorted(expected)


def test_latency_of_a_real_file_of_tau2_bench(shared_data: Path) -> None:
    [path] = (shared_data / "logs" / "tau2-bench").glob("*context_agent*")
    with gzip.open(path) as file:
        simulations = json.load(file)["simulations"]
    expected = []
    for simulation in simulations:
        since = None
        for message in simulation["messages"]:
            time = datetime.fromisoformat(message["timestamp"]).timestamp()
            speaks = message["role"] == "assistant" and (message["content"] or "").strip()
            if speaks and since is not None:
                expected.append(time - since)
            if speaks or message["role"] == "user":
                since = time
    [result] = dialeval.evaluate(path, metrics="latency,latency-p50,latency-p95").systems.values()
    assert result["latency"].scored == len(expected) > 50
    assert result["latency"].mean == pytest.approx(np.mean(expected))
    for percent in (50, 95):
        value = np.quantile(expected, percent / 100, method="inverted_cdf")
        assert result[f"latency-p{percent}"].mean == pytest.approx(value, abs=1e-6)


seconds = st.lists(st.integers(0, 40).map(lambda number: number / 4), min_size=1, max_size=60)


@given(seconds, st.integers(1, 99))
def test_percentiles_are_values_of_replies(values: list[float], percent: int) -> None:
    rows = [{"response": "a", "latency": value} for value in values]
    name = f"latency-percentile(percent={percent})"
    found = dialeval.evaluate(rows, metrics=[LatencyPercentile(percent)])["system"]
    (estimate,) = found.values()
    assert list(found) in ([name], [f"latency-p{percent}"])
    assert estimate.mean == min(x for x in values if 100 * sum(y <= x for y in values) >= percent * len(values))


@pytest.mark.parametrize("percent", [50, 95])
def test_intervals_of_percentiles_cover(percent: int) -> None:
    """80 dialogues of 1 to 9 replies, alike within dialogues: at least 92% of 95% intervals contain the truth."""
    generator, covered, trials = np.random.default_rng(percent), 0, 300
    truth = math.exp(0.8 * NormalDist().inv_cdf(percent / 100))
    for _ in range(trials):
        sizes = generator.integers(1, 10, 80)
        own = np.repeat(generator.normal(0, math.sqrt(0.3), 80), sizes)
        values = np.exp(0.8 * (own + generator.normal(0, math.sqrt(0.7), len(own))))
        metric = LatencyPercentile(percent)
        [estimate] = metric.finish((values, sizes, len(values))).values()
        found = compute_interval(estimate, metric.bounds, 0.95)
        assert found is not None
        covered += found[0][0] <= truth <= found[0][1]
    assert 0.92 * trials <= covered <= 0.99 * trials


def test_resampled_intervals_of_percentiles_are_near_those_by_formula() -> None:
    generator = np.random.default_rng(5)
    rows = [
        {"response": "a", "dialog_id": f"d{at // 4}", "latency": float(value)}
        for at, value in enumerate(generator.lognormal(0, 0.8, 400))
    ]
    run = dialeval.evaluate(rows, metrics="latency-p50,latency-p95")
    again = dialeval.with_intervals(run)
    for name in ("latency-p50", "latency-p95"):
        one, two = run["system"][name], again["system"][name]
        assert one.interval is not None
        assert two.interval is not None
        assert two.interval[0] < one.mean < two.interval[1]
        assert np.diff(two.interval)[0] == pytest.approx(np.diff(one.interval)[0], rel=0.35)


def test_the_error_of_a_percentile_is_that_of_woodruff() -> None:
    """Replies as slow as the percentile count as within it, also where many are equally slow."""
    sizes = np.tile([3, 4, 5], 20)
    of_dialogues = [0.5] * 3 + [1.0] * 28 + [1 + at / 16 for at in range(1, 30)]
    values = np.repeat(of_dialogues, sizes)
    [estimate] = LatencyPercentile(50).finish((values, sizes, len(values))).values()
    within, ends = values <= estimate.mean, np.cumsum(sizes)
    left_out = np.array(
        [
            np.delete(within, np.s_[stop - size : stop]).mean()
            for size, stop in zip(sizes.tolist(), ends.tolist(), strict=True)
        ]
    )
    spread = math.sqrt(59 / 60 * ((left_out - within.mean()) ** 2).sum())
    assert spread > 0.5 / math.sqrt(len(values)), "dialogues are alike, so that this is not the lower limit"
    low, high = (np.quantile(values, 0.5 + side * spread, method="inverted_cdf") for side in (-2, 2))
    assert estimate.error is not None
    assert estimate.error.error == pytest.approx((high - low) / 4)


def test_a_percentile_of_few_replies_has_no_interval() -> None:
    rows = [{"response": "a", "latency": at / 8} for at in range(40)]
    result = dialeval.evaluate(rows, metrics="latency-p50,latency-p95")["system"]
    assert isinstance(result["latency-p50"], Estimate)
    assert result["latency-p50"].interval is not None
    assert (result["latency-p95"].mean, result["latency-p95"].interval) == (37 / 8, None)


def test_baselines_have_neither_labels_nor_latency() -> None:
    rows = [
        {"response": f"a {at}", "reference": f"b {at}", "dialog_id": f"d{at}", "latency": 1.0, "labels": {"x": True}}
        for at in range(6)
    ]
    run = dialeval.evaluate(rows, metrics="labels,latency,rouge-l", baselines=True)
    assert run["system"]["label:x"].mean == 1
    assert (run["ceiling/gold"]["label:x"].scored, run["ceiling/gold"]["latency"].scored) == (0, 0)


def test_names_of_labels_are_merged() -> None:
    names = LabelNames()
    many = tuple(f"{number:02}" for number in range(15))
    left, right = {"a": ("x",), "b": many}, {"a": ("", "w"), "b": (*many[10:], *(f"x{at}" for at in range(9)))}
    merged = names.merge(left, right)
    assert merged == {"a": ("", "w", "x"), "b": (*many, *(f"x{at}" for at in range(6)))}  # one more than can be
    with pytest.warns(UserWarning, match="^the label b has more than 20 values; name one: -m label:b=VALUE$"):
        assert names.finish(merged) == ["a", "a=w", "a=x"]
    assert names.merge(names.empty(), left) == left
    empty = Batch(1, {inputs.RESPONSE: TextColumn.from_strings(["a"])}, Vocabulary(), np.array([0, 1]))
    assert names.gather(empty) == {}


# Scores and fields that the rows carry: chats, rows, messages, tables of other tools, functions of fields.


def chat(name: str, replies: int, **fields: Any) -> dict[str, Any]:
    turns = [("user", "Hi"), ("assistant", "Hello, how can I help?")] * replies
    return {"id": name, "messages": [{"role": role, "content": text} for role, text in turns], **fields}


CHATS = [
    chat("c1", 2, csat=5, channel="web", scores={"helpfulness": 0.9, "cost": 0.02}, thumbs=True),
    chat("c2", 1, csat=2, channel="app", scores=[{"name": "helpfulness", "value": 0.1}], thumbs="no"),
    chat("c3", 3, csat=None, channel="app", scores={"helpfulness": {"score": True}}, thumbs=""),
]


def score(rows: Any, metrics: Any, **more: Any) -> Any:
    return evaluating.evaluate(rows, metrics=metrics, **more)["system"]


def test_a_score_of_a_chat_counts_once_and_is_missing_once() -> None:
    result = score(CHATS, "score:csat(range=1:5,better=higher)")
    (estimate,) = result.values()
    assert (estimate.mean, estimate.scored, estimate.missing) == (3.5, 2, 1)
    np.testing.assert_array_equal(estimate.scores, [np.nan, 5, 2, np.nan, np.nan, np.nan])
    assert estimate.signature.metric == "score:csat(range=1:5)"


def test_all_scores_are_found_and_guesses_are_stated() -> None:
    run = dialeval.evaluate(CHATS, metrics="scores")
    assert "score:cost(better=lower,range=0:1)" in run.warnings[0]
    result = run["system"]
    assert sorted(result) == ["score:cost", "score:csat", "score:helpfulness", "score:thumbs"]
    assert result["score:helpfulness"].mean == pytest.approx(2 / 3)
    assert result["score:thumbs"].mean == 0.5
    low, high = result["score:thumbs"].interval or (-1, 2)
    assert 0 <= low < high <= 1


def test_scores_of_messages_are_those_of_replies() -> None:
    rows = [chat("a", 2), chat("b", 1)]
    rows[0]["messages"][1]["rating"] = 4
    rows[0]["messages"][3]["scores"] = {"rating": "2"}
    result = score(rows, "score:rating(range=1:5)")
    (estimate,) = result.values()
    np.testing.assert_array_equal(estimate.scores, [4, 2, np.nan])


def test_plain_rows_tables_and_chunks_agree(tmp_path: Path) -> None:
    rows = [{"response": f"reply {n}", "dialog_id": f"d{n // 2}", "judge.score": n % 3} for n in range(40)]
    nested = [{**row, "judge": {"score": row.pop("judge.score")}} for row in [dict(row) for row in rows]]
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in nested))
    table = tmp_path / "rows.csv"
    header = "response,dialog_id,judge_score\n"
    table.write_text(header + "".join(f"{r['response']},{r['dialog_id']},{r['judge.score']}\n" for r in rows))
    name = "score:judge.score(range=0:2)"
    whole = score(nested, name)[name]
    in_chunks = dialeval.evaluate(lines, metrics=name, execution=dialeval.Execution(row_scores=False, chunk_bytes=300))[
        "rows"
    ][name]
    of_table = dialeval.evaluate(table, metrics="score:judge_score(range=0:2)")["rows"]
    assert whole.interval == in_chunks.interval == next(iter(of_table.values())).interval
    assert whole.mean == in_chunks.mean == sum(n % 3 for n in range(40)) / 40


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        ("score:nope", NeedError, "no row has the score nope"),
        ("score:channel", DataError, "channel is the text 'web'; make it a number"),
        ("score:csat(range=5)", SettingError, "LOW:HIGH"),
        ("score:csat(range=1:3)", SettingError, "from 2 to 5, beyond its range 1:3"),
        ("score:csat(better=up)", SettingError, "better"),
    ],
)
def test_what_is_no_score_is_refused(metric: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        score(CHATS, metric)


def test_a_lower_cost_is_better_and_the_comparison_says_so() -> None:
    both = {
        "v1": [chat(f"c{n}", 1, cost=0.5 + n / 100) for n in range(12)],
        "v2": [chat(f"c{n}", 1, cost=0.2 + n / 100) for n in range(12)],
    }
    comparison = dialeval.compare(dialeval.evaluate(both, metrics="score:cost(range=0:)"))
    assert comparison.verdict.kind == "better"


def test_scores_of_another_tool_are_joined_by_id(tmp_path: Path) -> None:
    table = tmp_path / "judged.csv"
    table.write_text("conversation,system,quality,turn\nc1,,4,\nc2,,1,\nc9,,3,\n")
    run = dialeval.evaluate(
        CHATS, metrics="score:quality(range=1:5)", reading=dialeval.Reading(scores=table, key="conversation")
    )
    assert any("not in system are unused (1)" in line for line in run.warnings)
    (estimate,) = run["system"].values()
    assert (estimate.mean, estimate.missing) == (2.5, 1)
    rows = [{"conversation": "c1", "turn": 1, "quality": 2}, {"conversation": "c1", "turn": 2, "quality": 4}]
    by_turn = score(CHATS, "score:quality(range=1:5)", scores=rows, key="conversation")
    np.testing.assert_array_equal(next(iter(by_turn.values())).scores[:2], [2, 4])
    with pytest.raises(DataError, match="names none of the 3 dialogues"):
        score(CHATS, "score:quality", scores=[{"conversation": "x", "quality": 2}], key="conversation")
    with pytest.raises(DataError, match="add a column system"):
        dialeval.evaluate(
            {"a": CHATS, "b": CHATS}, metrics="score:quality", reading=dialeval.Reading(scores=rows, key="conversation")
        )


def test_scores_of_another_tool_are_joined_by_the_ids_of_replies(tmp_path: Path) -> None:
    rows = [{"dialogue_id": f"d{n // 2}", "id": n, "response": f"reply {n}"} for n in range(6)]
    table = tmp_path / "judged.csv"
    table.write_text("id,turn,ok,toxicity,note\n" + "".join(f"{n},{n % 2},yes,0.{n},fine\n" for n in (5, 4, 2, 1, 0)))
    result = score(rows, "scores", scores=table, key="id")
    assert sorted(result) == ["score:ok", "score:toxicity"]
    np.testing.assert_array_equal(result["score:toxicity"].scores, [0, 0.1, 0.2, np.nan, 0.4, 0.5])
    assert result["score:ok"].missing == 1
    with pytest.raises(DataError, match="names none of the 6 replies"):
        score(rows, "scores", scores=[{"id": 9, "ok": 1}], key="id")
    with pytest.raises(DataError, match="several replies with the same id, such as 1"):
        score([{**row, "id": 1} for row in rows], "scores", scores=table, key="id")


def test_names_of_scores_may_have_spaces(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("response,Thumbs Up\nhi,yes\nhello,No\n")
    run = dialeval.evaluate(table, metrics="score:Thumbs Up(range=0:1)")
    assert run["rows"]["score:Thumbs Up(range=0:1)"].mean == 0.5
    (name,) = dialeval.evaluate(table, metrics="scores")["rows"]
    assert registry().parse(name).better == "higher"


@dialeval.metric_of_rows("csat-share", better="higher", bounds=(0, 1))
def csat_share(csat: float) -> float:
    return csat / 5


@dialeval.metric_of_rows("polite-in-app")
def polite_in_app(response: str, channel: str = "web", calls: Any = None) -> float | None:
    return None if channel == "web" else float("help" in response)


def test_parameters_of_functions_are_fields_of_the_rows() -> None:
    result = score(CHATS, [csat_share, polite_in_app])
    np.testing.assert_array_equal(result["csat-share"].scores, [np.nan, 1.0, 0.4, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(result["polite-in-app"].scores, [np.nan, np.nan, 1, 1, 1, 1])
    with pytest.raises(NeedError, match="csat-share needs a field csat in responses"):
        score([{"response": "a"}], [csat_share])


def test_the_command_scores_fields_and_joins_tables(tmp_path: Path) -> None:
    log, table = tmp_path / "log.jsonl", tmp_path / "scores.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in CHATS))
    table.write_text("".join(json.dumps({"dialog_id": f"c{n}", "nps": n}) + "\n" for n in (1, 2, 3)))
    given = ["score", str(log), "-m", "score:csat(range=1:5),score:nps", "--scores", str(table), "-f", "json"]
    done = subprocess.run([sys.executable, "-m", "dialeval", *given], capture_output=True, text=True, check=True)
    metrics = json.loads(done.stdout)["systems"]["log"]["metrics"]
    assert {name: one["mean"] for name, one in metrics.items()} == {"score:csat(range=1:5)": 3.5, "score:nps": 2}
