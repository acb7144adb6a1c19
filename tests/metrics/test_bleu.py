"""The BLEU metric: settings, names, edge cases, and one pass for all of its presets."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics import BLEU, CHRF

import dialeval
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.inputs import Input
from dialeval.core.signature import SACREBLEU, Signature
from dialeval.metrics.bleu import Bleu, NlgBleu
from dialeval.metrics.bleu_counts import (
    NIST,
    VERSION,
    BleuCounts,
    Method,
    find_number_of_references,
    log_precisions,
    sacre_bleu,
    sign_bleu,
    sign_chrf,
    weighted_bleu,
)
from dialeval.metrics.chrf import Chrf
from dialeval.metrics.counting import SummedCounts
from dialeval.metrics.registry import Registry
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary
from metrics.twins import grams
from text.scripts_of_the_world import texts


def batch_of(
    responses: Sequence[str], references: Sequence[Sequence[str]], vocabulary: Vocabulary | None = None
) -> Batch:
    columns: dict[Input, ColumnData] = {
        inputs.RESPONSE: TextColumn.from_strings(responses),
        inputs.REFERENCE: RaggedColumn.from_lists(references),
    }
    return Batch(len(responses), columns, vocabulary or Vocabulary(), np.arange(len(responses) + 1))


def test_presets_are_nltk_with_the_weights_of_dialog_eval() -> None:
    response, references = "i am fine , thank you", ["i am fine , thanks", "fine , thank you very much"]
    batch = batch_of([response], [references])
    weights = [(1, 0, 0, 0), (0.5, 0.5, 0, 0), (0.33, 0.33, 0.33, 0), (0.25, 0.25, 0.25, 0.25)]
    split = [reference.split() for reference in references]
    for n, weight in enumerate(weights, 1):
        expected = sentence_bleu(split, response.split(), weight, SmoothingFunction().method4)
        assert Bleu(n=n).score(batch)[0] == pytest.approx(expected, rel=1e-14)  # type: ignore[arg-type]


def test_bleu_3_keeps_the_weights_of_the_original() -> None:
    batch = batch_of(["a b c d"], [["a x b c d y"]])
    third = Bleu(n=3, smooth=0).score(batch)[0] / np.exp(1 - 6 / 4)
    assert third == pytest.approx((1 * 2 / 3 * 1 / 2) ** 0.33, rel=1e-14)


def test_rows_that_cannot_be_scored_are_nan_and_the_others_are_not() -> None:
    batch = batch_of(["", "a", "a", "a", ""], [["a"], [""], [], ["a"], []])
    for metric in (Bleu(), Bleu(by="sacre")):
        partial = metric.partial(batch)
        np.testing.assert_array_equal(partial.scores[metric.name], [0, 0, np.nan, 1, np.nan])
        assert (partial.state.moments.rows, partial.state.moments.scored) == (5, 3)


def test_by_sacre_is_sacrebleu() -> None:
    response, references = "the cat sat on a mat today", ["the cat sat on the mat", "a cat sat on a mat"]
    expected = sacrebleu.sentence_bleu(response, references, tokenize="none").score / 100
    assert Bleu(by="sacre").score(batch_of([response], [references]))[0] == pytest.approx(expected, rel=1e-14)


@given(
    rows=st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=6),
    tokenizer=st.sampled_from(["words.1", "13a", "intl", "zh", "char"]),
)
@settings(max_examples=150)
def test_the_corpus_is_sacrebleus(rows: list[tuple[str, str, str]], tokenizer: Any) -> None:
    metric = Bleu(per="corpus", tokenizer=tokenizer)
    oracle = BLEU(tokenize="none" if tokenizer == "words.1" else tokenizer)
    partial = metric.partial(batch_of([row[0] for row in rows], [row[1:] for row in rows]))
    responses, *references = (list(side) for side in zip(*rows, strict=True))
    expected = oracle.corpus_score(responses, references)
    assert metric.finish(partial.state)[metric.name].mean == pytest.approx(expected.score / 100, rel=1e-12, abs=1e-15)
    assert metric.list_other_signatures(partial.state)["sacrebleu"] == f"BLEU|{oracle.get_signature()}"
    single = BLEU(tokenize=oracle.tokenizer.signature(), effective_order=True)
    items = [single.sentence_score(row[0], row[1:]).score / 100 for row in rows]
    np.testing.assert_allclose(partial.scores[metric.name], items, rtol=1e-12, atol=1e-15)


def test_an_order_without_a_match_is_smoothed_as_in_sacrebleu() -> None:
    responses, references = ["the cat sat here", "a b c d e"], ["the cat sat", "x b c y e"]
    metric = Bleu(per="corpus")
    state = metric.partial(batch_of(responses, [[text] for text in references])).state
    expected = BLEU(tokenize="none").corpus_score(responses, [references]).score / 100
    assert expected > 0
    assert metric.finish(state)[metric.name].mean == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("periods", [99, 100])
def test_tokenized_replies_are_warned_of_as_in_sacrebleu(periods: int, caplog: pytest.LogCaptureFixture) -> None:
    responses = ["it is ten .", "a.", "."] + ["fine ."] * (periods - 1)
    BLEU().corpus_score(responses, [responses])
    run = dialeval.evaluate(responses, responses, metrics="bleu")
    assert any("tokenized period" in line for line in run.warnings) == ("tokenized period" in caplog.text)
    assert dialeval.evaluate(responses, responses, metrics="bleu(per=corpus)").warnings == ()


def test_the_signature_says_what_the_number_is() -> None:
    assert str(Bleu(per="corpus", tokenizer="13a").signature()).startswith(
        "sacrebleu|n:4|smooth:exp|by:sacre|per:corpus|tokenizer:13a|"
    )
    batch = batch_of(["a b"], [["a b"]])
    for metric in (Bleu(), Bleu(by="sacre"), Bleu(n=2, per="corpus"), Bleu(per="corpus", tokenizer="rouge")):
        assert metric.list_other_signatures(metric.partial(batch).state) == {}


def test_the_presets_share_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0
    original = BleuCounts.of

    def counted(*args: Any) -> BleuCounts:
        nonlocal made
        made += 1
        return original(*args)

    monkeypatch.setattr(BleuCounts, "of", counted)
    batch = batch_of(["a b c"], [["a b d"]])
    for metric in [*(Bleu(n=n) for n in (1, 2, 3, 4)), Bleu(smooth=7), Bleu(by="sacre")]:
        metric.score(batch.restrict_to(metric.needs))
    assert made == 1


def test_threads_with_a_shared_vocabulary_agree() -> None:
    random = np.random.default_rng(3)
    vocabulary = Vocabulary()

    def text() -> str:
        return " ".join(map(str, random.integers(0, 9, random.integers(0, 90))))

    parts = [([text() for _ in range(50)], [[text()] * (row % 3) for row in range(50)]) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda part: Bleu().score(batch_of(part[0], part[1], vocabulary)), parts))
    for scores, part in zip(threaded, parts, strict=True):
        np.testing.assert_array_equal(scores, Bleu().score(batch_of(part[0], part[1])))


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("bleu-1", Bleu(n=1)),
        ("bleu-4", Bleu()),
        ("bleu(n=2,smooth=7)", Bleu(n=2, smooth=7)),
        ("bleu(by=sacre)", Bleu(by="sacre")),
        ("bleu(n=1,tokenizer=lower-words.1)", Bleu(n=1, tokenizer="lower-words.1")),
        ("sacrebleu", Bleu(per="corpus", tokenizer="13a")),
        ("bleu(per=corpus,tokenizer=zh)", Bleu(per="corpus", tokenizer="zh")),
        ("bleu(n=2,per=corpus)", Bleu(n=2, per="corpus", by="sacre")),
    ],
)
def test_names_read_back(name: str, metric: Bleu) -> None:
    registry = Registry()
    registry.register(Bleu)
    assert str(metric) == name
    assert registry.parse(name) == metric


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, r"n=1\|2\|3\|4, not 0"),
        ({"n": 5}, r"n=1\|2\|3\|4, not 5"),
        ({"smooth": -1}, r"smooth=0\|1\|2\|3\|4\|5\|6\|7, not -1"),
        ({"smooth": 8}, "not 8"),
        ({"by": "moses"}, "'moses'"),
        ({"by": "sacre", "smooth": 3}, "leave out smooth=3"),
        ({"per": "corpus", "smooth": 3}, "leave out smooth=3"),
        ({"tokenizer": "word.1"}, "words.1"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Bleu(**settings)


# BLEU formulas against nltk and sacreBLEU, for every method, order and kind of row.


Row = tuple[list[str], list[list[str]]]

WEIGHTS = [
    (1.0,),
    (0.5, 0.5),
    (1 / 3, 1 / 3, 1 / 3),
    (0.25, 0.25, 0.25, 0.25),
    (1.0, 0.0, 0.0, 0.0),
    (0.33, 0.33, 0.33, 0.0),
    (0.1, 0.2, 0.3, 0.4),
]

words = st.sampled_from([1, 2, 4, 40]).flatmap(lambda count: st.lists(st.integers(0, count).map(str), max_size=12))


@st.composite
def similar(draw: st.DrawFn) -> Row:
    """A response and references that share stretches of it, so that higher orders match."""
    response = draw(words)
    shared = st.integers(0, len(response)).map(lambda start: response[start:])
    references = st.tuples(words, shared, words).map(lambda parts: [word for part in parts for word in part])
    return response, draw(st.lists(references, min_size=1, max_size=3))


rows = st.lists(st.one_of(similar(), st.tuples(words, st.lists(words, min_size=1, max_size=3))), min_size=1, max_size=5)


def counts_of(pairs: Sequence[Row]) -> BleuCounts:
    vocabulary = Vocabulary()
    responses = tokenize(TextColumn.from_strings([" ".join(response) for response, _ in pairs]), vocabulary)
    lists = RaggedColumn.from_lists([[" ".join(text) for text in references] for _, references in pairs])
    return BleuCounts.of(responses, tokenize(lists.values, vocabulary), lists.offsets)


def by_nltk(response: list[str], references: list[list[str]], weights: Sequence[float], method: int) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(sentence_bleu(references, response, weights, getattr(SmoothingFunction(), f"method{method}")))
        except (AssertionError, IndexError):  # method 6: no trigram match, or fewer than three weights
            return float("nan")


@pytest.mark.parametrize("method", get_args(Method))
@given(pairs=rows, weights=st.sampled_from(WEIGHTS))
@settings(max_examples=60)
def test_every_method_scores_as_nltk(method: int, pairs: list[Row], weights: tuple[float, ...]) -> None:
    counts = counts_of(pairs)
    found = weighted_bleu(counts, log_precisions(counts, method, len(weights)), weights)
    expected = [by_nltk(response, references, weights, method) for response, references in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@given(pairs=rows)
@settings(max_examples=50)
def test_sacre_scores_as_sacrebleu(n: int, pairs: list[Row]) -> None:
    counts = counts_of(pairs)
    found = sacre_bleu(counts, log_precisions(counts, NIST), n)
    oracle = sacrebleu.BLEU(tokenize="none", effective_order=True, max_ngram_order=n)
    expected = []
    for response, references in pairs:
        texts = " ".join(response), [" ".join(reference) for reference in references]
        expected.append(oracle.sentence_score(*texts).score / 100)
        if n == 4:
            assert sacrebleu.sentence_bleu(*texts, tokenize="none").score / 100 == expected[-1]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_method_6_is_nan_exactly_without_a_trigram_match() -> None:
    counts = counts_of([(["a", "b", "c"], [["a", "b", "d"]]), (["a", "b", "c"], [["a", "b", "c"]]), (["a"], [["b"]])])
    scores = weighted_bleu(counts, log_precisions(counts, 6), (1.0,))
    np.testing.assert_array_equal(np.isnan(scores), [True, False, False])
    assert scores[2] == 0


def test_known_values() -> None:
    same = ["how", "are", "you", "today", "?"]
    counts = counts_of([(["yes"], [["yes"]]), (same, [same])])
    by_length = weighted_bleu(counts, log_precisions(counts, 4), (0.25,) * 4)
    assert by_length.tolist() == [1.0, 1.0]
    neighbors = weighted_bleu(counts, log_precisions(counts, 5), (1.0,))
    np.testing.assert_allclose(neighbors, [1.0, 4 / 3], rtol=1e-15)


@given(rows)
@settings(max_examples=30)
def test_a_row_scores_the_same_alone(pairs: list[Row]) -> None:
    for method in get_args(Method):
        counts = counts_of(pairs)
        together = weighted_bleu(counts, log_precisions(counts, method), (0.25,) * 4)
        for row, pair in enumerate(pairs):
            one = counts_of([pair])
            alone = weighted_bleu(one, log_precisions(one, method), (0.25,) * 4)
            np.testing.assert_array_equal(alone, together[row : row + 1])


# BLEU of nlg-eval against its definition in plain Python, per response and for the corpus.


short_texts = st.lists(st.sampled_from("abc"), max_size=80).map(" ".join)
rows_of_texts = st.lists(st.tuples(short_texts, st.lists(short_texts, min_size=1, max_size=3)), min_size=1, max_size=6)
Rows = list[tuple[str, list[str]]]


def counts(response: Sequence[str], references: Sequence[Sequence[str]], n: int) -> list[int]:
    """Length, closest length, then matches and n-grams by order."""
    closest = min((abs(len(reference) - len(response)), len(reference)) for reference in references)[1]
    found = [len(response), closest]
    for order in range(1, n + 1):
        most: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            most |= Counter(grams(reference, order))
        here = Counter(grams(response, order))
        found += [(here & most).total(), here.total()]
    return found


def bleu(length: int, closest: int, *pairs: int) -> float:
    """coco-caption's formula, in its order of operations."""
    value = 1.0
    for matches, total in zip(pairs[::2], pairs[1::2], strict=True):
        value *= (matches + 1e-15) / (total + 1e-9)
    value **= 1 / (len(pairs) // 2)
    ratio = (length + 1e-15) / (closest + 1e-9)
    return float(value * math.exp(1 - 1 / ratio)) if ratio < 1 else value


@given(rows=rows_of_texts, n=st.integers(1, 4))
def test_it_is_the_definition(rows: Rows, n: int) -> None:
    metric = NlgBleu(n=n)  # type: ignore[arg-type]
    batch = batch_of([response for response, _ in rows], [references for _, references in rows])
    partial = metric.partial(batch)
    counted = [counts(response.split(), [text.split() for text in references], n) for response, references in rows]
    expected = [bleu(*row) for row in counted]
    np.testing.assert_allclose(partial.scores[metric.name], expected, rtol=1e-13)
    assert metric.finish(partial.state)[metric.name].mean == pytest.approx(np.mean(expected), rel=1e-13)

    corpus = NlgBleu(n=n, per="corpus")  # type: ignore[arg-type]
    whole = corpus.finish(corpus.partial(batch).state)[corpus.name]
    assert whole.corpus
    assert whole.mean == pytest.approx(bleu(*np.sum(counted, axis=0).tolist()), rel=1e-13)


def test_rows_without_a_reference_add_nothing() -> None:
    corpus = NlgBleu(per="corpus")
    some = batch_of(["a b c d", "a b c d", "", ""], [["a b c d"], [], ["a"], []])
    fewer = batch_of(["a b c d", ""], [["a b c d"], ["a"]])
    states = [corpus.partial(batch) for batch in (some, fewer)]
    np.testing.assert_array_equal(np.isnan(states[0].scores[corpus.name]), [False, True, False, True])
    one, other = (corpus.finish(state.state)[corpus.name] for state in states)
    assert one.mean == other.mean
    assert (one.units, one.scored) == (4, 2)


# sacreBLEU's signatures, compared with those that it prints.


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
