"""The form: what raters are asked about every response, and which answers fit, from a small TOML file.

    title = "How good are these replies?"
    instructions = "Read the conversation, then rate the reply."
    repeat = 0.1                 # fraction of rows that come twice; 0 to 0.3
    comment = true               # whether there is room for one
    reference = false            # whether the reference is shown
    compare = false              # true: two replies to one context side by side, which is better?
    both_bad = false             # with compare: whether "both are bad" is an answer; it counts as no difference
    uncertain = false               # whether a question may be answered with "uncertain", which gives no score
    advance = false              # whether the page goes on by itself after the last answer
    unit = "reply"               # "conversation": the questions are about all turns up to and with the reply
    mark = ""                    # such as "Mark the turns that are wrong": turns can be marked, by their numbers
    pass_mark = 0.7              # fraction of right answers to gold questions; ratings of raters below are left out

    [[quality]]
    name = "overall"             # the key of its scores
    question = "How good is the reply?"
    low = 1                      # a scale of whole numbers, at most ten
    high = 5
    labels = ["very bad", "very good"]    # of the ends, or one for each number
    rubric = []                  # what each number stands for, a text for each

    [[quality]]
    name = "polite"
    question = "Is it polite?"
    kind = "yes-no"              # scores 1 and 0

    [[gold]]                     # a question whose right answer is known; every rater gets it among the rows
    context = ["When do you open?"]
    response = "Fish fish fish."           # with compare: two responses
    scores = { overall = [1, 2] }          # the right answer, or several of them

Every entry may be left out; without a file there is one quality, `overall`, from 1 (bad) to 5 (excellent). With
`compare` a quality is answered by a side or by no difference, and scored 1 (the first response of the pair), 0 or -1.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b32encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from dialeval.core import validation
from dialeval.core.validation import JsonObject
from dialeval.human.sample_files import PAIR, Sample

if TYPE_CHECKING:
    from dialeval.io.ratings import ScoreCheck


Text = Annotated[str, Meta(max_length=2_000)]
_REMEDY = "docs/rating.md explains every entry of a form"
_FIVE = ["bad", "poor", "fair", "good", "excellent"]
"""Labels of a scale from 1 to 5 that has none of its own: those of mean opinion scores (ITU-T P.800)."""
_MOST = 10
"""Numbers of a scale: as many as there are digits to press."""


class Answer(Struct, omit_defaults=True):
    """One of the answers to a question."""

    value: int | None
    """The score; None: uncertain."""
    label: str
    keys: list[str]
    """What one may press for it; the first is shown."""
    minor: bool = False
    """Whether it is shown below the others."""
    both_bad: bool = False


class Quality(Struct, forbid_unknown_fields=True):
    """A question, and what it is called in ratings."""

    name: Annotated[str, Meta(min_length=1, max_length=64)] = "overall"
    question: Text = ""
    kind: Literal["scale", "yes-no"] = "scale"
    low: Annotated[int, Meta(ge=0, le=9)] = 1
    high: Annotated[int, Meta(ge=1, le=10)] = 5
    labels: list[Text] = []
    rubric: list[Text] = []
    """What each number stands for."""

    def __post_init__(self) -> None:
        numbers = 2 if self.kind == "yes-no" else self.high - self.low + 1
        if not 2 <= numbers <= _MOST:
            raise ValueError(f"a scale has 2 to {_MOST} numbers, from low to high")
        if len(self.labels) not in (0, 2, numbers):
            raise ValueError("labels are one for each number, or two for the ends")
        if len(self.rubric) not in (0, numbers):
            raise ValueError(f"the rubric has {len(self.rubric)} texts for {numbers} answers; give one for each")

    def list_scale(self) -> list[Answer]:
        """Return the answers to a question about one response, in the order in which they are shown."""
        if self.kind == "yes-no":
            yes, no = self.labels or ("Yes", "No")
            return [Answer(1, yes, ["y", "1"]), Answer(0, no, ["n", "0"])]
        numbers = range(self.low, self.high + 1)
        labels = self.labels or (_FIVE if (self.low, self.high) == (1, 5) else ["", ""])
        if len(labels) < len(numbers):
            labels = [labels[0], *[""] * (len(numbers) - 2), labels[1]]
        return [Answer(number, label, [str(number % 10)]) for number, label in zip(numbers, labels, strict=True)]


class Gold(Struct, forbid_unknown_fields=True):
    """A row or pair whose right answers are known."""

    response: Text | Annotated[list[Text], Meta(min_length=2, max_length=2)]
    scores: Annotated[dict[str, int | list[int]], Meta(min_length=1)]
    context: list[Text] = []

    @property
    def responses(self) -> list[str]:
        """The response, or the two to compare."""
        return [self.response] if isinstance(self.response, str) else self.response

    @property
    def id(self) -> str:
        """An id that looks like those of the other rows."""
        digest = b32encode(hashlib.sha256(msgspec.json.encode(self)).digest()).decode().lower()
        return PAIR.join(digest[8 * at : 8 * at + 8] for at in range(len(self.responses)))

    def is_right(self, scores: Mapping[str, float]) -> bool:
        """Return whether all of its questions have a right answer."""
        right = {name: value if isinstance(value, list) else [value] for name, value in self.scores.items()}
        return all(scores.get(name) in values for name, values in right.items())


class Form(Struct, forbid_unknown_fields=True):
    """What raters are asked."""

    title: Annotated[str, Meta(min_length=1, max_length=200)] = "Rate the replies"
    instructions: Text = ""
    repeat: Annotated[float, Meta(ge=0, le=0.3)] = 0.1
    comment: bool = True
    reference: bool = False
    compare: bool = False
    both_bad: bool = False
    uncertain: bool = False
    advance: bool = False
    unit: Literal["reply", "conversation"] = "reply"
    mark: Text = ""
    pass_mark: Annotated[float, Meta(ge=0, le=1)] = 0.7
    quality: Annotated[list[Quality], Meta(min_length=1, max_length=20)] = field(default_factory=lambda: [Quality()])
    gold: list[Gold] = []

    def __post_init__(self) -> None:
        if len({quality.name for quality in self.quality}) < len(self.quality):
            raise ValueError("two qualities have the same name")
        if self.both_bad and not self.compare:
            raise ValueError("both_bad is an answer to compare = true only")
        if self.compare and any(quality.rubric for quality in self.quality):
            raise ValueError("a rubric explains the numbers of a scale, which compare = true does not ask for")
        answers = {quality.name: {choice.value for choice in self.list_choices(quality)} for quality in self.quality}
        for gold in self.gold:
            if len(gold.responses) != 1 + self.compare:
                raise ValueError("a gold question has one response, or two where the form compares")
            for name, value in gold.scores.items():
                if name not in answers or not answers[name].issuperset(value if isinstance(value, list) else [value]):
                    raise ValueError(f"the gold answer {name} = {value} is none of the answers to a question")

    def list_choices(self, quality: Quality) -> list[Answer]:
        """Return the answers to a question; of a comparison as if its first response were A."""
        uncertain = [Answer(None, "Uncertain", ["s"], minor=True)] if self.uncertain else []
        if not self.compare:
            return quality.list_scale() + uncertain
        sides = (1, "A is better", "ArrowLeft"), (0, "No difference", "ArrowDown"), (-1, "B is better", "ArrowRight")
        bad = [Answer(0, "Both are bad", ["b"], minor=True, both_bad=True)] if self.both_bad else []
        choices = [Answer(value, label, [key, str(at)]) for at, (value, label, key) in enumerate(sides, 1)]
        return choices + bad + uncertain

    def to_page(self) -> JsonObject:
        """Return plain data for the script of the page."""
        whole = self.unit == "conversation"
        question = f"Which {self.unit} is better?" if self.compare else f"How good is the {self.unit}?"
        then = f"compare the two {'endings' if whole else 'replies'}" if self.compare else "rate the reply"
        default = "Read the conversation, then " + ("rate it as a whole." if whole and not self.compare else f"{then}.")
        return {
            **{
                name: getattr(self, name)
                for name in ("title", "unit", "mark", "repeat", "comment", "compare", "advance")
            },
            "instructions": self.instructions or default,
            "qualities": [
                {
                    "name": quality.name,
                    "question": quality.question or (question if quality.name == "overall" else quality.name),
                    "choices": msgspec.to_builtins(self.list_choices(quality)),
                    "rubric": quality.rubric,
                }
                for quality in self.quality
            ],
        }

    def find_problems(self, scores: Mapping[str, float | None]) -> Sequence[str]:
        """Return the problems of the scores of a row; none if they answer the form."""
        wrong = [
            f"{name!r:.70} is not a quality of the form" for name in scores.keys() - {q.name for q in self.quality}
        ]
        for quality in self.quality:
            if quality.name not in scores:
                wrong.append(f"{quality.name} has no answer")
            elif scores[quality.name] not in {choice.value for choice in self.list_choices(quality)}:
                shown = "uncertain" if (score := scores[quality.name]) is None else f"{score:g}"
                wrong.append(f"{quality.name} is {shown}, which is none of its answers")
        return wrong


def make_score_check(form: Form | None, sample: Sample | None) -> ScoreCheck:
    """Return a check of the scores of a row or pair; without a form, for the built-in one."""
    if form is not None:
        return lambda _, scores: form.find_problems(scores)
    single, compared = Form(), Form(compare=True)
    pairs = None if sample is None else sample.pairs()

    def check(identity: str, scores: Mapping[str, float | None]) -> Sequence[str]:
        if pairs is not None:
            return (compared if identity in pairs else single).find_problems(scores)
        return single.find_problems(scores) if PAIR not in identity or compared.find_problems(scores) else ()

    return check


def read_form(path: str | os.PathLike[str] | None, sample: Sample | None = None) -> Form:
    """Read the form in a TOML file; without a file, return the built-in one. A sample of dialogues sets the unit."""
    form = Form()
    if path is not None:
        where = os.fspath(path)
        document = validation.parse_toml(validation.read_bytes(where, _REMEDY), where, _REMEDY)
        form = validation.convert(document, Form, where, _REMEDY)
    whole = sample is not None and sample.design.level == "dialogue"
    return msgspec.structs.replace(form, unit="conversation") if whole else form
