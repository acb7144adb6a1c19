"""Show defaults that are constants by their values: `alpha: float = 0.05`, not `= DEFAULT_ALPHA`. For griffe."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import griffe


class ConstantDefaults(griffe.Extension):
    """Replaces names of constants by their values, where these are numbers or texts."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Look at the parameters of a function."""
        for parameter in func.parameters:
            name = str(parameter.default)
            if name.isupper() and name.isidentifier():
                value = getattr(import_module(func.module.path), name)
                if isinstance(value, int | float | str):
                    parameter.default = repr(value)
