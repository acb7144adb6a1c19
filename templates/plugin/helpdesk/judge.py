"""A judge of tone, by words; a learned one would load its weights in `__init__`."""

from collections.abc import Sequence

from dialeval.plugin import Floats

_KIND = ("please", "thank", "sorry", "glad")


class ToneJudge:
    """Hears how kind a reply is, from 0 to 1. It is a `dialeval.plugin.Judge`."""

    digest = "tone-1"

    def score(
        self, contexts: Sequence[Sequence[str]], responses: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Floats | Sequence[float]:
        """Return one score per reply, NaN for an empty one."""
        return [
            min(1.0, sum(word in text.lower() for word in _KIND) / 2) if text else float("nan") for text in responses
        ]
