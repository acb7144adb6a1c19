"""Train a cross-encoder: first on plain dialogues, then on ratings with the dialogues next to them.

Stage 1 needs no labels. The loss of a pair of context and response is

    - log softmax of the rank over its candidates  +  1/2 cross-entropy of the kind of each candidate

The candidates of a pair are made on the device by indexing: the response itself, some responses to other contexts (most
of them of the same corpus), an echo (a turn of the context, or its second half), and a broken copy of the response:
words shuffled, reversed, left out, or neighbors swapped, pieces repeated, the first half said twice. What comes out
equal to the true response is no candidate.

Then the change of each matrix is cut to thin factors, and those are trained on. Stage 2 takes rows of one rated set at
a time. With z the set's ratings in standard scores and s what the head says:

    3/10 (mean over pairs z_i > z_j of softplus(s_j - s_i)  +  3/10 mean of (s_i - z_i)^2)  +  stage 1 on other pairs

and where annotators' fractions of breakdown labels are known, their cross-entropy. Without the term of stage 1 the
model forgets what it knew of other kinds of dialogue.

Everything that is sampled depends on the seed and the number of the step, so a run that is cut off goes on from its
last save as if nothing had happened. On the CPU the same settings give the same weights; on a GPU sums may differ in
order.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from tools.judge_training.pairs import Pairs, factors, in_eight_bits
from tools.judge_training.transformer import PieceBatch, TorchTransformer, flatten_name, sum_rows, to_tensor
from tools.judge_training.validation import number_contexts
from torch import Tensor, nn

from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.io.ratings import OVERALL, Ratings
from dialeval.judges.fitting import rescale
from dialeval.judges.judge import HEADS, Changes, PairShape, merge_changes
from dialeval.judges.trainer import descend
from dialeval.metrics.encoder_files import EncoderFiles, Singles

RANDOM = 5
"""Responses to other contexts among the candidates of a pair."""
NEAR = 3
"""How many of them are from the corpus of the pair: others are told by their style alone."""
_FREQUENT = 0.3
"""How often one of them is drawn among the frequent responses: a dull answer fits anywhere, and is no good one."""
_FREQUENT_TEXTS = 300


class Corpus:
    """Pairs on a device, and batches of them.

    `parts` has the numbers of pairs of each corpus that they are from, one behind the other.
    """

    def __init__(
        self,
        pairs: Pairs,
        shape: PairShape,
        marks: tuple[int, int],
        going_on: npt.NDArray[np.bool_],
        device: str,
        parts: Sequence[int] | None = None,
    ) -> None:
        self.parts: Ints = np.array([len(pairs)] if parts is None else parts, np.int64)
        self.device, self.shape, (self.first, self.end) = device, shape, marks
        self.many = len(pairs)
        self._hashed = (pairs.pieces, pairs.starts, pairs.contexts, pairs.responses, self.parts)
        self.pieces = torch.from_numpy(pairs.pieces.astype(np.int32)).to(device)
        self.starts = torch.from_numpy(pairs.starts).to(device)
        self.contexts = torch.from_numpy(pairs.contexts.astype(np.int64)).to(device)
        self.responses = torch.from_numpy(pairs.responses.astype(np.int64)).to(device)
        self.going_on = torch.from_numpy(going_on).to(device)
        self.ends = torch.from_numpy(np.cumsum(self.parts)).to(device)
        self.frequent = torch.from_numpy(_frequent(pairs)).to(device)

    @property
    def digest(self) -> str:
        """What the samples of the corpus depend on."""
        sha = hashlib.sha256(repr(self.shape).encode())
        for array in self._hashed:
            sha.update(np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()[:DIGEST_LENGTH]

    def drawn(self, many: int, draw: np.random.Generator) -> Tensor:
        """Sample pairs; a corpus counts by the root of its size, so that the largest does not drown the others."""
        roots = np.sqrt(self.parts)
        chosen = draw.choice(len(self.parts), many, p=roots / roots.sum())
        places = np.floor(draw.random(many) * self.parts[chosen]).astype(np.int64)
        rows = (np.cumsum(self.parts) - self.parts)[chosen] + places
        return torch.from_numpy(rows).to(self.device)

    def batch(self, rows: Tensor) -> PieceBatch:
        """Return pairs as they are, each a sequence."""
        return self._packed(rows, *self._texts(self.responses[rows]))

    def candidates(self, rows: Tensor, dice: torch.Generator) -> tuple[PieceBatch, Tensor, Tensor]:
        """Make the candidates of some pairs, those of a pair one behind the other; which ones count; and their kinds.

        The last two have a row per pair and a column per candidate; the first is the true response.
        """
        true, lengths = self._texts(self.responses[rows])
        drawn = [self._texts(self._others(rows, number, dice)) for number in range(RANDOM)]
        every = [(true, lengths), *drawn, self._echoes(rows, dice), self._broken(true, lengths, dice)]
        texts = torch.stack([text for text, _ in every], 1)
        counts = torch.stack([count for _, count in every], 1)
        differ = (texts != true[:, None]).any(-1)
        differ[:, 0] = True
        kinds = torch.tensor([0, *[1] * RANDOM, 2, 3], device=self.device).expand(len(rows), -1)
        many = texts.shape[1]
        batch = self._packed(rows.repeat_interleave(many), texts.flatten(0, 1), counts.flatten())
        return batch, differ, kinds

    def _texts(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the pieces of texts as a matrix, -1 behind the end, and how many each has; the last one is [SEP]."""
        return self._stretches(self.starts[texts], self.starts[texts + 1])

    def _stretches(self, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        most = self.shape.response_tokens
        lengths = (stop - start).clamp(max=most)
        places = torch.arange(most, device=self.device)
        pieces = self.pieces[(start[:, None] + places).clamp(max=len(self.pieces) - 1)].long()
        pieces = torch.where(places == lengths[:, None] - 1, self.end, pieces)
        return torch.where(places < lengths[:, None], pieces, -1), lengths

    def _others(self, rows: Tensor, number: int, dice: torch.Generator) -> Tensor:
        """Sample the texts of responses to other contexts."""
        many = len(rows)
        if number < RANDOM - NEAR:
            texts = self.responses[torch.randint(self.many, (many,), generator=dice, device=self.device)]
        else:
            part = torch.bucketize(rows, self.ends, right=True)
            sizes = torch.diff(self.ends, prepend=self.ends.new_zeros(1))[part]
            places = (self._uniform((many,), dice).double() * sizes).long()
            texts = self.responses[self.ends[part] - sizes + places]
        if number or not len(self.frequent):
            return texts
        dull = self.frequent[torch.randint(len(self.frequent), (many,), generator=dice, device=self.device)]
        return torch.where(self._uniform((many,), dice) < _FREQUENT, dull, texts)

    def _echoes(self, rows: Tensor, dice: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sample a turn of the context, more often the last, or its second half."""
        first, behind = self.contexts[rows].T
        back = (self._uniform((len(rows),), dice).square() * (behind - first)).long()
        turn = behind - 1 - back
        start, stop = self.starts[turn], self.starts[turn + 1]
        half = self._uniform((len(rows),), dice) < 0.25
        return self._stretches(torch.where(half, (start + stop - 1) // 2, start), stop)

    def _broken(self, true: Tensor, lengths: Tensor, dice: torch.Generator) -> tuple[Tensor, Tensor]:
        """Put the words of the response in disorder, in one of six ways."""
        many, most = true.shape
        places = torch.arange(most, device=self.device).expand(many, -1)
        inside = (lengths - 1)[:, None]
        there = places < inside
        word = (~self.going_on[true.clamp(min=0)] | (places == 0)).long().cumsum(1) - 1
        words = word.gather(1, (inside - 1).clamp(min=0)) + 1
        shuffled = self._uniform((many, most), dice).gather(1, word)
        swapped = torch.minimum(word ^ 1, words - 1).double() + (word % 2) * 1e-3
        kept = self._uniform((many, most), dice).gather(1, word) > 0.4
        orders = torch.stack([shuffled.double(), -word.double(), swapped, torch.where(kept, 0.0, 1e6) + word])
        behind = torch.where(there, 0.0, 1e9)
        orders = (orders + behind).argsort(dim=-1, stable=True)
        repeats = (self._uniform((many, most), dice) * inside).long()
        repeats = torch.where(there, repeats, most - 1).sort(1).values
        half = (inside // 2).clamp(min=1)
        doubled = torch.where(places < 2 * half, places % half, places)
        way = torch.randint(6, (many,), generator=dice, device=self.device)
        index = torch.stack([*orders, repeats, doubled])[way, torch.arange(many, device=self.device)]
        left = (kept & there).sum(1).clamp(min=1)
        count = torch.where(way == 3, left, torch.where(way == 5, (2 * half[:, 0]).clamp(max=most - 1), lengths - 1))
        count = torch.where(lengths > 1, count, 0)
        mixed = true.gather(1, index.clamp(max=most - 1))
        mixed = torch.where(places < count[:, None], mixed, -1)
        return torch.where(places == count[:, None], self.end, mixed), count + 1

    def _packed(self, rows: Tensor, texts: Tensor, counts: Tensor) -> PieceBatch:
        first, behind = self.starts[self.contexts[rows]].T
        first = torch.maximum(first, behind - (self.shape.context_tokens - 1))
        before = 1 + behind - first
        lengths = before + counts
        bounds = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
        total, longest = torch.stack((bounds[-1], lengths.max())).tolist()
        owner = torch.repeat_interleave(torch.arange(len(rows), device=self.device), lengths, output_size=total)
        places = torch.arange(total, device=self.device) - bounds[owner]
        second = places >= before[owner]
        context = self.pieces[(first[owner] + places - 1).clamp(0, len(self.pieces) - 1)].long()
        said = texts[owner, (places - before[owner]).clamp(0, texts.shape[1] - 1)]
        ids = torch.where(second, said, torch.where(places == 0, self.first, context))
        return PieceBatch(ids, places, second, owner, bounds, longest)

    def _uniform(self, shape: tuple[int, ...], dice: torch.Generator) -> Tensor:
        return torch.rand(shape, generator=dice, device=self.device)


def _frequent(pairs: Pairs) -> npt.NDArray[np.int64]:
    """Return one text for each of the most frequent responses that occur at least three times."""
    seen: dict[bytes, list[int]] = {}
    for text in pairs.responses.tolist():
        start, stop = pairs.starts[text], pairs.starts[text + 1]
        if stop - start <= 12:
            seen.setdefault(pairs.pieces[start:stop].tobytes(), []).append(text)
    often = sorted((texts for texts in seen.values() if len(texts) > 2), key=len, reverse=True)
    return np.array([texts[0] for texts in often[:_FREQUENT_TEXTS]], np.int64)


Log = Callable[[str], None]
Loss = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]
"""From the number of a step and a generator: the loss, and what is logged."""

_KIND_WEIGHTS = (1.0, 1.0 / RANDOM, 1.0, 1.0)
"""The kinds count alike, however many candidates are of each."""
_RATING_WEIGHT = _ERROR_WEIGHT = 0.3
_HEADS_FASTER = 10.0
_WARMUP = 0.05
_MOMENTS = ("exp_avg", "exp_avg_sq")
_SAVED_SECONDS = 60.0


@dataclass(frozen=True)
class JudgeRecipe:
    """The settings of the training; the defaults are those of the shipped judge."""

    steps: int = 7200
    batch_size: int = 512
    learning_rate: float = 2e-4
    rating_steps: int = 310
    rating_rate: float = 1.5e-4
    rating_rows: int = 128
    beside: int = 192
    """Pairs of dialogues in addition to the rated rows of a step."""
    rank: int = 64
    """Columns of the factors that ship."""
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size, self.rating_steps, self.rating_rows, self.beside, self.rank) < 1:
            raise SettingError("steps, pairs and rows of a batch, and the rank are at least 1")
        if min(self.learning_rate, self.rating_rate) <= 0:
            raise SettingError("learning rates are above 0")


class RatedRows:
    """Rated rows as arrays: scores from 1 to 5, sets, contexts, and how many annotators said good, middling and bad."""

    def __init__(self, ratings: Ratings) -> None:
        self.ratings = ratings
        self.names = list(dict.fromkeys(ratings.datasets))
        self.sets: Ints = np.array([self.names.index(name) for name in ratings.datasets], np.int64)
        self.scores = rescale(ratings, OVERALL, self.sets, len(self.names))
        self.contexts = number_contexts(ratings)
        self.counts: Floats = np.zeros((len(ratings), 3))
        for row, (values, (low, high)) in enumerate(zip(ratings.annotations[OVERALL], ratings.scales, strict=True)):
            if len(values) and high > low:
                third = (values - low) / (high - low) * 3
                self.counts[row] = (third > 2).sum(), ((third >= 1) & (third <= 2)).sum(), (third < 1).sum()
        self.judged = np.array([any(turn.strip() for turn in context) for context in ratings.contexts], np.bool_)
        self.judged &= ~np.isnan(self.scores)

    @property
    def digest(self) -> str:
        """What the trained models and their outputs depend on."""
        ratings, texts = self.ratings, hashlib.sha256()
        for context, response in zip(ratings.contexts, ratings.responses, strict=True):
            texts.update(json.dumps([*context, response]).encode())
        for array in (self.sets, self.scores, self.contexts, self.counts):
            texts.update(np.ascontiguousarray(array).tobytes())
        return texts.hexdigest()

    def standardize(self, rows: Ints) -> Floats:
        """Return the scores of some rows in standard scores of their set, and zeros for the others."""
        z = np.zeros(len(self.scores))
        for number in np.unique(self.sets[rows]):
            own = rows[self.sets[rows] == number]
            z[own] = (self.scores[own] - self.scores[own].mean()) / max(float(self.scores[own].std()), 1e-6)
        return z


class CrossModel(TorchTransformer):
    """The transformer with its heads, which are linear in the first vector and the mean over the response."""

    def __init__(self, files: EncoderFiles, seed: int = 0) -> None:
        super().__init__(files)
        self.heads = nn.Linear(2 * len(self.norm_weight), sum(HEADS.values()))
        nn.init.normal_(self.heads.weight, std=0.02, generator=torch.Generator().manual_seed(seed))
        nn.init.zeros_(self.heads.bias)

    @property
    def device(self) -> str:
        """Where the weights are."""
        return str(self.heads.weight.device)

    @property
    def dtype(self) -> torch.dtype:
        """The type that is computed in: bfloat16 on a GPU."""
        return torch.bfloat16 if self.device.startswith("cuda") else torch.float32

    def get_weight(self, name: str) -> Tensor:
        if name in self.weights:
            return super().get_weight(name)
        start: Tensor = getattr(self, f"base_{name}")
        changed: Tensor = start + self.weights[f"{name}_left"] @ self.weights[f"{name}_right"].T
        return changed

    @torch.no_grad()
    def factorize(self, rank: int) -> None:
        """Replace the change of each matrix by a product of thin factors, which are trained from now on."""
        for name in self.names:
            weight = self.weights[flatten_name(name)]
            if weight.ndim == 2:
                start = to_tensor(self.base[name]).to(weight.device)
                self.register_buffer(f"base_{flatten_name(name)}", start, persistent=False)
                del self.weights[flatten_name(name)]
                for side, factor in zip(("left", "right"), factors(_array(weight - start), rank), strict=True):
                    self.weights[f"{flatten_name(name)}_{side}"] = nn.Parameter(to_tensor(factor).to(weight.device))

    @torch.no_grad()
    def changes(self) -> dict[str, Any]:
        """Return what training changed in a factorized model, as it ships."""
        found: dict[str, Any] = {
            "heads.weight": _array(self.heads.weight),
            "heads.bias": _array(self.heads.bias),
        }
        for name in self.names:
            if flatten_name(name) in self.weights:
                found[name] = (_array(self.weights[flatten_name(name)]) - self.base[name]).astype(np.float16)
                continue
            for side in ("left", "right"):
                factor = _array(self.weights[f"{flatten_name(name)}_{side}"])
                found[f"{name}.{side}"], found[f"{name}.{side}.scale"] = in_eight_bits(factor)
        return found

    @torch.no_grad()
    def load(self, changes: Changes) -> None:
        """Take on what ships; the model must not be factorized."""
        for name, weight in merge_changes(self.base, changes).items():
            self.weights[flatten_name(name)].copy_(to_tensor(weight))
        self.heads.weight.copy_(to_tensor(changes["heads.weight"]))
        self.heads.bias.copy_(to_tensor(changes["heads.bias"]))

    def forward(self, batch: PieceBatch) -> dict[str, Tensor]:
        """Return the values of each head, a row per sequence."""
        rows = self.encode_pieces(batch, self.dtype)
        # The mean over the response: a product with a sparse matrix of ones would round.
        said = sum_rows(rows.float() * batch.second[:, None], batch) / sum_rows(batch.second, batch)[:, None]
        values = self.heads(torch.cat((rows[batch.bounds[:-1]].float(), said), 1))
        return dict(zip(HEADS, values.split(list(HEADS.values()), 1), strict=True))


def train_on_dialogues(
    model: CrossModel, corpus: Corpus, recipe: JudgeRecipe, log: Log, state: Path | None = None, made_of: str = ""
) -> None:
    """Train on the pairs of a corpus (stage 1); `state` is a file to save to every minute, and to go on from."""

    def loss(step: int, dice: torch.Generator) -> tuple[Tensor, Tensor]:
        return _dialogue_loss(model, corpus, _sample_pairs(corpus, recipe.batch_size, recipe.seed, step), dice)

    _train(model, loss, recipe.steps, recipe.learning_rate, recipe.seed, log, state, made_of)


def train_on_ratings(
    model: CrossModel, corpus: Corpus, rated: Corpus, rows: RatedRows, known: Ints, recipe: JudgeRecipe, log: Log
) -> None:
    """Train on the `known` rated rows, with the pairs of a corpus next to them (stage 2)."""
    z, sets = rows.standardize(known), rows.sets[known]
    fractions = rows.counts / np.maximum(rows.counts.sum(axis=1, keepdims=True), 1)
    numbers, counts = np.unique(sets, return_counts=True)
    chance = np.sqrt(counts) / np.sqrt(counts).sum()
    many = min(recipe.beside, recipe.batch_size)

    def loss(step: int, dice: torch.Generator) -> tuple[Tensor, Tensor]:
        draw = np.random.default_rng([recipe.seed, step])
        own = known[sets == draw.choice(numbers, p=chance)]
        chosen = draw.permutation(own)[: recipe.rating_rows]
        judged = model(rated.batch(torch.from_numpy(chosen).to(model.device)))
        given, labels = (torch.from_numpy(part[chosen]).float().to(model.device) for part in (z, fractions))
        ratings = _rating_loss(judged["rating"][:, 0], given)
        breakdown = -(labels * F.log_softmax(judged["breakdown"], 1)).sum(1).mean()
        beside, _ = _dialogue_loss(model, corpus, _sample_pairs(corpus, many, recipe.seed, step), dice)
        return _RATING_WEIGHT * ratings + breakdown + beside, torch.stack((ratings, breakdown, beside))

    _train(model, loss, recipe.rating_steps, recipe.rating_rate, recipe.seed, log)


def _train(
    model: CrossModel,
    loss: Loss,
    steps: int,
    learning_rate: float,
    seed: int,
    log: Log,
    state: Path | None = None,
    made_of: str = "",
) -> None:
    """Minimize a loss by AdamW with linear warm-up and decay; take up what an earlier run saved in `state`."""
    groups = [
        {"params": list(model.weights.values()), "base": learning_rate},
        {"params": list(model.heads.parameters()), "base": learning_rate * _HEADS_FASTER},
    ]
    fused = model.device.startswith("cuda")
    optimizer = torch.optim.AdamW(groups, learning_rate, weight_decay=0.01, fused=fused)
    step = 0 if state is None else _resume(model, optimizer, state, made_of)
    model.train()
    began = saved = time.monotonic()
    logged: list[Tensor] = []
    while step < steps:
        dice = torch.Generator(model.device).manual_seed(seed * 1_000_003 + step)
        torch.manual_seed(seed * 1_000_003 + step)  # dropout
        for group in optimizer.param_groups:
            group["lr"] = group["base"] * _rate(step, steps)
        value, shown = loss(step, dice)
        descend(optimizer, value, 1.0)
        step += 1
        logged.append(shown.detach())
        if step % 200 == 0 or step == steps:
            means = " ".join(f"{number:.3f}" for number in torch.stack(logged).mean(0).tolist())
            log(f"step {step}/{steps} {means} ({time.monotonic() - began:.0f} s)")
            logged = []
        if state is not None and (step == steps or time.monotonic() - saved > _SAVED_SECONDS):
            _save_state(model, optimizer, step, state, made_of)
            saved = time.monotonic()
    model.eval()


def _rate(step: int, steps: int) -> float:
    """Return the factor of the learning rate: linear warm-up, then linear decay to zero."""
    first = max(1, round(steps * _WARMUP))
    return (step + 1) / first if step < first else max(0.0, (steps - step) / max(1, steps - first))


def _save_state(model: CrossModel, optimizer: torch.optim.Optimizer, step: int, file: Path, made_of: str) -> None:
    tensors: dict[str, Any] = {"step": np.array(step)}
    for name, parameter in model.named_parameters():
        tensors[f"model.{name}"] = _array(parameter)
        tensors |= {f"{kind}.{name}": _array(optimizer.state[parameter][kind]) for kind in _MOMENTS}
    keep(file, tensors, made_of)


def _resume(model: CrossModel, optimizer: torch.optim.Optimizer, file: Path, made_of: str) -> int:
    """Take up what an earlier run saved, if there is a file; return the number of the next step."""
    tensors = take_up(file, made_of)
    if tensors is None:
        return 0
    step = int(tensors["step"])
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            parameter.copy_(to_tensor(tensors[f"model.{name}"]))
        optimizer.state[parameter] = {
            "step": torch.tensor(float(step), device=model.device),
            **{kind: to_tensor(tensors[f"{kind}.{name}"]).to(model.device) for kind in _MOMENTS},
        }
    return step


def keep(file: Path, tensors: Mapping[str, Any], made_of: str) -> None:
    """Save tensors, and what they were made of, for a later run."""
    from safetensors.numpy import save

    # safetensors writes the memory of an array as it is.
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    write_bytes(file, bytes(save(arrays, {"made_of": made_of})))


def take_up(file: Path, made_of: str) -> dict[str, Any] | None:
    """Return the tensors that an earlier run kept, None if there are none; SettingError if made of something else."""
    from safetensors import safe_open

    if not file.is_file():
        return None
    with safe_open(file, "np") as saved:
        if saved.metadata() != {"made_of": made_of}:
            raise SettingError(
                f"{file} was saved by a run with other settings or data; give another folder, or remove it"
            )
        return {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118


def _sample_pairs(corpus: Corpus, many: int, seed: int, step: int) -> Tensor:
    return corpus.drawn(many, np.random.default_rng([seed, step, 1]))


def _dialogue_loss(model: CrossModel, corpus: Corpus, rows: Tensor, dice: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the loss of stage 1; and what is logged: its two parts, and how often the true response comes first."""
    batch, there, kinds = corpus.candidates(rows, dice)
    found = model(batch)
    ranks = found["rank"].view(there.shape).masked_fill(~there, -torch.inf)
    first = -F.log_softmax(ranks, 1)[:, 0].mean()
    weights = torch.tensor(_KIND_WEIGHTS, device=there.device)
    named = F.cross_entropy(found["kind"], kinds.flatten(), reduction="none").view(there.shape)
    heavy = weights[kinds] * there
    named = (named * heavy).sum() / heavy.sum()
    best = (ranks.argmax(1) == 0).float().mean()
    return first + 0.5 * named, torch.stack((first, named, best))


def _rating_loss(said: Tensor, given: Tensor) -> Tensor:
    """Return the loss of pairs in the wrong order, and of values far from the standard scores."""
    above = given[:, None] - given[None, :]
    weight = (above > 0) * above.clamp(max=1.0)
    wrong = F.softplus(said[None, :] - said[:, None])
    return (wrong * weight).sum() / weight.sum().clamp(min=1e-6) + _ERROR_WEIGHT * (said - given).square().mean()


@torch.inference_mode()
def predict_heads(model: CrossModel, corpus: Corpus, rows: Sequence[int] | Ints, many: int = 2048) -> Floats:
    """Return the values of all heads for some pairs, a row each; the columns in the order of `HEADS`."""
    model.eval()
    chosen = torch.as_tensor(np.asarray(rows), device=corpus.device)
    found = [model(corpus.batch(part)) for part in torch.split(chosen, many)]
    return torch.cat([torch.cat(list(each.values()), 1) for each in found]).double().cpu().numpy()


def _array(tensor: Tensor) -> Singles:
    return tensor.detach().float().cpu().numpy()
