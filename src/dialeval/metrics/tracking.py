"""State tracking: how well the states that a system predicts agree with the true ones, turn by turn.

Over (domain, slot) of the normalised states; a value agrees if its partial ratio with the true one is above 95:

    joint-accuracy = 100 * turns with the same slots, all of which agree / turns
    slot-precision = tp / (tp + fp),  slot-recall = tp / (tp + fn),  slot-f1 = 100 * 2 P R / (P + R)

with tp slots that agree, fp slots that are not in the true state or do not agree, fn slots that are missing or do not
agree, over all turns together. Joint accuracy and F1 are percentages, precision and recall are fractions, and 1e-10 is
added to every divisor, as in the MultiWOZ evaluation.

Paper: Williams et al. 2013, "The Dialog State Tracking Challenge", SIGDIAL.

The same as in the MultiWOZ evaluation, which takes booking slots for other slots where one side writes `bookday` and
the other `day`; `booking=unified` makes them one. The original also scores systems without states, against true states
that it has written into its input before. Here a state in every turn is needed.

Edge cases: any part of a value agrees with it ("1" with "10"). Turns that the system does not give are not scored,
unless `missing=failed`: then they are empty states. A turn's item is the value of its own counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.contributions import Resamples, RowSums
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Metric, Partial
from dialeval.core.needs import Need
from dialeval.data.task.corpus import TrueStates
from dialeval.metrics.task.rates import Missing
from dialeval.resources.ontology import Ontology
from dialeval.text.similarity import Ratio, partial_ratio
from dialeval.text.slot_values import State

Of = Literal["joint", "f1", "precision", "recall"]
Booking = Literal["apart", "unified"]
TINY = 1e-10
"""Added to every divisor."""

Slots = dict[tuple[str, str], str]

NOTHING = Moments()
"""The moments of no rows."""


@dataclass(frozen=True, slots=True)
class TrackingState:
    """The moments of joint accuracy, and slots that agree, that are wrong and that are missing."""

    joint: Moments = NOTHING
    agree: int = 0
    wrong: int = 0
    missing: int = 0


@dataclass(frozen=True)
class Tracking(Metric[TrackingState]):
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

    of: Of = "joint"
    booking: Booking = "apart"
    missing: Missing = "ignored"
    ratio: Ratio = "historical"
    threshold: float = 95.0

    def __post_init__(self) -> None:
        for name, choices in {
            "of": ("joint", "f1", "precision", "recall"),
            "booking": ("apart", "unified"),
            "missing": ("ignored", "failed"),
            "ratio": ("historical", "exact"),
        }.items():
            if getattr(self, name) not in choices:
                raise SettingError(f"state-tracking has {name}={'|'.join(choices)}, not {getattr(self, name)!r}")
        if not 0 <= self.threshold <= 100:
            raise SettingError(f"a partial ratio lies between 0 and 100, so no threshold is {self.threshold}")

    def empty(self) -> TrackingState:
        return TrackingState()

    def partial(self, batch: Batch) -> Partial[TrackingState]:
        true: TrueStates = batch.resource(Need.TRUE_STATES)
        ontology: Ontology = batch.resource(Need.ONTOLOGY)
        rows = batch.objects(Need.STATES)

        def make() -> Ints:
            compare = _Comparison(ontology, self.booking, self.ratio, self.threshold)
            return np.array([self._counts(row, true, compare) for row in rows], np.int64).reshape(-1, 4)

        counts = batch.derived(("tracking", self.booking, self.missing, self.ratio, self.threshold), make)
        there = counts[:, 0] >= 0
        joint = np.where(there, 100.0 * counts[:, 0], np.nan)
        agree, wrong, missing = counts[:, 1:].sum(axis=0).tolist()
        items = joint if self.of == "joint" else np.where(there, self._values(*counts[:, 1:].T), np.nan)
        brought = (
            {} if self.of == "joint" else {self._slots: RowSums(np.column_stack([there, counts[:, 1:]]).astype(float))}
        )
        return Partial(TrackingState(Moments.of(joint), agree, wrong, missing), {self.name: items}, brought)

    @property
    def _slots(self) -> str:
        """The name of the counts of single turns."""
        return f"slots/{self.booking}/{self.missing}/{self.ratio}/{self.threshold}"

    def resampled(self, sample: Resamples) -> Floats:
        if self.of == "joint":
            return super().resampled(sample)
        scored, agree, wrong, missing = sample.totals(self._slots).T
        return np.where(scored > 0, self._values(agree, wrong, missing), np.nan)

    def _counts(self, row: Mapping[str, Any], true: TrueStates, compare: _Comparison) -> tuple[int, int, int, int]:
        """Joint, agree, wrong, missing of one turn; -1 in the first place where it is not scored."""
        if row["response"] is None and self.missing == "ignored":
            return -1, 0, 0, 0
        return compare(row["state"] or {}, true.states[row["dialogue"]][row["turn"]])

    def _values(self, agree: Any, wrong: Any, missing: Any) -> Floats:
        precision = agree / (agree + wrong + TINY)
        recall = agree / (agree + missing + TINY)
        f1 = 100 * 2 * precision * recall / (precision + recall + TINY)
        values: Floats = {"precision": precision, "recall": recall, "f1": f1}[self.of]
        return values

    def merge(self, left: TrackingState, right: TrackingState) -> TrackingState:
        return TrackingState(
            left.joint + right.joint, left.agree + right.agree, left.wrong + right.wrong, left.missing + right.missing
        )

    def finish(self, state: TrackingState) -> Mapping[str, Estimate]:
        joint = Estimate.of_moments(state.joint)
        if self.of == "joint":
            return {self.name: joint}
        value = float(self._values(state.agree, state.wrong, state.missing)) if joint.scored else np.nan
        return {self.name: Estimate(value, 0.0, joint.rows, joint.scored, corpus=True)}


class _Comparison:
    """Compares states; each distinct pair of values once."""

    def __init__(self, ontology: Ontology, booking: Booking, ratio: Ratio, threshold: float) -> None:
        self._normalise = ontology.states
        self._prefix = ontology.booking_prefix if booking == "unified" else ""
        self._ratio, self._threshold = ratio, threshold
        self._known: dict[tuple[str, str], bool] = {}

    def __call__(self, state: State, true: State) -> tuple[int, int, int, int]:
        """Whether all is right, and slots that agree, that are wrong and that are missing."""
        here, there = self._slots(self._normalise(state)), self._slots(true)
        agree = sum(slot in there and self._agree(value, there[slot]) for slot, value in here.items())
        wrong, missing = len(here) - agree, len(there) - agree
        return int(wrong == missing == 0), agree, wrong, missing

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
