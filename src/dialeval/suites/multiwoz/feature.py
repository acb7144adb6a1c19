"""The feature `multiwoz`: the inputs of its metrics."""

from __future__ import annotations

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
