"""Digests of rows: 64 bits for the user turns before each response, for its references, and for the response.

Systems are aligned by them (`analysis.alignment`), and dialogues sorted for random draws (`analysis.values`), also
where a run does not keep texts. A prompt is made of the user turns of a context only, so that two systems whose
contexts contain their own replies have the same prompts:

- where roles are known, the turns of the user;
- elsewhere the last turn and every second one before it, since speakers take turns.

With h_1 ... h_n the hashes of the texts of a row, the digest is the sum of h_i B^i modulo 2^64 with an odd B. Rows of a
chat share their turns, and the digest of a row is a difference of two running sums times a power of 1 / B: the cost
grows with the messages, not with their square. 0 is the digest of a row without such a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Ints, Mask, row_numbers
from dialeval.core.columns import ColumnData, FieldColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.core.rowtable import PROMPT, REFERENCE, RESPONSE, TRIALS, Digests
from dialeval.text.ngrams import hash_column

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)


def digest_rows(columns: Mapping[Input, ColumnData]) -> dict[str, Digests]:
    """Return the digests of rows by name, those that some row has."""
    by_name: dict[str, Digests | None] = {}
    if inputs.CONTEXT in columns:
        by_name[PROMPT] = digest_prompts(columns[inputs.CONTEXT], columns.get(inputs.ROLES))
    if inputs.REFERENCE in columns:
        by_name[REFERENCE] = digest_lists(columns[inputs.REFERENCE])
    if inputs.RESPONSE in columns:
        by_name[RESPONSE] = digest_lists(columns[inputs.RESPONSE])
    if isinstance(trials := columns.get(inputs.TRIALS), FieldColumn):
        by_name[TRIALS] = trials.known.astype(np.uint64)
    return {name: digests for name, digests in by_name.items() if digests is not None}


def digest_prompts(context: ColumnData, roles: ColumnData | None = None) -> Digests | None:
    """Return the digest of the user turns of each row's context; None if no row has a context."""
    turns = _list_texts(context)
    if turns is None or not len(turns.values):
        return None
    hashes = hash_column(turns.values)
    speakers = None if roles is None else _list_texts(roles)
    if speakers is None or len(speakers.values) != len(hashes):
        return _add_alternate(turns.starts, turns.ends, hashes)
    by_user = np.array([role == "user" for role in speakers.values], np.bool_)
    digests = add_selected(turns.starts, turns.ends, hashes, by_user)
    # A row without a user: its speakers have no roles.
    return np.where(digests == 0, _add_alternate(turns.starts, turns.ends, hashes), digests)


def digest_lists(texts: ColumnData) -> Digests | None:
    """Return the digest of all texts of each row; None if no row has one."""
    lists = _list_texts(texts)
    if lists is None or not len(lists.values):
        return None
    return add_selected(lists.starts, lists.ends, hash_column(lists.values), np.ones(len(lists.values), np.bool_))


def digest_clusters(columns: Iterable[Digests], offsets: Ints) -> Digests:
    """Return a digest of each cluster of rows; a column has a number per row or per cluster."""
    rows = np.zeros(int(offsets[-1]), np.uint64)
    for column in columns:
        rows = _mix(rows + _mix(column if len(column) == len(rows) else column[row_numbers(offsets)]))
    return add_selected(offsets[:-1], offsets[1:], rows, np.ones(len(rows), np.bool_))


def _mix(numbers: Digests) -> Digests:
    """Return numbers whose bits all depend on all bits of the given ones."""
    numbers = (numbers ^ (numbers >> np.uint64(32))) * np.uint64(_BASE)
    return numbers ^ (numbers >> np.uint64(32))


def _list_texts(column: ColumnData) -> RaggedColumn | SharedColumn | None:
    if isinstance(column, TextColumn):
        return RaggedColumn.from_texts(column)
    return column if isinstance(column, RaggedColumn | SharedColumn) else None


def _add_alternate(starts: Ints, ends: Ints, hashes: Digests) -> Digests:
    """Digest the last text of each row and every second one before it."""
    odd = np.arange(len(hashes)) % 2 == 1
    sums = [add_selected(starts, ends, hashes, mask) for mask in (~odd, odd)]
    return np.where(ends % 2 == 1, *sums)


def add_selected(starts: Ints, ends: Ints, hashes: Digests, selected: Mask) -> Digests:
    """Digest the selected hashes between each start and end."""
    before = np.concatenate(([0], np.cumsum(selected)))
    factors = np.repeat(np.array([[_BASE], [_INVERSE]], np.uint64), int(before[-1]) + 1, axis=1)
    factors[:, 0] = 1
    powers, inverses = np.cumprod(factors, axis=1)
    terms = np.where(selected, hashes, np.uint64(0)) * powers[before[:-1]]
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)))
    digests: Digests = (sums[ends] - sums[starts]) * inverses[before[starts]]
    has_text = before[ends] > before[starts]
    return np.where(has_text, np.maximum(digests, np.uint64(1)), np.uint64(0))
