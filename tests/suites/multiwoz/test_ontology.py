"""Ontologies: what the shipped one says, and every problem of a broken one at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core.errors import DataError
from dialeval.suites.multiwoz.venues import load_ontology

pytestmark = pytest.mark.usefixtures("cache")


def problems(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        load_ontology(path)
    return {problem.where.rpartition(": ")[2]: problem.what for problem in caught.value.problems}


def test_every_problem_of_an_ontology_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ontology.toml"
    path.write_text(
        'fuzy = 1\nreferences = "x"\nfuzzy_ratio = 900\ndont_care = "any"\n[words]\nNAME = "name"\n'
        '[domains.inn]\ntable = 3\ncolor = "red"\n'
        '[domains.cart]\ntable = "x.json"\noffer = "CART"\n[[values]]\nslots = ["a"]\nrule = "guess"\n'
    )
    with pytest.raises(DataError) as caught:
        load_ontology(path)
    places = [problem.where.removeprefix(f"{path}: ") for problem in caught.value.problems]
    assert set(places) == {
        "fuzy",
        "references",
        "fuzzy_ratio",
        "dont_care",
        "words.NAME",
        "domains.inn.table",
        "domains.inn.color",
        "values[0].rule",
    }
    said = {place: problem.what for place, problem in zip(places, caught.value.problems, strict=True)}
    assert said["fuzy"].startswith("is not an entry; there are any_value, booking_prefix, domains, ")
    assert said["domains.inn.color"].startswith("is not an entry; there are at_least, at_most, drop, ")
    assert said["fuzzy_ratio"] == "is a number, not a whole number from 0 to 100"
    text = '[words]\nNAME = ["name"]\n[patterns]\ncar = "x"\n[domains.cart]\ntable = "x.json"\noffer = "CART"\n'
    assert problems(path, text) == {
        "patterns.car": "is not a slot of [words]",
        "domains.cart.offer": "'CART' is not a word of [words]",
    }


def test_tables_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    assert problems(path, "words = 1\nvalues = [1]\n[domains]\ninn = 2") == {
        "words": "is a number, not an object",
        "values[0]": "is a number, not an object with slots, rule, same",
        "domains.inn": "is a number, not an object with name, table, key, label, offer, optional, fuzzy, at_most, "
        "at_least, drop",
    }
    assert problems(path, 'values = "x"\n[domains.a]') == {"values": "is a string, not a list of values"}
    assert problems(path, "[domains]") == {"domains": "there is no domain"}
    assert list(problems(path, "[[values]]\nrule = 'odd'\n[domains.a]")) == ["values[0].rule"]
    path.write_text("a = ")
    with pytest.raises(DataError, match="not TOML"):
        load_ontology(path)
