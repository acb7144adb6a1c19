"""Traces: conversations that are put together from spans.

A span is one step of a program: a call of a language model, a call of a tool, or anything else. OpenTelemetry (OTLP,
and the exports of Jaeger, Tempo and the SDKs), Langfuse, LangSmith, MLflow, Phoenix, Braintrust, Opik and TruLens all
write trees of them, under other names; `traces.toml` lists these names, and `TraceSpan` is what they have in common.

The spans of one conversation id, else of one trace, are a conversation. Its calls of models are read in the order of
their starts. The input of a call repeats what was said before: it is aligned with what is known by its texts, and only
what follows is new. A call without any overlap begins a thread of its own, such as that of an agent that is called as a
tool; what the assistant said before the first call is `history`, the context of replies and no reply. Calls of tools
are recognized again by their ids, else by name and arguments; a span of a tool gives the call its result.

A call that is logged twice, by two libraries or as the outer and the inner part of one span, has the same output at the
same time and counts once. A failed call that was repeated with success is left out. Where no call of a model has texts,
the outermost spans are read as calls; where these have none either, there is nothing to read.

What is held of a file until its end is a small record for each span about models or tools. The texts of OTLP lines stay
in the file; other spans are held as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson

from dialeval.core.errors import DataError, Problem, add_warning
from dialeval.core.validation import JsonObject
from dialeval.io.calls import dump
from dialeval.io.fields import FieldReader
from dialeval.io.messages import Message
from dialeval.io.rows import ASSISTANT, SYSTEM, TOOL, USER, FieldNames, RowObject, read_number
from dialeval.io.scores import read_scores
from dialeval.io.spans import (
    CHILDREN,
    HOLD_TEXTS,
    LISTED,
    SESSION,
    Export,
    TraceSpan,
    decode,
    find_marker,
    find_value,
    find_values,
    flatten,
    list_span_scores,
    make_span,
    open_span,
    parse_object,
    read_export,
    read_head,
    read_name,
    unpack_pairs,
)

# Conversations.


def _list_spans(document: object) -> Iterator[Any]:
    """Yield the spans and traces in a document, with the ids of the trace that they are in."""
    if isinstance(document, dict) and (document.keys() & {"resourceSpans", "batches", "resourceLogs"}):
        document = read_export(orjson.dumps(document))
    if isinstance(document, Export):
        for raw in document.list_raw():
            if find_marker(raw) is not None or b"gen_ai." in bytes(raw):
                yield raw
    elif isinstance(document, list):
        for item in document:
            yield from _list_spans(item)
    elif isinstance(document, dict):
        yield from _list_inner_spans(document)


def _list_inner_spans(document: RowObject) -> Iterator[RowObject]:
    trace = decode(document.get("trace"))
    if isinstance(trace, dict) and "info" in trace:  # a row of a table of MLflow
        document = trace
    is_mlflow = isinstance(document.get("info"), dict) and isinstance(document.get("data"), dict)
    if (
        isinstance(trace, dict) and trace is not document and "span_id" not in trace
    ):  # a trace of Langfuse or Opik next to its spans
        yield {key: value for key, value in trace.items() if key not in CHILDREN}
        document = {"id": trace.get("id")} | {name: value for name, value in document.items() if name in CHILDREN}
    elif isinstance(body := document.get("body"), dict) and "spanId" in document:  # a log record of OpenTelemetry
        told = {**unpack_pairs(document.get("attributes") or {}), **body}
        event = {"name": document.get("eventName") or told.get("event.name"), "attributes": told}
        texts = {side: body[side] for side in ("input", "output") if side in body}
        yield {**document, "events": [event], **texts}
    elif isinstance(body, dict):  # an event of Langfuse
        kind = document.get("type")
        known: RowObject = {"trace_id": body.get("id")} if kind == "trace-create" else {"type": kind}
        yield {"trace_id": body.get("traceId"), "scores": [body]} if kind == "score-create" else {**body, **known}
    elif is_mlflow:
        yield {"info": document["info"], "trace_id": find_value(document, "trace")}
    elif _looks_like_span(document):
        yield {key: value for key, value in document.items() if key not in CHILDREN}
    own = read_name(find_value(document, "trace")) or read_name(document.get("id"))
    for name in (*CHILDREN, *LISTED):
        inner: Any = document.get(name)
        if is_mlflow and name == "data":  # its spans name the trace in another way
            inner = inner.get("spans")
            yield from ({**span, "trace_id": own} for span in _list_spans(inner))
        elif isinstance(inner, list) and (name in CHILDREN or not _looks_like_span(document)):
            for span in _list_spans(inner):
                yield {"trace_id": own, **span} if isinstance(span, dict) and name in CHILDREN and own else span


def _looks_like_span(document: RowObject) -> bool:
    has_time = not {"start", "end"}.isdisjoint(find_values(document))
    is_typed = any(name in document for name in ("type", "run_type", "span_kind", "span_attributes", "metrics"))
    has_texts = any(name.partition(".")[0] in HOLD_TEXTS for name in document)
    return has_texts and (has_time or is_typed)


def assemble(rows: Iterable[tuple[int, object]], where: str, names: FieldNames) -> Iterator[tuple[int, RowObject]]:
    """Yield a chat for each conversation in the spans of an input, with the line of its first span."""
    traces: dict[str, list[tuple[int, Any]]] = {}
    conversations: dict[str, str] = {}
    for line, document in rows:
        for given in _list_spans(document):
            if isinstance(given, msgspec.Raw):
                trace, text = read_head(given).trace_id, bytes(given)
                named = any(word in text for word in SESSION)
            else:
                trace = read_name(find_value(given, "trace")) or read_name(given.get("id")) or ""
                named = True
            traces.setdefault(trace, []).append((line, given))
            if named and trace not in conversations:
                flat = flatten(open_span(given))
                session = None if "run_type" in flat else flat.get("session_id")  # of LangSmith it is the project
                conversation = read_name(find_value(flat, "conversation") or session)
                conversations |= {} if conversation is None else {trace: conversation}
    groups: dict[str, list[str]] = {}
    for trace in traces:
        groups.setdefault(conversations.get(trace, trace), []).append(trace)
    met, reader = _Met(), FieldReader("", names, [])
    for conversation, members in groups.items():
        held = [span for trace in members for span in traces.pop(trace)]
        spans = [make_span(given, reader) for given in _merge(open_span(span) for _, span in held)]
        row = _Builder(conversation or "trace", met).build(_place_scores(spans))
        met.unread += len(reader.problems)
        reader.problems.clear()
        if row is not None:
            yield held[0][0], row
    met.report(where)


def _merge(documents: Iterable[RowObject]) -> list[RowObject]:
    """Return spans, each once: one that is logged when it starts and when it ends, or whose events are log records."""
    merged: dict[tuple[object, ...], RowObject] = {}
    for at, document in enumerate(documents):
        facts = find_values(document)
        key = (read_name(facts.get("trace")), read_name(facts.get("id")) or at)
        known = merged.setdefault(key, document)
        if known is not document:
            for name, value in document.items():
                own = known.get(name)
                if isinstance(own, list) and isinstance(value, list) and name in ("events", "attributes"):
                    known[name] = own + [item for item in value if item not in own]
                elif isinstance(own, dict) and isinstance(value, dict):
                    known[name] = own | value
                elif value not in (None, "", [], {}):
                    known[name] = value
    return list(merged.values())


def _place_scores(spans: list[TraceSpan]) -> list[TraceSpan]:
    """Return spans with the scores that a trace lists for them."""
    by_id = {span.id: span for span in spans}
    for span in spans:
        for item in list_span_scores(span.facts.get("scores"), of_spans=True):
            by_id.get(str(find_value(item, "observation")), span).scores |= read_scores([item])
    return spans


@dataclass(slots=True)
class _Met:
    """What was met in the spans of an input, and is not in its conversations."""

    told: int = 0
    """Conversations with texts."""
    silent: int = 0
    """Calls of models without texts."""
    merged: int = 0
    repeated: int = 0
    unread: int = 0
    answers: dict[int, tuple[str, str, float, float]] = field(default_factory=dict)
    """Traces, kinds and times of answers, by the hashes of their texts."""

    def report(self, where: str) -> None:
        """Warn of what was left out; DataError where no span is a call of a model."""
        if not self.told and not self.silent:
            remedy = "give the spans of the models; or, where they are in the file, name the fields of rows: --field"
            raise DataError(Problem(where, None, "is a trace that has no call of a model", remedy))
        causes = (
            "; most likely the capture of contents is off (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, "
            "TRACELOOP_TRACE_CONTENT=true, OPENINFERENCE_HIDE_INPUTS=false turn it on), or a collector removed them, "
            "or they are log records in another file"
        )
        told = {
            f"calls of models have no texts and count as replies that are missing{causes}": self.silent,
            "messages or parts of messages hold no text and were left out": self.unread,
            "calls that another trace holds as well, at the same time, are counted once": self.merged,
            "failed calls were repeated with success and left out": self.repeated,
        }
        for what, number in told.items():
            if number:
                add_warning(f"{where}: {number:,} {what}")


class _Thread:
    """The texts of one line of messages, in order."""

    def __init__(self, trace: str) -> None:
        self.keys: list[tuple[str, str]] = []
        self.trace = trace

    def overlap(self, keys: list[tuple[str, str]], trace: str) -> int:
        """Return how many of the first texts of an input are the last ones here."""
        known = self.keys
        if len(keys) < len(known) and known[: len(keys)] == keys:  # the same question again
            return len(keys) if trace == self.trace else 0
        most = min(len(keys), len(known))
        return next((size for size in range(most, 0, -1) if known[-size:] == keys[:size]), 0)


class _Builder:
    """A builder of the chat of one conversation, span after span."""

    def __init__(self, conversation: str, met: _Met) -> None:
        self._conversation, self._met = conversation, met
        self._messages: list[RowObject | None] = []
        self._history: list[RowObject] = []
        self._threads: list[_Thread] = []
        self._calls: list[dict[str, Any]] = []
        self._failed: dict[tuple[Any, ...], list[int]] = {}
        self._prompt = ""

    def build(self, spans: list[TraceSpan]) -> RowObject | None:
        """Return the chat; None for spans that say nothing, or that another conversation has as well."""
        spans = sorted(spans, key=TraceSpan.time)
        self._mark_instructions(spans)
        models = _drop_repeated(self._choose(spans))
        told = [span for span in models if span.has_texts]
        silent = {span for span in models if not span.has_texts and not any(map(span.overlaps, told))}
        met = [self._was_met(span) for span in told if span.trace == self._conversation]
        if met and all(met):
            self._met.merged += len(met)
            return None
        tools = [span for span in spans if span.kind == "tool"]
        if not told and not silent:
            return None
        self._met.told += bool(told)
        last, with_texts, called = {span.trace: span for span in told if _answers(span)}, {*told}, {*models}
        scores: JsonObject = {}
        for span in spans:
            if span not in called:  # a score of one of several traces is one of its last reply
                place = last.get(span.trace) if len(last) > 1 else None
                if place is None:
                    scores |= span.scores
                else:
                    place.scores = span.scores | place.scores
        for span in spans:
            if span.kind == "tool":
                self._add_tool(span, tools)
            elif span in with_texts or (span in silent and span.error):
                self._add_call(span)
            elif span in silent:
                self._met.silent += 1
                self._messages.append({"role": ASSISTANT, "content": None, **_describe(span)})
        return self._finish(spans, models, scores)

    def _finish(self, spans: Sequence[TraceSpan], models: Sequence[TraceSpan], scores: Mapping[str, Any]) -> RowObject:
        messages = [message for message in self._messages if message is not None]
        prompt = [{"role": SYSTEM, "content": self._prompt}] if self._prompt else []
        answered = any(message.get("role") == ASSISTANT and message.get("content") for message in messages)
        row = {
            "id": self._conversation,
            "history": [*prompt, *self._history] if self._history else None,
            "messages": messages if self._history else [*prompt, *messages],
            "system": next((span.model for span in models if span.model), None),
            "scores": scores or None,
            "error": None if answered else next((span.error for span in spans if span.is_root and span.error), None),
        }
        return {name: value for name, value in row.items() if value is not None}

    def _choose(self, spans: Sequence[TraceSpan]) -> list[TraceSpan]:
        """Return the calls of models; of a trace whose calls have no texts the outermost span that has some."""
        chosen: set[TraceSpan] = set()
        traces: dict[str, list[TraceSpan]] = {}
        for span in spans:
            traces.setdefault(span.trace, []).append(span)
        for members in traces.values():
            models = [span for span in members if span.kind == "llm"]
            if not any(map(_answers, models)):
                outer = [span for span in members if span.kind == "" and span.has_texts]
                outer.sort(key=lambda span: (not _answers(span), not span.is_root))
                models = outer[:1] or models
            chosen.update(models)
        return [span for span in spans if span in chosen]

    def _mark_instructions(self, spans: Sequence[TraceSpan]) -> None:
        """Give what a program said in the name of the user, ahead of the user's own message, the role of a prompt."""
        asked = {
            message.text.strip()
            for span in spans
            if span.kind == ""
            for message in span.inputs
            if message.role == USER and message.text
        }
        for span in spans:
            first = next((at for at, said in enumerate(span.inputs) if said.text.strip() in asked), 0)
            if span.kind == "llm" and first:
                given = span.inputs[:first]
                span.inputs[:first] = [said._replace(role=SYSTEM) if said.role == USER else said for said in given]

    def _was_met(self, span: TraceSpan) -> bool:
        """Return whether a span of another kind in another trace has the same answer at the same time, to a second."""
        if span.start is None or span.end is None:
            return False
        own = (span.trace, f"{span.kind} {span.name}", span.start, span.end)
        key = hash((_read_question(span), _output_key(span)))
        trace, kind, start, end = self._met.answers.setdefault(key, own)
        if trace != own[0] and kind != own[1] and span.start <= end + 1 and start <= span.end + 1:
            return True
        self._met.answers[key] = own
        return False

    def _add_call(self, span: TraceSpan) -> None:
        """Add what is new in a call of a model: in its input, and its output."""
        self._prompt = self._prompt or "\n\n".join(
            said.text for said in span.inputs if said.role == SYSTEM and said.text
        )
        inputs = [said for said in span.inputs if said.role != SYSTEM]
        keys = [(said.role, said.text.strip()) for said in inputs if _is_text(said)]
        thread = max(self._threads, key=lambda each: each.overlap(keys, span.trace), default=None)
        overlap = 0 if thread is None else thread.overlap(keys, span.trace)
        if thread is None or (keys and not overlap):
            spoken = [at for at, said in enumerate(inputs) if said.role == ASSISTANT and said.text.strip()]
            begin = spoken[-1] + 1 if spoken else 0
            if thread is None:
                self._history = [_write(said) for said in inputs[:begin]]
            inputs, overlap = inputs[begin:], 0
            thread = _Thread(span.trace)
            self._threads.append(thread)
        self._add_inputs(inputs, overlap)
        texts = [said for said in span.outputs if _is_text(said)]
        thread.trace, thread.keys = span.trace, [*keys, *((said.role, said.text.strip()) for said in texts)]
        attempt = (span.trace, *keys, *(said.results for said in inputs))
        if not texts and not any(said.calls for said in span.outputs):
            if span.error is not None:
                self._failed.setdefault(attempt, []).append(len(self._messages))
            self._messages.append({"role": ASSISTANT, "content": None, **_describe(span)})
            return
        for at in self._failed.pop(attempt, ()):
            self._messages[at] = None
            self._met.repeated += 1
        for at, said in enumerate(span.outputs):
            new = self._add_new_calls(said.calls)
            if said.text.strip() or new:
                last = at == len(span.outputs) - 1
                self._messages.append({**_write(said), **(_describe(span) if last else {})})

    def _add_inputs(self, inputs: Sequence[Message], overlap: int) -> None:
        place = 0
        seen: dict[str, int] = {}
        for said in inputs:
            is_new = False
            if _is_text(said):
                is_new, place = place >= overlap, place + 1
            calls = self._add_new_calls(said.calls, seen)
            results = [result for result in said.results if self._take_result(result.id, result.name)]
            if is_new or calls or (results and said.role == TOOL):
                text = said.text if is_new or results else ""
                self._messages.append(_write(said._replace(text=text, calls=calls, results=tuple(results))))

    def _add_new_calls(self, calls: Iterable[Any], seen: dict[str, int] | None = None) -> tuple[Any, ...]:
        """Return the calls that are not known yet; `seen` counts equal ones in the same input."""
        new = []
        for call in calls:
            key = dump([call.name, call.arguments])
            alike = [one for one in self._calls if call.id is not None and one["id"] == call.id]
            by_key = call.id is None or (seen is not None and not alike)  # some libraries repeat calls by other ids
            alike = [one for one in self._calls if one["key"] == key] if by_key else alike
            number = seen.get(key, 0) if seen is not None and by_key else 0
            if seen is not None:
                seen[key] = number + 1
            if number >= len(alike) or (seen is None and call.id is None):
                self._calls.append({"id": call.id, "key": key, "name": call.name, "answered": False})
                new.append(call)
        return tuple(new)

    def _take_result(self, call_id: str | None, name: str | None) -> bool:
        """Return whether a result is new, and give it to its call."""
        waiting = [one for one in self._calls if not one["answered"]]
        by_id = [one for one in self._calls if call_id is not None and one["id"] == call_id]
        matching = by_id or [one for one in waiting if name in (None, one["name"])]
        if not matching or matching[0]["answered"]:
            return False
        matching[0]["answered"] = True
        return True

    def _add_tool(self, span: TraceSpan, tools: Sequence[TraceSpan]) -> None:
        """Add the call of a tool and its result, as far as they are not known."""
        name = read_name(span.facts.get("tool")) or span.name.rpartition(" ")[2]
        given = span.facts.get("arguments")
        call_id = read_name(span.facts.get("call_id"))
        said = [" ".join(message.text for message in side if message.text) for side in (span.inputs, span.outputs)]
        arguments = said[0] if span.by_events else span.facts.get("input")
        arguments = _unwrap_only(arguments if given is None else given, "input")
        raw = span.facts.get("result") or (said[1] if span.by_events else span.facts.get("output"))
        result = _unwrap_only(raw, "output")
        if not name:
            return
        key = dump([name, {} if arguments is None else arguments])
        known = [one for one in self._calls if (call_id is not None and one["id"] == call_id) or one["key"] == key]
        known = known or [one for one in self._calls if call_id is None and one["name"] == name and not one["answered"]]
        waiting = [one for one in known if not one["answered"]]
        is_new = not known or (not waiting and call_id is None)
        if known and is_new:  # the outer of two spans about the same call
            is_new = not any(other is not span and other.start is not None and other.overlaps(span) for other in tools)
        if is_new:
            call = {"id": call_id, "name": name, "arguments": arguments}
            waiting = [{"id": call_id, "key": key, "name": name, "answered": False}]
            self._calls += waiting
            self._messages.append({"role": ASSISTANT, "content": "", "tool_calls": [call]})
        if waiting and (result is not None or span.error):
            waiting[0]["answered"] = True
            text = next((value for value in (result, raw) if isinstance(value, str)), dump(result))
            told = {"tool_call_id": waiting[0]["id"], "name": name, "content": span.error or text}
            self._messages.append({"role": TOOL, **told, **({"is_error": True} if span.error else {})})


def _unwrap_only(value: object, name: str) -> Any:
    """Return the input or the output of a tool, without an object that holds nothing else."""
    value = parse_object(decode(value))
    return parse_object(decode(value[name])) if isinstance(value, dict) and value.keys() == {name} else value


def _is_text(message: Message) -> bool:
    return message.role in (USER, ASSISTANT) and bool(message.text.strip())


def _answers(span: TraceSpan) -> bool:
    return any(message.text.strip() or message.calls for message in span.outputs)


def _read_question(span: TraceSpan) -> str:
    return next((said.text.strip() for said in reversed(span.inputs) if said.role == USER and said.text), "")


def _output_key(span: TraceSpan) -> tuple[Any, ...]:
    """Return what makes two calls the same, next to their questions: what was said and called last."""
    answers = [
        (said.text.strip(), *((call.name, dump(call.arguments)) for call in said.calls)) for said in span.outputs
    ]
    return tuple(answers[-1:] if answers and answers[-1][0] else answers)


def _drop_repeated(models: list[TraceSpan]) -> list[TraceSpan]:
    """Return calls of models without those that another call has inside of it, or next to it, with the same output."""
    kept: dict[tuple[Any, ...], list[TraceSpan]] = {}
    for span in models:
        alike = kept.setdefault(_output_key(span) if _answers(span) else (id(span),), [])
        asked = _read_question(span)
        outer = next(
            (
                other
                for other in alike
                if other.trace == span.trace
                and other.overlaps(span)
                and (_read_question(other) in ("", asked) or not asked)
            ),
            None,
        )
        if outer is not None:
            alike.remove(outer)
            span.scores = outer.scores | span.scores
        alike.append(span)
    chosen = {id(span) for spans in kept.values() for span in spans}
    return [span for span in models if id(span) in chosen]


def _write(message: Message) -> RowObject:
    """Return a message as chats have it."""
    written: RowObject = {"role": message.role, "content": message.text}
    if message.calls:
        written["tool_calls"] = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.calls]
    if message.results:
        texts = [message.text] + [""] * (len(message.results) - 1)
        written["content"] = [
            {"type": "tool_result", "tool_use_id": result.id, "content": text, "is_error": result.error}
            for result, text in zip(message.results, texts, strict=True)
        ]
    return written


def _describe(span: TraceSpan) -> RowObject:
    """Return what a span says about its reply: latency, tokens, cost, scores, and errors."""
    seconds = None if span.start is None or span.end is None else span.end - span.start
    finish = span.facts.get("finish")
    more = {"latency": seconds, "finish_reason": finish if isinstance(finish, str) else None, "error": span.error}
    numbers = {name: read_number(span.facts.get(name)) for name in ("input_tokens", "output_tokens", "cost")}
    return {
        name: value for name, value in {**more, **numbers, "scores": span.scores or None}.items() if value is not None
    }
