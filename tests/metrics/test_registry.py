"""Metrics by name: parsing, printing, hints, collisions, plug-ins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError, collect_warnings
from dialeval.core.features import list_features
from dialeval.core.fold import RowMetric
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


def test_built_in_metrics_stand_under_what_they_measure() -> None:
    for metrics in (_OWN, *(feature.metrics for feature in list_features())):
        for subject, places in metrics.items():
            for place in places:
                module, names = place.split(":")
                for name in names.split(","):
                    assert getattr(import_module(module), name).subject == subject


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


@pytest.mark.parametrize("attempt", range(20))
def test_threads_may_be_the_first_to_ask(attempt: int) -> None:
    """Evaluations in threads of a server, none of which has imported the metrics before."""
    names = ["length", "call-f1", "bleu-4", "latency"] * 4
    fresh = Registry(_OWN)
    with ThreadPoolExecutor(8) as pool:
        assert list(map(str, pool.map(fresh.parse, names))) == names
