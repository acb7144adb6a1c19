"""The feature `multiwoz`: Inform, Success, BLEU, richness and state tracking of task dialogues."""

from __future__ import annotations

from dialeval.core.features import Command, Feature
from dialeval.core.inputs import Column, Input, Resource

TASK_TURNS: Input = Column("task-turns", "object", "predictions")
"""The turns of task dialogues: response and, where a system gives them, state and active domains."""
STATES: Input = Column("states", "object", "predictions with a state in every turn")
"""The states that a system predicts, one in every turn."""
GOALS: Input = Resource("goals", argument="data", is_gold=True)
TRUE_STATES: Input = Resource("true-states", argument="data", is_gold=True)
REFERENCE_SETS: Input = Resource("reference-sets", argument="data", is_gold=True)
ONTOLOGY: Input = Resource("ontology", argument="data")
VENUES: Input = Resource("venues", argument="data")

FEATURE = Feature(
    "multiwoz",
    topic="Task dialogues",
    metrics={
        TASK_TURNS: (
            "dialeval.suites.multiwoz.metrics:Inform,Success,TaskBleu,Combined,Complete,Book",
            "dialeval.suites.multiwoz.richness:Richness",
        ),
        STATES: ("dialeval.suites.multiwoz.metrics:Tracking",),
    },
    packs=("dialeval.suites.multiwoz:packs.toml",),
    details=dict.fromkeys(("transcripts", "failures"), "dialeval.suites.multiwoz.explanations:TaskDetails"),
    sections={
        "failures": {"table": "dialeval.suites.multiwoz.report:make_ceiling_table"},
        "transcripts": {"section": "dialeval.suites.multiwoz.report:make_transcripts_section"},
    },
    commands={
        "multiwoz": Command(
            "dialeval.suites.multiwoz.commands:multiwoz",
            "Task dialogues: Inform, Success, BLEU, and failures explained.",
            "Suites",
        )
    },
)
