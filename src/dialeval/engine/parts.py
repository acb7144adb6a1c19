"""Parts: states that grow with the rows, merged by many workers at once.

A worker cuts the states of a chunk into parts (`core.fold.Fold.cut`). Parts of the same number, of all chunks, hold the
same n-grams, so one worker merges them without knowing the others, and closes the sum. Only that, a few numbers, comes
to the first process; all other folds come there with their chunk, as they are small. However many parts there are,
and whoever merges them, the estimates are the same to the last digit: every count is a whole number.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dialeval.core.files import write_scratch
from dialeval.core.states import from_bytes, to_bytes
from dialeval.engine.job import Job, Stage, StateSums, SystemState, SystemStates
from dialeval.text.vocabulary import Vocabulary


def cut_states(job: Job, stage: Stage, states: SystemStates, parts: int) -> tuple[SystemStates, list[SystemStates]]:
    """What goes to the first process, and the parts of what grows."""
    rest: SystemStates = {}
    pieces: list[SystemStates] = [{} for _ in range(parts)]
    for system, state in states.items():
        pairs = list(zip(job.folds(stage, system[0]), state.states, strict=True))
        kept = tuple(fold.closed(fold.empty()) if fold.grows else each for fold, each in pairs)
        rest[system] = replace(state, states=kept)
        cuts = [fold.cut(each, parts) if fold.grows else [fold.empty()] * parts for fold, each in pairs]
        for number, piece in enumerate(pieces):
            piece[system] = SystemState(0, tuple(several[number] for several in cuts))
    return rest, pieces


def merged_part(job: Job, stage: Stage, pieces: Iterable[SystemStates]) -> SystemStates:
    """The sum of the same part of several chunks, over one vocabulary."""
    sums = StateSums(job, stage, Vocabulary())
    for piece in pieces:
        sums.add(piece)
    return sums.result()


def closed_part(job: Job, stage: Stage, part: SystemStates) -> SystemStates:
    """What goes to the first process of a part that is merged for all chunks."""
    closed: SystemStates = {}
    for system, state in part.items():
        pairs = zip(job.folds(stage, system[0]), state.states, strict=True)
        closed[system] = SystemState(0, tuple(fold.closed(each) if fold.grows else each for fold, each in pairs))
    return closed


def write_parts(folder: Path, pieces: Iterable[SystemStates]) -> list[str]:
    """Write the parts of a chunk to files of a temporary folder."""
    # A name of its own: after a death another worker may be writing the parts of the same chunk.
    files = []
    for piece in pieces:
        file = folder / f"part-{os.urandom(16).hex()}"
        write_scratch(file, to_bytes(piece))
        files.append(str(file))
    return files


def read_part(job: Job, stage: Stage, file: str) -> SystemStates:
    """One of the files that `write_parts` wrote."""
    part: SystemStates = from_bytes(Path(file).read_bytes(), job.no_rows(stage))
    return part
