"""Files in chunks give what rows in memory give, to the last digit, however they are cut."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dialeval
import evaluating
from dialeval import sample_data
from dialeval.core import rowtable
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.engine import worker
from dialeval.engine.folding import Done
from dialeval.engine.processes import Processes
from dialeval.engine.worker import Threads
from engine.chats import Delicate, bare, estimates, in_chunks, rows, texts, write_shards
from metrics.evaluated import VECTORS


@pytest.fixture
def given() -> dict[str, Any]:
    here = sample_data.folder()
    return {
        "references": here / "references.txt",
        "contexts": here / "contexts.txt",
        "train": here / "train.txt",
        "vocabulary": here / "train.txt",
        "vectors": here / "vectors.txt",
        "metrics": "all",
    }


@pytest.mark.parametrize(("chunk_bytes", "batch_rows", "threads"), [(300, 3, 2), (5_000, 1, 1), (10**6, 32_768, 1)])
def test_all_metrics_of_the_sample(
    tmp_path: Path, given: dict[str, Any], chunk_bytes: int, batch_rows: int, threads: int
) -> None:
    responses = sample_data.folder() / "responses"
    expected = evaluating.evaluate(responses, **given)
    run = in_chunks(
        responses, **given, engine=Threads(threads), output=tmp_path, chunk_bytes=chunk_bytes, batch_rows=batch_rows
    )
    assert estimates(run) == estimates(expected)
    assert {name: result.source for name, result in run.items()} == {n: r.source for n, r in expected.items()}
    assert bare(dialeval.load(tmp_path)) == bare(expected)
    assert run.skipped == expected.skipped


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet"])
def test_shards_of_rows_are_one_system(tmp_path: Path, kind: str) -> None:
    everything = write_shards(tmp_path / "shards", 60, 3)
    if kind == "jsonl.gz":
        for path in (tmp_path / "shards").iterdir():
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    if kind == "parquet":
        for path in (tmp_path / "shards").iterdir():
            table = pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])
            pq.write_table(table, path.with_suffix(".parquet"), row_group_size=13)
            path.unlink()
    expected = dialeval.evaluate({"bot": tmp_path / "whole.jsonl"}, train=tmp_path / "whole.jsonl", metrics="all")
    found = in_chunks(
        {"bot": f"{tmp_path}/shards/*"},
        train=tmp_path / "whole.jsonl",
        output=tmp_path / "out",
        chunk_bytes=700,
        batch_rows=8,
    )
    assert estimates(found) == estimates(expected)
    assert bare(dialeval.load(tmp_path / "out")) == bare(expected)
    assert found["bot"]["length"].units == len(everything)
    folder = in_chunks(tmp_path / "shards", shards=True, metrics="length")
    assert list(folder) == ["shards"]
    assert folder["shards"]["length"].units == len(everything)


def unequal_dialogues(seed: int) -> list[dict[str, object]]:
    """Rows of forty dialogues of one to twelve turns, which are alike within a dialogue."""
    random = np.random.default_rng(seed)
    return [
        {"dialog_id": f"d{number}", "turn": turn, "response": "w " * (own + turn % 2)}
        for number, own in enumerate(random.integers(1, 30, 40).tolist())
        for turn in range(1 + number * 7 % 12)
    ]


@pytest.mark.parametrize("how", ["threads", "processes"])
def test_a_streamed_run_is_compared_and_resampled_as_a_plain_one(tmp_path: Path, how: str) -> None:
    """Its rows were taken for independent: pairs without a difference came out significant."""
    options: dict[str, Any] = {"metrics": "length", "chunk_bytes": 400, "batch_rows": 7}
    if how == "processes":
        options["engine"] = Processes(2)
    plain, streamed = {}, {}
    for seed, name in enumerate(("one", "other")):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in unequal_dialogues(seed)))
        plain[name] = dialeval.evaluate({name: path}, metrics="length")
        in_chunks({name: path}, **options, output=tmp_path / name)
        streamed[name] = dialeval.load(tmp_path / name)
    assert bare(streamed["one"]) == bare(plain["one"])
    found, expected = (dialeval.compare(runs, resamples=200, trials=200) for runs in (streamed, plain))
    assert found.to_dict() == expected.to_dict()
    assert (found.design.unit, found.design.clusters) == ("dialogues", 40)
    one, other = (dialeval.with_intervals(runs["one"], resamples=200) for runs in (streamed, plain))
    assert one["one"]["length"].interval == other["one"]["length"].interval
    assert one["one"]["length"].interval != plain["one"]["one"]["length"].interval


def test_a_saved_run_without_dialogues_says_so_and_is_refused(tmp_path: Path) -> None:
    """As earlier versions saved streamed runs."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in unequal_dialogues(1)))
    run = dialeval.evaluate({"a": path, "b": path}, metrics="length")
    old = replace(run, systems={name: replace(result, table=None) for name, result in run.items()})
    old = dialeval.load(old.save(tmp_path / "old"))
    with pytest.raises(SettingError, match="does not record which rows belong to which dialogue"):
        dialeval.compare(old)
    resampled = dialeval.with_intervals(old)
    assert resampled.warnings == (
        "length has no resampled interval: the run does not record which rows belong to which dialogue",
    )
    assert resampled["a"]["length"].interval == run["a"]["length"].interval
    page = dialeval.report(old, tmp_path / "report.html").read_text()
    assert "b cannot be compared with a: the run does not record which rows belong to which dialogue" in page


def test_dialogues_that_are_torn_in_shards_are_warned_of(tmp_path: Path) -> None:
    torn = [{"response": "a", "dialog_id": name} for name in "aabba"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in torn))
    run = in_chunks(tmp_path / "rows.jsonl", metrics="length", output=tmp_path / "out", batch_rows=1)
    (warning,) = run.warnings
    assert "rows of 1 dialogues of rows are not consecutive, such as those of 'a'" in warning
    assert dialeval.load(tmp_path / "out").warnings == run.warnings


def test_names_that_only_say_a_place_are_not_kept(tmp_path: Path) -> None:
    """In a chunk `line 1` is another line; the turns of a chat stay together all the same."""
    chat = {"messages": [{"role": role, "content": "a b"} for role in ("user", "assistant") * 2]}
    (tmp_path / "chats.jsonl").write_text((json.dumps(chat) + "\n") * 5)
    run = in_chunks(tmp_path / "chats.jsonl", metrics="length", output=tmp_path / "out", batch_rows=2)
    assert run.warnings == ()
    table = dialeval.load(tmp_path / "out")["chats"].table
    assert table is not None
    assert table.offsets.tolist() == [0, 2, 4, 6, 8, 10]
    assert table.dialogues is None


def test_rows_of_several_systems(tmp_path: Path) -> None:
    mixed = [{**row, "system": "ab"[number % 2]} for number, row in enumerate(rows(80))]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
    expected = dialeval.evaluate({"all": tmp_path / "rows.jsonl"}, metrics="all")
    found = in_chunks({"all": tmp_path / "rows.jsonl"}, output=tmp_path / "out", chunk_bytes=500, batch_rows=4)
    assert list(found) == ["all/a", "all/b"]
    assert bare(dialeval.load(tmp_path / "out")) == bare(expected)


def test_references_that_come_late(tmp_path: Path) -> None:
    """Rows without a reference at all are as in one file: not scored; and a column nobody has is skipped."""
    some = [{"response": text} for text in texts(30)] + [{"response": "a b", "reference": "a b c"}] * 3
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    expected = dialeval.evaluate(tmp_path / "rows.jsonl", metrics="all")
    found = in_chunks(tmp_path / "rows.jsonl", output=tmp_path / "out", chunk_bytes=100, batch_rows=2)
    assert bare(dialeval.load(tmp_path / "out")) == bare(expected)
    assert found["rows"]["bleu-4"].scored == 3
    assert "coherence" in found.skipped


def test_a_named_metric_without_its_column_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"response": "x y"}\n' * 9)
    seen: list[Done] = []
    with pytest.raises(NeedError, match="bleu-4 needs references"):
        in_chunks(tmp_path / "a.jsonl", metrics="bleu-4", progress=seen.append)
    assert seen == []
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(NeedError, match="bleu-4 needs references"):
        in_chunks(tmp_path / "a.txt", metrics="bleu-4")


def test_changed_settings_keep_their_names(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 20, 2)
    chosen: dict[str, Any] = {"metrics": "bleu,distinct(n=3)", "settings": {"bleu": {"smooth": 7}}, "confidence": 0.9}
    expected = evaluating.evaluate({"x": tmp_path / "whole.jsonl"}, **chosen)
    found = in_chunks({"x": f"{tmp_path}/shards/*"}, **chosen, output=tmp_path / "out")
    assert list(found["x"]) == list(expected["x"])
    assert bare(dialeval.load(tmp_path / "out")) == bare(expected)


def test_without_items(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 20, 2)
    run = in_chunks(f"{tmp_path}/shards/*", metrics="length", output=tmp_path / "out", row_scores=False)
    back = dialeval.load(tmp_path / "out")
    assert estimates(back) == estimates(run)
    assert back["shards"]["length"].scores is None


def test_a_poison_row_is_named(tmp_path: Path) -> None:
    lines = [json.dumps({"response": text, "dialog_id": number // 3}) for number, text in enumerate(texts(90))]
    lines[70] = '{"response": "poison"}'
    (tmp_path / "a.jsonl").write_text("\n\n".join(lines))
    with pytest.raises(DataError, match=r"a.jsonl:141: delicate cannot score this row \(ValueError: I cannot bear"):
        in_chunks(tmp_path / "a.jsonl", metrics=[Delicate()], chunk_bytes=900, batch_rows=50)


def test_nothing_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n")
    (tmp_path / "b.jsonl").write_text('{"response": "x"}\n')
    assert in_chunks({"s": f"{tmp_path}/*.jsonl"}, metrics="length")["s"]["length"].units == 1
    with pytest.raises(DataError, match="holds no rows"):
        in_chunks(tmp_path / "a.jsonl", metrics="length")


def test_other_processes_open_resources_by_path(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(SettingError, match="train: a list is in the memory of this process"):
        in_chunks(tmp_path / "a.txt", train=["x"], engine=Processes(2))
    found = in_chunks(tmp_path / "a.txt", train=["x"], metrics="per-unigram-entropy")
    assert estimates(found) == estimates(
        dialeval.evaluate(tmp_path / "a.txt", train=["x"], metrics="per-unigram-entropy")
    )


def test_what_needs_all_rows_is_refused_in_chunks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(SettingError, match="baselines need all rows in memory"):
        in_chunks(tmp_path / "a.txt", baselines=True)
    with pytest.raises(SettingError, match="are added to rows in memory"):
        in_chunks(tmp_path / "a.txt", keep="topic")


def test_rows_in_memory_are_saved_too(tmp_path: Path) -> None:
    run = dialeval.evaluate(
        ["a b", "c"], output=tmp_path / "out", execution=dialeval.Execution(details={"note": "kept"})
    )
    assert dialeval.load(tmp_path / "out") == run
    assert run.details == {"note": "kept"}


def test_two_systems_of_one_name(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"response": "x", "system": "s"}\n')
    (tmp_path / "s.txt").write_text("x\n")
    with pytest.raises(DataError, match="the system 's' is also in"):
        in_chunks(tmp_path, metrics="length")


def test_a_worker_that_met_too_many_words_starts_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shards(tmp_path / "shards", 60, 2)
    expected = dialeval.evaluate({"s": tmp_path / "whole.jsonl"}, train=tmp_path / "whole.jsonl", metrics="all")
    opened = 0
    plain = worker.open_context

    def counted(*given: Any) -> Any:
        nonlocal opened
        opened += 1
        return plain(*given)

    monkeypatch.setattr(worker, "MOST_WORDS", 20)
    monkeypatch.setattr(worker, "open_context", counted)
    found = in_chunks({"s": f"{tmp_path}/shards/*"}, train=tmp_path / "whole.jsonl", chunk_bytes=900)
    assert estimates(found) == estimates(expected)
    assert opened > 4
    opened = 0
    monkeypatch.setattr(worker, "MOST_WORDS", 10_000)
    in_chunks({"s": f"{tmp_path}/shards/*"}, metrics="distinct-1", chunk_bytes=900)
    assert opened == 0


PEAK = """
import resource, sys
import dialeval
execution = dialeval.Execution(batch_rows=4096, chunk_bytes=1 << 20)
dialeval.evaluate(sys.argv[1], metrics="length,distinct-2", output=sys.argv[2], execution=execution)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_of_a_chat_grows_with_its_messages(tmp_path: Path) -> None:
    def route(turns: int) -> None:
        file, folder = tmp_path / f"{turns}.jsonl", tmp_path / f"run{turns}"
        said = [{"role": ("user", "assistant")[turn % 2], "content": f"a said {turn} " * 8} for turn in range(turns)]
        file.write_text(json.dumps({"messages": said}))
        run = dialeval.evaluate(file, metrics="coherence", train=["a"], vectors=VECTORS)
        run.save(folder)
        back = dialeval.load(folder)
        assert back[str(turns)].table == run[str(turns)].table
        assert len(dialeval.compare_slices(back, "turn", metrics=["coherence"], compared=False).slices) > 1

    def peak(turns: int) -> int:
        tracemalloc.start()
        try:
            route(turns)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    route(10)  # what is imported and compiled is no memory of the chat
    few, many = peak(500), peak(2000)
    assert many < 5 * few
    assert many < 20_000_000


def packed_rows(file: Path, size: int) -> Path:
    with gzip.open(file, "wt", compresslevel=1) as stream:
        stream.write(
            "".join(f'{{"response": "the {row % 97} cats", "dialog_id": {row // 3}}}\n' for row in range(size))
        )
    return file


def test_memory_does_not_grow_with_the_rows_of_a_packed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowtable, "HELD_BYTES", 1 << 16)

    def peak(size: int) -> int:
        with gzip.open(tmp_path / f"{size}.txt.gz", "wt", compresslevel=1) as stream:
            stream.write("the cats sat\n" * size)
        output = tmp_path / f"run{size}"
        tracemalloc.start()
        try:
            dialeval.evaluate(
                f"{tmp_path}/{size}*.gz", metrics="length", output=output, execution=dialeval.Execution(batch_rows=2048)
            )
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2_000)
    # Both have more bytes than are read at once. Twice: the table of Python's own strings may grow in either run.
    few, many = (min(peak(size) for _ in range(2)) for size in (60_000, 160_000))
    assert many - few < 8 * 100_000 / 2, "less than half of the items of the rows that are more"


def test_items_of_a_packed_file_come_back_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed_rows(tmp_path / "s.jsonl.gz", 5_000)
    asked: dict[str, Any] = {"metrics": "length,distinct-1", "batch_rows": 100}
    expected = dialeval.evaluate({"s": tmp_path / "s.jsonl.gz"}, metrics="length,distinct-1")
    monkeypatch.setattr(rowtable, "HELD_BYTES", 10_000)
    evaluating.evaluate(f"{tmp_path}/s*.gz", output=tmp_path / "run", **asked)
    assert len(list((tmp_path / "run").glob("scores-*.parquet"))) > 3
    run = dialeval.load(tmp_path / "run")
    assert estimates(run) == estimates(expected)
    for key in ("length", "distinct-1"):
        np.testing.assert_array_equal(run["s"][key].scores, expected["s"][key].scores)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
def test_memory_does_not_grow_with_the_shards(tmp_path: Path) -> None:
    line = '{"response": "the %d cats and %d dogs said hello to us", "reference": "%d hello %d"}\n'
    shard = "".join(line % (row % 97, row % 89, row % 83, row % 79) for row in range(40_000))
    peaks = {}
    for shards in (2, 8):
        folder = tmp_path / str(shards)
        folder.mkdir()
        for number in range(shards):
            (folder / f"part-{number}.jsonl").write_text(shard)
        command = [sys.executable, "-c", PEAK, f"{folder}/*.jsonl", str(tmp_path / f"out{shards}")]
        peaks[shards] = 1024 * int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    more = 6 * len(shard)
    assert more > 20_000_000
    assert peaks[8] - peaks[2] < 0.4 * more
    back = dialeval.load(tmp_path / "out8")["8"]["distinct-2"]
    assert back.scores is not None
    assert len(back.scores) == back.units == 320_000
