from __future__ import annotations

import numpy as np
import pytest

from dialeval.analysis import draws as module
from dialeval.analysis.draws import draws, percentiles


def test_every_resample_takes_as_many_clusters_as_there_are() -> None:
    counts = np.concatenate(list(draws(7, resamples=50)))
    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()


def test_the_seed_and_not_the_chunks_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(draws(5, resamples=40, seed=3)))
    monkeypatch.setattr(module, "_CHUNK_CELLS", 15)
    assert np.array_equal(np.concatenate(list(draws(5, resamples=40, seed=3))), whole)
    assert not np.array_equal(np.concatenate(list(draws(5, resamples=40, seed=4))), whole)


def test_clusters_are_drawn_evenly() -> None:
    counts = np.concatenate(list(draws(20, resamples=5000)))
    assert counts.mean(axis=0) == pytest.approx(np.ones(20), abs=0.06)
    assert counts.var() == pytest.approx(1 - 1 / 20, rel=0.03)  # the variance of a multinomial's cell


def test_percentiles_leave_unknown_values_out() -> None:
    values = np.array([np.nan, *np.arange(101.0)])
    assert percentiles(values, 0.9) == pytest.approx((5, 95))
    assert np.isnan(percentiles(np.array([np.nan]))).all()


def test_no_clusters_give_empty_resamples() -> None:
    assert np.concatenate(list(draws(0, resamples=3))).shape == (3, 0)
