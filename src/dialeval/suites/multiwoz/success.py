"""Success: the share of dialogues with the right offers in which every request was answered, in percent.

    success = 100 * dialogues that match in every domain and in which every requested word was told / dialogues

A dialogue that does not match in every domain (Inform) fails in all of them, so that a domain's value depends on the
other domains too. By domain `success/hotel` and so on. `suites/multiwoz/turns.py` says when a word counts as told.

Papers: as for Inform.

The same as in the MultiWOZ evaluation, dialogue by dialogue; settings and edge cases as for Inform.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialeval.suites.multiwoz.inform import Rate
from dialeval.suites.multiwoz.turns import Verdict


@dataclass(frozen=True)
class Success(Rate):
    """Share of dialogues with the right offers in which every request was answered, in percent."""

    family = "success"
    presets = {"success": {}}

    def holds(self, verdict: Verdict, domain: str | None) -> bool:
        return verdict.success if domain is None else verdict.inform and verdict.complete[domain]
