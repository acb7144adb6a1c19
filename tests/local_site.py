"""A small HTTP server that misbehaves on demand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Site:
    """What is served, how, and what was asked for."""

    content: bytes
    length: int | None = None
    """A length that is stated instead of the true one."""
    sends_length: bool = True
    breaks: list[int] = field(default_factory=list)
    """After how many bytes each of the next answers breaks off."""
    statuses: list[int] = field(default_factory=list)
    """What the next answers are instead."""
    redirect: str | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    address: str = ""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append({name.lower(): value for name, value in self.headers.items()})
            if site.statuses:
                self.send_error(site.statuses.pop(0))
            elif site.redirect and self.path != "/target":
                self.send_response(302)
                self.send_header("Location", site.redirect)
                self.end_headers()
            else:
                self._send()

        def _send(self) -> None:
            self.send_response(200)
            if site.sends_length:
                self.send_header("Content-Length", str(len(site.content) if site.length is None else site.length))
            self.end_headers()
            self.wfile.write(site.content[: site.breaks.pop(0)] if site.breaks else site.content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the base class's)
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_port}/"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
