"""Assertions: rules about the tool calls of every conversation, from a TOML file or a list of dictionaries.

`metrics.calls` says what they mean, and `call-assertions` there counts those that hold. They are a resource of a run,
read when a run has some: the metrics themselves are imported without msgspec.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from dialeval.core.errors import DataError, Problem
from dialeval.core.fingerprint import short_digest
from dialeval.core.validation import convert, parse_toml, read_bytes
from dialeval.metrics.calls import Calls, Rule

_REMEDY = "write tables [[assertion]] with rule, call and, of the rule before, before"
_FREE = Rule(arguments="expected")
"""Arguments of a rule are compared exactly, and a call may have others."""


class Assertion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule about the calls of a conversation."""

    rule: Literal["must", "must-not", "before"]
    call: str
    before: str | None = None
    arguments: dict[str, Any] = {}
    name: Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+$")] | None = None

    @property
    def key(self) -> str:
        """What its value is called."""
        parts = [self.rule, self.call, self.before] if self.name is None else [self.name]
        return re.sub(r"[^\w.-]+", "-", "-".join(filter(None, parts)))

    def holds(self, calls: Calls) -> bool | None:
        """Return whether the rule holds for some calls; None where it does not apply."""
        wanted = {"name": self.call, "arguments": self.arguments}
        places = [at for at, call in enumerate(calls) if _FREE.is_equal(wanted, call)]
        if self.rule != "before":
            return bool(places) == (self.rule == "must")
        later = [at for at, call in enumerate(calls) if call["name"] == self.before]
        return bool(places) and places[0] < later[0] if later else None


class Assertions:
    """The rules of a file or a list."""

    def __init__(self, rules: Sequence[Assertion]) -> None:
        self.rules = tuple(rules)

    @property
    def digest(self) -> str:
        """A digest of all rules."""
        return short_digest(msgspec.json.encode(self.rules, order="sorted"))


def load_assertions(source: Any) -> Assertions:
    """Read rules from a TOML file, or from a list of dictionaries.

    Args:
        source: The path of the file, or the list.

    Returns:
        The rules, in order.

    Raises:
        DataError: A rule is not as it should be, or two have one name.

    Example:
        >>> load_assertions([{"rule": "must-not", "call": "delete_user"}]).rules[0].key
        'must-not-delete_user'
    """
    where, given = "assertions", source
    if isinstance(source, str | os.PathLike):
        where = os.fspath(source)
        given = parse_toml(read_bytes(where, _REMEDY), where, _REMEDY).get("assertion")
    rules = convert(given or None, list[Assertion], where, _REMEDY)
    keys = [rule.key for rule in rules]
    problems = [
        Problem(where, None, f"the assertion {rule.key} names no later call", _REMEDY)
        for rule in rules
        if (rule.rule == "before") != (rule.before is not None)
    ]
    twice = [key for key in dict.fromkeys(keys) if keys.count(key) > 1]
    problems += [Problem(where, None, f"two assertions are called {key!r}", "give each a name") for key in twice]
    if problems:
        raise DataError(problems)
    return Assertions(rules)
