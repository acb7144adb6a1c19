from __future__ import annotations

import pytest

from dialeval.suites.multiwoz.venues import make_normalizer

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
