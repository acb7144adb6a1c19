"""Language models behind gateways: a server that imitates each kind, asked by the documented command."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from conftest import Dialeval
from dialeval.core.errors import SettingError
from dialeval.judges import LLM
from dialeval.judges.llm.gateway import Gateway
from llm_server import MODEL, Body, ChatServer, Reply, completion

GOOD = {"quality": 4, "relevance": 5}
KEY = "sk-secret-0123456789"
Answer = tuple[int, str, bytes]
JSON = "application/json"


@dataclass
class Server:
    """A server that answers by path, headers and body of a request."""

    answer: Callable[[str, Mapping[str, str], Body], Answer]
    address: str = ""
    requests: list[tuple[str, dict[str, str], Body]] = field(default_factory=list)


@contextmanager
def serve(answer: Callable[[str, Mapping[str, str], Body], Answer]) -> Iterator[Server]:
    state = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.requests.append((self.path, headers, body))
            status, kind, content = state.answer(self.path, headers, body)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        state.address = f"http://127.0.0.1:{server.server_port}"
        yield state
        server.shutdown()


def answer_well(body: Body, **settings: Any) -> Answer:
    reply = Reply(**{"grades": GOOD, **settings})
    return 200, JSON, completion(reply, body)


def refuse(status: int, message: str) -> Answer:
    return status, JSON, json.dumps({"error": {"message": message}}).encode()


def azure(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    if path != "/openai/deployments/judge/chat/completions?api-version=2024-10-21":
        return refuse(404, "Resource not found")
    if headers.get("api-key") != KEY or "authorization" in headers:
        return refuse(401, "Access denied due to invalid subscription key")
    return answer_well(body, model=f"{MODEL}-2026-05-13")


def openrouter(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    if path != "/api/v1/chat/completions" or headers.get("http-referer") != "https://example.com/chat":
        return refuse(404, "No such page")
    return answer_well(body) if "logprobs" not in body else refuse(404, "No endpoints found that support logprobs")


def vllm(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    if path != "/v1/chat/completions" or headers["authorization"] != f"Bearer {KEY}":
        return refuse(401, "Unauthorized")
    return answer_well(body)


def ollama(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    if path != "/v1/chat/completions":
        return 404, "text/plain", b"404 page not found"
    return answer_well(body, logprobs=False)


def reasoning(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    for name in ("max_tokens", "temperature", "logprobs", "top_logprobs"):
        if name in body:
            return refuse(400, f"Unsupported parameter: '{name}' is not supported with this model.")
    return answer_well(body, text='{"quality": 4, "relevance": 5}')


def fenced(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    return answer_well(body, text='```json\n{"quality": 4, "relevance": 5}\n```')


def thinking(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    text = '<think>I first thought {"quality": 1, "relevance": 1}.</think>\n\n{"quality": 4, "relevance": 5}'
    return answer_well(body, text=text)


def half_thinking(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    return answer_well(body, text='The reply is fine.\n</think>```\n{"quality": 4, "relevance": 5}\n```')


def portkey(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    return answer_well(body, model="gpt-4o-2024-08-06") if headers.get("x-team") == "chat" else refuse(403, "who?")


WORKING: dict[str, tuple[Callable[..., Answer], str, list[str]]] = {
    "azure": (azure, "/openai/deployments/judge?api-version=2024-10-21", ["--llm-preset", "azure"]),
    "openrouter": (
        openrouter,
        "/api/v1",
        ["--llm-preset", "openrouter", "--llm-header", "HTTP-Referer=https://example.com/chat"],
    ),
    "vllm": (vllm, "/v1", ["--llm-preset", "vllm"]),
    "ollama": (ollama, "/v1", ["--llm-preset", "ollama"]),
    "reasoning": (reasoning, "/v1", ["--llm-preset", "reasoning"]),
    "reasoning model in azure": (
        lambda path, headers, body: min(azure(path, headers, body), reasoning(path, headers, body)),
        "/openai/deployments/judge?api-version=2024-10-21",
        ["--llm-preset", "azure", "--llm-preset", "reasoning"],
    ),
    "fenced JSON": (fenced, "/v1", ["--llm-mode", "grade"]),
    "reasoning block": (thinking, "/v1", []),
    "half of a reasoning block": (half_thinking, "/v1", ["--llm-mode", "grade"]),
    "a gateway with names of its own": (
        portkey,
        "/v1",
        ["--llm-header", "x-team=chat", "--llm-served-model", "gpt-4o", "--llm-mode", "grade"],
    ),
}
ROWS = 40


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"response": f"reply {n}", "context": ["hi"]}) + "\n" for n in range(ROWS)))
    return path


@pytest.mark.parametrize("kind", WORKING)
def test_the_documented_command_works(
    dialeval: Dialeval, tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    answer, path, options = WORKING[kind]
    monkeypatch.setenv("DIALEVAL_LLM_KEY", KEY)
    with serve(answer) as server:
        given = ["--llm-endpoint", server.address + path, "--llm-model", MODEL, "--llm-cache", str(tmp_path / "a")]
        done = dialeval("score", str(rows), "-m", "llm", *given, *options, "-o", str(tmp_path / "run"), "-f", "json")
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == ROWS
    (system,) = (each["metrics"] for each in json.loads(done.stdout)["systems"].values())
    assert (system["llm"]["mean"], system["llm"]["scored"]) == (pytest.approx(4), ROWS)
    assert "answered the first request in" in done.stderr
    is_wrapped = answer in (fenced, thinking, half_thinking)
    assert (f"was removed from {ROWS} answers" in done.stderr) == is_wrapped
    again = dialeval(
        *("score", str(rows), "-m", "llm", "--llm-model", MODEL, *options, "--llm-replay", "-f", "json"),
        *("--llm-cache", str(tmp_path / "run" / "llm-answers.sqlite")),
    )
    assert json.loads(again.stdout)["systems"] == json.loads(done.stdout)["systems"], again.stderr


def redirect(path: str, headers: Mapping[str, str], body: Body) -> Answer:
    return 302, "text/html", b"Found"


PERMANENT: dict[str, tuple[Callable[..., Answer], str]] = {
    "login page": (
        lambda *_: (200, "text/html; charset=utf-8", b"<!doctype html><html><title>Sign in</title></html>"),
        r"answers with a web page \(Sign in\)",
    ),
    "redirection": (redirect, r"redirects \(status 302\), as a login page does"),
    "SSE only": (
        lambda *_: (200, "text/event-stream", b'data: {"choices": [{"delta": {"content": "{"}}]}\n\ndata: [DONE]\n\n'),
        "--llm-option stream=false",
    ),
    "wrong key": (lambda *_: refuse(401, f"Incorrect API key provided: {KEY}"), "refuses the key .*\\*\\*\\*"),
    "no quota": (
        lambda *_: (429, JSON, b'{"error": {"message": "You exceeded it", "code": "insufficient_quota"}}'),
        "has no quota left",
    ),
    "no payment": (lambda *_: refuse(402, "Insufficient credits"), "asks for payment"),
    "no access": (lambda *_: refuse(403, "quota"), "refuses access"),
    "wrong path": (lambda *_: (404, "text/plain", b"404 page not found"), "does not know the address"),
    "unknown model": (lambda *_: refuse(404, "The model `judge-1` does not exist"), "does not exist"),
    "unknown model, status 400": (lambda *_: refuse(400, "judge-1 is not a valid model ID"), "not a valid model ID"),
    "another model": (lambda path, headers, body: answer_well(body, model="gpt-4o-mini"), "--llm-served-model gpt-4o"),
    "reasoning model": (reasoning, "refuses max_tokens .*--llm-option max_tokens=null .*--llm-preset reasoning"),
    "no probabilities": (lambda *_: refuse(400, "logprobs is not supported by this endpoint"), "--llm-mode grade"),
    "no completion": (lambda *_: (200, JSON, b'{"error": "upstream"}'), "not a chat completion: .*upstream"),
}


@pytest.mark.parametrize("kind", PERMANENT)
def test_what_would_fail_again_ends_the_run_within_three_requests(
    dialeval: Dialeval, tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    import re

    answer, message = PERMANENT[kind]
    monkeypatch.setenv("DIALEVAL_LLM_KEY", KEY)
    with serve(answer) as server:
        given = ["--llm-endpoint", f"{server.address}/v1", "--llm-model", MODEL, "--llm-cache", str(tmp_path / "a")]
        done = dialeval("score", str(rows), "-m", "llm", *given, "-o", str(tmp_path / "run"))
    assert done.returncode == 2, done.stderr
    assert len(server.requests) <= 3
    assert re.search(message, done.stderr), done.stderr
    assert KEY not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_row_that_is_too_long_is_no_permanent_error(rows: Path, tmp_path: Path) -> None:
    def answer(path: str, headers: Mapping[str, str], body: Body) -> Answer:
        if "reply 0\n" in body["messages"][0]["content"]:
            return refuse(400, "This model's maximum context length is 10 tokens; reduce max_tokens or the message")
        return answer_well(body)

    with serve(answer) as server, LLM(f"{server.address}/v1", MODEL, mode="grade", cache=tmp_path / "a") as llm:
        import dialeval

        run = dialeval.evaluate(rows, metrics="llm", llm=llm)
    assert run["rows"]["llm"].scored == ROWS - 1


@pytest.mark.parametrize("mode", ["grade", "expected", "vote"])
def test_answers_without_a_single_grade_end_the_run(dialeval: Dialeval, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"response": f"reply {n}", "context": ["hi"]}) + "\n" for n in range(400)))
    with ChatServer(lambda _: Reply(text="Sure! I would give it a 4.")) as server:
        given = ["--llm-endpoint", server.address, "--llm-model", MODEL, "--llm-cache", str(tmp_path / "a")]
        done = dialeval("score", str(path), "-m", "llm", *given, "--llm-mode", mode, "--llm-concurrency", "4")
        assert done.returncode == 2, done.stderr
        assert len(server.bodies) <= 32 + 4
    assert done.stderr.count("the answer is not JSON: 'Sure! I would give it a 4.'") == 3


def test_secrets_are_nowhere(dialeval: Dialeval, tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a header, a query or a variable; the server repeats all of them."""
    secrets = {"TOKEN": "token-of-a-team", "QUERY": "query-secret/1", "DIALEVAL_LLM_KEY": KEY}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    literal = "literal-secret-2"

    def answer(path: str, headers: Mapping[str, str], body: Body) -> Answer:
        assert headers["x-token"] == f"Token {secrets['TOKEN']}"
        assert headers["x-plain"] == literal
        assert path == f"/v1/chat/completions?key={secrets['QUERY']}"
        said = " ".join([*secrets.values(), literal])
        if "reply 3\n" in body["messages"][0]["content"]:
            return refuse(400, said)
        whole = json.loads(completion(Reply(grades=GOOD), body))
        whole["choices"][0]["message"]["note"] = said
        return 200, JSON, json.dumps(whole).replace("/", "\\/").encode()

    with serve(answer) as server:
        program = "from dialeval.cli.main import main; main()"
        command = [sys.executable, "-c", program, "score", str(rows), "-m", "llm", "--llm-mode", "grade"]
        command += ["--llm-endpoint", f"{server.address}/v1?key=$QUERY", "--llm-model", MODEL]
        command += ["--llm-header", "x-token=Token ${TOKEN}", f"--llm-header=x-plain={literal}"]
        command += ["--llm-cache", str(tmp_path / "a"), "-o", str(tmp_path / "run")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    contents = [done.stdout, done.stderr]
    contents += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    for secret in (*secrets.values(), literal):
        assert not any(secret in content for content in contents), secret
    shown = dialeval(
        *("judge", "llm", str(rows), "--show-prompt", "--llm-model", MODEL, "--llm-preset", "reasoning"),
        *("--llm-endpoint", "https://h/v1?api-version=7&key=$QUERY", "--llm-header", "x-token=$TOKEN"),
    )
    assert "POST https://h/v1/chat/completions?api-version=7&key=***\nAuthorization: ***\nx-token: ***" in shown.stdout
    assert '"max_completion_tokens": 8192' in shown.stdout
    assert "temperature" not in shown.stdout


@contextmanager
def serve_proxy(target: str) -> Iterator[tuple[str, list[str]]]:
    """Run a proxy that sends every request and every tunnel to one server."""
    host, _, port = target.removeprefix("http://").removeprefix("https://").partition("/")[0].partition(":")
    heads: list[str] = []

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def talk(client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection((host, int(port))) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(1 << 16)
            heads.append(head.decode("latin-1").partition("\r\n\r\n")[0])
            if head.startswith(b"CONNECT"):
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                first, _, rest = head.partition(b"\r\n")
                method, url, version = first.split(b" ")
                server.sendall(b" ".join((method, b"/" + url.split(b"/", 3)[3], version)) + b"\r\n" + rest)
            back = threading.Thread(target=copy, args=(server, client), daemon=True)
            back.start()
            copy(client, server)
            back.join()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://me:p%40ss@127.0.0.1:{listening.getsockname()[1]}", heads
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_requests_go_through_the_proxy_of_the_environment(
    dialeval: Dialeval, tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(path: str, headers: Mapping[str, str], body: Body) -> Answer:
        return vllm(path.removeprefix("http://gateway.invalid"), headers, body)

    with serve(answer) as server, serve_proxy(server.address) as (proxy, heads):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("DIALEVAL_LLM_KEY", KEY)
        given = [
            "--llm-endpoint",
            "http://gateway.invalid/v1",
            "--llm-model",
            MODEL,
            "--llm-cache",
            str(tmp_path / "a"),
        ]
        given += ["--llm-concurrency", "1"]
        done = dialeval("score", str(rows), "-m", "llm", *given)
        assert done.returncode == 0, done.stderr
        assert heads[0].startswith("POST http://gateway.invalid/v1/chat/completions HTTP/1.1")
        assert "Host: gateway.invalid\r\n" in heads[0]
        assert "Proxy-Authorization: Basic bWU6cEBzcw==" in heads[0]


def test_tls_goes_through_a_tunnel_with_a_ca_of_the_company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gateway.invalid"]
    made += [
        "-addext",
        "subjectAltName=DNS:gateway.invalid",
        "-keyout",
        str(tmp_path / "key"),
        "-out",
        str(tmp_path / "ca"),
    ]
    with suppress(OSError):
        subprocess.run(made, check=False, capture_output=True)
    if not (tmp_path / "ca").exists():
        pytest.skip("needs openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca", tmp_path / "key")
    body = completion(Reply(grades=GOOD), {"model": MODEL, "messages": [{"content": ""}]})

    def talk() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                with (
                    suppress(OSError),
                    context.wrap_socket(client, server_side=True) as spoken,
                    spoken.makefile("rb") as request,
                ):
                    head = list(iter(request.readline, b"\r\n"))
                    assert head[:2] == [b"POST /v1/chat/completions HTTP/1.1\r\n", b"Host: gateway.invalid\r\n"]
                    request.read(int(next(line for line in head if line.startswith(b"Content-Length")).split()[1]))
                    spoken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=talk, daemon=True).start()
        with serve_proxy(f"http://127.0.0.1:{listening.getsockname()[1]}") as (proxy, heads):
            monkeypatch.setenv("HTTPS_PROXY", proxy)
            with LLM("https://gateway.invalid/v1", MODEL, cache=tmp_path / "a", ca=tmp_path / "ca") as llm:
                grades = grade_one(llm)
            assert grades == GOOD
            assert heads[0].startswith(
                "CONNECT gateway.invalid:443 HTTP/1.1\r\nHost: gateway.invalid:443\r\nProxy-Auth"
            )
            with (
                LLM("https://gateway.invalid/v1", MODEL, cache=tmp_path / "b") as llm,
                pytest.raises(SettingError, match="--llm-ca FILE"),
            ):
                grade_one(llm)
        listening.shutdown(socket.SHUT_RDWR)


def grade_one(llm: LLM) -> Mapping[str, float]:
    from dialeval.judges.llm.metric import label_texts
    from dialeval.judges.llm.rubrics import read_rubric

    (grades,) = llm.grade(read_rubric("reply"), [label_texts("reply", ["hi"], "yes")])
    return grades.values


def test_this_machine_and_exceptions_have_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", ".internal")
    found = {}
    for host in ("localhost", "127.0.0.1", "[::1]", "llm.internal", "api.example"):
        proxy = Gateway(f"http://{host}/v1").proxy
        found[host] = None if proxy is None else proxy.hostname
    assert found == {**dict.fromkeys(found), "api.example": "proxy.example"}
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example")
    with pytest.raises(SettingError, match="only HTTP proxies"):
        Gateway("http://api.example/v1")


def test_a_proxy_that_refuses_a_tunnel_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(lambda *_: refuse(403, "no")) as server:
        monkeypatch.setenv("HTTPS_PROXY", server.address)
        with (
            pytest.raises(SettingError, match=r"no connection \(the proxy refuses a tunnel, status 501\)"),
            LLM("https://gateway.invalid/v1", MODEL, cache=tmp_path / "a", backoff=0.01) as llm,
        ):
            grade_one(llm)
        assert llm.counts.requests == 3


def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    """Servers close idle connections; the next request opens one, and is not sent twice."""
    from dialeval.judges.llm.client import Connections

    with serve(lambda path, headers, body: (200, JSON, b"{}")) as server:
        connections = Connections(Gateway(f"{server.address}/v1"), 600.0)
        assert connections.post(b"{}")[1] == b"{}"
        (idle,) = connections._idle
        assert isinstance(idle, http.client.HTTPConnection)
        idle.sock.shutdown(socket.SHUT_RDWR)
        assert connections.post(b"{}")[1] == b"{}"
        connections.close()
    assert len(server.requests) == 2
