"""Inform, Success and the combined score of task dialogues, by the rules of the MultiWOZ evaluation.

    inform   = 100 * dialogues in which every domain of the goal matches / dialogues
    success  = 100 * dialogues that match in every domain and in which every requested word was provided / dialogues
    combined = 0.5 * (inform + success) + bleu

Inform is the fraction of dialogues in which the system offered what the user was looking for, Success the fraction of
those with the right offers in which every request was answered, in percent. A dialogue that does not match in every
domain fails Success in all of them, so that a domain's value depends on the other domains too. By domain
`inform/hotel`, `success/hotel` and so on, over the dialogues whose goal has the domain. `suites/multiwoz/turns.py` says
when a domain matches, when a word counts as provided, and which states and active domains are used.

The combined score takes each of the three in percent, over all dialogues and turns of a system, so that 200 is the
most. BLEU is that against one reference set (`references`); `dialeval multiwoz` takes the first of the data, `mwz22`
where it is there. The MultiWOZ evaluation leaves the sum to its readers, who add up rounded values. Here nothing is
rounded.

Papers: Budzianowski et al. 2018, "MultiWOZ: A Large-Scale Multi-Domain Wizard-of-Oz Dataset for Task-Oriented Dialogue
Modelling", EMNLP; Mehri, Srinivasan and Eskenazi 2019, "Structured Fusion Networks for Dialog", SIGDIAL; Nekvinda and
Dušek 2021, "Shades of BLEU, Flavours of Success: The Case of MultiWOZ", GEM.

The same as in the MultiWOZ evaluation of the last paper, dialogue by dialogue. Different on request: `fallback=turn`
uses true states and estimated domains only in turns that lack them, `missing=failed` counts dialogues that the system
lacks, `ratio=exact` searches names by the true partial ratio.

Edge cases: a dialogue that the system does not give is not scored, unless `missing=failed`. One that it gives without a
turn is judged, and fails unless its goal is met without an offer. Of a dialogue that is cut off the turns that are
there are judged. Without a single response there is no BLEU, and so no combined score. A dialogue or a turn has no
combined score of its own.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import numpy as np

from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.contributions import Resamples, RowSums
from dialeval.core.errors import NeedError
from dialeval.core.exact import BySize, Moments, merge_sums
from dialeval.core.fold import Bounds, Estimate, Fact, Level, Metric, Partial
from dialeval.metrics.bleu_counts import NIST, NO_REFERENCE, BleuCounts, corpus_bleu, log_precisions, sacre_bleu
from dialeval.metrics.counting import CountMetric, Flags, Missing, SummedCounts, corpus_error, sum_by_dialogue
from dialeval.suites.multiwoz import GOALS, ONTOLOGY, REFERENCE_SETS, STATES, TASK_TURNS, TRUE_STATES, VENUES
from dialeval.suites.multiwoz.turns import DialogueVerdict, Fallback, TurnCounting, judge_dialogues, normalize_responses
from dialeval.text.separation import split_13a
from dialeval.text.similarity import Ratio, partial_ratio
from dialeval.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dialeval.suites.multiwoz.data import Goal, Goals, ReferenceSets, TrueStates
    from dialeval.suites.multiwoz.venues import Alternatives, Ontology, State

ORDERS = 4
MAIN_REFERENCES = "mwz22"
"""The reference set that comes first where it is there."""


@dataclass(frozen=True)
class TaskBleu(CountMetric):
    """Corpus BLEU of normalized responses against a reference set (`bleu/mwz22` and so on), from 0 to 100.

        BLEU = 100 * BP * (p_1 p_2 p_3 p_4)**(1/4),   BP = exp(min(0, 1 - reference length / response length))

    with p_n the fraction of the responses' n-grams that are in their references too, over all turns together:
    sacreBLEU's corpus BLEU with its defaults (tokens 13a, exponential smoothing, one reference). The value of a single
    turn, its item, is sacreBLEU's sentence BLEU. Responses are normalized first (`suites/multiwoz/venues.py`).

    Papers: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL; Post 2018, "A
    Call for Clarity in Reporting BLEU Scores", WMT.

    Where the data has several reference sets, each gives a value of its own; MultiWOZ 2.2 (`mwz22`) comes first.

    Edge cases: turns that the system does not give are left out, as in the original, unless `missing=failed`: then they
    count as empty. More turns than references end the original; here the reader refuses them.
    """

    family = "task-bleu"
    presets = {f"bleu/{MAIN_REFERENCES}": {}}
    subject = TASK_TURNS
    needs = frozenset({TASK_TURNS, ONTOLOGY, REFERENCE_SETS})
    better = "higher"
    bounds = (0.0, 100.0)
    width = 2 * ORDERS + 2

    references: str = MAIN_REFERENCES
    missing: Missing = "ignored"

    @property
    def key(self) -> str:
        """The key of its result: that of the preset under changed settings too."""
        return f"bleu/{self.references}"

    @property
    def contribution(self) -> str:
        return f"task-bleu/{self.references}/{self.missing}"

    def partial(self, batch: Batch) -> Partial[SummedCounts]:
        return batch.derive(("task bleu", self), lambda: super(TaskBleu, self).partial(batch))

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        """Count matches and n-grams by order, words of the response, words of the reference."""
        references: ReferenceSets = batch.resource(REFERENCE_SETS)
        responses = normalize_responses(batch)
        if self.references not in references.sets:
            raise NeedError(f"the data has no references {self.references!r}; it has {', '.join(references.sets)}")
        texts = references.sets[self.references]
        rows = batch.objects(TASK_TURNS)

        def make() -> tuple[Ints, Flags]:
            here = ["" if text is None and self.missing == "failed" else text for text in responses]
            wanted_texts = [
                texts[row["dialogue"]][row["turn"]] for row, text in zip(rows, here, strict=True) if text is not None
            ]
            lists = offsets_of(text is not None for text in here)
            columns = map(TextColumn.from_strings, ([text or "" for text in here], wanted_texts))
            said, wanted = (split_13a(column, cast(Vocabulary, batch.vocabulary)) for column in columns)
            counts = BleuCounts.of(said, wanted, lists)
            lengths = (counts.response_lengths, counts.reference_lengths)
            sums = np.column_stack((counts.matches[:, :ORDERS], counts.totals[:, :ORDERS], *lengths))
            return sums, counts.reference_lengths != NO_REFERENCE

        return batch.derive(self.contribution, make)

    def formula(self, counts: Ints | Floats) -> Floats:
        return corpus_bleu(counts)

    def score_rows(self, counts: Ints) -> Floats:
        matches, totals, lengths = np.split(counts, (ORDERS, 2 * ORDERS), axis=1)
        turns = BleuCounts(matches, totals, lengths[:, 0], lengths[:, 1])
        return 100 * sacre_bleu(turns, log_precisions(turns, NIST), ORDERS)


# Rates of dialogues: what Inform and Success have in common.
#
#     rate        = 100 * dialogues that hold / dialogues
#     rate/DOMAIN = 100 * dialogues in which the domain holds / dialogues whose goal has the domain
#
# An item is one dialogue: 100 where it holds, 0 where it does not, NaN where the system does not give the dialogue, or
# the goal does not have the domain. A dialogue that is given without a turn is judged, as in the original. With
# `missing=failed` dialogues of which the system has no turn are 0.

HELD, FAILED = 100.0, 0.0


RateState = Mapping[str, Moments]
"""By result key the moments of all dialogues, and of those of each domain that some goal has."""


@dataclass(frozen=True)
class DialogueRate(Metric[RateState]):
    """A fraction of dialogues in percent, in all and by domain."""

    subject = TASK_TURNS
    level = Level.DIALOGUE
    needs = frozenset({TASK_TURNS, GOALS, ONTOLOGY, VENUES})
    wants = frozenset({TRUE_STATES})
    better = "higher"
    bounds = (0.0, 100.0)
    definition = 2  # 1 left out dialogues without turns, and read empty values and empty domains in another way

    fallback: Fallback = "file"
    missing: Missing = "ignored"
    ratio: Ratio = "historical"

    @property
    def facts(self) -> tuple[Fact, ...]:
        return (TurnCounting(),)

    @abstractmethod
    def holds(self, verdict: DialogueVerdict, domain: str | None) -> bool:
        """Return whether a dialogue, or one domain of it, holds."""

    def list_domains(self, goal: Goal) -> list[str]:
        """Return the domains of a goal that have a value."""
        return list(goal)

    def rate_dialogue(self, verdict: DialogueVerdict, domains: Sequence[str]) -> float:
        """Return the value of a dialogue, from 0 to 1."""
        return self.holds(verdict, None)

    def empty(self) -> RateState:
        return {self.name: Moments()}

    def partial(self, batch: Batch) -> Partial[RateState]:
        return batch.derive(("rates", self), lambda: self._partial(batch))  # the combined score asks for them too

    def _partial(self, batch: Batch) -> Partial[RateState]:
        ended = judge_dialogues(batch, self.fallback, self.missing, self.ratio)
        goals: Goals = batch.resource(GOALS)
        rows = batch.objects(TASK_TURNS)
        names = [rows[at]["dialogue"] for at in batch.dialogues[:-1].tolist()]
        total = self.name
        keys: dict[str | None, str] = {None: total, **{domain: f"{total}/{domain}" for domain in goals.domains}}
        lists = {domain: [math.nan] * len(ended) for domain in keys}
        for at, (name, verdict) in enumerate(zip(names, ended, strict=True)):
            if verdict is None and self.missing == "ignored":
                continue
            domains = self.list_domains(goals.goals[name])
            lists[None][at] = FAILED if verdict is None else HELD * self.rate_dialogue(verdict, domains)
            for domain in domains:
                lists[domain][at] = HELD if verdict is not None and self.holds(verdict, domain) else FAILED
        columns = {key: np.array(lists[domain]) for domain, key in keys.items()}
        moments = {key: Moments.of(column) for key, column in columns.items()}
        return Partial({key: part for key, part in moments.items() if key == total or part.scored}, columns)

    def merge(self, left: RateState, right: RateState) -> RateState:
        nothing = Moments()
        return {key: left.get(key, nothing) + right.get(key, nothing) for key in sorted({*left, *right})}

    def finish(self, state: RateState) -> Mapping[str, Estimate]:
        # A batch in which no goal has the domain has no entry for it, but all dialogues are rows of every domain.
        rows = state[self.name].rows
        return {key: Estimate.of_moments(replace(state[key], rows=rows), self.bounds) for key in sorted(state)}


@dataclass(frozen=True)
class Inform(DialogueRate):
    """Fraction of dialogues in which the right venue was offered in every domain, in percent."""

    family = "inform"

    def holds(self, verdict: DialogueVerdict, domain: str | None) -> bool:
        return verdict.inform if domain is None else verdict.matched[domain]


@dataclass(frozen=True)
class Success(DialogueRate):
    """Fraction of dialogues with the right offers in which every request was answered, in percent."""

    family = "success"

    def holds(self, verdict: DialogueVerdict, domain: str | None) -> bool:
        return verdict.success if domain is None else verdict.inform and verdict.complete[domain]


@dataclass(frozen=True)
class Complete(DialogueRate):
    """Fraction of dialogues in which every request was answered and every booking made, in percent.

    Whether offers meet the goal does not matter. ConvLab calls this the complete rate, and lets its user simulator
    judge it; here the user turns are those of the data.
    """

    family = "complete"

    def holds(self, verdict: DialogueVerdict, domain: str | None) -> bool:
        return all(verdict.complete.values()) if domain is None else verdict.complete[domain]


@dataclass(frozen=True)
class Book(DialogueRate):
    """Fraction of the bookings of a dialogue that were made, for offers that meet the goal; mean in percent.

    Dialogues without a booking in the goal are not scored. After ConvLab's book rate, with the user turns of the data.
    """

    family = "book"

    def holds(self, verdict: DialogueVerdict, domain: str | None) -> bool:
        return domain is not None and verdict.booked[domain] and verdict.matched[domain]

    def list_domains(self, goal: Goal) -> list[str]:
        return [domain for domain, wishes in goal.items() if wishes.get("booking")]

    def rate_dialogue(self, verdict: DialogueVerdict, domains: Sequence[str]) -> float:
        return sum(self.holds(verdict, domain) for domain in domains) / len(domains) if domains else math.nan


Value = TypeVar("Value", float, Floats)
CombinedState = tuple[RateState, RateState, SummedCounts, BySize]
"""The states of Inform, Success and BLEU, and what dialogues add to all three, for the interval."""


@dataclass(frozen=True)
class Combined(Metric[CombinedState]):
    """Mean of Inform and Success, plus BLEU; from 0 to 200."""

    family = "combined"
    subject = TASK_TURNS
    needs = Inform.needs | TaskBleu.needs
    wants = Inform.wants
    better = "higher"
    bounds = (0.0, 200.0)
    whole_dialogues = True

    references: str = MAIN_REFERENCES
    fallback: Fallback = "file"
    missing: Missing = "ignored"
    ratio: Ratio = "historical"

    facts = DialogueRate.facts

    @property
    def _metrics(self) -> tuple[Inform, Success, TaskBleu]:
        settings = self.fallback, self.missing, self.ratio
        return Inform(*settings), Success(*settings), TaskBleu(self.references, self.missing)

    @property
    def _rates(self) -> str:
        """The name of what dialogues add to Inform and Success: one line per row, that of the first row counts."""
        return f"task-rates/{self.fallback}/{self.missing}/{self.ratio}"

    def empty(self) -> CombinedState:
        inform, success, bleu = self._metrics
        return inform.empty(), success.empty(), bleu.empty(), {}

    def partial(self, batch: Batch) -> Partial[CombinedState]:
        inform, success, bleu = self._metrics
        informed, succeeded, said = inform.partial(batch), success.partial(batch), bleu.partial(batch)
        rates = np.zeros((len(batch), 3))
        held = [informed.scores[inform.name], succeeded.scores[success.name]]
        rates[batch.dialogues[:-1]] = np.column_stack([~np.isnan(held[0]), *(items == HELD for items in held)])
        scored, *counts = said.contributions[bleu.contribution].values.T  # type: ignore[union-attr]
        together = np.column_stack((rates, *counts)).astype(np.int64)
        clusters = sum_by_dialogue(together, scored > 0, batch.dialogues)
        state = informed.state, succeeded.state, said.state, clusters
        return Partial(state, {}, {**said.contributions, self._rates: RowSums(rates)})

    def merge(self, left: CombinedState, right: CombinedState) -> CombinedState:
        inform, success, bleu = self._metrics
        rates = inform.merge(left[0], right[0]), success.merge(left[1], right[1])
        return *rates, bleu.merge(left[2], right[2]), merge_sums(left[3], right[3])

    def finish(self, state: CombinedState) -> Mapping[str, Estimate]:
        rates = zip(self._metrics[:2], state[:2], strict=True)
        inform, success = (metric.finish(part)[metric.name] for metric, part in rates)
        bleu = self._metrics[2].finish(state[2])[self._metrics[2].name]
        value = combined_score(inform.mean, success.mean, bleu.mean)
        held = [round(rate.mean * rate.scored / HELD) if rate.scored else 0 for rate in (inform, success)]
        error = corpus_error(self._formula, [inform.scored, *held, *state[2].counts], state[3])
        return {self.name: Estimate(value, 0.0, bleu.units, bleu.scored, corpus=True, error=error)}

    def _formula(self, counts: Floats) -> Floats:
        """Return the score of dialogues, those informed, those that succeeded, and the counts of BLEU."""
        dialogues, informed, succeeded = counts[:, :3].T
        bleu = self._metrics[2].formula(counts[:, 3:])
        return combined_score(HELD * informed / dialogues, HELD * succeeded / dialogues, bleu)

    def score_resamples(self, sample: Resamples) -> Floats:
        dialogues, informed, succeeded = sample.totals(self._rates).T
        with np.errstate(invalid="ignore"):  # 0 / 0: a resample without a dialogue has no value
            inform, success = HELD * informed / dialogues, HELD * succeeded / dialogues
        return combined_score(inform, success, self._metrics[2].score_resamples(sample))


def combined_score(inform: Value, success: Value, bleu: Value) -> Value:
    """Return the combined score of three percentages."""
    return 0.5 * (inform + success) + bleu


Of = Literal["joint", "f1", "precision", "recall"]
Booking = Literal["apart", "unified"]
TINY = 1e-10
"""Added to every divisor."""


@dataclass(frozen=True)
class Tracking(CountMetric):
    """State tracking: how well the states that a system predicts agree with the true ones, turn by turn.

    Over (domain, slot) of the normalized states; a value agrees if its partial ratio with the true one is above 95:

        joint-accuracy = 100 * turns with the same slots, all of which agree / turns
        slot-precision = tp / (tp + fp),  slot-recall = tp / (tp + fn),  slot-f1 = 100 * 2 P R / (P + R)

    with tp slots that agree, fp slots that are not in the true state or do not agree, fn slots that are missing or do
    not agree, over all turns together. Joint accuracy and F1 are percentages, precision and recall are fractions, and
    1e-10 is added to every divisor, as in the MultiWOZ evaluation.

    Paper: Williams et al. 2013, "The Dialog State Tracking Challenge", SIGDIAL.

    The same as in the MultiWOZ evaluation, which takes booking slots for other slots where one side writes `bookday`
    and the other `day`; `booking=unified` makes them one. Papers on joint goal accuracy compare by exact match, here
    `threshold=100`, and some leave slots without a wish out on both sides (dontcare, none), here `dont_care=ignored`. A
    true value that is a list is met by any of its values. The original also scores systems without states, against true
    states that it has written into its input before. Here a state in every turn is needed.

    Edge cases: any part of a value agrees with it ("1" with "10"), but an empty value only with another empty one.
    Turns that the system does not give are not scored, unless `missing=failed`: then they are empty states. A turn's
    item is the value of its own counts.
    """

    family = "state-tracking"
    presets = {"joint-accuracy": {"of": "joint"}} | {f"slot-{of}": {"of": of} for of in ("f1", "precision", "recall")}
    subject = STATES
    needs = frozenset({STATES, TRUE_STATES, ONTOLOGY})
    better = "higher"
    definition = 2  # 1 took an empty value for part of every other
    limits = {"threshold": (0, 100)}

    of: Of = "joint"
    booking: Booking = "apart"
    missing: Missing = "ignored"
    ratio: Ratio = "historical"
    threshold: float = 95.0
    dont_care: Literal["counted", "ignored"] = "counted"

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]
        return (0.0, 1.0 if self.of in ("precision", "recall") else 100.0)

    @property
    def of_corpus(self) -> bool:
        return self.of != "joint"

    @property
    def width(self) -> int:
        return 3 if self.of_corpus else 1

    @property
    def contribution(self) -> str:
        return f"slots/{self.booking}/{self.missing}/{self.ratio}/{self.threshold}/{self.dont_care}"

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        """Count slots that agree, are wrong and are missing; for joint accuracy whether the whole turn is right."""
        true: TrueStates = batch.resource(TRUE_STATES)
        ontology: Ontology = batch.resource(ONTOLOGY)
        rows = batch.objects(STATES)

        def make() -> Ints:
            compare = make_state_comparison(ontology, self)
            counts = np.full((len(rows), 3), -1)
            for at, row in enumerate(rows):
                if row["response"] is not None or self.missing == "failed":
                    counts[at] = compare(row["state"] or {}, true.alternatives[row["dialogue"]][row["turn"]])
            return counts

        counts = batch.derive(("tracking", self.contribution), make)
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
        return {"precision": precision, "recall": recall, "f1": f1}[self.of]


def make_state_comparison(
    ontology: Ontology, settings: Tracking
) -> Callable[[State, Alternatives], tuple[int, int, int]]:
    """Return a function that counts the slots of a state that agree with the true one, are wrong and are missing."""
    prefix = ontology.booking_prefix if settings.booking == "unified" else ""
    nothing = {"", "none", *ontology.dont_care} if settings.dont_care == "ignored" else frozenset[str]()

    @cache
    def agree(value: str, true: str | tuple[str, ...]) -> bool:
        if isinstance(true, tuple):
            return any(agree(value, one) for one in true)
        return value == true or partial_ratio(value, true, settings.ratio) > settings.threshold

    def flatten(state: Alternatives) -> dict[tuple[str, str], object]:
        return {
            (domain, slot.removeprefix(prefix) or slot): value
            for domain, slots in ontology.states(state).items()
            for slot, value in slots.items()
            if value not in nothing
        }

    def compare(state: State, true: Alternatives) -> tuple[int, int, int]:
        predicted, truth = flatten(state), flatten(true)
        right = sum(slot in truth and agree(value, truth[slot]) for slot, value in predicted.items())
        return right, len(predicted) - right, len(truth) - right

    return compare
