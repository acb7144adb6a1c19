"""The section of the report: the variety of openings, by system."""

from dialeval import Run
from dialeval.plugin import Document, Table


def make_section(run: Run) -> Document | None:
    """Return a table of the systems; texts are escaped by the report."""
    rows = [[name, f"{result['openings'].mean:.2f}"] for name, result in run.items() if "openings" in result]
    notes = ["Different first words, divided by replies."]
    return Document([], [Table(["system", "openings"], rows)], notes, headline="Openings") if rows else None
