"""Send chat-completions requests to an OpenAI-compatible endpoint, many at a time, within budgets.

A request that fails for a passing reason (no connection, a timeout, a body that is cut off, status 408, 409, 425, 429
or 5xx) is sent again after a pause that doubles, with jitter; `Retry-After` lengthens the pause, for all threads.
Before the first answer of a run, what has no status is tried three times at most: nobody may be there.

What would fail again ends the run: a refusal of the key or the address (401 to 405), a spent quota, a redirection, a
web page or a stream of events in the place of an answer, a certificate that is not trusted, a host that has no address,
and, before the first answer, a field of the request that the server does not know. Every other status, and an answer by
another model than the one that was asked, is the failure of this one request. Where no request succeeds, the run ends.

The HTTP client is that of the standard library: nothing has to be installed, and a request takes little processor time.
Connections are used again. The timeout is a deadline for the whole request, whatever the server sends meanwhile: a
thread shuts down the sockets whose time is over.
"""

from __future__ import annotations

import errno
import http.client
import math
import random
import re
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Annotated

import msgspec
import orjson
from msgspec import Meta, Struct

from dialeval.core.errors import SettingError
from dialeval.judges.llm.gateway import Gateway

MOST_BYTES = 1 << 24
"""Of an answer."""
_PASSING = frozenset({408, 409, 425, 429})
_REFUSED = {
    401: "refuses the key",
    402: "asks for payment",
    403: "refuses access",
    404: "does not know the address or the model",
    405: "does not take requests at this address, which usually ends with /v1",
}
_LONGEST_PAUSE = 60.0
_LONGEST_ASKED = 600.0
"""Seconds of `Retry-After` that are waited at most."""
FIRST_REQUESTS = 32
"""If so many requests failed and none succeeded, the run ends."""
FIRST_ATTEMPTS = 3
"""Requests that a run sends one after the other, until one is answered."""
_TITLE = re.compile(rb"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TOO_LONG = re.compile("context.length|too long|too large|context.window", re.IGNORECASE)
MOST_TOKENS = 10**9
"""A larger number of tokens of an answer is not believed."""
STOPPED_SECONDS = 1.5
"""How long requests may go on after Ctrl-C or SIGTERM."""
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
    """A failure that may pass: the reason, the seconds that the server asks to wait, and the status or None."""


class StoppedError(Exception):
    """The run ends: no further request is sent."""


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

    gateway: Gateway
    model: str
    served_model: str = ""
    """The name that answers have, where it is not that of the request."""
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
        self._last_failure = ""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._not_before = 0.0
        self._connections = Connections(self.gateway, self.timeout)

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
        reason, wait, status = "", 0.0, None
        for attempt in range(self.retries + 1):
            if attempt:
                self._pause(attempt, wait)
            self._start_request(repeated=attempt > 0)
            try:
                return self._send_once(body)
            except _PassingError as error:
                reason, wait, status = error.args
            if self._stop.is_set():  # it may have failed because of that
                raise StoppedError
            if status is None and not self.counts.answers and attempt + 1 >= FIRST_ATTEMPTS:
                break
        raise self._count_failure(reason)

    def _send_once(self, body: bytes) -> bytes:
        try:
            response, content = self._connections.post(body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _PassingError(self._explain(error), 0.0, None) from None
        status = response.status
        if status == 200:
            self._refuse_pages(response.getheader("Content-Type") or "", content)
            try:
                return self._accept(content)
            except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):  # also of nesting that is too deep
                reason = f"the answer is not a chat completion: {self.gateway.quote(content)}"
                raise _PassingError(reason, 0.0, None) from None
        if status == 429 and b"insufficient_quota" in content:
            raise SettingError(f"{self.gateway.name} has no quota left (status 429): {self.gateway.quote(content)}")
        if status in _REFUSED:
            what = f"{self.gateway.name} {_REFUSED[status]} (status {status}): {self.gateway.quote(content)}"
            key = f". The key is read from {self.gateway.key_variable}" if status in (401, 403) else ""
            raise SettingError(what + key)
        if 300 <= status < 400:
            host = re.match(r"\w+://([^/?#]+)", response.getheader("Location") or "")
            place = f" to {self.gateway.quote(host[1])}" if host else ""
            what = f"redirects (status {status}{place}), as a login page does"
            raise SettingError(f"{self.gateway.name} {what}; name the address of the API itself")
        if status not in _PASSING and status < 500:
            self._refuse_fields(body, f"(status {status}): {self.gateway.quote(content)}")
            raise self._count_failure(f"status {status}: {self.gateway.quote(content)}")
        raise _PassingError(f"status {status}", _read_retry_after(response.getheader("Retry-After")), status)

    def _refuse_pages(self, content_type: str, content: bytes) -> None:
        """Raise SettingError for a web page or a stream of events in the place of an answer."""
        start = content[:100].lstrip()
        if content_type.startswith("text/html") or start.startswith(b"<"):
            title = _TITLE.search(content[:10_000])
            named = f" ({self.gateway.quote(title[1])})" if title else ""
            what = f"answers with a web page{named}, such as a login page, and not with JSON"
            raise SettingError(f"{self.gateway.name} {what}; check the address, which usually ends with /v1")
        if content_type.startswith("text/event-stream") or start.startswith(b"data:"):
            what = "streams its answers (server-sent events), which is not read"
            raise SettingError(f"{self.gateway.name} {what}; ask for whole answers: --llm-option stream=false")

    def _refuse_fields(self, body: bytes, refusal: str) -> None:
        """Raise SettingError where a server does not know a field of the first requests."""
        if self.counts.answers or _TOO_LONG.search(refusal):
            return
        fields = [name for name in orjson.loads(body) if name not in ("messages", "model")]
        named = [name for name in fields if re.search(rf"\b{re.escape(name)}\b", refusal)]
        if named:
            options = " ".join(f"--llm-option {name}=null" for name in named)
            advice = f"{options} removes {'it' if len(named) == 1 else 'them'}"
            if any("logprobs" in name for name in named):
                advice = "--llm-mode grade needs no probabilities"
            advice += "; for a reasoning model add --llm-preset reasoning"
            raise SettingError(f"{self.gateway.name} refuses {', '.join(named)} {refusal}. {advice}")

    def _explain(self, error: Exception) -> str:
        """Return the reason of a failed connection; SettingError where it would fail again."""
        number, is_first = getattr(error, "errno", None), not self.counts.answers
        if isinstance(error, ssl.SSLCertVerificationError):
            what = f"has a certificate that is not trusted ({error.verify_message})"
            raise SettingError(f"{self.gateway.name} {what}; name that of its authority: --llm-ca FILE")
        if isinstance(error, ssl.SSLError) and is_first and not isinstance(error, ssl.SSLEOFError):
            raise SettingError(f"{self.gateway.name} speaks no TLS that is understood ({error.reason})")
        if isinstance(error, socket.gaierror) and is_first and number == socket.EAI_NONAME:
            raise SettingError(f"{self.gateway.name} has no address ({error.strerror})")
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
            raise SettingError(f"{what} to {self.gateway.name} succeeded: {self._last_failure}")

    def _accept(self, body: bytes) -> bytes:
        body = orjson.dumps(orjson.loads(body))  # without escapes that hide a secret, and without repeated keys
        answer = read_completion(body)
        body, served = self.gateway.mask_json(body), answer.model
        if served and not re.fullmatch(re.escape(self.served_model or self.model) + _DATED, served):
            self._count(0, answer.usage or {})
            named = self.gateway.quote(served)[:100]
            advice = f"if that is the one, add --llm-served-model {named}"
            raise self._count_failure(f"answered by another model, {named}: {advice}")
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


class Connections:
    """The connections to an address: those that no thread uses, and the sockets in use with their deadlines."""

    def __init__(self, gateway: Gateway, timeout: float) -> None:
        self._gateway, self._timeout = gateway, timeout
        self._tls = gateway.open_tls()
        address = gateway.address
        self._target = f"{address.path}?{address.query}" if address.query else address.path
        if gateway.proxy is not None and self._tls is None:
            self._target = address.geturl()
        self._idle: list[http.client.HTTPConnection] = []
        self._ends: dict[socket.socket, float] = {}
        self.last_end = math.inf
        """When all sockets are shut down."""
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def post(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a request on an idle connection or a new one, and return the answer with its body.

        Raises TimeoutError after the deadline, OSError, HTTPException or ValueError where there is no whole answer.
        """
        end = time.monotonic() + self._timeout
        connection = self._find_idle() or self._connect(end)
        headers = {**self._gateway.sent_headers, **({} if self._tls else self._gateway.proxy_headers)}
        try:
            with self._limit(connection.sock, end):
                with suppress(ConnectionError):  # an answer may come before all is sent
                    connection.request("POST", self._target, body, headers)
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

    def _find_idle(self) -> http.client.HTTPConnection | None:
        """Return an open connection that no thread uses; the server may have closed it."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            with selectors.DefaultSelector() as selector:
                selector.register(connection.sock, selectors.EVENT_READ)
                if not selector.select(0):  # nothing can be read: neither its end nor what nobody asked for
                    return connection
            connection.close()

    def _connect(self, end: float) -> http.client.HTTPConnection:
        """Return a new connection; an address of the host that does not answer is followed by the next one."""
        address, proxy = self._gateway.address, self._gateway.proxy
        host, usual = address.hostname or "", 80 if self._tls is None else 443
        connection = http.client.HTTPConnection(host, address.port or usual)
        connection.default_port = usual  # the header Host does not name it
        place = (host, connection.port) if proxy is None else (str(proxy.hostname), proxy.port or 80)
        refusal = OSError(errno.EADDRNOTAVAIL, "the host has no address")
        for family, kind, number, _, place_of_host in socket.getaddrinfo(*place, type=socket.SOCK_STREAM):
            opened = socket.socket(family, kind, number)
            try:
                opened.settimeout(self._timeout)
                with self._limit(opened, end):
                    opened.connect(place_of_host)
                    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if proxy is not None and self._tls is not None:
                        self._open_tunnel(opened, f"{host}:{connection.port}")
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

    def _open_tunnel(self, opened: socket.socket, target: str) -> None:
        """Ask the proxy for a tunnel to a host and port."""
        head = {"Host": target, **self._gateway.proxy_headers}
        lines = [f"CONNECT {target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        opened.sendall("\r\n".join([*lines, "", ""]).encode())
        with http.client.HTTPResponse(opened, method="CONNECT") as answer:
            answer.begin()
            if answer.status != 200:
                raise OSError(errno.ECONNREFUSED, f"the proxy refuses a tunnel, status {answer.status}")

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
