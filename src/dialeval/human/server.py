"""A small server on which a team rates: the rating page for each rater, behind a link with a secret.

    GET  /r/SECRET/           the page with the rows and the ratings of this rater
    POST /r/SECRET/ratings    a rating; 204 when it is on the disk, 400 where it will never be taken, 503 to try again
    GET  /l/SECRET/           the page of the lead: progress of each rater, agreement so far, disputed rows
    GET  /l/SECRET/state      what that page shows, as JSON
    GET  /l/SECRET/ratings    all ratings, as JSON lines

Everything else is not found (404), and an unknown secret looks the same. There are no cookies, no files and no listing.
A request names the host that the links name, or it is refused: another web page cannot reach the server by a
name of its own (DNS rebinding), and it cannot send ratings (JSON from elsewhere needs a permission that is not given).

Clients without a secret cannot keep raters out. The secret is in the first line, and nothing after that line is read
before it was checked. A connection has `SECRET_SECONDS` to send that line, and then `REQUEST_SECONDS` for the rest of
the request, however it trickles in. There are at most `MOST_CONNECTIONS`; where another one comes, the oldest without a
secret is cut off. Headers and ratings are bounded in bytes. The connection is not encrypted: a network that is not
trusted needs a tunnel or a proxy with TLS.

Python's own HTTP server with these bounds is used rather than a library: waitress, the small one that would fit, has a
limit for idle clients but no deadline for a whole request, and stops accepting connections when it has its number.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

import msgspec
import orjson

from dialeval.core.errors import DataError, SettingError
from dialeval.human.form import Form
from dialeval.human.page import Thing, make_lead_page, make_served_page
from dialeval.human.report import describe_study
from dialeval.human.store import Rating, RatingStore

LARGEST = 1 << 16
"""Bytes of a rating."""
MOST_CONNECTIONS = 128
SECRET_SECONDS = 5.0
"""From the connection to the end of the line with the secret."""
REQUEST_SECONDS = 30.0
"""From that line to the end of the request."""
ANSWER_SECONDS = 300.0
"""To take the page over a slow line."""
_LONGEST_LINE = 128
_REQUEST = re.compile(rb"(GET|POST) /([rl])/([A-Za-z0-9_-]{16,64})/(ratings|state)? HTTP/1\.[01]\r?\n")
_DEFAULT_PORT = 80
"""Of HTTP; browsers leave it out in the Host header."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
}
"""Of every answer; the page has a policy of its own in addition."""


@dataclass
class _Connection:
    deadline: float
    has_secret: bool = False


class RatingServer(ThreadingHTTPServer):
    """The server of one sample and form."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self,
        store: RatingStore,
        form: Form,
        digest: str,
        things: Sequence[Thing],
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.store, self.form, self.digest, self.things = store, form, digest, things
        self._secrets, self._lead = store.read_raters(), store.read_lead_secret()
        self._connections: dict[socket.socket, _Connection] = {}
        """The open ones, the oldest first."""
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError, UnicodeError) as error:
            what = f"cannot listen on {host}, port {port} ({error})"
            raise SettingError(f"{what}; choose another port, with other links (--port 0: any free one)") from None
        shown = _format_host(host)
        self.port = int(self.server_address[1])
        self.address = f"{shown}:{self.port}"
        names = [shown, "127.0.0.1", "localhost"] if is_loopback(host) else [shown]
        self.hosts = {f"{name}:{self.port}".lower() for name in names}
        if self.port == _DEFAULT_PORT:
            self.hosts |= {name.lower() for name in names}

    def make_links(self) -> dict[str, str]:
        """Return the link of each rater."""
        return {name: f"http://{self.address}/r/{secret}/" for name, secret in self._secrets.items()}

    def make_lead_link(self) -> str:
        """Return the link of the lead's page."""
        return f"http://{self.address}/l/{self._lead}/"

    def is_lead(self, secret: bytes) -> bool:
        """Return whether this is the lead's secret."""
        return hmac.compare_digest(self._lead.encode(), secret)

    def find_rater(self, secret: bytes) -> str | None:
        """Return the rater who has this secret."""
        # Every secret is compared, so that the time reveals nothing.
        names = [name for name, stored in self._secrets.items() if hmac.compare_digest(stored.encode(), secret)]
        return names[0] if names else None

    def process_request(self, request: Any, client_address: object) -> None:
        """Start a thread for a connection; where there are too many, cut off the oldest one without a secret."""
        with self._lock:
            self._connections[request] = _Connection(time.monotonic() + SECRET_SECONDS)
            if len(self._connections) > MOST_CONNECTIONS:
                oldest = next(connection for connection, state in self._connections.items() if not state.has_secret)
                del self._connections[oldest]
                _cut_off(oldest)
        super().process_request(request, client_address)

    def admit(self, connection: socket.socket, seconds: float) -> None:
        """Give a connection that has shown a secret more time."""
        with self._lock:
            if connection in self._connections:
                self._connections[connection] = _Connection(time.monotonic() + seconds, has_secret=True)

    def service_actions(self) -> None:
        """Cut off connections that are past their deadline; called all the time by `serve_forever`."""
        now = time.monotonic()
        with self._lock:
            for connection, state in self._connections.items():
                if state.deadline < now:
                    _cut_off(connection)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def server_bind(self) -> None:
        """Bind without asking the network for the name of the address, as the class above would."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: object) -> None:
        """Ignore raters who go away in the middle of a request."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _cut_off(connection: socket.socket) -> None:
    """End a connection for the thread that reads or writes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _format_host(host: str) -> str:
    """Return a host as browsers write it in an address and in the Host header."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return f"[{address.compressed}]" if address.version == 6 else address.compressed


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address; SettingError for the unspecified address."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_unspecified:
        raise SettingError(f"{host} is not an address for a link; name the one by which raters reach this machine")
    return address.is_loopback


class _RefusedError(Exception):
    """A request that gets no more than a status."""

    def __init__(self, status: HTTPStatus) -> None:
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """One request; the connection ends with it."""

    server: RatingServer
    server_version = "dialeval"
    sys_version = ""
    content_type = "text/html"
    timeout = REQUEST_SECONDS

    def handle(self) -> None:
        """Answer a request."""
        self.request_version = "HTTP/1.0"
        try:
            status, content = self._respond()
        except _RefusedError as refused:
            self._refuse(refused.status)
        except DataError:  # of the database, as on a full disk; the page tries again
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._answer(status, content)

    def _respond(self) -> tuple[HTTPStatus, bytes]:
        line = _REQUEST.fullmatch(self.rfile.readline(_LONGEST_LINE))
        lead = line is not None and line[2] == b"l" and self.server.is_lead(line[3])
        rater = self.server.find_rater(line[3]) if line is not None and line[2] == b"r" else None
        if line is None or (rater is None and not lead):
            raise _RefusedError(HTTPStatus.NOT_FOUND)
        self.server.admit(self.connection, REQUEST_SECONDS)
        try:
            headers = parse_headers(self.rfile)  # at most a hundred lines of 64 KiB
        except HTTPException:
            raise _RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
        hosts = headers.get_all("Host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            raise _RefusedError(HTTPStatus.NOT_FOUND)
        if rater is None:
            self.server.admit(self.connection, ANSWER_SECONDS)
            return self._respond_to_lead(line[1], line[4])
        if (line[1], line[4]) == (b"GET", None):
            self.server.admit(self.connection, ANSWER_SECONDS)
            return HTTPStatus.OK, self._make_page(rater)
        if (line[1], line[4]) == (b"POST", b"ratings"):
            self._save(rater, self._read_rating(headers))
            return HTTPStatus.NO_CONTENT, b""
        raise _RefusedError(HTTPStatus.NOT_FOUND)

    def _make_page(self, rater: str) -> bytes:
        server = self.server
        dealt = server.store.read_assigned(rater)
        things = [thing for thing in server.things if thing["id"] in dealt]
        return make_served_page(server.form, server.digest, things, rater, server.store.read_lines(rater)).encode()

    def _respond_to_lead(self, method: bytes, what: bytes | None) -> tuple[HTTPStatus, bytes]:
        if method != b"GET":
            raise _RefusedError(HTTPStatus.NOT_FOUND)
        server = self.server
        if what == b"ratings":
            self.content_type = "application/jsonl"
            lines = (line for rater in server.store.read_raters() for line in server.store.read_lines(rater))
            return HTTPStatus.OK, b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        state = describe_study(server.store, server.form, server.make_links())
        if what is None:
            return HTTPStatus.OK, make_lead_page(server.form, server.things, state).encode()
        self.content_type = "application/json"
        return HTTPStatus.OK, orjson.dumps(state)

    def _read_rating(self, headers: Message) -> Rating:
        if headers.get_content_type() != "application/json":
            raise _RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        lengths = headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not re.fullmatch("[0-9]{1,9}", lengths[0]) or "Transfer-Encoding" in headers:
            raise _RefusedError(HTTPStatus.LENGTH_REQUIRED)
        if int(lengths[0]) > LARGEST:
            raise _RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        content = self.rfile.read(int(lengths[0]))
        if len(content) < int(lengths[0]):  # cut off: no problem of the rating
            raise _RefusedError(HTTPStatus.REQUEST_TIMEOUT)
        try:
            return msgspec.json.decode(content, type=Rating)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _RefusedError(HTTPStatus.BAD_REQUEST) from None

    def _save(self, rater: str, rating: Rating) -> None:
        if rating.id not in self.server.store.read_assigned(rater) or self.server.form.find_problems(rating.scores):
            raise _RefusedError(HTTPStatus.BAD_REQUEST)
        self.server.store.save(rater, rating)

    def _answer(self, status: HTTPStatus, content: bytes) -> None:
        self.connection.settimeout(ANSWER_SECONDS)  # for all bytes together
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if status is not HTTPStatus.NO_CONTENT:
            kind = self.content_type if status is HTTPStatus.OK else "text/plain"
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer with a status, and drop what the client still sends: a reset connection might hide the answer."""
        self._answer(status, f"{status.value} {status.phrase}\n".encode())
        self.connection.shutdown(socket.SHUT_WR)
        left = 2 * LARGEST
        while left > 0 and (dropped := self.connection.recv(1 << 14)):
            left -= len(dropped)

    def log_request(self, *_: object) -> None:
        """Log nothing: a line would show secrets."""
