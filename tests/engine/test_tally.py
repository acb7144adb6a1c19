"""A tally gives what an evaluation of all its rows gives, whatever came when and where."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import dialeval
import evaluating
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.fold import Analytic
from dialeval.engine.evaluate import Tally

RESPONSES = ["a b c", "c d e f", "hello world how are you", "x y z a b", "the cat", ""]
REFERENCES = [["a b"], ["c d e f g"], ["hello you", "hello world how are they"], [], ["a cat"], ["z"]]
CONTEXTS = ["hi", "who", "what now", "x", "y", "z"]


def rows(number: int, turns: int = 3) -> list[dict[str, Any]]:
    """Rows of dialogues with some turns each."""
    return [
        {
            "dialog_id": f"d{row // turns}",
            "turn": row % turns,
            "response": f"so {row} it {row % 5} is",
            "reference": "so it is",
            "part": "odd" if row % 2 else "even",
        }
        for row in range(number)
    ]


@pytest.mark.parametrize("cut", [1, 3, 5])
@pytest.mark.parametrize("metrics", ["bleu-4", "bleu-4,distinct-2", ["length", "unigram-kl-div"], None])
def test_updates_are_an_evaluation(cut: int, metrics: Any) -> None:
    train = ["a b c d", "the cat"]
    whole = dialeval.evaluate(RESPONSES, REFERENCES, CONTEXTS, metrics=metrics, train=train)
    tally = dialeval.make_tally(metrics, train=train)
    for start in range(0, len(RESPONSES), cut):
        stop = start + cut
        tally.update(RESPONSES[start:stop], REFERENCES[start:stop], CONTEXTS[start:stop])
        tally.compute()  # leaves everything as it is
    assert tally.run() == whole
    assert tally.compute() == whole["system"]
    assert len(tally) == len(RESPONSES)


@pytest.mark.parametrize("cut", [1, 2, 4, 7])
def test_dialogues_go_on_from_one_update_to_the_next(cut: int) -> None:
    whole = dialeval.evaluate(rows(20), metrics="length,bleu-4")
    tally = dialeval.make_tally("length,bleu-4")
    for start in range(0, 20, cut):
        tally.update(rows(20)[start : start + cut])
    assert tally.run() == whole
    how = whole["system"]["length"].interval_by
    assert isinstance(how, Analytic)
    assert how.over == "dialogues"
    assert tally.run().warnings == ()


def test_rows_without_an_id_among_others_that_have_one() -> None:
    mixed = [row if number in (4, 5, 6, 11) else {"response": row["response"]} for number, row in enumerate(rows(15))]
    whole = dialeval.evaluate(mixed, metrics="length")
    for cut in (1, 2, 4):
        here, there = dialeval.make_tally("length"), dialeval.make_tally("length")
        for start in range(0, 15, cut):
            (here if start < 10 - 10 % cut else there).update(mixed[start : start + cut])
        here.merge(there)
        assert here.run() == whole


def test_many_updates() -> None:
    tally = dialeval.make_tally("bleu-4,distinct-2")
    for number in range(100):
        tally.update([f"so {number} it is"], ["so it is"])
    texts = [f"so {number} it is" for number in range(100)]
    assert tally.run() == dialeval.evaluate(texts, ["so it is"] * 100, metrics="bleu-4,distinct-2")


def test_rows_that_lack_what_others_have() -> None:
    """As in an evaluation of all of them, these rows have none."""
    whole = dialeval.evaluate(RESPONSES[:2], [["a b"], []], metrics="bleu-4")
    tally = dialeval.make_tally("bleu-4")
    tally.update(RESPONSES[:1], REFERENCES[:1])
    tally.update(RESPONSES[1:2])
    assert tally.run() == whole
    assert tally.compute()["bleu-4"].scored == 1


@pytest.mark.parametrize("metrics", ["length,distinct", "all"])
def test_columns_may_come_later(metrics: str) -> None:
    """As in an evaluation of all of them, the rows before have none."""
    tally = dialeval.make_tally(metrics)
    tally.update(["a"])
    tally.compute()
    tally.update(["b"], ["c"])
    assert tally.run() == dialeval.evaluate(["a", "b"], [[], ["c"]], metrics=metrics)


def test_a_named_metric_without_what_it_needs() -> None:
    tally = dialeval.make_tally("bleu-4")
    with pytest.raises(NeedError, match="bleu-4 needs references"):
        tally.update(["a"])
    with pytest.raises(SettingError, match="no rows yet; call update first"):
        tally.compute()
    with pytest.raises(SettingError, match="did you mean 'bleu-4'"):
        dialeval.make_tally("bleu4").update(["a"])


def test_rows_with_a_problem_leave_no_trace() -> None:
    tally = dialeval.make_tally("bleu-4")
    tally.update(["a b"], ["a b"])
    with pytest.raises(DataError, match="responses: has 2 rows, but references has 1"):
        tally.update(["a", "b"], ["a"])
    assert tally.run() == dialeval.evaluate(["a b"], ["a b"], metrics="bleu-4")


def test_a_row_that_cannot_be_scored_is_named_by_compute() -> None:
    @dialeval.metric_of_rows(name="fussy-tally")
    def fussy(response: str) -> float:
        return 1 / len(response)

    tally = dialeval.make_tally([fussy, "bleu"])
    tally.update(["a"])
    tally.update([""])
    with pytest.raises(DataError, match="responses:2: fussy-tally cannot score this row"):
        tally.compute()


def test_reset_and_the_printed_form() -> None:
    tally = dialeval.make_tally("bleu-4,distinct-2")
    tally.update(["a b"], ["a b"])
    assert repr(tally) == "<Tally: bleu-4,distinct-2, 1 row>"
    tally.reset()
    assert repr(tally) == "<Tally: bleu-4,distinct-2, 0 rows>"
    tally.update(["c d e"], ["c d"])
    assert tally.run() == dialeval.evaluate(["c d e"], ["c d"], metrics="bleu-4,distinct-2")


def test_a_tally_measures_one_system_under_a_name() -> None:
    tally = dialeval.make_tally("length", system="mine", fields={"response": "answer"})
    tally.update([{"answer": "a b"}])
    tally.update([{"answer": "a"}])
    assert list(tally.run()) == ["mine"]
    assert tally.compute()["length"].mean == 1.5
    with pytest.raises(SettingError, match="one system, and these rows are of a, b; make a tally for each"):
        tally.update([{"answer": "x", "system": "a"}, {"answer": "y", "system": "b"}])


def test_trials_are_not_counted_in_parts() -> None:
    tally = dialeval.make_tally("pass-hat-1")
    with pytest.raises(SettingError, match="known of all rows together; use"):
        tally.update([{"dialog_id": "t", "trial": 0, "reward": 1.0, "response": "a"}])


def test_intervals_are_chosen_as_in_an_evaluation() -> None:
    chosen: Mapping[str, Any] = {"intervals": "clustered", "confidence": 0.9, "tokenizer": "13a"}
    tally = dialeval.make_tally("length", **chosen)
    for row in rows(12):
        tally.update([row])
    assert tally.run() == evaluating.evaluate(rows(12), metrics="length", **chosen)


def test_the_tokenizer_may_be_chosen_by_all_texts() -> None:
    tally = dialeval.make_tally("distinct-2", tokenizer="auto")
    tally.update(["good day"])
    tally.update(["今日はいい天気です。", "明日も天気です。"])
    texts = ["good day", "今日はいい天気です。", "明日も天気です。"]
    assert tally.run() == dialeval.evaluate(texts, metrics="distinct-2", tokenizer="auto")


def test_merging_in_this_process_and_after_a_pickle() -> None:
    whole = dialeval.evaluate(rows(20), metrics="bleu-4,distinct-2,length")
    ways: list[Callable[[Tally], Tally]] = [lambda tally: tally, lambda tally: pickle.loads(pickle.dumps(tally))]
    for sent in ways:
        here, there = (dialeval.make_tally("bleu-4,distinct-2,length") for _ in range(2))
        here.update(rows(20)[:6])
        there.update(rows(20)[6:10])
        there.update(rows(20)[10:15])
        before = there.run()
        merged = sent(here)
        merged.merge(sent(there))
        merged.update(rows(20)[15:])
        assert merged.run() == whole
        assert there.run() == before


def test_merging_with_nothing() -> None:
    here, there = dialeval.make_tally("length"), dialeval.make_tally("length")
    here.merge(there)
    there.update(["a b"])
    here.merge(there)
    here.merge(dialeval.make_tally("length"))
    assert here.run() == dialeval.evaluate(["a b"], metrics="length")


def test_merging_with_itself() -> None:
    tally = dialeval.make_tally("length")
    tally.update([{**row, "dialog_id": f"e{row['turn']}"} for row in rows(3)])
    tally.merge(tally)
    assert len(tally) == 6
    assert tally.compute()["length"].units == 6


def test_a_dialogue_that_is_divided_among_meters_is_told() -> None:
    here, there = dialeval.make_tally("length"), dialeval.make_tally("length")
    here.update(rows(4))
    there.update([*rows(9)[6:], *rows(6)[4:]])
    here.merge(there)
    assert "rows of 1 dialogues of system are not consecutive, such as those of 'd1'" in here.run().warnings[0]


@pytest.mark.parametrize(
    "other", [lambda: dialeval.make_tally("distinct-2"), lambda: dialeval.make_tally("distinct-1", tokenizer="13a")]
)
def test_other_metrics_are_not_merged(other: Any) -> None:
    here, there = dialeval.make_tally("distinct-1"), other()
    here.update(["a b"])
    there.update(["a b"])
    with pytest.raises(SettingError, match="cannot be merged into <Tally: distinct-1, 1 row>: it has other metrics"):
        here.merge(there)
    with pytest.raises(SettingError, match="cannot be merged into <Tally: distinct-1, 0 rows>: it has other metrics"):
        dialeval.make_tally("distinct-1").merge(there)
    assert here.run() == dialeval.evaluate(["a b"], metrics="distinct-1")


def test_metrics_with_other_resources_are_not_merged() -> None:
    settings = {"distinct": {"oov": "unk"}}
    readings = (dialeval.Reading(vocabulary=[word]) for word in "ab")
    here, there = (dialeval.make_tally("distinct-1", settings=settings, reading=reading) for reading in readings)
    here.update(["a b"])
    there.update(["a b"])
    with pytest.raises(SettingError, match="cannot be merged"):
        here.merge(there)


def test_resources_travel_by_their_paths(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a b c\nthe cat\n")
    tally = dialeval.make_tally("all", train=tmp_path / "train.txt")
    tally.update(["a cat"])
    sent = pickle.loads(pickle.dumps(tally))
    sent.update(["b"])
    assert sent.run() == dialeval.evaluate(["a cat", "b"], train=tmp_path / "train.txt", metrics="all")
    (tmp_path / "train.txt").write_text("another text\n")
    changed = pickle.loads(pickle.dumps(tally))
    with pytest.raises(SettingError, match="other resources"):
        sent.merge(changed)


def _in_a_group(rank: int, port: int, results: Any) -> None:
    import torch.distributed as dist

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=2)
    tally = dialeval.make_tally("bleu-4,distinct-2")
    tally.update(RESPONSES[rank * 3 : rank * 3 + 3], REFERENCES[rank * 3 : rank * 3 + 3])
    gathered: list[Any] = [None, None]
    dist.all_gather_object(gathered, tally)
    whole = dialeval.make_tally("bleu-4,distinct-2")
    for each in gathered:
        whole.merge(each)
    results.put((rank, pickle.dumps(whole.run())))
    dist.destroy_process_group()


def test_ranks_of_torch_distributed_have_the_same_figures() -> None:
    pytest.importorskip("torch")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = [context.Process(target=_in_a_group, args=(rank, port, results)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    found = dict(results.get(timeout=120) for _ in ranks)
    for rank in ranks:
        rank.join()
    whole = dialeval.evaluate(RESPONSES, REFERENCES, metrics="bleu-4,distinct-2")
    assert [pickle.loads(found[rank]) == whole for rank in range(2)] == [True, True]
