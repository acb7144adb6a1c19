"""Signatures: the line that says how a number was made, and that two numbers may be compared.

A signature is an ordered list of `field:value` pairs behind the metric's name, as in

    distinct-2|n:2|per:corpus|tokenizer:words.1|definition:1|dialeval:0.1.0

It prints to that line and is read back from it exactly: `|`, `:` and `%` inside a name or value are percent-encoded.
The metric writes the fields it knows from its settings alone; the engine adds digests of the data and resources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from dialeval.core.errors import SettingError

SACREBLEU = "sacrebleu"
"""The field that holds sacreBLEU's own signature, where it prints the same number (times 100)."""

INFORMATIVE = frozenset({"dialeval", "replies", SACREBLEU})
"""Fields that say where a number comes from but forbid no comparison: `definition` grows when numbers change."""

_ESCAPES = {ord(char): f"%{ord(char):02X}" for char in "%|:\n\r"}

_ALIASES = dict.fromkeys(("chatgpt", "o"), "gpt") | dict.fromkeys(("mixtral", "ministral"), "mistral")
_ALIASES |= {"gemma": "gemini", "qwq": "qwen"}
"""Names of models that belong to the family of another name."""


@dataclass(frozen=True)
class Signature(Mapping[str, str]):
    """The name of a metric and everything that could change its number."""

    metric: str
    fields: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, metric: str, **fields: object) -> Signature:
        """Make a signature from keyword fields; booleans print as yes and no, floats so that they read back."""
        return cls(metric, tuple((name, _show(value)) for name, value in fields.items()))

    @classmethod
    def parse(cls, line: str) -> Signature:
        """Parse the signature that prints as `line`."""
        metric, *pairs = line.split("|")
        fields = []
        for pair in pairs:
            name, colon, value = pair.partition(":")
            if not colon or not name:
                raise SettingError(f"not a signature: {line!r} has {pair!r} where field:value is expected")
            fields.append((unquote(name), unquote(value)))
        if not metric:
            raise SettingError(f"not a signature: {line!r} names no metric")
        return cls(unquote(metric), tuple(fields))

    def __str__(self) -> str:
        pairs = (f"{name.translate(_ESCAPES)}:{value.translate(_ESCAPES)}" for name, value in self.fields)
        return "|".join([self.metric.translate(_ESCAPES), *pairs])

    def with_fields(self, **fields: object) -> Signature:
        """Return the signature with further fields at the end; a field that is there is replaced in place."""
        merged = dict(self.fields) | {name: _show(value) for name, value in fields.items()}
        return Signature(self.metric, tuple(merged.items()))

    def differences(self, other: Signature) -> dict[str, tuple[str | None, str | None]]:
        """Return the fields that forbid comparing two numbers, each with both values (None: absent)."""
        left, right = dict(self.fields), dict(other.fields)
        pairs = {name: (left.get(name), right.get(name)) for name in (*left, *right) if name not in INFORMATIVE}
        if self.metric != other.metric:
            pairs = {"metric": (self.metric, other.metric), **pairs}
        return {name: values for name, values in pairs.items() if values[0] != values[1]}

    def __getitem__(self, name: str) -> str:
        return dict(self.fields)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.fields)

    def __len__(self) -> int:
        return len(self.fields)


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return repr(value) if isinstance(value, float) else str(value)


def name_family(model: str) -> str:
    """Return the family of a model by its name: the first word of it, without the publisher.

    Example:
        >>> [name_family(model) for model in ("Qwen/Qwen2.5-7B-Instruct", "o3-mini", "meta-llama/Llama-3.1-8B")]
        ['qwen', 'gpt', 'llama']
    """
    word = re.match(r"[a-z]*", model.rpartition("/")[2].lower().removeprefix("meta-"))
    name = word[0] if word else ""
    return _ALIASES.get(name, name)
