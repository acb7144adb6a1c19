"""The page on which people rate: blind, inert, and with ids that lead back to the rows."""

from __future__ import annotations

import json

import msgspec
import pytest

from dialeval.core.errors import SettingError
from dialeval.reports.rating_page import Form, Quality, digest_of, rating_page, served_page, things_to_rate
from reports.rated_samples import sample_of
from reports.test_html import HOSTILE, Page, policy_of


def data_of(page: str) -> dict[str, object]:
    start = page.index('id="rate-data">') + len('id="rate-data">')
    found: dict[str, object] = json.loads(page[start : page.index("</script>", start)])
    return found


def test_nothing_tells_the_system() -> None:
    sample = sample_of()
    page = rating_page(sample, Form())
    assert "secret" not in page
    things = data_of(page)["things"]
    assert things == [{"id": row.id, "context": row.context, "responses": [row.response]} for row in sample.rows]
    assert "reference 3" not in page
    assert "reference 3" in rating_page(sample, Form(reference=True))


def test_who_said_a_turn_is_shown_where_it_is_known() -> None:
    things = things_to_rate(sample_of(text="hello"), Form())
    assert [thing["roles"] for thing in things] == [["hello", "user"]] * len(things)


def test_responses_to_one_context_are_compared() -> None:
    things = things_to_rate(sample_of(systems=("a", "b", "c")[:2]), Form(compare=True))
    assert len(things) == 10
    assert things[3] == {
        "id": "k003abcd-q003abcd",
        "context": ["question 3", "and then?"],
        "responses": ["response 3 of x", "response 3 of y"],
    }


def test_without_common_contexts_nothing_can_be_compared() -> None:
    with pytest.raises(SettingError, match="without --apart"):
        things_to_rate(sample_of(apart=True), Form(compare=True))


def test_the_digest_tells_samples_and_forms_apart() -> None:
    sample = sample_of()
    other = msgspec.structs.replace(sample.design, seed=8)
    forms = {digest_of(sample, form) for form in (Form(), Form(compare=True), Form(quality=[Quality("other")]))}
    assert len(forms | {digest_of(type(sample)(other, sample.rows), Form())}) == 4
    assert data_of(rating_page(sample, Form()))["digest"] == digest_of(sample, Form())


def test_only_some_rows_are_another_page() -> None:
    sample = sample_of()
    page = data_of(rating_page(sample, Form(), [sample.rows[4].id]))
    assert [thing["id"] for thing in page["things"]] == [sample.rows[4].id]  # type: ignore[attr-defined]
    assert page["digest"] != digest_of(sample, Form())
    assert page["form"]["repeat"] == 0  # type: ignore[index]


def test_the_file_asks_for_nothing_and_the_served_page_only_its_server() -> None:
    file = policy_of(Page(rating_page(sample_of(), Form())))
    served = policy_of(Page(served_page(Form(), "d", [], "ann", [])))
    assert file.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in file
    assert served.endswith("; connect-src 'self'")


def test_hostile_text_is_no_markup() -> None:
    text = HOSTILE.replace("\udc80", "")  # JSON and TOML hold no halves of characters
    page = Page(rating_page(sample_of(text=text), Form(title=text, instructions=text)))
    assert not page.of("img")
    assert len(page.of("script")) == 3
