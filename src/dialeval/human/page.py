"""The rating page: one HTML file without a network, or what the server (`server`) sends to a rater or to the lead.

It is blind: of a row it holds the id, the context with its roles and the response (with the form's `reference` also the
references), and nothing that reveals the system or which rows are gold questions. Order and sides are drawn in the
page, by the rater's name and a digest of sample and form, so that they differ between raters and stay the same when the
page is opened again. Ratings are lines `{"id": ..., "rater": ..., "scores": {"overall": 4}, "seconds": 12.3}`, with
`comment` where there is one and `again` where the row came for the second time. Uncertain is the score null.

Two responses to compare have the id `FIRST-SECOND` of the two rows; 1 means that FIRST is better, -1 that SECOND is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from dialeval.core.errors import SettingError
from dialeval.core.validation import JsonObject
from dialeval.human.form import Form
from dialeval.human.sample_files import Sample, SampledRow
from dialeval.reports import markup
from dialeval.reports.html import make_html, make_script, read_assets

SCRIPTS = ("text.js", "rate-order.js", "rate-store.js", "rate-files.js", "rate.js")
_FROM_SERVER = "; connect-src 'self'"
Thing: TypeAlias = JsonObject
"""What a rater sees of a row or pair: `id`, `context`, `responses` and, where there are some, `roles`, `references`."""


def collect_things(sample: Sample, form: Form) -> list[Thing]:
    """Return what raters see, as plain data: single responses, or pairs of them, and gold questions."""
    gold = [{"id": gold.id, "context": gold.context, "responses": gold.responses} for gold in form.gold]
    if not form.compare:
        return [_build_thing(row.id, form, row) for row in sample.responses] + gold
    if sample.design.level == "dialogue":
        raise SettingError("a page compares two replies to one context; conversations are rated one by one")
    pairs = sample.pairs()
    if not pairs:
        raise SettingError("no context was answered by two of the sampled rows; sample systems with the same contexts")
    return [_build_thing(identity, form, *pair) for identity, pair in pairs.items()] + gold


def _build_thing(identity: str, form: Form, *rows: SampledRow) -> Thing:
    thing: Thing = {"id": identity, "context": rows[0].context, "responses": [row.response for row in rows]}
    if rows[0].roles:
        thing["roles"] = rows[0].roles
    return {**thing, "references": rows[0].reference} if form.reference else thing


def digest_form(sample: Sample, form: Form) -> str:
    """Return a digest of sample and form, which identifies their ratings."""
    parts = (str(sample.design.seed).encode(), sample.design.rows.sha256.encode(), msgspec.json.encode(form))
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


def make_rating_page(sample: Sample, form: Form, only: Sequence[str] | None = None) -> str:
    """Return the page for any number of raters; ratings stay in the browser. `only`: the ids to rate, once each."""
    things = collect_things(sample, form)
    digest = digest_form(sample, form)
    if only is not None:
        things = [thing for thing in things if thing["id"] in set(only)]
        digest = hashlib.sha256("\n".join([digest, *only]).encode()).hexdigest()[:16]
        form = msgspec.structs.replace(form, repeat=0.0, advance=False)
    return _make_page(form, {"things": things, "digest": digest, "rater": None, "lines": [], "server": False})


def make_served_page(
    form: Form, digest: str, things: Sequence[Thing], rater: str, lines: Sequence[Mapping[str, object]]
) -> str:
    """Return the page for one rater, whose ratings are sent to the server."""
    data = {"things": things, "digest": digest, "rater": rater, "lines": lines, "server": True}
    return _make_page(form, data, _FROM_SERVER)


def make_lead_page(form: Form, things: Sequence[Thing], state: Mapping[str, object]) -> str:
    """Return the page for the lead of a team, which asks the server for a newer `state` (see `lead`)."""
    data = {"form": form.to_page(), "things": things, "gold": [gold.id for gold in form.gold], "state": state}
    return _make_html(form.title, "lead-data", data, ("text.js", "lead.js"), _FROM_SERVER)


def _make_page(form: Form, data: Mapping[str, object], more_policy: str = "") -> str:
    return _make_html(form.title, "rate-data", {**data, "form": form.to_page()}, SCRIPTS, more_policy)


def _make_html(title: str, name: str, data: Mapping[str, object], scripts: Sequence[str], more_policy: str) -> str:
    empty = (
        '<main id="main" tabindex="-1"><noscript><p class="notice">This page needs JavaScript.</p></noscript></main>'
    )
    body = f"{empty}\n{markup.embed_json(name, data)}"
    style = read_assets("base.css", "rate.css")
    return make_html(title, body, style, [make_script(), make_script(*scripts)], more_policy)
