"""Human ratings of replies as columns, one row per rated reply.

A rated row is a row (see `fields`) with `scores`, and where known `scale`, `dataset` and `level`:

- `scores`: an object of quality -> number, or list with one value per annotator (null: that one did not answer); or
  directly a number or a list, which is then the quality `overall`. In a table it may be JSON in a cell, or columns
  `scores.overall`, `scores.fluent` and so on. Without any of these `overall`, `score` or `rating` is read as `overall`.
- `scale`: `[lowest, highest]` of `overall`, in a cell also `1-5`; null where there is none.
- `dataset`: what the row belongs to; else the name of its file. `level`: `dialog` where a whole dialogue was rated.
- `id` and `rater`: what was rated, and by whom. Lines of equal `id` that name raters are one row, with a value of each
  rater. A rater's first answer counts, and one with `again: true` only where there is no other; where an answer was
  given several times, the last one counts, with a warning (`rate merge` has the same rule). What else a row needs
  may be left out where `sampled` has it by its id: `{"id": "k3fq8w2a", "rater": "ann", "scores": {"overall": 4}}` (see
  `human.sample`).

`fields` maps names as everywhere: `{"response": "answer", "scores": "human"}`. A row without a score of some quality
has NaN there. Every problem of every file is found before one is raised.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from dialeval.core import inputs
from dialeval.core.account import MISSING
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError, add_warning
from dialeval.core.inputs import Column, Input
from dialeval.io import row_shapes
from dialeval.io.calls import parse_text
from dialeval.io.fields import FieldReader, describe_missing, parse_cell
from dialeval.io.opening import PathSource
from dialeval.io.reading import read_objects
from dialeval.io.rows import CONTENT_KEYS, LISTS, FieldNames, Records, RowObject, join_names, kind_of, read_number
from dialeval.io.scores import read_grade

OVERALL = "overall"
"""The quality that every rated set is expected to have."""

DIALOGUE = "dialog"
"""The level of a row that rates a whole dialogue."""

SIZES = (1e-50, 1e50)
"""Absolute values of ratings other than 0: products of squares of others would under- or overflow."""

_DIGEST = 12
"""Hexadecimal digits of the digest of a row: enough to distinguish millions of rows."""
_OWN = ("scores", "scale", "dataset", "level")
_PLAIN = (OVERALL, "score", "rating")
_LISTED = ("datasets", "dialogues", "systems", "contexts", "responses", "references", "levels", "ids")
"""The columns of `Ratings` that are plain lists."""


@dataclass(frozen=True, eq=False, slots=True)
class Ratings:
    """Rated replies; every column has one entry per row, in the order of the files."""

    datasets: Sequence[str]
    dialogues: Sequence[str]
    """Rows of equal name are a cluster (same context, or same dialogue); a row without a name is one of its own."""
    systems: Sequence[str | None]
    contexts: Sequence[Sequence[str]]
    responses: Sequence[str]
    references: Sequence[Sequence[str]]
    """None where the rated reply is itself the reference."""
    levels: Sequence[str]
    ids: Sequence[str | None]
    scales: Floats
    """Lowest and highest value of `overall`, two columns; NaN where the row states none."""
    annotations: Mapping[str, Sequence[Floats]]
    """By quality and row: one value per annotator, or a single one where the source gives no more."""
    values: Mapping[str, Floats] = field(default_factory=dict)
    """By quality: the mean over annotators, NaN where no annotator answered."""
    raters: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """By quality and row: the rater of each value of `annotations`; none where the source names no raters."""
    columns: Sequence[Mapping[Input, object]] = ()
    """The further columns of each row that metrics ask for."""

    def __len__(self) -> int:
        return len(self.responses)

    def take(self, rows: Ints | npt.NDArray[np.bool_]) -> Ratings:
        """Return the given rows, by number or by mask, in order."""
        chosen: list[int] = np.arange(len(self))[rows].tolist()
        columns = {name: [getattr(self, name)[row] for row in chosen] for name in _LISTED}
        annotations = {quality: [column[row] for row in chosen] for quality, column in self.annotations.items()}
        values = {quality: column[chosen] for quality, column in self.values.items()}
        raters = {quality: [column[row] for row in chosen] for quality, column in self.raters.items()}
        return Ratings(
            **columns,
            scales=self.scales[chosen],
            annotations=annotations,
            values=values,
            raters=raters,
            columns=[self.columns[row] for row in chosen] if self.columns else (),
        )


def read_ratings(
    paths: PathSource | Iterable[PathSource] | Sequence[RowObject],
    fields: Mapping[str, str] | None = None,
    sampled: Mapping[str, RowObject] | None = None,
    columns: tuple[Column, ...] = (),
    scores: tuple[str, ...] = (),
) -> Ratings:
    """Read the rated rows of files (.jsonl, .json, .csv, .tsv or .parquet, each also packed), or of a list.

    `sampled`: rows by id; every line is then the rating of one of them. `columns` and `scores` are further fields of
    the rows that metrics ask for; of all scores (`*`), those that are ratings are left out.
    """
    mapped = dict(fields or {})
    own = {name: mapped.pop(name, name) for name in _OWN}
    names = FieldNames.of(mapped if sampled is None else None, columns=columns, scores=scores)

    def read(reader: FieldReader, row: RowObject, name: str) -> Iterator[_RatedRow]:
        """Yield a rated row, unless it has a problem; `name` is the data set of one that names none."""
        # Lines about sampled rows need not name a rater.
        rater = row.get("rater")
        named = isinstance(rater, str | int) and not isinstance(rater, bool) and ("id" in row or sampled is not None)
        rater = str(rater) if named else None if sampled is None else ""
        identifier = None if rater is None else reader.read_identifier(row, "id")
        if sampled is not None:
            if identifier is None or identifier not in sampled:
                shown = "has no id" if identifier is None else f"the id {identifier!r:.40} is not in the sample"
                reader.add_problem(shown, "give the ratings of the rows in this folder, each with its id")
                return
            row = {**row, **sampled[identifier]}  # the texts of the sample were rated
        response, failure = reader.read_response(row)
        if failure == MISSING and row.get(reader.names.response) is None and reader.names.response in row:
            reader.add_problem(f"{reader.names.response} is null", "give the rated reply, or leave the row out")
        rated, found = read_scores(reader, row, own["scores"]), reader.read_columns(row)
        if isinstance(listed := found.get(inputs.SCORES), dict):
            found[inputs.SCORES] = {key: value for key, value in listed.items() if key in scores or key not in rated}
        dataset = reader.read_identifier(row, own["dataset"]) or (name if sampled is None else "sample")
        yield _RatedRow(
            dataset,
            f"{dataset}/{reader.read_dialogue(row) or f'row {reader.line}'}",
            reader.read_identifier(row, reader.names.system),
            reader.read_context(row)[0],
            response,
            reader.read_references(row),
            reader.read_identifier(row, own["level"]) or "turn",
            identifier,
            rater,
            is_again(row),
            _read_scale(reader, row.get(own["scale"]), own["scale"]),
            rated,
            columns=found,
        )

    def check(rows: list[_RatedRow]) -> tuple[str, str] | None:
        if not rows:
            return "holds no rows", "give at least one rated reply"
        remedy = "give each row scores, or map the name they have: --field scores=NAME"
        lacking = f"no row has {own['scores']}, {', '.join(_PLAIN)}"
        return None if any(row.scores for row in rows) else (lacking, remedy)

    def read_lines(reader: FieldReader, row: RowObject, name: str) -> Iterator[_RatedRow]:
        for line in list_ratings(row, names):
            yield from read(reader, line, name)

    rows = _join_by_id(read_objects(paths, "ratings", "a response and scores", names, read_lines, check))
    if not rows:
        raise SettingError("no ratings were given; name at least one file of rated rows")
    *texts, _, _, scales, rated, named, further = zip(*rows, strict=True)
    annotations = {
        quality: [row.get(quality, np.empty(0)) for row in rated]
        for quality in dict.fromkeys(quality for row in rated for quality in row)
    }
    values = {
        quality: np.array([float(row.mean()) if len(row) else math.nan for row in column])
        for quality, column in annotations.items()
    }
    raters = {quality: [row.get(quality, ()) for row in named] for quality in annotations}
    listed = dict(zip(_LISTED, map(list, texts), strict=True))
    ends = np.array(scales, np.float64)
    return Ratings(**listed, scales=ends, annotations=annotations, values=values, raters=raters, columns=further)


def list_ratings(row: RowObject, names: FieldNames) -> list[RowObject]:
    """Return a line for each rater of a task of Label Studio or a record of Argilla; a row of ours as it is."""
    shape = None if names.mapped else row_shapes.find_shape(row)
    is_table = any(name.endswith(".responses.users") for name in row)  # of Argilla, with columns for each question
    if not is_table and (shape is None or shape.name not in _ANSWERS):
        return [row]
    list_answers = _list_argilla if is_table or shape is None else _ANSWERS[shape.name]
    data: Any = next((row[name] for name in ("data", "fields") if isinstance(row.get(name), dict)), row)
    context = parse_cell(next((data[name] for name in _CONTEXTS if data.get(name) is not None), None))
    response = next((data[name] for name in _RESPONSES if isinstance(data.get(name), str)), None)
    if response is None and isinstance(context, list) and context:  # the last turn was rated
        *context, last = context
        response = next((last[key] for key in CONTENT_KEYS if key in last), None) if isinstance(last, dict) else last
    metadata = row.get("metadata")
    more = {**(metadata if isinstance(metadata, dict) else {}), **data}
    facts = {name: more[name] for name in ("system", "dialog_id", "reference") if more.get(name) is not None}
    task = {"response": response, "context": context, **facts, "id": str(data.get("id", row.get("id")))}
    answers = dict[str, dict[str, float]]()
    for rater, quality, answer in list_answers(row):
        value = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
        if (score := read_grade(value)) is not None:
            answers.setdefault(rater, {})[quality] = score
        elif value is not None:
            add_warning(f"answers to {quality!r:.40} that are no numbers are not read as ratings")
    return [{**task, "rater": rater, "scores": scores} for rater, scores in answers.items()]


_CONTEXTS = ("context", "dialogue", "dialog", "messages", "conversation", "chat", "prompt", "instruction", "question")
_RESPONSES = ("response", "reply", "answer", "output", "completion", "generation", "text")


def _list_label_studio(task: RowObject) -> Iterator[tuple[str, str, Any]]:
    """Yield rater, quality and answer of a task; withdrawn annotations do not count."""
    for annotation in task["annotations"] if isinstance(task["annotations"], list) else ():
        rater = annotation.get("completed_by")
        rater = rater.get("email", rater.get("id")) if isinstance(rater, dict) else rater
        for result in () if annotation.get("was_cancelled") else annotation.get("result") or ():
            value = result.get("value") or {}
            kinds = ("rating", "number", "choices", "text")
            answer = next((value[kind] for kind in kinds if value.get(kind) is not None), None)
            yield str(annotation.get("id") if rater is None else rater), str(result.get("from_name")), answer


def _list_argilla(record: RowObject) -> Iterator[tuple[str, str, Any]]:
    """Yield rater, question and answer of a record: a list for each question, or one for each user; or columns."""
    responses = record.get("responses")
    columns = {
        name.removesuffix(".responses"): answers for name, answers in record.items() if name.endswith(".responses")
    }
    for question, values in columns.items():
        users, states = (record.get(f"{question}.responses.{what}") for what in ("users", "status"))
        for at, value in enumerate(values if isinstance(values, list) else ()):
            if not isinstance(states, list) or states[at] == "submitted":
                yield str(users[at] if isinstance(users, list) else at), question, value
    for question, answers in responses.items() if isinstance(responses, dict) else ():
        yield from ((str(each.get("user_id")), str(question), each.get("value")) for each in answers if _counts(each))
    for at, each in enumerate(responses if isinstance(responses, list) else ()):
        for question, answer in (each.get("values") or {}).items() if _counts(each) else ():
            yield str(each.get("user_id") or at), str(question), answer.get("value")


def _counts(response: Mapping[str, object]) -> bool:
    return response.get("status") in (None, "submitted")


_ANSWERS: dict[str, Callable[[RowObject], Iterator[tuple[str, str, Any]]]] = {
    "label-studio": _list_label_studio,
    "argilla": _list_argilla,
}


def digest_ratings(ratings: Ratings) -> list[str]:
    """Return a digest of the context and response of each row, which identifies a rated row.

    A trained judge keeps those of its training rows, so that its scores of them are not used as if it had not seen
    their ratings.
    """
    rows = zip(ratings.contexts, ratings.responses, strict=True)
    texts = ("\0".join([*context, response]) for context, response in rows)
    return [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST] for text in texts]


def _join_by_id(rows: list[_RatedRow]) -> list[_RatedRow]:
    """Join the lines of several raters with equal ids to one row, in the order of the first of them."""
    joined: dict[object, list[_RatedRow]] = {}
    for number, row in enumerate(rows):
        joined.setdefault(number if row.id is None or row.rater is None else row.id, []).append(row)
    return [lines[0] if lines[0].rater is None else _join_raters(lines) for lines in joined.values()]


def _join_raters(lines: list[_RatedRow]) -> _RatedRow:
    """Return one row for the lines of several raters, with one value of each rater for each quality.

    Lines without a name are each of another rater. Of a rater's answers about a row the first one counts where the
    other is marked as a repetition, otherwise the last one.
    """
    answers: dict[str, dict[object, tuple[bool, float]]] = {}
    """By quality and rater: whether it is a second answer, and its value."""
    for number, line in enumerate(lines):
        rater = line.rater or number
        for quality, values in line.scores.items():
            raters, value = answers.setdefault(quality, {}), float(values.mean())
            again, before = raters.get(rater, (True, value))
            if rater in raters and again == line.again and before != value:
                add_warning(f"{line.rater} rated rows more than once with other scores; the last rating counts")
            if line.again <= again:
                raters[rater] = line.again, value
    scores = {quality: np.array([value for _, value in raters.values()]) for quality, raters in answers.items()}
    named = {
        quality: tuple(str(rater) for rater in raters)
        for quality, raters in answers.items()
        if all(isinstance(rater, str) for rater in raters)
    }
    # A line that holds the values of several annotators keeps them; their names are not known.
    return lines[0]._replace(raters=named) if len(lines) == 1 else lines[0]._replace(scores=scores, raters=named)


def is_again(row: RowObject) -> bool:
    """Return whether a line is a rater's second answer about a row."""
    return row.get("again") in (True, "true", "True", "1")


class _RatedRow(NamedTuple):
    """A rated row: its entries of the columns in `_LISTED`, its scale, and the annotators' values of each quality."""

    dataset: str
    dialogue: str
    system: str | None
    context: list[str]
    response: str
    references: list[str]
    level: str
    id: str | None
    rater: str | None
    again: bool
    scale: tuple[float, float]
    scores: dict[str, Floats]
    raters: dict[str, tuple[str, ...]] = {}
    columns: dict[Input, object] = {}


def read_scores(reader: FieldReader, row: RowObject, name: str) -> dict[str, Floats]:
    """Return the annotators' values of each quality of a row."""
    value = parse_text(row.get(name), None)
    if value is None:
        prefix = f"{name}."
        flat = {key[len(prefix) :]: cell for key, cell in row.items() if key.startswith(prefix)}
        value = flat or next((row[plain] for plain in _PLAIN if row.get(plain) is not None), None)
    qualities = value if isinstance(value, dict) else {OVERALL: value}
    scores = {str(quality): _read_values(reader, each, f"{name}.{quality}") for quality, each in qualities.items()}
    return {quality: values for quality, values in scores.items() if len(values)}


def _read_values(reader: FieldReader, value: object, what: str) -> Floats:
    value = parse_text(value, None)
    items = [parse_text(item, None) for item in value] if isinstance(value, LISTS) else [value]
    numbers = []
    for item in items:
        if _is_number(item):
            if item and not SIZES[0] <= abs(item) <= SIZES[1]:
                extreme = "large" if abs(item) > 1 else "small"
                remedy = "bring ratings to an ordinary scale, such as 1 to 5"
                reader.add_problem(f"{what} holds {repr(item)[:40]}, too {extreme} to compute with", remedy)
            else:
                numbers.append(float(item))
        elif item is not None:
            shown = repr(item)[:40] if isinstance(item, str | float) else kind_of(item)
            remedy = "make it a number, a list of numbers (one per annotator), or null"
            reader.add_problem(f"{what} holds {shown}", remedy)
    return np.array(numbers, np.float64)


def _is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a finite number; Python's whole numbers may be larger than a float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def _read_scale(reader: FieldReader, value: object, what: str) -> tuple[float, float]:
    if isinstance(value, str):
        parts = value.split("-")
        value = [parse_text(part.strip(), None) for part in parts] if len(parts) == 2 else parse_text(value, None)
    if value is None or (isinstance(value, LISTS) and all(end is None for end in value)):
        return math.nan, math.nan
    if isinstance(value, LISTS) and len(value) == 2:
        low, high = value
        if _is_number(low) and _is_number(high) and -SIZES[1] <= low < high <= SIZES[1]:
            return float(low), float(high)
    shown = join_names(value) if isinstance(value, LISTS) else kind_of(value)
    reader.add_problem(f"{what} is {shown}", "make it [lowest, highest], or null where there is none")
    return math.nan, math.nan


# Rating lines: the answers of single raters about sampled rows, as the rating page exports them.
#
#     {"id": "k3fq8w2a", "rater": "ann", "scores": {"overall": 4, "fluent": 5}, "seconds": 12.3, "comment": "..."}
#
# `id`, `rater` and `scores` are there; `again` is true where the rater met the row for the second time. A rater gives
# one value for each quality. The first answer counts and one with `again` only shows how consistent the rater is;
# where an answer was given several times, the last one counts (as in `read_ratings` and
# `human.merge`). Every problem of every file is found before one is raised.

_REMEDY = "give what raters sent back: .jsonl, .json, .csv, .tsv, or the .sqlite of `dialeval rate serve`"

ScoreCheck: TypeAlias = Callable[[str, Mapping[str, float | None]], Sequence[str]]
"""Returns what is wrong with the scores of the row with an id; None is uncertain."""


class RatingLine(NamedTuple):
    """The ratings of one row by one rater."""

    id: str
    rater: str
    scores: dict[str, float]
    again: bool = False
    comment: str = ""
    seconds: float | None = None
    marked: tuple[int, ...] = ()
    """Turns that the rater marked, counted from 1."""
    uncertain: tuple[str, ...] = ()
    """Qualities that the rater was uncertain about (the score null)."""
    both_bad: tuple[str, ...] = ()
    """Qualities by which both responses of a pair are bad; their score is 0."""


def read_rating_lines(
    sources: Iterable[PathSource | Records], known: Collection[str] | None = None, check: ScoreCheck | None = None
) -> list[RatingLine]:
    """Return the ratings in files, or in lists that were read already.

    Args:
        sources: The files or lists.
        known: The ids of what was to be rated; None: any.
        check: The check of scores; None: any numbers are valid.
    """

    def read(reader: FieldReader, row: RowObject, _name: str) -> Iterator[RatingLine]:
        for line in list_ratings(row, reader.names):
            yield from read_line(reader, line)

    def read_line(reader: FieldReader, row: RowObject) -> Iterator[RatingLine]:
        before = len(reader.problems)
        identity, rater = reader.read_identifier(row, "id"), reader.read_identifier(row, "rater")
        scores = read_scores(reader, row, "scores")
        if identity is None or rater is None:
            reader.add_problem("has no id" if identity is None else "has no rater", "say what was rated, and by whom")
            return
        if known is not None and identity not in known:
            reader.add_problem(f"the id {identity!r:.40} is not in the sample", "give the ratings of this sample")
        written = row.get("scores")
        uncertain = tuple(name for name, value in written.items() if value is None) if isinstance(written, dict) else ()
        if not scores and not uncertain and len(reader.problems) == before:
            reader.add_problem("has no scores", 'add them: "scores": {"overall": 4}')
        for quality, values in scores.items():
            if len(values) > 1:
                reader.add_problem(f"scores.{quality} holds {len(values)} values", "give one; a line is of one rater")
        numbers = {quality: float(values[0]) for quality, values in scores.items()}
        if check is not None and len(reader.problems) == before:
            for what in check(identity, {**numbers, **dict.fromkeys(uncertain)}):
                reader.add_problem(what, "name the form that was asked (--form), or accept any numbers (--any-scores)")
        comment, seconds, marked, bad = (row.get(name) for name in ("comment", "seconds", "marked", "both_bad"))
        yield RatingLine(
            identity,
            rater,
            numbers,
            is_again(row),
            comment if isinstance(comment, str) else "",
            float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e9 else None,
            tuple(turn for turn in marked if type(turn) is int) if isinstance(marked, list) else (),
            uncertain,
            tuple(name for name in bad if isinstance(name, str)) if isinstance(bad, list) else (),
        )

    return read_objects(sources, "ratings", "id, rater and scores", FieldNames(), read, remedy=_REMEDY)


# Pairs: which of two responses was preferred, one comparison a row.
#
#     {"dialog_id": "d1", "a": "damd", "b": "ubar", "better": "a", "response_a": "...", "response_b": "..."}
#
# - `a`, `b`: the two systems. `better`: `a`, `b` or `tie`, or the name of the better system. Where a system is itself
#   called `a`, `b` or `tie`, a value that means one thing as a name and another as a side is refused.
# - `dialog_id`: pairs of equal name are a cluster; a row without one is a cluster of its own. `cluster` names another
#   field for that, which every row then has. Texts of responses are only needed to control for length. `rater`: who
#   preferred. `a` is the response that was shown first, if one was. `fields` maps names as everywhere.
#
# Pairs of Chatbot Arena, MT-bench, arena-hard and AlpacaEval are found by the table of shapes (`row_shapes`):
#
# - the two games of MT-bench, in which the sides are exchanged, are one pair: a tie unless both say the same;
# - those of arena-hard are two pairs, the baseline being A in the first and B in the second;
# - a preference of AlpacaEval from 1 (the first answer) to 2 (the second) counts for both: 1.91 is 0.91 of a win of the
#   second, and 0.09 of one of the first; 1.5 is a tie;
# - a pair that a judge could not decide (an error) is left out, with a warning.
#
# Every problem of every file is found before one is raised.

NAMES = ("a", "b", "better", "response_a", "response_b", "dialog_id", "rater")
TIE = "tie"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Comparisons of two systems each."""

    systems: Sequence[str]
    left: Ints
    """The number of the first system of each pair."""
    right: Ints
    outcome: Ints
    """1: the first was better, 0: a tie, -1: the second."""
    dialogue: Ints
    """The number of each pair's dialogue."""
    length_ratio: Floats
    """The natural logarithm of the ratio of the responses' words, first to second; NaN where texts are not known."""
    named: bool
    """Whether dialogues have names; if not, every pair is a cluster."""
    rater: Sequence[str | None] = ()
    """Who preferred, for each pair; none where that is not known of any."""
    weight: Floats | None = None
    """How much each pair counts, where not all count as one."""

    @property
    def weights(self) -> Floats:
        """How much each pair counts."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def __len__(self) -> int:
        return len(self.left)


def length_ratio(left: str, right: str) -> float:
    """Return the logarithm of the ratio of two responses' words; an empty response counts as one word."""
    return float(np.log(max(len(left.split()), 1) / max(len(right.split()), 1)))


def read_pairs(
    paths: PathSource | Iterable[PathSource] | Sequence[RowObject],
    fields: Mapping[str, str] | None = None,
    cluster: str | None = None,
) -> Pairs:
    """Read the pairs of files (.jsonl, .json, .csv, .tsv, .parquet), or of a list of objects."""
    names = dict(zip(NAMES, NAMES, strict=True))
    for name, actual in (fields or {}).items():
        if name not in names:
            raise SettingError(f"there is no field {name!r} to map; a pair has {', '.join(NAMES)}")
        names[name] = actual
    columns = FieldNames(response=names["better"], dialog_id=names["dialog_id"])

    def read(reader: FieldReader, row: RowObject, _name: str) -> list[_Pair]:
        rater = reader.read_identifier(row, names["rater"])
        group = None if cluster is None else reader.read_identifier(row, cluster)
        if cluster is not None and group is None:
            reader.add_problem(f"has no {cluster}", "name a field that every pair has, or leave --cluster out")
        found = [_read_pair(reader, mapped, names, group, rater) for mapped in _map_pairs(row, names)]
        return [pair for pair in found if pair is not None]

    pairs = read_objects(paths, "pairs", "a, b and better", columns, read)
    if not pairs:
        raise SettingError("no pairs were given; name at least one file of compared responses")
    lefts, rights, outcomes, dialogues, ratios, weights, raters = zip(*pairs, strict=True)
    number = {name: code for code, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair[:2]))}
    named = [f"{place}" if name is None else f"={name}" for place, name in enumerate(dialogues)]
    codes = {name: code for code, name in enumerate(dict.fromkeys(named))}
    return Pairs(
        list(number),
        np.array([number[left] for left in lefts], np.int64),
        np.array([number[right] for right in rights], np.int64),
        np.array(outcomes, np.int64),
        np.array([codes[name] for name in named], np.int64),
        np.array(ratios, np.float64),
        any(name is not None for name in dialogues),
        raters if any(rater is not None for rater in raters) else (),
        np.array(weights, np.float64),
    )


_WEIGHT = "\0weight"
"""A mark of pairs that count less than one."""


class _Pair(NamedTuple):
    """One pair; its columns are those of `Pairs`."""

    left: str
    right: str
    outcome: int
    dialogue: str | None
    length_ratio: float
    weight: float
    rater: str | None


_DECIDED = {
    **dict.fromkeys(("model_a", "model_1", "A>B", "A>>B"), "a"),
    **dict.fromkeys(("model_b", "model_2", "B>A", "B>>A"), "b"),
    **dict.fromkeys((TIE, "A=B", "B=A", "tie (bothbad)", "bothbad", "both_bad"), TIE),
}
"""The outcomes by the words of other programs for the better answer."""


def _map_pairs(row: RowObject, names: Mapping[str, str]) -> list[RowObject]:
    """Return the pairs of a row of another program; a row of ours as it is."""
    shape = row_shapes.find_shape(row)
    if shape is None or not shape.pairs or any(mapped != name for name, mapped in names.items() if name != "rater"):
        return [row]
    fields: RowObject = {name: row_shapes.find(row, paths) for name, paths in shape.pairs.items()}
    for name in ("response_a", "response_b"):
        if isinstance(chat := fields.get(name), LISTS) and chat and isinstance(chat[-1], dict):
            fields[name] = chat[-1].get("content")
    said = fields["better"]
    several = [
        game.get("score") if isinstance(game, dict) else game for game in (said if isinstance(said, LISTS) else [said])
    ]
    better = [_DECIDED.get(str(game)) for game in several]
    if shape.name == "arena-hard-judgment":
        fields["a"] = fields["a"] or "baseline"
        better = [{"a": "b", "b": "a"}.get(str(game), game) if at % 2 else game for at, game in enumerate(better)]
    elif isinstance(said, int | float) and said != 1.5:
        second = min(max(said - 1, 0.0), 1.0)
        shares = {"a": 1 - second, "b": second}
        return [{**fields, "better": side, _WEIGHT: share} for side, share in shares.items() if share]
    elif isinstance(said, int | float):
        better = [TIE]
    elif better:
        better = [None if None in better else better[0] if len(set(better)) == 1 else TIE]
    if None in better:
        add_warning("pairs that were not decided, such as those with an error of the judge, are left out")
    return [{**fields, "better": each} for each in better if each is not None]


def _read_pair(
    reader: FieldReader, row: RowObject, names: Mapping[str, str], group: str | None, rater: str | None
) -> _Pair | None:
    """Return one pair; None, and a problem, where it is none."""
    left, right = (reader.read_identifier(row, names[name]) for name in ("a", "b"))
    if left is None or right is None:
        lacking = "a" if left is None else "b"
        reader.add_problem(*describe_missing(names[lacking], lacking, row))
        return None
    if left == right:
        reader.add_problem(f"{left!r:.40} is compared with itself", "name two different systems")
        return None
    outcome = _read_outcome(reader, row, names["better"], left, right)
    texts = [row.get(names[name]) for name in ("response_a", "response_b")]
    is_text = all(isinstance(text, str) for text in texts)
    ratio = length_ratio(*texts) if is_text else float("nan")  # type: ignore[arg-type]
    weight = read_number(row.get(_WEIGHT))
    return _Pair(
        left, right, outcome, group or reader.read_dialogue(row), ratio, 1.0 if weight is None else weight, rater
    )


def list_outcomes(better: object, left: str, right: str) -> set[int]:
    """Return every outcome that a value of `better` can mean; more than one where a system is called like a side."""
    words = {1: (left, "a", "A"), -1: (right, "b", "B"), 0: (TIE, "Tie")}
    return {outcome for outcome, spellings in words.items() if better in spellings}


def _read_outcome(reader: FieldReader, row: RowObject, name: str, left: str, right: str) -> int:
    better = row.get(name)
    said = better.strip() if isinstance(better, str) else better
    outcomes = list_outcomes(said, left, right)
    if len(outcomes) == 1:
        return outcomes.pop()
    if outcomes:
        what = f"{name} is {said!r:.40}, which is ambiguous: a system of this pair is called like a side or a tie"
        reader.add_problem(what, "exchange the two systems of the row (a and b), or rename the system")
        return 0
    shown = f"{said!r:.40}" if isinstance(said, str | int) else kind_of(said)
    what = f"{name} is {shown if name in row else 'missing'}"
    reader.add_problem(what, "make it a, b or tie, or the name of the better system")
    return 0
