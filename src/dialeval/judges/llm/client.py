"""Send chat-completions requests to an OpenAI-compatible endpoint, many at a time, within budgets.

`post` is the only function that opens a connection. It uses the HTTP client of the standard library and keeps
connections open: nothing has to be installed, and a request takes little processor time.

A request that fails for a passing reason (no connection, a timeout, a body that is cut off, status 408, 409, 425, 429
or 5xx) is sent again after a pause that doubles, with jitter; `Retry-After` lengthens the pause, for all threads. A
refusal of the key or the address (401, 403, 404) ends the run. Any other status, and an answer by another model than
the one that was asked, is the failure of this one request. Where none of the first requests succeeds, the run ends.

The key comes from an environment variable and is sent in one header. It is removed from whatever a server returns
before anything else sees the text.
"""

from __future__ import annotations

import http.client
import os
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta, Struct

from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.version import __version__

KEY_VARIABLE = "DIALEVAL_LLM_KEY"
MOST_BYTES = 1 << 24
"""Of an answer."""
_PASSING = frozenset({408, 409, 425, 429})
_REFUSED = {401: "refuses the key", 403: "refuses access", 404: "does not know the address or the model"}
_LONGEST_PAUSE = 60.0
_LONGEST_ASKED = 600.0
"""Seconds of `Retry-After` that are waited at most."""
FIRST_REQUESTS = 32
"""If so many requests failed and none succeeded, the run ends."""
_MASK = b"***"


class Alternative(Struct):
    """A token that the model might have written, with the logarithm of its probability."""

    token: str
    logprob: float


class Token(Alternative):
    """A token of the answer, with the most probable ones at its place."""

    top_logprobs: list[Alternative] = []


class _CompletionChoice(Struct):
    message: dict[str, Any]
    finish_reason: str | None = None
    logprobs: dict[str, list[Token] | None] | None = None


class Completion(Struct):
    """The part of a chat completion that is read."""

    choices: Annotated[list[_CompletionChoice], Meta(min_length=1)]
    model: str = ""
    usage: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """The answer; empty where there is none."""
        content = self.choices[0].message.get("content")
        return content if isinstance(content, str) else ""

    @property
    def is_cut(self) -> bool:
        """Whether the answer ends at the limit of tokens."""
        return self.choices[0].finish_reason == "length"

    @property
    def tokens(self) -> list[Token] | None:
        """The tokens of the answer with their probabilities; None where the server returns none."""
        return (self.choices[0].logprobs or {}).get("content")


read_completion = msgspec.json.Decoder(Completion).decode
"""Read an answer; msgspec.ValidationError for anything else."""


class FailedRequestError(Exception):
    """A request that was not answered; the text is the reason."""


class StoppedError(Exception):
    """The run ends: no further request is sent."""


Idle = list[http.client.HTTPConnection]
"""Connections that no thread uses."""


def post(
    idle: Idle, address: SplitResult, body: bytes, headers: Mapping[str, str], timeout: float
) -> tuple[http.client.HTTPResponse, bytes]:
    """Send a request on an idle connection or a new one; OSError or HTTPException where there is no whole answer."""
    try:
        connection = idle.pop()
    except IndexError:
        connection = _connect(address, timeout)
    try:
        connection.request("POST", address.path, body, dict(headers))
        response = connection.getresponse()
        content = response.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES or int(response.getheader("Content-Length") or len(content)) != len(content):
            raise http.client.IncompleteRead(content[:0])
    except BaseException:
        connection.close()
        raise
    if response.will_close:
        connection.close()
    else:
        idle.append(connection)
    return response, content


def _connect(address: SplitResult, timeout: float) -> http.client.HTTPConnection:
    host = address.hostname or ""
    if address.scheme == "http":
        return http.client.HTTPConnection(host, address.port or 80, timeout=timeout)
    return http.client.HTTPSConnection(host, address.port or 443, timeout=timeout, context=ssl.create_default_context())


@dataclass
class Counts:
    """What was sent and received so far."""

    requests: int = 0
    """Requests that were sent, those sent again included."""
    repeated: int = 0
    answers: int = 0
    recorded: int = 0
    """Answers that were recorded before."""
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of requests and answers together."""
        return self.prompt_tokens + self.completion_tokens

    def compute_cost(self, prices: tuple[float, float] | None) -> float | None:
        """Return the cost, for prices of a million tokens of requests and of answers."""
        if prices is None:
            return None
        return (self.prompt_tokens * prices[0] + self.completion_tokens * prices[1]) / 1e6


@dataclass
class Client:
    """A client of one endpoint; its methods may be called from any thread."""

    endpoint: str
    model: str
    key_variable: str = KEY_VARIABLE
    timeout: float = 120.0
    retries: int = 8
    backoff: float = 0.5
    """Seconds of the first pause."""
    max_requests: int | None = None
    max_tokens: int | None = None
    counts: Counts = field(default_factory=Counts)
    changed: Callable[[], object] | None = None
    """Called whenever the counts change."""

    def __post_init__(self) -> None:
        address, is_valid = urlsplit(""), False
        with suppress(ValueError):
            address = urlsplit(self.endpoint)
            is_valid = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
        if not is_valid or "@" in address.netloc or address.query:
            raise SettingError("an endpoint is an address such as http://localhost:8000/v1, with no key or query in it")
        self._address = address._replace(path=f"{address.path.rstrip('/')}/chat/completions", fragment="")
        self._key = os.environ.get(self.key_variable, "").strip()
        if not self._key.isascii() or not self._key.isprintable():
            raise SettingError(f"the key in {self.key_variable} has characters that a header cannot have")
        self._headers = {"Content-Type": "application/json", "User-Agent": f"dialeval/{__version__}"}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._not_before = 0.0
        self._idle: Idle = []

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop().close()

    def stop(self) -> None:
        """Send nothing more; requests that were sent are waited for."""
        self._stop.set()

    def send(self, body: bytes) -> bytes:
        """Return an answer; FailedRequestError with the reason, or SettingError where the whole run must end."""
        reason, wait = "", 0.0
        for attempt in range(self.retries + 1):
            if attempt:
                self._pause(attempt, wait)
            self._start_request(repeated=attempt > 0)
            wait = 0.0
            try:
                response, content = post(self._idle, self._address, body, self._headers, self.timeout)
            except TimeoutError:
                reason = f"no answer within {self.timeout:g} seconds"
                continue
            except (http.client.HTTPException, ValueError):
                reason = "the answer was cut off"
                continue
            except OSError as error:
                reason = f"no connection ({error.strerror or type(error).__name__})"
                continue
            if response.status == 200:
                try:
                    return self._accept(content)
                except (msgspec.MsgspecError, UnicodeError):
                    reason = "the answer is not a chat completion"
                    continue
            reason = f"status {response.status}"
            if response.status in _REFUSED:
                what = f"{self.endpoint} {_REFUSED[response.status]} (status {response.status})"
                raise SettingError(f"{what}: {self._quote(content)}. The key is read from {self.key_variable}")
            if response.status not in _PASSING and response.status < 500:
                raise self._count_failure(f"{reason}: {self._quote(content)}")
            wait = _read_retry_after(response.getheader("Retry-After"))
        raise self._count_failure(reason)

    def _accept(self, body: bytes) -> bytes:
        body = self._mask(body)
        found = read_completion(body)
        if found.model and found.model != self.model and not found.model.startswith(f"{self.model}-"):
            self._count(0, found.usage or {})
            raise self._count_failure(f"answered by another model, {escape_controls(found.model)[:100]}")
        self._count(1, found.usage or {})
        return body

    def _count(self, answers: int, usage: Mapping[str, Any]) -> None:
        prompt, completion = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
        with self._lock:
            self.counts.answers += answers
            self.counts.prompt_tokens += prompt if isinstance(prompt, int) else 0
            self.counts.completion_tokens += completion if isinstance(completion, int) else 0
        if self.changed is not None:
            self.changed()

    def _start_request(self, repeated: bool) -> None:
        """Count a request before it is sent; raise where a budget is spent or the run ends."""
        self._stop.wait(max(self._not_before - time.monotonic(), 0))
        with self._lock:
            if self._stop.is_set():
                raise StoppedError
            counts, kept = self.counts, "answers so far are recorded; run the same command again to continue"
            if self.max_requests is not None and counts.requests >= self.max_requests:
                raise SettingError(f"the budget of {self.max_requests:,} requests is spent; {kept}")
            if self.max_tokens is not None and counts.tokens >= self.max_tokens:
                raise SettingError(f"the budget of {self.max_tokens:,} tokens is spent ({counts.tokens:,}); {kept}")
            counts.requests += 1
            counts.repeated += repeated

    def _count_failure(self, reason: str) -> Exception:
        """Count a failure and return its exception, which ends the run where nothing succeeds."""
        with self._lock:
            self.counts.failed += 1
            hopeless = not self.counts.answers and self.counts.failed >= FIRST_REQUESTS
        if hopeless:
            return SettingError(f"none of the first {FIRST_REQUESTS} requests to {self.endpoint} succeeded: {reason}")
        return FailedRequestError(reason)

    def _pause(self, attempt: int, asked: float) -> None:
        seconds = min(self.backoff * 2 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
        if asked:
            self._not_before = max(self._not_before, time.monotonic() + asked)
        self._stop.wait(max(seconds, asked))

    def _quote(self, body: bytes) -> str:
        text = self._mask(body).decode("utf-8", "replace")
        return escape_controls(" ".join(text.split()))[:200]

    def _mask(self, body: bytes) -> bytes:
        return body.replace(self._key.encode(), _MASK) if self._key else body


def _read_retry_after(retry_after: str | None) -> float:
    """Return the seconds of a `Retry-After` header: a number, or a date."""
    seconds = 0.0
    if retry_after is not None:
        with suppress(ValueError, TypeError, OverflowError):
            number = retry_after.strip().isdigit()
            seconds = float(retry_after) if number else parsedate_to_datetime(retry_after).timestamp() - time.time()
    return min(max(seconds, 0.0), _LONGEST_ASKED)
