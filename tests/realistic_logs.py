"""Chat logs as real programs write them, made up: two versions of a bot that talked to users.

`Log` holds dialogues with a topic, and writes them as OpenAI messages, ShareGPT conversations, plain rows, CSV or
Parquet. The contexts of a version contain its own replies.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

_OPENINGS = ("where is", "when does", "how much is", "can you find", "is there", "who runs", "what about", "why is")
_THINGS = (
    "the ferry",
    "my order",
    "the museum",
    "a cheap hotel",
    "the night bus",
    "the old mill",
    "the market",
    "room 4",
)
_DETAILS = ("today", "on sunday", "for two", "near the river", "before nine", "with a dog", "please", "by train")
_WORDS = (
    *("it", "is", "open", "at", "nine", "and", "costs", "ten", "euros", "near", "the", "old", "town", "hall", "with"),
    *("a", "lovely", "garden", "behind", "the", "river"),
)


@dataclass(frozen=True)
class Dialogue:
    """A dialogue: its id (None: it has none), topic, and pairs of what the user and the bot said."""

    id: str | None
    topic: str
    turns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Log:
    """The dialogues of one version."""

    dialogues: tuple[Dialogue, ...]

    def without_ids(self) -> Log:
        return Log(tuple(replace(each, id=None) for each in self.dialogues))

    def reordered(self, seed: int = 1) -> Log:
        return Log(tuple(random.Random(seed).sample(self.dialogues, len(self.dialogues))))

    def only(self, kept: Sequence[int]) -> Log:
        return Log(tuple(self.dialogues[at] for at in kept))

    def lengths(self) -> list[list[int]]:
        """The words of each reply, by dialogue."""
        return [[len(reply.split()) for _, reply in each.turns] for each in self.dialogues]

    def openai(self, path: Path) -> Path:
        lines = []
        for each in self.dialogues:
            messages = [
                {"role": role, "content": text}
                for turn in each.turns
                for role, text in zip(("user", "assistant"), turn, strict=True)
            ]
            lines.append({**_named(each.id, "id"), "topic": each.topic, "messages": messages})
        return _write_lines(path, lines)

    def sharegpt(self, path: Path) -> Path:
        lines = []
        for each in self.dialogues:
            said = [
                {"from": who, "value": text}
                for turn in each.turns
                for who, text in zip(("human", "gpt"), turn, strict=True)
            ]
            lines.append({**_named(each.id, "id"), "conversations": said})
        return _write_lines(path, lines)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per reply, with its context as a list of texts."""
        for each in self.dialogues:
            context: list[str] = []
            for number, (asked, reply) in enumerate(each.turns):
                context.append(asked)
                named = _named(each.id, "dialog_id") | ({"turn": number} if each.id is not None else {})
                yield {**named, "topic": each.topic, "context": list(context), "response": reply}
                context.append(reply)

    def jsonl(self, path: Path) -> Path:
        return _write_lines(path, list(self.rows()))

    def csv(self, path: Path) -> Path:
        """Single-turn rows in a table: the context is what the user said last."""
        rows = [{**row, "context": row["context"][-1]} for row in self.rows()]
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    def parquet(self, path: Path) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(list(self.rows())), path)
        return path


def _named(name: str | None, field: str) -> dict[str, str]:
    return {} if name is None else {field: name}


def _write_lines(path: Path, lines: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def make_prompts(dialogues: int, seed: int, most: int = 4) -> list[list[str]]:
    """What users say in each dialogue; no two dialogues begin alike."""
    chance = random.Random(seed)
    return [
        [
            f"{chance.choice(_OPENINGS)} {chance.choice(_THINGS)} {chance.choice(_DETAILS)} ({seed}.{number}.{turn})?"
            for turn in range(chance.randint(1, most))
        ]
        for number in range(dialogues)
    ]


def make_log(prompts: Sequence[Sequence[str]], seed: int, words: float = 8, prefix: str | None = "d") -> Log:
    """A version's replies to prompts, of about so many words each; ids with a prefix, or none."""
    chance = random.Random(seed)
    dialogues = []
    for number, asked in enumerate(prompts):
        turns = []
        for text in asked:
            size = max(1, round(chance.gauss(words, 2)))
            turns.append((text, " ".join(chance.choices(_WORDS, k=size))))
        name = None if prefix is None else f"{prefix}{number}"
        dialogues.append(Dialogue(name, ("billing", "travel")[number % 2], tuple(turns)))
    return Log(tuple(dialogues))
