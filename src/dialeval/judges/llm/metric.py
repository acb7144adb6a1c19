"""llm: grades of responses or whole conversations by a language model, asked by a rubric.

    llm                  the grade of the first question of the rubric, averaged over rows
    llm/NAME             the grade of each further question
    llm-conversation     the same for whole conversations, one grade each

The modes, of which none takes the place of another where it fails:

    expected     sum_g g p(g) / sum_g p(g), the grades g weighted by the probabilities of their tokens; no grade where
                 these have less than half of the probability together (least_mass)
    grade        the grade in the answer, a JSON object by a schema
    vote         the mean of the grades in several answers, sampled at temperature 1. Their spread is the judge's own
                 sampling; the run states which part of the variance it is. Intervals contain both parts.

A rubric is a shipped one (`reply`, `safety` and `support` for replies, `task` and `conversation` for others) or a TOML
file. It decides what the model is shown: the context with the roles of its turns, the reference (for `support`:
the document), the response. Higher grades are better. The requests of a row do not depend on other rows.

Edge cases: a row whose answer is missing, cut off, of another model or not the JSON object asked for has no grade. The
run states how many there are and why, and the answers are kept. A conversation is the context of its last row, and the
response of that row. Replies that failed (none, an empty one, an error) are not graded.

Paper: Liu et al. 2023, "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment", EMNLP (expected grades).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.errors import DialevalError, SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import ANY_NUMBER, Bounds, Estimate, Level, Metric, Partial
from dialeval.core.inputs import Input
from dialeval.core.signature import Signature

if TYPE_CHECKING:
    from dialeval.judges.llm.rubrics import Grades, Rubric


@dataclass(frozen=True)
class GradeState:
    """What merges about the grades of some rows."""

    grades: dict[str, Moments]
    """By result key."""
    mass: Moments = field(default_factory=Moments)
    reasons: dict[str, int] = field(default_factory=dict)
    """How many rows have no grade, by the reason."""
    unwrapped: int = 0
    """Rows with an answer from which reasoning or a code fence was removed."""
    noise: Moments = field(default_factory=Moments)
    """Of the variances of grades that are means of several answers."""


@dataclass(frozen=True)
class LLMGrades(Metric[GradeState]):
    """The grade of a response by a language model, asked by a rubric."""

    rubric: str = "reply"
    mode: Literal["expected", "grade", "vote"] = "expected"
    samples: int = 5
    """Answers per row of the mode `vote`."""
    model: str = ""
    """The judge, of a panel of several."""

    family = "llm"
    implied = {"samples": 5, "model": ""}
    costly = True
    complete = True
    costly_rows = 1024
    better = "higher"
    _of = "reply"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.samples <= 100:
            raise SettingError(f"{self.family} has samples from 1 to 100, not {self.samples}")
        if self.rubric.isalpha() and self.rubric != type(self).rubric:
            _ = self._rubric  # refuses one of another level; the shipped defaults are not read before they are used

    @property
    def _rubric(self) -> Rubric:
        from dialeval.judges.llm.rubrics import read_rubric  # loads msgspec

        rubric = read_rubric(self.rubric)
        if rubric.level != self._of:
            other = {"reply": "llm", "conversation": "llm-conversation"}.get(rubric.level)
            remedy = "is for `dialeval compare --llm-model`" if other is None else f"is for the metric {other}"
            raise SettingError(f"the rubric {self.rubric} asks about a {rubric.level} and {remedy}")
        if self.mode == "expected" and any(question.values[-1] > 9 for question in rubric.question):
            raise SettingError("expected grades have one digit; choose another mode for a scale up to 10")
        return rubric

    @property
    def needs(self) -> frozenset[Input]:  # type: ignore[override]
        return frozenset(
            {inputs.RESPONSE, inputs.LLM, *([inputs.REFERENCE] if "reference" in self._rubric.uses else [])}
        )

    @property
    def wants(self) -> frozenset[Input]:
        return frozenset({inputs.CONTEXT, inputs.ROLES} if "context" in self._rubric.uses else ())

    @property
    def _keys(self) -> dict[str, str]:
        """By question: the key of its result."""
        first, *others = self._rubric.question
        return {first.name: self.name, **{question.name: f"{self.name}/{question.name}" for question in others}}

    def bounds_of(self, key: str) -> Bounds:
        try:
            questions = dict(zip(self._keys.values(), self._rubric.question, strict=True))
        except DialevalError:  # the file of the rubric is not there any more
            return ANY_NUMBER
        first, *_ = questions.values()
        values = questions.get(key, first).values
        return float(values[0]), float(values[-1])

    def signature(self) -> Signature:
        return super().signature().with_fields(rubric_digest=self._rubric.digest)

    def empty(self) -> GradeState:
        return GradeState({key: Moments() for key in self._keys.values()})

    def partial(self, batch: Batch) -> Partial[GradeState]:
        judge, rubric = batch.resource(inputs.LLM).judge(self.model), self._rubric
        of_dialogues = self.level is Level.DIALOGUE
        rows = batch.dialogues[1:] - 1 if of_dialogues else np.arange(len(batch))
        failed = np.maximum.reduceat(~batch.failed, batch.dialogues[:-1]) == 0 if of_dialogues else batch.failed
        asked = np.flatnonzero(~(failed | batch.silent[rows])) if len(rows) else rows
        dialogues = None if of_dialogues else batch.dialogues
        columns = {need: batch.column(need) for need in self.needs | self.wants if need in batch.columns}
        texts = [label_row(rubric, columns, row) for row in rows[asked].tolist()]
        graded: list[Grades] = judge.grade(rubric, texts, self.mode, self.samples)
        scores = {key: np.full(len(rows), np.nan) for key in self._keys.values()}
        for name, key in self._keys.items():
            scores[key][asked] = [grades.values.get(name, np.nan) for grades in graded]
        moments = {key: Moments.of(values, dialogues) for key, values in scores.items()}
        mass = Moments.of(np.array([grades.mass for grades in graded], np.float64))
        noise = Moments.of(np.array([grades.noise for grades in graded], np.float64))
        reasons = Counter(grades.reason for grades in graded if grades.reason is not None)
        unwrapped = sum(grades.unwrapped for grades in graded)
        return Partial(GradeState(moments, mass, dict(reasons), unwrapped, noise), scores)

    def merge(self, left: GradeState, right: GradeState) -> GradeState:
        grades = {key: left.grades[key] + right.grades[key] for key in left.grades}
        reasons = dict(Counter(left.reasons) + Counter(right.reasons))
        unwrapped = left.unwrapped + right.unwrapped
        return GradeState(grades, left.mass + right.mass, reasons, unwrapped, left.noise + right.noise)

    def finish(self, state: GradeState) -> Mapping[str, Estimate]:
        return {key: Estimate.of_moments(state.grades[key], self.bounds_of(key)) for key in self._keys.values()}

    def split_variance(self, state: GradeState) -> dict[str, float] | None:
        return {"variance": state.noise.mean, "answers": self.samples} if state.noise.scored else None

    def find_warnings(self, states: Sequence[GradeState]) -> Iterator[str]:
        whole = reduce(self.merge, states, self.empty())
        reasons, mass, noise, rows = Counter(whole.reasons), whole.mass, whole.noise, whole.grades[self.name].rows
        grades = [state.grades[self.name] for state in states]
        freedom = sum(max(moments.scored - 1, 0) for moments in grades)
        spread = float(sum(np.nan_to_num(moments.std) ** 2 * moments.scored for moments in grades))
        missing = reasons.total()
        why = "".join(f"; {reason} ({count:,})" for reason, count in reasons.most_common())
        sure = f"; tokens of grades have {100 * mass.mean:.1f}% of the probability on average" if mass.scored else ""
        if whole.unwrapped:
            what = "reasoning or a code fence around the grades was removed"
            yield f"{self.name}: {what} from {whole.unwrapped:,} answers"
        if noise.scored and spread:
            several = min(noise.mean * freedom / spread, 1.0)
            one = several * self.samples / (1 + several * (self.samples - 1))
            what = "of the variance of grades within systems is the sampling of the judge"
            yield f"{self.name}: {100 * several:.1f}% {what}, {100 * one:.1f}% with one answer"
        if rows:
            yield f"{self.name}: {missing:,} of {rows:,} have no grade ({100 * missing / rows:.1f}%){why}{sure}"


@dataclass(frozen=True)
class LLMConversations(LLMGrades):
    """The grade of a whole conversation by a language model, asked by a rubric."""

    rubric: str = "task"

    family = "llm-conversation"
    level = Level.DIALOGUE
    _of = "conversation"


def label_row(rubric: Rubric, columns: Mapping[Input, Any], row: int) -> list[tuple[str, str]]:
    """Return the texts of the request about one row, with what they are."""
    used = {inputs.CONTEXT: "context", inputs.ROLES: "context", inputs.REFERENCE: "reference"}
    lists: dict[Input, list[str]] = {}
    for need, use in used.items():
        texts = columns[need][row] if need in columns and use in rubric.uses else []
        lists[need] = [texts] if isinstance(texts, str) else list(texts)
    response = columns[inputs.RESPONSE][row]
    return label_texts(rubric.level, lists[inputs.CONTEXT], response, lists[inputs.ROLES], lists[inputs.REFERENCE])


def label_texts(
    level: str, context: Sequence[str], response: str, roles: Sequence[str] = (), references: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return the texts of a request in order, each with what it is."""
    speakers = roles if len(roles) == len(context) else [""] * len(context)
    parts = [("reference", text) for text in references]
    for number, (text, role) in enumerate(zip(context, speakers, strict=True), 1):
        parts.append((f"turn {number}, by the {role}" if role else f"turn {number}", text))
    last = f"turn {len(context) + 1}, by the assistant" if level == "conversation" else "reply to grade"
    return [*parts, (last, response)]
