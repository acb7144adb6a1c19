"""The folders in which the blocks of each page run: invented files with the names that the page speaks of."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from tools.site.blocks import Runner

import dialeval
from dialeval import sample_data
from llm_server import Body, ChatServer, Reply, shown_texts

HERE = sample_data.folder()
WORDS = (
    *("yes", "no", "the", "train", "leaves", "at", "nine", "ten", "platform", "four", "table", "booked", "for"),
    *("two", "people", "tonight", "sure", "thanks"),
)
ROW = {"dialog_id": "d1", "system": "damd", "context": ["hi"], "response": "hello there", "reference": "hello"}


def lines(path: Path, rows: Iterable[Any]) -> None:
    """Write rows as JSONL."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def files(folder: Path) -> None:
    """Files of lines and of rows, for pages about responses."""
    for name in ("damd", "ubar", "old", "new", "references", "contexts", "train", "outputs/x", "outputs/y"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.txt").write_text("hello there my friend\ngoodbye now\n")
    (folder / "vectors.txt").write_text("hello 1 0\nthere 0 1\ngoodbye 1 1\n")
    lines(folder / "rows.jsonl", [ROW])
    lines(folder / "outputs" / "z.jsonl", [{**ROW, "system": "z"}] * 2)
    for month in ("2026-01", "2026-02"):
        lines(folder / "logs" / f"{month}.jsonl", [ROW] * 3)


def _rated_rows() -> list[dict[str, Any]]:
    return [
        {"dialog_id": f"d{n // 2}", "system": "xy"[n % 2], "context": ["hi"], "response": "hello " * (n % 4)}
        | {"reference": "hello", "scores": n % 5}
        for n in range(240)
    ]


def readme(folder: Path) -> None:
    """The files of the README, with a saved run to draw from."""
    files(folder)
    for name in ("v1", "v2"):
        shutil.copy(HERE / "logs" / f"{name}.jsonl", folder)
    lines(folder / "ratings.jsonl", _rated_rows())
    dialeval.evaluate(folder / "ratings.jsonl", metrics="length,rouge-l").save(folder / "logs-results")


def judged(folder: Path) -> None:
    """Rated rows, and a run of them."""
    files(folder)
    lines(folder / "ratings.jsonl", _rated_rows())
    for name, part in {"mine": slice(0, 120), "other": slice(120, 240)}.items():
        lines(folder / f"{name}.jsonl", _rated_rows()[part])
    (folder / "more.csv").write_text(
        "context,response,overall\n" + "".join(f"hi,hello {n},{n % 5}\n" for n in range(60))
    )
    dialeval.evaluate(folder / "ratings.jsonl", metrics="length,rouge-l").save(folder / "results")
    lines(folder / "rows.jsonl", [{**ROW, "dialog_id": f"d{n}", "response": f"hello to {n} of you"} for n in range(6)])
    shutil.copy(HERE / "chats.jsonl", folder)
    shutil.copytree(HERE / "breakdown" / "data", folder / "data")


def shards(folder: Path) -> None:
    """Files of one system in many formats."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for month in ("2026-01", "2026-02"):
        rows = [{**ROW, "dialog_id": f"{month} {n}"} for n in range(3)]
        lines(folder / "logs" / f"{month}.jsonl", rows)
        (folder / "logs" / f"{month}.jsonl.gz").write_bytes(
            gzip.compress((folder / "logs" / f"{month}.jsonl").read_bytes())
        )
        pq.write_table(pa.Table.from_pylist(rows), folder / "logs" / f"{month}.parquet")


def formats(folder: Path) -> None:
    """Chats and samples of other programs."""
    shutil.copytree(HERE, folder / "logs", ignore=lambda *_: {"town", "lsdscc", "breakdown", "responses"})
    chats = [json.loads(line) for line in (HERE / "chats.jsonl").read_text().splitlines()]
    lines(folder / "chats.jsonl", [{**chat, "language": "en"} for chat in chats])
    answer = {"doc_id": 0, "doc": {"question": "when?"}, "target": "9", "resps": [["at nine"]]}
    lines(folder / "samples_ferry.jsonl", [{**answer, "arguments": {"gen_args_0": {"arg_0": "when?", "arg_1": {}}}}])


def versions(folder: Path) -> None:
    """The logs of two versions that answered the same users; a command of the page makes the demo."""
    contexts, references, responses = (
        (HERE / f"{name}.txt").read_text().splitlines() for name in ("contexts", "references", "responses/careful")
    )
    for system in ("main", "branch"):
        rows = [
            {"dialog_id": f"d{n // 3}", "turn": n % 3, "system": system, "topic": ("tea", "library")[n // 3 % 2]}
            | {"context": [context], "response": response, "reference": reference}
            for n, (context, response, reference) in enumerate(zip(contexts, responses, references, strict=True))
        ]
        if system == "branch":
            rows[7]["response"] = "yes , of course ."
        lines(folder / "logs" / f"{system}.jsonl", rows)


def people(folder: Path) -> None:
    """Logs of two systems that answered the same users, the second one a little better."""
    rng = np.random.default_rng(1)
    references = [rng.choice(WORDS, size=8).tolist() for _ in range(600)]
    easy = np.repeat(rng.uniform(-0.25, 0.25, size=200), 3)
    pairs = []
    replies: dict[str, list[str]] = {}
    for system, good in {"main": 0.45, "branch": 0.58}.items():
        kept = rng.random((600, 8)) < np.clip(good + easy, 0.05, 0.95)[:, None]
        replies[system] = [
            " ".join(word if keep else str(rng.choice(WORDS)) for word, keep in zip(words, keeps, strict=True))
            for words, keeps in zip(references, kept, strict=True)
        ]
        rows = [
            {"dialog_id": f"d{n // 3}", "turn": n % 3, "system": system, "context": [f"question {n}"]}
            | {"response": replies[system][n], "reference": " ".join(references[n])}
            for n in range(600)
        ]
        lines(folder / "logs" / f"{system}.jsonl", rows)
    for n in range(0, 600, 4):
        shares = [opinion(replies[name][n], " ".join(references[n]), rng) for name in ("main", "branch")]
        better = "tie" if shares[0] == shares[1] else "a" if shares[0] > shares[1] else "b"
        pairs.append({"dialog_id": f"d{n // 3}", "a": "main", "b": "branch", "better": better})
        pairs[-1] |= {"response_a": replies["main"][n], "response_b": replies["branch"][n]}
    lines(folder / "pairs.jsonl", pairs)


def human_ratings(folder: Path) -> None:
    """Make a saved run, a sample of it and merged ratings, by the commands of the tutorial."""
    people(folder)
    runner = Runner(folder)
    runner.command("dialeval score logs -m rouge-l,chrf,length -o results")
    runner.command(f"dialeval sample results -n 160 {RATING}")
    rated(folder)
    runner.command("dialeval rate merge ann.jsonl bob.jsonl --sample to-rate --save ratings.jsonl")


def saved_run(folder: Path) -> None:
    """Make the logs of two systems and a saved run of them."""
    people(folder)
    Runner(folder).command("dialeval score logs -m rouge-l,length -o results")


def opinion(response: str, reference: str, rng: np.random.Generator) -> int:
    """What a person says of a response, from 1 to 5: how much of the reference it has, and a mood."""
    said, meant = response.split(), reference.split()
    same = np.mean([one == other for one, other in zip(said, meant, strict=False)] or [False])
    return int(np.clip(round(1 + 4 * float(same) + rng.normal() * 0.6), 1, 5))


def rated(folder: Path) -> None:
    """What people send back for the rows of `to-rate`: two, with every tenth row twice; and one of them plainly."""
    rng = np.random.default_rng(2)
    rows = [json.loads(line) for line in (folder / "to-rate" / "rows.jsonl").read_text().splitlines()]
    said: dict[str, list[dict[str, object]]] = {"ann": [], "bob": []}
    for row in rows:
        for rater, own in said.items():
            score = opinion(row["response"], row.get("reference", [row["response"]])[0], rng)
            own.append({"id": row["id"], "rater": rater, "scores": {"overall": score}, "seconds": 9.5})
    for rater, own in said.items():
        again = [{**line, "again": True} for line in own[::10]]
        again[0] |= {"scores": {"overall": 3}}
        lines(folder / f"{rater}.jsonl", own + again)
    lines(folder / "rated.jsonl", said["ann"])


def other_programs(folder: Path) -> None:
    """What the original programs read."""
    for name in ("train.txt", "contexts.txt", "references.txt", "vectors.txt", "responses/careful.txt"):
        shutil.copy(HERE / name, folder)
    shutil.copy(HERE / "responses" / "chatty.txt", folder)
    shutil.copytree(HERE / "responses", folder / "responses")
    words = set((HERE / "train.txt").read_text().split())
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in sorted(words)))
    predictions = json.loads((HERE / "town" / "predictions" / "patient.json").read_text())
    for turn in (turn for turns in predictions.values() for turn in turns):
        turn.pop("active_domains", None)
    (folder / "predictions.json").write_text(json.dumps(predictions))
    shutil.copytree(HERE / "frames" / "references", folder / "dstc8" / "test")
    (folder / "dstc8" / "train").mkdir()
    shutil.copy(HERE / "frames" / "train-schema.json", folder / "dstc8" / "train" / "schema.json")
    shutil.copytree(HERE / "frames" / "steady", folder / "mine")
    shutil.copy(HERE / "lsdscc" / "varied.txt", folder / "hypotheses.txt")
    shutil.copy(HERE / "lsdscc" / "groups.json", folder)
    shutil.copytree(HERE / "breakdown" / "data", folder / "data")
    shutil.copytree(HERE / "breakdown" / "keywords", folder / "labels")


def recorded_grades(folder: Path) -> None:
    """Save a run with the recorded grades of an invented language model."""
    shutil.copy(HERE / "chats.jsonl", folder / "rows.jsonl")

    def grade(request: Body) -> Reply:
        words = len(shown_texts(request)["reply to grade"].split())
        return Reply(grades={"quality": 2 + words % 4, "relevance": 3 + words % 3})

    with ChatServer(grade) as server:
        endpoint = f"--llm-endpoint {server.address} --llm-model my-model --llm-cache recorded.sqlite"
        Runner(folder).command(f"dialeval score rows.jsonl -m llm,length {endpoint} -o results")


FOLDERS: dict[str, Callable[[Path], None]] = {
    "README.md": readme,
    "docs/index.md": readme,
    "docs/agreement.md": human_ratings,
    "docs/ci.md": versions,
    "docs/migrate.md": other_programs,
    "docs/faq.md": files,
    "docs/formats.md": formats,
    "docs/statistics.md": human_ratings,
    "docs/human-evaluation.md": people,
    "docs/judges.md": judged,
    "docs/llm-judges.md": recorded_grades,
    "docs/llm-gateways.md": recorded_grades,
    "docs/rating.md": saved_run,
    "docs/scale.md": shards,
    "docs/slices.md": versions,
}
"""What a page finds beside a copy of the sample, which all find unless they make it themselves."""
RATING = "-o to-rate"
"""What a command holds after which people rate."""
