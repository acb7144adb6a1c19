"""Scores that other programs wrote: names, values, directions and ranges, in any of the ways in which they list them.

A score is a number, or true or false. Where a program says so it is an object with `value`, `better` (`higher` or
`lower`) and `range`. Words such as "pass" and the grades of inspect_ai are numbers; other words are no scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dialeval.core.validation import JsonObject
from dialeval.io.calls import parse_text
from dialeval.io.row_shapes import find
from dialeval.io.rows import LISTS, read_number

GRADES = {
    **dict.fromkeys(("C", "true", "yes", "pass", "passed", "correct"), 1.0),
    "P": 0.5,
    **dict.fromkeys(("I", "N", "false", "no", "fail", "failed", "incorrect"), 0.0),
}
"""Numbers of words; C, P, I and N are the grades of inspect_ai: correct, partly correct, incorrect, no answer."""
_NAMES = ("name", "key", "metric", "metric_name", "assessment_name", "evaluation_name", "label", "type")
_VALUES = (
    *("value", "score", "feedback", "numeric_value", "avg", "mean"),
    *("stringValue", "string_value", "boolean_value", "pass"),
)


def read_grade(value: object) -> float | None:
    """Return a score as a number: a number, true or false, or a word with a known meaning."""
    if isinstance(value, bool):
        return float(value)
    words = (value, value.lower()) if isinstance(value, str) else ()
    return next((GRADES[word] for word in words if word in GRADES), read_number(value))


def read_scores(listed: object) -> JsonObject:
    """Return the scores in an object of names and values, or in a list of objects with both."""
    listed = parse_text(listed, None)
    if isinstance(listed, Mapping):
        named = [(str(name), value) for name, value in listed.items()]
    elif isinstance(listed, LISTS):
        named = [(_find_name(item), item) for item in listed if isinstance(item, Mapping)]
    else:
        return {}
    scores: JsonObject = {}
    for name, value in named:
        inner = value.get("value") if isinstance(value, Mapping) else None
        if isinstance(inner, Mapping) and inner.keys().isdisjoint(_VALUES):  # a scorer with several scores
            scores |= {f"{name}.{key}": score for key, score in read_scores(inner).items()}
            continue
        entry = read_score(value)
        if name and entry is not None:
            free = name if name not in scores else f"{name} ({sum(key.startswith(name) for key in scores) + 1})"
            scores[free] = entry
    return scores


def _find_name(item: Mapping[str, Any]) -> str:
    name = next((item[key] for key in _NAMES if item.get(key)), None)
    if isinstance(name, Mapping):  # HELM
        name = " ".join(str(part) for part in name.values())
    if name is None and isinstance(item.get("assertion"), Mapping):
        name = _find_name(item["assertion"])
    return str(name) if name is not None else ""


def read_score(given: object) -> Any:
    """Return one score; None where it has no number."""
    facts: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    value = given
    for _ in range(2):
        if isinstance(value, Mapping):
            value = next((value[key] for key in _VALUES if value.get(key) is not None), None)
    number = value if isinstance(value, bool) else read_grade(value)
    if number is None:
        return None
    lower = facts.get("lower_is_better", None if (up := facts.get("higher_is_better")) is None else not up)
    ends = [read_number(facts.get(name)) for name in ("min_score", "max_score")]
    more: JsonObject = {} if lower is None else {"better": "lower" if lower else "higher"}
    more |= {} if None in ends else {"range": ends}
    return {"value": number, **more} if more else number


def take_value(score: Any) -> float:
    """Return the number of a score that `read_score` returned."""
    return float(score["value"] if isinstance(score, dict) else score)


def collect_scores(row: dict[str, object], places: Iterable[str], taken: Iterable[str] = ()) -> JsonObject:
    """Return the scores of a row of another program.

    Args:
        row: The row.
        places: Paths of scores; `name=path` names a single one, `@path` leads to the names of fields that are scores,
            and `*` stands for all further fields with numbers.
        taken: Paths of fields that are none.
    """
    scores: JsonObject = {}
    for place in places:
        name, named, path = place.partition("=")
        if place == "*":
            used = {path.partition(".")[0].strip() for paths in taken for path in paths.replace("&", "|").split("|")}
            numbers = {key: value for key, value in row.items() if key not in used and read_number(value) is not None}
            scores |= read_scores(numbers)
        elif place.startswith("@"):
            listed = find(row, place[1:])
            scores |= read_scores({key: row.get(key) for key in listed} if isinstance(listed, LISTS) else None)
        else:
            value = find(row, path if named else place)
            scores |= read_scores({name: value} if named else value)
    return scores


def count_scores(row: Mapping[str, object], messages: object = None) -> int:
    """Return the number of scores of a row and of its messages."""
    inner = [message for message in messages if isinstance(message, Mapping)] if isinstance(messages, LISTS) else []
    return sum(len(read_scores(holder["scores"])) for holder in (row, *inner) if holder.get("scores"))
