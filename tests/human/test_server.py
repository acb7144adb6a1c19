"""The rating server: a rater's link shows and takes what is this rater's, and nothing else is there."""

from __future__ import annotations

import http.client
import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import SettingError
from dialeval.human import server as rating_server
from dialeval.human.form import Form
from dialeval.human.page import collect_things, digest_form
from dialeval.human.server import LARGEST, RatingServer, _format_host, is_loopback
from dialeval.human.store import Rating, RatingStore
from human.rated_samples import sample_of
from human.test_page import data_of

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RatingServer]:
    sample, form = sample_of(), Form()
    store = RatingStore(tmp_path / "ratings.sqlite", digest_form(sample, form))
    store.add_raters(["ann", "bob"])
    things = collect_things(sample, form)
    store.assign([thing["id"] for thing in things], 1, seed=1)
    with RatingServer(store, form, digest_form(sample, form), things) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()
    store.close()


def ask(
    server: RatingServer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def link(server: RatingServer, rater: str) -> str:
    return server.make_links()[rater].partition(server.address)[2]


def rating(server: RatingServer, rater: str, **more: Any) -> bytes:
    identity = min(server.store.read_assigned(rater))
    return json.dumps({"id": identity, "rater": "somebody", "scores": {"overall": 4}, "seconds": 1.5, **more}).encode()


def test_a_link_shows_what_is_the_raters_and_nothing_of_the_others(server: RatingServer) -> None:
    own = Rating(id=min(server.store.read_assigned("bob")), scores={"overall": 5}, comment="bobs own")
    server.store.save("bob", own)
    status, headers, page = ask(server, "GET", link(server, "ann"))
    assert status == 200
    data: dict[str, Any] = data_of(page.decode())
    assert {thing["id"] for thing in data["things"]} == server.store.read_assigned("ann")
    assert (data["rater"], data["lines"], data["server"]) == ("ann", [], True)
    for secret in (b"bob", server.store.read_raters()["bob"].encode(), b"secret-one", *_ids(server, "bob")):
        assert secret not in page
    assert "Set-Cookie" not in headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def _ids(server: RatingServer, rater: str) -> list[bytes]:
    return [identity.encode() for identity in server.store.read_assigned(rater)]


def test_a_rating_is_kept_under_the_links_name(server: RatingServer) -> None:
    status, _, content = ask(server, "POST", link(server, "ann") + "ratings", rating(server, "ann", again=True), JSON)
    assert (status, content) == (204, b"")
    (line,) = server.store.read_lines("ann")
    assert (line["rater"], line["scores"], line["again"]) == ("ann", {"overall": 4}, True)
    assert server.store.read_lines("bob") == []
    data = data_of(ask(server, "GET", link(server, "ann"))[2].decode())
    assert data["lines"] == [line]


@pytest.mark.parametrize(
    "path", ["/", "/r/", "/r/x/", "/r/{}x/", "/r/{}", "/r/{}/ratings", "/r/{}/../", "/ratings.sqlite", "/r/{}/?a=1"]
)
def test_nothing_else_is_there(server: RatingServer, path: str) -> None:
    status, _, content = ask(server, "GET", path.replace("{}", server.store.read_raters()["ann"]))
    assert (status, content) == (404, b"404 Not Found\n")


def test_a_secret_that_nobody_has_looks_like_any_other_path(server: RatingServer) -> None:
    answers = [ask(server, "POST", path, rating(server, "ann"), JSON) for path in ("/r/" + "x" * 32 + "/ratings", "/q")]
    assert {(status, content) for status, _, content in answers} == {(404, b"404 Not Found\n")}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "evil.example:80", ""])
def test_a_request_by_another_name_is_refused(server: RatingServer, host: str) -> None:
    assert ask(server, "GET", link(server, "ann"), headers={"Host": host})[0] == 404
    allowed = f"localhost:{server.server_address[1]}"
    assert ask(server, "GET", link(server, "ann"), headers={"Host": allowed})[0] == 200


def test_what_is_no_rating_is_refused(server: RatingServer) -> None:
    place = link(server, "ann") + "ratings"
    others = min(server.store.read_assigned("bob"))
    for body in (
        b"{",
        b"[]",
        b"\xff",
        rating(server, "ann", scores={"overall": 9}),
        rating(server, "ann", scores={}),
        rating(server, "ann", id=others),
        rating(server, "ann", comment="x" * 2001),
        rating(server, "ann", seconds=-1),
        rating(server, "ann", more=1),
        b"[" * 5000,
    ):
        assert ask(server, "POST", place, body, JSON)[0] == 400, body
    assert ask(server, "POST", place, rating(server, "ann"), {"Content-Type": "text/plain"})[0] == 415
    assert ask(server, "POST", place, b"x" * (LARGEST + 1), JSON)[0] == 413
    chunked = {**JSON, "Transfer-Encoding": "chunked"}
    assert ask(server, "POST", place, b"0\r\n\r\n", {**chunked, "Content-Length": "-1"})[0] == 411
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert ask(server, method, place)[0] == 404
    assert server.store.read_lines("ann") == server.store.read_lines("bob") == []


def test_a_full_disk_is_no_kept_rating(server: RatingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.store._select("PRAGMA query_only=ON")
    place = link(server, "ann") + "ratings"
    assert ask(server, "POST", place, rating(server, "ann"), JSON)[0] == 503
    server.store._select("PRAGMA query_only=OFF")
    assert ask(server, "POST", place, rating(server, "ann"), JSON)[0] == 204


def test_raters_at_the_same_time_lose_nothing(server: RatingServer) -> None:
    def rate(rater: str) -> None:
        for identity in server.store.read_assigned(rater):
            body = rating(server, rater, id=identity)
            assert ask(server, "POST", link(server, rater) + "ratings", body, JSON)[0] == 204

    threads = [threading.Thread(target=rate, args=(rater,)) for rater in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.store.count_ratings() == {"ann": (10, 10), "bob": (10, 10)}


def send(server: RatingServer, content: bytes) -> socket.socket:
    """Send raw bytes on a new connection, which stays open."""
    connection = socket.create_connection(server.socket.getsockname()[:2], timeout=60)
    connection.sendall(content)
    return connection


def status_of(connection: socket.socket) -> int | None:
    """Return the status of the answer, None if the connection was cut off without one."""
    with connection, suppress(ConnectionError):
        content = b""
        while received := connection.recv(1 << 16):
            content += received
        return int(content.split()[1]) if content else None
    return None


def test_clients_without_a_secret_keep_no_rater_out(server: RatingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rating_server, "MOST_CONNECTIONS", 10)
    before = threading.active_count()
    held = [send(server, b"GET /r/") for _ in range(50)]
    assert ask(server, "GET", link(server, "ann"))[0] == 200
    assert ask(server, "POST", link(server, "ann") + "ratings", rating(server, "ann"), JSON)[0] == 204
    end = time.monotonic() + 60
    while threading.active_count() > before + 10 and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before + 10
    assert all(status_of(connection) is None for connection in held[:40])  # the oldest were cut off
    for connection in held:
        connection.close()


POST = "POST /r/SECRET/ratings HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("start", "seconds", "part"),
    [
        ("", "SECRET_SECONDS", b"G"),
        ("GET /r/SECRET/ HTTP/1.1\r\n", "REQUEST_SECONDS", b"a: b\r\n"),
        (POST, "REQUEST_SECONDS", b"x"),
        (f"{POST}Content-Length: 60000\r\n\r\n", "REQUEST_SECONDS", b" "),
    ],
    ids=["secret", "headers", "a header", "rating"],
)
def test_a_request_that_trickles_in_has_a_deadline(
    server: RatingServer, monkeypatch: pytest.MonkeyPatch, start: str, seconds: str, part: bytes
) -> None:
    monkeypatch.setattr(rating_server, seconds, 0.3)
    known = start.replace("SECRET", server.store.read_raters()["ann"]).replace("HOST", server.address)
    began = time.monotonic()
    connection = send(server, known.encode())
    with suppress(ConnectionError):
        while time.monotonic() < began + 60:
            connection.sendall(part)
            time.sleep(0.02)
    connection.close()
    assert time.monotonic() - began < 20
    assert ask(server, "GET", link(server, "ann"))[0] == 200


def test_nothing_is_read_without_a_secret(server: RatingServer) -> None:
    """The answer comes after the first line, and what follows is neither waited for nor kept."""
    for line in (b"POST /r/" + b"x" * 32 + b"/ratings HTTP/1.1\r\n", b"GET /" + b"x" * 10_000, b"\x16\x03\x01\n"):
        connection = send(server, line)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.0 404 ")
        connection.close()


def test_headers_are_bounded(server: RatingServer) -> None:
    first = f"GET {link(server, 'ann')} HTTP/1.1\r\nHost: {server.address}\r\n".encode()
    assert status_of(send(server, first + b"a: b\r\n" * 50 + b"\r\n")) == 200
    assert status_of(send(server, first + b"a: b\r\n" * 150 + b"\r\n")) == 431
    assert status_of(send(server, first + b"a: " + b"b" * (1 << 16))) == 431
    assert status_of(send(server, first + b"Host: evil.example\r\n\r\n")) == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Content-Length: {}", 204),
        ("", 411),
        ("Content-Length: ", 411),
        ("Content-Length: -1", 411),
        ("Content-Length: +{}", 411),
        ("Content-Length: {}.0", 411),
        ("Content-Length: 0x10", 411),
        ("Content-Length: ١٢", 411),
        ("Content-Length: {0}, {0}", 411),
        ("Content-Length: {0}\r\nContent-Length: {0}", 411),
        ("Content-Length: {}\r\nTransfer-Encoding: chunked", 411),
        ("Content-Length: 1_0", 411),
        (f"Content-Length: {'9' * 5000}", 411),
        ("Content-Length: 999999999", 413),
        ("Content-Length: 3", 400),
        ("Content-Length: 0", 400),
    ],
)
def test_odd_lengths_are_refused(
    server: RatingServer, capfd: pytest.CaptureFixture[str], headers: str, status: int
) -> None:
    body = rating(server, "ann")
    given = headers.format(len(body)) + ("\r\n" if headers else "")
    lines = f"POST {link(server, 'ann')}ratings HTTP/1.1\r\nHost: {server.address}\r\n{given}"
    content = lines.encode() + b"Content-Type: application/json\r\n\r\n" + body
    connection = send(server, content)
    connection.shutdown(socket.SHUT_WR)
    assert status_of(connection) == status
    assert capfd.readouterr() == ("", "")


def test_a_rating_that_was_cut_off_may_be_sent_again(server: RatingServer) -> None:
    """400 would tell the page never to send it again."""
    lines = f"POST {link(server, 'ann')}ratings HTTP/1.1\r\nHost: {server.address}\r\nContent-Length: 200\r\n"
    connection = send(server, lines.encode() + b"Content-Type: application/json\r\n\r\n{")
    connection.shutdown(socket.SHUT_WR)
    assert status_of(connection) == 408


def test_a_page_from_a_locked_database_may_be_asked_for_again(server: RatingServer) -> None:
    server.store._select("PRAGMA busy_timeout=20")
    body = rating(server, "ann")
    with closing(sqlite3.connect(server.store.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert ask(server, "GET", link(server, "ann"))[0] == 503
        assert ask(server, "POST", link(server, "ann") + "ratings", body, JSON)[0] == 503
        other.execute("COMMIT")
    assert ask(server, "GET", link(server, "ann"))[0] == 200


def test_browsers_leave_the_default_port_out(server: RatingServer) -> None:
    class AtDefaultPort(RatingServer):
        def server_bind(self) -> None:
            super().server_bind()
            self.server_address = ("127.0.0.1", 80)

    with AtDefaultPort(server.store, server.form, server.digest, server.things) as made:
        assert made.hosts == {"127.0.0.1", "127.0.0.1:80", "localhost", "localhost:80"}


def test_addresses_are_written_as_browsers_do() -> None:
    written = {"127.0.0.1": "127.0.0.1", "0:0:0:0:0:0:0:1": "[::1]", "2001:DB8::1": "[2001:db8::1]", "desk": "desk"}
    assert {host: _format_host(host) for host in written} == written


def test_addresses() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("192.0.2.7")
    assert not is_loopback("desk.example")
    for everywhere in ("0.0.0.0", "::"):
        with pytest.raises(SettingError, match="not an address for a link"):
            is_loopback(everywhere)


def test_a_port_that_is_taken_is_named(server: RatingServer) -> None:
    with pytest.raises(SettingError, match="cannot listen on"):
        RatingServer(server.store, server.form, "d", [], port=server.server_address[1])


def test_the_lead_sees_progress_and_agreement_and_takes_the_ratings(server: RatingServer) -> None:
    path = server.make_lead_link().partition(server.address)[2]
    status, headers, _ = ask(server, "GET", path)
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    dealt = {name: len(server.store.read_assigned(name)) for name in ("ann", "bob")}

    def state() -> dict[str, Any]:
        status, headers, content = ask(server, "GET", path + "state")
        assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8")
        loaded: dict[str, Any] = json.loads(content)
        return loaded

    assert {rater["name"]: (rater["rated"], rater["assigned"]) for rater in state()["raters"]} == {
        name: (0, number) for name, number in dealt.items()
    }
    for identity in sorted(server.store.read_assigned("ann")):
        server.store.save("ann", Rating(id=identity, scores={"overall": 3}, seconds=0.2, comment="so so"))
    ann, bob = state()["raters"]
    assert (ann["rated"], bob["rated"]) == (dealt["ann"], 0)
    assert [*state()["answers"]["overall"].values()] == [{"ann": 3}] * dealt["ann"]
    assert [*state()["comments"].values()] == [{"ann": "so so"}] * dealt["ann"]
    flags = " ".join(state()["flags"])
    assert f"gave the same answer {dealt['ann']} times (overall 3)" in flags
    assert "took less than 1 second for half of the rows" in flags
    assert server.store.read_raters()["ann"] in ann["link"], "who lost the link gets it from the lead"
    status, headers, content = ask(server, "GET", path + "ratings")
    assert headers["Content-Type"].startswith("application/jsonl")
    assert [json.loads(line) for line in content.splitlines()] == server.store.read_lines("ann")
    assert server.store.read_lead_secret() in server.make_lead_link(), "the same after a restart"


def test_a_rater_is_no_lead_and_the_lead_does_not_rate(server: RatingServer) -> None:
    secret = server.store.read_raters()["ann"]
    lead = server.make_lead_link().partition(server.address)[2]
    for method, path in (("GET", f"/l/{secret}/"), ("GET", lead.replace("/l/", "/r/")), ("GET", "/l/")):
        assert ask(server, method, path)[0] == 404
    assert ask(server, "POST", lead + "ratings", rating(server, "ann"), JSON)[0] == 404
    assert server.store.read_lines("ann") == []


def test_marked_turns_are_kept(server: RatingServer) -> None:
    body = rating(server, "ann", marked=[1, 3])
    assert ask(server, "POST", link(server, "ann") + "ratings", body, JSON)[0] == 204
    assert server.store.read_lines("ann")[0]["marked"] == [1, 3]
    assert ask(server, "POST", link(server, "ann") + "ratings", rating(server, "ann", marked=[0]), JSON)[0] == 400


def test_the_oldest_without_a_secret_goes_first(server: RatingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rating_server, "MOST_CONNECTIONS", 3)
    host = f"Host: {server.address}\r\n".encode()
    slow = send(server, f"GET {link(server, 'ann')} HTTP/1.1\r\n".encode())
    end = time.monotonic() + 60
    while not any(each.has_secret for each in server._connections.values()) and time.monotonic() < end:
        time.sleep(0.01)
    others = [send(server, b"GET") for _ in range(20)]
    slow.sendall(host + b"\r\n")
    assert status_of(slow) == 200
    for connection in others:
        connection.close()
