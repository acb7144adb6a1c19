"""The account of what was read: every reply that was due in the input is in exactly one class.

    due = replies + without_reply + empty + errors + skipped_requests + calls_only

All but `replies` and `calls_only` are failures. An account merges like every state, across files, chunks and workers,
and is kept with the result of its system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from dialeval.core.errors import Problem

MISSING, EMPTY, ERROR, SKIPPED = "missing", "empty", "error", "skipped"
"""Why a reply failed: the values of `inputs.OUTCOME`."""
FAILURES = "failure-rate"
"""The metric that is computed wherever a reply of some system failed."""
MOST_LISTED = 20
"""Skipped rows that an account lists."""
_CLASSES = {
    "without_reply": "without a reply",
    "empty": "empty",
    "errors": "error|errors",
    "skipped": "skipped as invalid",
    "calls_only": "with tool calls only",
    "dropped": "row that is no reply and was left out|rows that are no replies and were left out",
    "renamed": "conversation with the id of another one|conversations with the id of another one",
    "merged": "reply that was written twice|replies that were written twice",
    "reasoning": "without its reasoning block|without their reasoning blocks",
}


@dataclass(frozen=True)
class Account:
    """The number of conversations, turns and replies of a system, and of what is missing.

    Attributes:
        conversations: Conversations that were read.
        user_turns: Turns of users.
        replies: Replies with text that are no errors.
        tool_calls: Calls of tools.
        scores: Scores that the rows carry.
        without_reply: Replies that were due and are not there.
        empty: Replies without any text.
        errors: Replies that are errors: the log says so, or the text is a bare error message.
        skipped: Rows, samples or lines that could not be read and were skipped.
        skipped_requests: Those of them that say that a request was made: failed replies.
        calls_only: Answers that only call tools.
        dropped: Rows that are no replies, such as an answer that is repeated under another filter.
        merged: Replies that were written twice, in the messages and next to them.
        renamed: Conversations that were kept apart from another one with the same id.
        reasoning: Replies of which a reasoning block was removed.
        fields: Which field was read as what.
        problems: The first skipped rows, with what is wrong.

    Examples:
        >>> import dialeval
        >>> rows = [{"context": ["Hi"], "response": text} for text in ("Hello.", "", "Error 500: upstream timeout")]
        >>> account = dialeval.evaluate(rows, metrics="length")["system"].account
        >>> account.replies, account.empty, account.errors
        (1, 1, 1)
    """

    conversations: int = 0
    user_turns: int = 0
    replies: int = 0
    tool_calls: int = 0
    scores: int = 0
    without_reply: int = 0
    empty: int = 0
    errors: int = 0
    skipped: int = 0
    skipped_requests: int = 0
    calls_only: int = 0
    dropped: int = 0
    merged: int = 0
    renamed: int = 0
    reasoning: int = 0
    fields: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def failed(self) -> int:
        """Replies that were due and failed."""
        return self.without_reply + self.empty + self.errors + self.skipped_requests

    @property
    def due(self) -> int:
        """Replies that were due."""
        return self.replies + self.failed + self.calls_only

    @property
    def complete(self) -> bool:
        """Whether every row of the input is a reply with text."""
        return not any(getattr(self, name) for name in _CLASSES)

    def __add__(self, other: Account) -> Account:
        """Return the account of both inputs."""
        mine, more = vars(self), vars(other)
        counts = {
            count.name: mine[count.name] + more[count.name] for count in fields(self) if count.name not in _LISTED
        }
        problems = (self.problems + other.problems)[:MOST_LISTED]
        return Account(**counts, fields={**other.fields, **self.fields}, problems=problems)

    def describe(self) -> str:
        """Return the counts in one line: `40 conversations, 26 replies; 14 without a reply`."""
        headline = (
            count_things(self.conversations, "conversation|conversations"),
            count_things(self.replies, "reply|replies"),
        )
        missing = [count_things(count, words) for name, words in _CLASSES.items() if (count := getattr(self, name))]
        return ", ".join(headline) + ("; " + ", ".join(missing) if missing else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as plain data for JSON.

        Returns:
            The attributes, in order.
        """
        return asdict(self)


_LISTED = ("fields", "problems")


def count_things(number: int, words: str) -> str:
    """Return `1 reply` or `2 replies`, of the words `reply|replies`; one word stands for both."""
    one, _, several = words.partition("|")
    return f"{number:,} {one if number == 1 or not several else several}"


def describe_accounts(accounts: Mapping[str, Account | None]) -> dict[str, str]:
    """Return the counts of each system of which something is missing."""
    counted = {name: account for name, account in accounts.items() if account is not None}
    return {name: account.describe() for name, account in counted.items() if not account.complete}
