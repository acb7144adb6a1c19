"""Confidence sequences: intervals for a difference that stay valid however often one looks, and whenever one stops.

An ordinary 95% interval covers in 95% of cases at one number of dialogues that was chosen before. Who looks after every
dialogue and stops when 0 is outside will in the end be wrong almost surely. A confidence sequence covers at all numbers
of dialogues at once, with 95%. The price is width: `docs/simulations.md` says how much wider than Student's interval it
is.

Dialogues are taken in the order of the run. The interval is for the difference of the means over rows, as in
`comparison`, or with `weight="dialogues"` for that of means in which every dialogue counts once. It assumes that

- dialogues are independent and identically distributed: drawn one after the other from the same source, in an order
  that has nothing to do with their values (a sorted file, or users who change over the weeks, violate that);
- the same systems and metrics are tested at every interim look, since alpha is divided by their number.

- `betting`, where the metric has bounds and all dialogues count equally (the same number of rows in each, or
  `weight="dialogues"`): exact for any distribution, from the first dialogue on. Differences are
  brought to 0..1. For every possible mean m two gamblers bet on it being too low and too high,

      K+_t(m) = product of (1 + l+_s (x_s - m))        l+_s = min(l_s, c / m)
      K-_t(m) = product of (1 - l-_s (x_s - m))        l-_s = min(l_s, c / (1 - m))
      l_s = sqrt(2 log(2 / alpha) / (v_{s-1} s log(1 + s))), c = 1/2

  where v_{s-1} is the variance of the values before. Neither can expect to win if m is the mean, so that the half of
  the larger one exceeds 1 / alpha with a probability of at most alpha, ever (Ville). The interval are those m at which
  it does not.
- `asymptotic`, elsewhere: mean -+ s_t sqrt(2 (t rho^2 + 1) / (t^2 rho^2) log(sqrt(t rho^2 + 1) / alpha)), a
  normal mixture, from `FIRST` dialogues on. rho is chosen so that it is narrowest at `BEST` dialogues. It is right for
  many dialogues, as Student's interval is without normal values. Skewed differences need more of them: there is no
  interval before `SKEWED` times their squared skewness either. No rule can allow for rare large differences that have
  not occurred yet: with a loss of 99 in one of 100 dialogues and a gain of 1 in all others, most sequences exclude the
  true mean 0 before the first loss. Where that is possible, declare the range of the values (`Metric.bounds`), and the
  sequence is exact.

With several systems and metrics alpha is divided by their number in the panel (`comparison`), and by that of the other
metrics for these. Intervals are intersected with those before, so that
they never grow again. Values of all rows together have no value per dialogue and no sequence.

Papers: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting", JRSS B; Waudby-Smith,
Arbour, Sinha, Kennedy and Ramdas 2021, "Time-uniform central limit theory and asymptotic confidence sequences"; Robbins
1970, "Statistical Methods Related to the Law of the Iterated Logarithm", Annals of Mathematical Statistics.

Edge cases: a dialogue without a row that both systems were scored on is passed over. Where the intersection is empty,
which happens with a probability of at most alpha, the interval is that of the last look alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dialeval.analysis.alignment import Alignment, Design, DesignName, align
from dialeval.analysis.comparison import choose_panel
from dialeval.analysis.difference import DEFAULT_ALPHA, paired_values
from dialeval.analysis.pairing import Runs, Weight, chosen, describe_inputs, keys_meant, systems_of, weigh
from dialeval.analysis.unpaired import ClusterSums
from dialeval.analysis.values import Values, metric_of
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.display import Shown, listed
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.jsondata import null_for_nan
from dialeval.core.plain_text import plain as shown
from dialeval.core.result import Result
from dialeval.core.version import __version__

FIRST = 50
"""Dialogues before the first asymptotic interval; with 30, skewed differences were outside in 8% and not in 5%."""
SKEWED = 40.0
"""Fewer dialogues than this times the squared skewness of their differences have no asymptotic interval."""
BEST = 500
"""Dialogues at which the asymptotic interval is narrowest."""
GRID = 2001
"""Possible means that are bet on, from end to end."""
_CAUTION = 0.5
"""The share of what there is that a gambler risks at most."""
_CHUNK = 512
"""Dialogues whose bets are made together."""

Kind = Literal["betting", "asymptotic"]


@dataclass(frozen=True)
class Watched:
    """A difference as far as it has been seen."""

    system: str
    key: str
    dialogues: int
    difference: float
    """Of the means over rows, or over dialogues with `weight="dialogues"`."""
    interval: tuple[float, float] | None
    """Of the last look and all before; None where there is none yet."""
    by: Kind | None
    decided: int | None
    """After how many dialogues 0 was outside for the first time."""
    better: bool | None
    """Whether the system is better, once that is decided and the metric has a direction."""
    reason: str | None = None
    """Why there is no interval."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN is null."""
        plain: dict[str, Any] = null_for_nan(asdict(self))
        return plain


@dataclass(frozen=True)
class Watch(Shown):
    """What `dialeval.watch` gives."""

    baseline: str
    systems: Sequence[str]
    rows: Sequence[Watched]
    alpha: float
    """Of all intervals of the panel together, and of all others together."""
    tests: int
    """Differences in the panel."""
    unit: str
    panel: Sequence[str] = ()
    designs: Mapping[str, Design] = field(default_factory=dict)
    version: str = __version__

    def __repr__(self) -> str:
        decided = sum(row.decided is not None for row in self.rows)
        with_baseline = f"{listed(self.systems, 'system')} with {shown(self.baseline)}"
        return f"<Watch: {with_baseline}, {len(self.rows):,} differences, {decided:,} decided>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "dialeval": self.version,
            "baseline": self.baseline,
            "systems": list(self.systems),
            "alpha": self.alpha,
            "tests": self.tests,
            "unit": self.unit,
            "panel": list(self.panel),
            "designs": {name: design.to_dict() for name, design in self.designs.items()},
            "differences": [row.to_dict() for row in self.rows],
        }


@checked
def watch(
    runs: Runs,
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: Iterable[str] | None = None,
    alpha: float = DEFAULT_ALPHA,
    design: DesignName | None = None,
    weight: Weight = "rows",
) -> Watch:
    """Compare systems with a baseline by intervals that one may look at as often as one likes.

    `runs`, `baseline`, `systems`, `metrics`, `design`, `weight`: as in `dialeval.compare`. In an unpaired design both
    systems have a confidence sequence of their own with half of alpha, and the interval of the difference follows.
    """
    if not 0 < alpha < 1:
        raise SettingError(f"alpha lies between 0 and 1, such as 0.05; it is not {alpha}")
    known = weigh(systems_of(runs), weight)
    first, others = chosen(known, baseline, None if systems is None else list(systems))
    asked = None if metrics is None else list(metrics)
    common = {}
    for name in others:
        shared = [key for key in known[first] if key in known[name]]
        common[name] = shared if asked is None else keys_meant(asked, shared, "not every system has", "they share")
    alignments = {name: align(known[first], known[name], design) for name in others}
    reasons = {
        (name, key): _why_unwatched(key, alignments[name], known[first][key], known[name][key])
        for name, keys in common.items()
        for key in keys
    }
    every = list(dict.fromkeys(key for keys in common.values() for key in keys))
    panel = choose_panel({name: known[name] for name in (first, *others)}, every, asked is not None)
    sizes = {
        inside: sum(reason is None and (key in panel) == inside for (_, key), reason in reasons.items())
        for inside in (True, False)
    }
    rows = [
        _watched(name, key, alignments[name], alpha / max(sizes[key in panel], 1))
        if reason is None
        else Watched(name, key, 0, math.nan, None, None, None, None, reason)
        for (name, key), reason in reasons.items()
    ]
    designs = {name: alignment.design for name, alignment in alignments.items()}
    return Watch(first, others, rows, alpha, sizes[True], next(iter(designs.values())).unit, list(panel), designs)


def _why_unwatched(key: str, alignment: Alignment, here: Estimate, there: Estimate) -> str | None:
    """Say why a metric has no sequence; None where it has one."""
    metric = metric_of(here)
    if (reason := describe_inputs(here, there, alignment)) is not None:
        return reason
    if here.corpus:
        return "a corpus value has no values of dialogues"
    if metric is not None and metric.untestable is not None:
        return metric.untestable
    if any(side.get(key) is None or side[key].items is None for side in (alignment.left, alignment.right)):
        return "the run holds no per-row scores for it"
    return None


def _watched(name: str, key: str, alignment: Alignment, alpha: float) -> Watched:
    left, right = alignment.left, alignment.right
    metric = metric_of(left[key])
    bounds = (-math.inf, math.inf) if metric is None else metric.bounds_of(key)
    first, second = _sum_dialogues(left, right, key, alignment)
    low, high, by = (unpaired_sequence if alignment.design.name == "unpaired" else sequence)(
        first, second, bounds, alpha
    )
    dialogues = len(low)
    difference = second.mean - first.mean
    if not len(low) or not math.isfinite(low[-1]):
        few = f"fewer than {FIRST} dialogues" if dialogues < FIRST else "too few dialogues for such skewed differences"
        return Watched(name, key, dialogues, difference, None, by, None, None, few)
    outside = np.flatnonzero((low > 0) | (high < 0))
    decided = int(outside[0]) + 1 if len(outside) else None
    better = None
    if decided is not None and metric is not None and metric.better is not None:
        better = bool(low[decided - 1] > 0) == (metric.better == "higher")
    return Watched(name, key, dialogues, difference, (float(low[-1]), float(high[-1])), by, decided, better)


def _sum_dialogues(left: Result, right: Result, key: str, alignment: Alignment) -> tuple[ClusterSums, ClusterSums]:
    """Sum the scored rows of each dialogue; where rows or dialogues are paired, those that both systems have."""
    values = [Values.of(each, [key], alone=True) for each in (left, right)]
    if alignment.design.name == "unpaired":
        return ClusterSums.of(values[0], key), ClusterSums.of(values[1], key)
    paired = paired_values(values[0], values[1], [key], alignment.by_row)
    return ClusterSums.of(paired[0], key), ClusterSums.of(paired[1], key)


def unpaired_sequence(
    left: ClusterSums, right: ClusterSums, bounds: tuple[float, float], alpha: float
) -> tuple[Floats, Floats, Kind]:
    """Return the ends of the intervals of a difference of independent means after as many dialogues of each system.

    Both means have a confidence sequence with half of alpha. Where one system has more dialogues, its further ones
    narrow the last interval only.
    """
    width = bounds[1] - bounds[0]
    looks = min(len(left.sums), len(right.sums))
    exact = math.isfinite(width) and left.is_even and right.is_even
    ends = []
    for side in (left, right):
        if exact:
            low, high = betting((side.sums / side.counts - bounds[0]) / width, alpha / 2)
            low, high = bounds[0] + width * low, bounds[0] + width * high
        else:
            low, high = asymptotic([(side, 1.0)], alpha / 2)
        low, high = _never_growing(low, high)
        keep = [*range(looks - 1), len(low) - 1] if looks else []
        ends.append((low[keep], high[keep]))
    low, high = ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]
    return low, high, "betting" if exact else "asymptotic"


def sequence(
    left: ClusterSums, right: ClusterSums, bounds: tuple[float, float], alpha: float
) -> tuple[Floats, Floats, Kind]:
    """Return the ends of the intervals of a difference after each pair of dialogues, and how they were made.

    `bounds`: those of the metric, so that a difference lies within their width either way. Bets are on means of
    dialogues, so that they need dialogues with equal numbers of rows.
    """
    width = bounds[1] - bounds[0]
    if not math.isfinite(width) or not (left.is_even and right.is_even):
        low, high = asymptotic([(left, -1.0), (right, 1.0)], alpha)
        return *_never_growing(low, high), "asymptotic"
    values = right.sums / right.counts - left.sums / left.counts
    low, high = betting((values + width) / (2 * width), alpha)
    return *_never_growing(2 * width * low - width, 2 * width * high - width), "betting"


def _never_growing(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    inner = np.maximum.accumulate(low), np.minimum.accumulate(high)
    empty = inner[0] > inner[1]
    return np.where(empty, low, inner[0]), np.where(empty, high, inner[1])


def asymptotic(parts: Sequence[tuple[ClusterSums, float]], alpha: float) -> tuple[Floats, Floats]:
    """Return the ends for a sum of signed means over rows, after each dialogue (or pair of dialogues).

    They are infinite where there are too few dialogues for how skewed they are (`has_enough`). A mean over the rows of
    unequal dialogues is a ratio of sums R = S / N; what dialogue k adds to it is (s_k - R n_k) / (N / t).
    """
    dialogues = len(parts[0][0].sums)
    times = np.arange(1, dialogues + 1, dtype=np.float64)
    values, weights, columns = np.zeros(dialogues), [], []
    added = np.zeros(dialogues)
    for sample, sign in parts:
        # Sums from the mean of all rows, so that little is lost where values are far from 0.
        center = sample.mean if dialogues else 0.0
        sums = sample.sums - center * sample.counts
        total, rows = np.cumsum(sums), np.cumsum(sample.counts)
        ratio, size = total / rows, rows / times
        values += sign * (center + ratio)
        columns += [sums, sample.counts]
        weights += [sign / size, -sign * ratio / size]
        if dialogues:  # by the first mean, so that later dialogues do not change earlier looks
            early = min(FIRST, dialogues) - 1
            added += sign * (sums - ratio[early] * sample.counts) / size[early]
    squares = np.zeros(dialogues)
    for first, own in zip(weights, columns, strict=True):
        for second, other in zip(weights, columns, strict=True):
            squares += first * second * np.cumsum(own * other)
    spread = np.sqrt(np.maximum(squares, 0.0) / np.maximum(times - 1, 1))
    mixed = times * _rho_squared(alpha) + 1
    half = spread * np.sqrt(2 * mixed / (times * (mixed - 1)) * np.log(np.sqrt(mixed) / alpha))
    half[~has_enough(added)] = math.inf
    return values - half, values + half


def has_enough(values: Floats) -> npt.NDArray[np.bool_]:
    """Return whether each value and those before it are enough for an asymptotic interval."""
    times = np.arange(1, len(values) + 1, dtype=np.float64)
    away = values - (values[0] if len(values) else 0.0)
    away = away / max(float(np.abs(away).max(initial=0.0)), np.finfo(np.float64).tiny)
    first, second, third = (np.cumsum(away**power) / times for power in (1, 2, 3))
    variances = np.maximum(second - first**2, 0.0)
    moments = third - 3 * first * second + 2 * first**3
    # The squared skewness is moments^2 / variances^3; multiplied out, so that equal values divide by nothing.
    enough: npt.NDArray[np.bool_] = (times >= FIRST) & (times * variances**3 >= SKEWED * moments**2)
    return enough


def _rho_squared(alpha: float) -> float:
    """The mixture that makes the interval narrowest at `BEST` dialogues."""
    return (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / BEST


def betting(values: Floats, alpha: float) -> tuple[Floats, Floats]:
    """The ends after each value between 0 and 1."""
    possible = np.linspace(0, 1, GRID)
    bets = _bets(values, alpha)
    capital = np.zeros((2, GRID))
    low, high = np.zeros(len(values)), np.ones(len(values))
    with np.errstate(divide="ignore"):
        most = np.stack([_CAUTION / possible, _CAUTION / (1 - possible)])
    for start in range(0, len(values), _CHUNK):
        here, bet = values[start : start + _CHUNK, None], bets[start : start + _CHUNK, None]
        away = here - possible
        for side, sign in enumerate((1.0, -1.0)):
            gains = np.log1p(sign * np.minimum(bet, most[side]) * away)
            gains[0] += capital[side]
            np.cumsum(gains, axis=0, out=gains)
            capital[side] = gains[-1]
            if side == 0:
                upward = gains
        inside = np.maximum(upward, gains) < math.log(2 / alpha)
        low[start : start + _CHUNK], high[start : start + _CHUNK] = _ends(inside, possible, upward, gains)
    return low, high


def _bets(values: Floats, alpha: float) -> Floats:
    """How much is risked on each value, from those before it."""
    times = np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (times + 1)
    variances = (0.25 + np.cumsum((values - means) ** 2)) / (times + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    bets: Floats = np.sqrt(2 * math.log(2 / alpha) / (before * times * np.log(1 + times)))
    return bets


def _ends(inside: Any, possible: Floats, upward: Floats, downward: Floats) -> tuple[Floats, Floats]:
    """The smallest and the largest possible mean that is left; one step more, since the grid is no finer."""
    step = possible[1]
    none = ~inside.any(axis=1)
    first, last = inside.argmax(axis=1), GRID - 1 - inside[:, ::-1].argmax(axis=1)
    # Where nothing is left, the mean that both gamblers have least against.
    least = np.maximum(upward, downward).argmin(axis=1)
    first, last = np.where(none, least, first), np.where(none, least, last)
    return np.maximum(possible[first] - step, 0.0), np.minimum(possible[last] + step, 1.0)
