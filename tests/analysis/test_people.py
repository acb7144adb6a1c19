"""What people would say: ratings come back, meet the rows that were drawn and the judge, and give figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dialeval
from analysis.rated_runs import ratings_of, run_of
from dialeval.core.errors import DataError, SettingError

RUN, OPINIONS = run_of()


def test_figures_of_systems_and_of_the_difference() -> None:
    drawn = dialeval.draw(RUN, 120)
    found = dialeval.estimate(RUN, ratings_of(drawn, OPINIONS), by="judge", sample=drawn)
    assert [each.system for each in found.figures] == ["a", "b"]
    for name, each in zip("ab", found.figures, strict=True):
        low, high = each.figure.interval
        assert low < OPINIONS[name].mean() < high
        assert high - low < each.figure.alone_interval[1] - each.figure.alone_interval[0]
        assert each.agreement == pytest.approx(0.8, abs=0.12)
        assert each.figure.ratings == 60 < each.figure.worth
    (difference,) = found.differences
    assert (difference.system, difference.baseline) == ("b", "a")
    assert difference.figure.interval[0] < 0.5 < difference.figure.interval[1]
    assert difference.adjusted_p < 0.01
    assert found.at_random
    assert found["b"].system == "b"
    assert found.unit == "dialogues"
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["systems"][0]["interval"] == pytest.approx(found.figures[0].figure.interval)


@pytest.mark.parametrize(
    "settings",
    [
        {"by": ["judge:3"]},
        {"by": ["system"]},
        {"unsure": "judge"},
        {"dialogues": True},
        {"dialogues": True, "apart": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("of", ["dialogues", "run"])
def test_every_design_gives_an_interval_around_the_truth(settings: dict[str, object], of: str) -> None:
    drawn = dialeval.draw(RUN, 150, **settings)  # type: ignore[arg-type]
    found = dialeval.estimate(RUN, ratings_of(drawn, OPINIONS), by="judge", sample=drawn, of=of)  # type: ignore[arg-type]
    for name in "ab":
        figure = found[name].figure
        assert abs(figure.value - OPINIONS[name].mean()) < 3 * figure.error
        assert figure.error < 1.02 * figure.alone_error


def test_ratings_of_everything_are_the_mean_of_the_run() -> None:
    drawn = dialeval.draw(RUN, 360)
    found = dialeval.estimate(RUN, ratings_of(drawn, OPINIONS), by="judge", sample=drawn, of="run")
    for name in "ab":
        assert found[name].figure.value == pytest.approx(OPINIONS[name].mean())
        assert found[name].figure.interval == pytest.approx((OPINIONS[name].mean(),) * 2)


def test_several_raters_are_averaged_and_ratings_may_be_missing() -> None:
    drawn = dialeval.draw(RUN, 80)
    lines = ratings_of(drawn, OPINIONS)
    second = [{**line, "rater": "bob", "scores": {"overall": line["scores"]["overall"] + 1}} for line in lines]  # type: ignore[index]
    both = dialeval.estimate(RUN, [*lines, *second], sample=drawn)
    one = dialeval.estimate(RUN, lines, sample=drawn)
    assert both["a"].figure.value == pytest.approx(one["a"].figure.value + 0.5)
    assert both["a"].figure.ratings == 40
    assert both.warnings == []
    fewer = dialeval.estimate(RUN, lines[10:], sample=drawn)
    assert fewer.warnings == ["10 of 80 drawn rows have no rating of overall; they are taken for missing by chance"]


def test_several_judges() -> None:
    drawn = dialeval.draw(RUN, 120)
    found = dialeval.estimate(RUN, ratings_of(drawn, OPINIONS), by="judge,length", sample=drawn)
    assert found.by == ["judge", "length"]
    assert found["a"].figure.error < found["a"].figure.alone_error


def test_files_and_folders(tmp_path: Path) -> None:
    drawn = dialeval.draw(RUN, 60)
    drawn.save(tmp_path / "to-rate")
    RUN.save(tmp_path / "run")
    lines = ratings_of(drawn, OPINIONS)
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = dialeval.estimate(tmp_path / "run", file, by="judge", sample=tmp_path / "to-rate")
    assert found.to_dict() == dialeval.estimate(RUN, lines, by="judge", sample=drawn).to_dict()
    # `meta` reads the same file.
    agreement = dialeval.agreement(RUN, file, sample=tmp_path / "to-rate", metrics=["judge"], resamples=20)
    assert agreement.rated == 60
    assert agreement["judge"]["turn"].pearson > 0.5


def test_ratings_that_were_not_drawn_are_refused_or_marked() -> None:
    rated = [
        {"system": name, "dialog_id": f"d{row // 3}", "response": f"{name} says {row}", "scores": OPINIONS[name][row]}
        for name in "ab"
        for row in range(0, 180, 4)
    ]
    with pytest.raises(SettingError, match="not drawn at random"):
        dialeval.estimate(RUN, rated, by="judge")
    found = dialeval.estimate(RUN, rated, by="judge", as_if_random=True)
    assert not found.at_random
    assert "not drawn at random" in found.warnings[0]
    assert found["a"].figure.ratings == 45
    assert found["a"].figure.alone == pytest.approx(OPINIONS["a"][::4].mean())
    run = dialeval.estimate(RUN, rated, by="judge", as_if_random=True, of="run")
    assert run.differences[0].figure.alone_error == pytest.approx(
        np.std((OPINIONS["b"] - OPINIONS["a"])[::4], ddof=1) / np.sqrt(45) * np.sqrt(1 - 45 / 180)
    )


def test_what_does_not_fit_is_refused() -> None:
    drawn = dialeval.draw(RUN, 60)
    lines = ratings_of(drawn, OPINIONS)
    with pytest.raises(SettingError, match="another run"):
        dialeval.estimate(run_of(dialogues=61)[0], lines, sample=drawn)
    with pytest.raises(SettingError, match="nobody rated 'fluent'"):
        dialeval.estimate(RUN, lines, sample=drawn, quality="fluent")
    with pytest.raises(SettingError, match="no 'mood'"):
        dialeval.estimate(RUN, lines, sample=drawn, by="mood")
    with pytest.raises(DataError, match="is of no row that was drawn"):
        dialeval.estimate(RUN, [{**lines[0], "id": "nobody"}], sample=drawn)
    with pytest.raises(SettingError, match="dialogues or of run"):
        dialeval.estimate(RUN, lines, sample=drawn, of="weeks")  # type: ignore[arg-type]
    by_judge = dialeval.draw(RUN, 60, by=["judge"])
    with pytest.raises(SettingError, match="strata of the run are not those"):
        other, _ = run_of(r=0.1)
        dialeval.estimate(other, ratings_of(by_judge, OPINIONS), sample=by_judge)


def test_few_dialogues_are_warned_of() -> None:
    drawn = dialeval.draw(RUN, 60, dialogues=True)
    found = dialeval.estimate(RUN, ratings_of(drawn, OPINIONS), by="judge", sample=drawn)
    assert "only 10 dialogues" in found.warnings[0]
