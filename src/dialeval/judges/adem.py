"""ADEM: predict the mean human rating of a response, from 1 to 5, with a bilinear model fitted to ratings.

    adem = (c' M r^ + r' N r^ + w' r^ - alpha) / beta        clipped to 1 .. 5,   M = s I + A B',  N = s I + C D'

c, r, r^ are sentence vectors of the context's last three turns, of the reference and of the response; M and N are near
the identity (A to D have few columns), so that the terms are close to cosines, moved toward what raters prefer (see
`judges.fitting`). Of several references the closest one (highest cosine) counts. The judge that ships with the
package needs no PyTorch; `dialeval adem train` fits another one to your ratings, which `--judge-dir FOLDER` then uses.

What it is good for: ordering systems and finding bad responses among many. What it is not: a judge of word order. A
response read backwards keeps nearly its score. The model card next to the weights reports its errors.

Paper: Lowe et al. 2017, "Towards an Automatic Turing Test: Learning to Evaluate Dialogue Responses", ACL.

Edge cases: without a reference the context's term alone counts (C-ADEM), without a context the reference's; each case
has an alpha and beta of its own, and with neither a row is not scored. An empty context or reference is none. An empty
response is scored as any text. Differences from the original: a frozen sentence encoder instead of a recurrent one
trained on the task; ridge toward the identity instead of L1; see docs/judge-card.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from dialeval.core import inputs, validation
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import check_files, place_of, read_consistently, replace_files
from dialeval.core.fold import RowMetric
from dialeval.metrics.encoder import Encoder, SentenceVectors
from dialeval.metrics.encoder_files import Singles, check_libraries, find_encoder

if TYPE_CHECKING:
    from dialeval.judges.judge import JudgeWeights
    from dialeval.judges.schemas import Saved

# A folder of trained weights holds `NAME.safetensors`, `NAME.json` with the digests of both, and for judges a card:
# one format for the judges of `dialeval adem` and `dialeval judge` (NAME is `judge`) and for the models in PyTorch.
# Nothing else is ever loaded, and no pickle. What a document has in addition to its schema are facts, for people.
CARD_FILE = "README.md"
JUDGE_FILE = "judge.json"
FORMAT = 1
"""The layout of the folder."""
_JUDGE_FILES = ("judge.safetensors", JUDGE_FILE, CARD_FILE)

LOWEST, HIGHEST = 1.0, 5.0
"""The scale of the scores of judges."""

Vectors = npt.NDArray[Any]
Tensors = Mapping[str, Vectors]
Facts: TypeAlias = Mapping[str, Any]
"""Entries of a document for people: data, settings, results."""


AnyDocument = TypeVar("AnyDocument", bound="Saved")
AnyWeights = TypeVar("AnyWeights", bound="AdemWeights | JudgeWeights")


def save_weights(
    folder: str | os.PathLike[str], document: Facts, tensors: Tensors, card: str | None = None, name: str = "judge"
) -> Path:
    """Write tensors and document, and the model card if given, into a folder, which is made if it does not exist."""
    from safetensors.numpy import save

    # safetensors writes the memory of an array as it is.
    content = save({tensor: np.asarray(tensors[tensor], order="C") for tensor in sorted(tensors)})
    with replace_files(Path(folder), f"{name}.json") as files:
        sha256 = files.add_bytes(f"{name}.safetensors", content)
        files.add_bytes(f"{name}.json", validation.with_digest({"format": FORMAT, **document, "sha256": sha256}))
        if card is not None:
            files.add_bytes(CARD_FILE, card.encode())
    return Path(folder)


def load_weights(
    folder: str | os.PathLike[str], schema: type[AnyDocument], remedy: str, name: str = "judge"
) -> tuple[AnyDocument, Facts, dict[str, Vectors]]:
    """Read what `save_weights` wrote: the document by its schema, its other entries, and the tensors.

    Raises:
        DataError: A file cannot be read, has another digest, or does not fit the schema.
    """
    file = Path(folder) / f"{name}.json"

    def read() -> tuple[AnyDocument, Facts, dict[str, Vectors]]:
        document, facts = validation.read_manifest(file, schema, remedy, FORMAT)
        place = place_of(file.with_suffix(".safetensors"), document.sha256)
        tensors = validation.read_tensors(place, remedy, document.sha256, file.name)
        for entry, tensor in tensors.items():
            if tensor.dtype not in (np.int8, np.float16, np.float32):
                raise DataError(Problem(str(place), None, f"{entry} holds other numbers than weights have", remedy))
        return document, {name: facts[name] for name in facts if name not in schema.__struct_fields__}, tensors

    return read_consistently(file, read)


def check_folder(folder: str | os.PathLike[str], *inputs: object) -> None:
    """Raise DataError unless a judge may be saved in a folder: a judge may be replaced, other files and inputs not."""
    check_files(folder, _JUDGE_FILES, _own_files, *inputs)


def _own_files(folder: Path) -> Collection[str]:
    """Return the files of the judge in a folder; none if it holds no judge."""
    try:
        document = validation.read_json(folder / JUDGE_FILE, dict[str, object], "")
    except DataError:
        return ()
    return _JUDGE_FILES if document.keys() >= {"kind", "encoder"} else ()


SHIPPED = Path(__file__).parent / "checkpoints" / "dialogue"
"""The judge that comes with the package."""

CASES = ("both", "context", "reference")
"""What a response is judged by: context and reference, or one of them."""

_TENSORS = ("context_left", "context_right", "reference_left", "reference_right", "response")
_TILE = 1024
"""Rows that are scored at a time; always as many, so that a row's score does not depend on its neighbors."""

Texts: TypeAlias = Sequence[Sequence[str]]
"""Some texts for each row."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Adem(RowMetric):
    """A learned judgment of the response by context and reference, from 1 to 5."""

    family = "adem"
    needs = frozenset({inputs.RESPONSE, inputs.JUDGE})
    wants = one_of = frozenset({inputs.REFERENCE, inputs.CONTEXT})
    costly = True
    judges = True
    better = "higher"
    bounds = (LOWEST, HIGHEST)

    def score(self, batch: Batch) -> Floats:
        judge = batch.resource(inputs.JUDGE)
        responses = list(batch.texts(inputs.RESPONSE))
        none: list[Sequence[str]] = [()] * len(responses)
        contexts = none
        if batch.has(inputs.CONTEXT):
            turns = getattr(judge, "turns", None)  # a judge of a user may look at all of them
            contexts = list(batch.contexts() if turns is None else batch.contexts().take_last(turns))
        references = list(batch.lists(inputs.REFERENCE)) if batch.has(inputs.REFERENCE) else none
        return np.asarray(judge.score(contexts, responses, references), np.float64)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Responses with their contexts and references as vectors, one row each; the vector of a missing text is zero."""

    context: Vectors
    reference: Vectors
    response: Vectors
    has_context: Mask
    has_reference: Mask

    def __len__(self) -> int:
        return len(self.response)


@dataclass(frozen=True, eq=False)
class AdemWeights:
    """The parameters of one judge, and the encoder whose vectors they are for.

    `kind` is the recipe: `identity` (A to D are empty) or `adem`; see `judges.fitting`.
    """

    kind: str
    identity: float
    """s, the factor of the identity in M and N."""
    context_left: Floats
    context_right: Floats
    reference_left: Floats
    reference_right: Floats
    response: Floats
    """w, the linear term."""
    calibration: Mapping[str, tuple[float, float]]
    """alpha and beta of each of the `CASES`."""
    encoder: str = ""
    encoder_digest: str = ""
    tokens: int = 0
    turns: int = 3
    """Turns of the context that count, the last ones."""
    facts: Facts = field(default_factory=dict)
    """What else is known: data, settings, results; for people."""

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return len(self.response)

    @cached_property
    def digest(self) -> str:
        """What the scores depend on."""
        sha = hashlib.sha256()
        for name in _TENSORS:
            sha.update(np.ascontiguousarray(getattr(self, name), "<f8").tobytes())
        numbers = [self.identity, *(number for case in CASES for number in self.calibration[case])]
        sha.update(repr((numbers, self.encoder_digest, self.tokens, self.turns)).encode())
        return sha.hexdigest()[:DIGEST_LENGTH]

    def compute_terms(self, rows: Encoded) -> tuple[Floats, Floats, Floats]:
        """Return the terms of context, reference and response alone, one value per row each."""
        terms = np.empty((3, len(rows)))
        for start in range(0, len(rows), _TILE):
            c, r, said = (_pad_tile(vectors, start) for vectors in (rows.context, rows.reference, rows.response))
            tile = terms[:, start : start + _TILE]
            tile[0] = self._compute_term(c, self.context_left, self.context_right, said)[: tile.shape[1]]
            tile[1] = self._compute_term(r, self.reference_left, self.reference_right, said)[: tile.shape[1]]
            tile[2] = multiply_rows(said, np.broadcast_to(self.response, said.shape))[: tile.shape[1]]
        return terms[0], terms[1], terms[2]

    def _compute_term(self, vectors: Floats, left: Floats, right: Floats, response: Floats) -> Floats:
        """Return v' (s I + L R') r^ of each row."""
        return self.identity * multiply_rows(vectors, response) + multiply_rows(vectors @ left, response @ right)

    def score(self, rows: Encoded) -> Floats:
        """Return one score per row on the scale 1 to 5; NaN where there is neither context nor reference."""
        by_context, by_reference, alone = self.compute_terms(rows)
        has_context, has_reference = rows.has_context, rows.has_reference
        raw = np.where(has_context, by_context, 0.0) + np.where(has_reference, by_reference, 0.0) + alone
        masks = has_context & has_reference, has_context & ~has_reference, has_reference & ~has_context
        scores = np.full(len(rows), np.nan)
        for case, mask in zip(CASES, masks, strict=True):
            alpha, beta = self.calibration[case]
            scores[mask] = (raw[mask] - alpha) / beta
        return np.clip(scores, LOWEST, HIGHEST)

    def save(self, folder: str | os.PathLike[str], card: str | None = None) -> Path:
        """Write the weights into a folder, with a model card if given; see `save_weights`."""
        check_folder(folder)
        encoder = {"name": self.encoder, "digest": self.encoder_digest, "tokens": self.tokens}
        calibration = {case: list(self.calibration[case]) for case in CASES}
        head = {"kind": self.kind, "identity": self.identity, "calibration": calibration}
        tensors = {name: np.float32(getattr(self, name)) for name in _TENSORS}
        return save_weights(folder, {**head, "encoder": encoder, "turns": self.turns, **self.facts}, tensors, card)


def load_adem(folder: str | os.PathLike[str]) -> AdemWeights:
    """Read the weights that `AdemWeights.save` wrote."""
    from dialeval.judges.schemas import SavedJudge

    remedy = "give a folder that `dialeval adem train` wrote, or copy it again"
    judge, facts, tensors = load_weights(folder, SavedJudge, remedy)
    with validation.explain_errors(Path(folder) / "judge.safetensors", remedy):
        size = len(validation.take_tensor(tensors, "response", (None,)))
        shapes = {name: (None,) if name == "response" else (size, None) for name in _TENSORS}
        read = {name: validation.take_tensor(tensors, name, shape).astype(np.float64) for name, shape in shapes.items()}
        for side in ("context", "reference"):
            if read[f"{side}_left"].shape != read[f"{side}_right"].shape:
                raise validation.InvalidError(f"{side}_left and {side}_right have different shapes")
    return AdemWeights(
        judge.kind,
        judge.identity,
        **read,
        calibration={case: getattr(judge.calibration, case) for case in CASES},
        encoder=judge.encoder.name,
        encoder_digest=judge.encoder.digest,
        tokens=judge.encoder.tokens,
        turns=judge.turns,
        facts=facts,
    )


class TrainedJudge(Generic[AnyWeights]):
    """A judge whose weights are read when they are first needed, and which is pickled as it was given.

    `source` is a folder, weights, or None for the shipped judge. `encoder` says where its encoder is, if it is neither
    where its name says nor next to the folder.
    """

    _shipped_folder: ClassVar[Path]

    def __init__(self, source: str | os.PathLike[str] | AnyWeights | None = None, encoder: Any = None) -> None:
        self._source, self._encoder = source, encoder

    def __reduce__(self) -> tuple[type[Any], tuple[object, ...]]:
        return type(self), (self._source, self._encoder)

    @staticmethod
    def _load(folder: str | os.PathLike[str]) -> AnyWeights:
        """Read the weights of a folder."""
        raise NotImplementedError

    @property
    def shipped(self) -> bool:
        """Whether it is the judge that comes with the package."""
        return self._source is None

    @cached_property
    def weights(self) -> AnyWeights:
        """The weights, read when they are first needed."""
        if self._source is not None and not isinstance(self._source, str | os.PathLike):
            return self._source
        check_libraries()
        return self._load(self._shipped_folder if self._source is None else self._source)

    def locate_encoder(self) -> str | os.PathLike[str]:
        """Return where the encoder is: the given place, a folder of its name next to the judge, or its name."""
        name = self.weights.encoder
        if self._encoder is None and isinstance(self._source, str | os.PathLike):
            beside = Path(self._source).absolute().with_name(name) if name == Path(name).name else Path(name)
            return beside if beside.is_dir() else name
        return self._encoder or name

    @property
    def trained_on(self) -> list[str]:
        """The digests of the rated rows that it learned from; none where its document has none."""
        digests = self.weights.facts.get("trained_on")
        return [digest for digest in digests if isinstance(digest, str)] if isinstance(digests, list) else []


class Judge(TrainedJudge[AdemWeights]):
    """A judge of `adem`: scores responses by their context and references. `open_judge` makes one.

    Args:
        source: The folder of the judge, or its weights; None: the shipped one.
        encoder: The sentence encoder; None: the one that the judge was trained with.

    Examples:
        >>> from dialeval.adem import Judge
        >>> Judge().shipped
        True
    """

    _shipped_folder, _load = SHIPPED, staticmethod(load_adem)

    @cached_property
    def vectors(self) -> SentenceVectors:
        """The vectors of the encoder that the weights were fitted to."""
        weights, vectors = self.weights, self._encoder
        if not isinstance(vectors, SentenceVectors):
            vectors = open_vectors(self.locate_encoder(), weights.tokens)
        if weights.encoder_digest and weights.encoder_digest != vectors.encoder.files.digest:
            remedy = f"pass the encoder {weights.encoder!r} ({weights.encoder_digest}), or train a judge for this one"
            raise SettingError(f"the judge was fitted to other vectors than those of {vectors.encoder.name}; {remedy}")
        return vectors

    @cached_property
    def digest(self) -> str:
        """The weights' digest, the encoder's name and digest."""
        encoder = self.vectors.encoder
        return f"{self.weights.kind}@{self.weights.digest}+{encoder.name}@{encoder.digest}"

    @property
    def turns(self) -> int:
        """The number of turns of a context that count, from its end."""
        return self.weights.turns

    def score(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Floats:
        """Score responses.

        Args:
            contexts: The turns before each response.
            responses: The responses.
            references: The references of each response.

        Returns:
            A score per response, about 1 to 5; NaN for a response without context and reference.
        """
        return self.weights.score(encode_rows(self.vectors, contexts, responses, references, self.turns))


def open_judge(source: str | os.PathLike[str] | None = None, encoder: str | os.PathLike[str] | None = None) -> Judge:
    """Open a trained judge of `adem`.

    Args:
        source: The folder of the judge; None: the shipped one.
        encoder: The sentence encoder; None: the one that the judge was trained with.

    Returns:
        The judge, with its encoder loaded.

    Raises:
        DataError: The folder has no judge.
        SettingError: The encoder is not the one that the judge was trained with, or is not installed.

    Examples:
        >>> from dialeval.adem import open_judge
        >>> judge = open_judge()
        >>> judge.score([["how are you ?"]], ["fine , thanks"], [["i am well"]]).round(1)
        array([3.])
    """
    judge = Judge(source, encoder)
    _ = judge.vectors
    return judge


def open_vectors(encoder: str | os.PathLike[str], tokens: int | None = None) -> SentenceVectors:
    """Return the sentence vectors of an encoder; `tokens` of a text count, see `metrics.encoder`."""
    return SentenceVectors(Encoder(find_encoder(encoder), tokens))


def encode_rows(
    vectors: SentenceVectors, contexts: Texts, responses: Sequence[str], references: Texts, turns: int
) -> Encoded:
    """Encode rows: the last turns of the context joined by spaces, the response, and the reference closest to it."""
    response = vectors.of(responses)
    joined = [" ".join(turn for turn in context[-turns:] if turn.strip()) for context in contexts]
    has_context = np.fromiter(map(bool, joined), np.bool_, len(joined))
    context: Singles = np.zeros((len(joined), vectors.encoder.dimension), np.float32)
    context[has_context] = vectors.of([text for text in joined if text], ends=True)
    reference, has_reference = _find_closest_references(vectors, references, response)
    return Encoded(context, reference, response, has_context, has_reference)


def compute_closest_cosines(vectors: SentenceVectors, responses: Sequence[str], references: Texts) -> Floats:
    """Return the cosine of each response with its closest reference, NaN where it has none."""
    response = vectors.of(responses)
    reference, has = _find_closest_references(vectors, references, response)
    return np.where(has, _compute_cosines(reference, response), np.nan)


def _find_closest_references(vectors: SentenceVectors, references: Texts, response: Singles) -> tuple[Singles, Mask]:
    """Return the vector of each response's closest reference, and whether there is one."""
    lists = [[text for text in texts if text.strip()] for texts in references]
    counts: Ints = np.fromiter(map(len, lists), np.int64, len(lists))
    rows = np.repeat(np.arange(len(lists)), counts)
    every = vectors.of([text for texts in lists for text in texts])
    # By row, then by cosine: the last one of each row is the closest.
    order = np.lexsort((_compute_cosines(every, response[rows]), rows))
    has = counts > 0
    closest: Singles = np.zeros((len(lists), vectors.encoder.dimension), np.float32)
    closest[has] = every[order[np.cumsum(counts)[has] - 1]]
    return closest, has


def _compute_cosines(left: Vectors, right: Vectors) -> Floats:
    """Return cosines in double precision: which of two close references is closest must not depend on the processor."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    lengths = np.sqrt(multiply_rows(left, left) * multiply_rows(right, right))
    return multiply_rows(left, right) / np.maximum(lengths, 1e-12)


def _pad_tile(vectors: Vectors, start: int) -> Floats:
    """Return the rows from `start` on as float64, padded with zeros to a whole tile."""
    tile = np.zeros((_TILE, vectors.shape[1]))
    part = vectors[start : start + _TILE]
    tile[: len(part)] = part
    return tile


def multiply_rows(left: Vectors, right: Vectors) -> Floats:
    """Return the inner product of each row with the row next to it."""
    return np.einsum("ij,ij->i", left, right)
