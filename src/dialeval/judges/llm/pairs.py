"""Pairs: which of two responses a language model prefers, asked in both orders.

    {"a": "damd", "b": "ubar", "response_a": "...", "response_b": "...", "context": [...], "dialog_id": "d1"}

Every pair is asked twice, with the responses exchanged. Verdicts that differ between the orders are a tie, and their
fraction is the rate of order flips: a judge that only prefers the first place flips always. A pair without a readable
verdict in one of the orders has none. The rubric is `pair`, or another one of that level with one question of which the
grades 0, 1 and 2 mean a tie, the first response and the second.

Contexts may contain the replies of each system. Where they differ, each response is shown with its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import orjson
from msgspec import Struct

from dialeval.analysis.alignment import align
from dialeval.analysis.labels import PairAgreement, RateEstimate, estimate_rate, measure_pair_agreement
from dialeval.core.arrays import Floats, Mask
from dialeval.core.display import Displayable, Tabular
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.core.rowtable import RowTable
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.io.fields import FieldReader
from dialeval.io.opening import PathSource
from dialeval.io.ratings import TIE, length_ratio, list_outcomes
from dialeval.io.reading import read_objects
from dialeval.io.rows import FieldNames, RowObject
from dialeval.judges.llm.judge import LLM
from dialeval.judges.llm.metric import label_texts
from dialeval.judges.llm.rubrics import Parts, read_rubric

_OUTCOMES = {0.0: 0, 1.0: 1, 2.0: -1}
"""By grade: 1 for the first response, -1 for the second."""
_FIELDS = "a, b, response_a, response_b and, where known, context, dialog_id and better"


class PairTexts(Struct, frozen=True, kw_only=True):
    """Two responses to compare."""

    a: str
    b: str
    response_a: str
    response_b: str
    context: Sequence[str] = ()
    context_b: Sequence[str] | None = None
    """That of the second response, where it is another one."""
    roles: Sequence[str] = ()
    dialogue: str
    human: int | None = None
    """1: most people prefer the first, 0: neither, -1: the second; None: not known."""


class JudgedPairs(Displayable, Tabular, Record, frozen=True, kw_only=True):
    """The preferences of a language model."""

    judge: str
    rubric: str
    pairs: Sequence[Mapping[str, object]]
    """The verdicts as rows that `dialeval rank` reads, and whether the orders gave different ones (`flipped`)."""
    asked: int
    missing: Mapping[str, int]
    """How many pairs have no verdict, by the reason."""
    flips: RateEstimate | None
    """Fraction of pairs in which the verdict depends on the order."""
    agreement: PairAgreement | None
    """With the human majority, where it is known."""
    warnings: Sequence[str] = ()

    def lines(self) -> list[dict[str, object]]:
        """Return the verdicts."""
        return list(map(dict, self.pairs))

    def to_jsonl(self) -> bytes:
        """Return the verdicts as JSON lines that `dialeval rank` reads."""
        return b"".join(orjson.dumps(pair) + b"\n" for pair in self.pairs)


def judge_pairs(llm: LLM, pairs: Sequence[PairTexts], rubric: str = "pair", level: float = 0.95) -> JudgedPairs:
    """Ask a language model which of two responses is better, in both orders.

    Args:
        llm: The judge.
        pairs: The responses.
        rubric: The name of a rubric, or the path of a file.
        level: The level of the intervals.

    Returns:
        The verdicts, how often they depend on the order, and their agreement with people where that is known.
    """
    asked = read_rubric(rubric)
    if not pairs or asked.level != "pair" or [each.values for each in asked.question] != [[0, 1, 2]]:
        raise SettingError(f"there are no pairs, or {rubric} is not about pairs: one question with grades 0, 1 and 2")
    with llm:
        grades = llm.grade(asked, [_show(pair, swapped) for pair in pairs for swapped in (False, True)], "grade")
    name = asked.question[0].name
    single = np.array([_OUTCOMES[each.values[name]] if each.values else np.nan for each in grades])
    verdicts, flipped = combine_orders(single.reshape(-1, 2) * (1, -1))
    places: dict[str, int] = {}
    dialogue = np.array([places.setdefault(pair.dialogue, len(places)) for pair in pairs], np.int64)
    lacking = [grades[2 * at].reason or grades[2 * at + 1].reason for at in np.flatnonzero(np.isnan(verdicts)).tolist()]
    judged = ~np.isnan(verdicts)
    human = np.array([pair.human or 0 for pair in pairs], np.int64)
    ratios = np.array([length_ratio(pair.response_a, pair.response_b) for pair in pairs])
    return JudgedPairs(
        judge=llm.model,
        rubric=f"{asked.name}@{asked.digest}",
        pairs=[_judge(pairs[at], float(verdicts[at]), bool(flipped[at])) for at in np.flatnonzero(judged).tolist()],
        asked=len(pairs),
        missing=dict(Counter(map(str, lacking)).most_common()),
        flips=estimate_rate(flipped[judged].astype(np.float64), dialogue[judged], level) if judged.any() else None,
        agreement=measure_pair_agreement(human, verdicts, ratios, dialogue, level)
        if (human[judged] != 0).any()
        else None,
        warnings=llm.warnings,
    )


def combine_orders(both: Floats) -> tuple[Floats, Mask]:
    """Return the verdicts of two orders, a column each, as one: a tie where they differ; and whether they differ."""
    differ = both[:, 0] != both[:, 1]
    missing = np.isnan(both).any(axis=1)
    return np.where(missing, np.nan, np.where(differ, 0.0, both[:, 0])), differ & ~missing


def _judge(pair: PairTexts, verdict: float, flipped: bool) -> dict[str, object]:
    better = pair.a if verdict > 0 else pair.b if verdict < 0 else TIE
    texts = {"response_a": pair.response_a, "response_b": pair.response_b, "dialog_id": pair.dialogue}
    return {"a": pair.a, "b": pair.b, "better": better, "flipped": flipped, **texts}


def _show(pair: PairTexts, swapped: bool) -> Parts:
    """Return the texts of a request about a pair."""
    contexts = [pair.context, pair.context if pair.context_b is None else pair.context_b]
    order = (1, 0) if swapped else (0, 1)
    before = [label_texts("pair", contexts[side], "", pair.roles)[:-1] for side in order]
    replies = [(pair.response_a, pair.response_b)[side] for side in order]
    if pair.context_b is None:
        return [*before[0], ("first reply", replies[0]), ("second reply", replies[1])]
    parts: list[tuple[str, str]] = []
    for label, turns, reply in zip(("first reply", "second reply"), before, replies, strict=True):
        parts += [(f"conversation before the {label}, {number}", turn) for number, turn in turns] + [(label, reply)]
    return parts


def list_run_pairs(run: Run) -> list[PairTexts]:
    """Return every two systems' responses to the same rows, matched as in a comparison."""
    names = [name for name in run if run[name].role == "system"]
    if len(names) < 2:
        raise SettingError(f"pairs need two systems of the run; it has {', '.join(run)}")
    pairs = []
    for left, right in combinations(names, 2):
        alignment = align(run[left], run[right])
        tables = [alignment.left.table, alignment.right.table]
        if not alignment.by_row or any(table is None or "response" not in table.texts for table in tables):
            design = alignment.design.describe(left, right)
            raise SettingError(f"pairs need the texts of both systems, matched row by row. {design}")
        pairs += list(_match_rows(left, right, *tables))  # type: ignore[arg-type]
    return pairs


def _match_rows(left: str, right: str, one: RowTable, two: RowTable) -> Iterator[PairTexts]:
    for row, cluster in enumerate(one.clusters.tolist()):
        start = int(one.offsets[cluster])
        before, other = one.texts_at("context", row), two.texts_at("context", row)
        named = one.dialogues[cluster] if one.dialogues is not None else None
        yield PairTexts(
            a=left,
            b=right,
            response_a=str(one.texts["response"][row]),
            response_b=str(two.texts["response"][row]),
            context=before,
            context_b=None if other == before else other,
            roles=one.texts_at("roles", row),
            dialogue=named or "".join(one.texts_at("context", start)[:1]) or f"row {start + 1}",
        )


def read_pair_texts(paths: PathSource | Sequence[object]) -> list[PairTexts]:
    """Read pairs of responses with their contexts, from files or a list of objects.

    `better` is what people prefer: `a`, `b`, `tie`, the name of a system, or a list of such votes, of which the
    majority counts.
    """
    return read_objects(paths, "pairs", _FIELDS, FieldNames(), _read_pair)


def _read_pair(reader: FieldReader, row: RowObject, name: str) -> Iterator[PairTexts]:
    texts: JsonObject = {field: row.get(field) for field in ("a", "b", "response_a", "response_b")}
    if not all(isinstance(text, str) for text in texts.values()):
        reader.add_problem("is not a pair with its texts", f"make it an object with {_FIELDS}")
        return
    context, roles = reader.read_context(row)
    named = reader.read_dialogue(row) or f"{name} {reader.line}"
    yield PairTexts(**texts, context=context, roles=roles, dialogue=named, human=_find_majority(reader, row))


def _find_majority(reader: FieldReader, row: JsonObject) -> int | None:
    stated = row.get("better")
    votes = stated if isinstance(stated, list) else [] if stated is None else [stated]
    outcomes = [list_outcomes(vote, row["a"], row["b"]) for vote in votes]
    if any(len(outcome_set) != 1 for outcome_set in outcomes):
        reader.add_problem(f"better is {stated!r:.40}", "make it a, b or tie, the name of the better system, or a list")
    total = sum(map(sum, outcomes))
    return (total > 0) - (total < 0) if votes else None
