from __future__ import annotations

import pytest

from dialeval.suites.multiwoz.venues import count_minutes, normalize_name, normalize_time


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("17:15", "17:15"),
        ("9:15", "09:15"),
        ("afternoon", "13:00"),
        ("Noon", "12:00"),
        ("one o'clock p.m. sharp", "13:00"),
        ("by 8:45", "08:45"),
        ("by12:45", "02:45"),  # the original takes three letters away, whatever the third is
        ("after 5 pm", "17:00"),
        ("afer 17:00", "17:00"),
        ("10 a.m.", "10:00"),
        ("9:30 am", "09:30"),
        ("12:30 pm", "24:30"),
        ("11:pm", "23:"),
        ("0930", "09:30"),
        ("929", "929:00"),
        ("7", "07:00"),
        ("17:00.", "17:00"),
        ("10 : 15", "10:15"),
        ("", "00:00"),
        ("pm", "00:00"),
        ("2 : 15 pm", "14: 15"),
        ("2 :15 pm", "14:15"),
        ("2:15. pm", "14:15."),
        ("2.15 pm", "2.15"),
        ("2:15:00 pm", "2:15:00"),
        ("2:15 o'clock pm", "14:15 o'clock"),
        ("２:１５ pm", "14:１５"),
        ("six:15 pm", "six:15"),  # the original ends here, and at the next
        ("² pm", "0²:00"),  # a digit that is not a number
        ("whenever", "whenever"),
    ],
)
def test_clock(value: str, expected: str) -> None:
    assert normalize_time(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("17:15", 1035),
        ("17:15:59", 1035),
        ("17:15 sharp", 1035),  # the original ends here
        ("17:115", 1135),
        ("929:00", 0),
        ("１７:１５", 0),
        ("17:１５", 0),
        ("soon", 0),
    ],
)
def test_minutes(value: str, expected: int) -> None:
    assert count_minutes(value) == expected


def test_names() -> None:
    assert normalize_name(" A & B 's&C ") == "a and b's and c"
