"""The form: what raters are asked about every response, from a small TOML file.

    title = "How good are these replies?"
    instructions = "Read the conversation, then rate the reply."
    repeat = 0.1                 # share of rows that come twice; 0 to 0.3
    comment = true               # whether there is room for one
    reference = false            # whether the reference is shown
    compare = false              # true: two replies to one context side by side, which is better?

    [[quality]]
    name = "overall"             # the key of its scores
    question = "How good is the reply?"
    low = 1                      # a scale of whole numbers, at most ten
    high = 5
    labels = ["very bad", "very good"]    # of the ends, or one for each number

    [[quality]]
    name = "polite"
    question = "Is it polite?"
    kind = "yes-no"              # scores 1 and 0

Every entry may be left out; without a file there is one quality, `overall`, from 1 to 5. With `compare` a quality is
answered by a side or by no difference, and scored 1 (the first response of the pair), 0 or -1.

msgspec is imported with this module.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field

from dialeval.analysis.sampling import PAIR
from dialeval.core import gate

if TYPE_CHECKING:
    from dialeval.analysis.sampling import Sample
    from dialeval.data.rows.rating_lines import ScoreCheck

Text = Annotated[str, Meta(max_length=2_000)]
_REMEDY = "docs/people.md explains every entry of a form"
_MOST = 10
"""Numbers of a scale: as many as there are digits to press."""


class Choice(Struct):
    """One of the answers to a question."""

    value: int
    label: str
    keys: list[str]
    """What one may press for it; the first is shown."""


class Quality(Struct, forbid_unknown_fields=True):
    """A question, and what it is called in ratings."""

    name: Annotated[str, Meta(min_length=1, max_length=64)] = "overall"
    question: Text = ""
    kind: Literal["scale", "yes-no"] = "scale"
    low: Annotated[int, Meta(ge=0, le=9)] = 1
    high: Annotated[int, Meta(ge=1, le=10)] = 5
    labels: list[Text] = []

    def __post_init__(self) -> None:
        numbers = self.high - self.low + 1
        if not 2 <= numbers <= _MOST:
            raise ValueError(f"a scale has 2 to {_MOST} numbers, from low to high")
        if len(self.labels) not in (0, 2, 2 if self.kind == "yes-no" else numbers):
            raise ValueError("labels are one for each number, or two for the ends")

    def choices(self, compare: bool) -> list[Choice]:
        """The answers in the order in which they are shown; of a comparison as if its first response were A."""
        if compare:
            sides = (1, "A is better"), (0, "No difference"), (-1, "B is better")
            return [Choice(value, label, [str(at)]) for at, (value, label) in enumerate(sides, 1)]
        if self.kind == "yes-no":
            yes, no = self.labels or ("Yes", "No")
            return [Choice(1, yes, ["y", "1"]), Choice(0, no, ["n", "0"])]
        numbers = range(self.low, self.high + 1)
        labels = self.labels if len(self.labels) == len(numbers) else [""] * len(numbers)
        if len(self.labels) == 2:
            labels = [self.labels[0], *[""] * (len(numbers) - 2), self.labels[1]]
        return [Choice(number, label, [str(number % 10)]) for number, label in zip(numbers, labels, strict=True)]


class Form(Struct, forbid_unknown_fields=True):
    """What raters are asked."""

    title: Annotated[str, Meta(min_length=1, max_length=200)] = "Rate the replies"
    instructions: Text = ""
    repeat: Annotated[float, Meta(ge=0, le=0.3)] = 0.1
    comment: bool = True
    reference: bool = False
    compare: bool = False
    quality: Annotated[list[Quality], Meta(min_length=1, max_length=20)] = field(default_factory=lambda: [Quality()])

    def __post_init__(self) -> None:
        if len({quality.name for quality in self.quality}) < len(self.quality):
            raise ValueError("two qualities have the same name")

    def to_page(self) -> dict[str, Any]:
        """Plain data for the script of the page."""
        asked = "Which reply is better?" if self.compare else "How good is the reply?"
        told = "Read the conversation, then " + ("compare the two replies." if self.compare else "rate the reply.")
        return {
            "instructions": self.instructions or told,
            "repeat": self.repeat,
            "comment": self.comment,
            "compare": self.compare,
            "qualities": [
                {
                    "name": each.name,
                    "question": each.question or (asked if each.name == "overall" else each.name),
                    "choices": [
                        {"value": choice.value, "label": choice.label, "keys": choice.keys}
                        for choice in each.choices(self.compare)
                    ],
                }
                for each in self.quality
            ],
        }

    def faults(self, scores: Mapping[str, float]) -> Sequence[str]:
        """What is wrong with the scores of a row; nothing if they answer the form."""
        wrong = [f"{name!r:.70} is no quality of the form" for name in scores.keys() - {q.name for q in self.quality}]
        for each in self.quality:
            if each.name not in scores:
                wrong.append(f"{each.name} has no answer")
            elif scores[each.name] not in {choice.value for choice in each.choices(self.compare)}:
                wrong.append(f"{each.name} is {scores[each.name]:g}, which is none of its answers")
        return wrong


def score_check(form: Form | None, sample: Sample | None) -> ScoreCheck:
    """Return a check of the scores of a row or pair; without a form, for the built-in one."""
    if form is not None:
        return lambda _, scores: form.faults(scores)
    single, compared = Form(), Form(compare=True)
    pairs = None if sample is None else sample.pairs()

    def check(identity: str, scores: Mapping[str, float]) -> Sequence[str]:
        if pairs is not None:
            return (compared if identity in pairs else single).faults(scores)
        return single.faults(scores) if PAIR not in identity or compared.faults(scores) else ()

    return check


def read_form(path: str | os.PathLike[str] | None) -> Form:
    """The form in a TOML file; the built-in one where there is none."""
    if path is None:
        return Form()
    where = os.fspath(path)
    return gate.fitting(gate.parse_toml(gate.read_bytes(where, _REMEDY), where, _REMEDY), Form, where, _REMEDY)
