"""What all tests share: hypothesis without deadlines, and the place of the golden data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A first call compiles kernels, so a deadline would measure the compiler. On CI the examples are the same every time.
settings.register_profile("dialeval", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("dialeval")

SHARED_DATA = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real inputs with the originals' outputs; tests that need it are skipped where it is not."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the golden data (../shared/data beside the checkout) is not here")
    return SHARED_DATA
