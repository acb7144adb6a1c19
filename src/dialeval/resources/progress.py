"""How long work reports its progress: it calls a function of this form, if it was given one."""

from collections.abc import Callable

Progress = Callable[[int, int | None], None]
"""Called with how much is done so far and how much there is in all; None where that is not known.

The unit is the caller's: bytes of a download, epochs or steps of a training.
"""
