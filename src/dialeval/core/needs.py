"""What a metric can ask for, and how a user gives it.

A need is a column of the rows or a resource from outside of them: the training text, the list of known words, word
vectors. The plan switches a metric off when one of its needs is not met, and quotes `remedy` so that the user knows
what to pass.
"""

from __future__ import annotations

from enum import Enum


class Need(str, Enum):
    """Something a metric declares before it may look at it."""

    argument: str
    """The keyword of `dialeval.evaluate` that provides it."""
    flag: str
    """The option of `dialeval score` that provides it."""

    RESPONSE = "response", "responses", "RESPONSES"
    REFERENCE = "reference", "references", "-r"
    CONTEXT = "context", "contexts", "-c"
    ROLES = "roles", "contexts", "-c"
    """Who said each turn of a context: user, assistant, tool or system; empty where the input does not say."""
    HYPOTHESES = "hypotheses", "responses", "HYPOTHESES"
    """Several responses to one query, as sampled from a system."""
    REFERENCE_GROUPS = "reference-groups", "reference_groups", "-r"
    """References in groups of one meaning each."""
    LABELS = "labels", "labels", "-o"
    """A breakdown detector's label and probabilities for a turn."""
    ANNOTATIONS = "annotations", "data", "-p"
    """What people said about a turn: how many of them called it O, T and X."""
    TASK_TURNS = "task-turns", "predictions", "-i"
    """The turns of task dialogues: response and, where a system gives them, state and active domains."""
    TRIALS = "trials", "trials", "fields trial and reward in RESPONSES, read at once and not in chunks"
    """How often a task was tried and passed, in the first row of its dialogue."""
    STATES = "states", "states", "a `state` in every turn of -i"
    """The states that a system predicts, one in every turn."""
    FRAMES = "frames", "predictions", "PREDICTIONS"
    """What a system tracks of one service in a user turn: intent, requested slots, values of slots."""
    SPANS = "spans", "spans", "`slots` in frames of PREDICTIONS"
    """The words of a user turn that are values of slots of a service, by a system."""
    TRUE_FRAMES = "true-frames", "references", "-r"
    """The true frame of each row, with its service."""
    SCHEMA = "schema", "schema", "--schema"
    """The slots of each service, and which of them are categorical."""
    GOALS = "goals", "data", "--data"
    TRUE_STATES = "true-states", "data", "--data"
    REFERENCE_SETS = "reference-sets", "data", "--data"
    ONTOLOGY = "ontology", "data", "--data"
    VENUES = "venues", "data", "--data"
    TRAIN = "train", "train", "--train"
    VOCABULARY = "vocabulary", "vocabulary", "--vocab"
    EMBEDDINGS = "embeddings", "embeddings", "--vectors"
    JUDGE = "judge", "judge", "--judge"
    """A learned judge with its sentence encoder; available without an option wherever the encoder is installed."""
    DIALOGUE_JUDGE = "dialogue-judge", "judge", "--judge"
    """The same for a judge that reads context and response together."""
    ENCODER = "encoder", "encoder", "an installed sentence encoder"
    """The sentence encoder of the shipped judges; available without an option wherever it is installed."""

    def __new__(cls, name: str, argument: str = "", flag: str = "") -> Need:
        need = str.__new__(cls, name)
        need._value_, need.argument, need.flag = name, argument, flag
        return need

    def __str__(self) -> str:
        return str(self.value)

    @property
    def remedy(self) -> str:
        """One line for a metric that lacks it."""
        return f"needs {self.argument}: {self.flag} on the command line, {self.argument}=... in Python"
