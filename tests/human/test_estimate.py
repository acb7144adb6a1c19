"""What people would say: ratings come back, meet the rows that were drawn and the judge, and give figures."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dialeval
from dialeval.core.errors import DataError, SettingError
from dialeval.core.result import Run
from dialeval.core.signature import Signature
from dialeval.human.estimate import HumanEstimates, plan_ratings
from dialeval.human.sample_files import Sample
from dialeval.io.ratings import digest_ratings, read_ratings
from human.rated_runs import ratings_of, run_of

RUN, OPINIONS = run_of()


def test_figures_of_systems_and_of_the_difference() -> None:
    drawn = dialeval.sample(RUN, 120)
    found = dialeval.estimate_ratings(RUN, ratings_of(drawn, OPINIONS), judge="judge", sample=drawn)
    assert [each.system for each in found.systems] == ["a", "b"]
    for name, each in zip("ab", found.systems, strict=True):
        low, high = each.interval
        assert low < OPINIONS[name].mean() < high
        assert high - low < each.alone_interval[1] - each.alone_interval[0]
        assert each.agreement == pytest.approx(0.8, abs=0.12)
        assert each.ratings == 60 < each.effective_ratings
    (difference,) = found.differences
    assert (difference.system, difference.baseline) == ("b", "a")
    assert difference.interval[0] < 0.5 < difference.interval[1]
    assert difference.adjusted_p < 0.01
    assert found.at_random
    assert found["b"].system == "b"
    assert found.unit == "dialogues"
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["systems"][0]["interval"] == pytest.approx(found.systems[0].interval)


@pytest.mark.parametrize(
    "settings",
    [
        {"stratify": ["turn"]},
        {"dialogues": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("of", ["dialogues", "run"])
def test_every_design_gives_an_interval_around_the_truth(settings: dict[str, object], of: str) -> None:
    drawn = dialeval.sample(RUN, 150, **settings)  # type: ignore[arg-type]
    found = dialeval.estimate_ratings(RUN, ratings_of(drawn, OPINIONS), judge="judge", sample=drawn, population=of)  # type: ignore[arg-type]
    for name in "ab":
        figure = found[name]
        assert abs(figure.value - OPINIONS[name].mean()) < 3 * figure.error
        assert figure.error < 1.02 * figure.alone_error


def test_ratings_of_everything_are_the_mean_of_the_run() -> None:
    drawn = dialeval.sample(RUN, 360)
    found = dialeval.estimate_ratings(RUN, ratings_of(drawn, OPINIONS), judge="judge", sample=drawn, population="run")
    for name in "ab":
        assert found[name].value == pytest.approx(OPINIONS[name].mean())
        assert found[name].interval == pytest.approx((OPINIONS[name].mean(),) * 2)


def test_several_raters_are_averaged_and_ratings_may_be_missing() -> None:
    drawn = dialeval.sample(RUN, 80)
    lines = ratings_of(drawn, OPINIONS)
    second = [{**line, "rater": "bob", "scores": {"overall": line["scores"]["overall"] + 1}} for line in lines]  # type: ignore[index]
    both = dialeval.estimate_ratings(RUN, [*lines, *second], sample=drawn)
    one = dialeval.estimate_ratings(RUN, lines, sample=drawn)
    assert both["a"].value == pytest.approx(one["a"].value + 0.5)
    assert both["a"].ratings == 40
    assert both.warnings == []
    fewer = dialeval.estimate_ratings(RUN, lines[10:], sample=drawn)
    (warning,) = fewer.warnings
    assert warning.startswith("10 of 80 sampled rows have no rating of overall")


def test_several_judges() -> None:
    drawn = dialeval.sample(RUN, 120)
    found = dialeval.estimate_ratings(RUN, ratings_of(drawn, OPINIONS), judge="judge,length", sample=drawn)
    assert found.judge == ["judge", "length"]
    assert found["a"].error < found["a"].alone_error


def table(name: str, sizes: Sequence[int], ids: Sequence[str | None]) -> Run:
    """A run of one system with so many rows in each dialogue."""
    rows = [
        {"response": f"{name} {at} {n}", **({} if title is None else {"dialog_id": title})}
        for at, (size, title) in enumerate(zip(sizes, ids, strict=True))
        for n in range(size)
    ]
    (result,) = dialeval.evaluate(rows, metrics="length").values()
    return Run({name: result}, "0")


def test_files_and_folders(tmp_path: Path) -> None:
    drawn = dialeval.sample(RUN, 60)
    drawn.save(tmp_path / "to-rate")
    RUN.save(tmp_path / "run")
    lines = ratings_of(drawn, OPINIONS)
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = dialeval.estimate_ratings(tmp_path / "run", file, judge="judge", sample=tmp_path / "to-rate")
    assert found.to_dict() == dialeval.estimate_ratings(RUN, lines, judge="judge", sample=drawn).to_dict()
    read = read_ratings(file, sampled=drawn.by_id())
    assert found.to_dict() == dialeval.estimate_ratings(RUN, read, judge="judge", sample=drawn).to_dict()
    # The folder beside the file is found, where all that is given are files.
    assert found.to_dict() == dialeval.estimate_ratings(RUN, file, judge=["judge"]).to_dict()
    for mixed in ([file, lines[0]], lines):
        with pytest.raises(SettingError, match=r"^ratings of rows that were not sampled at random do not generalize"):
            dialeval.estimate_ratings(RUN, mixed)
    # `agreement` reads the same file.
    agreement = dialeval.measure_agreement(RUN, file, sample=tmp_path / "to-rate", metrics=["judge"], resamples=20)
    assert agreement.rated == 60
    assert agreement["judge"]["turn"].pearson > 0.5


def test_ratings_that_were_not_drawn_are_refused_or_marked() -> None:
    rated = [
        {"system": name, "dialog_id": f"d{row // 3}", "response": f"{name} says {row}", "scores": OPINIONS[name][row]}
        for name in "ab"
        for row in range(0, 180, 4)
    ]
    with pytest.raises(SettingError, match="not sampled at random"):
        dialeval.estimate_ratings(RUN, rated, judge="judge")
    found = dialeval.estimate_ratings(RUN, rated, judge="judge", assume_random=True)
    assert not found.at_random
    guess = "the rated rows are not known to be a random sample: estimates assume that they are"
    assert found.warnings == [guess]
    others = [{"system": "a", "dialog_id": "d0", "response": text, "scores": 1} for text in ("no reply", "nor this")]
    more = dialeval.estimate_ratings(RUN, [*rated, *others], judge="judge", assume_random=True)
    assert more.warnings == [guess, "2 of 92 rated rows are not in the run and are left out"]
    assert more["a"].value == found["a"].value
    with pytest.raises(SettingError, match=r"^no row of the run has a rating of overall$"):
        dialeval.estimate_ratings(RUN, [*others, {**rated[0], "scores": {"fluent": 1}}], assume_random=True)
    assert found["a"].ratings == 45
    assert found["a"].alone == pytest.approx(OPINIONS["a"][::4].mean())
    run = dialeval.estimate_ratings(RUN, rated, judge="judge", assume_random=True, population="run")
    assert run.differences[0].alone_error == pytest.approx(
        np.std((OPINIONS["b"] - OPINIONS["a"])[::4], ddof=1) / np.sqrt(45) * np.sqrt(1 - 45 / 180)
    )


def test_what_does_not_fit_is_refused() -> None:
    drawn = dialeval.sample(RUN, 60)
    lines = ratings_of(drawn, OPINIONS)
    with pytest.raises(SettingError, match="another run"):
        dialeval.estimate_ratings(run_of(dialogues=61)[0], lines, sample=drawn)
    with pytest.raises(SettingError, match="no ratings of 'fluent'"):
        dialeval.estimate_ratings(RUN, lines, sample=drawn, quality="fluent")
    with pytest.raises(SettingError, match="no 'mood'"):
        dialeval.estimate_ratings(RUN, lines, sample=drawn, judge="mood")
    with pytest.raises(DataError, match="is not in the sample"):
        dialeval.estimate_ratings(RUN, [{**lines[0], "id": "nobody"}], sample=drawn)
    with pytest.raises(SettingError, match="dialogues or run"):
        dialeval.estimate_ratings(RUN, lines, sample=drawn, population="weeks")  # type: ignore[arg-type]
    run, other = (
        dialeval.evaluate(
            [{"response": "yes", "context": [f"tea {n} ?"], "topic": topics[n % 2]} for n in range(20)],
            metrics="length",
            keep="topic",
        )
        for topics in ("ab", "AB")
    )
    by_topic = dialeval.sample(run, 8, stratify=["topic"])
    with pytest.raises(SettingError, match="strata of the run are not those"):
        dialeval.estimate_ratings(other, [{"id": by_topic.responses[0].id, "scores": {"overall": 1}}], sample=by_topic)


def test_few_dialogues_are_warned_of() -> None:
    drawn = dialeval.sample(RUN, 60, dialogues=True)
    found = dialeval.estimate_ratings(RUN, ratings_of(drawn, OPINIONS), judge="judge", sample=drawn)
    few = "ratings of only 10 dialogues or contexts: confidence intervals may be too narrow"
    assert found.warnings == [few]
    twenty, fewer = (dialeval.sample(RUN, number, dialogues=True) for number in (120, 114))
    assert not dialeval.estimate_ratings(RUN, ratings_of(twenty, OPINIONS), sample=twenty).warnings
    assert dialeval.estimate_ratings(RUN, ratings_of(fewer, OPINIONS), sample=fewer).warnings == [
        few.replace("10", "19")
    ]


def yes_no(share: float, n: int, **settings: object) -> HumanEstimates:
    """The estimate of n yes/no answers of one system, of which a share is yes."""
    run = Run({"a": RUN["a"]}, "0")
    drawn = dialeval.sample(run, n)
    lines = [
        {"id": row.id, "rater": "ann", "scores": {"overall": float(number < share * n)}}
        for number, row in enumerate(drawn.responses)
    ]
    return dialeval.estimate_ratings(run, lines, sample=drawn, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize("of", ["dialogues", "run"])
def test_answers_that_are_all_yes_or_all_no_have_a_width(share: float, of: str) -> None:
    figure = yes_no(share, 40, population=of)["a"]
    low, high = figure.interval
    assert share in (low, high)
    # The interval of Clopper and Pearson of as many answers as there are clusters.
    least = 0.025 ** (1 / figure.clusters)
    assert (low, high) == pytest.approx((least, 1.0) if share else (0.0, 1 - least))
    assert 0.08 < high - low < 0.14


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    figure = yes_no(0.95, 40)["a"]
    size = min(0.95 * 0.05 / figure.error**2, 40) * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, figure.freedom)) ** 2
    ends = stats.beta.ppf([0.025, 0.975], [0.95 * size, 0.95 * size + 1], [0.05 * size + 1, 0.05 * size])
    assert figure.interval == pytest.approx(tuple(ends))
    assert figure.interval[1] < 1


def test_a_difference_of_shares_has_the_interval_that_both_imply() -> None:
    """The method of variance estimates recovery (MOVER), with the correlation that the errors show."""
    drawn = dialeval.sample(RUN, 120)
    lines = [
        {"id": row.id, "rater": "ann", "scores": {"overall": float(number % (20 if row.system == "a" else 3) > 0)}}
        for number, row in enumerate(drawn.responses)
    ]
    found = dialeval.estimate_ratings(RUN, lines, sample=drawn)
    (difference,) = found.differences
    one, two = found[difference.system], found[difference.baseline or ""]
    assert difference.value == pytest.approx(one.value - two.value)
    r = (one.error**2 + two.error**2 - difference.error**2) / (2 * one.error * two.error)
    r = min(max(r, 0.0), 1.0)

    def joined(left: float, right: float) -> float:
        return math.sqrt(left**2 + right**2 - 2 * r * left * right)

    down = joined(one.value - one.interval[0], two.interval[1] - two.value)
    up = joined(one.interval[1] - one.value, two.value - two.interval[0])
    assert difference.interval == pytest.approx((difference.value - down, difference.value + up))


def test_a_judge_is_not_fitted_to_a_few_answers_of_one_kind() -> None:
    found = yes_no(0.9, 60, judge="judge")
    assert found["a"].factors == (0.0,)
    assert found["a"].value == found["a"].alone
    words = "fewer than 10 answers of the rarer kind for a: estimates are those of ratings alone"
    assert found.warnings == [words]
    assert yes_no(0.9, 60).warnings == [], "no judge was asked for"
    assert yes_no(0.5, 60, judge="judge")["a"].factors != (0.0,)


def test_equal_ratings_are_not_certain() -> None:
    drawn = dialeval.sample(RUN, 6)
    scores = {"a": 4.0, "b": 5.0}
    lines = [{"id": row.id, "rater": "ann", "scores": {"overall": scores[row.system]}} for row in drawn.responses]
    found = dialeval.estimate_ratings(RUN, lines, sample=drawn)
    assert found.differences[0].p == 2.0 ** (1 - found.differences[0].clusters) >= 0.25
    for each in (*found.systems, *found.differences):
        assert np.isnan(each.interval).all()
    known = dialeval.estimate_ratings(RUN, [{**line, "scale": [1, 5]} for line in lines], sample=drawn)
    low, high = known["b"].interval
    assert 1 < low < 5 == high
    low, high = known.differences[0].interval
    assert low < 0 < 1 < high
    assert known.differences[0].adjusted_p >= 0.25


def test_intervals_stay_on_the_scale() -> None:
    drawn = dialeval.sample(RUN, 12)
    rng = np.random.default_rng(1)
    lines = [
        {"id": row.id, "rater": "ann", "scores": {"overall": float(rng.choice([3, 4, 5], p=[0.1, 0.2, 0.7]))}}
        for row in drawn.responses
    ]
    free = dialeval.estimate_ratings(RUN, lines, sample=drawn)["a"].interval
    kept = dialeval.estimate_ratings(RUN, [{**line, "scale": [1, 5]} for line in lines], sample=drawn)["a"].interval
    assert free[1] > 5 == kept[1]
    assert free[0] == kept[0]


def by_raters(number: int, spread: float) -> tuple[Sample, list[dict[str, object]]]:
    """Lines of raters who all rate the drawn rows, some strictly and some mildly."""
    drawn = dialeval.sample(RUN, 80)
    strict = np.linspace(-spread, spread, number)
    return drawn, [
        {**line, "rater": f"r{rater}", "scores": {"overall": float(OPINIONS[row.system][row.place] + shift)}}
        for row, line in zip(drawn.responses, ratings_of(drawn, OPINIONS), strict=True)
        for rater, shift in enumerate(strict.tolist())
    ]


def test_intervals_for_other_raters() -> None:
    drawn, lines = by_raters(5, 0.8)
    fixed, random = (
        dialeval.estimate_ratings(RUN, lines, judge="judge", sample=drawn, raters=raters)
        for raters in ("fixed", "random")
    )
    assert (fixed.raters, random.raters, random.named_raters) == ("fixed", "random", 5)
    one, other = fixed["a"], random["a"]
    assert other.value == one.value
    # The strictness of 5 raters has a variance of its own, that of their mean.
    assert other.error**2 == pytest.approx(one.error**2 + np.var(np.linspace(-0.8, 0.8, 5), ddof=1) / 5, rel=0.05)
    assert other.freedom == 4
    # A strict rater is strict to both systems.
    (one_difference,), (other_difference,) = fixed.differences, random.differences
    assert other_difference.error == pytest.approx(one_difference.error, rel=1e-6)
    assert other_difference.p >= one_difference.p


def test_intervals_over_users() -> None:
    rng = np.random.default_rng(2)
    mood = np.repeat(rng.normal(size=8), 10)
    rows = [{"dialog_id": f"d{n}", "user": f"u{n // 10}", "response": f"says {n}", "context": ["x"]} for n in range(80)]
    by_user = [{**row, "dialog_id": row["user"], "turn": n % 10} for n, row in enumerate(rows)]
    run, whole = (dialeval.evaluate({"a": each}, metrics="length", keep="user") for each in (rows, by_user))

    def estimated(run: Run, **settings: Any) -> Any:
        drawn = dialeval.sample(run, 80)
        lines = [{"id": row.id, "rater": "ann", "scores": {"overall": mood[row.place]}} for row in drawn.responses]
        return dialeval.estimate_ratings(run, lines, sample=drawn, **settings)["a"]

    found, same = estimated(run, cluster="user"), estimated(whole)
    assert found.interval == pytest.approx(same.interval)
    assert found.error > 2 * estimated(run).error
    with pytest.raises(SettingError, match="kept no field 'session'"):
        estimated(run, cluster="session")
    with pytest.raises(SettingError, match="population of dialogues"):
        estimated(run, cluster="user", population="run")


def test_systems_with_raters_of_their_own_are_warned_about() -> None:
    drawn, lines = by_raters(4, 0.5)
    system = {row.id: row.system for row in drawn.responses}
    apart = [line for line in lines if (line["rater"] in ("r0", "r1")) == (system[str(line["id"])] == "a")]
    (warning,) = dialeval.estimate_ratings(RUN, apart, sample=drawn).warnings
    assert warning.startswith("b and a were mostly rated by different raters: their difference contains that of")
    assert not dialeval.estimate_ratings(RUN, lines, sample=drawn).warnings


def test_few_or_nameless_raters_say_nothing_of_others() -> None:
    drawn, lines = by_raters(4, 0.5)
    with pytest.raises(SettingError, match="at least 5 raters"):
        dialeval.estimate_ratings(RUN, lines, sample=drawn, raters="random")
    nameless = [{"id": row.id, "scores": {"overall": [1.0, 2, 3, 4, 5]}} for row in drawn.responses]
    with pytest.raises(SettingError, match="each with a name; there are 0"):
        dialeval.estimate_ratings(RUN, nameless, sample=drawn, raters="random")
    _, five = by_raters(5, 0.5)
    with pytest.raises(SettingError, match="each with a name; there are 5"):
        dialeval.estimate_ratings(RUN, [*five, nameless[0]], sample=drawn, raters="random")
    with pytest.raises(SettingError, match="fixed or random"):
        dialeval.estimate_ratings(RUN, lines, sample=drawn, raters="many")  # type: ignore[arg-type]


def run_of_judge(rows: list[str]) -> Run:
    """The run as if its judge had learned from some rated rows."""
    digest = "adem@0123456789ab+encoder@ba9876543210"
    systems = {}
    for name in RUN:
        judge = replace(RUN[name]["judge"], signature=Signature.of("judge", judge=digest))
        systems[name] = replace(RUN[name], estimates={**RUN[name].estimates, "judge": judge})
    return Run(systems, "0", details={"trained_on": {digest: rows}})


def test_a_judge_that_learned_from_the_ratings_is_refused() -> None:
    drawn = dialeval.sample(RUN, 80)
    lines = ratings_of(drawn, OPINIONS)
    rows = digest_ratings(read_ratings(lines, sampled=drawn.by_id()))
    with pytest.raises(SettingError, match="judge learned from 80 of the 80 rated rows"):
        dialeval.estimate_ratings(run_of_judge(rows), lines, judge="judge", sample=drawn)
    with pytest.raises(SettingError, match="judge learned from 20 of the 80 rated rows"):
        dialeval.estimate_ratings(run_of_judge(rows[:20]), lines, judge="judge,length", sample=drawn)
    with pytest.raises(SettingError, match="judge learned from 5 of the 80 rated rows"):
        dialeval.estimate_ratings(run_of_judge(rows[:5]), lines, judge="judge", sample=drawn)
    few = dialeval.estimate_ratings(run_of_judge(rows[:4]), lines, judge="judge", sample=drawn)
    assert few.warnings == ["judge learned from 4 of the 80 rated rows"]
    assert not dialeval.estimate_ratings(run_of_judge(rows), lines, judge="length", sample=drawn).warnings
    assert not dialeval.estimate_ratings(run_of_judge(["0" * 12]), lines, judge="judge", sample=drawn).warnings


Z = NormalDist().inv_cdf(0.975)


@pytest.mark.parametrize(("rows", "r"), [(1000, 0.0), (1000, 0.6), (200_000, 0.9)])
def test_as_many_as_the_formula_says(rows: int, r: float) -> None:
    (needed,) = plan_ratings({"a": rows}, 0.3, std=1.2, correlation=r).needed

    def width(n: int, r: float) -> float:
        return 2 * Z * 1.2 / math.sqrt(n) * math.sqrt(1 - r * r * (1 - n / rows))

    assert needed.with_judge is not None
    assert needed.alone is not None
    assert width(needed.with_judge, r) <= 0.3 < width(needed.with_judge - 1, r)
    assert width(needed.alone, 0) <= 0.3 < width(needed.alone - 1, 0)
    assert needed.with_judge <= needed.alone


def of_all(run: Run) -> tuple[Sample, list[dict[str, object]]]:
    """A sample of all rows of a run, and ratings of them."""
    drawn = dialeval.sample(run, sum(len(result.table or ()) for result in run.values()))
    scores = [{"overall": 1.0 + (row.place + (row.system == "b")) % 4} for row in drawn.responses]
    return drawn, [
        {"id": row.id, "rater": "ann", "scores": each} for row, each in zip(drawn.responses, scores, strict=True)
    ]


def test_the_unit_is_dialogues_where_one_has_two_rows() -> None:
    ids = [f"d{n}" for n in range(8)]
    rows, one = table("a", [1] * 8, ids), table("b", [1] * 7 + [2], ids)
    for systems, unit in ((rows, "rows"), (one, "dialogues"), ({**rows, **one}, "dialogues")):
        run = Run(dict(systems), "0")
        drawn, lines = of_all(run)
        assert dialeval.estimate_ratings(run, lines, sample=drawn).unit == unit


def test_other_rows_of_each_system_are_independent_samples() -> None:
    def rated(name: str, start: int) -> list[dict[str, object]]:
        said = [(row, f"d{row // 3}", f"{name} says {row}") for row in range(start, 180, 4)]
        return [
            {"system": name, "dialog_id": dialogue, "response": response, "scores": OPINIONS[name][row]}
            for row, dialogue, response in said
        ]

    lines = [*rated("a", 0), *rated("b", 1)]
    found = dialeval.estimate_ratings(RUN, lines, assume_random=True, population="run")
    (difference,) = found.differences
    parts = [np.var(OPINIONS[name][start::4], ddof=1) / 45 * (1 - 45 / 180) for start, name in enumerate("ab")]
    assert [found[name].alone_error ** 2 for name in "ab"] == pytest.approx(parts)
    assert difference.alone_error**2 == pytest.approx(sum(parts) * 44 / 45 * 90 / 89), "one stratum of 90 ratings"


@pytest.mark.parametrize("known", [True, False])
def test_a_system_that_one_rater_rated_says_nothing_of_others(known: bool) -> None:
    drawn, lines = by_raters(5, 0.5)
    systems = {row.id: row for row in drawn.responses}
    kept = [line for line in lines if line["rater"] == "r2" or systems[str(line["id"])].system == "a"]
    if not known:
        kept = [{**drawn.by_id()[str(line["id"])], **line} for line in kept]
    with pytest.raises(SettingError, match=r"^without 'r2' a system has no ratings; take raters as fixed$"):
        dialeval.estimate_ratings(RUN, kept, sample=drawn if known else None, assume_random=not known, raters="random")


@pytest.mark.parametrize(
    "settings",
    [
        *({"width": value} for value in (0.0, -1.0, math.nan, math.inf)),
        *({"std": value} for value in (0.0, -1.0, math.nan)),
        *({"correlation": value} for value in (1.001, -1.001, math.nan)),
    ],
)
def test_what_cannot_be_planned(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"width of an interval is a number above 0|standard deviation is above 0"):
        plan_ratings({"a": 100}, **{"width": 0.1, **settings})
