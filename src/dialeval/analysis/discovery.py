"""Slices that nobody named: groups of dialogues where a system is worse, or better, than elsewhere.

    discover(run)

1. **Candidates** come from what the logs contain: words and phrases (up to three words) of user turns, clusters of
   user turns, tools that were called, the number of turns, the words and the script of the user, and values of the
   fields that the run kept, also of two fields together. A dialogue is in a candidate if any of its turns is.
2. **One half** of the dialogues, drawn by `seed`, chooses groups: the candidate with the largest score statistic (the
   contrast between group and rest over its standard error, with the variance of all dialogues) opens a group; words
   that are also worse in the dialogues outside of it join it, so that "refund" and "money back" are one group. Further
   groups are chosen in what is left, up to `MOST_GROUPS` for each metric and system.
3. **The other half** tests them. What is printed is its estimate: group minus rest, Welch's interval over whole
   dialogues, and p, that of permuted dialogues or of Student's distribution, whichever is larger. Then the halves
   change places. All tests are one family (Holm), and of two groups with mostly the same dialogues one is printed.

Without step 3 the largest of hundreds of contrasts is nearly always "significant", although nothing is there.

The value of a dialogue is that of its rows, for one system; the difference to the baseline in aligned rows, or in
dialogues as wholes, for paired systems. In an unpaired design the contrast is one of four means: system minus baseline
in the group, minus the same in the rest. Corpus values have no value per dialogue and are left out.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, cast

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.alignment import Alignment, DesignName, align
from dialeval.analysis.difference import DEFAULT_ALPHA
from dialeval.analysis.pairing import Runs, choose_main_keys, collect_compared, find_keys, warn_of_users
from dialeval.analysis.slices import OTHER, list_kept_fields, split_by_field
from dialeval.analysis.unpaired import NO_VALUE
from dialeval.analysis.values import average_known, find_better, regroup, require_table, sort_clusters, sum_known
from dialeval.core.arrays import Floats, Ints, Mask, ranges
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.display import Displayable, Tabular
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import SAVED_TEXT_ROWS, RowTable
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.stats.independent import ClusterSums, Spread, permute, rank_first, welch
from dialeval.stats.intervals import DEFAULT_LEVEL, t_factor, two_sided_p
from dialeval.stats.resampling import DEFAULT_SEED
from dialeval.stats.significance import holm
from dialeval.text.ngrams import NgramColumn
from dialeval.text.tokenizers import choose_installed, choose_tokenizer, count_characters, tokenize
from dialeval.text.vocabulary import Vocabulary

LEAST_DIALOGUES = 10
"""Dialogues of a group, and of the rest, in each half and system."""
MOST_GROUPS = 8
OPENS, JOINS = 2.75, 3.0
"""Score statistics from which on a candidate opens a group, and a word joins one."""
_MOST_CANDIDATES, _MOST_WORDS, _LONGEST = 300, 4, 3
"""Candidates that groups are chosen from, labels of a group, and words of a phrase."""
_MOST_PAIRED, _TRIALS, _MOST_PERMUTED = 12, 4999, 20_000
_MOST_QUOTED = 20
_OVERLAP = 0.5
"""The fraction of the dialogues of two groups that both have, above which they are one."""
_CLUSTER_DIMENSIONS, _MOST_CLUSTERED, _STEPS = 64, 20_000, 12
NO_TEXTS = f"The run has no texts of users; those of more than {SAVED_TEXT_ROWS:,} rows are not saved."
_USER = re.compile("user|human|customer", re.IGNORECASE)
_CALL = re.compile(r"\[call ([\w.-]{1,60})")


class DiscoveredGroup(Record, frozen=True, kw_only=True):
    """A group of dialogues that one half suggested, and what the other half says of it.

    Attributes:
        name: Its own words, or the field and value.
        kind: What it was found by: `words`, `prompts`, `tool`, `turns`, `user-words`, `script`, or `field`.
        key: The metric.
        system: The system.
        baseline: The system that it is compared with; None: the rest of its own dialogues.
        better: Which values are better.
        found_difference: The contrast in the half that suggested the group; larger than the truth by selection.
        dialogues: Dialogues of the group in the other half.
        rest: Other dialogues there.
        value: The mean, or the mean difference to the baseline, in the group.
        elsewhere: The same in the rest.
        difference: `value - elsewhere`.
        interval: Its confidence interval.
        p: The p-value.
        adjusted_p: The p-value adjusted for all groups, metrics and systems.
        significant: Whether `adjusted_p` is below alpha.
        examples: What users said in three dialogues, those with the most extreme values first.
        ids: The dialogues of the group in both halves: their ids, or their numbers from 1.

    Examples:
        >>> import dialeval
        >>> rows = [
        ...     {"context": ["my refund ?" if n % 4 else "hello"], "response": "no" if n % 4 else "at nine of course"}
        ...     for n in range(160)
        ... ]
        >>> found = dialeval.discover(dialeval.evaluate({"bot": rows}, metrics="length"))
        >>> found.groups[0].dialogues, found.groups[0].significant
        (20, True)
    """

    name: str
    kind: str
    key: str
    system: str
    baseline: str | None
    better: Better | None = None
    found_difference: float
    dialogues: int
    rest: int
    value: float
    elsewhere: float
    difference: float
    interval: tuple[float, float]
    p: float
    adjusted_p: float = math.nan
    significant: bool = False
    examples: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether the system is worse here than elsewhere."""
        return (self.better == "higher" and self.difference < 0) or (self.better == "lower" and self.difference > 0)


class Discovery(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.discover`.

    Attributes:
        version: The version of dialeval.
        groups: The groups, the most certain first.
        candidates: How many candidates were looked at, by kind.
        halves: Dialogues of the half that suggested groups and of the half that tested them, by system.
        alpha: The significance level.
        seed: The seed of the halves.
        left_out: Metrics that were left out, with reasons.
        notes: What the reader should know.

    Examples:
        >>> import dialeval
        >>> rows = [
        ...     {"context": ["my refund ?" if n % 4 else "hello"], "response": "no" if n % 4 else "at nine of course"}
        ...     for n in range(160)
        ... ]
        >>> found = dialeval.discover(dialeval.evaluate({"bot": rows}, metrics="length"))
        >>> found.halves
        {'bot': (80, 80)}
    """

    version: str = __version__
    groups: Sequence[DiscoveredGroup]
    candidates: Mapping[str, int]
    halves: Mapping[str, tuple[int, int]]
    alpha: float
    seed: int
    left_out: Mapping[str, str]
    notes: Sequence[str]

    def __repr__(self) -> str:
        clear = sum(group.significant for group in self.groups)
        return f"<Discovery: {len(self.groups)} groups out of {sum(self.candidates.values()):,}, {clear} significant>"

    def lines(self) -> list[JsonObject]:
        """Return a line per group.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [{**group.to_dict(), "worse": group.worse} for group in self.groups]


# What the logs contain.


@dataclass(frozen=True, eq=False)
class UserTurns:
    """The user turns of dialogues, in order, and the dialogue of each."""

    texts: TextColumn
    dialogues: Ints

    @classmethod
    def of(cls, table: RowTable) -> UserTurns:
        """Collect the user turns of each dialogue: those that rows add to the context of the row before."""
        context, roles = table.texts.get("context"), table.texts.get("roles")
        if context is None:
            return cls(TextColumn.from_strings([]), np.zeros(0, np.int64))
        if isinstance(context, TextColumn):
            return cls(context, table.clusters)
        counts = context.ends - context.starts
        firsts = np.zeros(len(table), np.bool_)
        firsts[table.offsets[:-1]] = True
        added = np.where(firsts, counts, np.minimum(counts, 1))
        if isinstance(context, SharedColumn):
            steps, continues = context.steps()
            added = np.where(continues & ~firsts, np.diff(steps.offsets), counts)
        places = ranges(context.ends - added, added)
        rows = np.repeat(np.arange(len(table)), added)
        if isinstance(roles, TextColumn | None):
            spoken = (context.ends[rows] - 1 - places) % 2 == 0
        else:
            named = {name: bool(_USER.fullmatch(name)) for name in set(roles.values)}
            spoken = np.array([named[name] for name in roles.values.take(ranges(roles.ends - added, added))], np.bool_)
        return cls(context.values.take(places[spoken]), table.clusters[rows[spoken]])

    def quote(self, dialogue: int, name: str) -> str:
        """Return the first user turn of a dialogue with one of the words of a group, or else the first one."""
        start, stop = np.searchsorted(self.dialogues, [dialogue, dialogue + 1]).tolist()
        texts = list(self.texts.slice(start, stop))
        words = name.split(", ")
        return next((text for text in texts if any(word in text.lower() for word in words)), "".join(texts[:1]))

    @classmethod
    def join(cls, parts: Sequence[UserTurns], sizes: Sequence[int]) -> UserTurns:
        """Join the turns of logs of some numbers of dialogues, one after the other."""
        shifts = np.append(0, np.cumsum(sizes))[:-1].tolist()
        texts = (
            parts[0].texts if len(parts) == 1 else TextColumn.from_strings([t for part in parts for t in part.texts])
        )
        dialogues = [part.dialogues + shift for part, shift in zip(parts, shifts, strict=True)]
        return cls(texts or parts[0].texts, np.concatenate(dialogues))


class Features(NamedTuple):
    """Words and phrases of texts: feature `labels[f]` is in the dialogues `dialogues[offsets[f]:offsets[f + 1]]`."""

    labels: list[str]
    dialogues: Ints
    offsets: Ints

    def select(self, chosen: Ints) -> Features:
        """Return some of the features."""
        sizes = np.diff(self.offsets)[chosen]
        places = ranges(self.offsets[chosen], sizes)
        return Features(
            [self.labels[at] for at in chosen.tolist()], self.dialogues[places], np.append(0, sizes.cumsum())
        )


def find_phrases(turns: UserTurns, least: int, most: int, longest: int = _LONGEST) -> Features:
    """Return the words and phrases in `least` to `most` dialogues; those without a letter or digit are left out."""
    tokenizer = choose_installed(choose_tokenizer(count_characters(turns.texts)))
    vocabulary = Vocabulary()
    tokens = tokenize(turns.texts, vocabulary, "lower-13a" if tokenizer == "words.1" else tokenizer)
    words = vocabulary.words(np.arange(len(vocabulary), dtype=np.int32))
    spelled = np.array([any(map(str.isalnum, word)) for word in words], np.bool_)
    size = int(turns.dialogues.max(initial=0)) + 1
    labels, dialogues, sizes = list[str](), [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    for n in range(1, longest + 1):
        column = NgramColumn.of(tokens, n)
        keys, numbers = column.number_keys()
        places = np.unique(numbers * size + np.repeat(turns.dialogues, np.diff(column.offsets)))
        support = np.bincount(places // size, minlength=len(keys))
        kept = np.flatnonzero((support >= least) & (support <= most))
        grams = column.decode(keys[kept])
        fine = spelled[grams].all(axis=1)
        kept, grams = kept[fine], grams[fine]
        labels += [" ".join(words[word] for word in gram) for gram in grams.tolist()]
        starts = np.append(0, support.cumsum())
        dialogues.append((places % size)[ranges(starts[kept], support[kept])])
        sizes.append(support[kept])
    return Features(labels, np.concatenate(dialogues), np.concatenate(sizes).cumsum())


def _find_fields(result: Result) -> Iterator[tuple[str, str, Ints]]:
    """Yield values of fields, and of two fields together: kind, label, and dialogues."""
    table = require_table(result)
    single: list[tuple[str, str, Ints]] = []
    for name in list_kept_fields(Run({"": result}, __version__)):
        for label, rows in split_by_field({"": table}, name):
            if label not in (OTHER, NO_VALUE):
                single.append((name, f"{name} = {label}", np.unique(table.clusters[rows[""]])))
    yield from (("field", label, dialogues) for _, label, dialogues in single)
    largest = sorted(single, key=lambda value: -len(value[2]))[:_MOST_PAIRED]
    for one, other in combinations(largest, 2):
        if one[0] != other[0]:
            yield "field", f"{one[1]}, {other[1]}", np.intersect1d(one[2], other[2])


def _split_numbers(kind: str, unit: str, numbers: Iterable[float]) -> Iterator[tuple[str, str, Ints]]:
    """Yield the ranges of a number of each dialogue, cut as slices are."""
    column = RaggedColumn.from_lists([[f"{number:g}"] for number in numbers])
    for label, rows in split_by_field({"": RowTable(np.arange(len(column) + 1), fields={"-": column})}, "-"):
        yield kind, f"{label} {unit}", rows[""]


def _find_texts(table: RowTable, turns: UserTurns) -> Iterator[tuple[str, str, Ints]]:
    """Yield groups by tools, turns, the user's words, script, and clusters of prompts."""
    size = len(table.offsets) - 1
    lengths, context = np.diff(table.offsets), table.texts.get("context")
    if lengths.max(initial=0) < 2 and isinstance(context, RaggedColumn | SharedColumn):
        lengths = (context.ends - context.starts)[table.offsets[1:] - 1] // 2 + 1
    yield from _split_numbers("turns", "turns", lengths.tolist())
    called: dict[str, set[int]] = {}
    if context is not None and not isinstance(context, TextColumn) and b"[call " in context.values.data.tobytes():
        for row, dialogue in zip(table.offsets[1:] - 1, range(size), strict=True):
            for tool in _CALL.findall("\n".join([*context[row], *table.texts_at("response", int(row))])):
                called.setdefault(tool, set()).add(dialogue)
    yield from (("tool", f"calls {tool}", np.array(sorted(some))) for tool, some in called.items())
    if not len(turns.texts):
        return
    words = np.bincount(turns.dialogues, [len(text.split()) for text in turns.texts], size)
    yield from _split_numbers("user-words", "words by the user", words.tolist())
    scripts: dict[str, list[int]] = {}
    for dialogue, place in zip(*np.unique(turns.dialogues, return_index=True), strict=True):
        letter = next(filter(str.isalpha, turns.texts[int(place)]), None)
        if letter is not None:
            scripts.setdefault(unicodedata.name(letter, "other").split()[0].lower(), []).append(int(dialogue))
    if len(scripts) > 1:
        yield from (("script", f"in {name} script", np.array(some)) for name, some in scripts.items())


def _cluster_prompts(features: Features, size: int, seed: int) -> Iterator[tuple[str, str, Ints]]:
    """Yield clusters of prompts by their words (spherical k-means of random projections), named by typical words."""
    sizes = np.diff(features.offsets)
    if size < 4 * LEAST_DIALOGUES or not len(sizes):
        return
    lot = np.random.default_rng(seed)
    weights = np.log(size / sizes)[:, None] * lot.choice([-1.0, 1.0], (len(sizes), _CLUSTER_DIMENSIONS))
    vectors = np.zeros((size, _CLUSTER_DIMENSIONS))
    rows = np.repeat(np.arange(len(sizes)), sizes)
    for axis in range(_CLUSTER_DIMENSIONS):
        vectors[:, axis] = np.bincount(features.dialogues, weights[rows, axis], size)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)[:, None]
    number = int(np.clip(math.sqrt(size / 10), 4, 20))
    sample = vectors[lot.permutation(size)[:_MOST_CLUSTERED]]
    centers = sample[:number].copy()
    for _ in range(_STEPS):
        nearest = (sample @ centers.T).argmax(axis=1)
        sums = np.stack(
            [sample[nearest == at].sum(axis=0) if (nearest == at).any() else centers[at] for at in range(number)]
        )
        centers = sums / np.maximum(np.linalg.norm(sums, axis=1), 1e-12)[:, None]
    nearest = (vectors @ centers.T).argmax(axis=1)
    for at in range(number):
        inside = nearest == at
        counts = np.add.reduceat(inside[features.dialogues].astype(np.float64), features.offsets[:-1])
        expected = sizes * inside.mean() + 1
        typical = np.argsort((counts - expected) / np.sqrt(expected))[::-1][: _MOST_WORDS - 1]
        yield "prompts", f"prompts like: {', '.join(features.labels[word] for word in typical)}", np.flatnonzero(inside)


# Contrasts.


class SideValues(NamedTuple):
    """The values of one side: sums and numbers of rows of each dialogue of the pool; none of those of another side."""

    sign: int
    sums: Floats
    counts: Floats

    def take(self, chosen: Mask) -> ClusterSums:
        """Return the dialogues that are chosen and have a value."""
        here = chosen & (self.counts > 0)
        return ClusterSums(self.sums[here], self.counts[here])


class Pool(NamedTuple):
    """The dialogues that groups are made of, with the candidates."""

    system: str
    baseline: str | None
    results: Sequence[Result]
    """Whose dialogues these are: one, or the baseline and the system, one after the other."""
    alignment: Alignment | None
    candidates: Features
    kinds: Sequence[str]
    turns: UserTurns
    first: Mask
    """The half that suggests groups."""
    clusters: Ints | None
    """The number of the cluster of each dialogue; None: dialogues are independent."""
    halves: Mapping[str, tuple[int, int]]
    """Dialogues of both halves, by system."""

    def collect(self, key: str) -> list[SideValues]:
        """Return the values under a key."""
        results = self.results if self.alignment is None else (self.alignment.left, self.alignment.right)
        offsets = [require_table(result).offsets for result in results]
        items = [cast("Floats", result[key].scores) for result in results]  # keys without are left out before
        if self.alignment is not None and len(self.results) == 1:
            if not self.alignment.by_row or len(items[0]) != offsets[0][-1]:
                items = [average_known(*each) for each in zip(items, offsets, strict=True)]
            return [SideValues(1, *sum_known(items[1] - items[0], offsets[0]).T)]
        sides = [sum_known(*each) for each in zip(items, offsets, strict=True)]
        if len(sides) == 1:
            return [SideValues(1, *sides[0].T)]
        both, first = np.vstack(sides), np.arange(sum(map(len, sides))) < len(sides[0])
        return [SideValues(way, *np.where(here[:, None], both, 0.0).T) for way, here in ((-1, first), (1, ~first))]


def _moments(sample: SideValues, half: Mask) -> Floats:
    """Return, by dialogue of a half, what the mean of a group and its variance are made of."""
    here = half & (sample.counts > 0)
    center = sample.sums[here].sum() / max(float(sample.counts[here].sum()), 1.0)
    left = sample.sums - center * sample.counts
    return np.column_stack([left, sample.counts, here]) * here[:, None]


def score_candidates(samples: Sequence[SideValues], half: Mask, groups: Features) -> Floats:
    """Return the score statistic of each candidate: the contrast over its error if the group were like the rest."""
    contrast, variance = np.zeros(len(groups.labels)), np.zeros(len(groups.labels))
    enough = np.ones(len(groups.labels), np.bool_)
    for sample in samples:
        columns = _moments(sample, half)
        total = columns.sum(axis=0)
        inside = np.add.reduceat(np.vstack([columns[groups.dialogues], np.zeros((1, 3))]), groups.offsets[:-1], axis=0)
        inside[np.diff(groups.offsets) == 0] = 0
        outside = total - inside
        enough &= np.minimum(inside[:, 2], outside[:, 2]) >= LEAST_DIALOGUES
        with np.errstate(divide="ignore", invalid="ignore"):
            contrast += sample.sign * (inside[:, 0] / inside[:, 1] - outside[:, 0] / outside[:, 1])
            spread = float((columns[:, 0] ** 2).sum()) / max(total[2] - 1, 1)
            variance += spread * (inside[:, 2] / inside[:, 1] ** 2 + outside[:, 2] / outside[:, 1] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(enough & (variance > 0), contrast / np.sqrt(variance), 0.0)


def choose_groups(
    samples: Sequence[SideValues], half: Mask, candidates: Features, kinds: Sequence[str]
) -> list[tuple[str, str, Mask]]:
    """Return the groups that a half suggests: name, kind and dialogues."""
    order = np.argsort(-np.abs(score_candidates(samples, half, candidates)), kind="stable")[:_MOST_CANDIDATES]
    few, labels = candidates.select(order), [candidates.labels[at] for at in order.tolist()]
    free, groups = half.copy(), list[tuple[str, str, Mask]]()
    while len(groups) < MOST_GROUPS:
        scores = score_candidates(samples, free, few)
        best = int(np.abs(scores).argmax()) if len(scores) else 0
        if not len(scores) or abs(scores[best]) < OPENS:
            break
        members = np.zeros(len(half), np.bool_)
        members[few.dialogues[few.offsets[best] : few.offsets[best + 1]]] = True
        names, kind, sign = [labels[best]], kinds[order[best]], np.sign(scores[best])
        while kind == "words" and len(names) < _MOST_WORDS:
            more = score_candidates(samples, free & ~members, few) * sign
            more[[kinds[at] != "words" for at in order.tolist()]] = 0
            joins = int(more.argmax())
            if more[joins] < JOINS:
                break
            members[few.dialogues[few.offsets[joins] : few.offsets[joins + 1]]] = True
            names.append(labels[joins])
        groups.append((", ".join(names), kind, members))
        free &= ~members
    return groups


def measure_group(
    samples: Sequence[SideValues], half: Mask, members: Mask, level: float, seed: int, clusters: Ints | None = None
) -> JsonObject | None:
    """Return the contrast of a group in a half, with its interval and p-value; None where too little is there.

    `clusters`: the number of the cluster of each dialogue, such as its user; p is then Student's over clusters.
    """
    means, spreads, sizes, influences = [], list[Spread](), [], np.zeros(len(half))
    for sample in samples:
        for chosen in (half & members, half & ~members):
            part, here = sample.take(chosen), chosen & (sample.counts > 0)
            if (len(part.sums) if clusters is None else len(np.unique(clusters[here]))) < LEAST_DIALOGUES:
                return None
            means.append(sample.sign * part.mean)
            spreads.append(part.spread)
            sizes.append(len(part.sums))
            way = sample.sign * (1 if len(means) % 2 else -1)
            influences[here] += way * (part.sums - part.mean * part.counts) / part.counts.sum()
    value, elsewhere = sum(means[::2]), sum(means[1::2])
    difference, error = value - elsewhere, math.sqrt(sum(spread.variance for spread in spreads))
    freedom = welch(*spreads) if error else math.inf
    if clusters is not None:
        number = len(np.unique(clusters[half]))
        error = math.sqrt(number / (number - 1) * float((np.bincount(clusters, influences) ** 2).sum()))
        freedom = float(number - 1)
    p = two_sided_p(difference / error, freedom) if error else 1.0 if not difference else 1 / (_TRIALS + 1)
    if len(samples) == 1 and sum(sizes) <= _MOST_PERMUTED and error and clusters is None:
        sides = samples[0].take(half & ~members), samples[0].take(half & members)
        p = max(p, rank_first(permute(*sides, _TRIALS, seed)))
    reach = t_factor(level, freedom) * error if error else 0.0
    return {
        "value": value,
        "elsewhere": elsewhere,
        "difference": difference,
        "interval": (difference - reach, difference + reach),
        "p": p,
        "dialogues": sum(sizes[::2]),
        "rest": sum(sizes[1::2]),
    }


# The whole.


def discover(
    runs: Runs,
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: str | Iterable[str] | None = None,
    alpha: float = DEFAULT_ALPHA,
    confidence: float = DEFAULT_LEVEL,
    seed: int = DEFAULT_SEED,
    design: DesignName | None = None,
    cluster: str | None = None,
) -> Discovery:
    """Find groups of dialogues where a system is worse or better than elsewhere, without being told where to look.

    Groups are chosen on one half of the dialogues and tested on the other half, with correction for all tests.

    Args:
        runs: A run, a list of runs, or a mapping of names to runs. Of several systems, differences to the baseline are
            looked at; of one, its own values.
        baseline: The system that the others are compared with; None: the first.
        systems: Only these systems; None: all but floor and ceiling systems.
        metrics: The metrics; None: one of each family for which higher or lower is better.
        alpha: The significance level.
        confidence: The confidence level of the intervals.
        seed: The seed of the halves.
        design: As in `dialeval.compare`.
        cluster: A field that the runs kept, such as the user, all of whose dialogues are in the same half, and that
            intervals and p-values are over.

    Returns:
        The groups, with what the second half says of them.

    Raises:
        SettingError: The run keeps no rows, or has too few dialogues.

    Examples:
        >>> import dialeval
        >>> rows = [
        ...     {"context": ["my refund ?" if n % 4 else "hello"], "response": "no" if n % 4 else "at nine of course"}
        ...     for n in range(160)
        ... ]
        >>> run = dialeval.evaluate({"bot": rows}, metrics="length")
        >>> dialeval.discover(run).groups[0].name
        'hello'
    """
    chosen = collect_compared(runs, baseline, systems)
    first, *others = chosen
    keys = choose_main_keys(chosen)
    if metrics is not None:
        everything = list(dict.fromkeys(key for result in chosen.values() for key in result))
        keys = find_keys([metrics] if isinstance(metrics, str) else metrics, everything, "no system has", "there are")
    left_out = {key: reason for key in keys if (reason := _explain_exclusion(chosen, key))}
    keys = [key for key in keys if key not in left_out]
    if not keys:
        raise SettingError(f"no metric has a value per dialogue: {next(iter(left_out.values()), 'there is none')}")
    pools = [_make_pool(chosen, name, first if others else None, design, seed, cluster) for name in others or [first]]
    suggested = [one for pool in pools for key in keys for one in _suggest_groups(pool, key, confidence, seed)]
    adjusted = holm([group.p for group, _ in suggested])
    kept: list[tuple[DiscoveredGroup, Mask]] = []
    for (group, members), p in sorted(zip(suggested, adjusted, strict=True), key=lambda pair: pair[1]):
        if not any(_is_repeated(group, members, *other) for other in kept):
            same = group.found_difference * group.difference > 0
            better = find_better(chosen, group.key)
            kept.append((replace(group, better=better, adjusted_p=p, significant=p < alpha and same), members))
    counts = {kind: pools[0].kinds.count(kind) for kind in dict.fromkeys(pools[0].kinds)}
    notes = [] if len(pools[0].turns.texts) else [f"{NO_TEXTS} Groups are of fields and numbers of turns only."]
    if cluster is None:
        notes += dict.fromkeys(filter(None, (warn_of_users(require_table(result)) for result in chosen.values())))
    return Discovery(
        groups=[group for group, _ in kept],
        candidates=counts,
        halves={name: sizes for pool in pools for name, sizes in pool.halves.items()},
        alpha=alpha,
        seed=seed,
        left_out=left_out,
        notes=notes,
    )


def _explain_exclusion(systems: Mapping[str, Result], key: str) -> str | None:
    for name, result in systems.items():
        if key not in result:
            return f"{name} has no {key}"
        if result[key].corpus or result[key].scores is None:
            return f"{key} is a corpus value, which no single dialogue has"
    return None


def _make_pool(
    systems: Mapping[str, Result],
    name: str,
    baseline: str | None,
    design: DesignName | None,
    seed: int,
    cluster: str | None = None,
) -> Pool:
    alignment = None if baseline is None else align(systems[baseline], systems[name], design)
    results = [systems[name]] if alignment is None else [alignment.left]
    if alignment is not None and alignment.design.name == "unpaired":
        results.append(alignment.right)
    tables = [require_table(result) for result in results]
    sizes = [len(table.offsets) - 1 for table in tables]
    size, clusters = sum(sizes), None
    if cluster is not None:
        labels = [label for result in results for label in regroup(result, cluster)[1]]
        clusters = np.asarray(np.unique(np.array(labels, np.str_), return_inverse=True)[1])
    units = min(sizes) if clusters is None else int(clusters.max()) + 1
    if units < 4 * LEAST_DIALOGUES:
        raise SettingError(
            f"{units} {'dialogues' if cluster is None else f'values of {cluster}'} are too few to find groups in one "
            f"half and test them in the other; at least {4 * LEAST_DIALOGUES} are needed"
        )
    turns = [UserTurns.of(table) for table in tables]
    shifts, both = np.append(0, np.cumsum(sizes)), UserTurns.join(turns, sizes)
    least = 2 * LEAST_DIALOGUES
    phrases = find_phrases(both, least, size - least)
    listed = list(_cluster_prompts(phrases, size, seed))
    by_label: dict[tuple[str, str], list[Ints]] = {}
    for result, table, part, shift in zip(results, tables, turns, shifts, strict=False):
        for kind, label, dialogues in (*_find_fields(result), *_find_texts(table, part)):
            by_label.setdefault((kind, label), []).append(dialogues + shift)
    listed += [(kind, label, np.concatenate(parts)) for (kind, label), parts in by_label.items()]
    listed = [group for group in listed if least <= len(group[2]) <= size - least]
    numbers = [len(group[2]) for group in listed]
    candidates = Features(
        [*phrases.labels, *(label for _, label, _ in listed)],
        np.concatenate([phrases.dialogues, *(dialogues for _, _, dialogues in listed)]).astype(np.int64),
        np.append(phrases.offsets, phrases.offsets[-1] + np.cumsum(numbers, dtype=np.int64)),
    )
    half = np.zeros(size, np.bool_)
    lot = np.random.default_rng(seed)
    for result, shift, number in zip(results, shifts, sizes, strict=False):
        half[shift + sort_clusters(result)[lot.permutation(number)[: number // 2]]] = True
    if clusters is not None:
        half = np.isin(clusters, lot.permutation(units)[: units // 2])
    names = [name] if len(results) == 1 or baseline is None else [baseline, name]
    parts = [half[shift : shift + number] for shift, number in zip(shifts, sizes, strict=False)]
    halves = {each: (int(part.sum()), int((~part).sum())) for each, part in zip(names, parts, strict=True)}
    kinds = ["words"] * len(phrases.labels) + [kind for kind, _, _ in listed]
    return Pool(name, baseline, results, alignment, candidates, kinds, both, half, clusters, halves)


def _suggest_groups(pool: Pool, key: str, confidence: float, seed: int) -> Iterator[tuple[DiscoveredGroup, Mask]]:
    """Yield the groups that each half suggests, with what the other half measures under a key, and their members."""
    samples = pool.collect(key)
    for half in (pool.first, ~pool.first):
        for name, kind, members in choose_groups(samples, half, pool.candidates, pool.kinds):
            before = measure_group(samples, half, members, confidence, seed, pool.clusters)
            after = measure_group(samples, ~half, members, confidence, seed, pool.clusters)
            if before is not None and after is not None:
                group = DiscoveredGroup(
                    name=name,
                    kind=kind,
                    key=key,
                    system=pool.system,
                    baseline=pool.baseline,
                    found_difference=before["difference"],
                    **after,
                    **_describe_members(pool, samples, name, members, ~half),
                )
                yield group, members


def _is_repeated(group: DiscoveredGroup, members: Mask, other: DiscoveredGroup, of_other: Mask) -> bool:
    """Return whether another group is mostly the same, as the other half suggested it."""
    same = (group.system, group.key) == (other.system, other.key) and group.difference * other.difference > 0
    return same and bool((members & of_other).sum() > _OVERLAP * (members | of_other).sum())


def _describe_members(pool: Pool, samples: Sequence[SideValues], name: str, members: Mask, half: Mask) -> JsonObject:
    """Return what users said in the most extreme dialogues of the half that tests, and the ids of all."""
    names = [name or str(at) for result in pool.results for at, name in enumerate(require_table(result).read_ids(), 1)]
    with np.errstate(invalid="ignore"):
        values = np.sum([sample.sign * np.nan_to_num(sample.sums / sample.counts) for sample in samples], axis=0)
    here = np.flatnonzero(members & half)
    way = np.sign(values[here].mean() - values[half & ~members].mean())
    extreme = here[np.argsort(-way * values[here], kind="stable")]
    examples = filter(None, dict.fromkeys(pool.turns.quote(at, name) for at in extreme[:_MOST_QUOTED].tolist()))
    return {"examples": tuple(examples)[:3], "ids": tuple(names[at] for at in np.flatnonzero(members).tolist())}
