"""Coverage (MDS, PDS, MaxBLEU): hypotheses per CPU second, against plain Counters and nltk.

100 copies of the real test set (299 queries, 2,990 retrieved hypotheses) where the shared data lies beside the
checkout, else of the shipped sample. Both sides start with the same two files and end with the three means, one thread.
The plain twin is what one writes first, with a Counter of n-grams per text; it looks at one copy, of which the figures
are compared. nltk makes one call per hypothesis and group, on text that is split before the clock starts. The original
program, measured elsewhere, makes about 1,080 hypotheses a CPU second.
"""

from __future__ import annotations

import gzip
import itertools
import json
import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from nltk.translate.nist_score import sentence_nist

import dialeval
from benchmarks.measure import cpu_seconds
from dialeval import sample_data
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "lsdscc"
ORIGINAL = 1080
COPIES = 100
NLTK_QUERIES = 60
NIST_ORDER = 4
EOS = "</s>"

Align = Callable[[list[str], list[list[str]]], float]
Query = tuple[list[list[str]], list[list[list[str]]]]


def inputs() -> tuple[str, dict[str, dict[str, list[str]]]]:
    """The lines of hypotheses, and the groups by query."""
    if SHARED.is_dir():
        lines = gzip.decompress((SHARED / "retrieval.txt.gz").read_bytes()).decode()
        return lines, json.loads(gzip.decompress((SHARED / "test.group.json.gz").read_bytes()))
    folder = sample_data.folder() / "lsdscc"
    return (folder / "varied.txt").read_text(), json.loads((folder / "groups.json").read_text())


def write(folder: Path, copies: int, shortest: int = 0) -> tuple[Path, Path]:
    """The files of so many copies of the queries whose hypotheses all have some words; every query has its own name."""
    lines, groups = inputs()
    pairs = list(zip(lines.removesuffix("\n").split("\n"), groups.items(), strict=True))
    pairs = [pair for pair in pairs if min(len(text.split()) for text in pair[0].split(EOS)) >= shortest]
    hypotheses, references = folder / f"{copies}-{shortest}.txt", folder / f"{copies}-{shortest}.json"
    hypotheses.write_text("".join(f"{line}\n" for line, _ in pairs) * copies)
    named = {f"{query} ({copy})": group for copy in range(copies) for _, (query, group) in pairs}
    references.write_text(json.dumps(named))
    return hypotheses, references


def grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def plain_bleu(hypothesis: list[str], group: list[list[str]]) -> float:
    """The default aligner: add-one on all orders, no brevity penalty."""
    logs = []
    for n in range(1, 5):
        most: Counter[tuple[str, ...]] = Counter()
        for reference in group:
            most |= grams(reference, n)
        own = grams(hypothesis, n)
        logs.append(math.log((sum((own & most).values()) + 1) / (sum(own.values()) + 1)))
    return math.exp(sum(0.25 * log for log in logs))


def ordered(ids: Collection[str]) -> list[str]:
    """By number; an id that is none has the number of groups, the next such id one more."""
    numbers, others = {}, itertools.count(len(ids))
    for name in ids:
        try:
            numbers[name] = int(name)
        except ValueError:
            numbers[name] = next(others)
    return sorted(ids, key=lambda name: numbers[name])


def read(hypotheses: Path, references: Path) -> list[Query]:
    lines = hypotheses.read_text().removesuffix("\n").split("\n")
    groups = json.loads(references.read_text())
    queries = []
    for line, named in zip(lines, groups.values(), strict=True):
        texts = [[text.split() for text in named[name]] for name in ordered(named)]
        queries.append(([text.split() for text in line.split(EOS)], texts))
    return queries


def plain(queries: Sequence[Query], align: Align) -> list[float]:
    """The means of mds, pds and max-bleu."""
    rows = []
    for hypotheses, groups in queries:
        scores = [[align(hypothesis, group) for group in groups] for hypothesis in hypotheses]
        hit = {row.index(max(row)) for row in scores}
        share = sum(len(groups[group]) for group in hit) / sum(map(len, groups))
        rows.append((len(hit) / len(groups), share, sum(map(max, scores)) / len(scores)))
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def ours(hypotheses: Path, references: Path, **settings: object) -> list[float]:
    """The same by dialeval, with deviations, intervals and one value per query."""
    run = evaluate_hypotheses(
        hypotheses,
        reference_groups=references,
        settings={"coverage": settings},
        alignments=False,
        execution=dialeval.Execution(threads=1),
    )
    (result,) = run.values()
    return [result[key].mean for key in ("mds", "pds", "max-bleu")]


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nltk's, about orders without a match
        one, many = write(Path(folder), 1), write(Path(folder), COPIES)
        queries = read(*one)
        count = sum(len(hypotheses) for hypotheses, _ in queries)
        np.testing.assert_allclose(ours(*one), plain(queries, plain_bleu), atol=1e-9)
        np.testing.assert_allclose(ours(*many), ours(*one), atol=1e-12)
        slow = count / cpu_seconds(lambda: plain(read(*one), plain_bleu))
        yield f"hypotheses per CPU second, plain Counters, default aligner, {count:,} hypotheses", f"{slow:,.0f}"
        for name, settings in (("bleu", {}), ("sacre", {"aligner": "sacre"})):
            fast = COPIES * count / cpu_seconds(lambda settings=settings: ours(*many, **settings))  # type: ignore[misc]
            yield (
                f"hypotheses per CPU second, dialeval, aligner {name}, {COPIES * count:,} hypotheses, files included",
                f"{fast:,.0f}, {fast / slow:.0f} times the twin, {fast / ORIGINAL:.0f} times the original",
            )
        yield from _against_nltk(Path(folder))


def _against_nltk(folder: Path) -> Iterator[tuple[str, str]]:
    # nltk divides by zero where a hypothesis has fewer than n words, so both sides get the queries without such.
    one, many = write(folder, 1, NIST_ORDER), write(folder, COPIES, NIST_ORDER)
    queries = read(*one)
    total = COPIES * sum(len(hypotheses) for hypotheses, _ in queries)
    few = queries[:NLTK_QUERIES]
    count = sum(len(hypotheses) for hypotheses, _ in few)
    smooth = SmoothingFunction().method3
    kinds: dict[str, tuple[Align, dict[str, object]]] = {
        "BLEU, method 3": (
            lambda hypothesis, group: float(sentence_bleu(group, hypothesis, smoothing_function=smooth)),
            {"aligner": "nltk-bleu", "smooth": 3},
        ),
        f"NIST, n = {NIST_ORDER}": (
            lambda hypothesis, group: float(sentence_nist(group, hypothesis, NIST_ORDER)),
            {"aligner": "nltk-nist", "n": NIST_ORDER},
        ),
    }
    for name, (align, settings) in kinds.items():
        found = evaluate_hypotheses(
            [query for query, _ in few],
            reference_groups=[groups for _, groups in few],
            settings={"coverage": settings},
            alignments=False,
        )["system"]
        np.testing.assert_allclose(
            [found[key].mean for key in ("mds", "pds", "max-bleu")], plain(few, align), atol=1e-9
        )
        slow = count / cpu_seconds(lambda align=align: plain(few, align), 1)  # type: ignore[misc]
        yield f"hypotheses per CPU second, nltk, {name}, {count:,} hypotheses, split before", f"{slow:,.0f}"
        fast = total / cpu_seconds(lambda settings=settings: ours(*many, **settings))  # type: ignore[misc]
        yield (
            f"hypotheses per CPU second, dialeval, {name}, {total:,} hypotheses, files included",
            (f"{fast:,.0f}, {fast / slow:.0f} times nltk"),
        )
