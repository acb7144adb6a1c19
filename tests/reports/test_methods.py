"""The paragraph for a paper is true of its run, and its references are BibTeX."""

from __future__ import annotations

import re

import pytest

import dialeval
from dialeval import sample_data
from dialeval.core.result import Run
from dialeval.reports.papers import describe_methods


@pytest.fixture(scope="module")
def run() -> Run:
    here = sample_data.folder()
    return dialeval.evaluate(here / "responses", here / "references.txt", metrics="sacrebleu,rouge-l,distinct-2,length")


def parse_bibtex(text: str) -> dict[str, dict[str, str]]:
    """Parse entries with balanced braces; an error where they are not."""
    entries = {}
    for entry in filter(None, text.split("\n@")):
        kind, _, rest = entry.removeprefix("@").partition("{")
        key, _, fields = rest.partition(",")
        assert kind.isalpha()
        assert entry.count("{") == entry.count("}")
        pairs = re.findall(r"(\w+) = \{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}", fields)
        entries[key] = dict(pairs)
    return entries


def test_the_paragraph_is_true_of_the_run(run: Run) -> None:
    comparison = dialeval.compare(run, metrics=["sacrebleu", "rouge-l"], trials=300)
    paragraph, references = describe_methods(run, comparison)
    assert f"We scored {len(run)} systems (careful, chatty, generic; 60 responses each)" in paragraph
    assert f"with dialeval {dialeval.__version__}" in paragraph
    for key in run.keys_in_order:
        assert ("response length" if key == "length" else key) in paragraph
    assert "300 trials" in paragraph
    assert f"adjusted for {comparison.tests} tests" in paragraph
    assert f"tested on {comparison.design.clusters} lines" in paragraph
    assert "tok:13a" in paragraph
    assert "failed" not in paragraph
    entries = parse_bibtex(references)
    cited = {key for keys in re.findall(r"\\citep\{([^}]*)\}", paragraph) for key in keys.split(",")}
    assert cited == set(entries)
    assert all({"author", "title", "year"} <= fields.keys() for fields in entries.values())
    assert not any("metrics" in fields for fields in entries.values())


def test_failures_and_names_are_stated_as_text() -> None:
    rows = [
        {"response": text, "context": ["hi"], "system": "a_b"} for text in ("fine", "", "Error 500: upstream timeout")
    ]
    paragraph, _ = describe_methods(dialeval.evaluate(rows, metrics="length"))
    assert r"one system (a\_b;" in paragraph
    assert r"Of 3 replies due from a\_b, 2 failed." in paragraph
    assert "tested" not in paragraph


def test_raters_are_described_with_their_agreement(run: Run) -> None:
    rated = [
        {"response": "yes " * (n % 7), "reference": "yes " * 9, "scores": {"overall": [n % 5, (n + n % 2) % 5]}}
        for n in range(1, 40)
    ]
    agreement = dialeval.measure_agreement(rated, metrics="rouge-l", resamples=50)
    paragraph, references = describe_methods(run, None, agreement)
    assert "Human ratings of overall cover 39 responses." in paragraph
    assert "Krippendorff's alpha is" in paragraph
    assert r"95\% CI" in paragraph
    assert "krippendorff2011computing" in references
