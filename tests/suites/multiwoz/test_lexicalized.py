"""Lexicalized replies: values become placeholders, in the town and in gold replies of MultiWOZ with values put back."""

from __future__ import annotations

import copy
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Dialeval
from dialeval import sample_data
from dialeval.core.errors import DataError
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import TaskData, load_task, read_predictions
from dialeval.suites.multiwoz.evaluation import make_gold_replies
from dialeval.suites.multiwoz.lexicalized import (
    PRINTER,
    Delexicalizer,
    FoundValues,
    MatchReport,
    SystemMatches,
    delexicalize,
)
from dialeval.suites.multiwoz.ontology import Domain, load_ontology
from dialeval.suites.multiwoz.turns import estimate_domains
from dialeval.suites.multiwoz.venues import Venues, VenueTable

TOWN = sample_data.folder() / "town"
PATIENT = TOWN / "predictions" / "patient.json"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Willow Gate Inn, call 555 0201.", "[inn_name], call [inn_phone]."),
        ("the WILLOW-gate inn's address is 1 Willow Gate", "the [inn_name]'s address is [inn_address]"),
        ("Ferryman’s Rest is cheap", "[inn_name] is [price]"),  # without `the`, another apostrophe
        ("I have 2 rooms, yes or no?", "I have 2 rooms, yes or no?"),
        ("[inn_name] is open, [cheap] [seven lamps]", "[inn_name] is open, [cheap] [seven lamps]"),
        ("", ""),
    ],
)
def test_values_of_the_tables(text: str, expected: str) -> None:
    written, matches = Delexicalizer(load_task("town"))(text, {})
    assert written == expected
    assert len(matches) == expected.count("[") - text.count("[")


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


def test_values_of_the_state_and_their_source() -> None:
    write = Delexicalizer(load_task("town"))
    written, (match,) = write("a table at the Old Mill, then", {"eatery": {"name": "old mill"}})
    assert (written, match.by) == ("a table at the [eatery_name], then", "state")


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
        run["spoken"].rows and list(run["spoken"].rows.texts["response"])
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
    (report,) = json.loads(done.stdout)["systems"]
    assert report["replies"] == 26
    assert {each["word"] for each in report["values"]} >= {"NAME", "PHONE"}
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


def small_task() -> TaskData:
    """Two domains that share a column, with values at every limit."""
    town = load_task("town")
    words = {"inn_name": "NAME", "inn_id": "ID", "inn_area": "AREA", "inn_phone": "PHONE", "inn_price": "PRICE"}
    words |= {"inn_town": "TOWN", "eatery_name": "NAME", "eatery_area": "AREA", "code": "CODE"}
    inn = Domain("inn", "inns.json", at_most=("price",))
    eatery = Domain("eatery", "eateries.json", key="name")
    ontology = replace(
        town.ontology,
        words=words,
        domains={"inn": inn, "eatery": eatery},
        patterns={"code": re.compile("[A-Z]{2}[0-9]{2}")},
        ordinary=(re.compile("old harbour"),),
        any_value="whatever",
    )
    letters = "a b c d e f g h i j k l"
    inns = [
        {"id": "first", "name": "the willow gate", "type": "gate", "area": "harbour", "phone": "55501"},
        {"id": "second", "name": "the mill", "area": "whatever", "phone": "1234"},
        {"id": "third", "name": "the lamps inn", "area": "free", "phone": letters},
        {"id": "fourth", "name": f"{letters} m", "area": "hill", "phone": "55502"},
    ]
    inns = [{**each, "price": price, "town": "bayville"} for each, price in zip(inns, "1234", strict=True)]
    inns[0]["price"] = "cheap"
    tables = {
        "inn": VenueTable(inn, ontology, inns),
        "eatery": VenueTable(eatery, ontology, [{"name": "spoon", "area": "harbour"}, {"name": "salty fork"}]),
    }
    return replace(town, ontology=ontology, venues=Venues(tables, "0" * 12))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Willow Gate or Willow", "[inn_name] or [inn_name]"),
        ("the mill, or mill", "[inn_name], or mill"),  # four letters are too few
        ("the lamps inn, lamps inn, lamps", "[inn_name], [inn_name], [inn_name]"),
        ("first, bayville, cheap, 1234, whatever, free", "first, bayville, cheap, 1234, whatever, free"),
        ("55501 and 55502", "[inn_phone] and [inn_phone]"),
        ("a b c d e f g h i j k l", "[inn_phone]"),
        ("a b c d e f g h i j k l m", "[inn_phone] m"),  # names have at most twelve words
        ("harbour, harbours, harbourly", "[inn_area], [inn_area], [inn_area]"),
        ("spoons or a spoon", "spoons or a [eatery_name]"),
        ("an eatery by the harbour", "an eatery by the [eatery_area]"),
        ("an inn or Eatery by the harbour", "an inn or Eatery by the [eatery_area]"),
        ("an inn by the harbour", "an inn by the [inn_area]"),
        ("the old harbour, harbour", "the old harbour, [inn_area]"),
        ("[inn_name]s harbour [x] hill", "[inn_name]s [inn_area] [x] [inn_area]"),
        ("AB12, AB123", "[code], [code]3"),
        ("port, bay, crimson, eatery, 4321", "[inn_area], bay, crimson, eatery, 4321"),
        ("salty fork, fork", "[eatery_name], fork"),
    ],
)
def test_values_at_every_limit(text: str, expected: str) -> None:
    state = {"inn": {"area": "Port", "color": "crimson", "phone": "4321"}, "eatery": {"area": "eatery", "name": "bay"}}
    written, matches = Delexicalizer(small_task())(text, state)
    assert written == expected
    assert [text[match.start : match.stop] for match in matches if match.by == "state"] == (
        ["port"] if "port" in text else []
    )


def test_what_was_matched_is_counted() -> None:
    task = small_task()
    states = task.files.states
    assert states is not None
    true = {**states.states, "town01": [{"inn": {"area": "marsh"}}, {}, {}]}
    task = replace(task, files=replace(task.files, states=replace(states, states=true)))
    digits = " ".join(f"{at}x" for at in range(11))
    document = {
        "town01": [
            {"response": "marsh, marsh and hill"},
            {"response": f"hill, hills, Hill, AB12 {digits}"},
        ],
        "town02": [{"response": "hills", "state": {}}, {"response": "Hill 0x [1y]", "state": {}}],
        "town03": [{"response": "dune", "state": {"inn": {"area": "dune"}}}, {"response": "so"}],
    }
    (system,) = read_predictions(document, task.files)
    written, report = delexicalize(system, task)
    assert [row["response"] for row in written.given] == [
        "[inn_area], [inn_area] and [inn_area]",
        f"[inn_area], [inn_area], [inn_area], [code] {digits}",
        "[inn_area]",
        "[inn_area] 0x [1y]",
        "[inn_area]",
        "so",
    ]
    assert report == SystemMatches(
        "predictions",
        6,
        5,
        [
            FoundValues("AREA", 6, 3, 0, ["marsh", "hill", "hills"]),
            FoundValues("CODE", 0, 0, 1, ["AB12"]),
        ],
        {"0x": 2, **{f"{at}x": 1 for at in range(1, 10)}},
    )
    summary = "values in 5 of 6 replies became placeholders (AREA 9, CODE 1)"
    assert report.summary == f"predictions: {summary}; `dialeval multiwoz delexicalize` lists them"
    assert written.report == report.summary
    found = MatchReport([report, SystemMatches("other", 1, 0, [], {})])
    assert found.lines()[0] == {
        "system": "predictions",
        "word": "AREA",
        "database": 6,
        "state": 3,
        "pattern": 0,
        "examples": "marsh | hill | hills",
    }
    printed = PRINTER.FORMATS["md"](found)
    assert "| AREA | 6 | 3 | 0 | marsh \\| hill \\| hills |" in printed
    left = ", ".join(["0x (2)", *(f"{at}x (1)" for at in range(1, 10))])
    assert f"predictions: values in 5 of 6 replies; words with a digit that were left: {left}." in printed
    assert "other: values in 0 of 1 replies; words with a digit that were left: none." in printed
    bare = replace(task, files=replace(task.files, states=None))
    assert delexicalize(system, bare)[0].given[0]["response"] == "marsh, marsh and [inn_area]"


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
