"""A plain function as a metric: the mean of what it returns for each row.

    @dialeval.metric_of_rows(name="polite", better="higher")
    def polite(response):
        return "please" in response or "thank" in response

Its parameters say by their names what it needs:

- `response`: the response, a text.
- `reference`: the first reference, a text; a row without one cannot be scored, and the function is not asked.
- `references`: all references, a list of texts.
- `context`: the turns before the response, a list of texts.
- `latency`: the seconds until the response was there.
- `calls`: the tool calls, a list of objects with name and arguments; those of a chat are in its last row.
- any other name: the field of the rows with that name (`channel`, `user_rating`), as it is in the file. With an
  annotation `float`, `int` or `bool` the field must hold numbers, or yes and no.

A parameter with a default is given where the row has a value, and left at its default elsewhere; a row without a value
for a parameter that has no default is not scored. The function returns a number for each row, True and False counting
as 1 and 0; None or NaN says that the row cannot be scored. A field of a whole chat is given with each of its replies; a
function of such fields alone is asked once per chat.

The function stays what it is and can be called as before. It is passed as it is (`metrics=[polite]`), by its name
once it is defined (`metrics="polite"`), by its place on the command line (`-m my_package.my_module:polite`), or
named under the entry point `dialeval.metrics`. Its source is part of the signature (`code`), so that numbers of two
versions of a function are not taken for the same.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from textwrap import dedent
from typing import Any, ClassVar, NamedTuple, TypeVar, get_type_hints

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Mask
from dialeval.core.batch import Batch
from dialeval.core.columns import FieldColumn
from dialeval.core.errors import SettingError
from dialeval.core.fingerprint import short_digest
from dialeval.core.fold import ANY_NUMBER, Better, Bounds, Metric, RowMetric
from dialeval.core.inputs import Column, Input, Kind
from dialeval.core.signature import Signature

F = TypeVar("F", bound=Callable[..., Any])
MetricClass = type[Metric]

METRIC_MARK = "__dialeval_metric__"
"""The attribute of functions that are metrics."""

DECLARED: dict[str, MetricClass] = {}
"""Metrics of functions by their names, from the moment that a function is decorated."""

_NEEDS: Mapping[str, Input] = {
    "response": inputs.RESPONSE,
    "reference": inputs.REFERENCE,
    "references": inputs.REFERENCE,
    "context": inputs.CONTEXT,
    "latency": inputs.LATENCY,
    "calls": inputs.CALLS,
}
"""By the name of a parameter; any other one is a field of the rows."""
_KINDS: Mapping[object, Kind] = {int: "number", float: "number", bool: "boolean", str: "text"}
"""The type of a field by the annotation of its parameter."""


class _Mark(NamedTuple):
    """What a decorated function carries: plain data, so that it travels with the function."""

    name: str
    better: Better | None
    bounds: Bounds
    definition: int


def metric_of_rows(
    name: str, *, better: Better | None = None, bounds: tuple[float, float] = ANY_NUMBER, definition: int = 1
) -> Callable[[F], F]:
    """Make a metric of a function of one row: the mean of what it returns. Used as a decorator.

    The names of the function's parameters decide what it is called with: `response`, `reference` (the first one),
    `references` (all of them), `context` (the turns before), `latency`, `calls`, or any field of the rows. A parameter
    with a default may be missing from the rows. A row for which it returns None is not scored.

    Args:
        name: The name of the metric.
        better: Which values are better, `"higher"` or `"lower"`; None: neither.
        bounds: The least and the largest possible value, which confidence intervals do not exceed.
        definition: A version, to be raised when the function returns other values for a reason outside its source.

    Returns:
        A decorator that returns the function itself.

    Raises:
        SettingError: The name is taken or has characters that names cannot have, or the function has no parameter.

    Examples:
        >>> import dialeval
        >>> @dialeval.metric_of_rows("polite", better="higher", bounds=(0, 1))
        ... def polite(response):
        ...     return "please" in response
        >>> dialeval.evaluate(["yes please", "no"], metrics=[polite])["system"]["polite"].mean
        0.5
    """
    if not name or any(letter in " ,()=|:" or letter.isspace() for letter in name):
        raise SettingError(f"{name!r} cannot be the name of a metric: no spaces, commas, colons, bars, brackets or =")
    if better not in ("higher", "lower", None):
        raise SettingError(f"better is 'higher', 'lower' or None, not {better!r}")

    def mark(function: F) -> F:
        if not inspect.isroutine(function):
            raise SettingError(f"metric_of_rows is for functions; {name} is a {type(function).__name__}")
        setattr(function, METRIC_MARK, _Mark(name, better, bounds, definition))
        metric = make_class(function)  # refuses what cannot be a row's value
        taken = DECLARED.get(name)
        if taken is not None and describe_place(taken) != describe_place(metric):
            raise SettingError(describe_collision(name, taken, metric))
        DECLARED[name] = metric  # a function that is defined again replaces the first
        return function

    return mark


def describe_place(metric: MetricClass) -> str:
    """Return the module and the name of a metric class."""
    return f"{metric.__module__}.{metric.__qualname__}"


def describe_collision(name: str, first: MetricClass, second: MetricClass) -> str:
    """Return the error of two metrics that have the same name."""
    return f"two metrics are called {name!r}: {describe_place(first)} and {describe_place(second)}; rename one of them"


class RowFunction(RowMetric):
    """The metric of a function."""

    function: ClassVar[Callable[..., object]]
    code: ClassVar[str]
    """The digest of its source."""
    parameters: ClassVar[Mapping[str, tuple[Input, bool]]]
    """Its parameters, each with what it is given and whether it must be given."""

    def __reduce__(self) -> tuple[object, ...]:
        # Its class is made here and can be found nowhere; the function is found, or sent, by who knows functions.
        return _make_metric, (type(self).function,)

    def signature(self) -> Signature:
        return super().signature().with_fields(code=self.code)

    def score(self, batch: Batch) -> Floats:
        needed = {name: need for name, (need, must) in self.parameters.items() if must or batch.has(need)}
        columns = [_iterate_column(batch, name, need) for name, need in needed.items()]
        values = [self._score_row(dict(zip(needed, row, strict=True))) for row in zip(*columns, strict=True)]
        return np.where(self._find_counted(batch, needed.values()), np.array(values, np.float64), math.nan)

    def _find_counted(self, batch: Batch, needs: Iterable[Input]) -> Mask:
        """Return the rows in which a value counts: where only fields of chats are looked at, one row of each."""
        columns = [batch.column(need) for need in needs]
        fields = [column for column in columns if isinstance(column, FieldColumn)]
        if len(fields) < len(columns):
            return np.ones(len(batch), np.bool_)
        return np.logical_or.reduce([column.counted for column in fields])

    def _score_row(self, row: dict[str, object]) -> float:
        """Return the value of a row; an error for what is no number."""
        unknown = [name for name, value in row.items() if value is None]
        if any(self.parameters[name][1] for name in unknown):
            return math.nan
        for name in unknown:
            del row[name]
        value = type(self).function(**row)
        if value is None:
            return math.nan
        if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
            raise TypeError(f"it returned {value!r:.60}, and a number is expected, or None for a row without a value")
        if math.isinf(number := float(value)):
            raise ValueError("it returned an infinite number")
        return number


def _iterate_column(batch: Batch, name: str, need: Input) -> Iterator[object]:
    """Yield the value of a parameter in each row, None where there is none."""
    if name == "response":
        return iter(batch.texts(need))
    if name == "context":
        return iter(batch.contexts())
    if need != inputs.REFERENCE:
        values = batch.fields(need).values
        return (None if value is None or value != value else value for value in values)
    lists = iter(batch.lists(need))
    return lists if name == "references" else (texts[0] if texts else None for texts in lists)


@cache
def make_class(function: Callable[..., object]) -> MetricClass:
    """Return the metric class of a decorated function, one for each function."""
    mark: _Mark = getattr(function, METRIC_MARK)
    parameters = _read_parameters(function, mark.name)
    must = {need for need, needed in parameters.values() if needed}
    fields = [need for need, _ in parameters.values() if isinstance(need, Column) and need.field is not None]
    subject = fields[0] if len(fields) == len(parameters) else inputs.RESPONSE
    must |= {subject}
    members: dict[str, object] = {
        "__module__": function.__module__ if function.__module__ in sys.modules else __name__,
        "__doc__": function.__doc__ or f"{mark.name}, a function of rows.",
        "family": mark.name,
        "needs": frozenset(must),
        "wants": frozenset(need for need, _ in parameters.values()) - must,
        "subject": subject,
        "better": mark.better,
        "bounds": tuple(map(float, mark.bounds)),
        "definition": mark.definition,
        "function": staticmethod(function),
        "code": _digest_source(function),
        "parameters": parameters,
    }
    return dataclass(frozen=True)(type(function.__qualname__, (RowFunction,), members))


def _make_metric(function: Callable[..., object]) -> Metric:
    return make_class(function)()


def _read_parameters(function: Callable[..., object], name: str) -> dict[str, tuple[Input, bool]]:
    declared = inspect.signature(function).parameters
    for parameter in declared.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise SettingError(f"{name}: what is {parameter}? Name each field of the rows as a parameter")
    if not declared:
        raise SettingError(f"{name} looks at nothing; name what it needs: {', '.join(_NEEDS)}, or fields of the rows")
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # a name that only type checkers can see
        hints = {}

    def find_input(parameter: str) -> Input:
        return _NEEDS.get(parameter) or Column.of_field(parameter, _KINDS.get(hints.get(parameter), "object"))

    return {name: (find_input(name), parameter.default is parameter.empty) for name, parameter in declared.items()}


def _digest_source(function: Callable[..., object]) -> str:
    try:
        source = dedent(inspect.getsource(function)).encode()
    except (OSError, TypeError):  # typed at a prompt
        code = function.__code__
        source = code.co_code + repr((code.co_consts, code.co_names)).encode()
    return short_digest(source)
