"""Judge: predict the mean human rating of a response, from 1 to 5, with a cross-encoder that reads it in its context.

    judge                the score: the predicted rating of the response
    judge/relevance      probability that the response answers this context and not another one
    judge/fluency        probability that the words are in order: not shuffled, doubled or left out
    judge/novelty        probability that the response is no echo of what was said before
    judge/continuity     a score of how easily the dialogue goes on, learned from annotated breakdowns

All but the first are between 0 and 1. The last orders turns and systems, and is no probability: nearly all of its
values are between 0.28 and 0.44, whatever fraction of people see a breakdown. A context is its last three turns. A
reference is used where there is one: the closest one counts. The judge that ships with the package needs no PyTorch
and no GPU; `--judge-dir FOLDER` takes another one.

    raw = rating + a rank + b closest        score = 1 + 4 / (1 + exp(-(alpha + beta raw)))

    [CLS] the last turns of the context, each ended by [SEP]   |   the response [SEP]

The cross-encoder reads this pair; the first part has the token type 0, the second 1. Of a context that is too long the
end counts, of a response that is too long the beginning. The feature of a pair is the vector of its first piece and the
mean over the pieces of the response; the heads are linear in it. What training changed is small enough to ship: thin
factors in eight bits on top of the encoder (`metrics.encoder`). Changes of vectors and the heads are kept whole.

    weight = the encoder's weight + left right'        left, right: int8 with a scale per column

`rating` and `rank` are heads: what it learned from raters, and how well the response follows the
context compared with other responses. `closest` is the cosine of the sentence vectors of the response and of the
closest reference; it is left out where there is no reference, and alpha and beta are others then.

    fractions of O, T, X = p^w m^(1 - w), normalized to sum to 1

    label = O where T + X < cut, else T or X, whichever the head says is more probable

p are the probabilities of the head for breakdowns, m the mean fractions of the systems that it learned from. Systems
differ in how often they break down, and no turn shows that; so the head counts less (w) than among turns of one system.

What it is good for: ordering systems, and finding replies that do not follow. What it is not: a judge of facts, of
manners, or of fluent replies by large models among themselves. The model card next to the weights says how well it
agrees with people on thirteen sets of ratings, and how often it is fooled. These sets hold short chat replies. Where
more than a tenth of the responses of a run are others (more than 60 words, several paragraphs, a code block, or a list
of two items or more), a warning of the run says so, with the agreement that `tools/judge_limits.py` measured on such
texts. The rule was chosen on one set of answers by large models (llm_pairs, of which 81% are others; of the thirteen
sets at most 3%), and finds 36% of another one (pandalm_pairs).

Edge cases: a row without a context is not scored. An empty response is scored as any text. A score does not depend on
the rows next to it, to the last bit.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dialeval.core import inputs, validation
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Bounds, Estimate, Level, Metric, Partial
from dialeval.core.inputs import Input
from dialeval.judges import adem
from dialeval.judges.adem import HIGHEST, LOWEST, Texts
from dialeval.metrics.breakdown import O, T, X
from dialeval.metrics.encoder import SentenceVectors, Transformer, group_texts
from dialeval.metrics.encoder_files import EncoderFiles, Singles, find_encoder

if TYPE_CHECKING:
    from dialeval.core.result import Result

SHIPPED = Path(__file__).parent / "checkpoints" / "judge"
"""The judge that comes with the package."""

KIND = "cross-encoder"
_REMEDY = "give the folder of such a judge, or none: the shipped judge is used then"

CONTINUITY = "continuity"
PARTS = ("relevance", "fluency", "novelty", CONTINUITY)
"""The results in addition to the score."""

REASONS = {
    "relevance": "does not follow from the context",
    "fluency": "words are out of order, missing or doubled",
    "novelty": "repeats the context",
}
"""By part: the reason that is given where the part is below `UNSURE`."""
UNSURE = 0.5

LONG = 60
"""Words of a response above which it is unlike the replies that the judge was validated on."""
_LAYOUT = re.compile(r"\S\s*\n\s*\n\s*\S|```")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+\S", re.MULTILINE)
OUTSIDE = "outside"
MOST_OUTSIDE = 0.1
"""The fraction of responses outside above which a run warns. In the thirteen sets of the card it is below 0.03."""

AGREEMENT = (
    "On pairs of such answers by large models it agreed with the human preference in 56% (llm_pairs) and 62% "
    "(pandalm_pairs) of cases; the longer one is preferred in 66% and 67%"
)
"""As `tools/judge_limits.py` printed it."""

JudgmentState = Mapping[str, Moments]
"""By result key."""


@dataclass(frozen=True)
class Scale:
    """From what the heads say to the score: the weights of rank and closest reference, and the curve onto the scale."""

    rank: float
    closest: float
    alpha: float
    beta: float
    alpha_closest: float
    beta_closest: float


@dataclass(frozen=True)
class BreakdownScale:
    """From what the head says to shares of O, T and X, and to a label; the defaults leave the shares as they are.

    `weight`: how much the head counts next to the mean shares (`mean`). `cut`: the threshold of T
    and X together from which on a turn is labeled T or X.
    """

    weight: float = 1.0
    mean: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    cut: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 10 or not all(0 < share <= 1 for share in self.mean):
            raise ValueError("the weight is 0 to 10, and shares are above 0")


@dataclass(frozen=True)
class Judgment(Metric[JudgmentState]):
    """A learned judgment of the response, read together with its context, from 1 to 5."""

    family = "judge"
    needs = frozenset({inputs.RESPONSE, inputs.CONTEXT, inputs.DIALOGUE_JUDGE})
    wants = frozenset({inputs.REFERENCE})
    costly = True
    better = "higher"
    bounds = (LOWEST, HIGHEST)

    def bounds_of(self, key: str) -> Bounds:
        return (0.0, 1.0) if key.rpartition("/")[2] in PARTS else self.bounds

    @property
    def _keys(self) -> dict[str, str]:
        """By the part of a verdict: the key of its result."""
        return {"score": self.name, **{part: f"{self.name}/{part}" for part in PARTS}}

    def empty(self) -> JudgmentState:
        return dict.fromkeys([*self._keys.values(), OUTSIDE], Moments())

    def partial(self, batch: Batch) -> Partial[JudgmentState]:
        verdicts = judge_batch(batch)
        parts = {**vars(verdicts), CONTINUITY: verdicts.breakdown[:, 0]}
        columns = {key: parts[part] for part, key in self._keys.items()}
        state = {key: Moments.of(values, batch.dialogues) for key, values in columns.items()}
        shipped = batch.resource(inputs.DIALOGUE_JUDGE).shipped  # nothing is known of what others were validated on
        outside = [is_outside(text) for text in batch.texts(inputs.RESPONSE)] if shipped else []
        return Partial({**state, OUTSIDE: Moments.of(np.array(outside, np.float64))}, columns)

    def merge(self, left: JudgmentState, right: JudgmentState) -> JudgmentState:
        return {key: left[key] + right[key] for key in left}

    def finish(self, state: JudgmentState) -> Mapping[str, Estimate]:
        return {key: Estimate.of_moments(state[key], self.bounds_of(key)) for key in self._keys.values()}

    def find_warnings(self, states: Sequence[JudgmentState]) -> Iterator[str]:
        counted = sum((state[OUTSIDE] for state in states), Moments())
        if counted.scored and counted.mean > MOST_OUTSIDE:
            yield (
                f"{self.name}: {round(counted.mean * counted.scored):,} of {counted.scored:,} responses are unlike the "
                f"chat replies it was validated on (over {LONG} words, several paragraphs, code or lists). {AGREEMENT}"
            )


def is_outside(response: str) -> bool:
    """Return whether a response is unlike the short chat replies that the shipped judge was validated on.

    That is one of more than `LONG` words, of several paragraphs, with a code block, or with a list of several items.
    """
    if len(response.split()) > LONG or _LAYOUT.search(response):
        return True
    return len(_LIST_ITEM.findall(response)) > 1


def explain_rows(systems: Mapping[str, Result], rows: Ints, **_: object) -> dict[str, object]:
    """Return the reasons against some responses of each system, for the report; None for a system not judged."""
    return {"reasons": [_list_reasons(result, rows) for result in systems.values()]}


def _list_reasons(result: Result, rows: Ints) -> list[str] | None:
    columns = ((key, each.scores) for key, each in result.items() if each.level is Level.TURN)
    named = {key.removeprefix("judge/"): scores for key, scores in columns if key.startswith("judge/")}
    parts = {part: scores for part, scores in named.items() if scores is not None and len(scores) > rows.max(initial=0)}
    reasons = [(parts[part], reason) for part, reason in REASONS.items() if part in parts]
    return ["; ".join(reason for scores, reason in reasons if scores[row] < UNSURE) for row in rows] if parts else None


def judge_batch(batch: Batch) -> Verdicts:
    """Return the verdicts on the responses of a batch, computed once for all metrics; none on those that failed."""

    def judge_all() -> Verdicts:
        rows = np.flatnonzero(~(batch.failed | batch.silent))
        said = batch if len(rows) == len(batch) else batch.take(rows)
        responses, judge = list(said.texts(inputs.RESPONSE)), batch.resource(inputs.DIALOGUE_JUDGE)
        references = list(said.lists(inputs.REFERENCE)) if said.has(inputs.REFERENCE) else [()] * len(responses)
        contexts = list(said.contexts().take_last(judge.weights.shape.turns))
        columns = {}
        for name, values in vars(judge.verdicts(contexts, responses, references)).items():
            columns[name] = np.full((len(batch), *values.shape[1:]), np.nan)
            columns[name][rows] = values
        return Verdicts(**columns)

    return batch.derive("verdicts", judge_all)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The verdicts on responses, one entry each; NaN where there is no context."""

    score: Floats
    """From 1 to 5."""
    relevance: Floats
    """Probability that the response answers this context and not another one."""
    fluency: Floats
    """Probability that the words are in order."""
    novelty: Floats
    """Probability that the response is no echo of the context."""
    breakdown: Floats
    """Three columns: the fractions of people who would see no breakdown, perhaps one, and one."""


# The cross-encoder in NumPy.


Pieces = npt.NDArray[np.int32]

_DETACHED = re.compile(r"(\w) n't\b", re.IGNORECASE)
_AT_ONCE = 1 << 14

KINDS = ("true", "random", "echo", "broken")
"""What a candidate response is in training; the classes of the head `kind`."""

HEADS = {"rank": 1, "kind": len(KINDS), "rating": 1, "breakdown": 3}
"""What the heads say: how well the response follows, what kind of candidate it is, its mean rating, and the fractions
of annotators that would see no breakdown, perhaps one, and one."""

Changes = Mapping[str, npt.NDArray[Any]]
"""By name: factors (`NAME.left`, `NAME.right`, each with `.scale`), differences of vectors, and the heads."""


TURNS = 3
CONTEXT_TOKENS = 72
"""Word pieces of a context that count, with [CLS] and every [SEP]."""
RESPONSE_TOKENS = 44
"""Word pieces of a response that count, with its [SEP]."""
_MOST = 1 << 24


@dataclass(frozen=True)
class PairShape:
    """How much of a pair is read."""

    turns: int = TURNS
    context_tokens: int = CONTEXT_TOKENS
    response_tokens: int = RESPONSE_TOKENS

    def __post_init__(self) -> None:
        if not all(1 <= number <= _MOST for number in (self.turns, self.context_tokens, self.response_tokens)):
            raise ValueError("turns and tokens are whole numbers from 1 on")


class CrossEncoder:
    """An encoder's files with changes to its layers, and heads."""

    def __init__(self, files: EncoderFiles, changes: Changes, shape: PairShape) -> None:
        self.shape = shape
        self._tokenizer = PairTokenizer(files)
        weights, layers = files.read_weights(), merge_changes(name_weights(files), changes)
        parts = [
            {name: (layers[f"{number}.{name}.weight"], layers[f"{number}.{name}.bias"]) for name in layer}
            for number, layer in enumerate(weights.layers)
        ]
        self._transformer = Transformer(files, replace(weights, layers=parts))
        self._heads = tuple(changes[f"heads.{part}"].astype(np.float64) for part in ("weight", "bias"))

    def compute_heads(self, contexts: Sequence[Sequence[str]], responses: Sequence[str]) -> Floats:
        """Return the values of the heads for each response, a row each; the columns in the order of `HEADS`."""
        read = self.make_sequences(contexts, responses)
        heads = np.empty((len(read), sum(HEADS.values())))
        for group in group_texts([len(ids) for ids, _ in read]):
            heads[group] = self._run_group([read[pair] for pair in group])
        return heads

    def make_sequences(self, contexts: Sequence[Sequence[str]], responses: Sequence[str]) -> list[tuple[Pieces, int]]:
        """Return the pieces of each pair, and how many of them are the response's."""
        kept = [[turn for turn in context if turn.strip()][-self.shape.turns :] for context in contexts]
        texts = [text for context, response in zip(kept, responses, strict=True) for text in (*context, response)]
        pieces, read = iter(self._tokenizer.split_pieces(texts)), []
        for context in kept:
            before = [piece for _ in context for piece in next(pieces)]
            response = next(pieces)
            if len(response) > self.shape.response_tokens:
                response = [*response[: self.shape.response_tokens - 1], self._tokenizer.end]
            before = before[max(len(before) - (self.shape.context_tokens - 1), 0) :]
            read.append((np.array([self._tokenizer.first, *before, *response], np.int32), len(response)))
        return read

    def _run_group(self, read: Sequence[tuple[npt.NDArray[np.int32], int]]) -> Floats:
        seconds = [many for _, many in read]
        kept = [np.append(0, np.arange(len(ids) - many, len(ids))) for ids, many in read]
        weight, bias = self._heads
        heads = []
        for rows in self._transformer.forward([ids for ids, _ in read], seconds, kept):
            said: Singles = rows[1:].sum(axis=0) / np.float32(len(rows) - 1)
            # Pair by pair: the shape of the product must not depend on their number.
            heads.append(weight @ np.concatenate((rows[0], said)) + bias)
        return np.array(heads)


def name_weights(files: EncoderFiles) -> dict[str, Singles]:
    """Return the weights of an encoder by the names that changes have."""
    weights = files.read_weights()
    named = {"words": weights.words, "positions": weights.positions, "second": weights.second}
    parts = {"norm": weights.norm}
    parts |= {f"{number}.{name}": part for number, layer in enumerate(weights.layers) for name, part in layer.items()}
    for name, (weight, bias) in parts.items():
        named |= {f"{name}.weight": weight, f"{name}.bias": bias}
    return named


def list_trained_names(base: Mapping[str, Singles]) -> Iterator[str]:
    """Return the names of the weights that are trained: those of the layers."""
    return (name for name in base if name.partition(".")[0].isdigit())


def merge_changes(base: Mapping[str, Singles], changes: Changes) -> dict[str, Singles]:
    """Return the weights of the layers with the changes."""
    merged = {}
    for name in list_trained_names(base):
        if f"{name}.left" in changes:
            sides = f"{name}.left", f"{name}.right"
            left, right = (changes[side].astype(np.float32) * changes[f"{side}.scale"] for side in sides)
            merged[name] = base[name] + left @ right.T
        else:
            merged[name] = base[name] + changes[name].astype(np.float32)
    return merged


class PairTokenizer:
    """The word-piece tokenizer of an encoder, for pairs of texts."""

    def __init__(self, files: EncoderFiles) -> None:
        self._tokenizer: Any = files.read_tokenizer()
        self.first, self.end = (int(self._tokenizer.token_to_id(mark)) for mark in ("[CLS]", "[SEP]"))

    def split_pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the pieces of each text, ended by [SEP]."""
        pieces: list[list[int]] = []
        for start in range(0, len(texts), _AT_ONCE):
            joined = [_DETACHED.sub(r"\1n't", text) for text in texts[start : start + _AT_ONCE]]
            encoded = self._tokenizer.encode_batch_fast(joined, add_special_tokens=False)
            pieces += [[*encoding.ids, self.end] for encoding in encoded]
        return pieces


# The judge.


@dataclass(frozen=True, eq=False)
class JudgeWeights:
    """The weights of a judge, and the encoder whose layers they change."""

    changes: Changes
    scale: Scale
    shape: PairShape
    encoder: str
    encoder_digest: str
    breakdown: BreakdownScale = field(default_factory=BreakdownScale)
    facts: adem.Facts = field(default_factory=dict)
    """What else is known: data, settings, results; for people."""

    @cached_property
    def digest(self) -> str:
        """What the verdicts depend on."""
        sha = hashlib.sha256()
        for name in sorted(self.changes):
            sha.update(name.encode() + np.ascontiguousarray(self.changes[name]).tobytes())
        # The names of these classes are part of the digest, and so of signatures.
        sha.update(repr((self.scale, self.shape, self.breakdown, self.encoder_digest)).encode())
        return sha.hexdigest()[:DIGEST_LENGTH]

    def save(self, folder: str | os.PathLike[str], card: str | None = None) -> Path:
        """Write the weights into a folder, with a model card if given; see `save_weights`."""
        parts = {name: vars(getattr(self, name)) for name in ("scale", "shape", "breakdown")}
        encoder = {"name": self.encoder, "digest": self.encoder_digest}
        return adem.save_weights(folder, {"kind": KIND, **parts, "encoder": encoder, **self.facts}, self.changes, card)


def is_dialogue_judge(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds a judge of this kind and not one of `dialeval adem`."""
    return bool(validation.read_json(Path(folder) / adem.JUDGE_FILE, dict[str, object], _REMEDY).get("kind") == KIND)


def load_judge(folder: str | os.PathLike[str]) -> JudgeWeights:
    """Read the weights that `JudgeWeights.save` wrote."""
    from dialeval.judges.schemas import SavedDialogueJudge

    if not is_dialogue_judge(folder):
        place = str(Path(folder) / adem.JUDGE_FILE)
        raise DataError(Problem(place, None, "is a judge of `dialeval adem`, or none", _REMEDY))
    saved, facts, changes = adem.load_weights(folder, SavedDialogueJudge, _REMEDY)
    return JudgeWeights(
        changes, saved.scale, saved.shape, saved.encoder.name, saved.encoder.digest, saved.breakdown, facts
    )


class DialogueJudge(adem.TrainedJudge[JudgeWeights]):
    """Judges responses by their context and references; what `inputs.DIALOGUE_JUDGE` is."""

    _shipped_folder, _load = SHIPPED, staticmethod(load_judge)

    @cached_property
    def _cross_encoder(self) -> CrossEncoder:
        files = find_encoder(self.locate_encoder())
        if files.digest != self.weights.encoder_digest:
            remedy = f"pass the encoder {self.weights.encoder!r} ({self.weights.encoder_digest})"
            raise SettingError(f"the judge was trained on other weights than those of {files.name}; {remedy}")
        try:
            return CrossEncoder(files, self.weights.changes, self.weights.shape)
        except (KeyError, ValueError) as error:
            what = f"its changes do not fit the encoder ({type(error).__name__}: {error})"[:300]
            where = self._source if isinstance(self._source, str | os.PathLike) else SHIPPED
            raise DataError(Problem(os.fspath(where), None, what, _REMEDY)) from None

    @cached_property
    def _vectors(self) -> SentenceVectors:
        return adem.open_vectors(self.locate_encoder())

    @property
    def digest(self) -> str:
        """The weights' digest, the encoder's name and digest."""
        weights = self.weights
        return f"{KIND}@{weights.digest}+{weights.encoder}@{weights.encoder_digest}"

    def score(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Floats:
        """Return one score per response, 1 to 5; NaN for a response without context."""
        return self.verdicts(contexts, responses, references).score

    def verdicts(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Verdicts:
        """Return the verdict on each response."""
        has: adem.Mask = np.array([any(turn.strip() for turn in context) for context in contexts], np.bool_)
        rows = np.flatnonzero(has).tolist()
        heads = np.full((len(responses), sum(HEADS.values())), np.nan)
        if rows:
            said = [contexts[row] for row in rows], [responses[row] for row in rows]
            heads[has] = self._cross_encoder.compute_heads(*said)
        parts = split_heads(heads)
        closest = adem.compute_closest_cosines(self._vectors, responses, references) if any(references) else None
        true, random, echo, broken = softmax(parts["kind"]).T
        shares = shrink_shares(self.weights.breakdown, softmax(parts["breakdown"]))
        # Each against the true response alone: a response that is an echo is not therefore irrelevant.
        relevance, fluency, novelty = (true / (true + other) for other in (random, broken, echo))
        score = compute_scores(self.weights.scale, parts["rating"][:, 0], parts["rank"][:, 0], closest)
        return Verdicts(score, relevance, fluency, novelty, shares)


def split_heads(heads: Floats) -> dict[str, Floats]:
    """Return the columns of each head."""
    bounds = np.cumsum(list(HEADS.values()))[:-1]
    return dict(zip(HEADS, np.split(heads, bounds, axis=1), strict=True))


def softmax(values: Floats) -> Floats:
    """Return the softmax of each row."""
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def shrink_shares(scale: BreakdownScale, said: Floats) -> Floats:
    """Return the fractions of O, T and X, a row per turn; NaN where the head has no value."""
    logs = scale.weight * np.log(np.maximum(said, 1e-12)) + (1 - scale.weight) * np.log(scale.mean)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    return shares / shares.sum(axis=1, keepdims=True)


def label_shares(scale: BreakdownScale, fractions: Floats) -> Floats:
    """Return fractions with the code of the label before them, as `inputs.LABELS` has them."""
    # The mean would decide between T and X almost everywhere, so it is taken out again.
    _, possible, sure = np.array(scale.mean) ** (1 - scale.weight)
    broken = np.where(fractions[:, X] * possible >= fractions[:, T] * sure, X, T)
    codes = np.where(fractions[:, T] + fractions[:, X] < scale.cut, O, broken).astype(np.float64)
    return np.column_stack([np.where(np.isnan(fractions[:, O]), np.nan, codes), fractions])


def compute_scores(scale: Scale, rating: Floats, rank: Floats, closest: Floats | None) -> Floats:
    """Return the scores from 1 to 5; `closest` is NaN for a row without a reference."""
    raw = rating + scale.rank * rank
    logits = scale.alpha + scale.beta * raw
    if closest is not None:
        both = scale.alpha_closest + scale.beta_closest * (raw + scale.closest * closest)
        logits = np.where(np.isnan(closest), logits, both)
    return LOWEST + (HIGHEST - LOWEST) / (1.0 + np.exp(-logits))


def open_judge(source: Any) -> dict[Input, object]:
    """Return a judge, given as a folder or an object of either kind, by the needs that it meets."""
    if not hasattr(source, "score"):
        source = DialogueJudge(source) if is_dialogue_judge(source) else adem.Judge(source)
    if hasattr(source, "verdicts"):
        return {inputs.DIALOGUE_JUDGE: source}
    return {inputs.JUDGE: source}
