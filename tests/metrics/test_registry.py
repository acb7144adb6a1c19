"""Metrics by name: parsing, printing, hints, collisions, plug-ins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rapidfuzz.distance import LCSseq
from rouge_score.tokenize import tokenize
from sacrebleu.metrics import BLEU, CHRF

import evaluating
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError, collect_warnings
from dialeval.core.fold import RowMetric
from dialeval.core.result import Result
from dialeval.metrics.registry import _OWN, Registry, register, registry
from metrics.evaluated import unregister


@dataclass(frozen=True)
class Vowels(RowMetric):
    """Number of vowels in the response."""

    family = "vowels"
    presets = {"vowels": {}, "loud-vowels": {"loud": True, "weight": 2.5}}
    needs = frozenset({inputs.RESPONSE})

    loud: bool = False
    weight: float = 1.0

    def score(self, batch: Batch) -> Floats:
        letters = "AEIOU" if self.loud else "aeiou"
        texts = batch.texts(inputs.RESPONSE)
        return np.array([self.weight * sum(char in letters for char in text) for text in texts])


@pytest.fixture
def vowels() -> Iterator[type[Vowels]]:
    register(Vowels)
    yield Vowels
    unregister(Vowels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("distnct-2", "did you mean 'distinct-2'"),
        ("nothing like it", "is not a metric"),
        ("qqqq", "lists all of them"),
        ("distinct(m=2)", "no setting 'm'"),
        ("distinct(tokeniser=words.1)", "did you mean 'tokenizer'"),
        ("distinct(n=two)", "takes a whole number for n"),
        ("distinct(n=0)", "n of distinct must be finite and at least 1"),
        ("distinct(per=corpse)", r"per=corpus\|response"),
        ("distinct(n)", "no setting 'n'|takes"),
        ("distinct(n=2", "is not a metric"),
        ("regex(pattern=(a)", "goes into a file of checks: --checks FILE"),
        ('is-json(schema={"a": 1})', "goes into a file of checks: --checks FILE"),
        ("length(tokenizer=word.1)", r"tokenizer=words\.1\|lower-words\.1\|13a.*, not 'word\.1'"),
        ("bleu(n=two)", r"bleu has n=1\|2\|3\|4, not 'two'"),
    ],
)
def test_mistakes_get_a_hint(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        registry().parse(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("BLEU-4", "bleu-4"),
        ("SacreBLEU", "sacrebleu"),
        ("bleu(per=corpus,tokenizer=13a)", "sacrebleu"),
        ("BERTScore", "greedy-match"),
        ("chrF++", "chrf(words=2)"),
        ("ROUGE-1", "rouge-score-1"),
        ("Dist-2", "distinct-2"),
        ("LLM-judge", "llm"),
        ("Distinct(n=3)", "distinct(n=3)"),
    ],
)
def test_names_of_the_field_in_any_case(written: str, meant: str) -> None:
    assert str(registry().parse(written)) == meant
    with collect_warnings() as notes:
        assert [str(metric) for metric in registry().select([written])] == [meant]
    assert bool(notes) == (written == "BERTScore"), "an alias that stands for something else says so"


@pytest.mark.parametrize(
    "name",
    ["meteor", "METEOR", "bleurt", "comet", "perplexity", "usr", "fed", "mauve", "cider", "self-bleu", "unieval"],
)
def test_what_is_not_implemented_has_an_alternative(name: str) -> None:
    with pytest.raises(SettingError, match=r"is not implemented; .*(bertscore|judge|--scores)"):
        registry().parse(name)


def test_a_name_is_given_once() -> None:
    @dataclass(frozen=True)
    class Other(Vowels):
        family = "distinct-2"
        presets = {}

    with pytest.raises(SettingError, match=r"two metrics are called 'distinct-2'.*Distinct and .*Other"):
        register(Other)


PLUGIN = '''
from dataclasses import dataclass
from importlib import import_module
from dialeval.core.fold import RowMetric
from dialeval.core import inputs
from dialeval.core.features import Feature
import numpy as np

@dataclass(frozen=True)
class Shout(RowMetric):
    """Share of upper-case letters."""
    family = "shout"
    presets = {"shout": {}}
    needs = frozenset({inputs.RESPONSE})
    def score(self, batch):
        return np.array([np.mean([c.isupper() for c in t]) if t else np.nan for t in batch.texts(inputs.RESPONSE)])

FEATURE = Feature("shouting", metrics={"response": ("shouting:Shout", "shouting:Missing")})
'''


def test_an_installed_package_adds_metrics(tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text(PLUGIN)
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dialeval.features]\nshout = shouting:FEATURE\nbroken = shouting:Missing\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import dialeval\n"
        "from dialeval.metrics.registry import registry\n"
        "print(dialeval.evaluate(['ABcd', ''], metrics='shout')['system']['shout'].mean)\n"
        "print(sorted(registry().broken))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.5", "['shouting:Missing']"]


def test_only_what_is_measured_is_imported() -> None:
    program = (
        "import sys\n"
        "from dialeval.metrics.registry import registry\n"
        "from dialeval.core import inputs\n"
        "registry().list_measuring({inputs.RESPONSE}), registry().parse('distinct(n=3)')\n"
        "print([name for name in sys.modules if '.suites.' in name and name.endswith('metrics')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_metric_that_is_imported_is_found_without_importing_others() -> None:
    code = """
import sys
import dialeval.multiwoz
from dialeval.metrics.registry import registry
assert registry().parse("inform").family == "inform"
assert "dialeval.metrics.rouge" not in sys.modules
assert registry().parse("rouge-l").family == "rouge"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_class_where_a_metric_is_expected() -> None:
    with pytest.raises(SettingError, match=r"Vowels is a class; pass a metric made of it: Vowels\(\.\.\.\)"):
        registry().select([Vowels])


def test_a_group_is_no_metric() -> None:
    with pytest.raises(SettingError) as caught:
        registry().parse("default")
    assert str(caught.value) == (
        "default is a group of metrics: sacrebleu, chrf, rouge-l, distinct-1, distinct-2, length"
    )


# Right-to-left text, emoji, combining marks and lines of 100,000 characters, through every metric of overlap.


PAIRS = {
    "right to left": ("שלום, עולם! مرحبا؟", "שלום עולם. مرحبا"),
    "marks of direction": ("\u202eabc\u202c \u200fשלום\u200f", "abc שלום"),
    "emoji": (
        "ok \U0001f44d\U0001f3fd\U0001f469\u200d\U0001f467 \u263a\ufe0f",
        "ok \U0001f44d \U0001f469\u200d\U0001f467",
    ),
    "combining marks": ("e\u0301te\u0301, nai\u0308ve", "été, naïve e\u0301te\u0301"),
    "thai": ("สวัสดีครับ คุณสบายดีไหม", "สวัสดีค่ะ สบายดีไหม"),
    "mixed": ("今天 is 5,000.50$ — “sehr gut”。", "今天 was 5,000$ - 'sehr gut'."),
    "nothing to split": ("\u3000", "\u2028"),
}
LONG = {
    "100,000 characters of English": "it is, isn't it? 1,000.5 - ok \U0001f600 ",
    "100,000 characters of Chinese": "今天天气很好，我不知道。",
    "100,000 characters of Hebrew": "שלום, עולם! ",
}
TOKENIZERS = {"13a": "13a", "intl": "intl", "zh": "zh", "char": "char"}
NAMES = [str(registry().parse(f"bleu(per=corpus,tokenizer={name})")) for name in TOKENIZERS]
OTHERS = ["bleu-4", "nlg-bleu-4", "rouge-l", "rouge-score", "length", "distinct"]


def check(responses: list[str], references: list[str], found: Result) -> None:
    for ours, theirs in zip(NAMES, TOKENIZERS.values(), strict=True):
        expected = BLEU(tokenize=theirs, force=True).corpus_score(responses, [references]).score / 100
        assert found[ours].mean == pytest.approx(expected, rel=1e-12, abs=1e-15)
    expected = CHRF().corpus_score(responses, [references]).score / 100
    assert found["chrf(per=corpus)"].mean == pytest.approx(expected, rel=1e-12, abs=1e-15)
    for estimate in found.values():
        assert estimate.scored in (0, len(responses))


def scored(responses: list[str], references: list[str], **given: Any) -> Result:
    metrics = [*NAMES, "chrf(per=corpus)", *OTHERS]
    return evaluating.evaluate({"a": responses}, references=references, metrics=metrics, **given)["a"]


@pytest.mark.parametrize("kind", PAIRS)
def test_short_texts(kind: str) -> None:
    response, reference = PAIRS[kind]
    check([response, reference], [reference, response], scored([response, reference], [reference, response]))


@pytest.mark.parametrize("kind", LONG)
def test_long_lines(kind: str) -> None:
    piece = LONG[kind]
    response = piece * (100_000 // len(piece) + 1)
    reference = response[7:] + piece
    found = scored([response], [reference])
    check([response], [reference], found)
    words = [tokenize(text, None) for text in (response, reference)]
    common = LCSseq.similarity(*words)
    expected = 2 * common / (len(words[0]) + len(words[1])) if common else 0.0
    assert found["rouge-score-l"].mean == pytest.approx(expected, rel=1e-12)


def test_rows_of_all_kinds_cut_anywhere() -> None:
    responses, references = (list(side) for side in zip(*PAIRS.values(), strict=True))
    whole = scored(responses, references)
    for size in (1, 3):
        cut = scored(responses, references, batch_rows=size)
        for key, estimate in whole.items():
            np.testing.assert_equal(cut[key].mean, estimate.mean)
            np.testing.assert_array_equal(cut[key].scores, estimate.scores)


@pytest.mark.parametrize("attempt", range(20))
def test_threads_may_be_the_first_to_ask(attempt: int) -> None:
    """Evaluations in threads of a server, none of which has imported the metrics before."""
    names = ["length", "call-f1", "bleu-4", "latency"] * 4
    fresh = Registry(_OWN)
    with ThreadPoolExecutor(8) as pool:
        assert list(map(str, pool.map(fresh.parse, names))) == names
