"""Row shapes: where the chats, logs and data sets of other programs hold what a row holds, as one table.

A row with `response` or `messages` is ours. Any other row is looked up in `SHAPES`: the first shape whose signs are all
there (not null) says by paths where our fields are. `a.0.b` is key `a`, its first item, key `b`; `a | b` is the first
of the two that is there; `a & b` is both, one after the other. A JSON document may hold its rows in a list of its own
(`document`), and give them what it says of them all (`outer`, `joined`). A shape with `refused` is known and not read,
and says why; pairs of answers are read by `dialeval rank` (`pairs`). A new shape is a new entry, and nothing else:
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
    """The paths of a JSON document with such rows; the last one leads to the list of them."""
    outer: tuple[str, ...] = ()
    """Keys of the document that its rows get as well."""
    joined: tuple[str, str, str, str] | None = None
    """A field that rows get from a list of the document: its name, the list, and the paths in both that are equal."""
    only: tuple[str, ...] = ()
    """A path, and the values there of the rows that are answers; others are passed over."""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """The fields of a pair of answers, and where they are."""
    several: bool = False
    """Whether a response is a list of texts, those of several turns."""
    seen: bool = False
    """Whether the structure was taken from a real file, and not from documentation."""
    refused: str = ""
    """What to do instead, where such rows cannot be read."""
    unlike: tuple[str, ...] = ()
    """Our fields whose names such a row has for something else."""
    filter: str = ""
    """The field by which rows of one answer differ, where a program writes an answer once per filter of it."""

    @property
    def origin(self) -> str:
        """Return where its structure is known from."""
        return "seen in a real file" if self.seen else "from documentation, not seen in a real file"

    @property
    def main(self) -> str:
        """Return where its response or its messages are."""
        return next((self.paths[name] for name in MAIN if name in self.paths), "")

    @property
    def explained(self) -> str:
        """Return where our fields are; or why such rows are not read."""
        if self.pairs:
            return "pairs, for `dialeval rank`: " + "; ".join(f"{name} = {paths}" for name, paths in self.pairs.items())
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
    seen=True,
)
"""A row of ours; it is told by its response, without being looked up."""

_USER, _BOT = {"role": "user", "content": "When does it leave?"}, {"role": "assistant", "content": "At nine."}

_RANK = "rank the systems: dialeval rank FILE"

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
            "system": "eval.model",
            "trial": "epoch",
            "reward": "scores",
            "tool_calls": "messages",
        },
        {
            "id": 1,
            "epoch": 1,
            "input": [_USER],
            "target": "At 9.",
            "output": {"choices": [{"message": _BOT}]},
            "scores": {"match": {"value": "C"}},
        },
        document=("eval", "samples"),
        outer=("eval",),
        seen=True,
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
        {
            "response": "response.body.choices.0.message | response.body.output",
            "dialog_id": "custom_id",
            "system": "response.body.model",
        },
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
        "vertex",
        "an answer of a Gemini or Vertex batch",
        ("request.contents", "response.candidates"),
        {
            "response": "response.candidates.0.content",
            "context": "request.contents",
            "dialog_id": "key | id",
            "system": "response.modelVersion",
        },
        {
            "key": "r1",
            "request": {"contents": [{"role": "user", "parts": [{"text": "When does it leave?"}]}]},
            "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "At nine."}]}}]},
        },
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
        seen=True,
    ),
    RowShape(
        "arena-pair",
        "a battle of Chatbot Arena",
        ("model_a", "model_b", "winner"),
        example={
            "question_id": "q1",
            "model_a": "m",
            "model_b": "n",
            "winner": "model_a",
            "conversation_a": [_USER, _BOT],
            "conversation_b": [_USER, _BOT],
        },
        refused=_RANK,
        pairs={
            "a": "model_a",
            "b": "model_b",
            "better": "winner",
            "response_a": "conversation_a",
            "response_b": "conversation_b",
            "dialog_id": "question_id | id",
        },
    ),
    RowShape(
        "mt-bench-pair",
        "a pairwise judgment of MT-bench",
        ("model_1", "model_2", "g1_winner"),
        example={
            "question_id": 81,
            "model_1": "m",
            "model_2": "n",
            "g1_winner": "model_1",
            "g2_winner": "tie",
            "turn": 1,
        },
        refused=_RANK,
        pairs={"a": "model_1", "b": "model_2", "better": "g1_winner & g2_winner", "dialog_id": "question_id"},
    ),
    RowShape(
        "arena-hard-judgment",
        "a judgment of arena-hard",
        ("games", "model"),
        example={"uid": "q1", "model": "m", "baseline": "b", "games": [{"score": "B>A"}, {"score": "A>>B"}]},
        refused=_RANK,
        pairs={"a": "baseline", "b": "model", "better": "games", "dialog_id": "uid | question_id"},
    ),
    RowShape(
        "alpaca-eval-annotation",
        "an annotation of AlpacaEval",
        ("generator_1", "generator_2", "preference"),
        example={
            "instruction": "When does it leave?",
            "output_1": "At nine.",
            "generator_1": "m",
            "output_2": "Yes.",
            "generator_2": "n",
            "preference": 1.0,
        },
        refused=_RANK,
        pairs={
            "a": "generator_1",
            "b": "generator_2",
            "better": "preference",
            "response_a": "output_1",
            "response_b": "output_2",
            "dialog_id": "instruction",
        },
    ),
    RowShape(
        "mt-bench",
        "the answers of a model to a question of MT-bench, a row each",
        ("choices.0.turns", "question_id"),
        {"response": "choices.0.turns", "dialog_id": "question_id", "system": "model_id"},
        {"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["At nine.", "Hi."]}]},
        several=True,
        seen=True,
    ),
    RowShape(
        "mt-bench-judgment",
        "a score of MT-bench without the answer",
        ("judgment", "score", "question_id"),
        example={
            "question_id": 81,
            "model": "m",
            "judge": ["j", "single-v1"],
            "judgment": "Fine.",
            "score": 8,
            "turn": 1,
        },
        refused="put the score next to the answer, as scores, for `dialeval agreement`",
    ),
    RowShape(
        "openai-completion",
        "a logged chat completion of OpenAI",
        ("choices.0.message",),
        {
            "response": "choices.0.message",
            "context": "request.messages | input | messages",
            "dialog_id": "id",
            "system": "model",
        },
        {"id": "c1", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": _BOT}]},
    ),
    RowShape(
        "openai-response",
        "a logged response of the Responses API of OpenAI",
        ("output.0.type", "object"),
        {"response": "output", "context": "input | request.input", "dialog_id": "id", "system": "model"},
        {
            "id": "r1",
            "object": "response",
            "model": "m",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At nine."}]}
            ],
        },
    ),
    RowShape(
        "langfuse",
        "an observation of Langfuse",
        ("traceId | trace_id", "output", "type"),
        {
            "response": "output.choices.0.message | output",
            "context": "input.messages | input",
            "dialog_id": "sessionId | session_id | traceId | trace_id",
            "system": "model | provided_model_name",
        },
        {"id": "o1", "traceId": "t1", "type": "GENERATION", "model": "m", "input": [_USER], "output": _BOT},
        only=("type", "GENERATION"),
    ),
    RowShape(
        "phoenix",
        "a span of Phoenix (OpenInference)",
        ("attributes.output.value", "span_kind"),
        {
            "response": "attributes.llm.output_messages | attributes.output.value",
            "context": "attributes.llm.input_messages | attributes.input.value",
            "dialog_id": "attributes.session.id | context.trace_id",
            "system": "attributes.llm.model_name",
        },
        {
            "context.trace_id": "t1",
            "span_kind": "LLM",
            "attributes.llm.model_name": "m",
            "attributes.llm.input_messages": [{"message.role": "user", "message.content": "When does it leave?"}],
            "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": "At nine."}],
            "attributes.output.value": "At nine.",
        },
        only=("span_kind", "LLM"),
        unlike=("context",),
    ),
    RowShape(
        "rasa",
        "a tracker of Rasa",
        ("sender_id", "events"),
        {"messages": "events", "dialog_id": "sender_id"},
        {
            "sender_id": "c1",
            "events": [
                {"event": "action", "name": "action_listen"},
                {"event": "user", "text": "Hello"},
                {"event": "bot", "text": "Hi."},
            ],
        },
    ),
    RowShape(
        "arena",
        "a chat of LMSYS-Chat or WildChat",
        ("conversation",),
        {"messages": "conversation", "dialog_id": "conversation_id | conversation_hash", "system": "model"},
        {"conversation_id": "c1", "model": "m", "conversation": [_USER, _BOT], "turn": 1},
    ),
    RowShape(
        "tau-bench",
        "a trial of tau-bench",
        ("task_id", "traj"),
        {
            "messages": "traj",
            "dialog_id": "task_id",
            "trial": "trial",
            "reward": "reward",
            "reward_parts": "info.reward_info.info",
            "cost": "info.agent_cost",
            "expected_calls": "info.task.actions | info.reward_info.actions",
        },
        {"task_id": 0, "trial": 0, "reward": 1.0, "info": {"task": {"actions": []}}, "traj": [_USER, _BOT]},
        seen=True,
    ),
    RowShape(
        "tau2-bench",
        "a simulation of tau2-bench",
        ("task_id", "trial", "messages"),
        {
            "messages": "messages",
            "dialog_id": "task_id",
            "system": "info.agent_info.implementation & info.agent_info.llm",
            "trial": "trial",
            "reward": "reward_info.reward",
            "reward_parts": "reward_info.reward_breakdown",
            "termination": "termination_reason",
            "cost": "agent_cost",
            "expected_calls": "task.evaluation_criteria.actions | reward_info.action_checks",
        },
        {
            "id": "s1",
            "task_id": "0",
            "trial": 0,
            "reward_info": {"reward": 1.0, "reward_breakdown": {"DB": 1.0}},
            "termination_reason": "user_stop",
            "agent_cost": 0.01,
            "messages": [_USER, _BOT],
        },
        document=("tasks", "simulations"),
        outer=("info",),
        joined=("task", "tasks", "id", "task_id"),
        seen=True,
    ),
    RowShape(
        "arena-hard",
        "an answer of arena-hard",
        ("ans_id", "messages"),
        {"messages": "messages", "dialog_id": "uid | question_id", "system": "model"},
        {"uid": "q1", "ans_id": "a1", "model": "m", "messages": [_USER, _BOT | {"content": {"answer": "At nine."}}]},
        seen=True,
    ),
    RowShape(
        "chat",
        "a chat",
        ("messages",),
        {"messages": "messages", "dialog_id": "dialog_id | id", "system": "system", "reference": "reference"},
        {"id": "c1", "messages": [{"role": "system", "content": "Be short."}, _USER, _BOT]},
        seen=True,
    ),
    RowShape(
        "deepeval",
        "a test case of deepeval",
        ("actual_output", "input"),
        {
            "response": "actual_output",
            "context": "input",
            "reference": "expected_output",
            "tool_calls": "tools_called",
            "expected_calls": "expected_tools",
        },
        {
            "input": "When does it leave?",
            "actual_output": "At nine.",
            "expected_output": "At 9.",
            "context": ["Ferry times"],
            "retrieval_context": ["The ferry leaves at 9."],
        },
        unlike=("context",),
        seen=True,
    ),
    RowShape(
        "deepeval-run",
        "a test case of a test run of deepeval",
        ("actualOutput", "input"),
        {
            "response": "actualOutput",
            "context": "input",
            "reference": "expectedOutput",
            "tool_calls": "toolsCalled",
            "expected_calls": "expectedTools",
        },
        {"name": "test_case_0", "input": "When does it leave?", "actualOutput": "At nine.", "expectedOutput": "At 9."},
        document=("conversationalTestCases", "testCases"),
        unlike=("context",),
        seen=True,
    ),
    RowShape(
        "deepeval-chat",
        "a conversation of deepeval",
        ("scenario", "turns"),
        {"messages": "turns"},
        {"scenario": "A traveler asks for times.", "turns": [_USER, _BOT], "context": ["Ferry times"]},
        unlike=("context",),
        seen=True,
    ),
    RowShape(
        "promptfoo",
        "a result of promptfoo",
        ("prompt.raw", "response.output"),
        {"response": "response.output", "context": "prompt.raw", "system": "provider.id | provider"},
        {
            "prompt": {"raw": "When does it leave?"},
            "vars": {},
            "provider": {"id": "m"},
            "response": {"output": "At nine."},
            "success": True,
        },
        document=("results.results",),
        seen=True,
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
        {"response": "output", "context": "instruction & input", "dialog_id": "id", "system": "generator"},
        {"instruction": "Answer the question.", "input": "When does it leave?", "output": "At nine.", "generator": "m"},
        seen=True,
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


def find(row: RowObject, paths: str) -> Any:
    """Return what is at the first path that leads to something, or at all of them."""
    if "&" in paths:
        values = (value_at(row, path.strip()) for path in paths.split("&"))
        return [value for value in values if value is not None and not (isinstance(value, str) and not value)]
    return next((value for path in paths.split(" | ") if (value := value_at(row, path)) is not None), None)


def shape_of(row: RowObject) -> RowShape | None:
    """Return the shape that a row has all signs of."""
    for shape in _possible(tuple(row)):
        if all(find(row, sign) is not None for sign in shape.signs):
            return shape
    return None


@lru_cache(maxsize=64)
def _possible(keys: tuple[str, ...]) -> list[RowShape]:
    """Return the shapes that rows with these keys may have; found once, for the rows of a file have the same few."""
    return [shape for shape in SHAPES if _has_heads(keys, shape)]


def _has_heads(keys: Collection[str], shape: RowShape) -> bool:
    """Tell whether all signs of a shape begin with one of the keys, or are one."""
    return all(any(path in keys or _steps(path)[0] in keys for path in sign.split(" | ")) for sign in shape.signs)


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
    if shape.refused or find(row, shape.main) is None:
        return None
    found = {name: row[name] for name in names.beside if name not in shape.unlike and row.get(name) is not None}
    taken = {getattr(names, name): find(row, paths) for name, paths in shape.paths.items()} | found
    if isinstance(parts := taken.get(names.system), list):  # such as an agent and its model
        taken[names.system] = "/".join(map(str, parts)) or None
    return taken


def several_turns(row: RowObject, given: RowObject, names: FieldNames) -> list[RowObject]:
    """Return a row of its own for each turn, where the shape of what was given has those of several turns in one."""
    said = row.get(names.response)
    if not isinstance(said, list) or (shape := shape_of(given)) is None or not shape.several:
        return [row]
    return [{**row, names.response: text, names.turn: turn} for turn, text in enumerate(said)]


_UNLIKE = [shape for shape in SHAPES if shape.unlike]


def unlike_fields(keys: Collection[str], names: FieldNames) -> list[str]:
    """List the fields that are ours by their names alone, in rows with these keys whose response was named by hand."""
    shape = next((shape for shape in _UNLIKE if shape.signs[0] in keys), None) if names.mapped else None
    return [] if shape is None else [name for name in shape.unlike if name in keys and getattr(names, name) == name]


def _without_unlike(row: RowObject, names: FieldNames) -> RowObject:
    unlike = unlike_fields(row.keys(), names)
    if not unlike:
        return row
    add_warning(f"the field {', '.join(unlike)} of a test case of deepeval is not a conversation and was ignored")
    return {key: value for key, value in row.items() if key not in unlike}


class Filters:
    """The answers that a program wrote once per filter of them: which were met, and how many were met again."""

    def __init__(self) -> None:
        self._first: dict[str, object] = {}
        self.again = 0

    def pass_over(self, row: RowObject) -> bool:
        """Tell whether a row is no answer, or repeats one that was there under another filter, which is counted."""
        shape = shape_of(row) if row.keys() & _FILTERS else None
        if shape is not None and shape.only:
            return value_at(row, shape.only[0]) not in shape.only[1:]
        if shape is None or not shape.filter:
            return False
        answer = repr([row.get(name) for name in _ANSWER])
        again = self._first.setdefault(answer, row.get(shape.filter)) != row.get(shape.filter)
        self.again += again
        return again


_FILTERS = {name for shape in SHAPES for name in (shape.filter, *shape.only[:1]) if name}
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
        lacking = [sign for sign in shape.signs if find(row, sign) is None]
        if shape.signs[0] not in lacking and len(lacking) * 2 <= len(shape.signs) and not shape.refused:
            remedy = "give it, or map the names it has: --field response=NAME; `dialeval formats` lists what is read"
            return f"looks like {shape.title}, but lacks {', '.join(lacking)}", remedy
    return None


def nearest(keys: Collection[str]) -> str | None:
    """Return the name of the shape whose example has most keys in common with a row; None where none has any."""
    there = set(keys)

    def likeness(shape: RowShape) -> float:
        return len(there & shape.example.keys()) / len(there | shape.example.keys())

    best = max(SHAPES, key=likeness)
    return best.name if likeness(best) else None


def may_hold_rows(header: Collection[str], names: FieldNames) -> bool:
    """Return whether rows with these columns can hold a response or messages."""
    if any(name in header or _steps(name)[0] in header for name in (names.response, names.messages)):
        return True
    return not names.mapped and any(_has_heads(header, shape) for shape in SHAPES)


@cache
def columns() -> frozenset[str]:
    """Return the columns of a table that some shape looks at."""
    given = [paths for shape in SHAPES for paths in (*shape.paths.values(), *shape.signs, *shape.only[:1])]
    paths = [path.strip() for each in (*given, *_FILTERS, *_ANSWER) for path in each.replace("&", "|").split("|")]
    return frozenset(paths) | frozenset(_steps(path)[0] for path in paths)


def document_rows(document: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
    """Return the path of a JSON document at which the rows of a known log are, and these rows.

    They have what the document says of all of them; a list that does not hold objects is left as it is.
    """
    for shape in SHAPES:
        found = [value_at(document, path) for path in shape.document]
        if found and isinstance(found[-1], list) and None not in found:
            outer = {key: document[key] for key in shape.outer if key in document}
            by_key: dict[Any, Any] = {}
            if shape.joined is not None:
                items = [each for each in document[shape.joined[1]] or () if isinstance(each, dict)]
                by_key = {str(value_at(each, shape.joined[2])): each for each in items}
            rows = [_completed(row, shape, outer, by_key) if isinstance(row, dict) else row for row in found[-1]]
            return shape.document[-1], rows
    return None


def _completed(row: RowObject, shape: RowShape, outer: RowObject, by_key: Mapping[Any, Any]) -> RowObject:
    """Return a row with what its document says of it."""
    other = None if shape.joined is None else by_key.get(str(value_at(row, shape.joined[3])))
    mine = {} if shape.joined is None or other is None else {shape.joined[0]: other}
    return {**outer, **mine, **row} if outer or mine else row


def is_row(document: RowObject) -> bool:
    """Return whether a JSON document is a single row: a chat, or a row of a known log. Else its keys name systems."""
    shape = shape_of(document)
    if shape is None or len(shape.signs) > 1:
        return shape is not None and not all(isinstance(value, list) for value in document.values())
    messages = value_at(document, shape.signs[0])
    return isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and ("role" in value or "from" in value)
