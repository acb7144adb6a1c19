"""PyTorch on one thread: its threads cost more than they bring for models of a few numbers."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    asked = any(item.get_closest_marker("torch") for item in request.session.items)
    if not asked or find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
