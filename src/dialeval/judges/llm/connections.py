"""Connections to an endpoint, each used again, with a deadline for every request.

They use the HTTP client of the standard library: nothing has to be installed, and a request takes little processor
time. The timeout is a deadline for the whole request, whatever the server sends meanwhile: a thread shuts down the
sockets whose time is over.
"""

from __future__ import annotations

import errno
import http.client
import math
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dialeval.judges.llm.gateway import Gateway

MOST_BYTES = 1 << 24
"""Of an answer."""


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
