"""Agreement of two raters about labels, rates without the errors of a judge, and the bias of these errors.

All statistics are functions of the table T of how often the first gave label i and the second label j, with N its sum,
p_i and q_j the fractions of the labels of each, and m_i = (p_i + q_i) / 2:

    agreement       a = sum_i T_ii / N
    kappa           (a - e) / (1 - e) with e = sum_i p_i q_i                              Cohen
    ac1             (a - e) / (1 - e) with e = sum_i m_i (1 - m_i) / (labels - 1)         Gwet
    alpha           1 - (2N - 1) sum_ij o_ij d_ij / sum_ij n_i n_j d_ij                   Krippendorff
                    with o = T + T', n_i its sums, and d_ij = 1 for different labels
    ordinal alpha   the same, with the distance of ordered labels

Kappa is low where nearly all labels are the same, even if raters agree; AC1 is not. Intervals are Student's over
dialogues, by the jackknife on Fisher's z scale (log odds for the plain agreement): tables of dialogues add up.

With two labels (yes and no), TPR and TNR are the fractions of human yes and no that the judge repeats. They correct
the rate p at which the judge says yes to other rows, under the assumption that it errs there as it does here:

    corrected rate  (p + TNR - 1) / (TPR + TNR - 1)                                       Rogan and Gladen

Its interval counts the uncertainty of all three rates: one more yes and no in each (z^2 / 2 of them for p), and a shift
for the skewness, so that it holds with few labels and with rates near 0 and 1. Sizes are effective sizes over
dialogues.

Papers: Cohen 1960, "A Coefficient of Agreement for Nominal Scales"; Gwet 2008, "Computing Inter-Rater Reliability and
its Variance in the Presence of High Agreement"; Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; Kish
1965, "Survey Sampling"; Rogan and Gladen 1978, "Estimating Prevalence from the Results of a Screening Test"; Lee et al.
2025, "How to Correctly Report LLM-as-a-Judge Evaluations" (arXiv 2511.21140).
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.stats.correlation import compute_alpha
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.resampling import FISHER, LOG_ODDS, jackknife, leave_out_clusters

STATISTICS = ("agreement", "kappa", "ac1", "alpha", "ordinal_alpha")
Interval = tuple[float, float]


def count_confusions(first: Ints, second: Ints, labels: int, clusters: Ints) -> Floats:
    """Count how often the first gave label i and the second label j, for each cluster: clusters by labels by labels."""
    tables = np.zeros((int(clusters.max(initial=-1)) + 1, labels, labels))
    np.add.at(tables, (clusters, first, second), 1.0)
    return tables


def label_statistics(tables: Floats) -> dict[str, Floats]:
    """Return every statistic of each table, the last two axes; NaN where chance leaves no choice."""
    total, together = tables.sum(axis=(-2, -1)), tables + np.swapaxes(tables, -2, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        agreed = np.trace(tables, axis1=-2, axis2=-1) / total
        rows, columns = tables.sum(axis=-1) / total[..., None], tables.sum(axis=-2) / total[..., None]
        mean = (rows + columns) / 2
        by_chance = (rows * columns).sum(axis=-1)
        gwet = (mean * (1 - mean)).sum(axis=-1) / (tables.shape[-1] - 1)
        return {
            "agreement": agreed,
            "kappa": (agreed - by_chance) / (1 - by_chance),
            "ac1": (agreed - gwet) / (1 - gwet),
            "alpha": compute_alpha(together, together.sum(axis=-1), "nominal"),
            "ordinal_alpha": compute_alpha(together, together.sum(axis=-1), "ordinal"),
        }


def compare_labels(
    first: Ints, second: Ints, labels: int, clusters: Ints, level: float
) -> dict[str, tuple[float, Interval]]:
    """Return every statistic of two columns of labels, with its interval over clusters.

    Args:
        first: The labels of one rater, from 0 on.
        second: Those of the other.
        labels: The number of different labels.
        clusters: The cluster (dialogue) of each row.
        level: The level of the intervals.

    Returns:
        Value and interval by statistic; NaN where there is none.
    """
    clusters = np.unique(clusters, return_inverse=True)[1].ravel()
    tables = count_confusions(first, second, labels, clusters)
    whole = label_statistics(tables.sum(axis=0))
    flat = tables.reshape(len(tables), -1)
    left = np.concatenate([counts @ flat for counts in leave_out_clusters(len(tables))]).reshape(-1, labels, labels)
    without, sizes = label_statistics(left), tables.sum(axis=(1, 2))
    found = {}
    for name, value in whole.items():
        scale = LOG_ODDS if name == "agreement" else FISHER
        found[name] = float(value), jackknife(float(value), without[name], sizes, scale).interval(level)
    return found


def estimate_rate_size(hits: Floats, clusters: Ints) -> float:
    """Return the effective number of independent rows that a rate of some rows in clusters rests on."""
    places = np.unique(clusters, return_inverse=True)[1].ravel()
    number, mean = int(places.max(initial=-1)) + 1, float(hits.mean()) if len(hits) else 0.0
    if number < 2 or not 0 < mean < 1:
        return float(number)
    sums = np.bincount(places, hits - mean)
    variance = number / (number - 1) * float(sums @ sums) / len(hits) ** 2
    return min(mean * (1 - mean) / variance, float(len(hits))) if variance else float(len(hits))


def correct_rate(
    judged: tuple[float, float], tpr: tuple[float, float], tnr: tuple[float, float], level: float
) -> tuple[float, Interval]:
    """Return the corrected rate of Rogan and Gladen with its interval; NaN where the judge is no better than chance.

    Args:
        judged: The rate at which the judge says yes, and its effective size.
        tpr: Its true positive rate, and the effective number of rows with a human yes.
        tnr: Its true negative rate, and the effective number of rows with a human no.
        level: The level of the interval.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    if tpr[0] + tnr[0] <= 1:
        return math.nan, (0.0, 1.0)
    value = min(max((judged[0] + tnr[0] - 1) / (tpr[0] + tnr[0] - 1), 0.0), 1.0)
    rate = (judged[1] * judged[0] + z * z / 2) / (judged[1] + z * z)
    (yes, of_yes), (no, of_no) = (((size * each + 1) / (size + 2), size + 2) for each, size in (tpr, tnr))
    if yes + no <= 1:
        return value, (0.0, 1.0)
    middle = min(max((rate + no - 1) / (yes + no - 1), 0.0), 1.0)
    spread = rate * (1 - rate) / (judged[1] + z * z)
    parts = middle * yes * (1 - yes) / of_yes, (1 - middle) * no * (1 - no) / of_no
    error = math.sqrt(spread + middle * parts[0] + (1 - middle) * parts[1]) / (yes + no - 1)
    middle += 2 * z * z * (parts[0] - parts[1])
    return value, (max(min(middle - z * error, value), 0.0), min(max(middle + z * error, value), 1.0))


def plan_pairs(decided: float, wins: float = 0.55, level: float = DEFAULT_LEVEL, power: float = 0.8) -> int:
    """Return how many pairs show that one of two systems is better; ties, also those of order flips, decide nothing.

    Args:
        decided: The fraction of pairs that are no tie, above 0.
        wins: The fraction of these that the better system wins, above 0.5.
        level: The confidence level of the interval of wins less losses that is to exclude 0.
        power: The probability that it does.

    Example:
        >>> [plan_pairs(decided) for decided in (1.0, 0.5)]
        [778, 1562]
    """
    edge = decided * (2 * wins - 1)
    z = NormalDist().inv_cdf((1 + level) / 2) + NormalDist().inv_cdf(power)
    return math.ceil(z * z * (decided - edge * edge) / (edge * edge))


def estimate_bias(errors: Floats, features: Floats, clusters: Ints, level: float) -> list[tuple[float, Interval]]:
    """Return how much the error of a judge changes with each feature, with intervals over clusters (jackknife).

    Args:
        errors: What the judge says less what people say.
        features: Features of the rows, a column each, of which none is constant. One regression is on all of them.
        clusters: The cluster (dialogue) of each row.
        level: The level of the intervals.
    """
    clusters = np.unique(clusters, return_inverse=True)[1].ravel()
    columns = np.column_stack([np.ones(len(errors)), features])

    def fit(counts: Ints) -> Floats:
        weighted = (columns * counts[clusters][:, None]).T
        return np.asarray(np.linalg.lstsq(weighted @ columns, weighted @ errors, rcond=None)[0][1:])

    sizes = np.bincount(clusters)
    whole, left = fit(np.ones_like(sizes)), np.concatenate(list(leave_out_clusters(len(sizes))))
    without = np.array([fit(counts) for counts in left])
    pairs = zip(whole.tolist(), without.T, strict=True)
    return [(value, jackknife(value, column, sizes.astype(np.float64)).interval(level)) for value, column in pairs]
