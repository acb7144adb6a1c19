"""Attacks on a judge with the rows of a file, or with the shipped sample."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dialeval import sample
from dialeval.core.needs import Need
from dialeval.data.rows.reading import attach, read_files, read_texts
from dialeval.data.rows.system import Rows
from dialeval.metrics.learned.attack import Attack, attack
from dialeval.metrics.learned.judge import open_judge


def attack_rows(
    responses: Sequence[str | os.PathLike[str]] | None = None,
    references: str | os.PathLike[str] | None = None,
    contexts: str | os.PathLike[str] | None = None,
    judge: str | os.PathLike[str] | None = None,
    encoder: str | os.PathLike[str] | None = None,
    device: str = "cpu",
    fields: Mapping[str, str] | None = None,
) -> list[Attack]:
    """Every attack on every row of files of responses; see `metrics.learned.attack`."""
    if responses is None:
        here = sample.folder()
        responses = sorted((here / "responses").iterdir())
        references, contexts = here / "references.txt", here / "contexts.txt"
    systems = read_files(responses, fields)
    for need, source in ((Need.REFERENCE, references), (Need.CONTEXT, contexts)):
        if source is not None:
            column = read_texts(source, need, fields)
            systems = [attach(rows, need, column, os.fspath(source)) for rows in systems]
    texts = [text for rows in systems for text in rows.responses]
    return attack(
        open_judge(judge, encoder, device), _lists(systems, Need.CONTEXT), texts, _lists(systems, Need.REFERENCE)
    )


def _lists(systems: Sequence[Rows], need: Need) -> list[Sequence[str]]:
    """The texts of a need, row by row over all systems; none where a system has none."""
    found: list[Any] = []
    for rows in systems:
        found += list(rows.columns[need]) if need in rows.columns else [()] * len(rows)
    return found
