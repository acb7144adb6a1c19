"""The rating page: one HTML file without a network, or what the server (`server`) sends to a rater.

It is blind: of a row it holds the id, the context with its roles and the response (with the form's `reference` also the
references), and nothing that reveals the system. Order and sides are drawn in the page, by the rater's name and a
digest of sample and form, so that they differ between raters and stay the same when the page is opened again. Ratings
are lines `{"id": ..., "rater": ..., "scores": {"overall": 4}, "seconds": 12.3}`, with `comment` where there is one and
`again` where the row came for the second time.

Two responses to compare have the id `FIRST-SECOND` of the two rows; 1 means that FIRST is better, -1 that SECOND is.

The form: what raters are asked about every response, from a small TOML file.

    title = "How good are these replies?"
    instructions = "Read the conversation, then rate the reply."
    repeat = 0.1                 # fraction of rows that come twice; 0 to 0.3
    comment = true               # whether there is room for one
    reference = false            # whether the reference is shown
    compare = false              # true: two replies to one context side by side, which is better?
    unit = "reply"               # "conversation": the questions are about all turns up to and with the reply
    mark = ""                    # such as "Mark the turns that are wrong": turns can be marked, by their numbers

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

Every entry may be left out; without a file there is one quality, `overall`, from 1 (bad) to 5 (excellent). With
`compare` a quality is answered by a side or by no difference, and scored 1 (the first response of the pair), 0 or -1.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from dialeval.core import validation
from dialeval.core.errors import SettingError
from dialeval.human.sample_files import PAIR, Sample, SampledRow
from dialeval.reports import markup
from dialeval.reports.html import make_heading, make_html, make_script, read_assets

if TYPE_CHECKING:
    from dialeval.io.ratings import ScoreCheck


SCRIPTS = ("text.js", "rate-order.js", "rate-store.js", "rate-files.js", "rate.js")
_FROM_SERVER = "; connect-src 'self'"
Thing: TypeAlias = dict[str, Any]
"""What a rater sees of a row or pair: `id`, `context`, `responses` and, where there are some, `roles`, `references`."""
Text = Annotated[str, Meta(max_length=2_000)]
_REMEDY = "docs/rating.md explains every entry of a form"
_FIVE = ("bad", "poor", "fair", "good", "excellent")
"""Labels of a scale from 1 to 5 that has none of its own: those of mean opinion scores (ITU-T P.800)."""
_MOST = 10
"""Numbers of a scale: as many as there are digits to press."""


class Answer(Struct):
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

    def list_choices(self, compare: bool) -> list[Answer]:
        """Return the answers in the order in which they are shown; of a comparison as if its first response were A."""
        if compare:
            sides = (1, "A is better"), (0, "No difference"), (-1, "B is better")
            return [Answer(value, label, [str(at)]) for at, (value, label) in enumerate(sides, 1)]
        if self.kind == "yes-no":
            yes, no = self.labels or ("Yes", "No")
            return [Answer(1, yes, ["y", "1"]), Answer(0, no, ["n", "0"])]
        numbers = range(self.low, self.high + 1)
        labels = self.labels or [""] * len(numbers)
        if not self.labels and (self.low, self.high) == (1, len(_FIVE)):
            labels = list(_FIVE)
        if len(labels) == 2:
            labels = [labels[0], *[""] * (len(numbers) - 2), labels[1]]
        return [Answer(number, label, [str(number % 10)]) for number, label in zip(numbers, labels, strict=True)]


class Form(Struct, forbid_unknown_fields=True):
    """What raters are asked."""

    title: Annotated[str, Meta(min_length=1, max_length=200)] = "Rate the replies"
    instructions: Text = ""
    repeat: Annotated[float, Meta(ge=0, le=0.3)] = 0.1
    comment: bool = True
    reference: bool = False
    compare: bool = False
    unit: Literal["reply", "conversation"] = "reply"
    mark: Text = ""
    quality: Annotated[list[Quality], Meta(min_length=1, max_length=20)] = field(default_factory=lambda: [Quality()])

    def __post_init__(self) -> None:
        if len({quality.name for quality in self.quality}) < len(self.quality):
            raise ValueError("two qualities have the same name")

    def to_page(self) -> dict[str, Any]:
        """Return plain data for the script of the page."""
        whole = self.unit == "conversation"
        question = f"Which {self.unit} is better?" if self.compare else f"How good is the {self.unit}?"
        then = f"compare the two {'endings' if whole else 'replies'}" if self.compare else "rate the reply"
        default = "Read the conversation, then " + ("rate it as a whole." if whole and not self.compare else f"{then}.")
        return {
            "instructions": self.instructions or default,
            "unit": self.unit,
            "mark": self.mark,
            "repeat": self.repeat,
            "comment": self.comment,
            "compare": self.compare,
            "qualities": [
                {
                    "name": quality.name,
                    "question": quality.question or (question if quality.name == "overall" else quality.name),
                    "choices": msgspec.to_builtins(quality.list_choices(self.compare)),
                }
                for quality in self.quality
            ],
        }

    def find_problems(self, scores: Mapping[str, float]) -> Sequence[str]:
        """Return the problems of the scores of a row; none if they answer the form."""
        wrong = [
            f"{name!r:.70} is not a quality of the form" for name in scores.keys() - {q.name for q in self.quality}
        ]
        for quality in self.quality:
            if quality.name not in scores:
                wrong.append(f"{quality.name} has no answer")
            elif scores[quality.name] not in {choice.value for choice in quality.list_choices(self.compare)}:
                wrong.append(f"{quality.name} is {scores[quality.name]:g}, which is none of its answers")
        return wrong


def make_score_check(form: Form | None, sample: Sample | None) -> ScoreCheck:
    """Return a check of the scores of a row or pair; without a form, for the built-in one."""
    if form is not None:
        return lambda _, scores: form.find_problems(scores)
    single, compared = Form(), Form(compare=True)
    pairs = None if sample is None else sample.pairs()

    def check(identity: str, scores: Mapping[str, float]) -> Sequence[str]:
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


def collect_things(sample: Sample, form: Form) -> list[Thing]:
    """Return what raters see, as plain data: single responses, or pairs of them."""
    if not form.compare:
        rows = _select_last_turns(sample.rows) if form.unit == "conversation" else sample.rows
        return [_build_thing(row.id, form, row) for row in rows]
    if sample.design.level == "dialogue":
        raise SettingError("a page compares two replies to one context; conversations are rated one by one")
    pairs = sample.pairs()
    if not pairs:
        remedy = "sample without --independent to compare systems"
        raise SettingError(f"no context was answered by two of the sampled rows; {remedy}")
    return [_build_thing(identity, form, *pair) for identity, pair in pairs.items()]


def _select_last_turns(rows: Sequence[SampledRow]) -> list[SampledRow]:
    """Return the last row of each conversation of a system, which holds all turns before it; others are left out."""
    last: dict[tuple[str, str], SampledRow] = {}
    for row in rows:
        key = (row.system, row.id if row.dialog_id is None else row.dialog_id)
        if key not in last or len(row.context) > len(last[key].context):
            last[key] = row
    return list(last.values())


def _build_thing(identity: str, form: Form, *rows: SampledRow) -> Thing:
    thing: Thing = {"id": identity, "context": rows[0].context, "responses": [row.response for row in rows]}
    if rows[0].roles:
        thing["roles"] = rows[0].roles
    return {**thing, "references": rows[0].reference} if form.reference else thing


def digest_form(sample: Sample, form: Form) -> str:
    """Return a digest of sample and form, which identifies their ratings."""
    parts = (str(sample.design.seed).encode(), sample.design.rows.sha256.encode(), msgspec.json.encode(form))
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


def make_rating_page(sample: Sample, form: Form, only: Sequence[str] | None = None) -> str:
    """Return the page for any number of raters; ratings stay in the browser. `only`: the ids to rate, once each."""
    things = collect_things(sample, form)
    digest = digest_form(sample, form)
    if only is not None:
        things = [thing for thing in things if thing["id"] in set(only)]
        digest = hashlib.sha256("\n".join([digest, *only]).encode()).hexdigest()[:16]
        form = msgspec.structs.replace(form, repeat=0.0)
    return _make_page(form, {"things": things, "digest": digest, "rater": None, "lines": [], "server": False})


def make_served_page(
    form: Form, digest: str, things: Sequence[Thing], rater: str, lines: Sequence[Mapping[str, object]]
) -> str:
    """Return the page for one rater, whose ratings are sent to the server."""
    data = {"things": things, "digest": digest, "rater": rater, "lines": lines, "server": True}
    return _make_page(form, data, _FROM_SERVER)


def _make_page(form: Form, data: Mapping[str, object], more_policy: str = "") -> str:
    body = (
        f"{make_heading(form.title, '')}"
        '<main id="main" tabindex="-1"><noscript><p class="notice">This page needs JavaScript.</p></noscript></main>\n'
        f"{markup.embed_json('rate-data', {**data, 'form': form.to_page()})}"
    )
    style = read_assets("report.css", "rate.css")
    return make_html(form.title, body, style, [make_script("page.js"), make_script(*SCRIPTS)], more_policy)
