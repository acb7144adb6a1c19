"""The page of a metric says what the registry and the tables of the docs say, and its links fit."""

from __future__ import annotations

import pytest
from tools.site.hooks import fitted
from tools.site.tables import quoted, table, tables

from tools.site import metrics

PAGES = dict(metrics.pages())


def test_what_a_page_says() -> None:
    page = PAGES["metrics/distinct.md"]
    for part in (
        "    distinct-n = number of different n-grams / number of n-grams",
        "| `distinct-2` | `n=2` | 0 to 1 | higher | turn |",
        "| `per` | `corpus` | `corpus`, `response` |",
        "| MultiWOZ | 0.001 | 0.242 | 0.266 | 0.242 |",
        "| HUMOD | 1000 | 0.034 / 0.018 | – |",
        "**Weak where** falls with the number of responses",
        "dialeval score sample/responses -m distinct",
        "Li et al. 2016",
    ):
        assert part in page, part


def test_needs_of_which_one_will_do() -> None:
    assert PAGES["metrics/adem.md"].count("one of these") == 2
    assert "-m adem \\\n  -r sample/references.txt -c sample/contexts.txt" in PAGES["metrics/adem.md"]


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ("contributing.md", "[a](docs/start.md#the-sample)", "[a](start.md#the-sample)"),
        ("contributing.md", "![p](docs/images/report.png)", "![p](images/report.png)"),
        ("comparing.md", "[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
        ("benchmarks/scale.md", "[a](../docs/scale.md)", "[a](../scale.md)"),
        ("judge.md", "the [card](../src/dialeval/x/README.md).", "the card."),
        ("judge.md", "[a](https://aclanthology.org/1) [b](#here)", "[a](https://aclanthology.org/1) [b](#here)"),
        ("judge.md", "```sh\n[a](../src/x)\n```", "```sh\n[a](../src/x)\n```"),
    ],
)
def test_links_fit(place: str, text: str, expected: str) -> None:
    assert fitted(text, place) == expected


def test_tables_are_read_back() -> None:
    (read,) = tables(f"a\n\n{table(['x', 'y'], [['`1`, `2`', 'a b']])}\n\nb")
    assert (read.head, read.rows) == (["x", "y"], [["`1`, `2`", "a b"]])
    assert quoted(read.rows[0][0]) == ["1", "2"]
