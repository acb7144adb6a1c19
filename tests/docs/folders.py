"""The folders in which the blocks of each page run: invented files with the names that the page speaks of."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from tools.site.blocks import Runner, blocks

import dialeval
from dialeval import sample_data
from llm_server import Body, ChatServer, Reply, asked_text, shown_texts

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


def judged(folder: Path) -> None:
    """Rated rows."""
    for name, part in {"mine": slice(0, 120), "other": slice(120, 240)}.items():
        rows = ({**row, "response": f"{name} {row['response']}"} for row in _rated_rows()[part])
        lines(folder / f"{name}.jsonl", rows)
    (folder / "more.csv").write_text(
        "context,response,overall\n" + "".join(f"hi,hello {n},{n % 5}\n" for n in range(60))
    )
    lines(folder / "rows.jsonl", [{**ROW, "dialog_id": f"d{n}", "response": f"hello to {n} of you"} for n in range(6)])


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


def gates(folder: Path) -> None:
    """Make a run of 200 dialogues to test sequentially, and the logs of two versions."""
    saved_run(folder)
    versions(folder)


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
    (folder / "some" / "json").mkdir(parents=True)
    for name in ("hypotheses.txt", "some/file"):
        shutil.copy(HERE / "lsdscc" / "varied.txt", folder / name)
    for name in ("groups.json", "some/json/file"):
        shutil.copy(HERE / "lsdscc" / "groups.json", folder / name)
    shutil.copytree(HERE / "breakdown" / "data", folder / "data")
    shutil.copytree(HERE / "breakdown" / "keywords", folder / "labels")


def recorded_grades(folder: Path) -> None:
    """Save runs with the recorded grades of invented language models, and ratings by people."""
    page = (Path(__file__).parents[2] / "docs" / "llm-judges.md").read_text(encoding="utf-8")
    (folder / "polite.toml").write_text(next(block.code for block in blocks(page) if block.title == "polite.toml"))

    def is_polite(reply: str) -> int:
        return int(crc32(reply.encode()) % 100 < 75 - len(reply) // 4)

    def grade(request: Body) -> Reply:
        reply = shown_texts(request)["reply to grade"]
        noise, shift = crc32(f"{request['model']} {reply}".encode()) % 10, request["model"] == "new-model"
        quality = 3 + is_polite(reply) - (noise < 3) + (noise > (4 if shift else 8))
        if "Is the reply polite?" in asked_text(request):
            return Reply(grades={"polite": is_polite(reply) ^ (noise == 1)})
        return Reply(grades={"quality": quality, "relevance": 3 + noise % 3})

    with ChatServer(grade) as server:
        judged = f"dialeval score {HERE}/logs/v1.jsonl {HERE}/logs/v2.jsonl --llm-endpoint {server.address}"
        for name, options in {
            "results": "-m llm,length --llm-model my-model",
            "new-judge": "-m llm,length --llm-model new-model",
            "polite": "-m llm --llm-model my-model --rubric polite.toml",
        }.items():
            Runner(folder).command(f"{judged} {options} --llm-cache recorded.sqlite -o {name}")
    graded = dialeval.load(folder / "polite").score_table.lines()
    for row in graded:
        row["scores"] = {"polite": is_polite(row["response"])}
    names = ("dialog_id", "system", "response", "scores")
    lines(folder / "people.jsonl", ({name: row[name] for name in names} for row in graded if row["row"] % 3))


FOLDERS: dict[str, Callable[[Path], None]] = {
    "docs/agreement.md": human_ratings,
    "docs/ci.md": gates,
    "docs/migrate.md": other_programs,
    "docs/formats.md": formats,
    "docs/statistics.md": human_ratings,
    "docs/human-evaluation.md": people,
    "docs/judges.md": judged,
    "docs/llm-judges.md": recorded_grades,
    "docs/rating.md": saved_run,
    "docs/scale.md": shards,
    "docs/slices.md": versions,
}
"""What a page finds beside a copy of the sample, which all find unless they make it themselves."""
RATING = "-o to-rate"
"""What a command holds after which people rate."""
