"""Outcomes: which replies failed, and the account of the rows of a system.

A reply failed if there is none, if it is empty, or if it is an error. A log declares errors: a reply, or a row with one
reply, has an `error`, a `status` (a word of `FAILED`, or a code from 400 on) or a `finish_reason` among `FAILED`.

A text is an error by itself if it is short (`LONGEST`) and is one of these, in upper or lower case: the page or line of
a gateway (HTML with an error in its title or heading, `502 Bad Gateway`, `HTTP 503`, `upstream connect error`), an
error with its code or a colon (`Error 500: ...`, `Error: ...`), the name of an exception with a colon, a Python
traceback, a JSON object `{"error": ...}`, and `null` or `undefined`. "Error 404 means that the page is gone." is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import numpy as np

from dialeval.core import inputs
from dialeval.core.account import EMPTY, ERROR, MISSING, SKIPPED, Account, count_things
from dialeval.core.arrays import Ints, Mask, offsets_of
from dialeval.core.columns import ColumnData, FieldColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import add_warning
from dialeval.core.rowtable import NO_TURN
from dialeval.io.rows import Rows

_ERRORS = ("error", "errored", "failed", "failure", "cancelled", "canceled", "expired", "timeout", "timed_out")
_REFUSALS = ("blocked", "content_filter", "safety", "recitation", "blocklist", "prohibited_content")
FAILED = frozenset((*_ERRORS, *_REFUSALS, "malformed_function_call"))
"""The words by which logs declare an error."""
LONGEST = 1000
"""Characters of an error message; of a page, as a gateway answers it, any number."""
_WORDS = b"trac inte serv api_ http erro stat bad_ gate too_ upst requ conn read null unde".replace(b"_", b" ")
_STARTS = [int.from_bytes(_WORDS[at : at + 4], "little") | 0x20202020 for at in range(0, len(_WORDS), 5)]
_KEYS = np.array(_STARTS, np.uint32)
"""The first letters of error texts: only texts that begin with them, with a mark, or with a name and a colon are
decoded."""
_MARKS = np.frombuffer(b"<{[45\xc2", np.uint8)
_REASONING = re.compile(
    r"\s*<think(?:ing)?>(?:.*?</think(?:ing)?>|.*)\s*|\A(?:(?!<think).)*?</think(?:ing)?>\s*", re.DOTALL
)
_PHRASES = r"""(?:bad\s+(?:request|gateway)|unauthorized|forbidden|too\s+many\s+requests|internal\s+server\s+error
    |service\s+(?:temporarily\s+)?unavailable|gateway\s+time-?out|request\s+time-?out)"""
_ERROR = re.compile(
    rf"""\s*(?:
      (?:<!doctype\s+html|<html)\b.{{0,1000}}<(title|h1)>[^<]*
        (?:\b[45]\d\d\b|error|unavailable|time-?out|timed\s+out|denied|{_PHRASES})[^<]*</\1>.*
    | \{{\s*"(?:error|detail|errorMessage)"\s*:.*\}}
    | traceback\s+\(most\s+recent\s+call\s+last\).*
    | \[?(?:internal\s+)?(?:server\s+|api\s+|http\s+)?error(?:\s+code)?(?:\]?\s*:.*|\].*|\W*)
    | (?:http\s+|status\s+|server\s+|api\s+)?error\s*\(?(?:code\s*:?\s*)?[45]\d\d\)?\s*(?:[:,.–—-].*)?
    | (?:http(?:/\d(?:\.\d)?)?\s+|status(?:\s+code)?:?\s+)?[45]\d\d:?\s+(?:{_PHRASES}|not\s+found)\b.{{0,80}}
    | (?:http(?:/\d(?:\.\d)?)?\s+|status(?:\s+code)?:?\s+)[45]\d\d(?:\s*[:–—-].*)?
    | {_PHRASES}\W*
    | upstream\s+(?:connect\s+error|request\s+timeout|timeout|timed\s+out)\b.*
    | (?:request|connection|read)\s*(?:timed\s+out|timeout|reset(?:\s+by\s+peer)?|refused)\W*
    | (?:[a-z_]+\.)*[a-z]*(?:error|exception)\s*:.*
    | null | undefined
    )\s*""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def is_error_text(text: str) -> bool:
    """Return whether a text is nothing but an error message."""
    return (len(text) <= LONGEST or text.lstrip()[:1] == "<") and _ERROR.fullmatch(text) is not None


def is_failed(error: object, status: object, reason: object) -> bool:
    """Return whether a log declares an error, by the fields `error`, `status` and `finish_reason`."""
    if isinstance(error, Mapping):
        error = any(value not in (None, "", False) for value in error.values())
    if isinstance(error, str):  # as a cell of a table has it
        error = error.strip().lower() not in ("", "false", "no", "none", "null", "nan", "0")
    if error not in (None, False, 0) and error == error and error != []:
        return True
    words = {str(word).lower() for word in (status, reason) if isinstance(word, str)}
    is_code = isinstance(status, int) and not isinstance(status, bool)
    return not words.isdisjoint(FAILED) or (is_code and 400 <= status < 600)  # type: ignore[operator]


def remove_reasoning(text: str) -> str:
    """Return a reply without its reasoning blocks; one that never ends is the rest of the reply."""
    return _REASONING.sub("", text) if "<think" in text or "</think" in text else text


def _may_reason(texts: TextColumn) -> bool:
    """Return whether some texts may hold a reasoning block."""
    content = texts.data[int(texts.starts.min()) : int(texts.ends.max())].tobytes() if len(texts) else b""
    return b"<think" in content or b"</think" in content


def _find_candidates(texts: TextColumn) -> Ints:
    """Return the rows whose texts may be empty or an error message."""
    starts, lengths, data = texts.starts, texts.ends - texts.starts, texts.data
    chosen: Mask = lengths == 0
    long = np.flatnonzero(lengths >= 4)
    keys = sum((data[starts[long] + at].astype(np.uint32) | 32) << (8 * at) for at in range(4))
    chosen[long] = np.isin(keys, _KEYS)
    filled = np.flatnonzero(lengths > 0)
    first = data[starts[filled]]
    chosen[filled] |= (first <= ord(" ")) | np.isin(first, _MARKS)
    if len(filled):
        order = np.argsort(starts, kind="stable")
        low, high = int(starts[order[0]]), int(texts.ends.max())
        colons = np.flatnonzero(data[low:high] == ord(":")) + low
        before = data[np.maximum(colons - 1, low)] | 32
        colons = colons[(before == ord("r")) | (before == ord("n"))]  # ...Error: or ...Exception:
        rows = order[np.maximum(np.searchsorted(starts[order], colons, "right") - 1, 0)]
        chosen[rows[(colons < texts.ends[rows]) & (colons - starts[rows] < 80)]] = True
    return np.flatnonzero(chosen)


def find_failed_texts(texts: TextColumn) -> dict[int, str]:
    """Return why the reply of a row failed, by row, for texts that are empty or an error message."""
    failed = {}
    for row in _find_candidates(texts).tolist():
        text = texts[row]
        if not text.strip():
            failed[row] = EMPTY
        elif is_error_text(text):
            failed[row] = ERROR
    return failed


def mark_outcomes(rows: Rows, declared: Mapping[int, str], keep_reasoning: bool = False) -> Rows:
    """Return the rows without reasoning blocks, and with the outcomes of replies that failed.

    Args:
        rows: The rows of one or several systems.
        declared: Why a reply failed, by row, where the log says so.
        keep_reasoning: Whether reasoning blocks are part of replies.
    """
    columns, texts, account = dict(rows.columns), rows.responses, rows.account
    if not keep_reasoning and _may_reason(texts):
        given = list(texts)
        replies = list(map(remove_reasoning, given))
        account = replace(account, reasoning=sum(map(str.__ne__, given, replies)))
        columns[inputs.RESPONSE] = texts = TextColumn.from_strings(replies)
    calls = columns.get(inputs.CALLS)
    failed = find_failed_texts(texts)
    if isinstance(calls, FieldColumn):  # a reply of calls alone is no failure
        failed = {row: why for row, why in failed.items() if why != EMPTY or not calls[row]}
    failed |= declared
    if failed:
        ordered = dict(sorted(failed.items()))
        counts = np.zeros(len(rows), np.int64)
        counts[list(ordered)] = 1
        columns[inputs.OUTCOME] = RaggedColumn(TextColumn.from_strings(list(ordered.values())), offsets_of(counts))
    return replace(rows, columns=columns, account=account)


_OF_ROWS = (
    *("conversations", "user_turns", "replies", "tool_calls", "without_reply", "empty", "errors"),
    *("skipped_requests", "calls_only"),
)
"""The counts of an account that its rows have."""


def count_rows(rows: Rows) -> Account:
    """Return the account of the rows of one system, with what else was counted while they were read."""
    columns, offsets = rows.columns, rows.dialogue_offsets()
    outcomes = columns.get(inputs.OUTCOME)
    kinds = list(outcomes.values) if isinstance(outcomes, RaggedColumn) else []
    calls, trials = (_list_values(columns.get(need)) for need in (inputs.CALLS, inputs.TRIALS))
    failed = np.zeros(len(rows), np.bool_) if outcomes is None else np.diff(outcomes.offsets) > 0  # type: ignore[union-attr]
    called = np.array([row for row, made in calls if made], np.int64)
    texts = rows.responses
    calls_only = int(np.count_nonzero(~failed[called] & (texts.ends == texts.starts)[called]))
    tried = np.searchsorted(offsets, [row for row, _ in trials], "right")
    nothing: Any = dict.fromkeys(_OF_ROWS, 0)
    kept = replace(rows.account, **nothing)
    return kept + Account(
        conversations=len(offsets) - 1 + len(tried) - len(np.unique(tried)),
        user_turns=int(_count_user_turns(rows, offsets).sum()),
        replies=len(rows) - len(kinds) - calls_only,
        tool_calls=sum(len(made) for _, made in calls),
        without_reply=kinds.count(MISSING),
        empty=kinds.count(EMPTY),
        errors=kinds.count(ERROR),
        skipped_requests=kinds.count(SKIPPED),
        calls_only=calls_only,
    )


def total_account(systems: Collection[Rows]) -> Account:
    """Return the account of a whole file: conversations and turns of users that several systems answer count once."""
    total = sum((rows.account for rows in systems), Account())
    if len(systems) < 2 or any(rows.dialogues is None for rows in systems):
        return total
    turns: dict[str, int] = {}
    for rows in systems:
        offsets = rows.dialogue_offsets()
        before = offsets_of(_count_user_turns(rows, offsets))[offsets]
        for name, asked in zip(rows.names().take(offsets[:-1]), np.diff(before).tolist(), strict=True):
            turns[name] = max(turns.get(name, 0), asked)
    return replace(total, conversations=len(turns), user_turns=sum(turns.values()))


def _list_values(column: ColumnData | None) -> list[tuple[int, Any]]:
    """Return the values of a column of objects, each with its row."""
    return [(row, value) for row, value in enumerate(() if column is None else column) if value is not None]


def _count_user_turns(rows: Rows, offsets: Ints) -> Ints:
    """Return how many turns of the user each row adds to those of the row before."""
    asked = np.full(len(rows), -1) if rows.asked is None else rows.asked
    context, roles = rows.columns.get(inputs.CONTEXT), rows.columns.get(inputs.ROLES)
    if not isinstance(context, RaggedColumn | SharedColumn) or (asked >= 0).all():
        return np.maximum(asked, 0)
    users = (context.ends - context.starts + 1) // 2  # where no role is given, turns alternate
    if isinstance(roles, RaggedColumn | SharedColumn):
        names = roles.values
        known, spoken = names.ends > names.starts, np.zeros(len(names), np.bool_)
        spoken[known] = names.data[names.starts[known]] == ord("u")
        before, named = (offsets_of(mask.astype(np.int64)) for mask in (spoken, known))
        users = np.where(named[roles.ends] > named[roles.starts], before[roles.ends] - before[roles.starts], users)
    first = np.zeros(len(rows), np.bool_)
    first[offsets[:-1]] = True
    previous = np.where(first, 0, np.roll(users, 1))
    return np.where(asked >= 0, asked, np.where(users > previous, users - previous, users > 0))


def join_parts(systems: Iterable[Rows]) -> list[Rows]:
    """Return systems in which the rows of a dialogue that are not consecutive are brought together.

    They stay apart where its parts contradict each other: the number of a turn occurs twice, or a context of several
    turns does not continue that of the part before.
    """
    return [_join_parts(rows) for rows in systems]


def _join_parts(rows: Rows) -> Rows:
    if rows.dialogues is None or inputs.TRIALS in rows.columns:
        return rows
    offsets = rows.dialogue_offsets()
    parts: dict[str, list[range]] = {}
    for name, edges in zip(rows.dialogues.take(offsets[:-1]), pairwise(offsets.tolist()), strict=True):
        parts.setdefault(name, []).append(range(*edges))
    split = {name: _order_rows(rows, own) for name, own in parts.items() if len(own) > 1}
    joined = {name: own for name, own in split.items() if own}
    if not joined:
        return rows
    some = f"rows of {count_things(len(joined), 'dialogue|dialogues')} of {rows.system} are not consecutive"
    add_warning(f"{some}, such as those of {next(iter(joined))!r:.60}: they are brought together")
    pieces = [(own[0].start, joined[name]) for name, own in parts.items() if name in joined]
    pieces += [(part.start, [*part]) for name, own in parts.items() if name not in joined for part in own]
    taken = rows.take(np.array([row for _, piece in sorted(pieces) for row in piece], np.int64))
    return account_for([replace(taken, account=rows.account)])[0]


def _order_rows(rows: Rows, parts: Sequence[range]) -> list[int] | None:
    """Return the rows of a dialogue in the order of their turns, if all have one; None where parts contradict."""
    places = list(chain.from_iterable(parts))
    turns = [] if rows.turns is None else [turn for turn in rows.turns[places].tolist() if turn != NO_TURN]
    if len(set(turns)) < len(turns):
        return None
    if len(turns) == len(places):
        places = [place for _, place in sorted(zip(turns, places, strict=True))]
    contexts = rows.columns.get(inputs.CONTEXT)
    for before, after in pairwise(places) if isinstance(contexts, RaggedColumn | SharedColumn) else ():
        if after != before + 1:
            known, context = list(contexts[before]), list(contexts[after])  # type: ignore[index]
            if known and context and len(known) + len(context) > 2 and context[: len(known)] != known:
                return None
    return places


def account_for(systems: Iterable[Rows], extra: Account | None = None) -> list[Rows]:
    """Return the rows of each system with their accounts; `extra`, about the whole input, is counted in the first."""
    counted = [replace(rows, account=count_rows(rows)) for rows in systems]
    return [
        replace(rows, account=rows.account + extra) if extra and not at else rows for at, rows in enumerate(counted)
    ]
