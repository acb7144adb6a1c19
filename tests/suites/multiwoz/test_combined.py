"""The combined score is made of the very figures of Inform, Success and BLEU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dialeval.core.arrays import Floats
from dialeval.core.fold import Estimate, Metric
from dialeval.metrics.bleu_counts import corpus_bleu
from dialeval.metrics.counting import Missing, corpus_error, sum_by_dialogue
from dialeval.suites.multiwoz.metrics import Combined, Inform, Success, TaskBleu, combined_score
from laws.task import WORLD, Row
from laws.worlds import Place

ROWS = [
    Row("d1", "[name] is lovely, call [phone]."),
    Row("d1", "[name] is nice, call someone."),
    Row("d2", "the code is [code], don't lose it.", 2),
    Row("d3", None),
    Row("d1", None, listed=True),
]


def value(metric: Metric[Any], rows: list[Row]) -> Estimate:
    return metric.finish(Place(WORLD, rows).scored(metric, rows).state)[metric.name]


def test_by_hand() -> None:
    assert combined_score(60.0, 40.0, 18.5) == 68.5


@pytest.mark.parametrize("missing", ["ignored", "failed"])
def test_half_of_inform_and_success_plus_bleu(missing: Missing) -> None:
    parts: list[Metric[Any]] = [Inform(missing=missing), Success(missing=missing), TaskBleu(missing=missing)]
    inform, success, bleu = (value(metric, ROWS).mean for metric in parts)
    assert 0 < success < inform
    assert 0 < bleu < 100
    found = value(Combined(missing=missing), ROWS)
    assert found.mean == (inform + success) / 2 + bleu
    assert (found.corpus, found.std) == (True, 0)
    assert (found.units, found.scored) == (5, 3 if missing == "ignored" else 5)


def test_its_contributions_are_those_of_bleu_and_one_line_of_rates_per_dialogue() -> None:
    contributions = Place(WORLD, ROWS).scored(Combined(), ROWS).contributions
    bleu = Place(WORLD, ROWS).scored(TaskBleu(), ROWS).contributions
    assert contributions["task-bleu/mwz22/ignored"] == bleu["task-bleu/mwz22/ignored"]
    rates = contributions["task-rates/file/ignored/historical"]
    assert rates.values.tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]]  # type: ignore[union-attr]


MORE = [*ROWS, Row("d1", "[name] is lovely."), Row("d2", "[name] is [code], don't lose it.")]


def plain_score(counts: Floats) -> Floats:
    """Half of both rates plus BLEU, of dialogues, those informed, those that succeeded and the counts of BLEU."""
    return np.array([50 * (line[1] + line[2]) / line[0] + corpus_bleu(line[None, 3:])[0] for line in counts])


@pytest.mark.parametrize("rows", [MORE, ROWS, [*ROWS[:1], *ROWS[2:3], Row("d1", None)]])
@pytest.mark.parametrize("missing", ["ignored", "failed"])
def test_its_error_is_that_of_the_formula_over_dialogues(missing: Missing, rows: list[Row]) -> None:
    metric = Combined(missing=missing)
    contributions = Place(WORLD, rows).scored(metric, rows).contributions
    rates = contributions[f"task-rates/file/{missing}/historical"].values  # type: ignore[union-attr]
    scored, *counts = contributions[f"task-bleu/mwz22/{missing}"].values.T  # type: ignore[union-attr]
    together = np.column_stack((rates, *counts)).astype(np.int64)
    clusters = sum_by_dialogue(together, scored == 1, np.arange(len(rows) + 1))
    found, expected = value(metric, rows).error, corpus_error(plain_score, together.sum(axis=0).tolist(), clusters)
    assert found is not None
    assert expected is not None
    assert found.error == pytest.approx(expected.error, rel=1e-12)
    assert replace(found, error=expected.error) == expected
