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
    """Texts of few different words, so that n-grams repeat; made of bytes, which hypothesis draws in one step."""
    return st.builds(
        lambda count, numbers: [f"w{1 + number % count}" for number in numbers],
        st.sampled_from([1, 2, 5, 30]),
        st.binary(max_size=longest),
    )


def _queries(start: Words, rest: Words, hypotheses: list[TextOf], groups: list[list[TextOf]]) -> Query:
    base = [*start, *rest]
    return [text(base) for text in hypotheses], [[text(base) for text in group] for group in groups]


def _part(start: int, stop: int, more: Words) -> TextOf:
    return lambda base: [*base[start % (len(base) + 1) : stop % (len(base) + 1)], *more]


TextOf = Callable[[Words], Words]
_bytes = st.integers(0, 255)
_texts: st.SearchStrategy[TextOf] = st.one_of(
    words().map(lambda text: lambda _: text),
    st.builds(_part, _bytes, _bytes, st.one_of(st.just([]), words())),
    st.just(lambda base: ([*base, "x"] * 70)[:66]),
)


def queries() -> st.SearchStrategy[Query]:
    """Hypotheses that share stretches of words with the references, some of them long, some groups equal."""
    groups = st.lists(st.lists(_texts, min_size=1, max_size=3), min_size=1, max_size=4)
    return st.builds(_queries, words(), words(), st.lists(_texts, max_size=4), groups)


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
