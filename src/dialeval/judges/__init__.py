"""Judges that were fitted to human ratings, with their training, and language models as judges.

This is the only folder that imports PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.judges.llm.judge import LLM, Panel

__all__ = ["LLM", "Panel"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'dialeval.judges' has no attribute {name!r}")
    from dialeval.judges.llm import judge

    return getattr(judge, name)
