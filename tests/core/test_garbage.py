from __future__ import annotations

import gc

import pytest

from dialeval.core.arrays import without_garbage_collection


def test_it_is_as_before_behind_it() -> None:
    assert gc.isenabled()
    with pytest.raises(KeyError), without_garbage_collection():
        assert not gc.isenabled()
        with without_garbage_collection():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
