"""Endpoints that are not trusted: servers that never end, certificates, keys in escapes, counts, and shared files."""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import dialeval
import evaluating
from conftest import Dialeval
from dialeval.core.errors import DataError, SettingError
from dialeval.judges import LLM
from dialeval.judges.llm import client as client_module
from dialeval.judges.llm.answers import AnswerRecord, AnswerStore
from dialeval.judges.llm.client import MOST_TOKENS, Client, FailedRequestError
from dialeval.judges.llm.gateway import Gateway
from llm_server import MODEL, Body, ChatServer, Reply, shown_texts

GOOD = {"quality": 4, "relevance": 5}
HEAD = b"HTTP/1.1 200 OK\r\n"
SLOW = 0.05
PATIENCE = 30
"""Seconds within which a busy machine notices a deadline of less than two; without one, nothing ends."""


def drip(start: bytes, part: bytes) -> Callable[[socket.socket], None]:
    """Return a server that sends a start, and then a part again and again."""

    def talk(client: socket.socket) -> None:
        client.sendall(start)
        while True:
            client.sendall(part)
            time.sleep(SLOW)

    return talk


ENDLESS = {
    "silence": lambda client: time.sleep(600),
    "a byte at a time": drip(HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
    "100 Continue": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a long status": drip(b"HTTP/1.1 200 ", b"O"),
    "a long header": drip(HEAD + b"X: ", b"y"),
    "chunks": drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "trailers": drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", b"X: y\r\n"),
    "no length": drip(HEAD + b"\r\n", b" "),
}


def is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    stated = re.search(rb"(?i)content-length: (\d+)", head)
    return bool(end) and len(body) >= int(stated[1] if stated else 0)


@contextmanager
def listen(talk: Callable[[socket.socket], object], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve every connection by a function, on loopback; yield the address."""

    def serve(client: socket.socket) -> None:
        with suppress(OSError), closing(tls.wrap_socket(client, server_side=True) if tls else client) as spoken:
            request = spoken.recv(1 << 16)
            while request.startswith(b"POST") and not is_whole(request) and (more := spoken.recv(1 << 16)):
                request += more  # what is left unread would cut the answer off
            talk(spoken)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.getsockname()[1]}/v1"
        server.shutdown(socket.SHUT_RDWR)


def score(llm: Any, responses: list[str], **inputs: Any) -> dialeval.Run:
    return evaluating.evaluate(responses, contexts=[["hello"]] * len(responses), metrics="llm", llm=llm, **inputs)


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., LLM]:
    def make(endpoint: str, **settings: Any) -> LLM:
        chosen = {"mode": "grade", "cache": tmp_path / "answers.sqlite", "backoff": 0.01, **settings}
        return LLM(endpoint, MODEL, **chosen)

    return make


# Deadlines.


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_request_has_a_deadline_whatever_the_server_sends(kind: str) -> None:
    with listen(ENDLESS[kind]) as address:
        client = Client(Gateway(address), MODEL, timeout=0.3, retries=0)
        start = time.monotonic()
        with pytest.raises(SettingError, match=r"^no request to .* succeeded: no answer within 0.3 seconds$"):
            try:
                client.send(b"{}")
            except FailedRequestError:
                client.refuse_silence()
        assert 0.3 <= time.monotonic() - start < PATIENCE
        client.close()


def test_a_connection_and_a_handshake_have_a_deadline() -> None:
    """A full queue of connections, and a server that says nothing where TLS should begin."""
    for scheme in ("http", "https"):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first:
            port = server.getsockname()[1]
            if scheme == "http":
                first.connect(("127.0.0.1", port))
            client = Client(Gateway(f"{scheme}://127.0.0.1:{port}/v1"), MODEL, timeout=0.4, retries=0)
            start = time.monotonic()
            with pytest.raises(FailedRequestError, match=r"no answer within 0\.4 seconds"):
                client.send(b"{}")
            assert time.monotonic() - start < PATIENCE
            client.close()


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("kind", ["silence", "100 Continue", "a byte at a time"])
def test_signals_end_a_run_within_two_seconds(tmp_path: Path, kind: str, number: signal.Signals) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"response": f"reply {n}", "context": ["hi"]}) + "\n" for n in range(40)))
    asked = threading.Event()

    def talk(client: socket.socket) -> None:
        asked.set()
        ENDLESS[kind](client)

    with listen(talk) as address:
        command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", str(rows), "-m", "llm"]
        command += ["--llm-endpoint", address, "--llm-model", MODEL, "--llm-cache", str(tmp_path / "a.sqlite")]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert asked.wait(600)
        time.sleep(0.3)
        start = time.monotonic()
        running.send_signal(number)
        _, said = running.communicate(timeout=600)
        assert time.monotonic() - start < PATIENCE, said  # two seconds for the sockets, the rest to end the process
        assert running.returncode == (143 if number == signal.SIGTERM else 130), said


def test_an_answer_that_comes_shortly_after_a_signal_is_kept(
    ask: Callable[..., LLM], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "STOPPED_SECONDS", 60)
    with ChatServer(Reply(grades=GOOD, delay=0.4)) as server:

        def interrupt() -> None:
            while len(server.bodies) < 2:
                time.sleep(0.01)
            signal.raise_signal(signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            score(ask(server.address, concurrency=4), ["a", "b"])
        with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database:
            assert database.execute("SELECT count(*) FROM answers WHERE answer IS NOT NULL").fetchone() == (2,)


# Connections that can never work.


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    place = tmp_path_factory.mktemp("tls")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1"]
    with suppress(OSError):
        subprocess.run([*made, "-keyout", place / "key", "-out", place / "cert"], check=False, capture_output=True)
    if not (place / "cert").exists():
        pytest.skip("needs openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "cert", place / "key")
    return context, place / "cert"


def test_a_certificate_that_is_not_trusted_ends_the_run_at_once(
    ask: Callable[..., LLM], certified: tuple[ssl.SSLContext, Path]
) -> None:
    with listen(drip(HEAD, b""), certified[0]) as address:
        llm = ask(address, concurrency=1)
        with pytest.raises(SettingError, match=r"certificate that is not trusted \(self.signed certificate\)"):
            score(llm, ["one", "two"])
        assert llm.counts.requests == 1


def test_a_trusted_certificate_is_spoken_with_within_the_deadline(
    certified: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certified[1]))
    body = json.dumps({"choices": [{"message": {"content": "hi"}}]}).encode()
    with listen(lambda client: client.sendall(HEAD + b"\r\n" + body), certified[0]) as address:
        client = Client(Gateway(address), MODEL)
        assert json.loads(client.send(b"{}")) == json.loads(body)
        client.close()
    with listen(ENDLESS["a byte at a time"], certified[0]) as address:
        client = Client(Gateway(address), MODEL, timeout=0.5, retries=0)
        with pytest.raises(FailedRequestError, match=r"no answer within 0\.5 seconds"):
            client.send(b"{}")
        client.close()


def test_connections_go_to_the_port_of_their_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def find(host: str, port: int, **_: object) -> None:
        asked.append((host, port))
        raise OSError(errno.EHOSTUNREACH, "No route")

    monkeypatch.setattr(socket, "getaddrinfo", find)
    for address in ("http://h/v1", "https://h/v1", "http://h:81/v1", "https://[::1]:444/v1"):
        with pytest.raises(FailedRequestError, match=r"no connection \(No route\)"):
            Client(Gateway(address), MODEL, retries=0).send(b"{}")
    assert asked == [("h", 80), ("h", 443), ("h", 81), ("::1", 444)]


def test_a_server_without_tls_ends_the_run_at_once(ask: Callable[..., LLM]) -> None:
    with listen(drip(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"")) as address:
        llm = ask(address.replace("http:", "https:"), concurrency=1)
        with pytest.raises(SettingError, match="speaks no TLS that is understood"):
            score(llm, ["one", "two"])
        assert llm.counts.requests == 1


def test_a_command_without_a_single_answer_has_status_2(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"response": "yes", "context": ["hi"]}) + "\n")
    for refusal in (Reply(status=400, body=b"no"), Reply(grades=GOOD, model="another")):
        with ChatServer(refusal) as server:
            given = ["-m", "llm", "--llm-endpoint", server.address, "--llm-model", MODEL, "--llm-mode", "grade"]
            done = dialeval("score", str(rows), *given, "--llm-cache", str(tmp_path / "a"), "-o", str(tmp_path / "run"))
            assert (done.returncode, "succeeded: " in done.stderr) == (2, True), done.stderr
            assert not (tmp_path / "run").exists()


def test_a_refusal_is_read_though_the_server_takes_no_more_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    send = http.client.HTTPConnection.request

    def send_in_part(connection: http.client.HTTPConnection, *arguments: Any) -> None:
        send(connection, *arguments)
        raise BrokenPipeError

    monkeypatch.setattr(http.client.HTTPConnection, "request", send_in_part)
    with ChatServer(Reply(status=401, body=b"no")) as server:
        client = Client(Gateway(server.address), MODEL, retries=0)
        with pytest.raises(SettingError, match=r"refuses the key \(status 401\)"):
            client.send(b"{}")
        client.close()


# What an answer states.


@pytest.mark.parametrize(
    ("named", "is_accepted"),
    [
        ("gpt-4o", True),
        ("gpt-4o-2024-08-06", True),
        ("gpt-4o-20240806", True),
        ("gpt-4o-0613", True),
        ("gpt-4o-mini", False),
        ("gpt-4o-mini-2024-07-18", False),
        ("gpt-4o-1", False),
        ("gpt-4o-", False),
        ("gpt-4", False),
    ],
)
def test_only_a_date_may_follow_the_name_of_a_model(named: str, is_accepted: bool) -> None:
    with ChatServer(lambda _: Reply(grades=GOOD, model=named)) as server:
        client = Client(Gateway(server.address), "gpt-4o")
        body = json.dumps({"model": "gpt-4o", "messages": [{"content": "hi"}]}).encode()
        if is_accepted:
            assert json.loads(client.send(body))["model"] == named
        else:
            with pytest.raises(FailedRequestError, match="another model"):
                client.send(body)
        client.close()


@pytest.mark.parametrize("stated", [-1, -(10**9), MOST_TOKENS + 1, 10**30, 1.5, True, "7", None, [], 1e300])
def test_a_number_of_tokens_is_bounded(stated: object) -> None:
    usage = {"prompt_tokens": stated, "completion_tokens": 3}
    body = json.dumps({"model": MODEL, "choices": [{"message": {"content": "hi"}}], "usage": usage}).encode()
    with ChatServer(lambda _: Reply(body=body)) as server:
        client = Client(Gateway(server.address), MODEL)
        client.send(b"{}")
        assert (client.counts.prompt_tokens, client.counts.completion_tokens) == (0, 3)
        assert client.counts.compute_cost((1.0, 1.0)) == 3e-6
        client.close()


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices": [{"message": {"content": ' + b"[" * 200_000,
        b'{"choices": [{"message": {"content": "x", "more": ' + b"[" * 500 + b"]" * 500 + b"}}]}",
        b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 1' + b"0" * 400 + b"}}",
        b'{"choices": [{"message": {"content": "\xff"}}]}',
    ],
)
def test_an_answer_that_cannot_be_read_is_the_failure_of_its_row(ask: Callable[..., LLM], body: bytes) -> None:
    def answer(request: Body) -> Reply:
        return Reply(body=body) if shown_texts(request)["reply to grade"] == "bad" else Reply(grades=GOOD)

    with ChatServer(answer) as server:
        run = score(ask(server.address, retries=1), ["fine", "bad"])
    assert run["system"]["llm"].scored == 1
    assert any("the answer is not a chat completion (1)" in line for line in run.warnings)


def test_a_grade_that_is_stated_twice_is_no_grade(ask: Callable[..., LLM]) -> None:
    texts = {"twice": '{"quality": 1, "relevance": 5, "quality": 5}', "once": '{"quality": 1, "relevance": 5}'}
    nested = '{"quality": ' + "[" * 900 + "]" * 900 + ', "relevance": 5, "quality": 5}'
    texts["nested"] = nested
    with ChatServer(lambda request: Reply(text=texts[shown_texts(request)["reply to grade"]])) as server:
        run = score(ask(server.address), ["twice", "once", "nested"])
    assert (run["system"]["llm"].scored, run["system"]["llm"].mean) == (1, 1)
    assert any("a grade is stated twice (2)" in line for line in run.warnings)


KEY = "sk/very+secret=0123"


def escape(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


@pytest.mark.parametrize("spelled", [KEY, KEY.replace("/", r"\/"), escape(KEY), KEY.replace("s", r"\u0073")])
def test_a_key_is_masked_however_the_server_spells_it(
    ask: Callable[..., LLM], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    monkeypatch.setenv("DIALEVAL_LLM_KEY", KEY)
    inner = f'"choices": [{{"message": {{"content": "{{}}", "{spelled}": "the key is {spelled}"}}}}]'

    def answer(request: Body) -> Reply:
        match shown_texts(request)["reply to grade"]:
            case "refused":
                return Reply(status=400, body=f'{{"error": "key {spelled} is cut'.encode())
            case "other":
                return Reply(body=f'{{"model": "x {spelled}", {inner}}}'.encode())
        return Reply(body=f"{{{inner}}}".encode())

    with ChatServer(answer) as server:
        run = score(ask(server.address), ["fine", "other", "refused"], output=tmp_path / "run")
    with (
        closing(AnswerStore(tmp_path / "answers.sqlite", read_only=True)) as store,
        closing(sqlite3.connect(tmp_path / "answers.sqlite")) as database,
    ):
        records = store.find([key for (key,) in database.execute("SELECT key FROM answers")], failures=True).values()
    texts = [str(json.loads(record.answer)) if record.answer else str(record.reason) for record in records]
    assert sum("***" in text for text in texts) == 3, texts
    assert KEY not in "".join((*texts, *run.warnings))
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or not any(word.encode() in path.read_bytes() for word in (KEY, spelled)), path


def test_a_short_key_is_no_secret_and_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_LLM_KEY", "e")
    body = {"model": MODEL, "choices": [{"message": {"content": "hello"}}]}
    with ChatServer(lambda _: Reply(body=json.dumps(body).encode())) as server:
        client = Client(Gateway(server.address), MODEL)
        assert json.loads(client.send(b"{}")) == body
        assert "Authorization: Bearer e" in server.headers[0]
        client.close()


# Files of recorded answers.


def test_of_runs_at_a_time_the_stored_answers_count(ask: Callable[..., LLM], tmp_path: Path) -> None:
    """A judge that never says the same twice: every run and its replay are equal."""
    turn = iter(range(10**6))
    rows = [f"row {number}" for number in range(30)]

    def answer(_: Body) -> Reply:
        number = next(turn)
        return Reply(status=400) if number % 7 == 6 else Reply(grades={"quality": 1 + number % 5, "relevance": 3})

    with ChatServer(answer) as server, ThreadPoolExecutor(3) as pool:
        places = [tmp_path / f"run-{number}" for number in range(3)]
        runs = list(pool.map(lambda place: score(ask(server.address, concurrency=4), rows, output=place), places))
    for run, place in zip(runs, places, strict=True):
        llm = LLM(model=MODEL, mode="grade", cache=place / "llm-answers.sqlite", replay=True)
        replay = score(llm, rows)
        assert replay["system"] == run["system"]
        assert replay.warnings == run.warnings


def test_a_replay_leaves_no_journal_behind(ask: Callable[..., LLM], tmp_path: Path) -> None:
    with ChatServer(Reply(grades=GOOD)) as server:
        score(ask(server.address), ["one", "two"])
    score(ask("http://localhost/v1", replay=True), ["one", "two"])
    assert [path.name for path in tmp_path.iterdir()] == ["answers.sqlite"]
    store = AnswerStore(tmp_path / "answers.sqlite", read_only=True)
    with pytest.raises(DataError, match="readonly"):
        store.write([AnswerRecord("key", b"", None)])
    store.close()


def test_answers_are_not_recorded_through_a_dangling_link(ask: Callable[..., LLM], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="is a link to"):
        score(ask("http://localhost/v1", cache=tmp_path / "link"), ["one"])
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["text", "answers", "link"])
def test_answers_of_others_are_not_overwritten(
    dialeval: Dialeval, ask: Callable[..., LLM], tmp_path: Path, kind: str
) -> None:
    """Before anything is asked: a file of another program, or answers that belong to no run there."""
    target = tmp_path / "run" / "llm-answers.sqlite"
    target.parent.mkdir()
    if kind == "text":
        target.write_text("mine")
    elif kind == "answers":
        with closing(AnswerStore(target)) as store:
            store.write([AnswerRecord("key", b"paid", b"{}")], one_file=True)
    else:
        target.symlink_to(tmp_path / "elsewhere")
    before = target.read_bytes() if kind != "link" else b""
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"response": "yes", "context": ["hi"]}) + "\n")
    with ChatServer(Reply(grades=GOOD)) as server:
        given = ["-m", "llm", "--llm-endpoint", server.address, "--llm-model", MODEL, "--llm-mode", "grade"]
        given += ["--llm-cache", str(tmp_path / "a"), "-o", str(target.parent)]
        done = dialeval("score", str(rows), *given, "--force")
        assert done.returncode == 2, done.stderr
        assert "llm-answers.sqlite" in done.stderr
        with pytest.raises(DataError, match=r"llm-answers\.sqlite"):
            score(ask(server.address), ["one"], output=target.parent)
        assert server.bodies == []
    assert os.path.lexists(target)
    assert kind == "link" or target.read_bytes() == before


def test_a_full_disk_names_the_file_that_was_asked_for(
    ask: Callable[..., LLM], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(Reply(grades=GOOD)) as server:
        llm = ask(server.address)
        score(llm, [f"row {number}" for number in range(200)])
    write = AnswerStore.write

    def write_to_a_full_disk(store: AnswerStore, *arguments: Any, **settings: Any) -> None:
        store._connection.execute("PRAGMA max_page_count=4")
        write(store, *arguments, **settings)

    monkeypatch.setattr(AnswerStore, "write", write_to_a_full_disk)
    with pytest.raises(DataError, match=r"run/llm-answers\.sqlite: cannot be used \(database or disk is full\)"):
        llm.copy_answers(tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_too_few_open_files_are_not_the_failure_of_a_row(
    ask: Callable[..., LLM], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(Reply(grades=GOOD)) as server:
        llm = ask(server.address)
        opened = socket.socket

        def refuse(*arguments: Any, **settings: Any) -> socket.socket:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(socket, "socket", refuse)
        with pytest.raises(SettingError, match="too many open files; lower the concurrency"):
            score(llm, ["one", "two"])
        monkeypatch.setattr(socket, "socket", opened)
