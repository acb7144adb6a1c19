"""The card of a judge that reads context and response together: every fact of its folder in words and tables."""

from __future__ import annotations

from dialeval.judges.judge import SHIPPED, load_judge


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
