"""The feature `sgd`: goal, intent and slot accuracy of schema-guided dialogues."""

from __future__ import annotations

from dialeval.core.features import Command, Feature
from dialeval.core.inputs import Column, Input, Resource

FRAMES: Input = Column("frames", "object", "predictions")
"""What a system tracks of one service in a user turn: intent, requested slots, values of slots."""
SPANS: Input = Column("spans", "object", "predictions with slots in their frames")
"""The words of a user turn that are values of slots of a service, by a system."""
TRUE_FRAMES: Input = Column("true-frames", "object", "references", is_gold=True)
"""The true frame of each row, with its service."""
SCHEMA: Input = Resource("schema")
"""The slots of each service, and which of them are categorical."""

FEATURE = Feature(
    "sgd",
    topic="Task dialogues",
    metrics={
        FRAMES: ("dialeval.suites.sgd.metrics:GoalAccuracy,IntentAccuracy,RequestedSlots",),
        SPANS: ("dialeval.suites.sgd.metrics:SlotTagging",),
    },
    commands={
        "sgd": Command(
            "dialeval.suites.sgd.commands:sgd", "Schema-guided dialogues: goal, intent and slot accuracy.", "Suites"
        )
    },
)
