from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.errors import DataError
from dialeval.suites.multiwoz.venues import (
    Domain,
    Ontology,
    Spelling,
    VenueTable,
    count_minutes,
    load_ontology,
    load_venues,
)
from dialeval.text.similarity import partial_ratio

pytestmark = pytest.mark.usefixtures("cache")

ONTOLOGY = Ontology(
    name="test",
    words={"name": "NAME"},
    requested=(),
    when_booked=frozenset(),
    domains={},
    digest="0" * 12,
    spellings={"leave": Spelling("time"), "name": Spelling("name")},
    dont_care=frozenset({"any"}),
    any_value="?",
)
DOMAIN = Domain("inn", "x", fuzzy=("name",), at_most=("price",), at_least=("leave",))
names = st.sampled_from(["old mill", "the old mill", "mill house", "?", "seven lamps"])
venue = st.fixed_dictionaries(
    {
        "name": names,
        "area": st.sampled_from(["hill", "harbour", "?"]),
        "price": st.sampled_from(["3", "10", "free", "?"]),
    },
    optional={"leave": st.sampled_from(["09:00", "17:30", "?"])},
)
wishes = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["old mill", "Old Mill", "the old mil", "lamps", "any"]),
        "area": st.sampled_from(["hill", "any", "nowhere"]),
        "price": st.sampled_from(["3", "5", "cheap"]),
        "leave": st.sampled_from(["8:00", "10 am", "soon"]),
        "color": st.just("red"),
    },
)


def scanned(venues: list[dict[str, str]], slots: dict[str, str]) -> list[int]:
    """What everybody writes first: every venue against every slot."""
    columns = {column for venue in venues for column in venue}

    def meets(venue: dict[str, str], slot: str, value: str) -> bool:
        if slot not in columns or value == "any":
            return True
        has, value = venue.get(slot), ONTOLOGY.states.value(slot, value)
        if has is None:
            return False
        if has == "?":
            return True
        if slot == "name":
            return partial_ratio(has, value) >= 90
        if slot == "leave":
            return count_minutes(has) >= count_minutes(value)
        if slot == "price":
            return has.isdigit() and value.isdigit() and int(has) <= int(value)
        return has == value

    return [row for row, venue in enumerate(venues) if all(meets(venue, *wish) for wish in slots.items())]


@given(st.lists(venue, max_size=6), wishes)
def test_a_query_is_a_scan_of_all_venues(venues: list[dict[str, str]], slots: dict[str, str]) -> None:
    keyed = [{**venue, "id": str(at)} for at, venue in enumerate(venues)]
    table = VenueTable(DOMAIN, ONTOLOGY, keyed)
    for _ in range(2):  # the second time from what is remembered
        assert list(table.iterate_rows(table.query(slots))) == scanned(keyed, slots)


TOML = """
[words]
NAME = ["name"]
[requested]
words = ["NAME"]
[domains.inn]
table = "inns.{suffix}"
drop = ["map"]
"""
RECORDS = [{"ID": "1", "Name": "willow gate", "lamps": "3"}, {"ID": "2", "Name": "seven lamps", "lamps": "5"}]


@pytest.mark.parametrize("suffix", ["json", "csv", "tsv", "parquet"])
def test_every_format_gives_the_same_table(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "ontology.toml").write_text(TOML.format(suffix=suffix))
    file = tmp_path / f"inns.{suffix}"
    if suffix == "json":
        file.write_text(json.dumps([{**record, "map": [1, 2]} for record in RECORDS]))
    elif suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(RECORDS), file)
    else:
        mark = "," if suffix == "csv" else "\t"
        lines = [list(RECORDS[0]), *(list(record.values()) for record in RECORDS)]
        file.write_text("".join(mark.join(line) + "\n" for line in lines))
    venues = load_venues(load_ontology(tmp_path / "ontology.toml"), tmp_path)
    assert list(venues["inn"].venues) == [{"id": r["ID"], "name": r["Name"], "lamps": r["lamps"]} for r in RECORDS]
    assert "inn" in venues
    assert "cart" not in venues


def test_every_problem_of_every_table_at_once(tmp_path: Path) -> None:
    (tmp_path / "ontology.toml").write_text(TOML.format(suffix="json") + '[domains.cart]\ntable = "carts.json"\n')
    (tmp_path / "inns.json").write_text('[{"name": "x"}, {"id": "1", "place": {"x": 1}}, 7]')
    with pytest.raises(DataError) as caught:
        load_venues(load_ontology(tmp_path / "ontology.toml"), tmp_path)
    text = "\n".join(map(str, caught.value.problems))
    assert "inns.json: [0]: has no 'id'" in text
    assert "inns.json: [1].place: is not a text or number" in text
    assert "inns.json: [2]: is not an object" in text
    assert "carts.json: there is no such file" in text
