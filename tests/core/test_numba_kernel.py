"""What numba compiles for kernels: code without Python, and nothing that allocates."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import NumbaError

from dialeval.core.numba_kernel import compiled, njit


def test_the_code_of_a_function() -> None:
    @njit()
    def logs(values, found):  # type: ignore[no-untyped-def]
        for place in range(len(values)):
            found[place] = np.log(values[place])
        return len(values), values[0]

    code = compiled(logs, (np.ones(3), np.ones(3)))
    assert (list(code.returns), code.returns_tuple) == (["int64", "float64"], True)
    assert code.needs == [], "logarithms are in the library of every C compiler"
    assert code.content.startswith(b"\x7fELF") or len(code.content) > 100
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert "readonly" not in compiled(logs, (frozen, np.ones(3))).symbol, "one kernel for both kinds of arrays"


def test_a_kernel_allocates_nothing() -> None:
    @njit()
    def zeros(size):  # type: ignore[no-untyped-def]
        return np.zeros(size)[0]

    with pytest.raises(NumbaError, match="Only accept returning of array passed into the function"):
        compiled(zeros, (3,))
