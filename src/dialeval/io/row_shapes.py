"""Row shapes: where the chats, logs and data sets of other programs hold what a row holds, as one table.

A row with `response` or `messages` is ours. Any other row is looked up in `SHAPES`, the table `row_shapes.toml`: the
first shape whose signs are all there (not null) says by paths where our fields are. `a.0.b` is key `a`, its first item,
key `b`; `a | b` is the first of the two that is there; `a & b` is both, one after the other (of a latency, start and
end). A JSON document may hold its rows in a list of its own (`document`), and give them what it says of them all
(`outer`, `joined`). A shape with `refused` is known and not read, and says why; pairs of answers are read by `dialeval
rank` (`pairs`). A new shape is a new entry of the table, and nothing else: every format and every way of reading goes
through `map_fields`. Fields that such a row has by our names come first, unless the shape says that they mean
something else there (`unlike`). Where the user says which field holds the response, no paths are searched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import orjson

from dialeval.core.errors import add_warning
from dialeval.core.features import list_installed, read_table
from dialeval.core.validation import JsonObject

if TYPE_CHECKING:
    from dialeval.io.rows import FieldNames, RowObject


MAIN = ("response", "messages")
"""The fields of which a row must have one."""
PROMPT = ".<assistant"
"""At the end of a path of messages: those before the first one of the assistant."""
_ABOUT_ERRORS = ("error", "status", "finish_reason")
_ROLE_KEYS = frozenset(("role", "from", "sender", "speaker", "author", "sender_name"))


@dataclass(frozen=True, slots=True)
class RowShape:
    """One kind of row."""

    name: str
    title: str
    """What a row of it is, in words: it follows "looks like"."""
    signs: Sequence[str]
    """The paths that identify it, the most specific one first."""
    example: JsonObject
    paths: Mapping[str, str] = field(default_factory=dict)
    """Our fields, and where they are."""
    document: Sequence[str] = ()
    """The paths of a JSON document with such rows; the last one leads to the list of them."""
    outer: Sequence[str] = ()
    """Keys of the document that its rows get as well."""
    joined: Sequence[str] = ()
    """A field that rows get from a list of the document: its name, the list, and the paths in both that are equal."""
    counts: Mapping[str, str] = field(default_factory=dict)
    """Of rows that other commands read: what counts as what in the account; each is a conversation but for `"0"`."""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """The fields of a pair of answers, and where they are."""
    scores: Sequence[str] = ()
    """Where its scores are; `scores.collect_scores` explains the entries."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """Roles of its messages that mean something else than usual, with ours."""
    several: bool = False
    """Whether a response is a list of texts, those of several turns."""
    seen: bool | str = False
    """The program and the version of a real file of it that was read; or whether there was one."""
    refused: str = ""
    """What to do instead, where such rows cannot be read."""
    unlike: Sequence[str] = ()
    """Our fields whose names such a row has for something else."""
    assembler: str = ""
    """The name of what puts conversations together from all rows of a file (`logs.ASSEMBLERS`)."""
    filter: str = ""
    """The field by which rows of one answer differ, where a program writes an answer once per filter of it."""

    @property
    def origin(self) -> str:
        """Where its structure is known from, in words."""
        named = f": {self.seen}" if isinstance(self.seen, str) else ""
        return f"read in a real file{named}" if self.seen else "from documentation, not read in a real file"

    @property
    def main(self) -> str:
        """The path of its response or its messages."""
        return next((self.paths[name] for name in MAIN if name in self.paths), "")

    @property
    def explained(self) -> str:
        """The places of our fields, or the reason why such rows are not read."""
        if self.pairs:
            return "pairs, for `dialeval rank`: " + "; ".join(f"{name} = {paths}" for name, paths in self.pairs.items())
        if self.refused:
            return f"not read: {self.refused}"
        if self.assembler:
            return f"put together from {self.assembler}"
        rows = f"rows in `{self.document[-1]}`; " if self.document else ""
        shown = {name: paths for name, paths in self.paths.items() if name not in _ABOUT_ERRORS}
        return rows + "; ".join(f"{name} = {paths}" for name, paths in shown.items())


def _read_shapes(places: Iterable[str]) -> list[RowShape]:
    entries = (entry for place in places for entry in read_table(place).items())
    return [RowShape(name, example=orjson.loads(entry.pop("example")), **entry) for name, entry in entries]


OWN, *SHAPES = _read_shapes(["dialeval.io:row_shapes.toml"])
"""A row of ours, identified by its response; and other shapes in the order of trying."""


@cache
def _list_installed_shapes() -> list[RowShape]:
    """Return the shapes of other packages, which are tried where none of ours fits."""
    return _read_shapes(place for feature in list_installed() for place in feature.formats)


CHAT = next(shape for shape in SHAPES if shape.name == "chat")


@cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def value_at(row: Mapping[str, object], path: str) -> Any:
    """Return what is at a path of a row, None where nothing is; a key that is the whole path comes first."""
    if path in row:
        return row[path]
    value: Any = row
    steps = _steps(path)
    for at, step in enumerate(steps):
        if type(value) is dict or isinstance(value, Mapping):
            if step not in value and at and (rest := ".".join(steps[at:])) in value:  # a key with dots in it
                return value[rest]
            value = value.get(step)
        elif isinstance(value, list | tuple) and step.isdecimal() and len(step) < 10 and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, str) and value[:1] == "{":  # an object in JSON
            value = value_at(_parse_object(value), step)
        else:
            return None
    return value


@lru_cache(maxsize=4)
def _parse_object(text: str) -> JsonObject:
    try:
        return dict(orjson.loads(text))
    except orjson.JSONDecodeError:
        return {}


def parse_reply(value: str) -> Any:
    """Return messages, or an object with one, that are written as JSON; any other text as it is."""
    try:
        parsed = orjson.loads(value) if value.startswith(("{", "[{")) else None
    except orjson.JSONDecodeError:
        return value
    items = parsed if isinstance(parsed, list) else [parsed]
    said = [find(each, "choices.0.message | message | .") if isinstance(each, dict) else None for each in items]
    return said if all(isinstance(each, dict) and "role" in each for each in said) else value


def find(row: RowObject, paths: str) -> Any:
    """Return what is at the first path that leads to something; of paths joined by `&`, all that do."""
    for path in paths.split(" | "):
        if path == ".":
            value: Any = row
        elif path.endswith(PROMPT):
            value = _find_prompt(value_at(row, path.removesuffix(PROMPT)))
        elif "&" not in path:
            value = value_at(row, path)
        else:
            values = (value_at(row, each.strip()) for each in path.split("&"))
            value = [each for each in values if each is not None and each != ""] or None
        if value is not None:
            return value
    return None


def find_path(row: RowObject, paths: str) -> str | None:
    """Return the first of some paths that leads to something."""
    return next((path for path in paths.split(" | ") if find(row, path) is not None), None)


def _find_prompt(messages: object) -> list[Any] | None:
    """Return the messages before the first one of the assistant; None where there are none."""
    given = messages if isinstance(messages, list) else []
    roles = [message.get("role") if isinstance(message, dict) else None for message in given]
    return given[: roles.index("assistant") if "assistant" in roles else len(given)] or None


def count_values(row: RowObject, paths: str) -> int:
    """Return how many values are at paths of a row, joined by `&`; those of a list each."""
    if paths == "0":
        return 0
    values: list[Any] = []
    for path in paths.split(" & "):
        head, starred, inner = path.partition(".*.")
        given = value_at(row, head)
        values += [value_at(item, inner) for item in given or ()] if starred else [given]
    return sum(len(value) if isinstance(value, list | dict) else value is not None for value in values)


def find_shape(row: RowObject) -> RowShape | None:
    """Return the shape that a row has all signs of; a null where a shape has its reply is a reply that is missing."""
    possible = _find_possible(tuple(row))
    for shape in chain(possible, (each for each in _list_installed_shapes() if _has_heads(row, each))):
        mains = shape.main.split(" | ")
        if all(find(row, sign) is not None or (sign in row and sign in mains) for sign in shape.signs):
            return shape
    return None


@lru_cache(maxsize=64)
def _find_possible(keys: tuple[str, ...]) -> list[RowShape]:
    """Return the shapes that rows with these keys may have; found once, for the rows of a file have the same few."""
    return [shape for shape in SHAPES if _has_heads(keys, shape)]


def _has_heads(keys: Collection[str], shape: RowShape) -> bool:
    """Return whether all signs of a shape begin with one of the keys, or are one."""
    return all(any(path in keys or _steps(path)[0] in keys for path in sign.split(" | ")) for sign in shape.signs)


def map_fields(row: RowObject, names: FieldNames) -> RowObject | None:
    """Rename the fields of a row to ours, if it has a known shape; None where rows of that shape are not read."""
    if names.paths:
        row = {**row, **{path: value_at(row, path) for path in names.paths}}
    if names.mapped:
        return _drop_unlike(row, names)
    if type(said := row.get(names.response)) is str and "user_input" not in row and not said.startswith("{"):
        return row
    shape = find_shape(row)
    if shape is None or shape is CHAT:
        return row
    if shape.refused:
        return None
    found = {name: row[name] for name in names.beside if name not in shape.unlike and row.get(name) is not None}
    paths = list_paths(shape, names)
    ours = {name: getattr(names, name) for name in paths}
    taken = {own: find(row, paths[name]) if own == name else value_at(row, own) for name, own in ours.items()} | found
    taken = {own: None if value in ("{}", {}) else value for own, value in taken.items()}  # removed before logging
    if isinstance(said := taken.get(names.response), str):
        taken[names.response] = parse_reply(said)
    if shape.main == "":  # scores of replies that are somewhere else
        taken[names.response] = None
    if shape.roles and isinstance(messages := taken.get(names.messages), list):
        taken[names.messages] = [_map_role(message, shape.roles) for message in messages]
    if isinstance(parts := taken.get(names.system), list):  # such as an agent and its model
        taken[names.system] = "/".join(map(str, parts)) or None
    return taken


def list_paths(shape: RowShape, names: FieldNames) -> Mapping[str, str]:
    """Return where rows of a shape have our fields: a dialogue's id also by its usual names, ahead of that of a row."""
    if "trial" in shape.paths or names.dialog_id != "dialog_id":
        return shape.paths
    return {**shape.paths, "dialog_id": _add_ids(shape.paths.get("dialog_id", ""), names.dialog_ids)}


@cache
def _add_ids(paths: str, ids: Sequence[str]) -> str:
    *first, last = paths.split(" | ")
    return " | ".join(filter(None, dict.fromkeys((*first, *ids, last))))


def _map_role(message: Any, roles: Mapping[str, str]) -> Any:
    key = next((key for key in _ROLE_KEYS if key in message), None) if isinstance(message, dict) else None
    return message if key is None else {**message, key: roles.get(str(message[key]), message[key])}


def split_turns(row: RowObject, shape: RowShape, names: FieldNames) -> list[RowObject]:
    """Return a row of its own for each turn, where rows of a shape have those of several turns in one."""
    said = row.get(names.response)
    if not isinstance(said, list) or not shape.several:
        return [row]
    return [{**row, names.response: text, names.turn: turn} for turn, text in enumerate(said, 1)]


_UNLIKE = [shape for shape in SHAPES if shape.unlike]


def list_unlike(keys: Collection[str], names: FieldNames) -> list[str]:
    """List fields with our names and another meaning, in rows with these keys whose response field the user named."""
    shape = next((shape for shape in _UNLIKE if shape.signs[0] in keys), None) if names.mapped else None
    return [] if shape is None else [name for name in shape.unlike if name in keys and getattr(names, name) == name]


def _drop_unlike(row: RowObject, names: FieldNames) -> RowObject:
    unlike = list_unlike(row.keys(), names)
    if not unlike:
        return row
    add_warning(f"the field {', '.join(unlike)} of a test case of deepeval is not a conversation and was ignored")
    return {key: value for key, value in row.items() if key not in unlike}


class Filters:
    """The answers that a program wrote once per filter of them, as far as they were met."""

    def __init__(self) -> None:
        self._first: dict[str, object] = {}

    def pass_over(self, row: RowObject) -> bool:
        """Return whether a row repeats an answer of another filter."""
        shape = find_shape(row) if row.keys() & _FILTERS else None
        if shape is None or not shape.filter:
            return False
        answer = repr([row.get(name) for name in _ANSWER])
        return self._first.setdefault(answer, row.get(shape.filter)) != row.get(shape.filter)


_FILTERS = {shape.filter for shape in SHAPES if shape.filter}
_ANSWER = ("doc_id", "doc_hash", "prompt_hash", "resps")
"""The fields of lm-evaluation-harness that are the same under every filter."""


def explain_shape(row: RowObject, names: FieldNames) -> tuple[str, str] | None:
    """Describe what a row without our fields looks like and lacks, and the remedy; None if that is unknown."""
    if names.mapped:
        return None
    shape = find_shape(row)
    if shape is not None:
        if shape.refused:
            return f"is {shape.title}", shape.refused
        return f"looks like {shape.title}, but lacks {shape.main}", "give it what it lacks, or leave it out"
    for shape in SHAPES:
        lacking = [sign for sign in shape.signs if find(row, sign) is None]
        is_near = 3 * len(row.keys() & shape.example.keys()) >= 2 * len(row)
        if shape.signs[0] not in lacking and len(lacking) * 2 <= len(shape.signs) and is_near and not shape.refused:
            remedy = "give it, or map the names it has: --field response=NAME; `dialeval formats` lists what is read"
            return f"looks like {shape.title}, but lacks {', '.join(lacking)}", remedy
    return None


@cache
def list_columns() -> frozenset[str]:
    """Return the columns of a table that some shape looks at."""
    given = [paths for shape in SHAPES for paths in (*shape.paths.values(), *shape.signs)]
    paths = [path.strip() for each in (*given, *_FILTERS, *_ANSWER) for path in each.replace("&", "|").split("|")]
    return frozenset(paths) | frozenset(_steps(path)[0] for path in paths)


def find_document_rows(document: JsonObject) -> tuple[str, list[Any]] | None:
    """Return the path of a JSON document at which the rows of a known log are, and these rows.

    They have what the document says of all of them; a list that does not hold objects is left as it is. Where no shape
    says where its rows are, they are looked for; an object of nothing but lists names systems.
    """
    if (listed := _find_listed_rows(document)) is not None:
        return listed
    if is_row(document) or (len(document) > 1 and all(isinstance(value, list) for value in document.values())):
        return None
    return _search_rows(document, "", 3)


def join_documents(documents: Iterable[object]) -> list[Any] | None:
    """Return the rows of several documents, one after the other; None where one is no document of a known log."""
    rows: list[Any] = []
    for each in documents:
        found = _find_listed_rows(each) if isinstance(each, dict) and find_shape(each) is None else None
        if found is None:
            return None
        rows += found[1]
    return rows


def _find_listed_rows(document: JsonObject) -> tuple[str, list[Any]] | None:
    """Return the path at which the document of a known log has its rows, and these with what it says of them all."""
    for shape in SHAPES:
        found = [value_at(document, path) for path in shape.document]
        if found and isinstance(found[-1], list) and None not in found:
            outer = {key: document[key] for key in shape.outer if key in document}
            rows = [{**outer, **row} if isinstance(row, dict) else row for row in found[-1]]
            return shape.document[-1], _join(document, rows, *shape.joined) if shape.joined else rows
    return None


def _search_rows(document: Mapping[str, Any], path: str, depth: int) -> tuple[str, list[Any]] | None:
    """Return the first list of rows of a known shape inside of a document, and its path."""
    for name, value in document.items():
        first = value[0] if isinstance(value, list) and value else None
        shape = find_shape(first) if isinstance(first, dict) else None
        if shape is not None and not shape.refused:
            return f"{path}{name}", value
        if (
            isinstance(value, dict)
            and depth
            and (found := _search_rows(value, f"{path}{name}.", depth - 1)) is not None
        ):
            return found
    return None


def _join(document: Mapping[str, Any], rows: list[Any], name: str, items: str, key: str, own_key: str) -> list[Any]:
    """Give each row the item of a list of its document that has the same key, unless it has one."""
    given = document[items] if isinstance(document[items], list) else []
    by_key = {str(value_at(each, key)): each for each in given if isinstance(each, dict)}
    for row in rows:
        if isinstance(row, dict) and (item := by_key.get(str(value_at(row, own_key)))) is not None:
            row.setdefault(name, item)
    return rows


def is_row(document: RowObject) -> bool:
    """Return whether a JSON document is a single row: a chat, or a row of a known log. Else its keys name systems."""
    shape = find_shape(document)
    if shape is None or "messages" not in shape.paths:
        return shape is not None and not all(isinstance(value, list) for value in document.values())
    messages = find(document, shape.paths["messages"])
    if not isinstance(messages, list) or not messages:
        return False
    return all(isinstance(message, dict) and not _ROLE_KEYS.isdisjoint(message) for message in messages)
