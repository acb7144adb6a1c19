"""Traces: spans of OTLP as JSONL per CPU second, and the peak of memory. Not part of `make bench`.

    python -m benchmarks traces

Each trace is a request of a user: spans about HTTP and databases, and calls of a model with their messages. The first
figure has one call of a model among ten spans, the second among twenty, and in the third every span is one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPANS = 1_000_000
PROGRAM = """
import resource, sys, time
from dialeval.io.reading import read_responses
start = time.process_time()
[rows] = read_responses(sys.argv[1])
print(len(rows), time.process_time() - start, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9)
"""


def span(trace: int, number: int, name: str, attributes: dict[str, str]) -> dict[str, Any]:
    """A span as a collector writes it."""
    start = 10**18 + number * 10**6
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    ids = {"traceId": f"{trace:032x}", "spanId": f"{number:016x}", "parentSpanId": f"{trace:016x}"}
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 10**5)}
    return {**ids, "name": name, "kind": 1, **times, "attributes": listed, "status": {}}


def write(path: Path, spans: int, each: int) -> None:
    """A file of requests with `each` spans, the last of which is a call of a model."""
    web = {"http.method": "GET", "http.url": "http://shop/times", "http.status_code": "200", "net.peer.name": "db"}
    with path.open("w") as file:
        for trace in range(spans // each):
            numbers = range(trace * each, trace * each + each)
            asked, said = f"When does ferry {trace} leave from pier {trace % 7}?", f"It leaves at {trace % 24}."
            messages = {
                f"gen_ai.{side}.messages": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
                for side, role, text in (("input", "user", asked), ("output", "assistant", said))
            }
            call = span(trace, numbers[-1], "chat m", {"gen_ai.operation.name": "chat", **messages})
            listed = [*(span(trace, number, "GET /times", web) for number in numbers[:-1]), call]
            file.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": listed}]}]}) + "\n")


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    with tempfile.TemporaryDirectory() as folder:
        for each, spans in ((10, SPANS), (20, SPANS), (1, SPANS // 10)):
            path = Path(folder, "traces.jsonl")
            write(path, spans, each)
            run = [sys.executable, "-c", PROGRAM, str(path)]
            replies, seconds, peak = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
            rate = (
                f"{spans / float(seconds):,.0f} spans and {int(replies) / float(seconds):,.0f} replies per CPU second"
            )
            yield f"{spans:,} spans, {each} per call of a model", f"{rate}; {float(peak):.2f} GB at most"
