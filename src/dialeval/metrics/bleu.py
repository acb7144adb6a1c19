"""BLEU as nltk, sacreBLEU and nlg-eval define it; `bleu_counts` has the counts and the formulas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.fold import Bounds, Metric
from dialeval.core.signature import SACREBLEU, Signature
from dialeval.metrics import bleu_counts as bleu
from dialeval.metrics.counting import CountMetric, Flags, Per, SummedCounts
from dialeval.text.tokenizers import DEFAULT, WHITESPACE, Tokenizer

WEIGHTS = {1: (1.0,), 2: (0.5, 0.5), 3: (0.33, 0.33, 0.33), 4: (0.25, 0.25, 0.25, 0.25)}
"""What dialog-eval gives to nltk, without the zeros for the orders above n."""

DEFAULT_SMOOTH: bleu.Method = 4
ABOVE_ONE = (5, 7)
"""Smoothing methods under which a value may exceed 1."""
MANY_PERIODS = 100
"""Responses of a system that end in a tokenized period from which on sacreBLEU warns."""


@dataclass(frozen=True)
class Bleu(CountMetric):
    """BLEU, shared n-grams: `sacrebleu` of the corpus as in sacreBLEU, `bleu-4` of sentences as in dialog-eval.

    BLEU-n: how many of the response's n-grams, up to n words long, its references share.

        bleu-n = BP * exp(sum over orders i <= n of w_i * log p_i)

    with clipped precisions p_i against all references of a row and the brevity penalty BP against the closest reference
    length. `bleu_counts` has counts and formulas. Which paper's number it is:

    - `bleu-1` to `bleu-4` (`by=nltk`) are the mean of sentence BLEU that dialog-eval and papers after it print: nltk's
      `sentence_bleu`, smoothing method `smooth`. All four orders are smoothed together and those above n have weight 0,
      which matters to methods 5 to 7. The weights are 1; 0.5 each; 0.33 each, so that bleu-3 has a sum of 0.99 as in
      the original; 0.25 each.
    - `sacrebleu`, short for `bleu(per=corpus,tokenizer=13a)`, is what papers on translation, and most others, print as
      BLEU: sacreBLEU's corpus BLEU with its defaults, from 0 to 1 (--percent: to 100). The counts of all responses are
      added up first. With `zh`, `ja`, `intl`, `char` or, as its `none`, `words.1` it is sacreBLEU's under that
      tokenizer; the signature holds sacreBLEU's own.
    - `bleu(by=sacre)` is the mean of sacreBLEU's sentence BLEU, from 0 to 1: NIST smoothing, equal weights over the
      orders of which the response has an n-gram.

    Papers: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL; Chen and Cherry
    2014, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU", WMT; Post 2018, "A Call for Clarity
    in Reporting BLEU Scores", WMT.

    Edge cases: an empty response and a response without a common word score 0, an empty reference is a reference of no
    words, and a row without any reference is not scored. Under smoothing method 6 a response with a common word but no
    common trigram is not scored; dialog-eval ends with an AssertionError there. Methods 5 and 7 may exceed 1. Under
    `per=corpus` the items are sacreBLEU's sentence BLEU; of rows without a reference nothing is added up.
    """

    family = "bleu"
    presets = {
        **{f"bleu-{n}": {"n": n} for n in get_args(bleu.Order)},
        "sacrebleu": {"by": "sacre", "per": "corpus", "tokenizer": "13a"},
    }
    implied = {"per": "response"}
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    better = "higher"

    n: bleu.Order = 4
    smooth: bleu.Method = DEFAULT_SMOOTH
    by: Literal["nltk", "sacre"] = "nltk"
    per: Per = "response"
    tokenizer: Tokenizer = DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per == "corpus":  # nltk's own differs only where an order has no match
            object.__setattr__(self, "by", "sacre")
        if self.by == "sacre" and self.smooth != DEFAULT_SMOOTH:
            raise SettingError(
                f"bleu by sacre has a smoothing of its own; leave out smooth={self.smooth}, or choose by=nltk"
            )

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]
        return (0.0, math.inf) if self.by == "nltk" and self.smooth in ABOVE_ONE else (0.0, 1.0)

    def __str__(self) -> str:
        return super().__str__().replace("by=sacre,", "") if self.of_corpus else super().__str__()

    def with_settings(self, **changes: object) -> Metric:
        fixed = ("smooth",) if self.by == "sacre" else ()  # it has a smoothing of its own
        return super().with_settings(**{name: value for name, value in changes.items() if name not in fixed})

    def signature(self) -> Signature:
        plain = super().signature()
        return plain.with_fields(smooth="exp") if self.by == "sacre" else plain

    @property
    def width(self) -> int:
        return 2 * self.n + 5

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        """Return matches and n-grams by order, words of response and reference, tokenized periods, references."""
        counts = bleu.count_ngram_matches(batch, self.tokenizer)
        lengths = (counts.response_lengths, counts.reference_lengths)
        ends = (bleu.find_tokenized_periods(batch.texts(inputs.RESPONSE)), bleu.count_references(batch))
        columns = (counts.matches[:, : self.n], counts.totals[:, : self.n], *lengths, *ends)
        return np.column_stack(columns), counts.reference_lengths != bleu.NO_REFERENCE

    def formula(self, counts: Ints | Floats) -> Floats:
        return bleu.corpus_bleu(counts[:, : 2 * self.n + 2]) / 100

    def score_rows(self, counts: Ints) -> Floats:
        matches, totals, lengths = np.split(counts[:, : 2 * self.n + 2], (self.n, 2 * self.n), axis=1)
        rows = bleu.BleuCounts(matches, totals, lengths[:, 0], lengths[:, 1])
        return bleu.sacre_bleu(rows, bleu.log_precisions(rows, bleu.NIST, self.n), self.n)

    def find_warnings(self, states: Sequence[SummedCounts]) -> Iterator[str]:
        periods = max(state.counts[-3] for state in states)
        if periods >= MANY_PERIODS and self.tokenizer not in WHITESPACE:
            yield (
                f"{self.name}: {periods:,} responses of a system end in a tokenized period (' .'), so they may be "
                "tokenized already, which may lower the score; detokenize them, as sacreBLEU asks"
            )

    def list_other_signatures(self, state: SummedCounts) -> Mapping[str, str]:
        if not self.of_corpus or self.n != max(WEIGHTS):
            return {}
        line = bleu.sign_bleu(self.tokenizer, bleu.find_number_of_references(state))
        return {} if line is None else {SACREBLEU: line}

    def score(self, batch: Batch) -> Floats:
        counts = bleu.count_ngram_matches(batch, self.tokenizer)
        method = bleu.NIST if self.by == "sacre" else self.smooth
        logs = batch.derive(("bleu logs", self.tokenizer, method), lambda: bleu.log_precisions(counts, method))
        if self.by == "sacre":
            return bleu.sacre_bleu(counts, logs, self.n)
        return bleu.weighted_bleu(counts, logs, WEIGHTS[self.n])


TINY, SMALL = 1e-15, 1e-9
"""What coco-caption adds to matches and to n-grams, so that no precision is 0 or divided by 0."""


@dataclass(frozen=True)
class NlgBleu(CountMetric):
    """Shared n-grams: the BLEU that nlg-eval and coco-caption print, and papers that used these.

    BLEU as nlg-eval computes it: that of coco-caption, without smoothing but for two constants.

        p_i = (clipped matches of order i + 1e-15) / (n-grams of order i + 1e-9)
        nlg-bleu-n = (p_1 * ... * p_n)^(1/n) * BP
        BP = exp(1 - 1 / ratio) if ratio < 1, else 1
        ratio = (words of the response + 1e-15) / (closest reference + 1e-9)

    It is the BLEU of papers that used nlg-eval or coco-caption, among them most that correlate BLEU with judgments of
    dialogue by people; it is not sacreBLEU's (`sacrebleu`). One value per response and then the
    mean (`per=response`), or the value of the summed counts (`per=corpus`), which is the one that nlg-eval prints for a
    file. Words are split at whitespace and keep their case, as there.

    An order without a match multiplies the value by about 1e-15 rather than 0: of two responses without a common
    four-gram the shorter one is above the other by its fewer n-grams alone. That is of no consequence to a mean,
    but it is what rank correlations with this BLEU are partly made of.

    Papers: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL; Chen et al.
    2015, "Microsoft COCO Captions: Data Collection and Evaluation Server"; Sharma et al. 2017, "Relevance of
    Unsupervised Metrics in Task-Oriented Dialogue for Evaluating Natural Language Generation".

    Edge cases: an empty response scores 0, an empty reference is a reference of no words, a row without any reference
    is not scored.
    """

    family = "nlg-bleu"
    presets = {f"nlg-bleu-{n}": {"n": n} for n in get_args(bleu.Order)}
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)

    n: bleu.Order = 4
    per: Per = "response"
    tokenizer: Tokenizer = DEFAULT

    @property
    def width(self) -> int:
        return 2 + 2 * self.n

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        counts = bleu.count_ngram_matches(batch, self.tokenizer)
        lengths = (counts.response_lengths, counts.reference_lengths)
        columns = np.column_stack((*lengths, counts.matches[:, : self.n], counts.totals[:, : self.n]))
        return columns, counts.reference_lengths != bleu.NO_REFERENCE

    def formula(self, counts: Ints | Floats) -> Floats:
        length, reference, matches, totals = np.split(counts, (1, 2, 2 + self.n), axis=1)
        product = ((matches + TINY) / (totals + SMALL)).prod(axis=1)
        shortness = (reference[:, 0] + SMALL) / (length[:, 0] + TINY)
        return np.asarray(product ** (1 / self.n) * np.exp(np.minimum(1 - shortness, 0)))
