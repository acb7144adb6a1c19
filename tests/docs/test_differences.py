"""The pages of differences are checked: every entry names the tests that fail if the difference disappears or grows."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

import dialeval
from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown
from dialeval.lsdscc import HypothesisSet
from dialeval.metrics.breakdown import BreakdownDistance

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "differences.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
HELD: dict[str, dict[str, list[str]]] = tomllib.loads((Path(__file__).parent / "differences.toml").read_text())


def entries(section: str) -> list[str]:
    """The rows of the table, the points of the list and the paragraph of what is kept, each from its first word on."""
    found = re.findall(r"^(?:\| |- |(?=Kept as they are: ))(.+)", section, re.MULTILINE)
    return [entry for entry in found if not entry.startswith("the original |")]


def test_every_section_is_held() -> None:
    assert len(SECTIONS) == len(HELD) == 8
    assert all(sum(title.startswith(name) for title in SECTIONS) == 1 for name in HELD)


@pytest.mark.parametrize("name", HELD)
def test_every_entry_is_held(name: str) -> None:
    section = next(part for title, part in SECTIONS.items() if title.startswith(name))
    for entry in entries(section):
        assert sum(entry.startswith(start) for start in HELD[name]) == 1, entry
    for start in HELD[name]:
        assert any(entry.startswith(start) for entry in entries(section)), start


@pytest.mark.parametrize("name", HELD)
def test_the_tests_that_hold_an_entry_exist(name: str) -> None:
    for start, tests in HELD[name].items():
        assert tests, start
        for test in tests:
            file, _, function = test.partition("::")
            assert f"\ndef {function}(" in (TESTS / file).read_text(encoding="utf-8"), test


def test_rouge_splits_at_white_space() -> None:
    found = dialeval.evaluate(["a  b", "a b"], ["a b c", "a b c"], metrics="rouge-l")["system"]["rouge-l"].scores
    assert found is not None
    assert found[0] == found[1]


def test_nlg_bleu_is_a_mean_and_by_name_the_value_of_the_file() -> None:
    responses, references = ["a b c d e", "a b"], ["a b c d f", "a c"]
    run = dialeval.evaluate(responses, references, metrics="nlg-bleu-2,nlg-bleu(n=2,per=corpus)")["system"]
    # Of one word order: 4 of 5 and 1 of 2 words, 3 of 4 and 0 of 1 pairs; together 5 of 7 and 3 of 5.
    assert run["nlg-bleu-2"].mean == pytest.approx((4 / 5 * 3 / 4) ** 0.5 / 2, abs=1e-4)
    assert run["nlg-bleu(n=2,per=corpus)"].mean == pytest.approx((5 / 7 * 3 / 5) ** 0.5, abs=1e-4)


def test_files_of_the_challenge_in_another_order_give_the_same_to_the_last_digit(tmp_path: Path) -> None:
    logs = sorted((sample_data.folder() / "breakdown" / "data").iterdir())
    labels = sample_data.folder() / "breakdown" / "keywords"
    found: list[list[float]] = []
    for order in (logs, logs[::-1]):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        for number, path in enumerate(order):
            (folder / f"{number}.log.json").write_bytes(path.read_bytes())
        run = evaluate_breakdown(folder, labels, baselines=False)["keywords"]
        found.append([run[key].mean for key in BreakdownDistance.presets])
    assert found[0] == found[1]


def test_hypotheses_are_utf8_and_a_carriage_return_ends_no_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locale.getpreferredencoding", lambda *_: "latin-1")
    path = tmp_path / "hypotheses.txt"
    path.write_bytes("zwölf </s> a\rb\r\nc\n".encode())
    assert HypothesisSet.load_corpus(path) == [HypothesisSet([["zwölf"], ["a", "b"]]), HypothesisSet([["c"]])]
    path.write_bytes("zwölf\n".encode("latin-1"))
    with pytest.raises(dialeval.DataError, match="UTF-8"):
        HypothesisSet.load_corpus(path)


def test_the_learning_rate_of_adem() -> None:
    pytest.importorskip("torch")
    from dialeval.adem import ADEM, ADEMWithEncoder

    for model in (ADEM, ADEMWithEncoder):
        assert inspect.signature(model).parameters["learning_rate"].default == 0.001
