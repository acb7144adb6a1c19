"""Lexicalized replies: values in texts become placeholders, so that replies of real systems can be scored.

    "Acorn Guest House is at 154 Chesterton Road."  ->  "[hotel_name] is at [hotel_address]."

A value is found in three ways, and the longest at a place wins:

- `database`: a value of a column whose slot has a word (`[words]` of the ontology), whatever its case, spaces and
  punctuation; a venue also by its name without `the` before it, or without its type behind it ("Acorn");
- `state`: a value of the system's own state in that turn, or of the true one where the system gives none;
- `pattern`: what no table lists, such as references and times of day (`[patterns]` of the ontology).

Values that are also ordinary words are left alone: yes, no, numbers of fewer than five digits outside of a pattern,
columns in which all venues have one value, and what is inside of phrases that the ontology lists (`ordinary`): "the
hotel" has no type, but "the Hotel du Vin" has a name. Of several slots that fit, one of a domain that the text names is
taken, else one of the tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from msgspec import Struct, structs

from dialeval.core.columns import ObjectColumn
from dialeval.core.display import Tabular
from dialeval.core.run_schema import Record
from dialeval.reports.documents import Document, Printer, Table
from dialeval.suites.multiwoz import STATES, TASK_TURNS
from dialeval.suites.multiwoz.data import TaskData, TaskPredictions
from dialeval.suites.multiwoz.turns import PLACEHOLDER
from dialeval.suites.multiwoz.venues import State

LONGEST = 12
"""Words of the longest value that is looked for."""
SHORTEST = 4
"""Letters of the shortest value of a state; what is left of a longer name has more."""
EXAMPLES, LEFT = 3, 10
"""Texts that a report shows of each word, and words with a digit that it shows."""
_WORD = re.compile(r"[^\W_]+|&")
_ORDINARY = frozenset({"yes", "no", "free", "none"})


class ValueMatch(NamedTuple):
    """A value that was found in a reply."""

    start: int
    stop: int
    slot: str


class Delexicalizer:
    """A mapping of the values of replies to placeholders, by the data of a task."""

    def __init__(self, task: TaskData) -> None:
        self._ontology = task.ontology
        self._values: dict[str, dict[str, str]] = {}
        """What is left of a value -> domain -> slot of a placeholder."""
        for name, table in task.venues.tables.items():
            domain, slots = table.domain, {column: self._find_slot(name, column) for column in table.columns}
            for column in table.columns:
                is_key = column == domain.key != domain.label
                is_constant = len({venue.get(column) for venue in table.venues}) == 1
                if is_key or is_constant or column in (*domain.at_most, *domain.at_least):
                    slots[column] = None
            for venue in table.venues:
                for column, value in venue.items():
                    if (slot := slots[column]) is not None:
                        for spelling in self._list_spellings(value, venue, name, column == domain.label):
                            self._values.setdefault(spelling, {}).setdefault(name, slot)

    def _find_slot(self, domain: str, slot: str) -> str | None:
        return next((name for name in (f"{domain}_{slot}", slot) if name in self._ontology.words), None)

    def _list_spellings(self, value: str, venue: Mapping[str, str], domain: str, is_name: bool) -> Iterator[str]:
        """Yield how a value of a table may be written."""
        key = squash(value)
        kind = squash(venue.get("type", ""))
        if not self._is_distinctive(key) or value == self._ontology.any_value:
            return
        yield key
        if is_name:
            bare = key.removeprefix("the")
            for short in (bare, *(bare.removesuffix(end) for end in (kind, domain) if end)):
                if len(short) > SHORTEST and self._is_distinctive(short):
                    yield short
        else:
            yield f"{key}s"
            yield f"{key}ly"

    def _is_distinctive(self, key: str) -> bool:
        """Return whether letters and digits stand for a value wherever they are."""
        return bool(key) and key not in _ORDINARY and not (key.isdigit() and len(key) < 5)

    def __call__(self, text: str, state: State) -> tuple[str, list[ValueMatch]]:
        """Return a reply with placeholders, and what they stand for."""
        matches = list(self._find_matches(text, state))
        for match in reversed(matches):
            text = f"{text[: match.start]}[{match.slot}]{text[match.stop :]}"
        return text, matches

    def _find_matches(self, text: str, state: State) -> Iterator[ValueMatch]:
        text = PLACEHOLDER.sub(lambda match: " " * len(match[0]), text)
        words = list(_WORD.finditer(text))
        keys = [squash(word[0]) for word in words]
        in_state = self._index_state(state)
        patterns = [
            ValueMatch(starting.start(), starting.end(), slot)
            for slot, pattern in self._ontology.patterns.items()
            for starting in pattern.finditer(text)
        ]
        ordinary = [starting.span() for pattern in self._ontology.ordinary for starting in pattern.finditer(text)]
        end = 0
        for at, word in enumerate(words):
            if word.start() < end:
                continue
            starting = [match for match in patterns if match.start == word.start()]
            starting += self._find_value(at, words, keys, in_state, text)
            if starting:
                best = max(starting, key=lambda match: match.stop)  # the first of equally long ones
                end = best.stop
                if not any(start <= best.start and end <= stop for start, stop in ordinary):
                    yield best

    def _index_state(self, state: State) -> dict[str, dict[str, str]]:
        in_state: dict[str, dict[str, str]] = {}
        for domain, slots in state.items():
            for name, value in slots.items():
                slot, key = self._find_slot(domain, name), squash(value)
                if slot is not None and len(key) >= SHORTEST and self._is_distinctive(key) and key != domain:
                    in_state.setdefault(key, {}).setdefault(domain, slot)
        return in_state

    def _find_value(
        self, at: int, words: list[re.Match[str]], keys: list[str], in_state: Mapping[str, Mapping[str, str]], text: str
    ) -> Iterator[ValueMatch]:
        """Yield the longest value of the tables and of the state that begins with a word."""
        key, longest = "", None
        for to in range(at, min(at + LONGEST, len(words))):
            key += keys[to]
            by_domain, mine = self._values.get(key, {}), in_state.get(key, {})
            if by_domain or mine:
                longest = to, by_domain, mine
        if longest is not None:
            to, by_domain, mine = longest
            fitting = [*by_domain.items(), *mine.items()]
            named = [slot for domain, slot in reversed(fitting) if domain in text.lower()]
            slot = named[0] if named else fitting[0][1]
            yield ValueMatch(words[at].start(), words[to].end(), slot)


def squash(value: str) -> str:
    """Return the letters and digits of a value, in lower case and in US spelling."""
    letters = re.sub(r"[\W_]+", "", value.lower().replace("&", "and"))
    return re.sub("cent(?:re|er)", "center", letters)


class MatchedWord(Struct, frozen=True):
    """What became placeholders of one word, in all replies of a system."""

    system: str
    word: str
    values: int
    examples: Sequence[str]
    """The most frequent texts."""


class MatchReport(Tabular, Record, frozen=True):
    """What was matched in the replies of each system, and what looks like a value and was not."""

    words: Sequence[MatchedWord]
    left: Mapping[str, Mapping[str, int]]
    """By system, words with a digit that are no part of a value, the most frequent ones with their numbers."""

    def lines(self) -> list[dict[str, object]]:
        return [{**structs.asdict(word), "examples": " | ".join(word.examples)} for word in self.words]


def delexicalize(system: TaskPredictions, task: TaskData) -> tuple[TaskPredictions, MatchReport]:
    """Return predictions with placeholders for the values of their replies, and what was matched."""
    write, true, name = Delexicalizer(task), task.files.states, system.rows.system
    texts: dict[str, Counter[str]] = {}
    left: Counter[str] = Counter()
    touched = 0
    rows = list(system.turn_rows)
    for at, row in enumerate(rows):
        if (said := row["response"]) is None:
            continue
        state = row["state"]
        if state is None:
            state = {} if true is None else true.states[row["dialogue"]][row["turn"]]
        response, matches = write(said, state)
        rows[at] = {**row, "response": response}
        touched += bool(matches)
        for match in matches:
            texts.setdefault(task.ontology.words[match.slot], Counter())[said[match.start : match.stop]] += 1
        left.update(re.findall(r"[^\s\[\]]*\d[^\s\[\]]*", response))
    ordered = sorted(texts.items(), key=lambda entry: -entry[1].total())
    words = [
        MatchedWord(name, word, counts.total(), [text for text, _ in counts.most_common(EXAMPLES)])
        for word, counts in ordered
    ]
    became = ", ".join(f"{word.word} {word.values:,}" for word in words)
    report = (
        f"{name}: values in {touched:,} of {system.counts.turns:,} replies became placeholders "
        f"({became}); `dialeval multiwoz delexicalize` lists them"
    )
    column = ObjectColumn(rows)
    changed = {need: column for need in (TASK_TURNS, STATES) if need in system.rows.columns}
    new = replace(system.rows, columns={**system.rows.columns, **changed})
    return replace(system, rows=new, report=report), MatchReport(words, {name: dict(left.most_common(LEFT))})


def has_placeholders(system: TaskPredictions, task: TaskData) -> bool:
    """Return whether some reply of a system has a placeholder that the ontology knows."""
    words = task.ontology.words
    responses = (row["response"] or "" for row in system.given)
    return any(slot in words for response in responses for slot in PLACEHOLDER.findall(response.lower()))


def _to_document(report: MatchReport) -> Document:
    rows = [[word.word, word.system, f"{word.values:,}", " | ".join(word.examples)] for word in report.words]
    notes = []
    for system, words in report.left.items():
        left = ", ".join(f"{word} ({count:,})" for word, count in words.items())
        notes.append(f"{system}: words with a digit that were left: {left or 'none'}.")
    return Document([], [Table(["word", "system", "values", "examples"], rows)], notes)


PRINTER: Printer[MatchReport] = Printer(_to_document)
