"""Send chat-completions requests to an OpenAI-compatible endpoint, many at a time, within budgets.

`Connections` is the only class that opens a connection. It uses the HTTP client of the standard library and keeps
connections open: nothing has to be installed, and a request takes little processor time. The timeout is a deadline for
the whole request, whatever the server sends meanwhile: a thread shuts down the sockets whose time is over.

A request that fails for a passing reason (no connection, a timeout, a body that is cut off, status 408, 409, 425, 429
or 5xx) is sent again after a pause that doubles, with jitter; `Retry-After` lengthens the pause, for all threads. A
refusal of the key or the address (401, 403, 404), a certificate that is not trusted, and a host that has no address
end the run. Every other status, and an answer by another model than the one that was asked, is the failure of this one
request. Where no request succeeds, the run ends.

The key comes from an environment variable and is sent in one header. It is removed from whatever a server returns,
also where it is written with escapes of JSON, before anything else sees the text.
"""

from __future__ import annotations

import errno
import http.client
import math
import os
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

import msgspec
import orjson
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
MOST_TOKENS = 10**9
"""A larger number of tokens of an answer is not believed."""
STOPPED_SECONDS = 1.5
"""How long requests may go on after Ctrl-C or SIGTERM."""
_MASK = b"***"
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/]))')
"""A character of a text in JSON that is written with an escape."""
_DATED = r"(-(\d{4}-\d\d-\d\d|\d{8}|\d\d-\d{4}|\d{4}))?"
"""What a server may add to the name of a model: a date."""


class Alternative(Struct):
    """A token that the model might have written, with the logarithm of its probability."""

    token: str
    logprob: float


class Token(Alternative):
    """A token of the answer, with the most probable ones at its place."""

    top_logprobs: list[Alternative] = []


class _CompletionChoice(Struct):
    message: dict[str, object]
    finish_reason: str | None = None
    logprobs: dict[str, list[Token] | None] | None = None


class Completion(Struct):
    """The part of a chat completion that is read."""

    choices: Annotated[list[_CompletionChoice], Meta(min_length=1)]
    model: str = ""
    usage: dict[str, object] | None = None

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


class _PassingError(Exception):
    """A failure that may pass: the reason, and the seconds that the server asks to wait."""


class StoppedError(Exception):
    """The run ends: no further request is sent."""


class Connections:
    """The connections to an address: those that no thread uses, and the sockets in use with their deadlines."""

    def __init__(self, address: SplitResult, timeout: float) -> None:
        self._address, self._timeout = address, timeout
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self._idle: list[http.client.HTTPConnection] = []
        self._ends: dict[socket.socket, float] = {}
        self.last_end = math.inf
        """When all sockets are shut down."""
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def post(self, body: bytes, headers: Mapping[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a request on an idle connection or a new one, and return the answer with its body.

        Raises TimeoutError after the deadline, OSError, HTTPException or ValueError where there is no whole answer.
        """
        end = time.monotonic() + self._timeout
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect(end)
        try:
            with self._limit(connection.sock, end):
                connection.request("POST", self._address.path, body, dict(headers))
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
            self._idle.append(connection)
        return response, content

    def close(self) -> None:
        """Close all connections, and shut down those that are in use."""
        self._shut_down(math.inf)
        while self._idle:
            self._idle.pop().close()

    def _connect(self, end: float) -> http.client.HTTPConnection:
        """Return a new connection; an address of the host that does not answer is followed by the next one."""
        host, usual = self._address.hostname or "", 80 if self._tls is None else 443
        connection = http.client.HTTPConnection(host, self._address.port or usual)
        connection.default_port = usual  # the header Host does not name it
        refusal = OSError(errno.EADDRNOTAVAIL, "the host has no address")
        for family, kind, number, _, place in socket.getaddrinfo(host, connection.port, type=socket.SOCK_STREAM):
            opened = socket.socket(family, kind, number)
            try:
                opened.settimeout(self._timeout)
                with self._limit(opened, end):
                    opened.connect(place)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._tls is not None:
                    opened = self._tls.wrap_socket(opened, server_hostname=host, do_handshake_on_connect=False)
                    with self._limit(opened, end):
                        opened.do_handshake()
            except OSError as error:
                opened.close()
                refusal = error
            else:
                connection.sock = opened
                return connection
        raise refusal

    @contextmanager
    def _limit(self, used: socket.socket, end: float) -> Iterator[None]:
        """Shut a socket down when its time is over; then raise TimeoutError, whatever else went wrong."""
        with self._lock:
            self._ends[used] = end
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="llm-deadlines", daemon=True)
                self._watcher.start()
        try:
            yield
        finally:
            with self._lock:
                del self._ends[used]
            if time.monotonic() >= end:
                raise TimeoutError

    def _watch(self) -> None:
        """Shut sockets down when their time is over, until none is in use."""
        while True:
            time.sleep(0.1)
            with self._lock:
                if not self._ends:
                    self._watcher = None
                    return
            self._shut_down(time.monotonic())

    def _shut_down(self, now: float) -> None:
        with self._lock:
            late = [used for used, end in self._ends.items() if now >= min(end, self.last_end)]
        for used in late:
            with suppress(OSError):  # it may be closed, or not connected yet
                socket.socket.shutdown(used, socket.SHUT_RDWR)  # not that of TLS, which another thread uses


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
            (address.hostname or "").encode("idna")
            is_valid = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
            is_valid &= address.path.isascii() and not re.search(r"[\x00-\x20\x7f]", self.endpoint.strip())
        if not is_valid or "@" in address.netloc or address.query:
            what = "with no key, query, space or special letter in it"
            raise SettingError(f"an endpoint is an address such as http://localhost:8000/v1, {what}")
        self._address = address._replace(path=f"{address.path.rstrip('/')}/chat/completions", fragment="")
        self._key = os.environ.get(self.key_variable, "").strip()
        if not self._key.isascii() or not self._key.isprintable():
            raise SettingError(f"the key in {self.key_variable} has characters that a header cannot have")
        self._headers = {"Content-Type": "application/json", "User-Agent": f"dialeval/{__version__}"}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"
        # A shorter key, such as EMPTY, is a placeholder: replacing it would change words of answers.
        self._secret = self._key if len(self._key) >= 8 else ""
        self._last_failure = ""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._not_before = 0.0
        self._connections = Connections(self._address, self.timeout)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def stop(self, soon: bool = False) -> None:
        """Send nothing more; answers to requests that were sent are waited for, with `soon` for a short time."""
        self._stop.set()
        if soon:
            self._connections.last_end = time.monotonic() + STOPPED_SECONDS

    def send(self, body: bytes) -> bytes:
        """Return an answer; FailedRequestError with the reason, or SettingError where the whole run must end."""
        reason, wait = "", 0.0
        for attempt in range(self.retries + 1):
            if attempt:
                self._pause(attempt, wait)
            self._start_request(repeated=attempt > 0)
            try:
                return self._send_once(body)
            except _PassingError as error:
                reason, wait = error.args
            if self._stop.is_set():  # it may have failed because of that
                raise StoppedError
        raise self._count_failure(reason)

    def _send_once(self, body: bytes) -> bytes:
        try:
            response, content = self._connections.post(body, self._headers)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _PassingError(self._explain(error), 0.0) from None
        status = response.status
        if status == 200:
            try:
                return self._accept(content)
            except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):  # also of nesting that is too deep
                raise _PassingError("the answer is not a chat completion", 0.0) from None
        if status in _REFUSED:
            what = f"{self.endpoint} {_REFUSED[status]} (status {status})"
            raise SettingError(f"{what}: {self._quote(content)}. The key is read from {self.key_variable}")
        if status not in _PASSING and status < 500:
            raise self._count_failure(f"status {status}: {self._quote(content)}")
        raise _PassingError(f"status {status}", _read_retry_after(response.getheader("Retry-After")))

    def _explain(self, error: Exception) -> str:
        """Return the reason of a failed connection; SettingError where it would fail again."""
        number, is_first = getattr(error, "errno", None), not self.counts.answers
        if isinstance(error, ssl.SSLCertVerificationError):
            what = f"has a certificate that is not trusted ({error.verify_message})"
            raise SettingError(f"{self.endpoint} {what}; set SSL_CERT_FILE to the certificate of its authority")
        if isinstance(error, ssl.SSLError) and is_first and not isinstance(error, ssl.SSLEOFError):
            raise SettingError(f"{self.endpoint} speaks no TLS that is understood ({error.reason})")
        if isinstance(error, socket.gaierror) and is_first and number == socket.EAI_NONAME:
            raise SettingError(f"{self.endpoint} has no address ({error.strerror})")
        if number in (errno.EMFILE, errno.ENFILE):
            raise SettingError("too many open files; lower the concurrency, or raise the limit (ulimit -n)")
        if isinstance(error, TimeoutError):
            return f"no answer within {self.timeout:g} seconds"
        if isinstance(error, OSError) and not isinstance(error, http.client.HTTPException):
            return f"no connection ({error.strerror or type(error).__name__})"
        return "the answer was cut off"

    def refuse_silence(self) -> None:
        """Raise SettingError where requests failed and none was ever answered."""
        failed = self.counts.failed
        if failed and not self.counts.answers:
            what = f"none of the first {failed:,} requests" if failed > 1 else "no request"
            raise SettingError(f"{what} to {self.endpoint} succeeded: {self._last_failure}")

    def _accept(self, body: bytes) -> bytes:
        body = orjson.dumps(orjson.loads(body))  # without escapes that hide a key, and without repeated keys
        if self._secret:
            body = body.replace(orjson.dumps(self._secret)[1:-1], _MASK)
        answer = read_completion(body)
        if answer.model and not re.fullmatch(re.escape(self.model) + _DATED, answer.model):
            self._count(0, answer.usage or {})
            raise self._count_failure(f"answered by another model, {escape_controls(answer.model)[:100]}")
        self._count(1, answer.usage or {})
        return body

    def _count(self, answers: int, usage: Mapping[str, object]) -> None:
        prompt, completion = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
        with self._lock:
            self.counts.answers += answers
            self.counts.prompt_tokens += _read_count(prompt)
            self.counts.completion_tokens += _read_count(completion)
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
            self._last_failure = reason
        if self.counts.failed >= FIRST_REQUESTS:
            self.refuse_silence()
        return FailedRequestError(reason)

    def _pause(self, attempt: int, asked: float) -> None:
        seconds = min(self.backoff * 2 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
        if asked:
            self._not_before = max(self._not_before, time.monotonic() + asked)
        self._stop.wait(max(seconds, asked))

    def _quote(self, body: bytes) -> str:
        text = _ESCAPE.sub(
            lambda match: chr(int(match[1], 16)) if match[1] else match[2], body.decode(errors="replace")
        )
        text = text.replace(self._secret, _MASK.decode()) if self._secret else text
        return escape_controls(" ".join(text.split()))[:200]


def _read_count(stated: object) -> int:
    """Return a number of tokens that a server states; 0 for anything that is no such number."""
    return stated if type(stated) is int and 0 <= stated <= MOST_TOKENS else 0


def _read_retry_after(retry_after: str | None) -> float:
    """Return the seconds of a `Retry-After` header: a number, or a date."""
    seconds = 0.0
    if retry_after is not None:
        with suppress(ValueError, TypeError, OverflowError):
            number = retry_after.strip().isdigit()
            seconds = float(retry_after) if number else parsedate_to_datetime(retry_after).timestamp() - time.time()
    return min(max(seconds, 0.0), _LONGEST_ASKED)
