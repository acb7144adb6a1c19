"""Training a cross-encoder: first on plain dialogues, then on ratings with the dialogues beside them.

Stage 1 needs no labels. The loss of a pair is

    - log softmax of the rank over its candidates  +  1/2 cross-entropy of the kind of each candidate

Stage 2 takes rows of one rated set at a time. With z the set's ratings in standard scores and s what the head says:

    mean over pairs z_i > z_j of softplus(s_j - s_i)  +  3/10 mean of (s_i - z_i)^2  +  1/2 (stage 1 on other pairs)

and where annotators' shares of breakdown labels are known, 1/2 of their cross-entropy. Without the term of stage 1 the
model forgets what it knew of other kinds of dialogue.

Everything that is drawn depends on the seed and the number of the step, so a run that is cut off goes on from its last
save as if nothing had happened. On the CPU the same settings give the same weights; on a GPU sums may differ in order.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.metrics.learned.training.candidates import RANDOM, Corpus
from dialeval.metrics.learned.training.cross_model import CrossModel
from dialeval.metrics.learned.training.finetuning import rate

Log = Callable[[str], None]

_KIND_WEIGHTS = (1.0, 1.0 / RANDOM, 1.0, 1.0)
"""The kinds count alike, however many candidates are of each."""
_HEADS_FASTER = 10.0
_SAVED_SECONDS = 60.0


@dataclass(frozen=True)
class Stage1:
    """The settings of the training on dialogues."""

    steps: int
    batch_size: int = 256
    learning_rate: float = 1.5e-4
    warmup: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch_size < 1 or self.learning_rate <= 0:
            raise SettingError("steps and pairs of a batch are at least 1, the learning rate is above 0")


@dataclass(frozen=True)
class Stage2(Stage1):
    """The settings of the training on ratings."""

    learning_rate: float = 3e-5
    batch_size: int = 96
    rows: int = 96
    """Rated rows of a step."""
    dialogues: float = 0.5
    """The weight of stage 1."""
    order: float = 1.0
    """The weight of pairs in the right order, and of the squared error beside it."""
    error: float = 0.3
    """The weight of the squared error among them."""
    breakdown: float = 0.5
    """The weight of the breakdown labels."""


@dataclass(frozen=True, eq=False)
class Rated:
    """Rated pairs: the corpus that holds them, and by pair its set, its rating, and shares of O, T and X or zeros."""

    corpus: Corpus
    sets: Ints
    scores: Floats
    shares: Floats

    def standard(self, rows: Ints) -> Floats:
        """The scores of some rows in standard scores of their set."""
        z = np.zeros(len(self.scores))
        for number in np.unique(self.sets[rows]):
            own = rows[self.sets[rows] == number]
            z[own] = (self.scores[own] - self.scores[own].mean()) / max(float(self.scores[own].std()), 1e-6)
        return z


class Run:
    """A model in training, its optimiser and its next step; saved in a folder, and taken up from there.

    `data` says what it is trained on: another run is not taken up.
    """

    def __init__(
        self,
        model: CrossModel,
        settings: Stage1,
        folder: str | os.PathLike[str] | None = None,
        log: Log = lambda _: None,
        data: str = "",
    ) -> None:
        self.model, self.settings, self.log, self.data = model, settings, log, data
        self.device = str(model.heads.weight.device)
        self.dtype = torch.bfloat16 if self.device.startswith("cuda") else torch.float32
        groups = [
            {"params": list(model.weights.values()), "base": settings.learning_rate},
            {"params": list(model.heads.parameters()), "base": settings.learning_rate * _HEADS_FASTER},
        ]
        fused = self.device.startswith("cuda")
        self.optimiser = torch.optim.AdamW(groups, settings.learning_rate, weight_decay=0.01, fused=fused)
        self.folder = None if folder is None else Path(folder)
        self.step = self._resume()

    def train(self, loss: Callable[[int, torch.Generator], tuple[Tensor, Tensor]]) -> None:
        """All steps that are left; `loss` gives the loss of a step and what is to be logged of it."""
        settings, model = self.settings, self.model
        model.train()
        parameters = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
        began = saved = time.monotonic()
        logged: list[Tensor] = []
        while self.step < settings.steps:
            dice = torch.Generator(self.device).manual_seed(settings.seed * 1_000_003 + self.step)
            torch.manual_seed(settings.seed * 1_000_003 + self.step)  # dropout
            for group in self.optimiser.param_groups:
                group["lr"] = group["base"] * rate(self.step, settings.steps, settings.warmup)
            self.optimiser.zero_grad()
            value, shown = loss(self.step, dice)
            value.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            self.optimiser.step()
            self.step += 1
            logged.append(shown.detach())
            if self.step % 200 == 0 or self.step == settings.steps:
                means = " ".join(f"{number:.3f}" for number in torch.stack(logged).mean(0).tolist())
                self.log(f"step {self.step}/{settings.steps} {means} ({time.monotonic() - began:.0f} s)")
                logged = []
            if time.monotonic() - saved > _SAVED_SECONDS:
                self.save()
                saved = time.monotonic()
        self.save()
        model.eval()

    def save(self) -> None:
        """Write weights, moments and the number of the step."""
        if self.folder is None:
            return
        from safetensors.torch import save

        named = dict(self.model.named_parameters())
        state = {f"model.{name}": parameter.detach() for name, parameter in named.items()}
        for name, parameter in named.items():
            moments = self.optimiser.state.get(parameter, {})
            state |= {f"{kind}.{name}": moments[kind] for kind in ("exp_avg", "exp_avg_sq") if kind in moments}
        tensors = {name: tensor.cpu().contiguous() for name, tensor in state.items()}
        facts = {"step": str(self.step), "settings": self._settings()}
        write_bytes(self.folder / "run.safetensors", save(tensors, facts))

    def _settings(self) -> str:
        stage = {"stage": type(self.settings).__name__, "data": self.data}
        return json.dumps({**stage, **asdict(self.settings)}, sort_keys=True)

    def _resume(self) -> int:
        """Take up what an earlier run with the same settings saved; the number of the next step."""
        if self.folder is None or not (file := self.folder / "run.safetensors").is_file():
            return 0
        from safetensors import safe_open

        with safe_open(file, "pt", self.device) as saved:
            facts = saved.metadata()
            if facts["settings"] != self._settings():
                raise SettingError(
                    f"{file} was saved by a run with other settings or data; give another folder, or remove it"
                )
            for name, parameter in self.model.named_parameters():
                with torch.no_grad():
                    parameter.copy_(saved.get_tensor(f"model.{name}"))
                if f"exp_avg.{name}" in saved.keys():  # noqa: SIM118
                    self.optimiser.state[parameter] = {
                        "step": torch.tensor(float(facts["step"]), device=self.device),
                        **{kind: saved.get_tensor(f"{kind}.{name}") for kind in ("exp_avg", "exp_avg_sq")},
                    }
        return int(facts["step"])


def train_stage1(run: Run, corpus: Corpus) -> None:
    """Train on the pairs of a corpus."""
    settings = run.settings
    run.train(lambda step, dice: _dialogue_loss(run, corpus, _drawn(corpus, settings, step), dice))


def train_stage2(run: Run, corpus: Corpus, rated: Rated, rows: Ints) -> None:
    """Train on some rated rows, with the pairs of a corpus beside them."""
    settings = run.settings
    if not isinstance(settings, Stage2):
        raise SettingError("ratings are trained on with the settings of stage 2")
    z = rated.standard(rows)
    numbers, counts = np.unique(rated.sets[rows], return_counts=True)
    chance = np.sqrt(counts) / np.sqrt(counts).sum()

    def loss(step: int, dice: torch.Generator) -> tuple[Tensor, Tensor]:
        draw = np.random.default_rng([settings.seed, step])
        own = rows[rated.sets[rows] == draw.choice(numbers, p=chance)]
        chosen = draw.permutation(own)[: settings.rows]
        judged = run.model(rated.corpus.batch(torch.from_numpy(chosen).to(run.device)), run.dtype)
        given = torch.from_numpy(z[chosen]).float().to(run.device)
        ratings = _rating_loss(judged["rating"][:, 0], given, settings.error)
        shares = torch.from_numpy(rated.shares[chosen]).float().to(run.device)
        labels = -(shares * F.log_softmax(judged["breakdown"], 1)).sum(1).mean()
        beside, _ = _dialogue_loss(run, corpus, _drawn(corpus, settings, step), dice)
        total = settings.order * ratings + settings.breakdown * labels + settings.dialogues * beside
        return total, torch.stack((ratings, labels, beside)).detach()

    run.train(loss)


def _drawn(corpus: Corpus, settings: Stage1, step: int) -> Tensor:
    """The pairs of a step."""
    return corpus.drawn(settings.batch_size, np.random.default_rng([settings.seed, step, 1]))


def _dialogue_loss(run: Run, corpus: Corpus, rows: Tensor, dice: torch.Generator) -> tuple[Tensor, Tensor]:
    """The loss of stage 1; and what is logged: its two parts, and how often the true response comes first."""
    batch, there, kinds = corpus.candidates(rows, dice)
    found = run.model(batch, run.dtype)
    ranks = found["rank"].view(there.shape).masked_fill(~there, -torch.inf)
    first = -F.log_softmax(ranks, 1)[:, 0].mean()
    weights = torch.tensor(_KIND_WEIGHTS, device=there.device)
    named = F.cross_entropy(found["kind"], kinds.flatten(), reduction="none").view(there.shape)
    heavy = weights[kinds] * there
    named = (named * heavy).sum() / heavy.sum()
    best = (ranks.argmax(1) == 0).float().mean()
    return first + 0.5 * named, torch.stack((first, named, best)).detach()


def _rating_loss(said: Tensor, given: Tensor, error: float) -> Tensor:
    """Pairs in the right order, and values near the standard scores."""
    above = given[:, None] - given[None, :]
    weight = (above > 0) * above.clamp(max=1.0)
    wrong = F.softplus(said[None, :] - said[:, None])
    return (wrong * weight).sum() / weight.sum().clamp(min=1e-6) + error * (said - given).square().mean()


@torch.inference_mode()
def heads(model: CrossModel, corpus: Corpus, rows: Sequence[int] | Ints, many: int = 2048) -> Floats:
    """What all heads say of some pairs, a row each; the columns in the order of `HEADS`."""
    model.eval()
    dtype = torch.bfloat16 if corpus.device.startswith("cuda") else torch.float32
    chosen = torch.as_tensor(np.asarray(rows), device=corpus.device)
    found = [model(corpus.batch(part), dtype) for part in torch.split(chosen, many)]
    values: Floats = torch.cat([torch.cat(list(each.values()), 1) for each in found]).double().cpu().numpy()
    return values
