"""What a metric can ask for, and how a user gives it.

A need is a column of the rows or a resource from outside of them: the training text, the list of known words, word
vectors. The plan switches a metric off when one of its needs is not met, and quotes `remedy` so that the user knows
what to pass.
"""

from __future__ import annotations

from enum import Enum


class Need(str, Enum):
    """Something a metric declares before it may look at it."""

    RESPONSE = "response"
    REFERENCE = "reference"
    CONTEXT = "context"
    ROLES = "roles"
    """Who said each turn of a context: user, assistant, tool or system; empty where the input does not say."""
    HYPOTHESES = "hypotheses"
    """Several responses to one query, as sampled from a system."""
    REFERENCE_GROUPS = "reference-groups"
    """References in groups of one meaning each."""
    LABELS = "labels"
    """A breakdown detector's label and probabilities for a turn."""
    ANNOTATIONS = "annotations"
    """What people said about a turn: how many of them called it O, T and X."""
    TASK_TURNS = "task-turns"
    """The turns of task dialogues: response and, where a system gives them, state and active domains."""
    TRIALS = "trials"
    """How often a task was tried and passed, in the first row of its dialogue."""
    STATES = "states"
    """The states that a system predicts, one in every turn."""
    FRAMES = "frames"
    """What a system tracks of one service in a user turn: intent, requested slots, values of slots."""
    SPANS = "spans"
    """The words of a user turn that are values of slots of a service, by a system."""
    TRUE_FRAMES = "true-frames"
    """The true frame of each row, with its service."""
    SCHEMA = "schema"
    """The slots of each service, and which of them are categorical."""
    GOALS = "goals"
    TRUE_STATES = "true-states"
    REFERENCE_SETS = "reference-sets"
    ONTOLOGY = "ontology"
    VENUES = "venues"
    TRAIN = "train"
    VOCABULARY = "vocabulary"
    EMBEDDINGS = "embeddings"
    JUDGE = "judge"
    """A learned judge with its sentence encoder; available without an option wherever the encoder is installed."""
    DIALOGUE_JUDGE = "dialogue-judge"
    """The same for a judge that reads context and response together."""
    ENCODER = "encoder"
    """The sentence encoder of the shipped judges; available without an option wherever it is installed."""

    def __str__(self) -> str:
        return self.value

    @property
    def argument(self) -> str:
        """The keyword of `dialeval.evaluate` that provides it."""
        return _ARGUMENTS[self][0]

    @property
    def flag(self) -> str:
        """The option of `dialeval score` that provides it."""
        return _ARGUMENTS[self][1]

    @property
    def remedy(self) -> str:
        """One line for a metric that lacks it."""
        return f"needs {self.argument}: {self.flag} on the command line, {self.argument}=... in Python"


_ARGUMENTS = {
    Need.RESPONSE: ("responses", "RESPONSES"),
    Need.REFERENCE: ("references", "-r"),
    **dict.fromkeys((Need.CONTEXT, Need.ROLES), ("contexts", "-c")),
    Need.HYPOTHESES: ("responses", "HYPOTHESES"),
    Need.REFERENCE_GROUPS: ("reference_groups", "-r"),
    Need.LABELS: ("labels", "-o"),
    Need.ANNOTATIONS: ("data", "-p"),
    Need.TASK_TURNS: ("predictions", "-i"),
    Need.TRIALS: ("trials", "fields trial and reward in RESPONSES, read at once and not in chunks"),
    Need.STATES: ("states", "a `state` in every turn of -i"),
    Need.FRAMES: ("predictions", "PREDICTIONS"),
    Need.SPANS: ("spans", "`slots` in frames of PREDICTIONS"),
    Need.TRUE_FRAMES: ("references", "-r"),
    Need.SCHEMA: ("schema", "--schema"),
    **dict.fromkeys(
        (Need.GOALS, Need.TRUE_STATES, Need.REFERENCE_SETS, Need.ONTOLOGY, Need.VENUES), ("data", "--data")
    ),
    Need.TRAIN: ("train", "--train"),
    Need.VOCABULARY: ("vocabulary", "--vocab"),
    Need.EMBEDDINGS: ("embeddings", "--vectors"),
    **dict.fromkeys((Need.JUDGE, Need.DIALOGUE_JUDGE), ("judge", "--judge")),
    Need.ENCODER: ("encoder", "an installed sentence encoder"),
}
