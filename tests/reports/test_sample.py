"""The shipped sample: complete, aligned, and tokenized as it says."""

from __future__ import annotations

from dialeval.sample_data import folder

ALIGNED = ["contexts.txt", "references.txt", *(f"responses/{name}.txt" for name in ("careful", "chatty", "generic"))]


def lines(name: str) -> list[str]:
    return (folder() / name).read_text(encoding="utf-8").splitlines()


def test_files_are_aligned() -> None:
    assert {len(lines(name)) for name in ALIGNED} == {60}
