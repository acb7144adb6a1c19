"""The sample that ships with dialeval: an invented town's conversations, three systems that answer in them.

Everything runs on it without a download. What each file holds is said in `README.md` beside this file.
"""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """Return the folder of the sample data.

    Returns:
        The folder, in the installed package.

    Examples:
        >>> from dialeval import sample_data
        >>> sorted(path.name for path in (sample_data.folder() / "responses").iterdir())
        ['careful.txt', 'chatty.txt', 'generic.txt']
    """
    return Path(__file__).resolve().parent
