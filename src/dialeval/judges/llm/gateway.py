"""Gateways: where requests to a language model go, with which key and headers, and what its server needs.

    Gateway("https://NAME.openai.azure.com/openai/deployments/D?api-version=2024-10-21", auth="api-key")
    Gateway("https://gateway.example/v1", headers={"x-team": "chat", "x-token": "$TOKEN"}, ca="company.pem")

Values of headers and of the query may name environment variables: `$TOKEN`. The key, the values of headers and the
variables are secrets: they are removed from whatever a server returns, also where they are written with escapes of
JSON, before anything else sees the text. Shorter ones than eight characters, such as EMPTY, are placeholders, which
would change words of answers.

Proxies are those of the usual variables (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY); this machine is never asked
through one. A preset holds the address, the authentication, the mode and the fields that a kind of server needs.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal, NamedTuple, get_args
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson

from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.version import __version__

KEY_VARIABLE = "DIALEVAL_LLM_KEY"
Auth = Literal["bearer", "api-key", "none"]
MASK = "***"
_SHORTEST_SECRET = 8
_ESCAPE = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/]))')
"""A character of a text in JSON that is written with an escape."""
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_OURS = ("content-type", "content-length", "host", "transfer-encoding", "connection")
"""Headers that a request has already."""


class Preset(NamedTuple):
    """What a kind of server needs; other settings of the user take precedence."""

    endpoint: str | None = None
    auth: Auth | None = None
    mode: Literal["grade"] | None = None
    """`grade`, where the server returns no probabilities of tokens."""
    options: Mapping[str, object] = {}


PRESETS: Mapping[str, Preset] = {
    "openai": Preset("https://api.openai.com/v1"),
    "azure": Preset(auth="api-key"),
    "openrouter": Preset("https://openrouter.ai/api/v1", mode="grade"),
    "vllm": Preset("http://localhost:8000/v1"),
    "ollama": Preset("http://localhost:11434/v1", mode="grade"),
    "llama.cpp": Preset("http://localhost:8080/v1"),
    "reasoning": Preset(
        mode="grade", options={"max_tokens": None, "temperature": None, "seed": None, "max_completion_tokens": 8192}
    ),
}


def combine_presets(names: Sequence[str]) -> Preset:
    """Return several presets as one, such as `azure` and `reasoning`; of two values the later one counts."""
    if unknown := [name for name in names if name not in PRESETS]:
        raise SettingError(f"no preset is called {unknown[0]!r}; there are {', '.join(PRESETS)}")
    whole = Preset()
    for preset in (PRESETS[name] for name in names):
        settings = {name: value for name, value in preset._asdict().items() if value is not None}
        whole = whole._replace(**{**settings, "options": {**whole.options, **preset.options}})
    return whole


@dataclass
class Gateway:
    """An endpoint with what a connection to it needs."""

    endpoint: str
    key_variable: str = KEY_VARIABLE
    auth: Auth = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict)
    ca: str | os.PathLike[str] | None = None
    """A file of further certificates to trust, in PEM format."""

    def __post_init__(self) -> None:
        if self.auth not in get_args(Auth):
            raise SettingError(f"the authentication is one of {', '.join(get_args(Auth))}, not {self.auth!r}")
        self.secrets: list[str] = []
        self.address = self._read_endpoint()
        self.name = self.address._replace(query="").geturl().removesuffix("/chat/completions")
        """The endpoint without its query, which may have a key."""
        key = "" if self.auth == "none" else os.environ.get(self.key_variable, "").strip()
        self.sent_headers = {"Content-Type": "application/json", "User-Agent": f"dialeval/{__version__}"}
        if key:
            name, start = ("Authorization", "Bearer ") if self.auth == "bearer" else ("api-key", "")
            self.sent_headers[name] = start + self._keep_secret(key, f"the key in {self.key_variable}")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name) or name.lower() in _OURS:
                raise SettingError(f"{name!r:.40} is not the name of a header that can be added")
            self._keep_secret(value, f"the header {name}")
            self.sent_headers[name] = self._keep_secret(self._fill_in(value), f"the header {name}")
        self.proxy = self._find_proxy()

    def _read_endpoint(self) -> SplitResult:
        address, is_valid = urlsplit(""), False
        with suppress(ValueError):
            address = urlsplit(self.endpoint.strip())
            (address.hostname or "").encode("idna")
            is_valid = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
            query = self._fill_in(address.query)
            is_valid &= (address.path + query).isascii() and not re.search(r"[\x00-\x20\x7f]", self.endpoint + query)
        if not is_valid or "@" in address.netloc:
            what = "with no key, space or special letter in it"
            raise SettingError(f"an endpoint is an address such as http://localhost:8000/v1, {what}")
        path = address.path.rstrip("/").removesuffix("/chat/completions")
        return address._replace(path=f"{path}/chat/completions", query=query, fragment="")

    def _fill_in(self, text: str) -> str:
        """Replace the names of environment variables, which are secrets, by their values."""

        def find(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if not os.environ.get(name):
                raise SettingError(f"the environment variable {name} is empty or not set")
            return self._keep_secret(os.environ[name].strip(), f"the variable {name}")

        return _VARIABLE.sub(find, text)

    def _keep_secret(self, value: str, what: str) -> str:
        if not value.isascii() or not value.isprintable():
            raise SettingError(f"{what} has characters that a header cannot have")
        if len(value) >= _SHORTEST_SECRET:
            self.secrets = sorted({*self.secrets, value}, key=len, reverse=True)
        return value

    def _find_proxy(self) -> SplitResult | None:
        host, proxies = self.address.hostname or "", getproxies()
        with suppress(ValueError):
            host = "localhost" if ip_address(host).is_loopback else host
        stated = proxies.get(self.address.scheme) or proxies.get("all")
        if not stated or host == "localhost" or proxy_bypass(host):
            return None
        proxy = urlsplit(stated if "://" in stated else f"http://{stated}")
        if proxy.scheme != "http" or not proxy.hostname:
            raise SettingError(f"only HTTP proxies are used, not {proxy.scheme}://; NO_PROXY={host} leaves it out")
        return proxy

    @property
    def proxy_headers(self) -> dict[str, str]:
        """The headers for the proxy: name and password of its address."""
        if self.proxy is None or not self.proxy.username:
            return {}
        pair = f"{unquote(self.proxy.username)}:{unquote(self.proxy.password or '')}"
        return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}

    def open_tls(self) -> ssl.SSLContext | None:
        """Return the settings of TLS with the certificates that are trusted; None for plain HTTP."""
        if self.address.scheme != "https":
            return None
        context = ssl.create_default_context()
        if self.ca is not None:
            try:
                context.load_verify_locations(self.ca)
            except (OSError, ssl.SSLError) as error:
                reason = error.strerror or "no certificate in PEM format"
                raise SettingError(f"{os.fspath(self.ca)}: cannot be used as certificates ({reason})") from None
        return context

    def mask_json(self, body: bytes) -> bytes:
        """Return JSON, as orjson writes it, without secrets."""
        for secret in self.secrets:
            body = body.replace(orjson.dumps(secret)[1:-1], MASK.encode())
        return body

    def quote(self, body: bytes | str) -> str:
        """Return the start of what a server returned, for people: one line without secrets."""
        text = body.decode(errors="replace") if isinstance(body, bytes) else body
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], text)
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return escape_controls(" ".join(text.split()))[:200]

    def describe(self) -> str:
        """Return the first lines of a request without secrets."""
        query = re.sub(r"(?<!^api-version)(?<!&api-version)=[^&]*", f"={MASK}", self.address.query)
        target = self.address._replace(query=query).geturl()
        shown = {name: MASK for name in self.sent_headers if name not in ("Content-Type", "User-Agent")}
        lines = [f"POST {target}", *(f"{name}: {value}" for name, value in shown.items())]
        return "\n".join([*lines, *([] if self.proxy is None else [f"(through the proxy {self.proxy.hostname})"])])
