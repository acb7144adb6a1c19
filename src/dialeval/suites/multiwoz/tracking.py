"""State tracking: how well the states that a system predicts agree with the true ones, turn by turn.

Over (domain, slot) of the normalized states; a value agrees if its partial ratio with the true one is above 95:

    joint-accuracy = 100 * turns with the same slots, all of which agree / turns
    slot-precision = tp / (tp + fp),  slot-recall = tp / (tp + fn),  slot-f1 = 100 * 2 P R / (P + R)

with tp slots that agree, fp slots that are not in the true state or do not agree, fn slots that are missing or do not
agree, over all turns together. Joint accuracy and F1 are percentages, precision and recall are fractions, and 1e-10 is
added to every divisor, as in the MultiWOZ evaluation.

Paper: Williams et al. 2013, "The Dialog State Tracking Challenge", SIGDIAL.

The same as in the MultiWOZ evaluation, which takes booking slots for other slots where one side writes `bookday` and
the other `day`; `booking=unified` makes them one. The original also scores systems without states, against true states
that it has written into its input before. Here a state in every turn is needed.

Edge cases: any part of a value agrees with it ("1" with "10"), but an empty value only with another empty one. Turns
that the system does not give are not scored, unless `missing=failed`: then they are empty states. A turn's item is the
value of its own counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch, Need
from dialeval.core.errors import SettingError
from dialeval.core.fold import Bounds
from dialeval.metrics.counting import CountMetric, Flags, Missing
from dialeval.suites.multiwoz.data import TrueStates
from dialeval.suites.multiwoz.ontology import Ontology
from dialeval.suites.multiwoz.states import State
from dialeval.text.similarity import Ratio, partial_ratio

Of = Literal["joint", "f1", "precision", "recall"]
Booking = Literal["apart", "unified"]
TINY = 1e-10
"""Added to every divisor."""

Slots = dict[tuple[str, str], str]


@dataclass(frozen=True)
class Tracking(CountMetric):
    """How well predicted states agree with the true ones."""

    family = "state-tracking"
    presets = {
        "joint-accuracy": {"of": "joint"},
        "slot-f1": {"of": "f1"},
        "slot-precision": {"of": "precision"},
        "slot-recall": {"of": "recall"},
    }
    subject = Need.STATES
    needs = frozenset({Need.STATES, Need.TRUE_STATES, Need.ONTOLOGY})
    better = "higher"
    definition = 2  # 1 took an empty value for part of every other

    of: Of = "joint"
    booking: Booking = "apart"
    missing: Missing = "ignored"
    ratio: Ratio = "historical"
    threshold: float = 95.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.threshold <= 100:
            raise SettingError(f"the threshold of the partial ratio must be between 0 and 100, not {self.threshold}")

    @property
    def bounds(self) -> Bounds:
        return (0.0, 1.0 if self.of in ("precision", "recall") else 100.0)

    @property
    def of_corpus(self) -> bool:
        return self.of != "joint"

    @property
    def width(self) -> int:
        return 3 if self.of_corpus else 1

    @property
    def contribution(self) -> str:
        return f"slots/{self.booking}/{self.missing}/{self.ratio}/{self.threshold}"

    def row_counts(self, batch: Batch) -> tuple[Ints, Flags]:
        """Slots that agree, are wrong and are missing; for joint accuracy whether the whole turn is right."""
        true: TrueStates = batch.resource(Need.TRUE_STATES)
        ontology: Ontology = batch.resource(Need.ONTOLOGY)
        rows = batch.objects(Need.STATES)

        def make() -> Ints:
            compare = _Comparison(ontology, self.booking, self.ratio, self.threshold)
            counts = [
                compare(row["state"] or {}, true.states[row["dialogue"]][row["turn"]])
                if row["response"] is not None or self.missing == "failed"
                else (-1, -1, -1)
                for row in rows
            ]
            return np.array(counts, np.int64).reshape(-1, 3)

        counts = batch.derived(("tracking", self.contribution), make)
        scored = counts[:, 0] >= 0
        right = (counts[:, 1:] == 0).all(axis=1, keepdims=True).astype(np.int64)
        return counts if self.of_corpus else right, scored

    def formula(self, counts: Ints | Floats) -> Floats:
        if self.of == "joint":
            return 100 * counts[:, 0].astype(np.float64)
        agree, wrong, missing = counts.T
        precision = agree / (agree + wrong + TINY)
        recall = agree / (agree + missing + TINY)
        f1 = 100 * 2 * precision * recall / (precision + recall + TINY)
        values: Floats = {"precision": precision, "recall": recall, "f1": f1}[self.of]
        return values


class _Comparison:
    """Compares states; each distinct pair of values once."""

    def __init__(self, ontology: Ontology, booking: Booking, ratio: Ratio, threshold: float) -> None:
        self._normalize = ontology.states
        self._prefix = ontology.booking_prefix if booking == "unified" else ""
        self._ratio, self._threshold = ratio, threshold
        self._known: dict[tuple[str, str], bool] = {}

    def __call__(self, state: State, true: State) -> tuple[int, int, int]:
        """Slots that agree, that are wrong and that are missing."""
        here, there = self._slots(self._normalize(state)), self._slots(self._normalize(true))
        agree = sum(slot in there and self._agree(value, there[slot]) for slot, value in here.items())
        return agree, len(here) - agree, len(there) - agree

    def _slots(self, state: State) -> Slots:
        prefix = self._prefix
        return {
            (domain, slot.removeprefix(prefix) or slot): value
            for domain, slots in state.items()
            for slot, value in slots.items()
        }

    def _agree(self, value: str, true: str) -> bool:
        if value == true:
            return True
        known = self._known.get((value, true))
        if known is None:
            known = self._known[value, true] = partial_ratio(value, true, self._ratio) > self._threshold
        return known
