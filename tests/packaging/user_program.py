"""A program of a user, which type checkers read and nobody runs."""

from __future__ import annotations

from pathlib import Path

import dialeval
from dialeval.engine import Processes
from dialeval.plugin import Batch, Floats, RowMetric, inputs


class Shouting(RowMetric):
    """A metric of a user's own."""

    family = "shouting"
    needs = frozenset({inputs.RESPONSE})
    better = "lower"

    def score(self, batch: Batch) -> Floats:
        raise NotImplementedError


@dialeval.metric_of_rows("polite", better="higher", bounds=(0, 1))
def polite(response: str, channel: str = "web") -> bool:
    return "please" in response


def compare(folder: Path) -> str:
    reading = dialeval.Reading(invalid="skip", roles={"shopper": "user"})
    execution = dialeval.Execution(engine=Processes(4), row_scores=True)
    run = dialeval.evaluate(
        {"old": folder / "old.jsonl", "new": folder / "new.jsonl"},
        metrics=["default", polite, Shouting(), "score:csat(range=1:5)"],
        keep="channel",
        reading=reading,
        execution=execution,
    )
    estimate: dialeval.Estimate = run["new"]["polite"]
    low, high = estimate.interval or (0.0, 1.0)
    scores = estimate.scores
    mean = 0.0 if scores is None else float(scores.mean())
    comparison = dialeval.compare(run, baseline="old")
    worse = [each.key for each in comparison.differences if each.significant]
    test = dialeval.run_sequential_test(run)
    tally = dialeval.make_tally("length", execution=execution)
    tally.update(["yes"], ["yes please"])
    return f"{comparison.verdict.headline} {low + high + mean} {worse} {test.unit} {tally.compute()['length'].units}"
