"""A plain function as a metric: the mean of what it returns for each row.

    @dialeval.metric_of_rows(name="polite", better="higher")
    def polite(response):
        return "please" in response or "thank" in response

Its parameters say by their names what it needs:

- `response`: the response, a text.
- `reference`: the first reference, a text; a row without one cannot be scored, and the function is not asked.
- `references`: all references, a list of texts.
- `context`: the turns before the response, a list of texts.

A parameter with a default is given where the rows have it, and left at its default where no row has. The function
returns a number for each row, True and False counting as 1 and 0; None or NaN says that the row cannot be scored.

The function stays what it is and can be called as before. It is passed as it is (`metrics=[polite]`), by its name once
it is defined (`metrics="polite"`), by its place on the command line (`-m my_package.my_module:polite`), or named under
the entry point `dialeval.metrics`. Its source is part of the signature (`code`), so that numbers of two versions of a
function are not taken for the same.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from textwrap import dedent
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import SettingError
from dialeval.core.fold import ANY_NUMBER, Better, Bounds, Metric, RowMetric
from dialeval.core.needs import Need
from dialeval.core.signature import Signature

F = TypeVar("F", bound=Callable[..., Any])
MetricClass = type[Metric[Any]]

METRIC_MARK = "__dialeval_metric__"
"""The attribute of functions that are metrics."""

DECLARED: dict[str, MetricClass] = {}
"""Metrics of functions by their names, from the moment that a function is decorated."""

_NEEDS: Mapping[str, Need] = {
    "response": Need.RESPONSE,
    "reference": Need.REFERENCE,
    "references": Need.REFERENCE,
    "context": Need.CONTEXT,
}
"""By the name of a parameter."""


@dataclass(frozen=True)
class _Mark:
    """What a decorated function carries: plain data, so that it travels with the function."""

    name: str
    better: Better | None
    bounds: Bounds
    definition: int


@checked
def metric_of_rows(
    name: str, *, better: Better | None = None, bounds: tuple[float, float] = ANY_NUMBER, definition: int = 1
) -> Callable[[F], F]:
    """Make a function of one row a metric, the mean of what it returns; a decorator.

    `name`: what the metric is called. `better`: which values are the better ones, "higher" or "lower". `bounds`: the
    least and the largest value that is possible; an interval does not go beyond. `definition`: to be raised when the
    function gives other numbers than before for a reason that does not stand in its source.
    """
    if not name or any(letter in " ,()=|:" or letter.isspace() for letter in name):
        raise SettingError(f"{name!r} cannot be the name of a metric: no blanks, commas, colons, bars, brackets or =")
    if better not in ("higher", "lower", None):
        raise SettingError(f"better is 'higher', 'lower' or None, not {better!r}")

    def mark(function: F) -> F:
        if not inspect.isroutine(function):
            raise SettingError(f"metric_of_rows is for functions; {name} is a {type(function).__name__}")
        setattr(function, METRIC_MARK, _Mark(name, better, bounds, definition))
        metric = class_of(function)  # refuses parameters that it does not know
        taken = DECLARED.get(name)
        if taken is not None and place_of(taken) != place_of(metric):
            raise SettingError(describe_collision(name, taken, metric))
        DECLARED[name] = metric  # a function that is defined again replaces the first
        return function

    return mark


def place_of(metric: MetricClass) -> str:
    """Return the module and the name of a metric class."""
    return f"{metric.__module__}.{metric.__qualname__}"


def describe_collision(name: str, first: MetricClass, second: MetricClass) -> str:
    """Return the error of two metrics that have the same name."""
    return f"two metrics are called {name!r}: {place_of(first)} and {place_of(second)}; rename one of them"


class RowFunction(RowMetric):
    """The metric of a function."""

    function: ClassVar[Callable[..., Any]]
    code: ClassVar[str]
    """The digest of its source."""
    parameters: ClassVar[Mapping[str, bool]]
    """Its parameters, each with whether it must be given."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Its class is made here and can be found nowhere; the function is found, or sent, by who knows functions.
        return _metric_of, (type(self).function,)

    def signature(self) -> Signature:
        return super().signature().with_fields(code=self.code)

    def score(self, batch: Batch) -> Floats:
        return np.array([_number(self._value(row)) for row in self._rows(batch)], np.float64)

    def _value(self, row: Mapping[str, Any]) -> object:
        return None if "reference" in row and row["reference"] is None else type(self).function(**row)

    def _rows(self, batch: Batch) -> Iterator[dict[str, Any]]:
        given = [name for name, must in self.parameters.items() if must or batch.has(_NEEDS[name])]
        columns = [_column(batch, name) for name in given]
        return (dict(zip(given, values, strict=True)) for values in zip(*columns, strict=True))


def _column(batch: Batch, name: str) -> Iterator[Any]:
    if name == "response":
        return iter(batch.texts(Need.RESPONSE))
    if name == "context":
        return iter(batch.contexts())
    lists = iter(batch.lists(Need.REFERENCE))
    return lists if name == "references" else (texts[0] if texts else None for texts in lists)


def _number(value: object) -> float:
    """Return the value of a row; an error for what is no number."""
    if value is None:
        return math.nan
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise TypeError(f"it returned {value!r:.60}, and a number is expected, or None for a row without a value")
    number = float(cast(Any, value))
    if math.isinf(number):
        raise ValueError("it returned an infinite number")
    return number


@cache
def class_of(function: Callable[..., Any]) -> MetricClass:
    """Return the metric class of a decorated function, one for each function."""
    mark: _Mark = getattr(function, METRIC_MARK)
    parameters = _parameters(function, mark.name)
    must = {_NEEDS[name] for name, needed in parameters.items() if needed} | {Need.RESPONSE}
    members: dict[str, Any] = {
        "__module__": function.__module__ if function.__module__ in sys.modules else __name__,
        "__doc__": function.__doc__ or f"{mark.name}, a function of rows.",
        "family": mark.name,
        "presets": {mark.name: {}},
        "needs": frozenset(must),
        "wants": frozenset(_NEEDS[name] for name in parameters) - must,
        "better": mark.better,
        "bounds": tuple(map(float, mark.bounds)),
        "definition": mark.definition,
        "function": staticmethod(function),
        "code": _digest(function),
        "parameters": parameters,
    }
    return dataclass(frozen=True)(type(function.__qualname__, (RowFunction,), members))


def _metric_of(function: Callable[..., Any]) -> Metric[Any]:
    return class_of(function)()


def _parameters(function: Callable[..., Any], name: str) -> dict[str, bool]:
    known = f"parameters are called {', '.join(_NEEDS)}"
    given = inspect.signature(function).parameters
    for parameter in given.values():
        if parameter.name not in _NEEDS or parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise SettingError(f"{name}: what is {parameter}? {known}")
    if not given:
        raise SettingError(f"{name} looks at nothing; {known}")
    return {parameter.name: parameter.default is parameter.empty for parameter in given.values()}


def _digest(function: Callable[..., Any]) -> str:
    try:
        source = dedent(inspect.getsource(function)).encode()
    except (OSError, TypeError):  # typed at a prompt
        code = function.__code__
        source = code.co_code + repr((code.co_consts, code.co_names)).encode()
    return hashlib.sha256(source).hexdigest()[:DIGEST_LENGTH]
