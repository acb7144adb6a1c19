"""Row shapes: where the chats, logs and data sets of other programs hold what a row holds, as one table.

A row with `response` or `messages` is ours. Any other row is looked up in `SHAPES`: the first shape whose signs are all
there (not null) says by paths where our fields are. `a.0.b` is key `a`, its first item, key `b`; `a | b` is the first
of the two that is there; `a & b` is both, one after the other. A JSON document may hold its rows in a list of its own
(`document`). A shape with `refused` is known and not read, and says why. A new shape is a new entry, and nothing else:
every format and every way of reading goes through `ours`. Fields that such a row has by our names come first, unless
the shape says that they mean something else there (`unlike`), and where it is said by hand which field holds the
response no paths are looked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from dialeval.core.errors import add_warning

if TYPE_CHECKING:
    from dialeval.io.rows import FieldNames, RowObject


MAIN = ("response", "messages")
"""The fields of which a row must have one."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """One kind of row."""

    name: str
    title: str
    """What a row of it is, in words: it follows "looks like"."""
    signs: tuple[str, ...]
    """The paths that tell it, the most telling one first."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """Our fields, and where they are."""
    example: dict[str, Any] = field(default_factory=dict)
    document: tuple[str, ...] = ()
    """The keys of a JSON document with such rows; the last one holds the list of them."""
    refused: str = ""
    """What to do instead, where such rows cannot be read."""
    unlike: tuple[str, ...] = ()
    """Our fields whose names such a row has for something else."""
    filter: str = ""
    """The field by which rows of one answer differ, where a program writes an answer once per filter of it."""

    @property
    def main(self) -> str:
        """Return where its response or its messages are."""
        return next((self.paths[name] for name in MAIN if name in self.paths), "")

    @property
    def explained(self) -> str:
        """Return where our fields are; or why such rows are not read."""
        if self.refused:
            return f"not read: {self.refused}"
        rows = f"rows in `{self.document[-1]}`; " if self.document else ""
        return rows + "; ".join(f"{name} = {paths}" for name, paths in self.paths.items())


OWN = RowShape(
    "row",
    "a row",
    ("response",),
    {name: name for name in ("response", "context", "reference", "dialog_id", "turn", "system")},
    {"dialog_id": "d1", "turn": 3, "context": ["When does it leave?"], "response": "At nine.", "reference": "At 9."},
)
"""A row of ours; it is told by its response, without being looked up."""

_USER, _BOT = {"role": "user", "content": "When does it leave?"}, {"role": "assistant", "content": "At nine."}

SHAPES = (
    RowShape(
        "inspect",
        "a sample of an inspect_ai log",
        ("epoch", "input", "output"),
        {
            "response": "output.choices.0.message | output.completion",
            "context": "input",
            "reference": "target",
            "dialog_id": "id",
        },
        {"id": 1, "epoch": 1, "input": [_USER], "target": "At 9.", "output": {"choices": [{"message": _BOT}]}},
        document=("eval", "samples"),
    ),
    RowShape(
        "lm-eval",
        "a sample of lm-evaluation-harness",
        ("doc", "resps"),
        {
            "response": "resps.0.0",
            "context": "arguments.gen_args_0.arg_0 | arguments.0.0",
            "reference": "target",
            "dialog_id": "doc_id",
        },
        {
            "doc_id": 0,
            "doc": {"question": "When does it leave?"},
            "target": "9",
            "arguments": {"gen_args_0": {"arg_0": "When does it leave?", "arg_1": {"until": ["\n"]}}},
            "resps": [["At nine."]],
        },
        filter="filter",
    ),
    RowShape(
        "batch-failure",
        "a request of a batch that failed",
        ("custom_id", "error"),
        example={"custom_id": "r1", "response": None, "error": {"code": "batch_expired"}},
        refused="send it again, or leave it out",
    ),
    RowShape(
        "openai-batch-output",
        "an answer of an OpenAI batch",
        ("custom_id", "response.body"),
        {"response": "response.body.choices.0.message | response.body.output", "dialog_id": "custom_id"},
        {"custom_id": "r1", "response": {"status_code": 200, "body": {"choices": [{"message": _BOT}]}}, "error": None},
    ),
    RowShape(
        "openai-batch-input",
        "a request of an OpenAI batch",
        ("custom_id", "body.messages"),
        {"messages": "body.messages", "dialog_id": "custom_id"},
        {
            "custom_id": "r1",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [_USER, _BOT, _USER]},
        },
    ),
    RowShape(
        "anthropic-batch-output",
        "an answer of an Anthropic batch",
        ("custom_id", "result.type"),
        {"response": "result.message", "dialog_id": "custom_id"},
        {
            "custom_id": "r1",
            "result": {
                "type": "succeeded",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "At nine."}]},
            },
        },
    ),
    RowShape(
        "anthropic-batch-input",
        "a request of an Anthropic batch",
        ("custom_id", "params.messages"),
        {"messages": "params.messages", "dialog_id": "custom_id"},
        {"custom_id": "r1", "params": {"model": "m", "max_tokens": 9, "messages": [_USER, _BOT, _USER]}},
    ),
    RowShape(
        "gemini",
        "a chat of Gemini",
        ("contents",),
        {"messages": "contents", "dialog_id": "id"},
        {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}, {"role": "model", "parts": [{"text": "Hi."}]}]},
    ),
    RowShape(
        "sharegpt",
        "a chat of ShareGPT",
        ("conversations",),
        {"messages": "conversations", "dialog_id": "id"},
        {"id": "c1", "conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi."}]},
    ),
    RowShape(
        "arena",
        "a chat of LMSYS-Chat or WildChat",
        ("conversation",),
        {
            "messages": "conversation",
            "dialog_id": "conversation_id | conversation_hash",
            "system": "model",
        },
        {"conversation_id": "c1", "model": "m", "conversation": [_USER, _BOT], "turn": 1},
    ),
    RowShape(
        "tau-bench",
        "a trial of tau-bench",
        ("task_id", "traj"),
        {"messages": "traj", "dialog_id": "task_id", "trial": "trial", "reward": "reward"},
        {"task_id": 0, "trial": 0, "reward": 1.0, "info": {}, "traj": [_USER, _BOT]},
    ),
    RowShape(
        "tau2-bench",
        "a simulation of tau2-bench",
        ("task_id", "trial", "messages"),
        {"messages": "messages", "dialog_id": "task_id", "trial": "trial", "reward": "reward_info.reward"},
        {"id": "s1", "task_id": "0", "trial": 0, "reward_info": {"reward": 1.0}, "messages": [_USER, _BOT]},
        document=("tasks", "simulations"),
    ),
    RowShape(
        "chat",
        "a chat",
        ("messages",),
        {"messages": "messages", "dialog_id": "dialog_id | id", "system": "system", "reference": "reference"},
        {"id": "c1", "messages": [{"role": "system", "content": "Be short."}, _USER, _BOT]},
    ),
    RowShape(
        "deepeval",
        "a test case of deepeval",
        ("actual_output", "input"),
        {"response": "actual_output", "context": "input", "reference": "expected_output"},
        {
            "input": "When does it leave?",
            "actual_output": "At nine.",
            "expected_output": "At 9.",
            "context": ["Ferry times"],
            "retrieval_context": ["The ferry leaves at 9."],
        },
        unlike=("context",),
    ),
    RowShape(
        "deepeval-run",
        "a test case of a test run of deepeval",
        ("actualOutput", "input"),
        {"response": "actualOutput", "context": "input", "reference": "expectedOutput"},
        {"name": "test_case_0", "input": "When does it leave?", "actualOutput": "At nine.", "expectedOutput": "At 9."},
        document=("conversationalTestCases", "testCases"),
        unlike=("context",),
    ),
    RowShape(
        "deepeval-chat",
        "a conversation of deepeval",
        ("scenario", "turns"),
        {"messages": "turns"},
        {"scenario": "A traveler asks for times.", "turns": [_USER, _BOT], "context": ["Ferry times"]},
    ),
    RowShape(
        "prompt",
        "a prompt with its completion",
        ("prompt", "completion"),
        {"response": "completion", "context": "prompt", "dialog_id": "id"},
        {"prompt": "When does it leave?", "completion": "At nine."},
    ),
    RowShape(
        "alpaca",
        "an instruction with its output",
        ("instruction", "output"),
        {"response": "output", "context": "instruction & input", "dialog_id": "id"},
        {"instruction": "Answer the question.", "input": "When does it leave?", "output": "At nine."},
    ),
    RowShape(
        "preference",
        "a pair of answers of which one was chosen",
        ("chosen", "rejected"),
        example={"prompt": "When does it leave?", "chosen": "At nine.", "rejected": "Yes."},
        refused="name the one to score: --field response=chosen, or messages=chosen for chats",
    ),
    RowShape(
        "chatgpt-export",
        "a conversation of a ChatGPT export, which is a tree",
        ("mapping", "current_node"),
        example={"title": "Ferry", "mapping": {"a": {"message": None, "children": []}}, "current_node": "a"},
        refused="write the messages of the branch that you want as a list of role/content objects, as messages",
    ),
    RowShape(
        "dialog",
        "a dialogue that does not say who speaks",
        ("dialog",),
        example={"dialog": ["Hello", "Hi."]},
        refused="write its turns as messages with role (user, assistant) and content",
    ),
)
"""In the order in which they are tried."""


CHAT = next(shape for shape in SHAPES if shape.name == "chat")


@cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """Return what is at a path of a row, None where nothing is; a key that is the whole path comes first."""
    if path in row:
        return row[path]
    value: Any = row
    for step in _steps(path):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and step.isdecimal() and len(step) < 10 and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _found(row: RowObject, paths: str) -> Any:
    """Return what is at the first path that leads to something, or at all of them."""
    if "&" in paths:
        values = (value_at(row, path.strip()) for path in paths.split("&"))
        return [value for value in values if value is not None and not (isinstance(value, str) and not value)]
    return next((value for path in paths.split(" | ") if (value := value_at(row, path)) is not None), None)


def shape_of(row: RowObject) -> RowShape | None:
    """Return the shape that a row has all signs of."""
    for shape in _possible(tuple(row)):
        if all(value_at(row, sign) is not None for sign in shape.signs):
            return shape
    return None


@lru_cache(maxsize=64)
def _possible(keys: tuple[str, ...]) -> list[RowShape]:
    """Return the shapes that rows with these keys may have; found once, for the rows of a file have the same few."""
    there = set(keys)
    return [shape for shape in SHAPES if there.issuperset(_steps(sign)[0] for sign in shape.signs)]


def ours(row: RowObject, names: FieldNames) -> RowObject | None:
    """Rename the fields of a row to ours, if it has a known shape; None where rows of that shape are not read."""
    if names.paths:
        row = {**row, **{path: value_at(row, path) for path in names.paths}}
    if names.mapped:
        return _without_unlike(row, names)
    if type(row.get(names.response)) is str:
        return row
    shape = shape_of(row)
    if shape is None or shape is CHAT:
        return row
    if shape.refused or _found(row, shape.main) is None:
        return None
    found = {name: row[name] for name in names.beside if name not in shape.unlike and row.get(name) is not None}
    return {getattr(names, name): _found(row, paths) for name, paths in shape.paths.items()} | found


_UNLIKE = [shape for shape in SHAPES if shape.unlike]


def unlike_fields(keys: Collection[str], names: FieldNames) -> list[str]:
    """List the fields that are ours by their names alone, in rows with these keys whose response was named by hand."""
    shape = next((shape for shape in _UNLIKE if shape.signs[0] in keys), None) if names.mapped else None
    return [] if shape is None else [name for name in shape.unlike if name in keys and getattr(names, name) == name]


def _without_unlike(row: RowObject, names: FieldNames) -> RowObject:
    unlike = unlike_fields(row.keys(), names)
    if not unlike:
        return row
    add_warning(f"the field {', '.join(unlike)} of a test case of deepeval is no conversation, and is not read as one")
    return {key: value for key, value in row.items() if key not in unlike}


class Filters:
    """The answers that a program wrote once per filter of them: which were met, and how many were met again."""

    def __init__(self) -> None:
        self._first: dict[str, object] = {}
        self.again = 0

    def repeat(self, row: RowObject) -> bool:
        """Tell whether a row repeats an answer that was there under another filter, and count it."""
        shape = shape_of(row) if row.keys() & _FILTERS else None
        if shape is None or not shape.filter:
            return False
        answer = repr([row.get(name) for name in _ANSWER])
        again = self._first.setdefault(answer, row.get(shape.filter)) != row.get(shape.filter)
        self.again += again
        return again


_FILTERS = {shape.filter for shape in SHAPES if shape.filter}
_ANSWER = ("doc_id", "doc_hash", "prompt_hash", "resps")
"""The fields of lm-evaluation-harness that are the same under every filter."""


def unknown(row: RowObject, names: FieldNames) -> tuple[str, str] | None:
    """Describe what a row without our fields looks like and lacks, and the remedy; None if that is unknown."""
    if names.mapped:
        return None
    shape = shape_of(row)
    if shape is not None:
        if shape.refused:
            return f"is {shape.title}", shape.refused
        return f"looks like {shape.title}, but lacks {shape.main}", "give it what it lacks, or leave it out"
    for shape in SHAPES:
        lacking = [sign for sign in shape.signs if value_at(row, sign) is None]
        if shape.signs[0] not in lacking and len(lacking) * 2 <= len(shape.signs) and not shape.refused:
            remedy = "give it, or map the names it has: --field response=NAME; `dialeval formats` lists what is read"
            return f"looks like {shape.title}, but lacks {', '.join(lacking)}", remedy
    return None


def may_hold_rows(header: Collection[str], names: FieldNames) -> bool:
    """Return whether rows with these columns can hold a response or messages."""
    if any(name in header or _steps(name)[0] in header for name in (names.response, names.messages)):
        return True
    heads = ({_steps(sign)[0] for sign in shape.signs} for shape in SHAPES)
    return not names.mapped and any(head.issubset(header) for head in heads)


@cache
def columns() -> frozenset[str]:
    """Return the columns of a table that some shape looks at."""
    given = [paths for shape in SHAPES for paths in (*shape.paths.values(), *shape.signs)] + [*_FILTERS, *_ANSWER]
    return frozenset(_steps(path.strip())[0] for paths in given for path in paths.replace("&", "|").split("|"))


def document_rows(document: Mapping[str, Any]) -> str | None:
    """Return the key of a JSON document under which the rows of a known log stand."""
    logs = (shape.document for shape in SHAPES if shape.document)
    return next((keys[-1] for keys in logs if all(key in document for key in keys)), None)


def is_row(document: RowObject) -> bool:
    """Return whether a JSON document is a single row: a chat, or a row of a known log. Else its keys name systems."""
    shape = shape_of(document)
    if shape is None or len(shape.signs) > 1:
        return shape is not None and not all(isinstance(value, list) for value in document.values())
    messages = value_at(document, shape.signs[0])
    return isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and ("role" in value or "from" in value)
