"""The kernel that skims annotated dialogues agrees with decoding them, or gives up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.breakdown.challenge import SAMPLE
from data.breakdown.test_documents import documents, typed
from dialeval.core.kernels import Kernels
from dialeval.data.breakdown import logs
from dialeval.data.breakdown.faults import Findings
from dialeval.data.breakdown.skim import PADDING

KERNEL = Kernels("dialeval.data.breakdown.breakdown_kernel")


def skimmed(data: bytes) -> tuple[str, list[int], list[list[int]]] | None:
    """What the kernel makes of a document; None if it gives up."""
    padded = np.frombuffer(data + bytes(PADDING), np.uint8)
    turns, counts, found = np.zeros((64, 2), np.int64), np.zeros((64, 4), np.int64), np.zeros(4, np.int64)
    if not KERNEL.skim(padded, len(data), turns, counts, 0, found):
        return None
    start, end, number, _ = found.tolist()
    return data[start:end].decode(), turns[:number, 0].tolist(), counts[:number].tolist()


def test_a_skimmed_folder_is_a_decoded_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for path in (SAMPLE / "data").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    odd = json.loads(next((SAMPLE / "data").iterdir()).read_text()) | {"dialogue-id": "größe 日本"}
    (tmp_path / "ünïcode.log.json").write_text(json.dumps(odd, ensure_ascii=False))
    odd["turns"][0]["note"] = {"deep": [1, 2.5, None]}
    (tmp_path / "a.log.json").write_text(json.dumps(odd | {"dialogue-id": "odd"}))
    decoded = logs.read_logs(tmp_path, Findings())
    monkeypatch.setattr(logs, "SKIMMED_FILES", 1)
    found = logs.read_logs(tmp_path, Findings())
    assert found.dialogues == decoded.dialogues
    for name in ("offsets", "turns", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(decoded, name))
    (tmp_path / "broken.log.json").write_bytes(b'{"dialogue-id": "x", "turns": [')
    findings = Findings()
    logs.read_logs(tmp_path, findings)
    assert "not JSON" in findings.faults[0].what


@given(st.data())
@settings(max_examples=300)
def test_the_kernel_agrees_with_decoding_or_gives_up(data: Any) -> None:
    """Whole documents, and documents with a byte changed or an end cut off."""
    indent, ascii_ = data.draw(st.sampled_from([None, 1])), data.draw(st.booleans())
    content = bytearray(json.dumps(data.draw(documents), indent=indent, ensure_ascii=ascii_).encode())
    kind = data.draw(st.sampled_from(["whole", "changed", "cut"]))
    if kind == "changed":
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    elif kind == "cut":
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    found = skimmed(bytes(content))
    assert found is None or found == typed(bytes(content))


def test_the_kernel_takes_the_files_of_the_challenge() -> None:
    assert all(skimmed(path.read_bytes()) is not None for path in (SAMPLE / "data").iterdir())


@pytest.mark.parametrize(
    ("index", "taken"), [(b"7", True), (b"123456789", True), (b"1234567890", False), (b"07", False), (b"1.5", False)]
)
def test_which_numbers_the_kernel_takes(index: bytes, taken: bool) -> None:
    document = b'{"dialogue-id": "d", "turns": [{"turn-index": %b, "speaker": "S", "annotations": []}]}' % index
    assert (skimmed(document) is not None) == taken


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (b"\xc2\xbf", True),
        (b"\xc2\xc0", False),
        (b"\xc2\x7f", False),
        (b"\xe0\xa0\x80", True),
        (b"\xe0\x9f\xbf", False),
        (b"\xed\x9f\xbf", True),
        (b"\xed\xa0\x80", False),
        (b"\xf4\x8f\xbf\xbf", True),
        (b"\xf4\x90\x80\x80", False),
        (b"!", True),
        (b"#", True),
    ],
)
def test_which_texts_the_kernel_takes(text: bytes, taken: bool) -> None:
    document = b'{"dialogue-id": "%b", "turns": []}' % text
    found = skimmed(document)
    assert (found is not None) == taken
    if found is not None:
        assert found[0] == text.decode()
