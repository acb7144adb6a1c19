"""The dialogues of the breakdown challenge as chats: what was said, turn by turn, without the annotations."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, ValidationError

from dialeval.core.errors import DataError
from dialeval.data.breakdown.documents import USER, parse
from dialeval.data.breakdown.faults import BAD_INDEX, UNREADABLE_LOG, Findings
from dialeval.data.breakdown.files import Document, open_logs


class Said(Struct, rename={"index": "turn-index"}):
    """A turn."""

    index: int
    speaker: str
    utterance: str


class Talk(Struct, rename={"name": "dialogue-id"}):
    """A dialogue."""

    name: str
    turns: list[Said]


def read_chats(source: Any) -> list[dict[str, Any]]:
    """The dialogues of a folder, a file, an archive, or of parsed documents, each a chat as `rows.chats` reads them.

    Every turn that is not the user's is the assistant's. A turn stands at the place that its index names; where that is
    not so, as with every other fault, all faults are raised at once.
    """
    findings = Findings()
    chats = [_chat(document, findings) for store in open_logs(source) for document in store.documents()]
    findings.warnings()  # raises what there is
    return [chat for chat in chats if chat is not None]


def _chat(document: Document, findings: Findings) -> dict[str, Any] | None:
    from msgspec import convert

    try:
        talk = convert(parse(document, findings), Talk)
    except (ValidationError, UnicodeEncodeError) as error:
        findings.add(UNREADABLE_LOG, document.where, document.line, f"is no dialogue: {error}")
        return None
    except DataError as error:
        findings.add_error(UNREADABLE_LOG, document.where, document.line, error)
        return None
    moved = [at for at, turn in enumerate(talk.turns) if turn.index != at]
    if moved:
        what = f"turn {talk.turns[moved[0]].index} is the {moved[0] + 1}. of the list, counted from index 0"
        findings.add(BAD_INDEX, document.where, document.line, what, len(moved))
    roles = ("user" if turn.speaker == USER else "assistant" for turn in talk.turns)
    messages = [{"role": role, "content": turn.utterance} for role, turn in zip(roles, talk.turns, strict=True)]
    return {"dialog_id": talk.name, "messages": messages}
