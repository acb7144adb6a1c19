"""Needs: every one of them can be given by an argument and by an option."""

from __future__ import annotations

import pytest

from dialeval.core.batch import Need


@pytest.mark.parametrize("need", Need)
def test_every_need_says_how_it_is_given(need: Need) -> None:
    assert need.argument in need.remedy
    assert need.flag in need.remedy
    assert str(need) == need.value


def test_the_remedy_names_both_ways() -> None:
    assert Need.TRAIN.remedy == "needs train: --train on the command line, train=... in Python"
