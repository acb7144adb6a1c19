"""A chat-completions server on loopback for tests: it answers as a function says, and misbehaves on demand.

    with ChatServer(lambda request: Reply(grades={"quality": 4, "relevance": 5})) as server:
        LLM(endpoint=server.address, model="judge-1")

It speaks HTTP/1.1 by itself (asyncio, one thread), so that it can be slow, cut a body off or close a connection.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]
MODEL = "judge-1"


@dataclass(frozen=True)
class Reply:
    """What the server answers: grades by name as JSON, or whatever else it is told."""

    grades: Mapping[str, int] = field(default_factory=dict)
    text: str | None = None
    """Instead of the grades."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Instead of a chat completion."""
    cut: int | None = None
    """Send so many bytes of the body and close the connection."""
    delay: float = 0.0
    model: str | None = None
    """None: the one that was asked."""
    probabilities: Mapping[int, float] | None = None
    """Of grades, at the place of each grade; None: 0.9 for the grade itself."""
    logprobs: bool = True
    finish: str = "stop"


def asked_text(request: Body) -> str:
    """Return the message of a request."""
    return str(request["messages"][0]["content"])


def shown_texts(request: Body) -> dict[str, str]:
    """Return the texts of a request by what they are, as the marker of its material separates them."""
    text = asked_text(request)
    found = re.search("lines that begin with ([0-9a-f]{16})", text)
    assert found is not None
    parts = text.split(f"\n{found[1]} ")[1:]
    return dict(part.split("\n", 1) for part in parts[:-1])


def completion(reply: Reply, request: Body) -> bytes:
    """Return a chat completion as its bytes."""
    text = json.dumps(reply.grades) if reply.text is None else reply.text
    choice: Body = {"index": 0, "finish_reason": reply.finish, "message": {"role": "assistant", "content": text}}
    if request.get("logprobs") and reply.logprobs:
        choice["logprobs"] = {"content": [_token(part, reply) for part in _tokens(text)]}
    document = {
        "object": "chat.completion",
        "model": request["model"] if reply.model is None else reply.model,
        "choices": [choice],
        "usage": {"prompt_tokens": len(asked_text(request).split()), "completion_tokens": len(text.split())},
    }
    return json.dumps(document).encode()


def _tokens(text: str) -> list[str]:
    """Split a text into digits and what is between them."""
    parts: list[str] = []
    for letter in text:
        if parts and not letter.isdigit() and not parts[-1].isdigit():
            parts[-1] += letter
        else:
            parts.append(letter)
    return parts


def _token(part: str, reply: Reply) -> Body:
    weights: dict[str, float] = {part: 0.9}
    if part.isdigit() and reply.probabilities is not None:
        weights = {str(grade): weight for grade, weight in reply.probabilities.items()}
    tops = [{"token": token, "logprob": math.log(weight)} for token, weight in weights.items()]
    return {"token": part, "logprob": tops[0]["logprob"], "top_logprobs": tops}


class ChatServer:
    """Answers requests in a thread of its own; used in a `with` block."""

    def __init__(self, answer: Callable[[Body], Reply] | Reply) -> None:
        """Answer as a function says, or the same every time, which takes less of the processor."""
        self.answer = answer
        self._fixed = (
            _with_head(answer, completion(answer, {"model": MODEL, "messages": [{"content": ""}]}))
            if isinstance(answer, Reply)
            else None
        )
        self.bodies: list[bytes] = []
        self.headers: list[str] = []
        self.served = 0.0
        """Seconds from requests to answers, all together."""
        self.first = self.last = 0.0
        """When the first request came, and when the last answer was sent."""
        self.most_at_once = self._at_once = 0
        self.address = ""
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def requests(self) -> list[Body]:
        """The requests so far."""
        return [json.loads(body) for body in self.bodies]

    def __enter__(self) -> ChatServer:
        self._thread.start()
        assert self._ready.wait(600)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(600)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=512)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._answer_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
        content = await reader.readexactly(length)
        start = time.monotonic()
        self.first = self.first or start
        self.bodies.append(content)
        self.headers.append(head)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        if isinstance(self.answer, Reply):
            reply, answer = self.answer, self._fixed or b""
        else:
            request = json.loads(content)
            reply = self.answer(request)
            answer = _with_head(reply, completion(reply, request) if reply.body is None else reply.body)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        writer.write(answer)
        self._at_once -= 1
        self.last = time.monotonic()
        self.served += self.last - start
        if reply.cut is not None:
            await writer.drain()
            return False
        return True


def _with_head(reply: Reply, body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} Reason", f"Content-Length: {len(body)}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body[: reply.cut]
