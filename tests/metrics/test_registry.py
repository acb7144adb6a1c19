"""Metrics by name: parsing, printing, hints, collisions, plug-ins."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.fold import RowMetric
from dialeval.metrics.bleu import Bleu
from dialeval.metrics.distinct import Distinct
from dialeval.metrics.registry import _BUILT_IN, TOPICS, Registry, explain, find_topic, register, registry, split_names
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
    ("text", "printed"),
    [
        ("distinct-2", "distinct-2"),
        ("distinct(n=2)", "distinct-2"),
        ("distinct( n = 3 )", "distinct(n=3)"),
        ("distinct-1(per=response)", "distinct(n=1,per=response)"),
        ("distinct(n=1,per=response)", "distinct(n=1,per=response)"),
        ("length", "length"),
        ("length(tokenizer=lower-words.1)", "length(tokenizer=lower-words.1)"),
    ],
)
def test_names_parse_and_print(text: str, printed: str) -> None:
    metric = registry().parse(text)
    assert str(metric) == printed
    assert registry().parse(printed) == metric


def test_settings_of_every_kind(vowels: type[Vowels]) -> None:
    metric = registry().parse("vowels(loud=true,weight=0.5)")
    assert metric == Vowels(loud=True, weight=0.5)
    assert registry().parse(str(metric)) == metric
    assert str(Vowels(loud=True, weight=2.5)) == "loud-vowels"


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
    assert [str(metric) for metric in registry().select([written])] == [meant]


def test_groups_and_families_in_any_case() -> None:
    assert registry().select("Dialog-Eval") == registry().select("dialog-eval")
    assert registry().select("Distinct") == registry().select("distinct")
    assert registry().is_group("ALL")


@pytest.mark.parametrize("name", ["meteor", "METEOR", "bleurt", "comet", "perplexity"])
def test_what_is_not_implemented_has_an_alternative(name: str) -> None:
    with pytest.raises(SettingError, match=r"is not implemented; .*(bertscore|judge)"):
        registry().parse(name)


def test_groups_are_told_from_metrics() -> None:
    groups = ("all", "default", "dialog-eval", "distinct", "bleu", "pass-hat", "Distinct")
    assert [name for name in groups if not registry().is_group(name)] == []
    metrics = ("distinct-1", "length", "sacrebleu", "chrf", "distinct(n=3)", "nothing", Distinct(), "bertscore")
    assert [name for name in metrics if registry().is_group(name)] == []


def test_families_groups_and_objects_are_selected_once() -> None:
    chosen = registry().select(["distinct", "distinct-2", Distinct(n=3), "length"])
    assert [str(metric) for metric in chosen] == ["distinct-1", "distinct-2", "distinct(n=3)", "length"]
    assert set(map(str, registry().select("all"))) == set(registry().presets)


def test_lists_split_outside_parentheses() -> None:
    assert split_names("length, distinct(n=3,per=response),, bleu ") == [
        "length",
        "distinct(n=3,per=response)",
        "bleu",
    ]


def test_a_name_is_given_once() -> None:
    @dataclass(frozen=True)
    class Other(Vowels):
        family = "distinct-2"
        presets = {}

    with pytest.raises(SettingError, match=r"two metrics are called 'distinct-2'.*Distinct and .*Other"):
        register(Other)


def test_registering_twice_is_no_collision() -> None:
    here = Registry()
    assert here.register(Distinct) is here.register(Distinct) is Distinct
    assert (dict(here.families), list(here.presets)) == ({"distinct": Distinct}, ["distinct-1", "distinct-2"])


def test_a_name_with_capitals_is_known_as_it_is() -> None:
    @dataclass(frozen=True)
    class Loud(Vowels):
        family = "Loud"
        presets = {"Loud-Vowels": {"loud": True}, "Default": {}}

    here = Registry()
    here.register(Loud)
    assert here.parse("Loud(weight=3)") == Loud(weight=3.0)
    assert [str(metric) for metric in here.select("Loud-Vowels")] == ["Loud-Vowels"]
    assert [here.canonicalize(name) for name in ("ALL", "Default")] == ["all", "default"]
    assert here.canonicalize(" LOUD(a=B)") == "loud(a=B)"
    assert here.canonicalize("Some.Module:Name") == "Some.Module:Name"
    with pytest.raises(SettingError, match=r"^the metric No_Module:Name cannot be imported: No module named 'No_Mod"):
        here.select("No_Module:Name")


def test_aggregates_over_dialogues() -> None:
    assert str(registry().parse("length@dialogue-mean")) == "length@dialogue-mean"
    assert registry().parse("length@dialogue-mean") == registry().select(["length@dialogue-mean"])[0]


def test_a_group_is_no_metric() -> None:
    with pytest.raises(SettingError) as caught:
        registry().parse("default")
    assert str(caught.value) == (
        "default is a group of metrics: sacrebleu, chrf, rouge-l, distinct-1, distinct-2, length"
    )


class Point:
    """An entry point of a package that does not load."""

    name = "broken"

    def load(self) -> object:
        raise ValueError("no such file")


def test_a_metric_that_does_not_load_says_why() -> None:
    here = Registry(installed=lambda: [Point()])
    assert here.register(Distinct) is Distinct
    assert dict(here.broken) == {"broken": "ValueError: no such file"}
    with pytest.raises(SettingError, match=r"^the metric 'broken' cannot be loaded: ValueError: no such file$"):
        here.parse("broken")


def test_explanations_are_of_the_class_or_of_its_module() -> None:
    assert explain(Vowels) == "Metrics by name: parsing, printing, hints, collisions, plug-ins."
    text = explain(Bleu)
    assert text.startswith("BLEU-n: how many of the response's n-grams, up to n words long, its references share.\n\n")
    assert text.endswith("of rows without a reference nothing is added up.")
    assert explain(Distinct).startswith("Distinct-n: the fraction of different n-grams")


def test_topics() -> None:
    found = {name: find_topic(metric) for name, metric in registry().families.items()}
    expected = {
        "bleu": "Overlap with references",
        "greedy-match": "Similarity of meaning",
        "talk-ratio": "Conversations",
        "conversation-judge": "Conversations",
        "judge": "Learned judges",
        "distinct": "Diversity",
        "length": "Words and entropy",
        "inform": "Task dialogues",
        "label": "Labels and latency",
        "call-match": "Agents",
        "accuracy": "Breakdown detection",
    }
    assert {name: found[name] for name in expected} == expected
    assert find_topic(Vowels) == TOPICS[-1] == "Other packages"


def test_values_of_settings_that_cannot_be_read(vowels: type[Vowels]) -> None:
    for text, message in (
        ("vowels(loud=yes)", "vowels takes true or false for loud, not 'yes'"),
        ("vowels(weight=x)", "vowels takes a number for weight, not 'x'"),
        ("distinct(n=1.5)", "distinct takes a whole number for n, not '1.5'"),
        ("dialogue-turns(n=1)", "dialogue-turns has no setting 'n'; it has no settings"),
        ("vowels(x=1)", "vowels has no setting 'x'; it has loud, weight"),
        ("vowels(loud)", "vowels has no setting 'loud'; did you mean 'loud'?"),
    ):
        with pytest.raises(SettingError) as caught:
            registry().parse(text)
        assert str(caught.value).startswith(message)
    assert registry().parse("vowels( loud = false , , weight = 2 )") == Vowels(loud=False, weight=2.0)


PLUGIN = '''
from dataclasses import dataclass
from importlib import import_module
from dialeval.core.fold import RowMetric
from dialeval.core import inputs
import numpy as np

@dataclass(frozen=True)
class Shout(RowMetric):
    """Share of upper-case letters."""
    family = "shout"
    presets = {"shout": {}}
    needs = frozenset({inputs.RESPONSE})
    def score(self, batch):
        return np.array([np.mean([c.isupper() for c in t]) if t else np.nan for t in batch.texts(inputs.RESPONSE)])
'''


def test_an_installed_package_adds_metrics(tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text(PLUGIN)
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dialeval.metrics]\nshout = shouting:Shout\nbroken = shouting:Missing\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import dialeval\n"
        "from dialeval.metrics.registry import registry\n"
        "print(dialeval.evaluate(['ABcd', ''], metrics='shout')['system']['shout'].mean)\n"
        "print(sorted(registry().broken))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0.5", "['broken']"]


def test_built_in_metrics_stand_under_what_they_measure() -> None:
    for subject, places in _BUILT_IN.items():
        for place in places:
            module, names = place.split(":")
            for name in names.split(","):
                assert getattr(import_module(f"dialeval.{module}"), name).subject == subject


def test_only_what_is_measured_is_imported() -> None:
    program = (
        "import sys\n"
        "from dialeval.metrics.registry import registry\n"
        "from dialeval.core import inputs\n"
        "registry().list_measuring({inputs.RESPONSE}), registry().parse('distinct(n=3)')\n"
        "print([name for name in sys.modules if '.suites' in name])\n"
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


def test_other_subjects_are_found_before_responses_were() -> None:
    here = Registry(_BUILT_IN)
    assert [str(metric) for metric in here.list_measuring({inputs.HYPOTHESES})] == ["mds", "pds", "max-bleu"]
    assert str(here.parse("accuracy")) == "accuracy"


def test_a_built_in_name_is_taken_before_it_is_imported() -> None:
    @dataclass(frozen=True)
    class Other(Vowels):
        family = "inform"
        presets = {}

    here = Registry(_BUILT_IN)
    with pytest.raises(SettingError, match="two metrics are called 'inform'"):
        here.register(Other)
    assert str(here.parse("inform")) == "inform"
    assert next(iter(here.presets)) == "length"


def test_a_class_where_a_metric_is_expected() -> None:
    with pytest.raises(SettingError, match=r"Vowels is a class; pass a metric made of it: Vowels\(\.\.\.\)"):
        registry().select([Vowels])


def test_metrics_come_in_one_order_whatever_that_of_the_columns() -> None:
    orders = ([inputs.RESPONSE, inputs.CONTEXT, inputs.CALLS], [inputs.CALLS, inputs.CONTEXT, inputs.RESPONSE])
    one, other = ([str(metric) for metric in Registry(_BUILT_IN, tuple).list_measuring(order)] for order in orders)
    assert one == other
