"""What was said in annotated dialogues, for people who look at a few of them.

No figure depends on these texts, so the dialogues of a challenge are read without them, and those that somebody looks
at are read again. A dialogue whose file is gone by then has no texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from dialeval.core.errors import DataError
from dialeval.data.breakdown.documents import USER, parse
from dialeval.data.breakdown.faults import Findings
from dialeval.data.breakdown.files import Document, Files, Store, open_logs

if TYPE_CHECKING:
    from dialeval.data.breakdown.logs import Annotated


class Utterance(NamedTuple):
    """A turn of a dialogue: its turn-index if it has one, whether the user said it, and the text."""

    turn: int | None
    by_user: bool
    text: str


def utterances(annotated: Annotated, dialogues: Collection[str]) -> dict[str, list[Utterance]]:
    """All turns of some dialogues, by name."""
    named = zip(annotated.places, annotated.dialogues, strict=True)
    wanted = {place: name for place, name in named if name in dialogues}
    found: dict[str, list[Utterance]] = {}
    with suppress(DataError):
        for store in open_logs(annotated.source):
            for document in _documents(store, wanted):
                found[wanted[document.where, document.line]] = list(_turns(document))
    return found


def _documents(store: Store, wanted: Collection[tuple[str, int | None]]) -> Iterator[Document]:
    if isinstance(store, Files):
        return (store.document(name) for name in sorted(store.names) if (f"{store.where}/{name}", None) in wanted)
    return (each for each in store.documents() if (each.where, each.line) in wanted)


def _turns(document: Document) -> Iterator[Utterance]:
    for turn in parse(document, Findings(lenient=True))["turns"]:
        text, index = turn.get("utterance"), turn.get("turn-index")
        if isinstance(text, str):
            # It becomes part of a saved run, which holds no halves of characters.
            valid = text.encode("utf-8", "backslashreplace").decode()
            yield Utterance(index if type(index) is int else None, turn.get("speaker") == USER, valid)
