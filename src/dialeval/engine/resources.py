"""Resources: what lies outside of the rows. Training text, vocabulary, word vectors and a judge are opened once a run.

A worker in another process opens them for itself, by their paths, over the words that it meets. The digests tell it
whether what it finds there is what the run began with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.needs import Need
from dialeval.data.rows.fields import kind_of
from dialeval.data.rows.reading import read_texts
from dialeval.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dialeval.resources.vectorstore import Embeddings

WordChoice: TypeAlias = Literal["listed", "vectors"]
"""Whether words with a vector that are not listed are unknown, or known too."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Where the resources lie (paths or objects), and what they should be."""

    train: Any = None
    vocabulary: Any = None
    embeddings: Any = None
    judge: Any = None
    """A folder, or a judge that travels as the place where it lies."""
    known_words: WordChoice | None = None
    ready: Mapping[Need, Any] | None = None
    """Resources that are open, by need, for evaluations that use none of the others."""
    digests: Mapping[Need, str] = field(default_factory=dict)
    """Those of the resources that the metrics use."""

    def opened(self, vocabulary: Vocabulary) -> dict[Need, Any]:
        """The resources over the words of a vocabulary; a DataError where one is not what it should be."""
        if self.ready is not None:
            return dict(self.ready)
        opened = open_resources(vocabulary, self.train, self.vocabulary, self.embeddings, self.judge, self.known_words)
        for need, digest in self.digests.items():
            if opened[need].digest != digest:
                where = getattr(self, need.argument, None) or self.train or self.embeddings
                what = f"is not the {need} that the run began with"
                raise DataError(Fault(str(where), None, what, "keep it as it is, and the same on every machine"))
        return opened

    def require_paths(self) -> None:
        """A SettingError for a resource that other processes could not open."""
        for name in ("train", "vocabulary", "embeddings"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str | os.PathLike):
                raise SettingError(
                    f"{name}: {kind_of(given)} lies in the memory of this process; save it to a file, so that every "
                    "worker can open it"
                )


def open_resources(
    shared: Vocabulary,
    train: Any = None,
    vocabulary: Any = None,
    embeddings: Any = None,
    judge: Any = None,
    known_words: WordChoice | None = None,
) -> dict[Need, Any]:
    """The resources that are given, over the words of the evaluation.

    Which words are known matters to metrics with `oov=unk` alone. The listed words are those of the vocabulary, else
    those of the training text. With `known_words="listed"` no other word is known; with "vectors" words with a vector
    are known too. Unless it is given, the vector file decides as in dialog-eval: one with a header (fastText, word2vec)
    is a collection for any text, of which the original keeps the listed words; one without is what the original made
    for a vocabulary, and it takes all of it. Where nothing is listed, the words with a vector are known; without
    vectors either, no word is unknown and there is no such resource.

    The judge is the shipped one unless another is given, if its encoder is installed; it is opened when something asks
    for it.
    """
    if known_words not in (None, *get_args(WordChoice)):
        raise SettingError(f"known_words is one of {', '.join(get_args(WordChoice))}, not {known_words!r}")
    words = any(each is not None for each in (train, vocabulary, embeddings, known_words))
    resources = _words(shared, train, vocabulary, embeddings, known_words) if words else {}
    if judge is not None or lacking(Need.JUDGE) is None:
        resources |= _judges(judge)
    if lacking(Need.ENCODER) is None:
        from dialeval.resources.encoder import ShippedEncoder

        resources[Need.ENCODER] = ShippedEncoder()
    return resources


def _words(
    shared: Vocabulary, train: Any, vocabulary: Any, embeddings: Any, known_words: WordChoice | None
) -> dict[Need, Any]:
    """The resources that say which words are known, and what is known of them."""
    from dialeval.resources.embeddings import load_embeddings
    from dialeval.resources.words import KnownWords, TrainText, VectorTable

    resources: dict[Need, Any] = {}
    texts = train_texts(train)
    listed: Vocabulary | TextColumn | None = None
    if vocabulary is not None:
        listed = _vocabulary(vocabulary)
    elif texts is not None:
        listed = texts
    elif known_words == "listed":
        raise SettingError("known_words='listed' needs a list of words; pass vocabulary= or train=")
    table: VectorTable | None = None
    only_listed = known_words == "listed"
    if embeddings is not None:
        vectors = embeddings if hasattr(embeddings, "vectors_for") else load_embeddings(embeddings)
        only_listed |= known_words is None and getattr(vectors, "header", False)
        resources[Need.EMBEDDINGS] = table = VectorTable(shared, vectors)
    if table is not None or listed is not None:
        known = KnownWords(shared, listed, None if only_listed and listed is not None else table)
        resources[Need.VOCABULARY] = known
        if texts is not None:
            resources[Need.TRAIN] = TrainText(shared, texts, known)
    return resources


def _judges(given: Any) -> dict[Need, Any]:
    """The judges by need: the shipped ones, or just the given one, an object or a folder, whatever its kind."""
    from dialeval.metrics.learned.adem import Judge
    from dialeval.metrics.learned.judge import DialogueJudge, is_dialogue_judge

    if given is None:
        return {Need.JUDGE: Judge(), Need.DIALOGUE_JUDGE: DialogueJudge()}
    if not hasattr(given, "score"):
        given = DialogueJudge(given) if is_dialogue_judge(given) else Judge(given)
    if hasattr(given, "verdicts"):
        return {Need.DIALOGUE_JUDGE: given}
    # The shipped judge of adem on another device stands beside the shipped judge of the other kind.
    other = {Need.DIALOGUE_JUDGE: DialogueJudge()} if getattr(given, "shipped", False) else {}
    return {Need.JUDGE: given, **other}


def resource_warnings(opened: Mapping[Need, Any]) -> tuple[str, ...]:
    """What a user should know about the files of the resources."""
    vectors = opened.get(Need.EMBEDDINGS)
    return () if vectors is None else tuple(vectors.warnings)


def _vocabulary(source: Any) -> Vocabulary:
    """The words of a list; of a vector file such as the `vocab.npy` of dialog-eval, those that have a vector there."""
    from dialeval.resources.embeddings import load_embeddings
    from dialeval.resources.words import listed_words

    if isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith((".npy", ".npy.gz", ".npy.zst")):
        return Vocabulary(cast("Embeddings", load_embeddings(Path(source))).words())
    return listed_words(read_texts(source, Need.CONTEXT).values)


def train_texts(train: Any) -> TextColumn | None:
    """The training text, if there is one: its source side, what contexts are to responses. So rows give contexts."""
    return train if train is None or isinstance(train, TextColumn) else read_texts(train, Need.CONTEXT).values


def lacking(need: Need) -> str | None:
    """What is not installed that a need takes, with the command that installs it; None where nothing is missing."""
    if need not in (Need.JUDGE, Need.DIALOGUE_JUDGE, Need.ENCODER):
        return None
    from dialeval.resources import encoder_files

    command = encoder_files.lacking()
    return None if command is None else f"needs the sentence encoder of the shipped judges; run: {command}"
