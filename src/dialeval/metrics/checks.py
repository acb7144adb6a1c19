"""Checks of replies by plain rules: 1 where a rule holds, 0 where it does not; the value is the rate.

    contains(text=refund)       the reply contains a text
    not-contains(text=sorry)    it does not
    starts-with(text=Dear)      it begins with a text
    equals(text=yes)            it is a text, apart from spaces around it
    regex(pattern=[0-9]+ EUR)   a regular expression matches a part of it (RE2, which takes linear time)
    max-words(words=40)         it has at most so many words, split at spaces
    is-json                     it is one JSON value and nothing else
    refusal                     it says that it does not help: one of the phrases below; a list, no classifier
    checks                      the rules of a file (`--checks`): the fraction that holds, and the rate of each

Without a setting, the texts are those of each row: the field `expected_contains`, `expected_not_contains`,
`expected_starts_with`, `expected_equals`, `expected_regex` or `expected_max_words`. A list of texts means all of them
(`equals`: one of them; `not-contains`: none of them). `case=ignore`: upper and lower case are the same. A row without
the field is not scored. Texts with commas or brackets are for files:

    [[check]]
    rule = "regex"              # one of the rules above; `not-` before it negates it
    pattern = "(?i)order (id|number)"
    name = "asks-for-order"     # optional: what its rate is called

Rules of a file about tool calls are values of `call-assertions` (`metrics.calls`). `is-json` takes a JSON Schema in a
file, as a table `schema`; that needs the package jsonschema. `pattern` is for RE2 there too, without patternProperties.

Refusals are recognized by English phrases in the first 300 characters: I can't, cannot, won't, am unable or not able
to, must decline (to help, assist, do, provide, ...), I'm sorry, but ..., as an AI, against my guidelines.

Paper: none; such rules are known as assertions of unit tests.

Edge cases: a reply that failed is not scored, and counted as missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

import msgspec
import numpy as np
import orjson

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.exact import Moments
from dialeval.core.fingerprint import short_digest
from dialeval.core.fold import Better, Estimate, Metric, Partial, RowMetric
from dialeval.core.inputs import Column, Input
from dialeval.core.validation import JsonObject, convert, parse_toml, read_bytes
from dialeval.metrics.calls import Calls, Rule

Case = Literal["exact", "ignore"]
TextRule = Literal[
    "contains",
    "starts-with",
    "equals",
    "regex",
    "max-words",
    "is-json",
    "refusal",
    "not-contains",
    "not-starts-with",
    "not-equals",
    "not-regex",
    "not-max-words",
    "not-is-json",
    "not-refusal",
]
Test = Callable[[Sequence[str]], Floats]
"""Returns 1 or 0 for each of some replies."""

REFUSAL = (
    r"(?i)\bI(?:'m| am)? (?:can't|cannot|can not|won't|will not|(?:unable|not able|not allowed) to|"
    r"(?:must|have to) decline to) "
    r"(?:help|assist|do that|do this|provide|answer|comply|fulfill|support|share|give|discuss|create|generate)\b"
    r"|\bI(?:'m| am) (?:very |so )?sorry,? but\b|\bas an AI\b|\bagainst my (?:guidelines|policy|programming)\b"
)
_REFUSAL_CHARACTERS = 300


def prepare_test(rule: str, wanted: Any, case: Case = "exact") -> Test:
    """Return the function that tests replies by a rule; SettingError where what is wanted is not for the rule."""
    if rule.startswith("not-"):
        plain = prepare_test(rule.removeprefix("not-"), wanted, case)
        is_any = rule == "not-contains" and isinstance(wanted, list)
        parts = [prepare_test("contains", text, case) for text in wanted] if is_any else [plain]
        return lambda replies: 1.0 - np.max([part(replies) for part in parts], axis=0)
    if rule == "refusal":
        matches = _prepare_regex(REFUSAL, "exact")
        return lambda replies: matches([reply[:_REFUSAL_CHARACTERS].replace("\u2019", "'") for reply in replies])
    if rule == "is-json":
        return _test_each(_prepare_schema(wanted))
    if rule == "max-words":
        if type(wanted) not in (int, float) or not wanted >= 0:
            raise SettingError(f"max-words has a number of words, not {wanted!r:.60}")
        return _test_each(lambda reply: len(reply.split()) <= wanted)
    texts = wanted if isinstance(wanted, list) else [wanted]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise SettingError(f"{rule} has a text, or a list of texts, not {wanted!r:.60}")
    if rule == "regex":
        patterns = [_prepare_regex(text, case) for text in texts]
        return lambda replies: np.min([pattern(replies) for pattern in patterns], axis=0)
    fold = str.casefold if case == "ignore" else str
    texts = [fold(text.strip() if rule == "equals" else text) for text in texts]
    if rule == "equals":
        return _test_each(lambda reply: fold(reply.strip()) in texts)
    if rule == "starts-with":
        return _test_each(lambda reply: fold(reply).startswith(tuple(texts)))
    return _test_each(lambda reply: all(text in fold(reply) for text in texts))


def _test_each(test: Callable[[str], bool]) -> Test:
    return lambda replies: np.array([test(reply) for reply in replies], np.float64)


def _prepare_regex(pattern: str, case: Case) -> Test:
    """Return a test by RE2, whose time is linear in the text whatever the pattern is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def test(replies: Sequence[str]) -> Floats:
        texts = pa.array(replies, pa.large_string())
        matched = pc.match_substring_regex(texts, pattern=pattern, ignore_case=case == "ignore")
        return np.asarray(matched.to_numpy(zero_copy_only=False), np.float64)

    try:
        test([""])
    except pa.ArrowInvalid as error:
        reason = str(error).partition(": ")[2][:200]
        raise SettingError(f"{pattern!r:.60} is no regular expression of RE2: {reason}") from None
    return test


def _prepare_schema(schema: object) -> Callable[[str], bool]:
    validator: Any = None
    if schema is not None:
        try:
            import jsonschema
            import referencing
        except ImportError:
            raise SettingError("a schema needs the package jsonschema: pip install jsonschema") from None
        kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        try:
            kind.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise SettingError(f"is no JSON Schema: {error.message:.200}") from None
        if b'"patternProperties"' in orjson.dumps(schema):
            raise SettingError("patternProperties of a JSON Schema are not tested: their time may have no end")

        def match(_: Any, pattern: str, text: object, __: Any) -> Iterator[Exception]:
            if isinstance(text, str) and not _prepare_regex(pattern, "exact")([text])[0]:
                yield jsonschema.ValidationError(pattern)

        kind = jsonschema.validators.extend(kind, {"pattern": match})
        validator = kind(schema, registry=referencing.Registry())  # which fetches nothing

    def test(reply: str) -> bool:
        try:
            value = orjson.loads(reply)
        except orjson.JSONDecodeError:
            return False
        return validator is None or bool(validator.is_valid(value))

    return test


@dataclass(frozen=True)
class _TextMetric(RowMetric):
    """A rule about replies as a metric."""

    setting: ClassVar[str] = "text"
    """The name of what replies are tested against."""
    bounds = (0.0, 1.0)
    better: ClassVar[Better | None] = "higher"
    costly = True  # only for those who ask: `all` should not say that no reply is JSON
    costly_rows = 1 << 16
    judges = True
    advice = "a text with commas, brackets or outer spaces, or a schema, goes into a file of checks: --checks FILE"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.wanted, str):
            if set("(),") & set(self.wanted) or self.wanted != self.wanted.strip():
                raise SettingError(f"{self.family} cannot take {self.wanted!r}; {self.advice}")
            prepare_test(self.family, self.wanted)

    @property
    def wanted(self) -> object:
        """What replies are tested against; None: what each row has."""
        value = getattr(self, self.setting, None)
        return None if value in ("", -1) else value

    @property
    def _field(self) -> Input:
        return Column.of_field(f"expected_{self.family.replace('-', '_')}")

    @property
    def needs(self) -> frozenset[Input]:  # type: ignore[override]
        return frozenset({inputs.RESPONSE, *([] if self.wanted is not None else [self._field])})

    def score(self, batch: Batch) -> Floats:
        replies = list(batch.texts(inputs.RESPONSE))
        case: Case = getattr(self, "case", "exact")
        if self._field not in self.needs:
            return prepare_test(self.family, self.wanted, case)(replies)
        values = np.full(len(replies), nan)
        rows: dict[str, tuple[object, list[int]]] = {}
        for row, wanted in enumerate(batch.fields(self._field).values):
            if wanted is not None:
                rows.setdefault(repr(wanted), (wanted, []))[1].append(row)
        for wanted, places in rows.values():
            values[places] = prepare_test(self.family, wanted, case)([replies[row] for row in places])
        return values


@dataclass(frozen=True)
class Contains(_TextMetric):
    """Whether a reply contains a text."""

    family = "contains"

    text: str = ""
    case: Case = "exact"


@dataclass(frozen=True)
class NotContains(Contains):
    """Whether a reply does not contain a text."""

    family = "not-contains"


@dataclass(frozen=True)
class StartsWith(Contains):
    """Whether a reply begins with a text."""

    family = "starts-with"


@dataclass(frozen=True)
class Equals(Contains):
    """Whether a reply is a text."""

    family = "equals"


@dataclass(frozen=True)
class Matches(_TextMetric):
    """Whether a regular expression matches a part of a reply."""

    family = "regex"
    setting = "pattern"

    pattern: str = ""
    case: Case = "exact"


@dataclass(frozen=True)
class MaxWords(_TextMetric):
    """Whether a reply has at most so many words."""

    family = "max-words"
    setting = "words"

    words: int = -1
    """-1: the field of the row."""


@dataclass(frozen=True)
class IsJson(_TextMetric):
    """Whether a reply is JSON."""

    family = "is-json"
    needs = frozenset({inputs.RESPONSE})


@dataclass(frozen=True)
class Refusal(IsJson):
    """Whether a reply refuses to help, by phrases."""

    family = "refusal"
    better = None


@dataclass(frozen=True)
class TextChecks(Metric[dict[str, Moments]]):
    """The fraction of the rules about texts that hold in a reply, and how often each does."""

    family = "checks"
    needs = frozenset({inputs.RESPONSE, inputs.TEXT_CHECKS})
    better = "higher"
    bounds = (0.0, 1.0)

    def hold(self, batch: Batch) -> tuple[Sequence[Any], Floats]:
        """Return the rules, and by row and rule 1, 0, or NaN where a rule does not apply."""
        rules = batch.resource(inputs.TEXT_CHECKS).rules
        replies = list(batch.texts(inputs.RESPONSE))
        held = np.array([rule.prepare()(replies) for rule in rules], np.float64).T.reshape(len(replies), len(rules))
        return rules, np.where((batch.silent | batch.failed)[:, None], nan, held)

    def empty(self) -> dict[str, Moments]:
        return {}

    def partial(self, batch: Batch) -> Partial[dict[str, Moments]]:
        rules, held = self.hold(batch)
        scored = ~np.isnan(held)
        with np.errstate(invalid="ignore"):
            items = {self.name: np.where(scored, held, 0.0).sum(axis=1) / scored.sum(axis=1)}
        items |= {f"{self.name}/{rule.key}": held[:, at].copy() for at, rule in enumerate(rules)}
        state = {key: Moments.of(column, batch.dialogues) for key, column in items.items()} if len(held) else {}
        return Partial(state, items)

    def merge(self, left: dict[str, Moments], right: dict[str, Moments]) -> dict[str, Moments]:
        keys = dict.fromkeys((*left, *right))
        return {key: left.get(key, Moments()) + right.get(key, Moments()) for key in keys}

    def finish(self, state: dict[str, Moments]) -> Mapping[str, Estimate]:
        moments = state or {self.name: Moments()}
        return {key: Estimate.of_moments(each, self.bounds) for key, each in moments.items()}


@dataclass(frozen=True)
class CallAssertions(TextChecks):
    """The fraction of the rules about calls that hold in a conversation, and how often each does."""

    family = "call-assertions"
    subject = inputs.CALLS
    needs = frozenset({inputs.CALLS, inputs.CALL_CHECKS})

    def hold(self, batch: Batch) -> tuple[Sequence[object], Floats]:
        rules, rows = batch.resource(inputs.CALL_CHECKS).rules, batch.fields(inputs.CALLS)
        held = np.full((len(rows), len(rules)), nan)
        for row, calls in enumerate(rows):
            if calls is not None:
                held[row] = [nan if (holds := rule.holds(calls)) is None else holds for rule in rules]
        return rules, held


# Files of checks: rules about the texts of replies and about tool calls, which are resources of a run.

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
    case: Case = "exact"
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
