"""The transformer of a sentence encoder in PyTorch, which `cross_training` trains.

It reads packed sequences, one behind the other without padding. The weights and layers are those of `metrics.encoder`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialeval.judges.judge import list_trained_names, name_weights
from dialeval.metrics.encoder_files import EncoderFiles

_DROPOUT = 0.1
_PARTS = ("qkv", "out", "up", "down", "norm", "last_norm")


class PieceBatch(NamedTuple):
    """Sequences of pieces, one behind the other, without padding."""

    ids: Tensor
    places: Tensor
    """By piece: its place in its sequence."""
    second: Tensor
    """By piece: whether it has the second token type."""
    owner: Tensor
    """By piece: the number of its sequence."""
    bounds: Tensor
    """Where each sequence begins, and where the last one ends."""
    longest: int


class TorchTransformer(nn.Module):
    """The layers of an encoder. Embeddings are not trained. Weights are float32, whatever type is computed in."""

    words: Tensor
    positions: Tensor
    second: Tensor
    norm_weight: Tensor
    norm_bias: Tensor

    def __init__(self, files: EncoderFiles) -> None:
        super().__init__()
        config = files.config
        self.base, self.depth = name_weights(files), files.depth
        self.attention_heads, self.epsilon = config.num_attention_heads, config.layer_norm_eps
        for name in ("words", "positions", "second", "norm.weight", "norm.bias"):
            self.register_buffer(flatten_name(name), to_tensor(self.base[name]), persistent=False)
        self.names = list(list_trained_names(self.base))
        trained = {flatten_name(name): nn.Parameter(to_tensor(self.base[name])) for name in self.names}
        self.weights = nn.ParameterDict(trained)

    def get_weight(self, name: str) -> Tensor:
        """Return a weight of a layer."""
        return self.weights[name]

    def _apply_part(self, name: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        return self.get_weight(f"{name}_weight").to(dtype), self.get_weight(f"{name}_bias").to(dtype)

    def encode_pieces(self, batch: PieceBatch, dtype: torch.dtype) -> Tensor:
        """Return the last layer's vector of each piece."""
        dropout = _DROPOUT if self.training else 0.0
        rows = F.embedding(batch.ids, self.words) + F.embedding(batch.places, self.positions)
        rows = rows + batch.second[:, None] * self.second
        rows = F.layer_norm(rows, rows.shape[-1:], self.norm_weight, self.norm_bias, self.epsilon).to(dtype)
        rows = F.dropout(rows, dropout, self.training)
        for layer in range(self.depth):
            qkv, out, up, down, norm, last_norm = (self._apply_part(f"{layer}_{part}", dtype) for part in _PARTS)
            split = F.linear(rows, *qkv).view(len(rows), 3, self.attention_heads, -1)
            mixed = F.dropout(F.linear(_attend(split, batch).reshape(rows.shape), *out), dropout, self.training)
            rows = F.layer_norm(rows + mixed, rows.shape[-1:], *norm, self.epsilon)
            inner = F.dropout(F.linear(F.gelu(F.linear(rows, *up)), *down), dropout, self.training)
            rows = F.layer_norm(rows + inner, rows.shape[-1:], *last_norm, self.epsilon)
        return rows


def _attend(split: Tensor, batch: PieceBatch) -> Tensor:
    """Return what each piece takes from the others of its sequence; `split` has queries, keys and values of heads."""
    if split.is_cuda and split.dtype == torch.bfloat16:
        from torch.nn.attention.varlen import varlen_attn

        queries, keys, values = (part.contiguous() for part in split.unbind(1))
        bounds, many = batch.bounds.int(), batch.longest
        return varlen_attn(queries, keys, values, bounds, bounds, many, many)  # type: ignore[return-value]
    padded = split.new_zeros((len(batch.bounds) - 1, batch.longest, *split.shape[1:]))
    padded = padded.index_put((batch.owner, batch.places), split)
    queries, keys, values = padded.permute(2, 0, 3, 1, 4)
    mask = torch.arange(batch.longest, device=split.device) < batch.bounds.diff()[:, None]
    mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask[:, None, None, :])
    return mixed.transpose(1, 2)[batch.owner, batch.places]


def sum_rows(rows: Tensor, batch: PieceBatch) -> Tensor:
    """Return the sum of the rows of each sequence, in float32."""
    sums = rows.new_zeros((len(batch.bounds) - 1, *rows.shape[1:]), dtype=torch.float32)
    return sums.index_add(0, batch.owner, rows.float())


def flatten_name(name: str) -> str:
    """Return the name of a weight as PyTorch allows it for parameters."""
    return name.replace(".", "_")


def to_tensor(array: npt.ArrayLike) -> Tensor:
    """Return a copy of an array as a float32 tensor."""
    return torch.from_numpy(np.array(array, np.float32))
