"""Runs that an earlier version saved are read, and evaluating the same inputs again gives the same digits.

The runs in `saved_runs/` are those of the shipped sample, made by the version before the engine had one route, from
inside the sample's folder. They still call contributions `statistics` and know anchors by their names. Everything that
they hold is there again and equal; what has changed on purpose is listed here, and a new run may hold more metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval import sample
from dialeval.analysis.comparison import compare
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.fold import DEFAULT_T, Estimate
from dialeval.core.result import Result, Run, load
from dialeval.engine.breakdown import with_curves
from dialeval.metrics.registry import GROUPS
from dialeval.multiwoz import Evaluator

SAVED = Path(__file__).parent / "saved_runs"
REDEFINED = {
    "inform",
    "success",
    "joint-accuracy",
    "slot-f1",
    "slot-precision",
    "slot-recall",
    "mds",
    "pds",
    "max-bleu",
}
"""Metrics that read some inputs (none of the sample's) in another way than when the runs were saved."""
OTHER_DEFAULT = {"oov": "unk", "definition": "2"}
"""What the signatures of metrics say now of which the group `dialog-eval` has not the defaults."""
OTHER_WORDS = {
    "what is missing costs nothing, as in the original; --strict counts it as failed": (
        "as in the original, missing dialogues are left out; "
        "--strict counts dialogues without a turn as failed and missing turns as empty"
    )
}
"""What a warning said -> what it says now."""


def responses() -> Run:
    texts = ("responses", "references.txt", "contexts.txt")
    there = list(load(SAVED / "responses")["careful"])  # warnings about anchors name every metric of a run
    chosen = list(dict.fromkeys("dialog-eval" if name in GROUPS["dialog-eval"] else name for name in there))
    given: dict[str, Any] = {"train": "train.txt", "embeddings": "vectors.txt", "metrics": chosen}
    return dialeval.evaluate(*texts, **given, anchors=True, intervals="rows")


def breakdown() -> Run:
    talks = Path("breakdown")
    return with_curves(evaluate_breakdown(talks / "data", [talks / "keywords", talks / "cautious"], intervals="rows"))


def town() -> Run:
    evaluator, predictions = Evaluator(data="town", dst=True), Path("town/predictions")
    return evaluator.with_transcripts(evaluator.run(predictions, intervals="rows"), predictions)


def lsdscc() -> Run:
    groups = Path("lsdscc/groups.json")
    systems = {name: Path(f"lsdscc/{name}.txt") for name in ("varied", "safe")}
    return dialeval.evaluate(systems, reference_groups=groups, intervals="rows")


@pytest.mark.parametrize("make", [responses, breakdown, town, lsdscc], ids=lambda make: make.__name__)
def test_an_old_run_equals_a_new_one(make: Callable[[], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sample.folder())
    old, new = load(SAVED / make.__name__), make()
    assert list(old) == list(new)
    for name, result in old.items():
        now = {key: _as_now(key, estimate, new[name][key]) for key, estimate in result.items()}
        before = replace(result, estimates=now)
        assert before == _without_more(new[name], result), name
    assert tuple(_in_other_words(line) for line in old.warnings) == new.warnings
    assert _without_roles(old) == _as_before(new)


def _as_now(key: str, estimate: Estimate, now: Estimate) -> Estimate:
    """An old estimate with the definition that its metric has now, and without an interval of a single row."""
    if estimate.analytic is not None:
        estimate = replace(estimate, analytic=replace(estimate.analytic, t=DEFAULT_T))
    if estimate.scored == 1:
        assert estimate.interval in (None, (estimate.mean, estimate.mean))
        estimate = replace(estimate, interval=None, analytic=None)
    assert estimate.signature is not None
    assert now.signature is not None
    if now.signature.get("oov"):
        changed = now.signature.differences(estimate.signature).items()
        assert {field: values[0] for field, values in changed if field != "metric"}.items() <= OTHER_DEFAULT.items()
        return replace(estimate, signature=now.signature)
    if key.split("/", maxsplit=1)[0] not in REDEFINED:
        return estimate
    assert estimate.signature["definition"] == "1"
    return replace(estimate, signature=estimate.signature.with_fields(definition=2))


def _without_more(new: Result, old: Result) -> Result:
    """A new result without what the old one does not have: some metrics, and fields and digests of rows."""
    estimates = {key: estimate for key, estimate in new.items() if key in old}
    contributions = {name: each for name, each in new.contributions.items() if name in old.contributions}
    rows = new.rows
    if old.rows is not None and rows is not None:
        rows = replace(rows, fields=old.rows.fields, digests=old.rows.digests)
    return replace(new, estimates=estimates, contributions=contributions, rows=rows)


def _in_other_words(warning: str) -> str:
    for before, now in OTHER_WORDS.items():
        warning = warning.replace(before, now)
    return warning


def _without_roles(run: Run) -> dict[str, Any]:
    """The details of an old run but for the roles of anchors, which stand on the results now."""
    details = dict(run.details)
    if "anchors" in details:
        details["anchors"] = {name: value for name, value in details["anchors"].items() if name != "systems"}
    return details


def _as_before(run: Run) -> dict[str, Any]:
    """The details of a new run without what old ones did not hold: what people said, and how often a cause lost.

    Curves stand in the order of the data again, which is that of their names; now the most contested ones come first.
    """
    details = {name: value for name, value in run.details.items() if name != "failures"}
    for system, entries in details.get("transcripts", {}).items():
        turns = [[{key: turn[key] for key in turn if key != "user"} for turn in entry["turns"]] for entry in entries]
        kept = [{**entry, "turns": mine} for entry, mine in zip(entries, turns, strict=True)]
        details["transcripts"] = {**details["transcripts"], system: kept}
    for system, curves in details.get("curves", {}).items():
        kept = [{key: curve[key] for key in curve if key != "said"} for curve in curves]
        details["curves"] = {**details["curves"], system: sorted(kept, key=lambda curve: str(curve["dialogue"]))}
    return details


def test_an_old_run_is_compared(tmp_path: Path) -> None:
    old = load(SAVED / "responses")
    assert set(compare(old, metrics=["bleu-4"]).systems) | {"careful"} == {"careful", "chatty", "generic"}
    again = load(old.save(tmp_path))
    assert again == old
    assert replace(again, details={}) == replace(old, details={})
