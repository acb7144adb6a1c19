"""The cross-encoder in PyTorch: it reads context and response together, as packed sequences without padding.

The feature of a sequence is the vector of its first piece and the mean over the pieces of the response; all heads are
linear in it. Embeddings stay as they are. On a GPU everything is computed in bfloat16, from weights in float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialeval.metrics.learned.cross_weights import HEADS, Changes, factors, in_eight_bits, merged, trained
from dialeval.metrics.learned.training.candidates import Batch
from dialeval.resources.encoder_files import Singles

MATRICES = ("qkv", "out", "up", "down")
NORMS = ("norm", "last_norm")
_DROPOUT = 0.1


class CrossModel(nn.Module):
    """The transformer with its heads; `base` are the encoder's weights by our names, `heads` those of attention."""

    words: Tensor
    positions: Tensor
    second: Tensor
    norm_weight: Tensor
    norm_bias: Tensor

    def __init__(self, base: Mapping[str, Singles], heads: int, epsilon: float, seed: int = 0) -> None:
        super().__init__()
        self.attention_heads, self.epsilon = heads, epsilon
        for name in ("words", "positions", "second", "norm.weight", "norm.bias"):
            self.register_buffer(_flat(name), _tensor(base[name]), persistent=False)
        self.names = list(trained(base))
        self.depth = 1 + max(int(name.partition(".")[0]) for name in self.names)
        self.weights = nn.ParameterDict({_flat(name): nn.Parameter(_tensor(base[name])) for name in self.names})
        self.factorised = False
        width = int(base["norm.weight"].shape[0])
        self.heads = nn.Linear(2 * width, sum(HEADS.values()))
        nn.init.normal_(self.heads.weight, std=0.02, generator=torch.Generator().manual_seed(seed))
        nn.init.zeros_(self.heads.bias)
        self.block = _block
        """The second half of a layer; a GPU program may put a compiled one in its place."""

    def _part(self, layer: int, name: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        weight, bias = (self._weight(f"{layer}_{name}_{kind}") for kind in ("weight", "bias"))
        return weight.to(dtype), bias.to(dtype)

    def _weight(self, name: str) -> Tensor:
        if f"{name}_left" not in self.weights:
            whole: Tensor = self.weights[name]
            return whole
        start: Tensor = getattr(self, f"base_{name}")
        left, right = (self.weights[f"{name}_{side}"] for side in ("left", "right"))
        changed: Tensor = start + left @ right.T
        return changed

    @torch.no_grad()
    def factorise(self, base: Mapping[str, Singles], rank: int) -> None:
        """From now on the change of each matrix is a product of thin factors, and those are trained."""
        self.factorised = True
        for name in self.names:
            weight = self.weights[_flat(name)]
            if weight.ndim == 2:
                start = _tensor(base[name]).to(weight.device)
                left, right = factors((weight - start).cpu().numpy(), rank)
                self.register_buffer(f"base_{_flat(name)}", start, persistent=False)
                del self.weights[_flat(name)]
                for side, factor in (("left", left), ("right", right)):
                    self.weights[f"{_flat(name)}_{side}"] = nn.Parameter(_tensor(factor).to(weight.device))

    @torch.no_grad()
    def changes(self, base: Mapping[str, Singles], rank: int) -> dict[str, Any]:
        """What training changed, as it ships."""
        found: dict[str, Any] = {}
        for name in self.names:
            flat = _flat(name)
            if flat in self.weights and self.weights[flat].ndim == 1:
                found[name] = (_array(self.weights[flat]) - base[name]).astype(np.float16)
                continue
            if self.factorised:
                thin = tuple(_array(self.weights[f"{flat}_{side}"]) for side in ("left", "right"))
            else:
                thin = factors(_array(self.weights[flat]) - base[name], rank)
            for side, factor in zip(("left", "right"), thin, strict=True):
                found[f"{name}.{side}"], found[f"{name}.{side}.scale"] = in_eight_bits(factor)
        return found | {"heads.weight": _array(self.heads.weight), "heads.bias": _array(self.heads.bias)}

    @torch.no_grad()
    def load(self, base: Mapping[str, Singles], changes: Changes) -> None:
        """Take on what ships; the model must not be factorised."""
        for name, weight in merged(base, changes).items():
            self.weights[_flat(name)].copy_(_tensor(weight))
        self.heads.weight.copy_(_tensor(changes["heads.weight"]))
        self.heads.bias.copy_(_tensor(changes["heads.bias"]))

    def forward(self, batch: Batch, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
        """By head: its values, a row per sequence."""
        dropout = _DROPOUT if self.training else 0.0
        rows = F.embedding(batch.ids, self.words) + F.embedding(batch.places, self.positions)
        rows = rows + batch.second[:, None] * self.second
        rows = F.layer_norm(rows, rows.shape[-1:], self.norm_weight, self.norm_bias, self.epsilon).to(dtype)
        rows = F.dropout(rows, dropout, self.training)
        bounds = batch.bounds.int()
        for layer in range(self.depth):
            parts = {name: self._part(layer, name, dtype) for name in (*MATRICES, *NORMS)}
            split = F.linear(rows, *parts["qkv"]).view(len(rows), 3, self.attention_heads, -1)
            mixed = attend(split, bounds, batch).reshape(rows.shape)
            rows = self.block(rows, mixed, parts, self.epsilon, dropout)
        first = rows[batch.bounds[:-1]].float()
        many = len(first)
        # The mean over the response: a product with a sparse matrix of ones would round; index_add sums in float32.
        said = rows.new_zeros((many, rows.shape[1]), dtype=torch.float32).index_add(
            0, batch.owner, rows.float() * batch.second[:, None]
        )
        counts = batch.second.new_zeros(many, dtype=torch.float32).index_add(0, batch.owner, batch.second.float())
        values = self.heads(torch.cat((first, said / counts[:, None]), 1))
        return dict(zip(HEADS, values.split(list(HEADS.values()), 1), strict=True))


def _block(
    rows: Tensor, mixed: Tensor, parts: Mapping[str, tuple[Tensor, Tensor]], epsilon: float, dropout: float
) -> Tensor:
    width = rows.shape[-1:]
    mixed = F.dropout(F.linear(mixed, *parts["out"]), dropout, dropout > 0)
    rows = F.layer_norm(rows + mixed, width, *parts["norm"], epsilon)
    inner = F.dropout(F.linear(F.gelu(F.linear(rows, *parts["up"])), *parts["down"]), dropout, dropout > 0)
    return F.layer_norm(rows + inner, width, *parts["last_norm"], epsilon)


def attend(split: Tensor, bounds: Tensor, batch: Batch) -> Tensor:
    """What each piece takes from the others of its sequence; `split` has queries, keys and values of each head."""
    if split.is_cuda and split.dtype == torch.bfloat16:
        from torch.nn.attention.varlen import varlen_attn

        queries, keys, values = (part.contiguous() for part in split.unbind(1))
        many = batch.longest
        return varlen_attn(queries, keys, values, bounds, bounds, many, many)  # type: ignore[return-value]
    many = len(bounds) - 1
    padded = split.new_zeros((many, batch.longest, *split.shape[1:]))
    padded = padded.index_put((batch.owner, batch.places), split)
    queries, keys, values = padded.permute(2, 0, 3, 1, 4)
    lengths = bounds.diff()
    mask = torch.arange(batch.longest, device=split.device) < lengths[:, None]
    mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask[:, None, None, :])
    return mixed.transpose(1, 2)[batch.owner, batch.places]


def _flat(name: str) -> str:
    return name.replace(".", "_")


def _array(tensor: Tensor) -> Singles:
    array: Singles = tensor.detach().float().cpu().numpy()
    return array


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32))
