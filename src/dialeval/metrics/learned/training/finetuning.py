"""Training a sentence encoder further on plain dialogues, so that a context's vector lies near that of its reply.

    loss = - log softmax of cos(context, reply) / temperature, over all candidate replies

Candidates are the true reply, the replies to the other contexts of the batch, and where asked for, of every context in
the batch: the true reply with its words shuffled, and another turn of the same dialogue. The first is what a frozen
encoder hardly tells apart; the second turned out to do harm, since a good reply does speak about the same things. In
the end the weights are moved only part of the way (`share`), which keeps what the encoder knew before.

The encoder is trained in PyTorch and saved as a folder of the kind that it came from. Whether it makes a better judge
is to be measured (`dialeval adem train --encoder FOLDER`); docs/adem.md says what we found.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from dialeval.core.arrays import Ints
from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.core.targets import check_files
from dialeval.data.formats.opening import PathSource
from dialeval.data.rows.dialogues import read_dialogues
from dialeval.metrics.learned.judge import joined
from dialeval.metrics.learned.torch_encoder import TorchEncoder
from dialeval.metrics.learned.training.examples import TURNS
from dialeval.resources.encoder_files import ATTENTION, EMBEDDINGS, LAYER, MINILM, EncoderFiles, find_encoder
from dialeval.resources.progress import Progress

_OTHER_WEIGHTS = frozenset({".bin", ".onnx", ".pt"})


@dataclass(frozen=True)
class FineTuning:
    """The settings of the further training."""

    epochs: int = 3
    batch_size: int = 512
    learning_rate: float = 2e-5
    temperature: float = 0.05
    warmup: float = 0.1
    same_dialogue: bool = False
    shuffled: bool = True
    share: float = 0.6
    """How far the result lies from the weights as they were (0) towards those that were trained (1)."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 2 or self.learning_rate <= 0 or self.temperature <= 0:
            raise SettingError("epochs are at least 1, a batch at least 2 pairs, rate and temperature above 0")
        if not 0 < self.share <= 1:
            raise SettingError(f"the share of the trained weights lies above 0 and up to 1, not {self.share}")


@dataclass(frozen=True, eq=False)
class Pairs:
    """Contexts with their replies, and for each another turn of the same dialogue."""

    contexts: Sequence[str]
    replies: Sequence[str]
    others: Sequence[str]

    def __len__(self) -> int:
        return len(self.replies)

    def take(self, rows: Ints) -> Pairs:
        """Some of the pairs."""
        chosen = rows.tolist()
        return Pairs(*([column[row] for row in chosen] for column in (self.contexts, self.replies, self.others)))


def finetune(
    dialogues: Sequence[PathSource],
    output: str | os.PathLike[str],
    *,
    encoder: str | os.PathLike[str] = MINILM,
    device: str = "cpu",
    progress: Progress | None = None,
    **settings: Any,
) -> list[float]:
    """From files of dialogues to the folder of an encoder; `settings` are those of `FineTuning`.

    The mean loss of each epoch; `progress` counts steps of the optimiser.
    """
    chosen = FineTuning(**settings)
    pairs = pairs_of(read_dialogues(dialogues), seed=chosen.seed)
    files = find_encoder(encoder)
    check_folder(Path(output), files)
    model = TorchEncoder(files, device=device, dtype=torch.float32)
    losses = fine_tune(model, pairs, chosen, progress)
    save_encoder(model, output)
    return losses


def pairs_of(dialogues: Iterable[Sequence[str]], turns: int = TURNS, seed: int = 0) -> Pairs:
    """Every turn but the first of every dialogue as a reply to the turns before it."""
    dice = np.random.default_rng(seed)
    contexts, replies, others = [], [], []
    for dialogue in dialogues:
        for turn in range(1, len(dialogue)):
            rest = [other for number, other in enumerate(dialogue) if number != turn and other != dialogue[turn]]
            if dialogue[turn].strip() and rest:
                contexts.append(joined(dialogue[:turn], turns))
                replies.append(dialogue[turn])
                others.append(rest[int(dice.integers(len(rest)))])
    return Pairs(contexts, replies, others)


def fine_tune(
    encoder: TorchEncoder,
    pairs: Pairs,
    settings: FineTuning | None = None,
    progress: Progress | None = None,
) -> list[float]:
    """Train the encoder in place; the mean loss of each epoch."""
    settings = settings or FineTuning()
    if len(pairs) < 2:
        raise SettingError("there are fewer than two pairs of context and reply to learn from")
    dice = np.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)
    model = encoder.model.float().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = torch.optim.AdamW(model.parameters(), settings.learning_rate, weight_decay=0.01)
    steps = settings.epochs * max(1, len(pairs) // settings.batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate(step, steps, settings.warmup))
    texts = _Texts(encoder, pairs, settings, dice)
    starts = range(0, max(len(pairs) - settings.batch_size, 0) + 1, settings.batch_size)
    losses = []
    for epoch in range(settings.epochs):
        total = 0.0
        order = dice.permutation(len(pairs))
        for step, start in enumerate(starts, epoch * len(starts) + 1):
            rows = order[start : start + settings.batch_size]
            optimiser.zero_grad()
            with torch.autocast(encoder.device.partition(":")[0], torch.bfloat16, encoder.device.startswith("cuda")):
                loss = texts.loss(rows)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
            if progress is not None:
                progress(step, steps)
        losses.append(total / len(starts))
    after = model.state_dict()
    model.load_state_dict({name: torch.lerp(before[name], value, settings.share) for name, value in after.items()})
    encoder.model.to(encoder.dtype).eval()
    return losses


def rate(step: int, steps: int, warmup: float) -> float:
    """Linear up, then linear down to nothing."""
    first = max(1, round(steps * warmup))
    return (step + 1) / first if step < first else max(0.0, (steps - step) / max(1, steps - first))


class _Texts:
    """The word pieces of all pairs, cut once, and the loss of some of them."""

    def __init__(self, encoder: TorchEncoder, pairs: Pairs, settings: FineTuning, dice: np.random.Generator) -> None:
        self.encoder, self.settings = encoder, settings
        self.contexts = encoder.pieces(pairs.contexts, ends=True)
        self.candidates = [encoder.pieces(pairs.replies)]
        if settings.same_dialogue:
            self.candidates.append(encoder.pieces(pairs.others))
        if settings.shuffled:
            self.candidates.append(encoder.pieces([_shuffled(text, dice) for text in pairs.replies]))

    def loss(self, rows: Ints) -> Tensor:
        """The loss of one batch; the first candidates are the true replies."""
        chosen = rows.tolist()
        context = self._vectors([self.contexts[row] for row in chosen])
        replies = torch.cat([self._vectors([kind[row] for row in chosen]) for kind in self.candidates])
        return F.cross_entropy(
            context @ replies.T / self.settings.temperature, torch.arange(len(chosen), device=context.device)
        )

    def _vectors(self, pieces: Sequence[Any]) -> Tensor:
        return F.normalize(self.encoder.model(*self.encoder.padded(pieces)), dim=-1)


def _shuffled(text: str, dice: np.random.Generator) -> str:
    """The words in another order; of a single word, itself with a mark, so that it is not the true reply again."""
    words = text.split()
    if len(set(words)) < 2:
        return f"{text} {text}"
    while True:
        mixed = [words[place] for place in dice.permutation(len(words)).tolist()]
        if mixed != words:
            return " ".join(mixed)


def save_encoder(encoder: TorchEncoder, folder: str | os.PathLike[str]) -> Path:
    """Write the encoder as a folder that `find_encoder` reads: that of its origin with the weights as they are now."""
    from safetensors.torch import save

    target, files = Path(folder), encoder.files
    check_folder(target, files)
    state = {name: tensor.detach().float().cpu() for name, tensor in encoder.model.state_dict().items()}
    for name in _names(files):
        if files.folder / name != files.weights_file:
            write_bytes(target / name, (files.folder / name).read_bytes())
    write_bytes(target / files.weights_file.relative_to(files.folder), save(_named_as_before(state)))
    return target


def check_folder(folder: Path, origin: EncoderFiles) -> None:
    """DataError unless an encoder may be saved in a folder: an encoder may be replaced, its origin and others not."""
    names = _names(origin)
    check_files(folder, names, lambda there: names if (there / "modules.json").is_file() else (), origin.folder)


def _names(files: EncoderFiles) -> list[str]:
    """The files of an encoder's folder, without weights in other formats."""
    paths = [path for path in files.folder.rglob("*") if path.is_file() and path.suffix not in _OTHER_WEIGHTS]
    return sorted(path.relative_to(files.folder).as_posix() for path in paths)


def _named_as_before(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights by their names in a BERT model."""
    # The positions hold the token type's vector already.
    named = {f"{EMBEDDINGS['types']}.weight": torch.zeros(2, state["norm.weight"].shape[0])}
    for name, tensor in state.items():
        part, _, kind = name.rpartition(".")
        if part in EMBEDDINGS:
            named[f"{EMBEDDINGS[part]}.{kind}"] = tensor
        elif part.startswith("layers."):
            _, layer, part = part.split(".")
            parts = zip(ATTENTION, tensor.chunk(3), strict=True) if part == "qkv" else [(LAYER[part], tensor)]
            named |= {f"encoder.layer.{layer}.{theirs}.{kind}": each for theirs, each in parts}
    return {name: tensor.contiguous() for name, tensor in named.items()}
