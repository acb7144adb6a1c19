"""The page on which people rate: blind, inert, and with ids that lead back to the rows."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import dialeval
from dialeval import sample_data
from dialeval.core.errors import DataError, SettingError
from dialeval.human.form import Form, Gold, Quality, make_score_check, read_form
from dialeval.human.page import (
    collect_things,
    digest_form,
    make_rating_page,
    make_served_page,
)
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
    assert things == [{"id": row.id, "context": row.context, "responses": [row.response]} for row in sample.responses]
    assert "reference 3" not in page
    assert "reference 3" in make_rating_page(sample, Form(reference=True))


def test_gold_questions_look_like_the_others() -> None:
    """Their answers are not on the page, and every rater gets them."""
    sample = sample_of()
    gold = Gold("Fish.", {"overall": [1]}, ["When do you open?"])
    things = data_of(make_rating_page(sample, Form(gold=[gold])))["things"]
    (added,) = [thing for thing in things if thing["responses"] == ["Fish."]]  # type: ignore[attr-defined]
    assert len(added["id"]) == len(sample.responses[0].id)
    assert added.keys() == {"id", "context", "responses"}
    assert len(things) == len(sample.responses) + 1  # type: ignore[arg-type]
    only = data_of(make_rating_page(sample, Form(gold=[gold]), [sample.responses[0].id]))
    assert len(only["things"]) == 1  # type: ignore[arg-type]


def test_without_common_contexts_nothing_can_be_compared() -> None:
    with pytest.raises(SettingError, match="no context was answered by two"):
        collect_things(sample_of(independent=True), Form(compare=True))


def test_logs_in_another_order_are_compared_dialogue_by_dialogue() -> None:
    logs = {name: sample_data.folder() / "logs" / f"{name}.jsonl" for name in ("v1", "v2")}
    sample = dialeval.sample(dialeval.evaluate(logs, metrics="length"), 60)
    pairs = sample.pairs()
    assert pairs
    assert all({one.system, other.system} == {"v1", "v2"} for one, other in pairs.values())
    assert all(one.context == other.context for one, other in pairs.values())
    assert any(one.row != other.row for one, other in pairs.values())


def test_the_digest_tells_samples_and_forms_apart() -> None:
    sample = sample_of()
    other = msgspec.structs.replace(sample.design, seed=8)
    forms = {digest_form(sample, form) for form in (Form(), Form(compare=True), Form(quality=[Quality("other")]))}
    assert len(forms | {digest_form(type(sample)(other, sample.responses), Form())}) == 4
    assert data_of(make_rating_page(sample, Form()))["digest"] == digest_form(sample, Form())
    assert {len(digest) for digest in forms} == {16}


def test_only_some_rows_are_another_page() -> None:
    sample = sample_of()
    page = data_of(make_rating_page(sample, Form(), [sample.responses[4].id]))
    assert [thing["id"] for thing in page["things"]] == [sample.responses[4].id]  # type: ignore[attr-defined]
    assert page["digest"] != digest_form(sample, Form())
    assert len(str(page["digest"])) == 16
    assert page["form"]["repeat"] == 0  # type: ignore[index]


def test_the_file_asks_for_nothing_and_the_served_page_only_its_server() -> None:
    file = policy_of(Page(make_rating_page(sample_of(), Form())))
    served = policy_of(Page(make_served_page(Form(), "d", [], "ann", [])))
    assert file.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in file
    assert served == f"{file}; connect-src 'self'"


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
        ("both_bad = true", "compare = true only"),
        ("[[quality]]\nrubric = ['a', 'b']", "2 texts for 5 answers"),
        ("compare = true\n[[quality]]\nrubric = ['a', 'b', 'c', 'd', 'e']", "rubric"),
        ("[[gold]]\nresponse = 'a'\nscores = {overall = 6}", "overall = 6 is none of the answers"),
        ("[[gold]]\nresponse = 'a'\nscores = {polite = 1}", "polite = 1 is none of the answers"),
        ("compare = true\n[[gold]]\nresponse = 'a'\nscores = {overall = 1}", "two where the form compares"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=r"form\.toml") as error:
        form(tmp_path, text)
    assert words in str(error.value)


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
