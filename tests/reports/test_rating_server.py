"""The rating server: a rater's link shows and takes what is this rater's, and nothing else is there."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialeval.analysis.rating_store import RatingStore
from dialeval.core.errors import SettingError
from dialeval.reports.rating_form import Form
from dialeval.reports.rating_page import digest_of, things_to_rate
from dialeval.reports.rating_server import LARGEST, RatingServer, is_loopback
from reports.rated_samples import sample_of
from reports.test_rating_page import data_of

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RatingServer]:
    sample, form = sample_of(), Form()
    store = RatingStore(tmp_path / "ratings.sqlite", digest_of(sample, form))
    store.add_raters(["ann", "bob"])
    things = things_to_rate(sample, form)
    store.deal([thing["id"] for thing in things], 1, seed=1)
    with RatingServer(store, form, digest_of(sample, form), things) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()
    store.close()


def ask(
    server: RatingServer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def link(server: RatingServer, rater: str) -> str:
    return server.links()[rater].partition(server.address)[2]


def rating(server: RatingServer, rater: str, **more: Any) -> bytes:
    identity = min(server.store.dealt(rater))
    return json.dumps({"id": identity, "rater": "somebody", "scores": {"overall": 4}, "seconds": 1.5, **more}).encode()


def test_a_link_shows_what_is_the_raters_and_nothing_of_the_others(server: RatingServer) -> None:
    server.store.save("bob", {"id": min(server.store.dealt("bob")), "scores": {"overall": 5}, "comment": "bobs own"})
    status, headers, page = ask(server, "GET", link(server, "ann"))
    assert status == 200
    data: dict[str, Any] = data_of(page.decode())
    assert {thing["id"] for thing in data["things"]} == server.store.dealt("ann")
    assert (data["rater"], data["lines"], data["server"]) == ("ann", [], True)
    for secret in (b"bob", server.store.raters()["bob"].encode(), b"secret-one", *_ids(server, "bob")):
        assert secret not in page
    assert "Set-Cookie" not in headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def _ids(server: RatingServer, rater: str) -> list[bytes]:
    return [identity.encode() for identity in server.store.dealt(rater)]


def test_a_rating_is_kept_under_the_links_name(server: RatingServer) -> None:
    status, _, content = ask(server, "POST", link(server, "ann") + "ratings", rating(server, "ann", again=True), JSON)
    assert (status, content) == (204, b"")
    (line,) = server.store.lines("ann")
    assert (line["rater"], line["scores"], line["again"]) == ("ann", {"overall": 4}, True)
    assert server.store.lines("bob") == []
    data = data_of(ask(server, "GET", link(server, "ann"))[2].decode())
    assert data["lines"] == [line]


@pytest.mark.parametrize(
    "path", ["/", "/r/", "/r/x/", "/r/{}x/", "/r/{}", "/r/{}/ratings", "/r/{}/../", "/ratings.sqlite", "/r/{}/?a=1"]
)
def test_nothing_else_is_there(server: RatingServer, path: str) -> None:
    status, _, content = ask(server, "GET", path.replace("{}", server.store.raters()["ann"]))
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
    others = min(server.store.dealt("bob"))
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
        assert ask(server, method, place)[0] == 501
    assert server.store.lines("ann") == server.store.lines("bob") == []


def test_a_full_disk_is_no_kept_rating(server: RatingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.store._all("PRAGMA query_only=ON")
    place = link(server, "ann") + "ratings"
    assert ask(server, "POST", place, rating(server, "ann"), JSON)[0] == 503
    server.store._all("PRAGMA query_only=OFF")
    assert ask(server, "POST", place, rating(server, "ann"), JSON)[0] == 204


def test_raters_at_the_same_time_lose_nothing(server: RatingServer) -> None:
    def rate(rater: str) -> None:
        for identity in server.store.dealt(rater):
            body = rating(server, rater, id=identity)
            assert ask(server, "POST", link(server, rater) + "ratings", body, JSON)[0] == 204

    threads = [threading.Thread(target=rate, args=(rater,)) for rater in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.store.counts() == {"ann": (10, 10), "bob": (10, 10)}


def test_addresses() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("192.0.2.7")
    assert not is_loopback("desk.example")
    for everywhere in ("0.0.0.0", "::"):
        with pytest.raises(SettingError, match="no address for a link"):
            is_loopback(everywhere)


def test_a_port_that_is_taken_is_named(server: RatingServer) -> None:
    with pytest.raises(SettingError, match="cannot listen on"):
        RatingServer(server.store, server.form, "d", [], port=server.server_address[1])
