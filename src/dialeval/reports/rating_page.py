"""The page on which people rate: one file without a network, or what `rating_server` sends to a rater.

It is blind: of a row it holds the id, the context with its roles and the response (with the form's `reference` also the
references), and nothing that tells the system. Order and sides are drawn in the page, by the rater's name and a digest
of sample and form, so that they differ between raters and stay the same when the page is opened again. Ratings are
lines `{"id": ..., "rater": ..., "scores": {"overall": 4}, "seconds": 12.3}`, with `comment` where there is one and
`again` where the row came for the second time.

Two responses to be compared have the id `FIRST-SECOND` of the two rows; 1 says that FIRST is better, -1 that SECOND is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.core.errors import SettingError
from dialeval.reports import markup
from dialeval.reports.page import asset, document, heading, script

if TYPE_CHECKING:
    from dialeval.analysis.sampling import Sample, SampledRow
    from dialeval.reports.rating_form import Form

SCRIPTS = ("text.js", "rate-order.js", "rate-store.js", "rate-files.js", "rate.js")
_FROM_SERVER = "; connect-src 'self'"


def things_to_rate(sample: Sample, form: Form) -> list[dict[str, Any]]:
    """What raters see, as plain data: single responses, or pairs of them."""
    if not form.compare:
        return [_thing(row.id, form, row) for row in sample.rows]
    pairs = sample.pairs()
    if not pairs:
        raise SettingError("no context was answered by two of the drawn rows; draw without --apart to compare systems")
    return [_thing(identity, form, *pair) for identity, pair in pairs.items()]


def _thing(identity: str, form: Form, *rows: SampledRow) -> dict[str, Any]:
    thing = {"id": identity, "context": rows[0].context, "responses": [row.response for row in rows]}
    if rows[0].roles:
        thing["roles"] = rows[0].roles
    return {**thing, "references": rows[0].reference} if form.reference else thing


def digest_of(sample: Sample, form: Form) -> str:
    """What tells the ratings of a sample and form from those of others."""
    import msgspec

    parts = (str(sample.design.seed).encode(), sample.design.rows.sha256.encode(), msgspec.json.encode(form))
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:16]


def rating_page(sample: Sample, form: Form, only: Sequence[str] | None = None) -> str:
    """The page for any number of raters, who keep ratings in their browsers; `only`: the ids of what to rate, once."""
    import msgspec

    things = things_to_rate(sample, form)
    digest = digest_of(sample, form)
    if only is not None:
        things = [thing for thing in things if thing["id"] in set(only)]
        digest = hashlib.sha256("\n".join([digest, *only]).encode()).hexdigest()[:16]
        form = msgspec.structs.replace(form, repeat=0.0)
    return _page(form, {"things": things, "digest": digest, "rater": None, "lines": [], "server": False})


def served_page(
    form: Form, digest: str, things: Sequence[Mapping[str, Any]], rater: str, lines: Sequence[Mapping[str, Any]]
) -> str:
    """The page for one rater, whose ratings go to the server that it came from."""
    data = {"things": things, "digest": digest, "rater": rater, "lines": lines, "server": True}
    return _page(form, data, _FROM_SERVER)


def _page(form: Form, data: Mapping[str, Any], more_policy: str = "") -> str:
    body = (
        f"{heading(form.title, '')}"
        '<main id="main" tabindex="-1"><noscript><p class="notice">This page needs JavaScript.</p></noscript></main>\n'
        f"{markup.embedded('rate-data', {**data, 'form': form.to_page()})}"
    )
    style = asset("report.css", "rate.css")
    return document(form.title, body, style, [script("page.js"), script(*SCRIPTS)], more_policy)
