"""Own metrics as dialog-eval takes them: an object whose `update_metrics` appends to the lists of its dict `metrics`.

class Politeness:
    def __init__(self):
        self.metrics = {"polite": []}

    def update_metrics(self, resp_words, gt_words, source_words):
        self.metrics["polite"].append("please" in resp_words)

polite = adapt(Politeness())["polite"]      # evaluate(..., metrics=[polite]), or -m my_metrics:polite
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Protocol

from dialeval.core.errors import SettingError
from dialeval.metrics.functions import metric_of_rows

__all__ = ["adapt"]


class DialogEvalMetrics(Protocol):
    """A metric object of dialog-eval."""

    metrics: dict[str, list[Any]]

    def update_metrics(self, resp_words: list[str], gt_words: list[str], source_words: list[str], /) -> object:
        """Append the values of one response to the lists of `metrics`."""


def adapt(own: DialogEvalMetrics) -> dict[str, Callable[..., Any]]:
    """Return the metrics of an object by their names, as functions that `dialeval.evaluate` takes.

    A response for which a list gets no value is not scored. Where there is no reference or no context the words of the
    response take their place, as in the original.

    Args:
        own: The object.

    Returns:
        A function for each name in `own.metrics`.

    Raises:
        SettingError: The object has no lists by name in `metrics`, or a name cannot be that of a metric.

    Examples:
        >>> from dialeval import evaluate
        >>> from dialeval.originals.dialog_eval import adapt
        >>> class Questions:
        ...     metrics = {"asks": []}
        ...     def update_metrics(self, resp_words, gt_words, source_words):
        ...         self.metrics["asks"].append(resp_words[-1:] == ["?"])
        >>> evaluate(["at nine ?", "no"], metrics=[adapt(Questions())["asks"]])["system"]["asks"].mean
        0.5
    """
    if not isinstance(getattr(own, "metrics", None), dict):
        raise SettingError(f"{type(own).__name__} has no dict of lists `metrics`; make it in __init__")
    lock = Lock()  # the lists are shared by all names, and rows may be scored by several threads

    def make(name: str) -> Callable[..., Any]:
        def score(response: str, reference: str | None = None, context: Sequence[str] = ()) -> Any:
            words = response.split()
            with lock:
                for values in own.metrics.values():
                    values.clear()
                own.update_metrics(
                    words, words if reference is None else reference.split(), context[-1].split() if context else words
                )
                values = own.metrics[name]
                if len(values) > 1:
                    raise ValueError(f"{name} got {len(values)} values for one response")
                return values[0] if values else None

        update = type(own).update_metrics
        attributes = {"__module__": update.__module__, "__qualname__": f"{update.__qualname__}.{name}", "__doc__": None}
        # The signature of the metric names the source of `update_metrics`.
        for key, value in {"__signature__": inspect.signature(score), "__wrapped__": update, **attributes}.items():
            setattr(score, key, value)
        return metric_of_rows(name)(score)

    return {name: make(name) for name in own.metrics}
