"""A small server on which a team rates: the rating page for each rater, behind a link with a secret.

    GET  /r/SECRET/           the page with what this rater was dealt and has said so far
    POST /r/SECRET/ratings    a rating; 204 when it is on the disk

Whatever else is asked for is not there (404), and an unknown secret looks the same. There are no cookies, no files and
no listing. A request names the host that the links name, or it is refused: a page of somebody else cannot reach the
server by a name of its own (DNS rebinding), and it cannot send ratings (JSON from elsewhere needs a permission that is
not given). Requests are bounded in size and time. The connection is not encrypted: who listens on a network that is
not trusted needs a tunnel or a proxy with TLS.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from dialeval.analysis.rating_store import RatingStore
from dialeval.core.errors import SettingError
from dialeval.reports.rating_form import Form
from dialeval.reports.rating_page import served_page

LARGEST = 1 << 16
"""Bytes of a rating."""
PATIENCE = 30.0
"""Seconds to wait for the next bytes of a request."""
_PATH = re.compile(r"/r/([A-Za-z0-9_-]{16,64})/(ratings)?")
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
}
"""Of every answer; the page has a policy of its own beside it."""


class GivenRating(Struct, forbid_unknown_fields=True):
    """A rating as the page sends it."""

    id: Annotated[str, Meta(max_length=130)]
    scores: Annotated[dict[str, float], Meta(max_length=20)]
    rater: str = ""
    """Is not looked at: the secret says who it is."""
    seconds: Annotated[float, Meta(ge=0, lt=1e9)] | None = None
    comment: Annotated[str, Meta(max_length=2_000)] = ""
    again: bool = False


class RatingServer(ThreadingHTTPServer):
    """Serves until it is told to stop."""

    daemon_threads = True

    def __init__(
        self,
        store: RatingStore,
        form: Form,
        digest: str,
        things: Sequence[Mapping[str, Any]],
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.store, self.form, self.digest, self.things = store, form, digest, things
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise SettingError(f"cannot listen on {host}, port {port} ({error})") from None
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{shown}:{self.server_address[1]}"
        own = [shown, "127.0.0.1", "localhost"] if is_loopback(host) else [shown]
        self.hosts = {f"{name}:{self.server_address[1]}".lower() for name in own}

    def links(self) -> dict[str, str]:
        """The link of each rater."""
        return {name: f"http://{self.address}/r/{secret}/" for name, secret in self.store.raters().items()}

    def rater_of(self, secret: str) -> str | None:
        """Whose secret this is."""
        found = None
        for name, own in self.store.raters().items():
            if hmac.compare_digest(own.encode(), secret.encode()):
                found = name
        return found

    def server_bind(self) -> None:
        """Bind without asking the network for the name of the address, as the class above would."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A rater who goes away in the middle of a request is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; SettingError for one that stands for all."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_unspecified:
        raise SettingError(f"{host} is no address for a link; name the one by which raters reach this machine")
    return address.is_loopback


class _Handler(BaseHTTPRequestHandler):
    server: RatingServer
    server_version = "dialeval"
    sys_version = ""
    timeout = PATIENCE
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain"

    def do_GET(self) -> None:
        rater, part = self._asked()
        if rater is None or part is not None:
            return self._refuse(HTTPStatus.NOT_FOUND)
        server = self.server
        dealt = server.store.dealt(rater)
        things = [thing for thing in server.things if thing["id"] in dealt]
        page = served_page(server.form, server.digest, things, rater, server.store.lines(rater))
        return self._answer(HTTPStatus.OK, page.encode(), "text/html; charset=utf-8")

    def do_POST(self) -> None:
        rater, part = self._asked()
        if rater is None or part is None:
            return self._refuse(HTTPStatus.NOT_FOUND)
        if self.headers.get_content_type() != "application/json":
            return self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length):
            return self._refuse(HTTPStatus.LENGTH_REQUIRED)
        if int(length) > LARGEST:
            return self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        try:
            given = msgspec.json.decode(self.rfile.read(int(length)), type=GivenRating)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return self._refuse(HTTPStatus.BAD_REQUEST)
        if given.id not in self.server.store.dealt(rater) or self.server.form.faults(given.scores):
            return self._refuse(HTTPStatus.BAD_REQUEST)
        line: dict[str, Any] = {"id": given.id, "rater": rater, "scores": given.scores, "seconds": given.seconds}
        line |= {name: value for name in ("comment", "again") if (value := getattr(given, name))}
        try:
            self.server.store.save(rater, line)
        except sqlite3.Error:  # as on a full disk; the page tries again
            return self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        return self._answer(HTTPStatus.NO_CONTENT, b"", None)

    def _asked(self) -> tuple[str | None, str | None]:
        """Who asks, and for what; nobody where the host or the secret is not ours."""
        found = _PATH.fullmatch(self.path)
        if found is None or self.headers.get("Host", "").lower() not in self.server.hosts:
            return None, None
        return self.server.rater_of(found[1]), found[2]

    def _refuse(self, status: HTTPStatus) -> None:
        self._answer(status, f"{status.value} {status.phrase}\n".encode(), "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, content: bytes, kind: str | None) -> None:
        self.send_response(status)
        if kind is not None:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing: a line of a log would show secrets."""
