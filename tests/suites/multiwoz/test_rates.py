"""Inform and Success as rates of dialogues, in all and by domain."""

from __future__ import annotations

import math

from dialeval.suites.multiwoz.metrics import DialogueRate, Inform, Success
from laws.task import WORLD, Row
from laws.worlds import Place

ROWS = [
    Row("d1", "[name] is nice, call [phone]."),
    Row("d1", "[name] is nice."),
    Row("d2", "[name]: [code]", 2),  # the harbour inn costs 5, the goal says at most 4
    Row("d3", None),
]


def means(metric: DialogueRate, rows: list[Row]) -> dict[str, tuple[float, int]]:
    estimates = metric.finish(Place(WORLD, rows).scored(metric, rows).state)
    return {key: (estimate.mean, estimate.scored) for key, estimate in estimates.items()}


def test_in_all_and_by_domain() -> None:
    assert means(Inform(), ROWS) == {
        "inform": (200 / 3, 3),
        "inform/cart": (100, 1),
        "inform/inn": (200 / 3, 3),
    }
    # The domain cart is complete in d2, but the dialogue did not match.
    assert means(Success(), ROWS) == {
        "success": (100 / 3, 3),
        "success/cart": (0, 1),
        "success/inn": (100 / 3, 3),
    }


def test_missing_dialogues_may_count_as_failed() -> None:
    metric = Inform(missing="failed")
    found = means(metric, ROWS)
    assert found[metric.name] == (50, 4)
    assert found[f"{metric.name}/cart"] == (50, 2)


def test_a_dialogue_without_turns_is_judged_unless_what_is_missing_failed() -> None:
    rows = [Row("d1", None, listed=True), Row("d3", None, listed=True), Row("d2", None)]
    # d1 wants an inn, d3 only a phone number: without a turn it has no offer to fail.
    assert means(Inform(), rows)["inform"] == (50, 2)
    assert means(Success(), rows)["success"] == (0, 2)
    metric = Inform(missing="failed")
    assert means(metric, rows)[metric.name] == (0, 3)


def test_an_item_is_a_dialogue() -> None:
    items = Place(WORLD, ROWS).scored(Success(), ROWS).items
    assert items["success"][:3].tolist() == [100, 0, 0]
    assert math.isnan(items["success"][3])
    assert math.isnan(items["success/cart"][0])


def test_no_dialogue_at_all() -> None:
    assert means(Inform(), [Row("d1", None)])["inform"][1] == 0
