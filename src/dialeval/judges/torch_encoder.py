"""The transformer in PyTorch over packed sequences: encodes texts on a GPU, and is what `cross_training` trains.

The same weights, pieces, pooling and normalization as `metrics.encoder.Encoder`, in batches of texts of similar
length, one behind the other without padding. In float32 its vectors equal the NumPy encoder's within 1e-5; in bfloat16,
the default on a GPU, within about 1e-2. A text's vector may depend on its batch in the last bits, which the NumPy
encoder's never does.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from dialeval.core.arrays import Ints
from dialeval.core.errors import SettingError
from dialeval.judges.cross_encoder import list_trained_names, name_weights
from dialeval.metrics.encoder import Encoder
from dialeval.metrics.encoder_files import EncoderFiles, Singles

_BATCH_TOKENS = {"cpu": 1 << 11, "cuda": 1 << 17}
"""Tokens of a batch, by device; texts count as if they were as long as the longest."""
_AHEAD_TEXTS = 1 << 14
"""Texts that are tokenized and sorted by length at a time."""
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


class TorchEncoder(Encoder):
    """An encoder in PyTorch."""

    def __init__(self, files: EncoderFiles, tokens: int | None = None, device: str = "cpu") -> None:
        super().__init__(files, tokens)
        self.device = device
        self.dtype = torch.bfloat16 if device.startswith("cuda") else torch.float32
        self.backend = f" {device.partition(':')[0]} {str(self.dtype).removeprefix('torch.')}"

    @cached_property
    def model(self) -> TorchTransformer:
        """The transformer on its device, made when it is first needed: the digest is known without a GPU."""
        check_device(self.device)
        return TorchTransformer(self.files).to(self.device).eval()

    def __reduce__(self) -> tuple[type[TorchEncoder], tuple[Any, ...]]:
        return type(self), (EncoderFiles(self.files.name, self.files.folder), self.tokens, self.device)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        vectors = np.empty((len(texts), self.files.config.hidden_size), np.float32)
        limit = _BATCH_TOKENS["cuda" if self.device.startswith("cuda") else "cpu"]
        for start in range(0, len(texts), _AHEAD_TEXTS):
            pieces = self.split_pieces(texts[start : start + _AHEAD_TEXTS], ends)
            waiting = [(batch, self._pool([pieces[text] for text in batch])) for batch in _make_batches(pieces, limit)]
            for batch, made in waiting:  # fetched only here, so that the GPU never waits for the next batch
                vectors[np.array(batch) + start] = made.cpu().numpy()
        return self._finish(vectors)

    def _pool(self, pieces: Sequence[Ints]) -> Tensor:
        """Return the pooled vector of each text."""
        model, lengths = self.model, np.array([len(ids) for ids in pieces])
        bounds, owner = np.cumsum([0, *lengths]), np.repeat(np.arange(len(pieces)), lengths)
        places, second = np.arange(bounds[-1]) - bounds[owner], np.zeros(bounds[-1], np.bool_)
        arrays = np.concatenate(pieces), places, second, owner, bounds
        tensors = [torch.from_numpy(array).to(self.device) for array in arrays]
        batch = PieceBatch._make([*tensors, int(lengths.max())])
        rows = model.encode_pieces(batch, self.dtype).float()
        if self.files.pooling == "cls":
            return rows[batch.bounds[:-1]]
        return sum_rows(rows, batch) / batch.bounds.diff()[:, None]


def _make_batches(pieces: Sequence[Sized], limit: int) -> list[list[int]]:
    """Return the numbers of the texts of each batch, longest first, each of at most `limit` tokens with padding."""
    order = sorted(range(len(pieces)), key=lambda text: -len(pieces[text]))
    batches, first = [], 0
    while first < len(order):
        many = max(1, limit // len(pieces[order[first]]))
        batches.append(order[first : first + many])
        first += many
    return batches


def check_device(device: str) -> None:
    """Raise SettingError unless PyTorch has the device here."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise SettingError(f"PyTorch knows no device {device!r}; give cpu or cuda") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingError("PyTorch finds no GPU here; leave the device out, or install a build of it for CUDA")


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
