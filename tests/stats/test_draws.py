"""Draws of clusters: how often each is taken, and that only the seed decides."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.stats import resampling as module
from dialeval.stats.resampling import check_resampling, draw_resamples, draw_swaps, has_all_swaps, percentiles


def test_every_resample_takes_as_many_clusters_as_there_are() -> None:
    counts = np.concatenate(list(draw_resamples(7, resamples=50)))
    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()


def test_the_seed_and_not_the_chunks_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(draw_resamples(5, resamples=40, seed=3)))
    monkeypatch.setattr(module, "_CHUNK_CELLS", 15)
    assert np.array_equal(np.concatenate(list(draw_resamples(5, resamples=40, seed=3))), whole)
    assert not np.array_equal(np.concatenate(list(draw_resamples(5, resamples=40, seed=4))), whole)


def test_clusters_are_drawn_evenly() -> None:
    counts = np.concatenate(list(draw_resamples(20, resamples=5000)))
    assert counts.mean(axis=0) == pytest.approx(np.ones(20), abs=0.06)
    assert counts.var() == pytest.approx(1 - 1 / 20, rel=0.03)  # the variance of a multinomial's cell


def test_percentiles_leave_unknown_values_out() -> None:
    values = np.array([np.nan, *np.arange(101.0)])
    assert percentiles(values, 0.9) == pytest.approx((5, 95))
    assert np.isnan(percentiles(np.array([np.nan]))).all()


def test_no_clusters_give_empty_resamples() -> None:
    assert np.concatenate(list(draw_resamples(0, resamples=3))).shape == (3, 0)


def test_swaps_exchange_half_of_the_clusters_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(draw_swaps(11, 2000, 3)))
    assert set(np.unique(whole)) == {0, 1}
    assert whole.mean() == pytest.approx(0.5, abs=0.02)
    monkeypatch.setattr(module, "_KEPT_CELLS", 0)
    monkeypatch.setattr(module, "_CHUNK_CELLS", 35)
    chunks = list(draw_swaps(11, 2000, 3))
    assert {len(chunk) for chunk in chunks} == {3, 2}
    assert np.array_equal(np.concatenate(chunks), whole)


def test_where_there_are_few_exchanges_each_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_all_swaps(10, 1023)
    assert not has_all_swaps(10, 1022)
    assert not has_all_swaps(10_000, 10**6)
    assert has_all_swaps(62, 2**62 - 1)
    assert not has_all_swaps(63, 2**64)
    monkeypatch.setattr(module, "_KEPT_CELLS", 0)
    for cells in (1 << 21, 20):
        monkeypatch.setattr(module, "_CHUNK_CELLS", cells)
        every = np.concatenate(list(draw_swaps(4, 15, seed=3)))
        assert sorted(map(tuple, every.tolist())) == list(product((0, 1), repeat=4))[1:], (
            "nothing exchanged is left out"
        )


@pytest.mark.parametrize(("level", "resamples"), [(0.0, 10), (1.0, 10), (0.95, 0), (0.95, 2**63)])
def test_settings_that_make_no_interval_are_refused(level: float, resamples: int) -> None:
    check_resampling(0.95, 1)
    with pytest.raises(SettingError):
        check_resampling(level, resamples)


def test_seeds_are_not_negative() -> None:
    for draw in (draw_resamples(3, 2, -1), draw_swaps(70, 2, -1)):
        with pytest.raises(SettingError, match="a seed is 0 or more, not -1"):
            next(draw)
    assert next(draw_resamples(3, 2, 0)).shape == (2, 3)
