from __future__ import annotations

import pytest

from dialeval.core.errors import add_warning


def test_where_nobody_asks_it_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="guessed"):
        add_warning("guessed")
