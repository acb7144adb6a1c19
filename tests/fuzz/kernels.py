"""Compiled code on bytes of every kind: it must stay inside its arrays, and on sound text agree with plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

import dialeval
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError
from dialeval.io.opening import find_encoding_problems, split_lines
from dialeval.text.tokenizers import Tokenizer, characters_of, count_characters, tokenize
from dialeval.text.vocabulary import Vocabulary
from fuzz.harness import Files, checked_in, target
from fuzz.row_files import only


def _column(folder: Path) -> TextColumn:
    return split_lines(np.frombuffer(only(folder).read_bytes(), np.uint8))


def texts() -> list[Files]:
    """Lines in many scripts, with every blank of Unicode."""
    blanks = "".join(chr(code) for code in range(0x3001) if chr(code).isspace() and chr(code) != "\n")
    return [*checked_in("lines"), {"blanks.txt": f"a{'b'.join(blanks)}c\nlonger words than eight bytes\n".encode()}]


@target("splitting", seeds=texts)
def splitting(folder: Path) -> None:
    """Words and characters; of bytes that are not UTF-8 only that nothing breaks."""
    column = _column(folder)
    vocabulary = Vocabulary()
    tokens = vocabulary.split(column)
    assert len(tokens.offsets) == len(column) + 1
    assert tokens.ids.size == 0 or (tokens.ids.min() >= 0 and tokens.ids.max() < len(vocabulary))
    characters = characters_of(column)
    apart: tuple[Tokenizer, ...] = ("zh", "intl", "rouge")
    found = {name: tokenize(column, Vocabulary(), name) for name in apart}
    counted = count_characters(column)
    problems = find_encoding_problems(column, "x")
    if problems:
        raise DataError(problems)
    assert sum(counted) == sum(map(len, column))
    for name in ("zh", "intl"):  # blanks are all that these take out
        assert ["".join(words) for words in found[name].words()] == ["".join(text.split()) for text in column]
    sacre = Tokenizer13a()
    assert tokenize(column, vocabulary, "13a").words() == [sacre(text.rstrip()).split() for text in column]
    assert tokens.words() == [text.split() for text in column]
    assert characters.words() == [list("".join(text.split())) for text in column]


@target("n-grams", seeds=texts)
def ngrams(folder: Path) -> None:
    """N-grams of words, and the overlap of every line with the next."""
    column = _column(folder)
    problems = find_encoding_problems(column, "x")
    if problems or not len(column):
        raise DataError(problems or [])
    rows = list(column)
    run = dialeval.evaluate(
        rows,
        rows[1:] + rows[:1],
        metrics="distinct,bleu,nlg-bleu,rouge-l,rouge-score,chrf",
        execution=dialeval.Execution(threads=1),
    )
    (system,) = run.values()
    for n in (1, 2):
        grams = [tuple(words[at : at + n]) for words in map(str.split, rows) for at in range(len(words) - n + 1)]
        mean = system[f"distinct-{n}"].mean
        expected = len(set(grams)) / len(grams) if grams else float("nan")
        assert mean == expected or (np.isnan(mean) and np.isnan(expected))
