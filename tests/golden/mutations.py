"""Changes of sound inputs: files that nobody tuned an evaluation for.

Each strategy shrinks towards the input as it was. `predictions`, `hypotheses`, `reference_groups` and `lines` give what
an original still evaluates; `document` breaks the form as well. `tests/fuzz` breaks single bytes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

PLACEHOLDERS = ("[value_name]", "[NAME]", "[restaurant_name]", "[train_id]", "[value phone]", "[]", "[value_reference")
ODD_WORDS = ("<unk>", "zwölf", "知道", "I", "o'clock", "-s", "10:00", "a\u00a0b", "\u200b", "'", "windows 95")
SPACES = ("  ", "\t", " \u2003 ", "\x0b", "\x85")
SLOT_VALUES = (
    "",
    "dontcare",
    "don't care",
    "10:00",
    "9:15",
    "24:30",
    "12:30 pm",
    "after 5",
    "CENTER",
    "guest house",
    "é",
)
TIME_SLOTS = ("leave", "arrive", "arriveBy", "leaveAt", "time", "book time")
SLOTS = (
    "name",
    "area",
    "food",
    "leave",
    "arrive",
    "arriveBy",
    "leaveAt",
    "day",
    "bookday",
    "book people",
    "type",
    "color",
)
DOMAINS = ("restaurant", "hotel", "train", "attraction", "taxi", "hospital", "bus")
TEXTS = ("S", "U", "B", "X", "o", "", "0.25", " 1e-3 ", "2")
ODD_VALUES: tuple[Any, ...] = (*TEXTS, 0, 2, -1, 1.5, 1 << 70, True, None, [], {}, [None], {"a": 1})

HOURS = ("2", "02", "14", "12", "0", "9", "115", "２", "１４", "²", "six", "")
MINUTES = (":15", " : 15", " :15", ": 15", ".15", ":15.", ":5", ":", ";15", "15", ":15:00", ":1５", ":150", "")
PARTS_OF_DAY = (" pm", "pm", ". pm", " p.m.", " PM", " am", "a.m.", " o'clock", " o'clock pm", "?", " ", "")
BEFORE_TIMES = ("", "", "", "after ", "by ", "afer", " ")
times = st.tuples(*map(st.sampled_from, (BEFORE_TIMES, HOURS, MINUTES, PARTS_OF_DAY))).map("".join)
"""Times of day in odd spellings: blanks, full-width digits, signs, hours that are not numbers."""

FILE_NAMES = ("a.txt", "a.tsv", "a.csv", "a.json", "a.jsonl", "a.parquet", "a.md", "a", "two words.txt", "a.b c.log")
"""Names of files of lines; dialog-eval does not look at them."""

sometimes = st.integers(0, 3).map(lambda number: number == 3)


@st.composite
def line(draw: st.DrawFn, text: str, inserted: Sequence[str] = ODD_WORDS) -> str:
    """A text with words emptied, inserted, repeated, in capitals or with odd white space."""
    if not draw(sometimes):
        return text
    words = text.split(" ")
    at = draw(st.integers(0, len(words)))
    how = draw(st.sampled_from(["insert", "capitals", "cut", "repeat", "space", "empty"]))
    if how == "insert":
        words.insert(at, draw(st.sampled_from(inserted)))
    elif how == "capitals":
        words = [word.upper() for word in words]
    elif how == "cut":
        words = words[:at]
    elif how == "repeat":
        words = words + words[at:]
    elif how == "space":
        return draw(st.sampled_from(SPACES)).join([" ".join(words[:at]), " ".join(words[at:])])
    return " ".join(words) if how != "empty" else ""


def lines(texts: Sequence[str], inserted: Sequence[str] = ODD_WORDS) -> st.SearchStrategy[list[str]]:
    return st.tuples(*[line(text, inserted) for text in texts]).map(list)


@st.composite
def _state(draw: st.DrawFn, state: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    changed = {domain: dict(slots) for domain, slots in state.items()}
    if draw(sometimes):
        domain = draw(st.sampled_from([*changed, *DOMAINS]))
        how = draw(st.sampled_from(["slot", "time", "blank", "empty", "gone"]))
        if how == "slot":
            slots = changed.setdefault(domain, {})
            slots[draw(st.sampled_from([*slots, *SLOTS]))] = draw(st.sampled_from(SLOT_VALUES))
        elif how == "time":
            changed.setdefault("train", {})[draw(st.sampled_from(TIME_SLOTS))] = draw(times)
        elif how == "blank":
            changed[domain] = dict.fromkeys(changed.get(domain, ()), "")
        elif how == "empty":
            changed[domain] = {}
        else:
            changed.pop(domain, None)
    return changed


@st.composite
def predictions(draw: st.DrawFn, document: Mapping[str, Any], most: int = 6) -> dict[str, Any]:
    """A few dialogues of a MultiWOZ prediction file, some of them cut off or without turns."""
    chosen = draw(st.lists(st.sampled_from(list(document)), min_size=1, max_size=most, unique=True))
    lacking = draw(st.sampled_from(["", "", "", "state", "active_domains"]))
    changed: dict[str, list[dict[str, Any]]] = {}
    for dialogue in chosen:
        turns = document[dialogue]
        kept = draw(st.integers(0, len(turns))) if draw(sometimes) else len(turns)
        changed[dialogue] = []
        for turn in turns[:kept]:
            made = {**turn, "response": draw(line(turn["response"], PLACEHOLDERS))}
            if "state" in turn:
                made["state"] = draw(_state(turn["state"]))
            if "active_domains" in turn and draw(sometimes):
                made["active_domains"] = draw(st.lists(st.sampled_from(DOMAINS), max_size=2))
            if lacking and draw(sometimes):
                made.pop(lacking, None)
            changed[dialogue].append(made)
    return changed


@st.composite
def hypotheses(draw: st.DrawFn, texts: Sequence[str], eos: str) -> list[str]:
    """Lines of hypotheses, with separators lost, doubled, at the end and inside words."""
    changed = []
    for text in texts:
        parts = draw(lines(text.split(eos)))
        if draw(sometimes):
            parts.insert(draw(st.integers(0, len(parts))), draw(st.sampled_from(["", " ", "yes", "a b c d e f"])))
        changed.append(eos.join(parts))
    return changed


@st.composite
def reference_groups(draw: st.DrawFn, groups: Mapping[str, Mapping[str, list[str]]]) -> dict[str, Any]:
    """The groups of some queries, with references changed, repeated and moved to groups with other ids."""
    changed: dict[str, dict[str, list[str]]] = {}
    for query, named in groups.items():
        mine = {name: draw(lines(texts)) for name, texts in named.items()}
        if draw(sometimes):
            texts = draw(st.sampled_from(list(mine.values())))
            mine[draw(st.sampled_from(["0", "7", "10", "x", "-1", "03"]))] = [*texts, draw(st.sampled_from(ODD_WORDS))]
        changed[query] = mine
    return changed


@st.composite
def document(draw: st.DrawFn, sound: Any) -> Any:
    """A JSON document with one to three of its parts replaced, removed or repeated."""
    changed = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        place, depth = changed, draw(st.integers(0, 5))
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys))
            if depth > 0 and isinstance(place[key], dict | list) and place[key]:
                place, depth = place[key], depth - 1
                continue
            how = draw(st.sampled_from(["replaced", "removed", "repeated"]))
            if how == "removed":
                del place[key]
            elif how == "repeated" and isinstance(place, list):
                place.insert(0, copy.deepcopy(place[key]))
            else:
                place[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
            break
    return changed
