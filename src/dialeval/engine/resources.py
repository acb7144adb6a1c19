"""Opening what lies outside of the rows: training text, vocabulary, word vectors, a judge; each at most once a run."""

from __future__ import annotations

from typing import Any

from dialeval.core.needs import Need
from dialeval.data.rows.reading import read_texts
from dialeval.metrics.learned.judge import LazyJudge, shipped_lacks
from dialeval.resources.embeddings import load_embeddings
from dialeval.resources.words import KnownWords, TrainText, VectorTable, all_words, listed_words
from dialeval.text.vocabulary import Vocabulary


def open_resources(
    shared: Vocabulary, train: Any, vocabulary: Any, embeddings: Any, judge: Any = None
) -> dict[Need, Any]:
    """The resources that are given, over the words of the evaluation.

    The known words are those that are listed, else those of the training text, and in any case those with a vector.
    Where neither is given, no word is unknown and there is no such resource. The judge is the shipped one unless
    another is given, if its encoder is installed; it is opened when something asks for it.
    """
    resources: dict[Need, Any] = {}
    if embeddings is not None:
        vectors = embeddings if hasattr(embeddings, "vectors_for") else load_embeddings(embeddings)
        resources[Need.EMBEDDINGS] = VectorTable(shared, vectors)
    # The training text is its source side: what contexts are to responses. So rows give their contexts.
    texts = None if train is None else read_texts(train, Need.CONTEXT).values
    listed = None
    if vocabulary is not None:
        listed = listed_words(read_texts(vocabulary, Need.CONTEXT).values)
    elif texts is not None:
        listed = all_words(texts)
    if Need.EMBEDDINGS in resources or listed is not None:
        known = KnownWords(shared, listed, resources.get(Need.EMBEDDINGS))
        resources[Need.VOCABULARY] = known
        if texts is not None:
            resources[Need.TRAIN] = TrainText(shared, texts, known)
    if judge is not None or lacking(Need.JUDGE) is None:
        resources[Need.JUDGE] = judge if hasattr(judge, "score") else LazyJudge(judge)
    return resources


def lacking(need: Need) -> str | None:
    """For a resource that needs a package but no argument: what to install, or None if nothing is missing."""
    command = shipped_lacks() if need is Need.JUDGE else None
    return None if command is None else f"needs the sentence encoder of the shipped judge; run: {command}"
