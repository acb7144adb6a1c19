"""Inform and Success as rates of dialogues, in all and by domain."""

from __future__ import annotations

from dialeval.suites.multiwoz.metrics import DialogueRate, Inform, Success
from laws.task import WORLD, Row
from laws.worlds import Place


def means(metric: DialogueRate, rows: list[Row]) -> dict[str, tuple[float, int]]:
    estimates = metric.finish(Place(WORLD, rows).scored(metric, rows).state)
    return {key: (estimate.mean, estimate.scored) for key, estimate in estimates.items()}


def test_a_dialogue_without_turns_is_judged_unless_what_is_missing_failed() -> None:
    rows = [Row("d1", None, listed=True), Row("d3", None, listed=True), Row("d2", None)]
    # d1 wants an inn, d3 only a phone number: without a turn it has no offer to fail.
    assert means(Inform(), rows)["inform"] == (50, 2)
    assert means(Success(), rows)["success"] == (0, 2)
    metric = Inform(missing="failed")
    assert means(metric, rows)[metric.name] == (0, 3)
