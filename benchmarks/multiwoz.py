"""Task dialogues: BLEU, Inform, Success and richness of a whole test split, against a plain twin.

Uses the 1,000 dialogues of MultiWOZ where the shared data lies beside the checkout, else the shipped town. The plain
twin is what one writes first: sacremoses for every response, sacreBLEU's corpus_bleu, and for every offer a scan of all
venues with the partial ratio of every name. Its figures must be equal. Both sides start with a parsed document and the
loaded data. The original program, measured elsewhere, takes 11 to 14 CPU seconds.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import sacrebleu
from sacremoses import MosesDetokenizer, MosesTokenizer

from benchmarks.measure import command, cpu_seconds
from benchmarks.startup import MAIN, shown
from dialeval import sample_data
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import TaskData, load_task
from dialeval.suites.multiwoz.richness import split_words
from dialeval.suites.multiwoz.turns import PLACEHOLDER, estimate_domains
from dialeval.text.similarity import partial_ratio

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "multiwoz"


TIMES = {
    "afternoon": "13:00",
    **dict.fromkeys(["lunch", "noon", "mid-day", "around lunch time"], "12:00"),
    "morning": "08:00",
    "seven o'clock tomorrow evening": "07:00",
    "three forty five p.m": "15:45",
    "one thirty p.m.": "13:30",
    "six fourty five": "06:45",
    "eight thirty": "08:30",
}


def plain_time(value: str) -> str:
    """Normalize a time of day, rule after rule as the original lists them; raises ValueError where it does."""
    value = value.strip().lower()
    if value in TIMES:
        return TIMES[value]
    if value.startswith("one o'clock p.m"):
        return "13:00"
    if value.startswith("ten o'clock a.m"):
        return "10:00"
    value = _without_words(value)
    if value.endswith(("pm", "p.m.")):
        value = value[: -2 if value.endswith("pm") else -4].strip()
        value = value[:-4].strip() if value.endswith("p.m.") else value
        parts = value.split(":")
        if len(parts) == 2:
            return f"{int(parts[0]) + 12}:{parts[1]}"
        if len(parts) == 1 and value.isdigit():
            return f"{int(value) + 12}:00"
    return _plain_digits(value)


def _without_words(value: str) -> str:
    if value.startswith("by"):
        value = value[3:]
    if value.startswith("after"):
        value = value[5:].strip()
    if value.startswith("afer"):
        value = value[4:].strip()
    if value.endswith("am"):
        value = value[:-2].strip()
    if value.endswith("a.m."):
        value = value[:-4].strip()
    return value


def _plain_digits(value: str) -> str:
    if value == "":
        return "00:00"
    if value[-1] in (".", ",", "?"):
        value = value[:-1]
    if value.isdigit():
        return f"{value[:2]}:{value[2:]}" if len(value) == 4 else f"{value.rjust(2, '0')}:00"
    if ":" in value:
        value = "".join(value.split(" "))
    return "0" + value if len(value) == 4 and value[1] == ":" else value


def plain_minutes(value: str) -> int:
    """Return the minutes of a time, as the original counts them; raises ValueError where it does."""
    if not re.match("[0-9][0-9]:[0-9][0-9]", value):
        return 0
    hours, minutes, *_ = value.split(":")
    return int(hours) * 60 + int(minutes)


def plain_ratio(one: str, other: str) -> int:
    """Return the partial ratio; two empty texts are equal, and one is like no other."""
    if one == "" or other == "":
        return 100 if one == other else 0
    return partial_ratio(one, other)


class Plain:
    """The evaluation response by response, turn by turn and venue by venue."""

    def __init__(self, task: TaskData) -> None:
        self.task, self.ontology = task, task.ontology
        self.split, self.join = MosesTokenizer("en"), MosesDetokenizer("en")

    def evaluate(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """BLEU, Inform, Success and richness."""
        normal = {
            dialogue: [{**turn, "response": self.normalized(turn["response"])} for turn in turns]
            for dialogue, turns in predictions.items()
        }
        inform, success = self.rates(normal)
        return {"bleu": self.bleu(normal), "inform": inform, "success": success, **self.richness(normal)}

    def normalized(self, response: str) -> str:
        text = PLACEHOLDER.sub(lambda match: self.ontology.words.get(match[1], ""), response.lower())
        tokens = self.split.tokenize(text.replace("-s", "").replace("-ly", ""))
        return str(self.join.detokenize(tokens))

    def bleu(self, normal: dict[str, Any]) -> float:
        assert self.task.files.references is not None
        texts = next(iter(self.task.files.references.sets.values()))
        responses = [turn["response"] for turns in normal.values() for turn in turns]
        references = [texts[name][at] for name, turns in normal.items() for at in range(len(turns))]
        return float(sacrebleu.corpus_bleu(responses, [references]).score)

    def richness(self, normal: dict[str, Any]) -> dict[str, float]:
        responses = [split_words(turn["response"]) for turns in normal.values() for turn in turns]
        flat = [word for words in responses for word in words]
        ones, total = Counter(flat), len(flat)
        twos = Counter(pair for words in responses for pair in pairwise(words))
        threes = {three for words in responses for three in zip(words, words[1:], words[2:], strict=False)}
        parts = [flat[at : at + 50] for at in range(0, total - 49, 50)]
        return {
            "entropy": -sum(n / total * math.log2(n / total) for n in ones.values()),
            "cond-entropy": -sum(n / total * math.log2(n / ones[pair[0]]) for pair, n in twos.items()),
            "avg-lengths": total / len(responses),
            "msttr": sum(len(set(part)) / 50 for part in parts) / len(parts),
            "num-trigrams": len(threes),
        }

    def rates(self, normal: dict[str, Any]) -> tuple[float, float]:
        own = all("state" in turn for turns in normal.values() for turn in turns)
        named = all("active_domains" in turn for turns in normal.values() for turn in turns)
        matched = successful = 0
        for name, turns in normal.items():
            assert self.task.files.states is not None
            true = self.task.files.states.states[name]
            states = [self.state(turn["state"] if own else true[at]) for at, turn in enumerate(turns)]
            domains = [turn["active_domains"] for turn in turns] if named else list(estimate_domains(states))
            inform, complete = self.dialogue(name, turns, states, domains)
            matched += inform
            successful += inform and complete
        return 100 * matched / len(normal), 100 * successful / len(normal)

    def state(self, state: Any) -> dict[str, dict[str, str]]:
        return {domain: self.slots(slots) for domain, slots in state.items()}

    def slots(self, slots: Any) -> dict[str, str]:
        bare = {slot: slot.lower().replace(" ", "") for slot in slots}
        names = {slot: self.ontology.slots.get(name, name) for slot, name in bare.items()}
        return {names[slot]: self.value(names[slot], value) for slot, value in slots.items()}

    def value(self, slot: str, value: str) -> str:
        spelling = self.ontology.spellings.get(slot)
        is_time = spelling is not None and spelling.rule == "time"
        return plain_time(value) if is_time else self.ontology.states.value(slot, value)

    def dialogue(self, name: str, turns: list[Any], states: list[Any], domains: list[Any]) -> tuple[bool, bool]:
        goal = self.task.files.goals.goals[name]
        offers: dict[str, set[str]] = {domain: set() for domain in goal}
        told: dict[str, set[str]] = {domain: set() for domain in goal}
        for at, turn in enumerate(turns):
            for domain in goal:
                if domain not in domains[at]:
                    continue
                about = self.ontology.domains[domain]
                if about.table and about.offer in turn["response"]:
                    slots = states[at].get(domain)
                    found = set() if slots is None else self.query(domain, slots)
                    if not offers[domain] or offers[domain] - found:
                        offers[domain] = found
                for word in self.ontology.requested:
                    booked = word not in self.ontology.when_booked or self.task.files.goals.is_booked(name, at, domain)
                    if word in turn["response"] and booked:
                        told[domain].add(word)
        inform = all(self.matches(domain, wishes, offers[domain]) for domain, wishes in goal.items())
        return inform, all(told[domain].issuperset(wishes["requestable"]) for domain, wishes in goal.items())

    def matches(self, domain: str, wishes: Any, offer: set[str]) -> bool:
        about = self.ontology.domains[domain]
        if not about.table or self.ontology.named_by in wishes["informable"]:
            return True
        if about.optional and not offer and about.offer not in wishes["requestable"]:
            return True
        return bool(offer) and offer <= self.query(domain, self.slots(wishes["informable"]))

    def query(self, domain: str, slots: Any) -> set[str]:
        about, table = self.ontology.domains[domain], self.task.venues[domain]
        columns = set(table.columns)
        asked = {
            slot: self.value(slot, value)
            for slot, value in slots.items()
            if slot in columns and value not in self.ontology.dont_care
        }
        return {venue[about.key] for venue in table.venues if self.meets(venue, asked, about)}

    def meets(self, venue: Any, asked: dict[str, str], about: Any) -> bool:
        for slot, value in asked.items():
            has = venue.get(slot, "")
            if has == self.ontology.any_value:
                continue
            if slot in about.at_most or slot in about.at_least:
                rank = plain_minutes if ":" in has else float
                here, limit = rank(has), rank(value)
                good = here <= limit if slot in about.at_most else here >= limit
            elif slot in about.fuzzy:
                good = plain_ratio(has, value) >= self.ontology.fuzzy_ratio
            else:
                good = has == value
            if not good:
                return False
        return True


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    there = SHARED.is_dir()
    data = SHARED if there else sample_data.folder() / "town"
    files = sorted((data / "predictions").iterdir())
    path = next(file for file in files if file.name.startswith("ubar" if there else "patient"))
    content = path.read_bytes()
    predictions = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    twin = Plain(load_task(data))
    expected = twin.evaluate(predictions)
    run = Evaluator(data=data).run({"system": predictions})["system"]
    for key, value in expected.items():
        mean = next(run[name].mean for name in run if name == key or (key == "bleu" and name.startswith("bleu/")))
        assert abs(mean - value) < 1e-6, (key, mean, value)

    what = f"{len(predictions):,} dialogues, {sum(map(len, predictions.values())):,} turns"
    slow = cpu_seconds(lambda: Plain(twin.task).evaluate(predictions), 1)
    yield f"BLEU, Inform, Success, richness of {what}, plain twin", f"{slow:.1f} CPU s"
    tasks = [load_task(data) for _ in range(3)]

    def afresh() -> None:  # nothing is remembered from one repeat to the next
        Evaluator(data=tasks.pop()).evaluate(predictions)

    fast = cpu_seconds(afresh)
    yield "the same, dialeval", f"{fast:.2f} CPU s, {slow / fast:.0f} times faster"
    flags = ["--data", str(data), "-f", "json"]
    yield "the whole warm command, one system", shown(command(["-c", MAIN, "multiwoz", "-i", str(path), *flags]))
    every = command(["-c", MAIN, "multiwoz", "-i", str(data / "predictions"), *flags], 3)
    yield f"the whole warm command, {len(files)} systems", shown(every)
