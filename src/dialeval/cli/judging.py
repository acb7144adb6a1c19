"""What `dialeval adem score` and `dialeval judge score` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialeval.cli.output import check_places, print_run, save_run
from dialeval.cli.progress import metered


def score_by(
    metric: str, judge: object, output: Path | None, format_: str, force: bool, inputs: dict[str, Any]
) -> None:
    """Score by one metric and a judge of one's own (None: the shipped one), then print and save the run."""
    from dialeval.data.shards.sources import file_names
    from dialeval.engine.evaluate import evaluate

    read = (inputs["responses"], inputs["references"], inputs["contexts"])
    check_places(output, *read, sources=() if force else file_names(inputs["responses"]))
    with metered() as meter:
        run = evaluate(**inputs, metrics=metric, judge=judge, progress=meter.run)
    if output is not None:
        save_run(run, output, force)
    print_run(run, format_)
