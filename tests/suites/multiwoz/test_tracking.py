from __future__ import annotations

import pytest

from dialeval.suites.multiwoz.metrics import Tracking, make_state_comparison
from laws.task import ONTOLOGY, WORLD, Row
from laws.worlds import Place


def values(rows: list[Row], **settings: str) -> dict[str, float]:
    found = {}
    for name, preset in Tracking.presets.items():
        metric = Tracking(**{**preset, **settings})  # type: ignore[arg-type]
        found[name] = metric.finish(Place(WORLD, rows).scored(metric, rows).state)[metric.name].mean
    return found


def test_by_hand() -> None:
    # d1 is right; of d2 the inn's name is too much and its day has another name, area, bookday and leave are missing.
    found = values([Row("d1", "x", 1), Row("d2", "x", 3)])
    assert found["joint-accuracy"] == 50
    assert found["slot-precision"] == pytest.approx(1 / 3)
    assert found["slot-recall"] == pytest.approx(1 / 4)
    assert found["slot-f1"] == pytest.approx(100 * 2 / 7)


def test_booking_slots_unified() -> None:
    found = values([Row("d1", "x", 1), Row("d2", "x", 3)], booking="unified")
    assert found["slot-precision"] == pytest.approx(2 / 3)
    assert found["slot-recall"] == pytest.approx(2 / 4)


def test_part_of_a_value_agrees() -> None:
    compare = make_state_comparison(ONTOLOGY, Tracking())
    assert compare({"inn": {"people": "1"}}, {"inn": {"people": "10"}}) == (1, 0, 0)
    assert compare({"inn": {"people": "2"}}, {"inn": {"people": "10"}}) == (0, 1, 1)
    assert compare({}, {}) == (0, 0, 0)


@pytest.mark.parametrize(
    ("here", "there", "counts"), [("", "", (1, 0, 0)), ("", "hill", (0, 1, 1)), ("hill", "", (0, 1, 1))]
)
def test_an_empty_value_agrees_with_another_empty_one_alone(
    here: str, there: str, counts: tuple[int, int, int]
) -> None:
    for threshold in (95, 100):
        compare = make_state_comparison(ONTOLOGY, Tracking(threshold=threshold))
        assert compare({"inn": {"area": here}}, {"inn": {"area": there}}) == counts
