"""Gates as test results and as Markdown: nothing in a name is markup, and the same figures give the same text."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

import dialeval
from analysis.test_comparison import QUICK, texts
from dialeval.analysis.comparison import Comparison, compare
from dialeval.analysis.gates import Gate, check_baseline, check_limits
from dialeval.core.result import Run
from dialeval.reports.comparisons import judge_run, to_github, to_junit
from dialeval.reports.documents import escape_markdown

HOSTILE = 'a<b>&"c"\x1b|*x*'


@pytest.fixture(scope="module")
def run() -> Run:
    return dialeval.evaluate({"main": texts(1), HOSTILE: texts(3, words=4)}, metrics="length,distinct")


@pytest.fixture(scope="module")
def comparison(run: Run) -> Comparison:
    return compare(run, metrics=["distinct", "length"], **QUICK)


def test_every_gate_is_a_test_case(run: Run) -> None:
    gates = list(check_limits(run, {"length": 1.0}, {"distinct-1": 0.05}))
    text = to_junit(gates, run)
    assert text == to_junit(gates, run)
    suites = ET.fromstring(text)
    (suite,) = suites
    assert suites.attrib == {"tests": "4", "failures": "1", "errors": "0"}
    cases = [(case.get("classname"), case.get("name")) for case in suite]
    shown = 'a<b>&"c"\\x1b|*x*'
    assert cases == [
        ("main", "length at least 1"),
        (shown, "length at least 1"),
        ("main", "distinct-1 at most 0.05"),
        (shown, "distinct-1 at most 0.05"),
    ]
    failures = [case.find("failure") for case in suite]
    assert [failure is not None for failure in failures] == [False, False, True, False]
    assert failures[2] is not None
    assert failures[2].get("message") == failures[2].text == gates[2].failure
    assert suite[0].findtext("system-out") == str(run["main"]["length"].signature)


def test_gates_of_a_comparison(run: Run, comparison: Comparison) -> None:
    gates = list(check_baseline(comparison, {}))
    suite = ET.fromstring(to_junit(gates, run, comparison))[0]
    assert suite.get("failures") == "2"
    properties = {each.get("name"): each.get("value") for each in suite[0]}
    assert properties["verdict.kind"] == comparison.verdict.kind == "worse"
    assert str(properties["verdict.headline"]).endswith(" is worse than main")
    assert [case.get("name") for case in suite.iter("testcase")] == [
        "distinct-1 no worse than main",
        "distinct-2 no worse than main",
    ]


def test_a_key_that_was_skipped_has_no_signature(run: Run) -> None:
    text = to_junit([Gate("main", "bleu-4", "at least 0", "bleu-4 of main is not computed, limit 0")], run)
    assert "system-out" not in text
    assert ET.fromstring(text).get("failures") == "1"


def test_markdown_of_a_comparison(run: Run, comparison: Comparison) -> None:
    text = to_github(list(check_baseline(comparison, {})), comparison, run)
    assert text.startswith("### dialeval: 2 of 2 gates failed\n\n- distinct-1 of a&lt;b&gt;&amp;")
    assert "significantly worse" in text
    assert f"\n**{escape_markdown(comparison.verdict.headline)}**\n" in text
    assert '| metric | main | a&lt;b&gt;&amp;"c"\\\\x1b\\|\\*x\\* |' in text
    assert "<details><summary>How these values were computed</summary>\n\n- Tested against main" in text
    assert "distinct-1\\|n:1" in text
    assert text.endswith("</details>\n")
    assert HOSTILE not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("limits", "heading"),
    [
        ({}, "### dialeval\n"),
        ({"length": 0.0}, "### dialeval: all 2 gates hold\n"),
        ({"length": 1e9}, "### dialeval: 2 of 2 gates failed\n"),
    ],
)
def test_markdown_of_a_run(run: Run, limits: dict[str, float], heading: str) -> None:
    text = to_github(list(check_limits(run, limits, {})), run, run, judge_run(run).sentences)
    assert text.startswith(heading)
    assert "| length |" in text
    assert "No metric says which is better" in text


def test_one_system_has_no_verdict() -> None:
    run = dialeval.evaluate(["a b"])
    text = to_github(list(check_limits(run, {"length": 1.0}, {})), run, run, judge_run(run).sentences)
    assert text.startswith("### dialeval: the gate holds\n\n| metric | system |")
    assert "- skipped sacrebleu: needs references" in text


def test_characters_that_xml_forbids_are_replaced(run: Run) -> None:
    odd = Run({"a\ufffeb\uffff\x00": run["main"]}, "0")
    (suite,) = ET.fromstring(to_junit(list(check_limits(odd, {"length": 1.0}, {})), odd))
    assert suite[0].get("classname") == "a\ufffdb\ufffd\\x00"
