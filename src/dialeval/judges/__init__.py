"""Judges that were fitted to human ratings, with their training, and language models as judges.

This is the only folder that imports PyTorch.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.judges.llm.judge import LLM, Panel

__all__ = ["LLM", "Panel"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return resolve_name(f"dialeval.judges.llm.judge:{name}")
    raise AttributeError(f"module 'dialeval.judges' has no attribute {name!r}")
