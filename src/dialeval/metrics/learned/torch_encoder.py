"""The sentence encoder in PyTorch: for GPUs, and for training it further.

The same weights, pieces, pooling and normalisation as `resources.encoder.Encoder`, in padded batches of texts of
similar length. In float32 its vectors equal the NumPy encoder's within 1e-5; in bfloat16, the default on a GPU, within
about 1e-2. A text's vector may depend on its batch in the last bits, which the NumPy encoder's never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialeval.core.errors import SettingError
from dialeval.resources.encoder import TokenisedEncoder
from dialeval.resources.encoder_files import EncoderFiles, Singles

_BATCH_TOKENS = {"cpu": 1 << 11, "cuda": 1 << 17}
"""Tokens of a batch with its padding, by device."""

_AHEAD_TEXTS = 1 << 14
"""Texts that are cut into pieces and sorted by length at a time."""


class Layer(nn.Module):
    """One layer of the transformer."""

    def __init__(self, width: int, inner: int, heads: int, epsilon: float, activation: str) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, epsilon)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.last_norm = nn.LayerNorm(width, epsilon)
        self.activation = F.gelu if activation == "gelu" else F.relu

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        """The tokens' next vectors; `mask` says which tokens are there."""
        texts, length, width = rows.shape
        split = self.qkv(rows).view(texts, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(split[0], split[1], split[2], attn_mask=mask[:, None, None, :])
        rows = self.norm(rows + self.out(mixed.transpose(1, 2).reshape(texts, length, width)))
        return self.last_norm(rows + self.down(self.activation(self.up(rows))))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """The transformer of an encoder's folder, with pooling, dense layers and normalisation."""

    def __init__(self, files: EncoderFiles) -> None:
        super().__init__()
        config, width = files.config, files.config.hidden_size
        epsilon = config.layer_norm_eps
        self.pooling, self.normalised, self.first_position = files.pooling, files.normalised, files.first_position
        self.words = nn.Embedding(config.vocab_size, width)
        self.positions = nn.Embedding(config.max_position_embeddings, width)
        self.norm = nn.LayerNorm(width, epsilon)
        shape = width, config.intermediate_size, config.num_attention_heads, epsilon
        self.layers = nn.ModuleList(Layer(*shape, config.hidden_act) for _ in range(files.depth))
        self.dense = nn.ModuleList(
            nn.Linear(layer.weight.shape[1], layer.weight.shape[0], layer.bias is not None) for layer in files.dense
        )
        self.squashed = [layer.activation == "tanh" for layer in files.dense]
        self.load_state_dict(_state(files), strict=True)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """One vector per text; `mask` is true where a token is there."""
        places = self.first_position + torch.arange(ids.shape[1], device=ids.device)
        rows = self.norm(self.words(ids) + self.positions(places))
        for layer in self.layers:
            rows = layer(rows, mask)
        vectors = self._pooled(rows.float(), mask)
        for dense, squashed in zip(self.dense, self.squashed, strict=True):
            vectors = dense(vectors.to(rows.dtype)).float()
            vectors = torch.tanh(vectors) if squashed else vectors
        return F.normalize(vectors, dim=-1) if self.normalised else vectors

    def _pooled(self, rows: Tensor, mask: Tensor) -> Tensor:
        there = mask[:, :, None]
        if self.pooling == "cls":
            return rows[:, 0]
        if self.pooling == "max":
            return rows.masked_fill(~there, -torch.inf).amax(1)
        counts = there.sum(1)
        return (rows * there).sum(1) / (counts if self.pooling == "mean" else counts.sqrt())


def _state(files: EncoderFiles) -> dict[str, Tensor]:
    """The weights of a folder by the names of the modules above."""
    weights = files.weights()
    parts: dict[str, tuple[Singles, Singles | None]] = {
        "words": (weights.words, None),
        "positions": (weights.positions, None),
        "norm": weights.norm,
        **{f"layers.{n}.{name}": part for n, layer in enumerate(weights.layers) for name, part in layer.items()},
        **{f"dense.{n}": (dense.weight, dense.bias) for n, dense in enumerate(files.dense)},
    }
    arrays = {f"{name}.weight": weight for name, (weight, _) in parts.items()}
    arrays |= {f"{name}.bias": bias for name, (_, bias) in parts.items() if bias is not None}
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def check_device(device: str) -> None:
    """SettingError unless PyTorch has the device here."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise SettingError(f"PyTorch knows no device {device!r}; give cpu or cuda") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingError("PyTorch finds no GPU here; leave the device out, or install a build of it for CUDA")


class TorchEncoder(TokenisedEncoder):
    """An encoder in PyTorch; see `SentenceEncoder` for the interface."""

    def __init__(
        self, files: EncoderFiles, tokens: int | None = None, device: str = "cpu", dtype: torch.dtype | None = None
    ) -> None:
        super().__init__(files, tokens)
        self.device = device
        self.dtype = dtype or (torch.bfloat16 if device.startswith("cuda") else torch.float32)
        self.backend = f" {device.partition(':')[0]} {str(self.dtype).removeprefix('torch.')}"

    @cached_property
    def model(self) -> Transformer:
        """The transformer on its device, made when it is first needed: the digest is known without a GPU."""
        check_device(self.device)
        with torch.inference_mode(False):  # weights that are made while encoding could not be trained further
            return Transformer(self.files).to(self.device, self.dtype).eval()

    def __reduce__(self) -> tuple[type[TorchEncoder], tuple[Any, ...]]:
        files = EncoderFiles(self.files.name, self.files.folder)
        return type(self), (files, self.tokens, self.device, self.dtype)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        vectors = np.empty((len(texts), self.dimension), np.float32)
        limit = _BATCH_TOKENS["cuda" if self.device.startswith("cuda") else "cpu"]
        for start in range(0, len(texts), _AHEAD_TEXTS):
            pieces = self.pieces(texts[start : start + _AHEAD_TEXTS], ends)
            waiting = [
                (batch, self.model(*self.padded([pieces[text] for text in batch]))) for batch in _batches(pieces, limit)
            ]
            for batch, made in waiting:  # fetched only here, so that the GPU never waits for the next batch
                vectors[np.array(batch) + start] = made.float().cpu().numpy()
        return vectors

    def padded(self, pieces: Sequence[Any]) -> tuple[Tensor, Tensor]:
        """The pieces of some texts as a matrix on the device, and which of its entries are there."""
        lengths = np.array([len(ids) for ids in pieces])
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = np.concatenate(pieces)
        there = torch.from_numpy(ids), torch.from_numpy(mask)
        if self.device.startswith("cuda"):
            there = there[0].pin_memory(), there[1].pin_memory()
        return there[0].to(self.device, non_blocking=True), there[1].to(self.device, non_blocking=True)


def _batches(pieces: Sequence[Any], limit: int) -> list[list[int]]:
    """The numbers of the texts of each batch, longest first, each at most `limit` tokens with its padding."""
    order = sorted(range(len(pieces)), key=lambda text: -len(pieces[text]))
    batches, first = [], 0
    while first < len(order):
        many = max(1, limit // len(pieces[order[first]]))
        batches.append(order[first : first + many])
        first += many
    return batches
