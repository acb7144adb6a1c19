"""Replies that people wrote, with their values, against the placeholders that annotators gave them.

The ratings of user satisfaction hold MultiWOZ dialogues as they were written. Some are of the test split. They are
found by their user turns: `dialog-eval/multiwoz-large` has the user turns of the test split, next to delexicalized
system turns by which its dialogues are told apart.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import TaskData, load_task
from dialeval.suites.multiwoz.evaluation import make_gold_replies

pytestmark = pytest.mark.golden

ABSENT = ("mul0789", "pmul3688")
"""Dialogues that `multiwoz-large` leaves out."""


def letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def places_of_user_turns(folder: Path, task: TaskData) -> dict[str, list[tuple[str, int]]]:
    """User turn -> the dialogues and turns that have it."""
    assert task.files.references is not None
    words = task.ontology.words
    shown = [
        letters(re.sub(r"\[([\w\s]+)\]", lambda match: words.get(match[1], match[1]), line))
        for line in lines(folder / "test_target.txt.gz")
    ]
    references = task.files.references.sets["mwz22"]
    known = {name: [letters(text) for text in texts] for name, texts in references.items() if name not in ABSENT}
    by_text: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, texts in known.items():
        for turn, text in enumerate(texts):
            by_text[text].append((name, turn))
    places: list[tuple[str, int]] = []
    while len(places) < len(shown):
        start = len(places)
        votes = Counter(
            name
            for turn, text in enumerate(shown[start : start + 30])
            for name, at in by_text[text]
            if at == turn and name in known
        )
        name = max(votes, key=lambda name: (votes[name] / len(known[name]), votes[name]))
        places += [(name, turn) for turn in range(len(known.pop(name)))]
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for place, said in zip(places, lines(folder / "test_source.txt.gz"), strict=True):
        found[letters(said)].append(place)
    return found


def written_replies(shared_data: Path, task: TaskData) -> dict[tuple[str, int], str]:
    """The replies of test dialogues as people wrote them."""
    places = places_of_user_turns(shared_data / "dialog-eval" / "multiwoz-large", task)
    dialogues: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in lines(shared_data / "ratings" / "uss_mwoz.jsonl.gz"):
        row = json.loads(line)
        users = [turn["text"] for turn in row["context"] if turn["speaker"] == "user"]
        dialogues[row["dialog_id"].split("_")[0]].append((letters(users[-1]), row["response"]))
    replies: dict[tuple[str, int], str] = {}
    for turns in dialogues.values():
        votes = Counter(name for asked, _ in turns for name, _ in places.get(asked, []))
        name, number = votes.most_common(1)[0] if votes else ("", 0)
        if number >= 3:
            for asked, reply in turns:
                here = [place for place in places.get(asked, []) if place[0] == name]
                if len(here) == 1:
                    replies.setdefault(here[0], reply)
    return replies


def test_replies_as_people_wrote_them(shared_data: Path) -> None:
    task = load_task(shared_data / "multiwoz")
    written = written_replies(shared_data, task)
    gold = iter(make_gold_replies(task))
    documents: dict[str, dict[str, list[dict[str, Any]]]] = {"annotated": {}, "written": {}}
    kept = {name for name, _ in written}
    for name, count in task.files.turns.items():
        replies = [next(gold) for _ in range(count)]
        if name in kept:
            documents["annotated"][name] = [{"response": reply} for reply in replies]
            # Of turns that were not found the words of the reference stay, without the brackets of placeholders.
            documents["written"][name] = [
                {"response": written.get((name, turn), re.sub(r"[\[\]]", "", reply))}
                for turn, reply in enumerate(replies)
            ]
    run = Evaluator(richness=False, data=task, lexicalized=True).run(documents)
    annotated, mapped = run["annotated"], run["written"]
    dialogues = annotated["inform"].scored
    assert (len(written), dialogues) == (763, 91)
    # Annotations lack some values, so that two more dialogues succeed.
    for key, before, after in (("inform", 94.5, 94.5), ("success", 92.3, 94.5), ("bleu/mwz22", 100.0, 93.2)):
        assert (round(annotated[key].mean, 1), round(mapped[key].mean, 1)) == (before, after), key
