"""What several raters said, put together."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.human.form import Form, Gold, make_score_check
from dialeval.human.merge import MergedRatings, make_rated_rows, merge_ratings
from dialeval.io.ratings import read_pairs, read_ratings
from human.rated_samples import sample_of


def written(tmp_path: Path, name: str, rows: Sequence[dict[str, Any]]) -> Path:
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def line(identity: str, rater: str, overall: float, **more: Any) -> dict[str, Any]:
    return {"id": identity, "rater": rater, "scores": {"overall": overall}, **more}


@pytest.fixture
def merged(tmp_path: Path) -> MergedRatings:
    ann = [line(f"r{n}", "ann", value, seconds=n) for n, value in enumerate((1, 2, 3, 4, 5))]
    ann += [line("r0", "ann", 1, again=True), line("r1", "ann", 4, again=True)]
    bob = [line(f"r{n}", "bob", value) for n, value in enumerate((2, 3, 4, 5, 1))]
    return merge_ratings([written(tmp_path, "ann.jsonl", ann), written(tmp_path, "bob.jsonl", bob)])


def test_alpha_is_that_of_the_package(merged: MergedRatings) -> None:
    table = np.array([[1, 2, 3, 4, 5], [2, 3, 4, 5, 1]], float)
    for level in ("nominal", "ordinal", "interval"):
        wanted = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
        assert merged.ceilings["overall"].alpha[level] == pytest.approx(wanted)
    assert merged.ceilings["overall"].n == 5


def test_raters_with_themselves_and_with_the_others(merged: MergedRatings) -> None:
    ann, bob = merged.raters
    assert (ann.rater, ann.rows, ann.repeated, ann.intra_rater_agreement, ann.shared) == ("ann", 5, 2, 0.5, 5)
    assert ann.correlation == pytest.approx(np.corrcoef([1, 2, 3, 4, 5], [2, 3, 4, 5, 1])[0, 1])
    assert (ann.higher, bob.higher) == (0, 0)
    assert (bob.repeated, math.isnan(bob.intra_rater_agreement)) == (0, True)
    assert merged.seconds["ann"] == 2
    assert math.isnan(merged.seconds["bob"])


def test_the_largest_differences_are_to_be_adjudicated(merged: MergedRatings, tmp_path: Path) -> None:
    assert [each.id for each in merged.disputed] == ["r4", "r0", "r1", "r2", "r3"]
    assert (merged.disputed[0].spread, merged.disputed[0].answers) == (1.0, {"ann": 5, "bob": 1})
    files = [tmp_path / "ann.jsonl", tmp_path / "bob.jsonl"]
    final = written(tmp_path, "eve.jsonl", [line("r4", "eve", 3), line("r4", "eve", 4, again=True)])
    settled = merge_ratings(files, adjudicated=[final], most=2)
    assert [each.id for each in settled.disputed] == ["r0", "r1"]
    assert [(each.rater, each.scores) for each in settled.lines if each.id == "r4"] == [("eve", {"overall": 3.0})]
    assert settled.ceilings == merged.ceilings


def test_first_answers_count_and_of_different_ones_the_last(tmp_path: Path) -> None:
    first = written(tmp_path, "a.jsonl", [line("r0", "ann", 1), line("r1", "ann", 2)])
    second = written(
        tmp_path, "b.jsonl", [line("r0", "ann", 5), line("r1", "ann", 2), line("r2", "ann", 3, again=True)]
    )
    found = merge_ratings([first, second])
    assert [(each.id, each.scores["overall"]) for each in found.lines] == [("r0", 5), ("r1", 2), ("r2", 3)]
    (warning,) = found.warnings
    assert warning == "ann has 1 rating with other scores in a later line; the last one counts"
    third = written(tmp_path, "c.jsonl", [line("r0", "ann", 4), line("r1", "bob", 1), line("r1", "bob", 1)])
    (warning,) = merge_ratings([first, second, third]).warnings
    assert warning == "ann has 2 ratings with other scores in a later line; the last one counts"
    assert found.raters[0].repeated == 0


def test_written_rows_are_read_by_all_that_read_ratings(tmp_path: Path) -> None:
    sample = sample_of(3)
    rows = [line(row.id, rater, 1 + n % 5) for n, row in enumerate(sample.responses) for rater in ("ann", "bob")]
    merged = merge_ratings([written(tmp_path, "all.jsonl", rows)], sample)
    file = written(tmp_path, "ratings.jsonl", make_rated_rows(merged, sample, "overall"))
    read = read_ratings(file)
    assert read.responses == [row.response for row in sample.responses]
    assert read.systems == [row.system for row in sample.responses]
    assert [len(values) for values in read.annotations["overall"]] == [2] * 6
    assert read_ratings(file, sampled=sample.by_id()).values["overall"].tolist() == [1, 2, 3, 4, 5, 1]
    bare = make_rated_rows(merged, None, "overall")
    assert bare[0] == {"id": sample.responses[0].id, "rater": "ann", "scores": {"overall": 1}}


def test_pairs_are_written_as_rank_reads_them(tmp_path: Path) -> None:
    sample = sample_of(3)
    rows = [line(f"k00{n}abcd-q00{n}abcd", "ann", value) for n, value in enumerate((1, 0, -1))]
    merged = merge_ratings([written(tmp_path, "all.jsonl", rows)], sample)
    made = make_rated_rows(merged, sample, "overall")
    assert [(row["a"], row["b"], row["better"]) for row in made] == [
        ("secret-one", "secret-two", better) for better in ("secret-one", "tie", "secret-two")
    ]
    assert made[2]["response_b"] == "response 2 of y"
    pairs = read_pairs(written(tmp_path, "pairs.jsonl", made))
    assert pairs.outcome.tolist() == [1, 0, -1]
    with pytest.raises(SettingError, match="by 'fluent'"):
        make_rated_rows(merged, sample, "fluent")


@pytest.mark.parametrize("systems", [("tie", "x"), ("a", "A")], ids="-".join)
def test_systems_that_cannot_be_told_from_sides_are_refused(tmp_path: Path, systems: tuple[str, str]) -> None:
    rows = [line(f"k00{n}abcd-q00{n}abcd", "ann", value) for n, value in enumerate((1, -1, 0))]
    sample = sample_of(3, systems)
    merged = merge_ratings([written(tmp_path, "all.jsonl", rows)], sample)
    with pytest.raises(SettingError, match="rename"):
        make_rated_rows(merged, sample, "overall")


def test_ratings_of_other_rows_are_refused(tmp_path: Path) -> None:
    file = written(
        tmp_path, "all.jsonl", [line("k000abcd", "ann", 1), line("k000abcd-zzz", "ann", 1), line("z", "a", 1)]
    )
    with pytest.raises(DataError) as error:
        merge_ratings([file], sample_of(3))
    assert [problem.line for problem in error.value.problems] == [2, 3]
    with pytest.raises(SettingError, match="no ratings"):
        merge_ratings([])


def test_pairs_that_were_never_shown_are_refused(tmp_path: Path) -> None:
    """Two responses to one context are shown, in the order of their ids."""
    shown, others = "k000abcd-q000abcd", ["k000abcd-k001abcd", "k000abcd-q001abcd", "q000abcd-k000abcd"]
    file = written(tmp_path, "all.jsonl", [line(identity, "ann", 1) for identity in (shown, *others)])
    with pytest.raises(DataError, match="not in the sample") as error:
        merge_ratings([file], sample_of(3))
    assert [problem.line for problem in error.value.problems] == [2, 3, 4]


def test_scores_that_are_no_answers_are_refused_with_file_and_line(tmp_path: Path) -> None:
    rows = [line("k000abcd", "ann", 5), line("k001abcd", "ann", 500), line("k000abcd-q000abcd", "ann", 5)]
    file = written(tmp_path, "all.jsonl", rows)
    with pytest.raises(DataError) as error:
        merge_ratings([file], sample_of(3), check=make_score_check(None, sample_of(3)))
    assert [(problem.where, problem.line, problem.what) for problem in error.value.problems] == [
        (str(file), 2, "overall is 500, which is none of its answers"),
        (str(file), 3, "overall is 5, which is none of its answers"),
    ]
    assert len(merge_ratings([file], sample_of(3)).lines) == 3  # as of another tool


def test_raters_below_the_pass_mark_are_left_out_and_named(tmp_path: Path) -> None:
    """Ann knows the gold questions, bob half of them, cy has none: what ann and cy said counts."""
    gold = [Gold("Fish.", {"overall": [1, 2]}, ["When do you open?"]), Gold("At nine.", {"overall": 5}, ["When?"])]
    form = Form(gold=gold, uncertain=True)
    rows = [line(f"k{at:03}abcd", rater, 4) for rater in ("ann", "bob", "cy") for at in range(3)]
    rows += [
        line(gold[0].id, "ann", 2),
        line(gold[1].id, "ann", 5),
        line(gold[0].id, "bob", 1),
        line(gold[1].id, "bob", 3),
    ]
    file = written(tmp_path, "all.jsonl", rows)
    sample = sample_of(3)
    merged = merge_ratings([file], sample, check=make_score_check(form, sample), form=form)
    assert {row.rater for row in merged.lines} == {"ann", "cy"}
    assert len(make_rated_rows(merged, sample, "overall")) == 6
    assert merged.gold == {"ann": (2, 2), "bob": (1, 2)}
    assert [warning.partition(";")[0] for warning in merged.warnings] == [
        "bob answered 1 of 2 gold questions right, below the pass mark of 70%",
        "cy answered no gold question",
    ]
    with pytest.raises(DataError, match="not in the sample"):
        merge_ratings([file], sample)


def test_uncertain_gives_no_score_and_is_counted(tmp_path: Path) -> None:
    sample, form = sample_of(3), Form(compare=True, both_bad=True, uncertain=True)
    pairs = list(sample.pairs())
    uncertain = {"id": pairs[0], "rater": "ann", "scores": {"overall": None}}
    file = written(
        tmp_path, "a.jsonl", [uncertain, line(pairs[1], "ann", 0, both_bad=["overall"]), line(pairs[2], "ann", 1)]
    )
    merged = merge_ratings([file], sample, check=make_score_check(form, sample), form=form)
    assert merged.uncertain == {"ann": 1}
    both, first = make_rated_rows(merged, sample, "overall")
    assert (both["better"], both["both_bad"], first.get("both_bad")) == ("tie", True, None)
    assert len(read_pairs(make_rated_rows(merged, sample, "overall"))) == 2
    with pytest.raises(DataError, match="overall is uncertain, which is none of its answers"):
        merge_ratings([file], sample, check=make_score_check(None, sample))
