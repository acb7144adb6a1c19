"""The state of a study, which the lead's page draws: each rater, every answer so far, and how far raters agree."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.core.validation import JsonObject
from dialeval.human.form import Form
from dialeval.human.merge import merge_ratings
from dialeval.human.report import flag_raters
from dialeval.human.store import RatingStore


def describe_study(store: RatingStore, form: Form, links: Mapping[str, str]) -> JsonObject:
    """Return the state as plain data: of raters their progress and consistency, of qualities alpha and all answers."""
    raters: dict[str, JsonObject] = {
        name: {"name": name, "link": links[name], "rated": rated, "assigned": assigned}
        for name, (rated, assigned) in store.count_ratings().items()
    }
    if not any(rater["rated"] for rater in raters.values()):
        return {"raters": [*raters.values()], "answers": {}, "alpha": {}, "comments": {}, "flags": []}
    merged = merge_ratings([store.path], form=form)
    answers: dict[str, dict[str, dict[str, float | None]]] = {quality.name: {} for quality in form.quality}
    comments: dict[str, dict[str, str]] = {}
    for line in merged.lines:
        for name, value in (line.scores | dict.fromkeys(line.uncertain)).items():
            answers[name].setdefault(line.id, {})[line.rater] = value
        if line.comment:
            comments.setdefault(line.id, {})[line.rater] = line.comment
    for rater in reversed(merged.raters):  # so that the first quality counts where there are several
        again, same = rater.repeated, rater.intra_rater_agreement
        raters[rater.rater] |= {"again": again, "same": round(same * again) if again else 0, "higher": rater.higher}
    for name, rater_of in raters.items():
        rater_of |= {"seconds": merged.seconds.get(name), "gold": merged.gold.get(name)}
    return {
        "raters": [*raters.values()],
        "answers": answers,
        "alpha": {
            name: [ceiling.alpha.get("ordinal"), *ceiling.alpha_interval.get("ordinal", ())]
            for name, ceiling in merged.ceilings.items()
        },
        "comments": comments,
        "flags": [*merged.warnings, *flag_raters(merged)],
    }
