"""Naive twins of coverage: plain loops over lists of words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

Words = list[str]
Group = list[Words]
Query = tuple[list[Words], list[Group]]


def words(longest: int = 12) -> st.SearchStrategy[Words]:
    """Texts of few different words, so that n-grams repeat."""
    return st.sampled_from([1, 2, 5, 30]).flatmap(
        lambda count: st.lists(st.integers(1, count).map(lambda number: f"w{number}"), max_size=longest)
    )


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Hypotheses that share stretches of words with the references, some of them long, some groups equal."""
    base = [*draw(words()), *draw(words())]
    part = st.tuples(st.integers(0, len(base)), st.integers(0, len(base))).map(lambda ends: base[ends[0] : ends[1]])
    long = st.integers(60, 70).map(lambda size: [*base, "x"] * 70).flatmap(lambda text: st.just(text[:66]))
    text = st.one_of(words(), part, st.tuples(part, words()).map(lambda both: [*both[0], *both[1]]), long)
    groups = draw(st.lists(st.lists(text, min_size=1, max_size=3), min_size=1, max_size=4))
    return draw(st.lists(text, max_size=4)), groups


def grams(text: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


def add_one_bleu(hypothesis: Words, group: Group, n: int) -> float:
    total = 0.0
    for order in range(1, n + 1):
        most: Counter[tuple[str, ...]] = Counter()
        for reference in group:
            most |= grams(reference, order)
        own = grams(hypothesis, order)
        total += (1 / n) * math.log(((own & most).total() + 1) / (own.total() + 1))
    return math.exp(total)


def figures(query: Query, align: Callable[[Words, Group], float]) -> tuple[list[int], float, float, float]:
    """The group of every hypothesis, mds, pds and max-bleu."""
    hypotheses, groups = query
    scores = [[align(hypothesis, group) for group in groups] for hypothesis in hypotheses]
    best = [row.index(max(row)) for row in scores]
    references = sum(len(groups[group]) for group in set(best)) / sum(map(len, groups))
    mean = sum(map(max, scores)) / len(scores) if scores else math.nan
    return best, len(set(best)) / len(groups), references, mean
