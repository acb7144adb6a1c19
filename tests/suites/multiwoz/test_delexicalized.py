from __future__ import annotations

import pytest

from dialeval.suites.multiwoz.venues import count_unknown_placeholders, find_slot_domains, make_normalizer

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


def test_unknown_placeholders_are_counted_once_each() -> None:
    responses = ["[foo] and [name]", "[FOO]s", "[bar baz]", "nothing"]
    assert count_unknown_placeholders(responses, WORDS) == {"foo": 2, "bar baz": 1}


def test_domains_of_slot_names() -> None:
    domains = ["hotel", "train"]
    assert find_slot_domains("[train_id] then [Hotel_name] then [train_time]", domains) == ["train", "hotel"]
    assert find_slot_domains("[value_name] and [name]", domains) == []
