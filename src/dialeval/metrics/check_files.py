"""Checks: rules about the texts of replies and about tool calls, from a TOML file or a list of dictionaries.

`metrics.checks` says what rules about texts mean, and `metrics.calls` those about calls. They are a resource of a run,
read when a run has some: the metrics themselves are imported without msgspec.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from dialeval.core import inputs
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.fingerprint import short_digest
from dialeval.core.inputs import Input
from dialeval.core.validation import JsonObject, convert, parse_toml, read_bytes
from dialeval.metrics.calls import Calls, Rule
from dialeval.metrics.checks import TextRule, prepare_test

_REMEDY = "write tables [[check]]: docs/labels.md lists the rules and what each of them has"
_FREE = Rule(arguments="expected")
"""Arguments of a rule are compared exactly, and a call may have others."""
_CallRule = Literal["must", "must-not", "before"]
Name = Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+$")]


class CallCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule about the calls of a conversation."""

    rule: _CallRule
    call: str
    before: str | None = None
    arguments: JsonObject = {}
    name: Name | None = None

    def __post_init__(self) -> None:
        if (self.rule == "before") != (self.before is not None):
            raise ValueError("the rule `before` and no other names a later call, as `before`")

    @property
    def key(self) -> str:
        """What its value is called."""
        return _join_key(self.name, self.rule, self.call, self.before)

    def holds(self, calls: Calls) -> bool | None:
        """Return whether the rule holds for some calls; None where it does not apply."""
        wanted = {"name": self.call, "arguments": self.arguments}
        places = [at for at, call in enumerate(calls) if _FREE.is_equal(wanted, call)]
        if self.rule != "before":
            return bool(places) == (self.rule == "must")
        later = [at for at, call in enumerate(calls) if call["name"] == self.before]
        return bool(places) and places[0] < later[0] if later else None


class TextCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule about the text of a reply."""

    rule: TextRule
    text: str | list[str] | None = None
    pattern: str | None = None
    words: Annotated[int, msgspec.Meta(ge=0)] | None = None
    schema: JsonObject | None = None
    case: Literal["exact", "ignore"] = "exact"
    name: Name | None = None

    def __post_init__(self) -> None:
        self.prepare()

    @property
    def wanted(self) -> object:
        """What replies are tested against."""
        return next((each for each in (self.text, self.pattern, self.words, self.schema) if each is not None), None)

    @property
    def key(self) -> str:
        """What its value is called."""
        texts = self.wanted if isinstance(self.wanted, list) else [self.wanted]
        return _join_key(self.name, self.rule, *(str(text)[:40] for text in texts if not isinstance(text, dict | None)))

    def prepare(self) -> object:
        """Return the function that tests replies; ValueError where the rule lacks something or has too much."""
        needed = {"regex": "pattern", "max-words": "words", "is-json": "schema", "refusal": ""}
        field = needed.get(str(self.rule).removeprefix("not-"), "text")
        settings = [name for name in ("text", "pattern", "words", "schema") if getattr(self, name) is not None]
        if settings != [field] and not (field in ("", "schema") and not settings):
            stated = ", ".join(settings) or "none"
            raise ValueError(f"the rule {self.rule} has {field or 'no further field'}, and not {stated}")
        try:
            return prepare_test(self.rule, self.wanted, self.case)
        except SettingError as error:
            raise ValueError(str(error)) from None


def _join_key(name: str | None, *parts: object) -> str:
    return name or re.sub(r"[^\w.-]+", "-", "-".join(str(part) for part in parts if part)).strip("-")


class Checks(NamedTuple):
    """Rules of one kind."""

    rules: Sequence[CallCheck | TextCheck]

    @property
    def digest(self) -> str:
        """A digest of all rules."""
        return short_digest(msgspec.json.encode(list(self.rules), order="sorted"))


def load_checks(source: object) -> Mapping[Input, object]:
    """Read rules from a TOML file, or from a list of dictionaries.

    Args:
        source: The path of the file, or the list.

    Returns:
        The rules about texts and those about calls, in order, as resources; kinds without a rule are left out.

    Raises:
        DataError: A rule is not as it should be, or two have one name.

    Example:
        >>> rules = load_checks([{"rule": "must-not", "call": "delete_user"}, {"rule": "contains", "text": "hello"}])
        >>> [kind.rules[0].key for kind in rules.values()]
        ['contains-hello', 'must-not-delete_user']
    """
    where, entries = "checks", source
    if isinstance(source, str | os.PathLike):
        where = os.fspath(source)
        content = parse_toml(read_bytes(where, _REMEDY), where, _REMEDY)
        entries = content.pop("check", None)
        if content:
            raise DataError(Problem(where, None, f"has {next(iter(content))!r}, which is no check", _REMEDY))
    entries = convert(entries or None, list[JsonObject], where, _REMEDY)
    is_call = [rule.get("rule") in get_args(_CallRule) for rule in entries]
    calls = convert(
        [rule for rule, call in zip(entries, is_call, strict=True) if call], list[CallCheck], where, _REMEDY
    )
    texts = convert(
        [rule for rule, call in zip(entries, is_call, strict=True) if not call], list[TextCheck], where, _REMEDY
    )
    keys = [rule.key for kind in (texts, calls) for rule in kind]
    twice = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if twice:
        raise DataError(Problem(where, None, f"two checks are called {key!r}", "give each a name") for key in twice)
    kinds: dict[Input, Sequence[Any]] = {inputs.TEXT_CHECKS: texts, inputs.CALL_CHECKS: calls}
    return {kind: Checks(rules) for kind, rules in kinds.items() if rules}
