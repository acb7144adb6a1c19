"""Logs of other programs whose rows are no conversations: events, trees and documents of many kinds.

An assembler takes all rows of a file and yields chats in our own format (`docs/formats.md`). `row_shapes.toml` says by
which fields a file is recognized, and names its assembler.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TypeAlias

from dialeval.core.errors import DataError, Problem, add_warning
from dialeval.core.validation import JsonObject
from dialeval.io import opening
from dialeval.io.calls import dump
from dialeval.io.messages import ROLES
from dialeval.io.opening import read_lines, stem_of
from dialeval.io.row_shapes import find, find_document_rows, find_shape, value_at
from dialeval.io.rows import ASKED, ASSISTANT, SYSTEM, TOOL, USER, FieldNames, Records, RowObject
from dialeval.io.scores import collect_scores, read_scores

Numbered: TypeAlias = Iterable[tuple[int, object]]
Assembler: TypeAlias = Callable[[Numbered, str], Iterator[tuple[int, RowObject]]]

PEEKED = 8
"""Rows among which the first one with a known shape is looked for."""


def peek_rows(records: Records, names: FieldNames) -> tuple[object, Iterator[tuple[int, object]]]:
    """Return the first row whose shape is known, else the first of all; and all rows."""
    rows = iter(records.rows)
    held: list[tuple[int, object]] = []
    first: object = None
    for line, row in islice(rows, PEEKED):
        held.append((line, row))
        if not isinstance(row, dict) or names.response in row or find_shape(row) is not None:
            first = row
            break
    return held[0][1] if held and first is None else first, chain(held, rows)


def find_assembler(row: object, names: FieldNames) -> Assembler | None:
    """Return what puts conversations together from rows like this one; None for rows that are conversations."""
    shape = find_shape(row) if isinstance(row, dict) and not names.mapped else None
    if shape is None and isinstance(row, dict) and not names.mapped:  # a page of traces
        inner = find_document_rows(row)
        shape = find_shape(inner[1][0]) if inner and inner[1] and isinstance(inner[1][0], dict) else None
        shape = shape if shape is not None and shape.assembler == "spans" else None
    if hasattr(row, "list_raw") or (shape is not None and shape.assembler == "spans"):  # the first: of OTLP lines
        from dialeval.io.traces import assemble  # loads msgspec

        return partial(_assemble, partial(assemble, names=names), "a trace")
    if shape is None and isinstance(row, dict) and any(map(_GRADED.match, filter(None, map(str, row.values())))):
        return _read_promptfoo_table
    known = shape is not None and shape.assembler
    return partial(_assemble, ASSEMBLERS[shape.assembler], shape.title) if shape is not None and known else None


def _assemble(assembler: Assembler, title: str, rows: Numbered, where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield what an assembler does; DataError where a file has the signs of a program, and is built otherwise."""
    place = 1

    def count() -> Iterator[tuple[int, object]]:
        nonlocal place
        for line, row in rows:
            place = line
            yield line, row

    try:
        yield from assembler(count(), where)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError) as error:
        what = f"looks like {title}, but is built in another way ({type(error).__name__}: {error})"
        remedy = "export it again; or write its chats as messages with role and content"
        raise DataError(Problem(where, place, what, remedy)) from None


def _chat(name: object, messages: Iterable[RowObject], **more: object) -> RowObject:
    return {"id": name, "messages": list(messages), **{key: value for key, value in more.items() if value is not None}}


def _list_events(rows: Numbered) -> Iterator[tuple[int, JsonObject]]:
    return ((line, row) for line, row in rows if isinstance(row, dict))


# Sessions of coding agents: a file of events.


def _read_claude_code(rows: Numbered, _where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield a chat for each session, and for each agent that works for it; a message is written in several events."""
    chats: dict[str, tuple[int, dict[object, RowObject], list[str]]] = {}
    met: set[object] = set()  # a session that is resumed repeats events
    known_session: object = None
    for line, event in _list_events(rows):
        message = event.get("message")
        if not isinstance(message, dict) or event.get("isMeta"):
            continue
        if (unique := event.get("uuid") or line) in met:
            continue
        met.add(unique)
        side = event.get("agentId") or "sidechain" if event.get("isSidechain") else ""
        known_session = find(event, "sessionId | session_id") or known_session
        session = " ".join(filter(None, (str(known_session), str(side))))
        _, messages, models = chats.setdefault(session, (line, {}, []))
        parts = find(message, "content | parts")
        parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else list(parts or ())
        known = messages.setdefault(message.get("id") or unique, {**message, "parts": None, "content": []})
        known |= {"timestamp": event.get("timestamp"), "error": event.get("isApiErrorMessage")}
        known["content"] = [*known["content"], *parts]  # type: ignore[misc]
        models += [str(message["model"])] if message.get("model") else []
    for session, (line, messages, models) in chats.items():
        said = list(messages.values())
        for message, after in zip(said, [*said[1:], {}], strict=True):
            if str(value_at(message, "content.0.text")).startswith(_CLAUDE_FRAMES) and after.get("role") != ASSISTANT:
                message["role"] = SYSTEM
        if any(message.get("role") != SYSTEM for message in said):
            yield line, _chat(session, said, system=models[0] if models else None)


_CLAUDE_FRAMES = ("<command-", "<local-command-", "<bash-", "[Request interrupted by user")
"""How what the user does to Claude Code itself begins, such as /exit, which no model answers."""


def _read_codex(rows: Numbered, where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield the chat of a session."""
    facts: RowObject = {}
    messages: list[RowObject] = []
    for _, event in _list_events(rows):
        kind, item = event.get("type"), event.get("payload", event)
        if not isinstance(item, dict) or item.get("type") == "reasoning":
            continue
        if kind == "response_item" or (item is event and kind is not None):  # the second: before version 0.30
            messages.append({**item, "timestamp": event.get("timestamp")})
        elif kind in ("session_meta", "turn_context", None):
            facts = {**item, **facts}
    for message in messages:
        text = value_at(message, "content.0.text")
        if isinstance(text, str) and text.startswith(_CODEX_FRAMES):
            message["role"] = SYSTEM
    yield 1, _chat(facts.get("id", stem_of(where)), messages, system=facts.get("model"))


def _read_codex_exec(rows: Numbered, where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield the chat of the events that `codex exec --json` prints: what is completed."""
    name: object = stem_of(where)
    messages: list[RowObject] = []
    for _, event in _list_events(rows):
        name, item = event.get("thread_id", name), event.get("item")
        item = item if isinstance(item, dict) and event.get("type") == "item.completed" else {}
        kind = item.get("type")
        if kind == "agent_message":
            messages.append({"role": ASSISTANT, "content": item["text"]})
        elif kind not in (None, "reasoning", "todo_list", "error"):
            call = {"name": item.get("tool", kind), "arguments": find(item, "arguments | command | query | changes")}
            failed = item.get("status") == "failed" or bool(item.get("exit_code"))
            result = {"role": TOOL, "content": dump(find(item, "aggregated_output | result")), "is_error": failed}
            messages += [{"role": ASSISTANT, "content": "", "tool_calls": [{"id": item["id"], **call}]}]
            messages += [{**result, "tool_call_id": item["id"]}]
    yield 1, _chat(name, messages)


_CODEX_FRAMES = ("<environment_context>", "<user_", "# AGENTS.md", "<permissions", "<turn_aborted>")
"""What Codex says to the model in the name of the user."""


def _read_openhands(rows: Numbered, where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield the chat of a trajectory: messages, actions as calls of tools, and observations as their results."""
    messages: list[RowObject] = []
    for _, event in _list_events(rows):
        action, source, number = event.get("action"), event.get("source"), str(event.get("id"))
        args = event.get("args")
        text = value_at(event, "args.content") or value_at(event, "args.final_thought") or event.get("message") or ""
        spoken: RowObject = {"role": USER if source == "user" else ASSISTANT, "timestamp": event.get("timestamp")}
        if action in ("message", "finish"):
            messages.append({**spoken, "content": event.get("message") if action == "finish" else text})
        elif action is not None and source == "agent" and action not in ("system", "recall", "change_agent_state"):
            called = [{"id": number, "name": action, "arguments": args}]
            messages.append({**spoken, "content": "", "tool_calls": called})
        elif event.get("observation") and event.get("cause") is not None and messages:
            result = {"role": TOOL, "tool_call_id": str(event["cause"]), "content": event.get("content") or ""}
            messages.append({**result, "timestamp": event.get("timestamp")})
    yield 1, _chat(stem_of(where), messages)


def read_markdown(path: opening.PathSource) -> Records:
    """Return the chats of a history that aider writes as Markdown: what the user says (####), and replies.

    What tools print (>) and what stands before the first turn of a user is neither.
    """
    where, rows = os.fspath(path), list[tuple[int, RowObject]]()
    messages: list[dict[str, str]] = []
    before = ""
    for line, text in enumerate(read_lines(path), 1):
        is_start = text.startswith("# aider chat started at")
        if is_start or not rows:
            messages = []
            rows.append((line, {"id": f"{stem_of(where)} {len(rows) + 1}", "messages": messages}))
        role = USER if text.startswith("#### ") else "" if is_start or text.startswith("> ") else ASSISTANT
        if role == before and role and messages:
            messages[-1]["content"] += f"\n{text.removeprefix('#### ')}"
        elif role == USER or (role and messages and text.strip()):
            messages.append({"role": role, "content": text.removeprefix("#### ")})
        before = role if messages and messages[-1]["role"] == role else ""
    spoken = [(line, row) for line, row in rows if row["messages"]]
    if not spoken:
        remedy = "give JSONL, JSON, CSV or Parquet; of Markdown only the chat history of aider is read"
        raise DataError(Problem(where, None, "is Markdown without a turn of a user (####)", remedy))
    return Records(where, spoken)


# Documents, each of which is a conversation or several.


def _read_documents(rows: Numbered, _where: str) -> Iterator[tuple[int, RowObject]]:
    for line, document in rows:
        shape = find_shape(document) if isinstance(document, dict) else None
        read = None if shape is None else _DOCUMENTS.get(shape.name)
        for row in read(document) if read is not None else ():  # type: ignore[arg-type]
            yield line, row


def _read_adk_session(session: JsonObject) -> Iterator[RowObject]:
    messages = []
    for event in session["events"]:
        content = event.get("content") or {}
        parts = content.get("parts") or ()
        is_result = any("function_response" in part or "functionResponse" in part for part in parts)
        if parts and not event.get("partial"):
            role = USER if event.get("author") == USER or is_result else ASSISTANT
            messages.append({"role": role, "parts": parts, "timestamp": event.get("timestamp")})
        elif (error := find(event, "error_message | errorMessage | error_code | errorCode")) is not None:
            messages.append({"role": ASSISTANT, "content": "", "error": error, "timestamp": event.get("timestamp")})
    yield _chat(session.get("id"), messages, system=session.get("app_name") or session.get("appName"))


def _read_adk_evalset(document: JsonObject) -> Iterator[RowObject]:
    for case in find(document, "eval_cases | evalCases"):
        messages = []
        for turn in case.get("conversation") or ():
            messages.append({**(find(turn, "user_content | userContent") or {}), "role": USER})
            uses = find(turn, "intermediate_data.tool_uses | intermediateData.toolUses") or ()
            calls = [{"functionCall": use} for use in uses]
            messages += [{"role": ASSISTANT, "parts": calls}] if calls else []
            messages.append({**(find(turn, "final_response | finalResponse") or {"content": None}), "role": ASSISTANT})
        yield _chat(find(case, "eval_id | evalId"), messages)


def _read_sdialog(document: JsonObject) -> Iterator[RowObject]:
    """Yield a dialogue; who is the assistant is told by the roles of the personas, else it is the second to speak."""
    personas = document.get("personas") or {}
    speakers = list(dict.fromkeys(str(turn.get("speaker")) for turn in document["turns"]))
    told = {name: str(value_at(personas, f"{name}.role") or name).lower() for name in speakers}
    serving = {name for name, role in told.items() if any(word in role for word in _SERVING)}
    served = {name for name, role in told.items() if any(word in role for word in _SERVED)} - serving
    users = (served or set(speakers) - serving) if served or serving else set(speakers[:1])
    if users == set(speakers) or not (served or serving):
        add_warning(f"no role says who the assistant is; {speakers[0]} is read as the user (--role NAME=assistant)")
    messages = [
        {"role": USER if turn.get("speaker") in users else ASSISTANT, "content": turn.get("text")}
        for turn in document["turns"]
    ]
    yield _chat(document.get("id"), messages, system=value_at(document, "model.name"))


_SERVED = ("customer", "user", "client", "patient", "caller", "student", "guest", "buyer", "visitor")
_SERVING = ("agent", "support", "assistant", "system", "bot", "doctor", "clerk", "teacher", "representative")


def _read_rasa(tracker: JsonObject) -> Iterator[RowObject]:
    """Yield the chat of a tracker; without texts of the bot its actions are all that is known of what it did."""
    events = [event for event in tracker["events"] if isinstance(event, dict)]
    has_texts = any(event.get("event") == "bot" for event in events)
    messages = []
    for event in events:
        kind, name = event.get("event"), str(event.get("name"))
        if kind in ("user", "bot"):
            role = USER if kind == "user" else ASSISTANT
            messages.append({"role": role, "content": event.get("text") or "", "timestamp": event.get("timestamp")})
        elif kind == "action" and name not in _RASA_ACTIONS and not (has_texts and name.startswith("utter_")):
            call = {"role": ASSISTANT, "content": "", "tool_calls": [{"name": name, "arguments": {}}]}
            messages.append({**call, "timestamp": event.get("timestamp")})
    yield _chat(tracker.get("sender_id"), messages)


def _read_rasa_events(rows: Numbered, _where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield the chats of events, as the event broker writes them."""
    trackers: dict[object, tuple[int, list[RowObject]]] = {}
    for line, event in _list_events(rows):
        trackers.setdefault(event.get("sender_id"), (line, []))[1].append(event)
    for sender, (line, events) in trackers.items():
        yield from ((line, chat) for chat in _read_rasa({"sender_id": sender, "events": events}))


_RASA_ACTIONS = frozenset(
    f"action_{name}"
    for name in ("listen", "restart", "session_start", "default_fallback", "deactivate_loop", "back", "extract_slots")
)
"""Actions of Rasa itself."""


def _read_tree(document: JsonObject) -> Iterator[RowObject]:
    """Yield a row for each reply in a tree of messages, with those above it as its context.

    A message of the user counts as a turn of the first reply to it; one without a reply, of the reply above it.
    """
    waiting: list[tuple[JsonObject, list[RowObject], int]] = [(document["prompt"], [], 0)]
    while waiting:
        node, above, asked = waiting.pop()
        replies = [reply for reply in node.get("replies") or () if isinstance(reply, dict)]
        is_reply = ROLES.get(str(node.get("role"))) == ASSISTANT
        if is_reply:
            asked += sum(not reply.get("replies") for reply in replies)
            place = {"dialog_id": document["message_tree_id"], ASKED: asked}
            yield {"response": node.get("text"), "context": above, **place}
        turns = [*above, {"role": node.get("role"), "content": node.get("text")}]
        counts = [int(not is_reply and not number) for number in range(len(replies))]
        waiting += [(reply, turns, count) for reply, count in zip(reversed(replies), reversed(counts), strict=True)]


def _read_samples(document: JsonObject) -> Iterator[RowObject]:
    """Yield a row for each sampled reply; each configuration is a system."""
    for number, asked in enumerate(document["prompts"], 1):
        for result in asked["results"]:
            system = f"{document['model_name']}/{result.get('sampling_config')}"
            row = {"context": asked["prompt"], "dialog_id": number, "system": system}
            yield from ({"response": text, ASKED: int(not at), **row} for at, text in enumerate(result["outputs"]))


def _read_ticks(document: JsonObject) -> Iterator[RowObject]:
    """Yield the chat of a simulation by voice, of whose ticks each holds a part of what is said."""
    messages: list[JsonObject] = []
    for tick in document["ticks"]:
        for name, role in (("user_chunk", USER), ("agent_chunk", ASSISTANT)):
            text = value_at(tick, f"{name}.content")
            if isinstance(text, str) and text:
                if not messages or messages[-1]["role"] != role:
                    messages.append({"role": role, "content": ""})
                messages[-1]["content"] = f"{messages[-1]['content']} {text}".strip()
    yield _chat(document.get("id"), messages)


_DOCUMENTS: dict[str, Callable[[JsonObject], Iterator[RowObject]]] = {
    "adk-session": _read_adk_session,
    "adk-evalset": _read_adk_evalset,
    "sdialog": _read_sdialog,
    "rasa": _read_rasa,
    "oasst-tree": _read_tree,
    "oasst-sampling": _read_samples,
    "tau2-voice": _read_ticks,
}


def _read_promptfoo(rows: Numbered, where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield a row for each result; where an evaluation has several prompts, each of them is a system."""
    given = list(_list_events(rows))
    labels = [str(find(row, "prompt.label | prompt.display | prompt.raw")) for _, row in given]
    numbers = {label: f"prompt-{number}" for number, label in enumerate(dict.fromkeys(labels), 1)}
    if len(numbers) > 1:
        listed = "; ".join(f"{name}: {label!r:.60}" for label, name in numbers.items())
        add_warning(f"{where}: each of {len(numbers)} prompts is a system: {listed}")
    met = Counter[tuple[object, ...]]()
    for (line, row), label in zip(given, labels, strict=True):
        provider = find(row, "provider.label | provider.id | provider") or stem_of(where)
        system = f"{provider}/{numbers[label]}" if len(numbers) > 1 else provider
        output, is_error = value_at(row, "response.output"), row.get("failureReason") == 2
        test = dump(row.get("vars") or {"testIdx": row.get("testIdx")})
        met[system, test] += 1  # tests with equal variables, and repeated ones, are kept apart
        parts = [read_scores(value_at(row, path)) for path in ("namedScores", "gradingResult.componentResults")]
        scores = collect_scores(row, ("score=score",))
        for named in parts:  # a single one is the score itself
            scores |= named if len(named) > 1 else {}
        yield (
            line,
            {name: row.get(name) for name in ("success", "cost")}
            | {
                "response": output if output is None or isinstance(output, str) else dump(output),
                "context": value_at(row, "prompt.raw"),
                "dialog_id": test if met[system, test] == 1 else f"{test} ({met[system, test]})",
                "system": system,
                "scores": scores,
                "latency_ms": row.get("latencyMs"),
                "error": value_at(row, "response.error") or (row.get("error") if is_error or output is None else None),
            },
        )


_GRADED = re.compile(r"\[(PASS|FAIL|ERROR)\](?: |$)(?:\(([\d.]+)\) ?)?")
"""How promptfoo begins the cells of its tables."""


def _read_promptfoo_table(rows: Numbered, _where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield a row for each prompt of each test; columns with a graded cell are prompts, others variables of tests."""
    tests = list(_list_events(rows))
    grades = {(line, name): _GRADED.match(str(cell or "")) for line, row in tests for name, cell in row.items()}
    graded = {name for (_, name), found in grades.items() if found is not None}
    prompts = [name for name in dict.fromkeys(name for _, name in grades) if name in graded]
    met = Counter[str]()
    for line, row in tests:
        test = dump({name: cell for name, cell in row.items() if name not in graded})
        met[test] += 1
        place = test if met[test] == 1 else f"{test} ({met[test]})"  # repeated tests are kept apart
        for number, name in enumerate(prompts, 1):
            said, told, found = str(row.get(name) or ""), dict[str, object](), grades.get((line, name))
            if found is not None:
                said = said[found.end() :]
                told = {"scores": {"score": float(found[2])} if found[2] else {}, "success": found[1] == "PASS"}
                told["error"] = said or found[1] if found[1] == "ERROR" else None
            yield line, {"response": said, "dialog_id": place, "system": f"prompt-{number}", **told}


def _read_samples_with_scores(rows: Numbered, _where: str) -> Iterator[tuple[int, RowObject]]:
    """Yield a row for each sample of Every Eval Ever, which has a line for each of its scores."""
    samples: dict[tuple[object, ...], tuple[int, RowObject]] = {}
    for line, sample in _list_events(rows):
        name = str(sample.get("evaluation_name") or "score")
        score = {name: value_at(sample, "evaluation.score")}
        key = (sample.get("model_id"), sample.get("sample_id"), sample.get("sample_hash"))
        _, row = samples.setdefault(key, (line, {"scores": {}, "dialog_id": key[1], "system": key[0]}))
        row["scores"] = {**row["scores"], **score}  # type: ignore[dict-item]
        row["reference"], row["error"] = value_at(sample, "input.reference"), sample.get("error")
        if sample.get("messages"):
            del row["reference"]
            row["messages"] = sample["messages"]
        else:
            row["response"] = find(sample, "output.raw.0 | output.raw")
            row["context"] = find(sample, "input.formatted | input.raw")
    yield from samples.values()


ASSEMBLERS: dict[str, Assembler] = {
    "claude-code": _read_claude_code,
    "codex": _read_codex,
    "codex-exec": _read_codex_exec,
    "rasa-events": _read_rasa_events,
    "openhands": _read_openhands,
    "documents": _read_documents,
    "promptfoo": _read_promptfoo,
    "every-eval-ever": _read_samples_with_scores,
}
