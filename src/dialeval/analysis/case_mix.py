"""Case mix of two independent logs: strata for post-stratification, and warnings of different distributions.

A stratum is a combination of values of fields that the runs kept (`keep=`, `--by`). The distributions of a
field in two logs are compared by their distance, half the sum of the absolute differences of the fractions of rows, and
by a permutation test that reassigns whole dialogues; a warning needs a distance of at least `LEAST_APART` and a p-value
below `MIX_ALPHA`, since small differences of large logs do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from dialeval.analysis.alignment import Alignment
from dialeval.analysis.cutting import table_of
from dialeval.analysis.difference import Settings
from dialeval.analysis.unpaired import MOST_PERMUTED, Strata, reassign
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.ragged import row_numbers
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.data.formats.records import split_fields

LEAST_APART = 0.1
MIX_ALPHA = 0.01
MIX_TRIALS = 999
_MOST_LABELS = 100
"""A field with more values than that is not a slice but an id."""
NO_VALUE = "(no value)"


def check_adjusted(adjust: str | Iterable[str] | None, known: Mapping[str, Result], names: Sequence[str]) -> list[str]:
    """Return the fields to adjust for; SettingError where a system did not keep one of them."""
    fields = [] if adjust is None else split_fields(adjust)
    if adjust is not None and not fields:
        raise SettingError("no field is named to adjust for")
    for name in names:
        rows = known[name].rows
        there = {} if rows is None else rows.fields
        for field in fields:
            if field not in there:
                kept = f"it kept {', '.join(there)}" if there else "it kept none"
                raise SettingError(
                    f"{name} has no field {field!r} to adjust for, {kept}; score it again with --by {field} "
                    f"(keep=[{field!r}])"
                )
    return fields


def list_strata(alignment: Alignment, fields: Sequence[str]) -> Strata:
    """Return the stratum of each row of the baseline and of the system."""
    return _label(table_of(alignment.left), fields), _label(table_of(alignment.right), fields)


def _label(table: RowTable, fields: Sequence[str]) -> list[str]:
    columns = [[", ".join(sorted(values)) or NO_VALUE for values in table.fields[field]] for field in fields]
    return [" / ".join(values) for values in zip(*columns, strict=True)]


def compare_mixes(
    baseline: str, system: str, alignment: Alignment, adjusted: Sequence[str], settings: Settings
) -> Iterator[str]:
    """Yield a warning for each field whose values are distributed differently in two independent logs."""
    left, right = alignment.left.rows, alignment.right.rows
    if alignment.design.name != "unpaired" or left is None or right is None:
        return
    for field in left.fields:
        if field in adjusted or field not in right.fields:
            continue
        names, counts = _count_labels([_label(left, [field]), _label(right, [field])], (left, right))
        clusters = len(left.offsets) + len(right.offsets) - 2
        if len(names) < 2 or len(names) > _MOST_LABELS or clusters > MOST_PERMUTED:
            continue
        sizes = len(left.offsets) - 1, len(right.offsets) - 1
        fractions = [part.sum(axis=0) / part.sum() for part in (counts[: sizes[0]], counts[sizes[0] :])]
        apart = float(np.abs(fractions[1] - fractions[0]).sum() / 2)
        if apart < LEAST_APART or min(sizes) < 2:
            continue
        drawn = np.concatenate([_distances(chosen, counts) for chosen in reassign(*sizes, MIX_TRIALS, settings.seed)])
        if (1 + np.count_nonzero(drawn >= apart - 1e-12)) / (1 + len(drawn)) < MIX_ALPHA:
            most = int(np.abs(fractions[1] - fractions[0]).argmax())
            shown = (
                f"{names[most]!r} is {100 * fractions[0][most]:.0f}% and {100 * fractions[1][most]:.0f}% of the rows"
            )
            remedy = f"compare with --adjust {field} (adjust={field!r})"
            yield f"{field} is distributed differently in {baseline} and {system} ({shown}); {remedy}"


def _count_labels(labels: Sequence[Sequence[str]], tables: tuple[RowTable, RowTable]) -> tuple[list[str], Floats]:
    """Count the labels of the rows of each cluster, those of the system below those of the baseline."""
    names, codes = np.unique(np.array([*labels[0], *labels[1]], np.str_), return_inverse=True)
    first = len(tables[0].offsets) - 1
    clusters = np.concatenate([row_numbers(tables[0].offsets), first + row_numbers(tables[1].offsets)])
    size = first + len(tables[1].offsets) - 1
    counts = np.bincount(clusters * len(names) + codes, minlength=size * len(names)).reshape(size, len(names))
    return names.tolist(), counts.astype(np.float64)


def _distances(chosen: Floats, counts: Floats) -> Floats:
    second = chosen @ counts
    first = counts.sum(axis=0) - second
    with np.errstate(invalid="ignore"):
        apart: Floats = np.abs(second / second.sum(axis=1, keepdims=True) - first / first.sum(axis=1, keepdims=True))
    distances: Floats = np.nan_to_num(apart.sum(axis=1) / 2)
    return distances
