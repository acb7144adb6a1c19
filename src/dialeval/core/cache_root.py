"""Where the user's cache folder is: `DIALEVAL_CACHE`, else the platform's usual place."""

from __future__ import annotations

import os
from pathlib import Path

from dialeval.core.errors import SettingError


def cache_root() -> Path:
    """Return the folder, whether it exists or not; SettingError where there is no home folder to keep it in."""
    if own := os.environ.get("DIALEVAL_CACHE"):
        try:
            return Path(own).expanduser().absolute()
        except RuntimeError:
            raise SettingError(f"DIALEVAL_CACHE={own!r} names the home folder of a user who is not there") from None
    from platformdirs import user_cache_path

    usual = user_cache_path("dialeval", appauthor=False)
    if not usual.is_absolute():
        raise SettingError("there is no home folder to keep the cache in; set DIALEVAL_CACHE to a folder")
    return usual
