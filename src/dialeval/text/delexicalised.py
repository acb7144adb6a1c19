"""Delexicalised responses: texts in which values are placeholders, such as `[hotel_name] is [value_price]`.

A response is normalised in four steps, so that systems with different placeholders can be compared:

1. lower case;
2. a placeholder (`[` word characters, blanks or digits `]`, and a plural ending right behind it) becomes the word that
   the ontology has for its slot, in upper case; a slot that the ontology does not know is removed;
3. every `-s` is deleted, then every `-ly`;
4. split and joined again by Moses (`text/moses.py`).

`Normaliser` does this once for each distinct response. The steps are those of the MultiWOZ evaluation, with what is odd
about them: `[stars]-star` becomes `COUNTtar`, and `10:00` becomes `10: 00`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from dialeval.text.moses import tidied

PLACEHOLDER = re.compile(r"\[([\w\s]+)\](?:es|s|-s|-es)?")


class Normaliser:
    """Normalises responses, each distinct one once; `words` gives the word of each slot."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words
        self._known: dict[str, str] = {}

    def __call__(self, response: str) -> str:
        """The normalised response."""
        known = self._known.get(response)
        if known is None:
            known = self._known[response] = self._normalised(response)
        return known

    def _normalised(self, response: str) -> str:
        text = response.lower()
        if "[" in text:
            text = PLACEHOLDER.sub(lambda match: self._words.get(match[1], ""), text)
        return tidied(text.replace("-s", "").replace("-ly", ""))


def unknown_placeholders(responses: Iterable[str], words: Mapping[str, str]) -> dict[str, int]:
    """The slots of placeholders that have no word, each with the number of times it occurs, most frequent first."""
    found: Counter[str] = Counter()
    texts = Counter(responses)
    # Most systems have none, which one search through all texts says: no placeholder has a NUL inside.
    if words.keys() >= set(PLACEHOLDER.findall("\0".join(texts).lower())):
        return {}
    for response, times in texts.items():
        if "[" in response:
            for match in PLACEHOLDER.finditer(response.lower()):
                if match[1] not in words:
                    found[match[1]] += times
    return dict(found.most_common())


def slot_domains(response: str, domains: Iterable[str]) -> list[str]:
    """The domains that a response's placeholders name (`[hotel_name]`: hotel), in order of appearance."""
    named = (match[1].partition("_")[0] for match in PLACEHOLDER.finditer(response.lower()))
    known = set(domains)
    return list(dict.fromkeys(name for name in named if name in known))
