"""How many ratings a width takes: the formula turned round, and what a pilot says."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest

import dialeval
from analysis.rated_runs import ratings_of, run_of
from dialeval.analysis.people import plan_from_pilot, plan_ratings
from dialeval.core.errors import SettingError

Z = NormalDist().inv_cdf(0.975)


@pytest.mark.parametrize(("rows", "r"), [(1000, 0.0), (1000, 0.6), (200_000, 0.9)])
def test_as_many_as_the_formula_says(rows: int, r: float) -> None:
    (needed,) = plan_ratings({"a": rows}, 0.3, spread=1.2, agreement=r).needed

    def width(n: int, r: float) -> float:
        return 2 * Z * 1.2 / math.sqrt(n) * math.sqrt(1 - r * r * (1 - n / rows))

    assert needed.with_judge is not None
    assert needed.alone is not None
    assert width(needed.with_judge, r) <= 0.3 < width(needed.with_judge - 1, r)
    assert width(needed.alone, 0) <= 0.3 < width(needed.alone - 1, 0)
    assert needed.with_judge <= needed.alone


def test_a_width_that_all_rows_would_not_give() -> None:
    plan = plan_ratings({"a": 100, "b": 10_000}, 0.1)
    assert [(each.with_judge, each.alone) for each in plan.needed] == [(None, None), (1199, 1537)]
    assert any("0.5" in sentence for sentence in plan.assumptions)
    assert plan.to_dict()["needed"][0] == {"what": "a", "of": 100, "with_judge": None, "alone": None}


def test_a_pilot_says_what_more_ratings_would_give() -> None:
    run, opinions = run_of(dialogues=2000, turns=2, systems={"a": 3.0, "b": 3.2})
    rows = dict.fromkeys("ab", 4000)
    pilot = dialeval.draw(run, 200)
    found = [
        dialeval.estimate(run, ratings_of(pilot, opinions), by="judge", sample=pilot, of="dialogues"),
        dialeval.estimate(run, ratings_of(pilot, opinions), by="judge", sample=pilot, of="run"),
    ]
    plan = plan_from_pilot(found[0], found[1], rows, 0.2)
    assert [each.what for each in plan.needed] == ["a", "b", "b - a"]
    for each in plan.needed:
        assert each.with_judge is not None
        assert each.alone is not None
        assert each.with_judge < each.alone
        # The pilot's word is kept: so many ratings give about that width.
        number = each.with_judge * (1 if " - " in each.what else 2)
        more = dialeval.draw(run, number, seed=2)
        then = dialeval.estimate(run, ratings_of(more, opinions), by="judge", sample=more)
        figure = then.differences[0] if " - " in each.what else then[each.what]
        assert figure.interval[1] - figure.interval[0] == pytest.approx(0.2, rel=0.15)


@pytest.mark.parametrize("settings", [{"width": 0.0}, {"width": math.nan}, {"spread": 0.0}, {"agreement": 2.0}])
def test_what_cannot_be_planned(settings: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        plan_ratings({"a": 100}, **{"width": 0.1, **settings})
