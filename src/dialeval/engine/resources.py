"""Resources: data other than the rows. Training text, vocabulary, word vectors and a judge are opened once per run,
the shipped judges once per process.

A worker in another process opens them by their paths, over its own vocabulary. Digests show whether they are what the
run began with.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast, get_args

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.features import find_place, list_known
from dialeval.core.inputs import Input
from dialeval.io.opening import PathSource
from dialeval.io.reading import read_texts
from dialeval.io.rows import kind_of
from dialeval.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from dialeval.engine.plan import Asked, Settings
    from dialeval.io.vectors import Embeddings, WordVectors


class ArrowTable(Protocol):
    """A table of Arrow, pandas or polars."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as a stream of Arrow."""


Data: TypeAlias = str | os.PathLike[str] | Iterable[object] | Mapping[str, object] | ArrowTable
"""A path, a list of texts or rows, a table or column, or a mapping of names to these."""

WordChoice: TypeAlias = Literal["listed", "vectors"]
"""Whether words with a vector that are not listed are unknown, or known too."""

_ENCODER = "dialeval.metrics.encoder:SentenceVectors"
_JUDGES = (inputs.JUDGE, inputs.DIALOGUE_JUDGE)
"""Resources that `judge` replaces."""


def list_shipped(everything: bool = False) -> dict[Input, str]:
    """Return the places of resources that ship with a package; each is made when a metric of the plan asks for it.

    `everything`: also those of packages that nothing has asked for yet.
    """
    places = {inputs.ENCODER: _ENCODER}
    for feature in list_known(everything):
        places |= feature.resources
    return {need: place for need, place in places.items() if explain_missing(need) is None}


@cache
def _make_shipped(place: str) -> object:
    """Make a shipped resource, once for all evaluations of this process: reading a judge takes a second."""
    return resolve_name(place)()


class LoadedResources(dict[Input, Any]):
    """Resources by need; a shipped one is the name of its class until it is first asked for."""

    def __getitem__(self, need: Input) -> Any:
        resource = super().__getitem__(need)
        if isinstance(resource, str):
            resource = self[need] = _make_shipped(resource)
        return resource


class LanguageJudge(Protocol):
    """A language model as a judge, or a panel of them: `dialeval.judges.LLM`, `dialeval.judges.Panel`."""

    @property
    def digest(self) -> str:
        """The models and the settings that grades depend on."""

    def plan(self, metrics: Asked, settings: Settings | None) -> tuple[Asked, Settings]:
        """Return the metrics and settings of an evaluation with rubric, mode and models."""

    def check_folder(self, folder: PathSource) -> None:
        """Raise DataError where answers cannot be saved in the folder of a run."""

    def copy_answers(self, folder: PathSource) -> None:
        """Write the answers into the folder of a run."""


class JudgeProtocol(Protocol):
    """A judge for the metric `adem` (`--judge-dir`, `judge=`): an object that scores replies.

    The score of a reply must not depend on other replies.
    """

    @property
    def digest(self) -> str:
        """A digest of everything that its scores depend on, which is in signatures."""

    def score(
        self, contexts: Sequence[Sequence[str]], responses: Sequence[str], references: Sequence[Sequence[str]]
    ) -> Floats | Sequence[float]:
        """Return one score per response; NaN where it cannot be scored."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources as they are given (paths or objects), and their expected digests."""

    train: Data | None = None
    vocabulary: Data | None = None
    vectors: PathSource | WordVectors | None = None
    judge: PathSource | JudgeProtocol | None = None
    """A folder, or a judge that can be pickled."""
    in_vocabulary: WordChoice | None = None
    checks: PathSource | Sequence[Mapping[str, object]] | None = None
    """Rules about replies and tool calls: a TOML file, or a list of dictionaries."""
    llm: LanguageJudge | None = None
    """A language model as a judge, or a panel of them (`judges.llm.judge`)."""
    ready: Mapping[Input, object] | None = None
    """Resources that are open, by need, for evaluations that use none of the others."""
    digests: Mapping[Input, str] = field(default_factory=dict)
    """Those of the resources that the metrics use."""

    def open(self, vocabulary: Vocabulary) -> Mapping[Input, Any]:
        """Open the resources over the words of a vocabulary; DataError where one is not what it should be.

        Which words are in-vocabulary matters to metrics with `oov=unk` alone. The listed words are those of the
        vocabulary, else those of the training text. With `in_vocabulary="listed"` no other word is known; with
        "vectors" words with a vector are known too. Unless it is given, the vector file decides as in dialog-eval: one
        with a header (fastText, word2vec) is a collection for any text, of which the original keeps the listed words;
        one without is what the original made for a vocabulary, and it takes all of it. Where nothing is listed, the
        words with a vector are known; without vectors either, no word is unknown and there is no such resource.

        The judges are the shipped ones unless another is given, if their encoder is installed.
        """
        if self.ready is not None:
            return self.ready
        if self.in_vocabulary not in (None, *get_args(WordChoice)):
            raise SettingError(f"in_vocabulary is one of {', '.join(get_args(WordChoice))}, not {self.in_vocabulary!r}")
        sources = (self.train, self.vocabulary, self.vectors, self.in_vocabulary)
        words = self._open_words(vocabulary) if any(each is not None for each in sources) else {}
        shipped = list_shipped()
        if not self.digests.keys() <= {*words, *shipped, inputs.CALL_CHECKS, inputs.TEXT_CHECKS, inputs.LLM}:
            # In a worker, to which the metrics of a package were sent.
            shipped = list_shipped(everything=True)
        if self.judge is not None:
            words |= find_place("loaders", "judge")(self.judge)
            shipped = {need: place for need, place in shipped.items() if need not in _JUDGES}
        if self.checks is not None:
            from dialeval.metrics.checks import load_checks

            words |= load_checks(self.checks)
        if self.llm is not None:
            words[inputs.LLM] = self.llm
        resources = LoadedResources({**shipped, **words})
        for need, digest in self.digests.items():
            if resources[need].digest != digest:
                where = getattr(self, need.argument, None) or self.train or self.vectors
                what = f"is not the {need} that the run began with"
                raise DataError(Problem(str(where), None, what, "keep it as it is, and the same on every machine"))
        return resources

    def _open_words(self, shared: Vocabulary) -> dict[Input, object]:
        """Open the resources that determine which words are known, and what is known of them."""
        from dialeval.io.vectors import load_embeddings
        from dialeval.metrics.words import KnownWords, TrainText, VectorTable

        resources: dict[Input, object] = {}
        texts = read_train_texts(self.train)
        listed: Vocabulary | TextColumn | None = None
        if self.vocabulary is not None:
            listed = _read_vocabulary(self.vocabulary)
        elif texts is not None:
            listed = texts
        elif self.in_vocabulary == "listed":
            raise SettingError("in_vocabulary='listed' needs a list of words; pass vocabulary= or train=")
        table: VectorTable | None = None
        only_listed = self.in_vocabulary == "listed"
        if self.vectors is not None:
            vectors = load_embeddings(self.vectors) if isinstance(self.vectors, str | os.PathLike) else self.vectors
            only_listed |= self.in_vocabulary is None and getattr(vectors, "header", False)
            resources[inputs.EMBEDDINGS] = table = VectorTable(shared, vectors)
        if table is not None or listed is not None:
            known_words = KnownWords(shared, listed, None if only_listed and listed is not None else table)
            resources[inputs.VOCABULARY] = known_words
            if texts is not None:
                resources[inputs.TRAIN] = TrainText(shared, texts, known_words)
        return resources

    def require_paths(self) -> None:
        """Raise a SettingError for a resource that other processes could not open."""
        if self.llm is not None:
            raise SettingError(
                "a language model is asked by threads of one process; leave other processes out (--jobs)"
            )
        for name in ("train", "vocabulary", "vectors"):
            source = getattr(self, name)
            if source is not None and not isinstance(source, str | os.PathLike):
                raise SettingError(
                    f"{name}: {kind_of(source)} is in the memory of this process; save it to a file, so that every "
                    "worker can open it"
                )


def _read_vocabulary(source: object) -> Vocabulary:
    """Read the words of a list; of a vector file such as the `vocab.npy` of dialog-eval, those that have a vector."""
    from dialeval.io.vectors import load_embeddings

    if isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith((".npy", ".npy.gz", ".npy.zst")):
        return Vocabulary(cast("Embeddings", load_embeddings(Path(source))).words())
    return Vocabulary(line.strip() for line in read_texts(source, inputs.CONTEXT).values)


def read_train_texts(train: object) -> TextColumn | None:
    """Read the training text, if there is one: its source side, so that of rows the contexts are taken."""
    return train if train is None or isinstance(train, TextColumn) else read_texts(train, inputs.CONTEXT).values


def explain_missing(need: Input) -> str | None:
    """Return what must be installed for a need, with the command that installs it; None where nothing is missing."""
    if need not in (*_JUDGES, inputs.ENCODER):
        return None
    from dialeval.metrics import encoder_files

    command = encoder_files.find_install_command()
    return None if command is None else f"needs the sentence encoder of the shipped judges; run: {command}"
