"""Opening what lies outside of the rows: training text, vocabulary, word vectors, each at most once per evaluation."""

from __future__ import annotations

from typing import Any

from dialeval.core.needs import Need
from dialeval.data.sources import read_texts
from dialeval.resources.embeddings import load_embeddings
from dialeval.resources.words import KnownWords, TrainText, VectorTable, all_words, listed_words
from dialeval.text.vocabulary import Vocabulary


def open_resources(shared: Vocabulary, train: Any, vocabulary: Any, embeddings: Any) -> dict[Need, Any]:
    """The resources that are given, over the words of the evaluation.

    The known words are those that are listed, else those of the training text, and in any case those with a vector.
    Where neither is given, no word is unknown and there is no such resource.
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
    if resources or listed is not None:
        known = KnownWords(shared, listed, resources.get(Need.EMBEDDINGS))
        resources[Need.VOCABULARY] = known
        if texts is not None:
            resources[Need.TRAIN] = TrainText(shared, texts, known)
    return resources
