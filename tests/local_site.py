"""A small HTTP server that misbehaves on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Site:
    """What is served, how, and what was asked for."""

    content: bytes
    etag: str | None = '"1"'
    modified: str | None = None
    ranges: bool = True
    length: int | None = None
    """A length that is stated instead of the true one."""
    sends_length: bool = True
    breaks: list[int] = field(default_factory=list)
    """After how many bytes each of the next answers breaks off."""
    statuses: list[int] = field(default_factory=list)
    """What the next answers are instead."""
    redirect: str | None = None
    skewed: bool = False
    """Answers a range with another one."""
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
            start = self._start()
            total = len(site.content)
            if start is not None and start >= total:
                self.send_error(416)
                return
            self.send_response(200 if start is None else 206)
            body = site.content[start or 0 :]
            if start is not None:
                shown = start + 1 if site.skewed else start
                self.send_header("Content-Range", f"bytes {shown}-{total - 1}/{total}")
            if site.sends_length:
                self.send_header("Content-Length", str(len(body) if site.length is None else site.length))
            for name, value in (("ETag", site.etag), ("Last-Modified", site.modified)):
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: site.breaks.pop(0)] if site.breaks else body)

        def _start(self) -> int | None:
            match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            current = self.headers.get("If-Range") in (site.etag, site.modified)
            return int(match[1]) if match and site.ranges and current else None

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
