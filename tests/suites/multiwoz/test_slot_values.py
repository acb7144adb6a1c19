from __future__ import annotations

import pytest

from dialeval.suites.multiwoz.venues import Spelling, StateNormalizer, count_minutes, normalize_name, normalize_time


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


@pytest.mark.parametrize("written", ["2 : 15 pm", "2 :15 pm", "2: 15 pm", "2:15. pm", "2:15 pm", "2:15 p.m.", "1415"])
def test_a_time_in_the_afternoon_is_the_same_however_it_is_spelled(written: str) -> None:
    # A query normalizes a value of a state once more.
    assert count_minutes(normalize_time(normalize_time(written))) == 14 * 60 + 15


def test_names() -> None:
    assert normalize_name(" A & B 's&C ") == "a and b's and c"


def test_a_state_in_one_spelling() -> None:
    normalize = StateNormalizer(
        {"leaveat": "leave"}, {"name": Spelling("name", {"nando's": "nandos"}), "leave": Spelling("time")}
    )
    state = {"taxi": {"Leave At": "5 pm"}, "inn": {"name": "Nando 's", "Type": "Guest House"}}
    assert normalize(state) == {"taxi": {"leave": "17:00"}, "inn": {"name": "nandos", "type": "Guest House"}}
    assert state == {"taxi": {"Leave At": "5 pm"}, "inn": {"name": "Nando 's", "Type": "Guest House"}}


def test_the_states_of_a_dialogue() -> None:
    normalize = StateNormalizer({"leaveat": "leave"}, {"leave": Spelling("time")})
    first = {"taxi": {"leaveat": "5 pm", "leave": "6 pm"}, "inn": {}}
    states = [first, {"taxi": dict(first["taxi"])}, {"taxi": {"leave": "6 pm", "leaveat": "5 pm"}}, {}, first]
    times = [normalize(state).get("taxi", {}).get("leave") for state in states]
    assert times == ["18:00", "18:00", "17:00", None, "18:00"]
