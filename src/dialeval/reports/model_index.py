"""A run as the `model-index` of a model card on the Hugging Face Hub: YAML to put between the `---` of its README.md.

Each system is a model. A metric has its signature, its interval and the numbers of rows under `args`. A run does not
know what its data are called: the dataset is named by its rows, and by the digests of references and contexts that
stand in the signatures, to be replaced by the name under which others find it.

Texts are written as JSON strings, which are YAML; what would end a line is written out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dialeval.reports.figures import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dialeval.core.fold import Estimate
    from dialeval.core.result import Result, Run

_DATA = ("reference", "context")
"""Fields of signatures that hold digests of the data."""


def to_model_index(run: Run) -> str:
    """The metadata of every system but floors and ceilings; metrics that have no value are left out."""
    models = [_model(name, result) for name, result in run.items() if result.role == "system"]
    return "\n".join(["model-index:", *(line for model in models for line in _listed(model)), ""])


def _model(name: str, result: Result) -> dict[str, Any]:
    by_rows: dict[int, list[tuple[str, Estimate]]] = {}
    for key, estimate in result.items():
        if math.isfinite(estimate.mean):
            by_rows.setdefault(estimate.rows, []).append((key, estimate))
    results = [
        {
            "task": {"type": "text-generation", "name": "dialogue response generation"},
            "dataset": {"type": "custom", "name": _dataset(rows, [estimate for _, estimate in of_rows])},
            "metrics": [_metric(key, estimate) for key, estimate in of_rows],
        }
        for rows, of_rows in by_rows.items()
    ]
    return {"name": name, "results": results}


def _dataset(rows: int, estimates: list[Estimate]) -> str:
    signatures = [estimate.signature for estimate in estimates if estimate.signature is not None]
    found = {name: each[name] for name in _DATA for each in signatures if name in each}
    level = f"{estimates[0].level}s"
    return ", ".join([f"{rows} {level}", *(f"{name} {digest}" for name, digest in found.items())])


def _metric(key: str, estimate: Estimate) -> dict[str, Any]:
    family = key.split("(", maxsplit=1)[0] if estimate.signature is None else estimate.signature.metric.split("(")[0]
    low, high = estimate.interval or (None, None)
    args = {
        "signature": None if estimate.signature is None else str(estimate.signature),
        "low": low,
        "high": high,
        "rows": estimate.rows,
        "scored": estimate.scored,
    }
    known = {name: value for name, value in args.items() if value is not None}
    return {"type": family, "name": key, "value": estimate.mean, "args": known}


def _lines(value: Mapping[str, Any]) -> Iterator[str]:
    for name, inside in value.items():
        if isinstance(inside, dict):
            yield f"{name}:"
            yield from (f"  {line}" for line in _lines(inside))
        elif isinstance(inside, list):
            yield f"{name}:" if inside else f"{name}: []"
            yield from (line for item in inside for line in _listed(item))
        else:
            yield f"{name}: {_scalar(inside)}"


def _listed(value: Mapping[str, Any]) -> Iterator[str]:
    first, *rest = _lines(value)
    yield f"- {first}"
    yield from (f"  {line}" for line in rest)


def _scalar(value: str | float) -> str:
    if isinstance(value, str):
        import orjson

        return orjson.dumps(plain(value)).decode()
    shown = repr(value)
    # YAML 1.1 takes 1e-05 for a text.
    return shown.replace("e", ".0e") if "e" in shown and "." not in shown else shown
