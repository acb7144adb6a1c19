"""Model cards of the shipped judges."""

from __future__ import annotations

from tools.judge_training.validation import HumanCorrelation, Validation, list_validation

from dialeval.judges import training
from dialeval.judges.attacks import Attack, list_attacks
from dialeval.judges.judge import SHIPPED, load_judge

NAN = float("nan")
GOOD = HumanCorrelation(40, 0.456, (-0.05, 0.96))
UNKNOWN = HumanCorrelation(2, NAN, (NAN, NAN))


def test_tables() -> None:
    found = Validation({"a": {"adem": GOOD}, "b": {"adem": UNKNOWN}}, {"adem": GOOD}, ["a"])
    assert list_validation(found) == [
        ["data set", "rows", "adem"],
        ["a", "40", ".46 [-.05, .96]"],
        ["b (no references)", "2", "- [-, -]"],
        ["mean of sets with references", "", ".46 [-.05, .96]"],
    ]
    assert list_attacks([Attack("dull", 7, 3.0, 2.5, 0.254, NAN)])[1:] == [
        ["dull", "7", "3.00", "2.50", "-", "25%", "-"]
    ]


def test_no_name_in_a_card_is_markup() -> None:
    hostile = "a|b <img src=x>\n# c"
    table = training.write_card_table([["data set", hostile], [hostile, ".46 [-.05, .96]"]])
    escaped = r"a\|b &lt;img src=x&gt;\\n# c"
    assert table == f"| data set | {escaped} |\n| --- | --- |\n| {escaped} | .46 [-.05, .96] |"
    assert training.to_code("train x") == "`train x`"
    assert training.to_code("train `` <b>\n") == "``` train `` <b>\\n ```"


def test_a_set_has_as_many_rows_as_the_judge_with_most() -> None:
    fewer = HumanCorrelation(38, 1.0, (0.0, 1.0))
    found = Validation({"a": {"adem": fewer, "length": GOOD}}, {}, ["a"])
    assert list_validation(found)[1:] == [["a", "40", "1.00 [.00, 1.00]", ".46 [-.05, .96]"]]
    assert found.resamples == 1000


def test_the_shipped_labels_are_above_every_floor_on_systems_left_out() -> None:
    systems = load_judge(SHIPPED).facts["breakdowns"]["systems"]
    assert list(systems) == ["CIC", "IRIS", "TKTK", "YI"]
    for detectors in systems.values():
        ours = detectors["judge"]
        for floor in (found for name, found in detectors.items() if name.startswith("floor/")):
            assert ours["jsd"] < floor["jsd"]
            assert ours["mse"] < floor["mse"]
            assert ours["f1-tx"] > floor["f1-tx"]
    for each in load_judge(SHIPPED).facts["attacks"]:
        most = {"reversed": 0.03, "context": 0.03, "random": 0.08, "dull": 0.15}
        assert each["not_worse"] <= most.get(each["name"], 1.0)
