"""The judge: replies judged per second of one core, by the shipped forward pass in NumPy and by onnxruntime.

Replies of twelve words, drawn from the words of the shipped sample, each with a context of three turns that are as
long. Where onnxruntime and onnx are installed, the same model is run by them as well, in float32 and in eight bits, on
the same word pieces; and it is looked whether what they say of a reply depends on the replies beside it. Each library
has a process of its own, with one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import cpu_seconds
from dialeval import sample_data
from dialeval.core.arrays import Floats
from dialeval.judges.judge import HEADS, SHIPPED, CrossEncoder, load_judge, split_heads
from dialeval.metrics.encoder_files import find_encoder

REPLIES = 256
TURNS = 3
AT_ONCE = (1, 8)
"""Replies that onnxruntime is given at once."""
NEEDED = ("onnxruntime", "onnx")


def texts() -> tuple[list[list[str]], list[str]]:
    """Contexts and replies."""
    words = (sample_data.folder() / "train.txt").read_text(encoding="utf-8").split()
    drawn = np.random.default_rng(1).choice(words, (REPLIES, TURNS + 1, 12)).tolist()
    said = [[" ".join(turn) for turn in row] for row in drawn]
    return [row[:-1] for row in said], [row[-1] for row in said]


def reader() -> CrossEncoder:
    """The shipped judge's cross-encoder."""
    weights = load_judge(SHIPPED)
    return CrossEncoder(find_encoder(weights.encoder), weights.changes, weights.shape)


def numpy_judge() -> dict[str, Any]:
    """Replies per CPU second, and whether neighbors change anything."""
    judge, (contexts, replies) = reader(), texts()
    judge.compute_heads(contexts[:8], replies[:8])  # weights and kernels are loaded
    rate = REPLIES / cpu_seconds(lambda: judge.compute_heads(contexts, replies))
    whole = judge.compute_heads(contexts, replies)
    alone = np.concatenate([judge.compute_heads(contexts[row : row + 1], replies[row : row + 1]) for row in range(32)])
    return {"rate": rate, "apart": float(np.abs(alone - whole[:32]).max())}


def onnx_judge(folder: str) -> dict[str, Any]:
    """The same by onnxruntime, by kind of numbers and replies at once; and how far it is from NumPy."""
    import onnxruntime
    from onnxruntime.quantization import quantize_dynamic

    from benchmarks.judge_graph import graph

    judge, (contexts, replies) = reader(), texts()
    reference = judge.compute_heads(contexts, replies)
    files = {kind: str(Path(folder, f"{kind}.onnx")) for kind in ("float32", "int8")}
    Path(files["float32"]).write_bytes(graph())
    quantize_dynamic(files["float32"], files["int8"], extra_options={"DefaultTensorType": 1})
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    found = {}
    for kind, file in files.items():
        session = onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"])
        heads = {many: _heads(judge, session.run, contexts, replies, many) for many in AT_ONCE}
        for many in AT_ONCE:
            seconds = cpu_seconds(lambda: _heads(judge, session.run, contexts, replies, many))  # noqa: B023
            theirs, ours = (split_heads(each)["rating"][:, 0] for each in (heads[many], reference))
            found[f"{kind}, {many} at a time"] = {
                "rate": REPLIES / seconds,
                "from NumPy": float(np.abs(heads[many] - reference).max()),
                "correlation": float(np.corrcoef(theirs, ours)[0, 1]),
                "apart": float(np.abs(heads[many] - heads[1]).max()),
            }
    return found


def _heads(
    judge: CrossEncoder, run: Callable[..., Any], contexts: list[list[str]], replies: list[str], many: int
) -> Floats:
    """What the heads say of each reply, from texts on, some replies at a time, those of one length together."""
    read = judge.make_sequences(contexts, replies)
    order = np.argsort([len(ids) for ids, _ in read], kind="stable")
    found = np.empty((REPLIES, sum(HEADS.values())))
    for start in range(0, REPLIES, many):
        rows = order[start : start + many].tolist()
        longest = max(len(read[row][0]) for row in rows)
        ids = np.zeros((len(rows), longest), np.int64)
        mask, second = (np.zeros(ids.shape, np.float32) for _ in range(2))
        for place, row in enumerate(rows):
            pieces, said = read[row]
            ids[place, : len(pieces)] = pieces
            mask[place, : len(pieces)] = 1
            second[place, len(pieces) - said : len(pieces)] = 1
        (found[rows],) = run(None, {"ids": ids, "mask": mask, "second": second})
    return found


def _alone(call: str) -> Any:
    """What a function of this module gives in a process with one thread, settled before a library is loaded."""
    code = f"import json; from benchmarks import judge; print(json.dumps(judge.{call}))"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    made = _alone("numpy_judge()")
    yield "NumPy, as shipped, replies per CPU second", f"{made['rate']:.0f}, neighbors change {_much(made['apart'])}"
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        yield "onnxruntime", f"not measured: {' and '.join(missing)} not installed here"
        return
    with tempfile.TemporaryDirectory() as folder:
        for what, each in _alone(f"onnx_judge({folder!r})").items():
            far = f"{_much(each['from NumPy'])} from NumPy, correlation of ratings {each['correlation']:.3f}"
            yield f"onnxruntime, {what}", f"{each['rate']:.0f}, {far}, neighbors change {_much(each['apart'])}"


def _much(difference: float) -> str:
    return "nothing" if difference == 0 else f"up to {difference:.1g}"
