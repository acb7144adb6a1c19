"""Lexicalized replies: values become placeholders, in the town and in gold replies of MultiWOZ with values put back."""

from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import Dialeval
from dialeval import sample_data
from dialeval.core.errors import DataError
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import TaskData, load_task
from dialeval.suites.multiwoz.evaluation import make_gold_replies
from dialeval.suites.multiwoz.lexicalized import Delexicalizer
from dialeval.suites.multiwoz.turns import estimate_domains, make_normalizer
from dialeval.suites.multiwoz.venues import load_ontology

TOWN = sample_data.folder() / "town"
PATIENT = TOWN / "predictions" / "patient.json"


@pytest.mark.golden
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Enjoy your stay in Cambridge!", "Enjoy your stay in Cambridge!"),
        ("It arrives in Cambridge at 10:15.", "It arrives in [train_departure] at [leaveat]."),
        ("Thanks for calling Cambridge TownInfo Centre.", "Thanks for calling Cambridge TownInfo Centre."),
        ("The hotel is a guesthouse.", "The hotel is a [hotel_type]."),
        ("I like the Museum of Classical Archaeology.", "I like the [attraction_name]."),
        ("Look for a grey Ford.", "Look for a [car]."),
        ("It has free admission and free wifi.", "It has [price] admission and free wifi."),
    ],
)
def test_phrases_of_multiwoz(shared_data: Path, text: str, expected: str) -> None:
    assert Delexicalizer(load_task(shared_data / "multiwoz"))(text, {})[0] == expected


def lexicalized() -> dict[str, Any]:
    """The patient system with values in the places of its placeholders."""
    document = json.loads(PATIENT.read_text())
    values = {"eatery_name": "The Blue Lantern", "eatery_phone": "555 0101", "inn_name": "Seven Lamps", "dish": "soup"}
    for turns in document.values():
        for turn in turns:
            for slot, value in values.items():
                turn["response"] = turn["response"].replace(f"[{slot}]", value)
            turn["response"] = re.sub(r"\[[a-z_]+\]", "7 lamp row", turn["response"])
    return {"spoken": document}


def test_scores_with_and_without(dialeval: Dialeval, tmp_path: Path) -> None:
    document = lexicalized()
    before = copy.deepcopy(document)
    evaluator = Evaluator(data="town", lexicalized=True)
    run = evaluator.run(document)
    assert document == before
    assert run["spoken"]["inform"].mean > Evaluator(data="town").run(document)["spoken"]["inform"].mean
    assert run["spoken"]["inform"].signature is not None
    assert run["spoken"]["inform"].signature["replies"] == "lexicalized"
    assert any(line.startswith("spoken: values in ") and "NAME " in line for line in run.warnings)
    assert "Lantern" in str(
        run["spoken"].table and list(run["spoken"].table.texts["response"])
    )  # rows show what was said
    # A system that has placeholders is left as it is, and both may be compared.
    both = evaluator.run({**document, "patient": PATIENT})
    assert "patient has placeholders already, so that its replies are taken as they are" in both.warnings
    assert both["patient"]["success"].mean == Evaluator(data="town").run(PATIENT)["patient"]["success"].mean
    (tmp_path / "spoken.json").write_text(json.dumps(document["spoken"]))
    done = dialeval(
        "multiwoz", "delexicalize", "-i", "spoken.json", "--data", "town", "--save", "out.json", "-f", "json"
    )
    assert done.returncode == 0, done.stderr
    assert {each["word"] for each in json.loads(done.stdout)["words"]} >= {"NAME", "PHONE"}
    written = Evaluator(data="town").run({"spoken": tmp_path / "out.json"})
    assert {key: each.mean for key, each in written["spoken"].items()} == {
        key: each.mean for key, each in run["spoken"].items()
    }
    done = dialeval(
        "multiwoz", "delexicalize", "-i", "spoken.json", "-i", str(PATIENT), "--data", "town", "--save", "x"
    )
    assert done.returncode == 2
    assert "one system" in done.stderr
    assert "examples" in dialeval("multiwoz", "delexicalize", "-i", "spoken.json", "--data", "town", "-f", "csv").stdout


def test_patterns_of_an_ontology(tmp_path: Path) -> None:
    text = (TOWN / "ontology.toml").read_text()
    (tmp_path / "good.toml").write_text(text.replace("[words]", "[patterns]\ncode = '[A-Z]{2}\\d{2}'\n\n[words]", 1))
    assert load_ontology(tmp_path / "good.toml").patterns["code"].fullmatch("AB12")
    (tmp_path / "bad.toml").write_text(text.replace("[words]", "[patterns]\ncode = '('\nrank = 'x'\n\n[words]", 1))
    with pytest.raises(DataError, match=r"patterns.code: '\(' is not a regular expression") as raised:
        load_ontology(tmp_path / "bad.toml")
    assert len(raised.value.problems) == 2
    (tmp_path / "worse.toml").write_text(f"ordinary = ['the inn', '(']\n{text}")
    with pytest.raises(DataError, match=r"ordinary: '\(' is not a regular expression"):
        load_ontology(tmp_path / "worse.toml")


COLUMNS = {"NAME": "name", "PHONE": "phone", "ADDRESS": "address", "AREA": "area", "TYPE": "type", "POST": "postcode"}
COLORS = ("black", "white", "red", "yellow", "blue", "grey")
CARS = ("toyota", "skoda", "bmw", "honda", "ford", "audi", "lexus", "volvo", "volkswagen", "tesla")


def with_values(task: TaskData) -> dict[str, list[dict[str, Any]]]:
    """Gold replies of MultiWOZ with values of random venues and trains in the places of their words."""
    assert task.files.references is not None
    assert task.files.states is not None
    choose = random.Random(7)
    tables = task.venues.tables
    words = re.compile("|".join(sorted(set(task.ontology.words.values()), key=len, reverse=True)))

    def value(word: str, domain: str) -> str:
        if word == "TYPE" and domain == "restaurant":  # which has none: the text is about a taxi
            return f"{choose.choice(COLORS)} {choose.choice(CARS)}"
        if word in COLUMNS:
            known = [venue[COLUMNS[word]] for venue in tables[domain].venues if venue.get(COLUMNS[word], "?") != "?"]
            return choose.choice(known)
        if word == "REFERENCE":
            return "".join(choose.choices("ABCDEFGHJKLMNPQRSTUVWXYZ0123456789", k=8))
        train, food = choose.choice(tables["train"].venues), choose.choice(tables["restaurant"].venues)["food"]
        others = {"TRAINID": train["trainid"], "TIME": train["leave"], "DAY": train["day"], "PRICE": train["price"]}
        return {**others, "PLACE": train["departure"], "FOOD": food, "COUNT": str(choose.randint(2, 30))}[word]

    document: dict[str, list[dict[str, Any]]] = {}
    for dialogue, texts in task.files.references.sets["mwz22"].items():
        states = list(map(task.ontology.states, task.files.states.states[dialogue]))
        document[dialogue] = []
        for text, active in zip(texts, estimate_domains(states), strict=True):
            domain = next((name for name in active if name in tables and name != "train"), "restaurant")
            text = text.replace("COUNTtar", "COUNT-star")  # as it was before it was normalized
            said = words.sub(lambda match, domain=domain: value(match[0], domain), text)  # type: ignore[misc]
            document[dialogue].append({"response": said})
    return document


@pytest.mark.golden
def test_lexicalized_gold_scores_like_gold(shared_data: Path) -> None:
    task = load_task(shared_data / "multiwoz")
    replies = iter(make_gold_replies(task))
    gold = {name: [{"response": next(replies)} for _ in range(count)] for name, count in task.files.turns.items()}
    document = with_values(task)
    assert not any("[" in turn["response"] for turns in document.values() for turn in turns)
    run = Evaluator(richness=False, data=task, lexicalized=True).run({"gold": gold, "lexicalized": document})
    for key, before, after in (("inform", 94.0, 93.8), ("success", 91.2, 91.2), ("bleu/mwz22", 100.0, 98.5)):
        assert (round(run["gold"][key].mean, 1), round(run["lexicalized"][key].mean, 1)) == (before, after), key
    assert Evaluator(bleu=False, richness=False, data=task).run({"x": document})["x"]["success"].mean < 5


#


WORDS = {"name": "NAME", "hotel_name": "NAME", "stars": "COUNT", "entrance fee": "PRICE"}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("The [hotel_name] is nice .", "the NAME is nice."),
        ("[NAME]s and [name]-s", "NAME and NAME"),
        ("[stars]-star", "COUNTtar"),
        ("a 4-star hotel, cheap-ly priced", "a 4tar hotel, cheap priced"),
        ("[entrance fee] at 10:00", "PRICE at 10: 00"),
        ("[nobody_knows] is gone", "is gone"),
        ("[broken", "[broken"),
        ("", ""),
    ],
)
def test_normalized(response: str, expected: str) -> None:
    assert make_normalizer(WORDS)(response) == expected
