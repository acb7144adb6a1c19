"""Published correlations with human ratings, from the ratings themselves.

BLEU-4 of nlg-eval and ROUGE-L with the overall quality of USR's Topical-Chat replies and GRADE's ConvAI2 replies, as
printed (three digits): the mean of the annotators, words split at white space, rows whose reply is the reference left
out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import dialeval

pytestmark = pytest.mark.golden

PUBLISHED = {
    "usr_topicalchat": {"nlg-bleu-4": (0.216, 0.296), "rouge-l": (0.275, 0.287)},
    "grade_convai2": {"nlg-bleu-4": (0.003, 0.128), "rouge-l": (0.136, 0.140)},
}
ROWS = {"usr_topicalchat": 300, "grade_convai2": 600}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_correlations_come_out(shared_data: Path, name: str) -> None:
    ratings = shared_data / "ratings" / f"{name}.jsonl.gz"
    found = dialeval.measure_agreement(ratings, metrics=list(PUBLISHED[name]), levels=["turn"], resamples=20)
    for metric, published in PUBLISHED[name].items():
        turns = found[metric]["turn"]
        assert turns.n == ROWS[name]
        assert (round(turns.pearson, 3), round(turns.spearman, 3)) == published


def test_a_reply_that_is_the_reference_is_left_out_of_every_metric(shared_data: Path) -> None:
    ratings = shared_data / "ratings" / "usr_topicalchat.jsonl.gz"
    found = dialeval.measure_agreement(ratings, levels=["turn"], resamples=1)
    scored = {key: levels["turn"].n for key, levels in found.metrics.items() if levels["turn"].reason is None}
    assert {"bleu-4", "nlg-bleu-1", "rouge-l", "chrf", "unigram-kl-div", "length"} <= set(scored)
    assert set(scored.values()) == {287}
    assert found.excluded[0].startswith("73 of 360 rated rows are left out")
