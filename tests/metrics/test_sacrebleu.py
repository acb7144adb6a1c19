"""sacreBLEU's signatures, compared with those that it prints."""

from __future__ import annotations

from typing import Any

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

from dialeval.core.exact import Moments
from dialeval.core.signature import SACREBLEU, Signature
from dialeval.metrics.bleu_counts import VERSION, find_number_of_references, sign_bleu, sign_chrf
from dialeval.metrics.chrf import Chrf
from dialeval.metrics.counting import SummedCounts
from metrics.test_bleu import batch_of


def test_the_version_is_the_one_that_is_compared_with() -> None:
    assert sacrebleu.__version__ == VERSION


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("words.1", {"tokenize": "none"}),
        ("lower-words.1", {"tokenize": "none", "lowercase": True}),
        ("13a", {}),
        ("lower-13a", {"lowercase": True}),
        ("intl", {"tokenize": "intl"}),
        ("zh", {"tokenize": "zh"}),
        ("char", {"tokenize": "char"}),
        ("ja", {"tokenize": "ja-mecab"}),
    ],
)
def test_tokenizers(ours: Any, theirs: dict[str, Any]) -> None:
    oracle = BLEU(**theirs)
    score = oracle.corpus_score(["a B"], [["a b"]])
    assert sign_bleu(ours, 1) == f"{score.name}|{oracle.get_signature()}"


@pytest.mark.parametrize("name", ["unicode", "rouge"])
def test_tokenizers_that_sacrebleu_does_not_have(name: Any) -> None:
    assert sign_bleu(name, 1) is None


@pytest.mark.parametrize("settings", [{}, {"word_order": 2}, {"beta": 3, "lowercase": True}, {"char_order": 4}])
def test_chrf(settings: dict[str, Any]) -> None:
    oracle = CHRF(**settings)
    score = oracle.corpus_score(["a B"], [["a b"]])
    names = {"word_order": "words", "char_order": "n", "lowercase": "lower", "beta": "beta"}
    metric = Chrf(per="corpus", **{names[name]: value for name, value in settings.items()})
    state = metric.partial(batch_of(["a B"], [["a b"]])).state
    assert metric.list_other_signatures(state) == {SACREBLEU: f"{score.name}|{oracle.get_signature()}"}


def test_it_stands_in_our_signature_and_forbids_nothing() -> None:
    line = sign_bleu("13a", 1)
    ours = Signature.of("bleu(per=corpus)", n=4).with_fields(sacrebleu=line)
    assert Signature.parse(str(ours))["sacrebleu"] == line
    assert ours.differences(Signature.of("bleu(per=corpus)", n=4)) == {}


def test_what_has_no_signature_of_sacrebleu() -> None:
    assert find_number_of_references(SummedCounts((0, 0), Moments())) == "var"
    assert find_number_of_references(SummedCounts((9, 6, 12), Moments(5, 3))) == 2
    assert find_number_of_references(SummedCounts((9, 6, 14), Moments(5, 3))) == "var"
    assert sign_chrf(6, 0, 2.5, False, 1) is None
    assert sign_chrf(5, 1, 3.0, True, "var") == f"chrF3+|nrefs:var|case:lc|eff:yes|nc:5|nw:1|space:no|version:{VERSION}"
