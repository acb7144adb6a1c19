"""Small samples of rows to rate, made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from dialeval.human.sample_files import Sample, SampledRow, SavedRows, SavedSample, SavedStratum, SavedSystem

DIGEST = "0" * 64


def sample_of(
    contexts: int = 10,
    systems: Sequence[str] = ("secret-one", "secret-two"),
    text: str | None = None,
    independent: bool = False,
) -> Sample:
    """Every system's response to every context; `text` stands in every text of a row."""
    rows = [
        SampledRow(
            id=f"{'kq'[number]}{at:03}abcd",
            system=system,
            row=1 + at + 1000 * number * independent,
            probability=0.5,
            stratum="all",
            response=text or f"response {at} of {'xy'[number]}",
            context=[text or f"question {at}", "and then?"],
            roles=[text, "user"] if text else [],
            reference=[text or f"reference {at}"],
            dialog_id=f"dialogue {at}",
            turn=at,
        )
        for at in range(contexts)
        for number, system in enumerate(systems)
    ]
    stratum = SavedStratum(2 * contexts, contexts, 2 * len(rows), len(rows))
    design = SavedSample(
        dialeval="0",
        format=1,
        seed=7,
        unit="contexts",
        stratify=[],
        systems={name: SavedSystem(2000, 2000, DIGEST) for name in systems},
        strata={"all": stratum},
        rows=SavedRows("rows.jsonl", DIGEST),
    )
    return Sample(design, rows)
