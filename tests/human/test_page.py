"""The page on which people rate: blind, inert, and with ids that lead back to the rows."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.human.page import (
    Form,
    Quality,
    collect_things,
    digest_form,
    make_rating_page,
    make_score_check,
    make_served_page,
    read_form,
)
from dialeval.human.sample_files import Sample
from human.rated_samples import sample_of
from reports.test_html import HOSTILE, Page, policy_of


def data_of(page: str) -> dict[str, object]:
    start = page.index('id="rate-data">') + len('id="rate-data">')
    found: dict[str, object] = json.loads(page[start : page.index("</script>", start)])
    return found


def test_nothing_tells_the_system() -> None:
    sample = sample_of()
    page = make_rating_page(sample, Form())
    assert "secret" not in page
    things = data_of(page)["things"]
    assert things == [{"id": row.id, "context": row.context, "responses": [row.response]} for row in sample.rows]
    assert "reference 3" not in page
    assert "reference 3" in make_rating_page(sample, Form(reference=True))


def test_who_said_a_turn_is_shown_where_it_is_known() -> None:
    things = collect_things(sample_of(text="hello"), Form())
    assert [thing["roles"] for thing in things] == [["hello", "user"]] * len(things)


def test_responses_to_one_context_are_compared() -> None:
    things = collect_things(sample_of(systems=("a", "b", "c")[:2]), Form(compare=True))
    assert len(things) == 10
    assert things[3] == {
        "id": "k003abcd-q003abcd",
        "context": ["question 3", "and then?"],
        "responses": ["response 3 of x", "response 3 of y"],
    }


def test_without_common_contexts_nothing_can_be_compared() -> None:
    with pytest.raises(SettingError, match="without --independent"):
        collect_things(sample_of(independent=True), Form(compare=True))


def test_the_digest_tells_samples_and_forms_apart() -> None:
    sample = sample_of()
    other = msgspec.structs.replace(sample.design, seed=8)
    forms = {digest_form(sample, form) for form in (Form(), Form(compare=True), Form(quality=[Quality("other")]))}
    assert len(forms | {digest_form(type(sample)(other, sample.rows), Form())}) == 4
    assert data_of(make_rating_page(sample, Form()))["digest"] == digest_form(sample, Form())
    assert {len(digest) for digest in forms} == {16}


def test_only_some_rows_are_another_page() -> None:
    sample = sample_of()
    page = data_of(make_rating_page(sample, Form(), [sample.rows[4].id]))
    assert [thing["id"] for thing in page["things"]] == [sample.rows[4].id]  # type: ignore[attr-defined]
    assert page["digest"] != digest_form(sample, Form())
    assert len(str(page["digest"])) == 16
    assert page["form"]["repeat"] == 0  # type: ignore[index]


def test_the_file_asks_for_nothing_and_the_served_page_only_its_server() -> None:
    file = policy_of(Page(make_rating_page(sample_of(), Form())))
    served = policy_of(Page(make_served_page(Form(), "d", [], "ann", [])))
    assert file.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in file
    assert served == f"{file}; connect-src 'self'"


def test_what_a_page_knows() -> None:
    sample, form = sample_of(1), Form(quality=[Quality("polite", kind="yes-no")])
    things, shown = collect_things(sample, form), form.to_page()
    common = {"things": things, "digest": digest_form(sample, form), "form": shown}
    assert data_of(make_rating_page(sample, form)) == {**common, "rater": None, "lines": [], "server": False}
    lines = [{"id": things[0]["id"], "scores": {"polite": 1}}]
    served = make_served_page(form, digest_form(sample, form), things, "ann", lines)
    assert data_of(served) == {**common, "rater": "ann", "lines": lines, "server": True}
    assert shown["repeat"] == 0.1


def test_of_a_conversation_the_last_sampled_turn_is_rated() -> None:
    sample = sample_of(6)
    rows = [
        msgspec.structs.replace(row, dialog_id=title, context=["x"] * size)
        for row, (title, size) in zip(
            sample.rows,
            [
                *(("d", 1), ("d", 3), ("d", 5), ("d", 3), ("d", 4), ("e", 1)),
                *((None, 1), (None, 1), (None, 2), ("e", 7), ("d", 5), ("d", 2)),
            ],
            strict=True,
        )
    ]
    things = collect_things(Sample(sample.design, rows), Form(unit="conversation"))
    # Rows of the two systems alternate; of equally long ones the first is taken.
    assert [thing["id"] for thing in things] == [rows[at].id for at in (2, 1, 9, 6, 7, 8)]
    assert collect_things(Sample(sample.design, rows), Form()) == [
        {"id": row.id, "context": row.context, "responses": [row.response]} for row in rows
    ]


def test_hostile_text_is_no_markup() -> None:
    text = HOSTILE.replace("\udc80", "")  # JSON and TOML hold no halves of characters
    page = Page(make_rating_page(sample_of(text=text), Form(title=text, instructions=text)))
    assert not page.of("img")
    assert len(page.of("script")) == 3


FORM = """
title = "How good?"
repeat = 0.2
[[quality]]
name = "overall"
low = 1
high = 5
labels = ["bad", "good"]
[[quality]]
name = "polite"
question = "Is it polite?"
kind = "yes-no"
"""


def form(tmp_path: Path, text: str) -> Form:
    path = tmp_path / "form.toml"
    path.write_text(text, encoding="utf-8")
    return read_form(path)


def test_without_a_file_there_is_one_quality() -> None:
    form = read_form(None)
    (quality,) = form.quality
    assert msgspec.structs.asdict(quality) == {
        "name": "overall",
        "question": "",
        "kind": "scale",
        "low": 1,
        "high": 5,
        "labels": [],
    }
    assert {**msgspec.structs.asdict(form), "quality": None} == {
        "title": "Rate the replies",
        "instructions": "",
        "repeat": 0.1,
        "comment": True,
        "reference": False,
        "compare": False,
        "unit": "reply",
        "mark": "",
        "quality": None,
    }


LABELS = ["bad", "poor", "fair", "good", "excellent"]


@pytest.mark.parametrize(
    ("quality", "compare", "choices"),
    [
        (Quality(), False, [(n, label, [str(n)]) for n, label in enumerate(LABELS, 1)]),
        (Quality(low=0, high=5), False, [(n, "", [str(n)]) for n in range(6)]),
        (Quality(low=2, high=6), False, [(n, "", [str(n)]) for n in range(2, 7)]),
        (Quality(low=1, high=4), False, [(n, "", [str(n)]) for n in range(1, 5)]),
        (Quality(low=9, high=10), False, [(9, "", ["9"]), (10, "", ["0"])]),
        (Quality(low=1, high=3, labels=["x", "y"]), False, [(1, "x", ["1"]), (2, "", ["2"]), (3, "y", ["3"])]),
        (Quality(low=1, high=3, labels=["x", "y", "z"]), False, [(1, "x", ["1"]), (2, "y", ["2"]), (3, "z", ["3"])]),
        (Quality(kind="yes-no"), False, [(1, "Yes", ["y", "1"]), (0, "No", ["n", "0"])]),
        (Quality(kind="yes-no", labels=["aye", "nay"]), False, [(1, "aye", ["y", "1"]), (0, "nay", ["n", "0"])]),
        (
            Quality(kind="yes-no"),
            True,
            [(1, "A is better", ["1"]), (0, "No difference", ["2"]), (-1, "B is better", ["3"])],
        ),
    ],
)
def test_answers_have_values_labels_and_keys(
    quality: Quality, compare: bool, choices: list[tuple[int, str, list[str]]]
) -> None:
    found = [(choice.value, choice.label, choice.keys) for choice in quality.list_choices(compare)]
    assert found == choices


@pytest.mark.parametrize(
    ("form", "instructions", "question"),
    [
        (Form(), "Read the conversation, then rate the reply.", "How good is the reply?"),
        (Form(compare=True), "Read the conversation, then compare the two replies.", "Which reply is better?"),
        (
            Form(unit="conversation"),
            "Read the conversation, then rate it as a whole.",
            "How good is the conversation?",
        ),
        (
            Form(unit="conversation", compare=True),
            "Read the conversation, then compare the two endings.",
            "Which conversation is better?",
        ),
        (
            Form(instructions="Rate.", mark="Mark.", repeat=0.2, comment=False, quality=[Quality("polite")]),
            "Rate.",
            "polite",
        ),
        (Form(quality=[Quality("polite", "Is it?")]), "Read the conversation, then rate the reply.", "Is it?"),
    ],
)
def test_a_page_asks_what_the_form_says(form: Form, instructions: str, question: str) -> None:
    (quality,) = form.quality
    assert form.to_page() == {
        "instructions": instructions,
        "unit": form.unit,
        "mark": form.mark,
        "repeat": form.repeat,
        "comment": form.comment,
        "compare": form.compare,
        "qualities": [
            {
                "name": quality.name,
                "question": question,
                "choices": msgspec.to_builtins(quality.list_choices(form.compare)),
            }
        ],
    }


@pytest.mark.parametrize(
    ("largest", "too_large"),
    [
        ({"instructions": "x" * 2000}, {"instructions": "x" * 2001}),
        ({"title": "x" * 200}, {"title": "x" * 201}),
        ({"title": "x"}, {"title": ""}),
        ({"repeat": 0.3}, {"repeat": 0.31}),
        ({"repeat": 0.0}, {"repeat": -0.01}),
        ({"quality": [{"name": str(n)} for n in range(20)]}, {"quality": [{"name": str(n)} for n in range(21)]}),
        ({"quality": [{"name": "x" * 64}]}, {"quality": [{"name": "x" * 65}]}),
        ({"quality": [{"low": 9, "high": 10}]}, {"quality": [{"low": 10, "high": 11}]}),
        ({"quality": [{"low": 0, "high": 1}]}, {"quality": [{"low": -1, "high": 1}]}),
        ({"quality": [{"low": 1, "high": 10}]}, {"quality": [{"low": 2, "high": 11}]}),
        ({"quality": [{"low": 0, "high": 9}]}, {"quality": [{"low": 0, "high": 10}]}),
        ({"quality": [{"low": 4, "high": 5}]}, {"quality": [{"low": 5, "high": 5}]}),
        (
            {"quality": [{"kind": "yes-no", "labels": ["a", "b"]}]},
            {"quality": [{"kind": "yes-no", "labels": ["a", "b", "c", "d", "e"]}]},
        ),
    ],
    ids=lambda entries: f"{next(iter(entries))} {len(str(entries))}",
)
def test_entries_of_a_form_have_limits(largest: dict[str, object], too_large: dict[str, object]) -> None:
    msgspec.convert(largest, Form)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(too_large, Form)


def test_a_form_is_read(tmp_path: Path) -> None:
    read = form(tmp_path, FORM)
    shown = read.to_page()
    assert [each["question"] for each in shown["qualities"]] == ["How good is the reply?", "Is it polite?"]
    scale, polite = (each["choices"] for each in shown["qualities"])
    assert [choice["label"] for choice in scale] == ["bad", "", "", "", "good"]
    assert [(choice["value"], choice["keys"][0]) for choice in polite] == [(1, "y"), (0, "n")]
    assert (read.title, read.repeat, read.comment, read.compare) == ("How good?", 0.2, True, False)


def test_every_answer_has_a_key_of_its_own() -> None:
    for low, high in ((0, 9), (1, 10), (1, 5), (0, 1)):
        keys = [key for choice in Quality(low=low, high=high).list_choices(compare=False) for key in choice.keys]
        assert len(set(keys)) == len(keys) == high - low + 1
    assert [choice.value for choice in Quality().list_choices(compare=True)] == [1, 0, -1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = ", "not TOML"),
        ("titel = 'x'", "titel"),
        ("repeat = 0.5", "repeat"),
        ("[[quality]]\nname = ''", "quality"),
        ("[[quality]]\nlow = 0\nhigh = 10", "2 to 10 numbers"),
        ("[[quality]]\nlow = 5\nhigh = 5", "2 to 10 numbers"),
        ("[[quality]]\nlabels = ['a', 'b', 'c']", "one for each number"),
        ("[[quality]]\nkind = 'yes-no'\nlabels = ['a']", "one for each number"),
        ("[[quality]]\nname = 'a'\n[[quality]]\nname = 'a'", "the same name"),
        ("quality = []", "quality"),
        ("compare = 1", "compare"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=r"form\.toml") as error:
        form(tmp_path, text)
    assert words in str(error.value)


def test_scores_answer_the_form_or_not(tmp_path: Path) -> None:
    read = form(tmp_path, FORM)
    assert read.find_problems({"overall": 3, "polite": 0}) == []
    assert read.find_problems({"overall": 6, "polite": 0}) == ["overall is 6, which is none of its answers"]
    assert read.find_problems({"overall": 3}) == ["polite has no answer"]
    assert read.find_problems({"overall": 3, "polite": 1, "x": 1}) == ["'x' is not a quality of the form"]
    assert Form(compare=True).find_problems({"overall": -1}) == []


def test_scores_are_checked_by_what_was_rated(tmp_path: Path) -> None:
    sample = sample_of(2)
    single, pair = "k000abcd", "k000abcd-q000abcd"
    built_in, unknown, given = (
        make_score_check(None, sample),
        make_score_check(None, None),
        make_score_check(Form(), sample),
    )
    for value, fits_single, fits_pair in ((5, True, False), (1, True, True), (-1, False, True), (500, False, False)):
        assert bool(built_in(single, {"overall": value})) is not fits_single
        assert bool(built_in(pair, {"overall": value})) is not fits_pair
        assert bool(given(single, {"overall": value})) is not fits_single
        assert bool(unknown("k", {"overall": value})) is not fits_single
        assert bool(unknown("k-q", {"overall": value})) is not (fits_single or fits_pair)
    assert built_in(single, {"overall": 3, "polite": 1}) == ["'polite' is not a quality of the form"]
    assert make_score_check(form(tmp_path, FORM), sample)(single, {"overall": 3, "polite": 1}) == []
