"""Texts in many scripts for hypothesis: digits, stops and symbols of several kinds, marks, emoji, blanks."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = [
    *"aZ09.,-'()&;:/<>$%|~_",
    *"\n\t\x1f\x85\xa0\u2003\u2028\u3000\x00\x7f",
    *("<skipped>", "-\n", "&quot;", "&amp;", "&lt;", "&amp;lt;", "...", "1,000.5", "3-4", "10:00"),
    *("今天", "天气很好", "。", "「", "ひらがな", "カタカナ", "한국어", "สวัสดี", "ກ", "ខ្មែร", "မြန်မာ"),
    *("שלום", "مرحبا", "؟", "،", "٣", "हिन्दी", "।", "Ünder", "e\u0301", "İ", "\u212a", "ß", "ﬁ", "Ⅻ", "½", "²"),
    *("\U0001f600", "\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u263a\ufe0f", "€", "±", "“", "”", "—", "…"),
    *("\u2001", "\u2a6d", "\u2a6e", "\U00020000", "\ufe0f", "\u200f", "\u202e", "\u0301", "\ufeff", "\U000e0041"),
]

pieces = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
spaced = st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)
points = st.characters(exclude_categories=["Cs"])
texts = st.one_of(pieces, spaced, st.text(points, max_size=30), st.text(st.sampled_from("a1.,- "), max_size=12))
"""No half of a surrogate pair: a column of texts refuses these."""
