"""What is known of words grows with the vocabulary and never changes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.core.columns import TextColumn
from dialeval.metrics.words import KnownWords, TrainText, VectorTable, collect_words
from dialeval.text.tokenizers import DEFAULT
from dialeval.text.vocabulary import Vocabulary


class Even:
    """Vectors for words that end in an even digit; notes what it is asked for."""

    name, digest, dimension = "even", "e" * 12, 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        self.asked += words
        known = np.array([word[-1] in "02468" for word in words], np.bool_)
        found = [[float(word[1:]), 1.0] if ok else [0.0, 0.0] for word, ok in zip(words, known, strict=True)]
        return np.array(found), known


def words(start: int, stop: int) -> TextColumn:
    return TextColumn.from_strings([f"w{number}" for number in range(start, stop)])


def test_vectors_are_asked_for_once_and_old_views_stay() -> None:
    vocabulary, vectors = Vocabulary(), Even()
    table = VectorTable(vocabulary, vectors)
    first = vocabulary.add(words(0, 5))
    rows, matrix = table.collect_arrays()
    before = matrix.copy()
    vocabulary.add(words(3, 1000))
    later_rows, later = table.collect_arrays()
    np.testing.assert_array_equal(matrix, before)
    np.testing.assert_array_equal(later_rows[first], rows)
    assert [later[row, 0] if row >= 0 else -1 for row in later_rows] == [
        number if number % 2 == 0 else -1 for number in range(1000)
    ]
    assert len(vectors.asked) == 1000
    unit_rows, _, lengths = table.compute_lengths()
    np.testing.assert_array_equal(unit_rows, later_rows)
    np.testing.assert_allclose(lengths, np.hypot(later[:, 0], 1.0))
    vocabulary.add(words(1000, 1010))
    more_rows, more, lengths = table.compute_lengths()
    assert more_rows[1000:].tolist() == [500, -1, 501, -1, 502, -1, 503, -1, 504, -1]
    np.testing.assert_array_equal(more[500:], [[number, 1] for number in range(1000, 1010, 2)])
    np.testing.assert_allclose(lengths, np.hypot(np.arange(0, 1010, 2), 1.0))


def test_a_table_hands_on_the_warnings_of_its_file() -> None:
    odd = Even()
    odd.warnings = ("odd",)  # type: ignore[attr-defined]
    assert VectorTable(Vocabulary(), odd).warnings == ("odd",)
    assert VectorTable(Vocabulary(), Even()).warnings == ()


def test_a_zero_vector_is_no_direction() -> None:
    class Zero(Even):
        def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
            return np.zeros((len(words), 2)), np.ones(len(words), np.bool_)

    vocabulary = Vocabulary(["a"])
    table = VectorTable(vocabulary, Zero())
    assert table.collect_arrays()[0].tolist() == [0]
    assert table.compute_lengths()[0].tolist() == [-1]


def test_in_vocabulary_are_listed_or_have_a_vector() -> None:
    vocabulary = Vocabulary()
    known = KnownWords(vocabulary, Vocabulary(["w1", "w3", ""]), VectorTable(vocabulary, Even()))
    ids = vocabulary.add(words(0, 6))
    assert known.find_known()[ids].tolist() == [True, True, True, True, True, False]
    assert vocabulary.words(known.replace_unknown(ids)) == ["w0", "w1", "w2", "w3", "w4", "<unk>"]


def test_threads_may_meet_new_words_together() -> None:
    vocabulary = Vocabulary()
    known = KnownWords(vocabulary, None, VectorTable(vocabulary, Even()))

    def work(start: int) -> list[bool]:
        ids = vocabulary.add(words(start, start + 300))
        return list(known.find_known()[ids].tolist())

    with ThreadPoolExecutor(4) as pool:
        for start, mask in zip(range(0, 3000, 150), pool.map(work, range(0, 3000, 150)), strict=True):
            assert mask == [(start + k) % 2 == 0 for k in range(300)]


def test_shares_of_the_training_text() -> None:
    vocabulary = Vocabulary()
    known = KnownWords(vocabulary, Vocabulary(["a", "b"]), None)
    train = TrainText(vocabulary, TextColumn.from_strings(["a b c", "a", ""]), known)
    ids = vocabulary.add(TextColumn.from_strings(["a", "b", "<unk>", "c"])).astype(np.int64)
    assert train.compute_shares(1, "words.1", "unk").look_up(ids)[:3].tolist() == [0.5, 0.25, 0.25]
    assert np.isnan(train.compute_shares(1, "words.1", "unk").look_up(ids)[3])
    assert train.compute_shares(1, "words.1", "self").look_up(ids)[3] == 0.25


def test_digests_tell_apart_what_is_known() -> None:
    vocabulary = Vocabulary()
    vectors = VectorTable(vocabulary, Even())
    digests = {
        KnownWords(vocabulary, listed, table).digest
        for listed in (None, Vocabulary(["a"]), Vocabulary(["b"]))
        for table in (None, vectors)
    }
    assert len(digests) == 6


def test_all_words_of_many_texts() -> None:
    texts = TextColumn.from_strings([f"w{number % 70} x" for number in range(100_000)])
    assert len(collect_words(texts, DEFAULT)) == 71
