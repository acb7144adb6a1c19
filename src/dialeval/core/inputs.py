"""Inputs of metrics: columns of the rows by name and type, and resources such as word vectors.

A metric declares its inputs before it may read them; the plan of a run finds out which of them exist. Two inputs are
equal if their names are. `Column.of_field` is a field of the user's rows under its own name. Suites and judges define
inputs of their own next to their metrics; those here are filled by readers of rows, or shared by several metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from typing_extensions import Self

Kind = Literal["text", "texts", "messages", "number", "boolean", "label", "object"]
"""The type of the values of a column: a text, any number of texts, turns, a number, yes or no, the name of a class, or
any JSON value."""

OPTIONS: dict[str, str] = {}
"""What provides an argument in a program with options of its own: the command line fills it for its messages."""

_FIELD = "field:"


class Input(str):
    """The name of an input."""

    __slots__ = ("argument", "is_gold", "kind")

    argument: str
    """What provides it: the keyword of a function such as `dialeval.evaluate`, or what the rows must have."""
    kind: Kind | None
    is_gold: bool
    """Whether it is what responses of the same row or dialogue are compared with."""

    def __new__(cls, name: str, kind: Kind | None = None, argument: str = "", is_gold: bool = False) -> Self:
        one = str.__new__(cls, name)
        one.kind, one.argument, one.is_gold = kind, argument or name, is_gold
        return one

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.kind, self.argument, self.is_gold

    def __str__(self) -> str:
        return str.__str__(self)

    @property
    def option(self) -> str:
        """What provides it on the command line, where that is known."""
        return OPTIONS.get(self.argument, self.argument)

    @property
    def remedy(self) -> str:
        """One line for a metric that lacks it."""
        if not self.argument.isidentifier():
            return f"needs {self.argument}"
        ways = [f"{self.argument}=... in Python"]
        if self.argument in OPTIONS:
            ways.insert(0, f"{self.option} on the command line")
        return f"needs {self.argument}: {', '.join(ways)}"


class Resource(Input):
    """Data other than the rows, which is opened once per run."""

    __slots__ = ()


class Column(Input):
    """A column of the rows.

    Examples:
        >>> Column.of_field("user_rating", "number").field
        'user_rating'
    """

    __slots__ = ()

    @classmethod
    def of_field(cls, name: str, kind: Kind = "object") -> Column:
        """Return the column of a field of the rows; dots lead into objects, as in `scores.helpfulness`."""
        return cls(_FIELD + name, kind, f"a field {name} in responses")

    @property
    def field(self) -> str | None:
        """The field of the rows that it holds; None for a column that readers or suites fill."""
        return self[len(_FIELD) :] if self.startswith(_FIELD) else None


RESPONSE: Input = Column("response", "text", "responses")
REFERENCE: Input = Column("reference", "texts", "references")
CONTEXT: Input = Column("context", "messages", "contexts")
ROLES: Input = Column("roles", "texts", "contexts")
"""Who said each turn of a context: user, assistant, tool or system; empty where the input does not say."""
OUTCOME: Input = Column("outcome", "label", "responses")
"""Of a reply that failed, why: `missing`, `empty`, `error` or `skipped`."""
HYPOTHESES: Input = Column("hypotheses", "texts", "responses")
"""Several responses to one query, as sampled from a system."""
REFERENCE_GROUPS: Input = Column("reference-groups", "texts", "reference_groups", is_gold=True)
"""References in groups of one meaning each."""
TRIALS: Input = Column("trials", "object", "fields trial and reward in responses")
"""The trials of tasks, each in its first row."""
CALLS: Input = Column("calls", "object", "messages with tool calls, or a field tool_calls, in responses")
"""The tool calls of a row, or in the last row of a chat those of the chat."""
EXPECTED_CALLS: Input = Column("expected-calls", "object", "a field expected_calls in responses")
"""The calls that should be made, in the rows that have calls."""
TURN_LABELS: Input = Column("turn-labels", "object", "a field labels in responses, or in their messages")
"""Labels of a reply by annotators or models, with counts of annotators."""
LATENCY: Input = Column("latency", "number", "a field latency, or messages with a timestamp, in responses")
"""The seconds until a reply was there."""
SCORES: Input = Column(
    "scores",
    "object",
    "a field of that name with numbers, yes or no in responses, or in a table of scores: --scores FILE",
)
"""Scores that the rows carry: an object by name, in the row in which they count."""
LABELS: Input = Column("labels", "number")
"""A breakdown detector's label and probabilities for a turn."""
ANNOTATIONS: Input = Column("annotations", "number", "data")
"""Human annotations of a turn: the number of annotators who labeled it O, T and X."""

TRAIN: Input = Resource("train")
VOCABULARY: Input = Resource("vocabulary")
EMBEDDINGS: Input = Resource("vectors")
CALL_CHECKS: Input = Resource("call-checks", argument="checks")
"""Rules about tool calls, from a TOML file."""
TEXT_CHECKS: Input = Resource("text-checks", argument="checks")
"""Rules about the texts of replies, from the same file."""
JUDGE: Input = Resource("judge", argument="judge")
"""A learned judge with its sentence encoder; available without an option wherever the encoder is installed."""
DIALOGUE_JUDGE: Input = Resource("dialogue-judge", argument="judge")
"""The same for a judge that reads context and response together."""
ENCODER: Input = Resource("encoder", argument="an installed sentence encoder")
"""The sentence encoder of the shipped judges; available without an option wherever it is installed."""
LLM: Input = Resource("llm")
"""A language model that is asked for grades over a network, or whose recorded answers are read."""
