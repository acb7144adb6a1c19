"""The sentence encoder: a vector for any text, by a transformer's forward pass in NumPy.

A text is cut into word pieces, of which the first `tokens` count (for a context the last ones: what was said last is
what is answered). The forward pass is that of BERT; the vector is pooled, put through dense layers and normalised as
the encoder's folder says. It equals PyTorch's within 1e-5, and needs neither PyTorch nor a GPU.

A text's vector is the same to the last bit whatever other texts are encoded with it. Matrix products are therefore made
on tiles of a fixed number of tokens, packed with whole texts and filled up with zeros, so that their shape never
depends on the input; attention is computed text by text, in a shape that depends on the text's own length.

Differences from sentence-transformers: no padding, texts of all lengths share a tile; contexts keep their end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dialeval.core.errors import SettingError
from dialeval.core.kernels import Kernels
from dialeval.resources.encoder_files import EncoderFiles, Singles, TransformerWeights, find_encoder

_kernel = Kernels("dialeval.resources.encoder_kernel")


TOKENS = 128
"""Word pieces of a text that count, or as many as the encoder takes, unless another number is asked for."""

TILE = 512
"""Tokens of a tile: enough for the matrix products to run at full speed, few enough for a handful of texts."""


class SentenceEncoder(Protocol):
    """What gives a vector for a text."""

    @property
    def name(self) -> str:
        """What it is called, for people."""

    @property
    def digest(self) -> str:
        """What its vectors depend on."""

    @property
    def dimension(self) -> int:
        """Numbers per text."""

    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        """One row per text; with `ends`, of a text that is too long the end counts and not the beginning."""


class TokenisedEncoder:
    """What encoders of one folder share: the word pieces of a text, and the digest."""

    backend = ""

    def __init__(self, files: EncoderFiles, tokens: int | None = None) -> None:
        tokens = min(TOKENS, files.most_tokens) if tokens is None else tokens
        if not 3 <= tokens <= files.most_tokens:
            raise SettingError(f"{files.name} takes 3 to {files.most_tokens} tokens of a text, not {tokens}")
        self.files, self.tokens = files, tokens
        self.name = files.name

    @property
    def dimension(self) -> int:
        """Numbers per text."""
        return self.files.dimension

    @property
    def digest(self) -> str:
        """What the vectors depend on."""
        made_of = f"{self.files.digest} {self.tokens}{self.backend}"
        return hashlib.sha256(made_of.encode()).hexdigest()[: len(self.files.digest)]

    @cached_property
    def _tokeniser(self) -> Any:
        return self.files.tokeniser()

    def pieces(self, texts: Sequence[str], ends: bool = False) -> list[npt.NDArray[np.int64]]:
        """The ids of each text's word pieces, between the marks of beginning and end."""
        found = []
        for pieces in self.files.pieces(self._tokeniser, texts):
            ids = np.array(pieces, np.int64)
            if len(ids) > self.tokens and ends:
                ids = np.concatenate((ids[:1], ids[len(ids) - self.tokens + 1 :]))
            elif len(ids) > self.tokens:
                ids = np.concatenate((ids[: self.tokens - 1], ids[-1:]))
            found.append(ids)
        return found


class Encoder(TokenisedEncoder):
    """An encoder in NumPy; see `SentenceEncoder` for the interface. Pickled as the place where its files lie."""

    def __reduce__(self) -> tuple[type[Encoder], tuple[EncoderFiles, int]]:
        return type(self), (EncoderFiles(self.files.name, self.files.folder), self.tokens)

    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        vectors = np.empty((len(texts), self.files.config.hidden_size), np.float32)
        pieces = self.pieces(texts, ends)
        for tile in tiles([len(ids) for ids in pieces], max(TILE, self.tokens)):
            vectors[tile] = self._pooled([pieces[text] for text in tile])
        return self._finished(vectors)

    def token_vectors(self, texts: Sequence[str]) -> list[Singles]:
        """Per text the last layer's vector of each token, the marks of beginning and end among them."""
        pieces = self.pieces(texts)
        found: list[Singles] = [np.empty((0, 0), np.float32)] * len(texts)
        for tile in tiles([len(ids) for ids in pieces], max(TILE, self.tokens)):
            lengths = [len(pieces[text]) for text in tile]
            rows = self._layers.forward([pieces[text] for text in tile], lengths, max(TILE, self.tokens))
            for text, end in zip(tile, np.cumsum(lengths).tolist(), strict=True):
                found[text] = rows[end - len(pieces[text]) : end].copy()
        return found

    @cached_property
    def _layers(self) -> Transformer:
        return Transformer(self.files, self.files.weights())

    def _pooled(self, pieces: Sequence[npt.NDArray[np.int64]]) -> Singles:
        """The pooled vectors of the texts of one tile."""
        lengths = [len(ids) for ids in pieces]
        rows = self._layers.forward(pieces, lengths, max(TILE, self.tokens))
        starts = np.cumsum([0, *lengths])
        pool = _POOLS[self.files.pooling]
        return np.stack(
            [pool(rows[start : start + length]) for start, length in zip(starts[:-1], lengths, strict=True)]
        )

    def _finished(self, vectors: Singles) -> Singles:
        for layer in self.files.dense:
            # Row by row: the shape of the product must not depend on the number of texts.
            vectors = np.array([layer.weight @ row for row in vectors], np.float32).reshape(-1, len(layer.weight))
            vectors = vectors if layer.bias is None else vectors + layer.bias
            vectors = np.tanh(vectors) if layer.activation == "tanh" else vectors
        if self.files.normalised:
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            vectors = vectors / np.maximum(lengths, np.float32(1e-12))[:, None]
        return vectors


class ShippedEncoder:
    """The encoder of the shipped judges, found when it is first asked for anything. Another one may stand in."""

    def __init__(self, encoder: Encoder | None = None) -> None:
        self._given = encoder

    def __reduce__(self) -> tuple[type[ShippedEncoder], tuple[Encoder | None]]:
        return type(self), (self._given,)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder itself."""
        return Encoder(find_encoder()) if self._given is None else self._given

    @property
    def digest(self) -> str:
        """What its vectors depend on, behind its name."""
        return f"{self.encoder.name}@{self.encoder.digest}"

    def token_vectors(self, texts: Sequence[str]) -> list[Singles]:
        """See `Encoder.token_vectors`."""
        return self.encoder.token_vectors(texts)


_POOLS: dict[str, Callable[[Singles], Any]] = {
    "cls": lambda rows: rows[0],
    "mean": lambda rows: rows.sum(axis=0) / np.float32(len(rows)),
    "max": lambda rows: rows.max(axis=0),
    "root-mean": lambda rows: rows.sum(axis=0) / np.sqrt(np.float32(len(rows))),
}


def tiles(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """The numbers of the texts of each tile, shortest texts first."""
    tile: list[int] = []
    filled = 0
    for text in np.argsort(lengths, kind="stable").tolist():
        if filled + lengths[text] > size:
            yield tile
            tile, filled = [], 0
        tile.append(text)
        filled += lengths[text]
    if tile:
        yield tile


class Transformer:
    """The weights, laid out for row vectors, and the forward pass over one tile."""

    def __init__(self, files: EncoderFiles, weights: TransformerWeights) -> None:
        config = files.config
        self.heads = config.num_attention_heads
        self.epsilon = np.float32(config.layer_norm_eps)
        self.activation = config.hidden_act
        self.first_position = files.first_position
        self.words, self.positions, self.norm = weights.words, weights.positions, weights.norm
        self.second = weights.second
        self.layers = [
            {name: (_for_rows(weight), bias) for name, (weight, bias) in layer.items()} for layer in weights.layers
        ]

    def forward(
        self,
        pieces: Sequence[npt.NDArray[Any]],
        lengths: Sequence[int],
        size: int,
        seconds: Sequence[int] | None = None,
    ) -> Singles:
        """The last layer's vector of every token; rows behind the last text are without meaning.

        `seconds` says of each text how many tokens at its end are of the second token type.
        """
        activate = _kernel.gelu if self.activation == "gelu" else _kernel.relu
        filled = sum(lengths)
        rows: Singles = np.zeros((size, self.words.shape[1]), np.float32)
        places: Singles = np.zeros_like(rows)
        rows[:filled] = self.words[np.concatenate(pieces)]
        places[:filled] = self.positions[self.first_position + np.concatenate([np.arange(n) for n in lengths])]
        if seconds is not None:
            for end, many in zip(np.cumsum(lengths).tolist(), seconds, strict=True):
                places[end - many : end] += self.second
        nothing: Singles = np.zeros(rows.shape[1], np.float32)
        _kernel.add_and_normalise(rows, places, nothing, *self.norm, self.epsilon)
        mixed: Singles = np.zeros_like(rows)
        for layer in self.layers:
            weight, bias = layer["qkv"]
            self._attend(rows @ weight + bias, lengths, mixed)
            weight, bias = layer["out"]
            _kernel.add_and_normalise(rows, mixed @ weight, bias, *layer["norm"], self.epsilon)
            weight, bias = layer["up"]
            inner: Singles = rows @ weight
            activate(inner, bias)
            weight, bias = layer["down"]
            _kernel.add_and_normalise(rows, inner @ weight, bias, *layer["last_norm"], self.epsilon)
        return rows

    def _attend(self, qkv: Singles, lengths: Sequence[int], mixed: Singles) -> None:
        """What each token takes from the others of its text, written into `mixed`; equal lengths go together."""
        width = qkv.shape[1] // 3
        size = width // self.heads
        scale = np.float32(1 / np.sqrt(size))
        start = text = 0
        while text < len(lengths):
            length = lengths[text]
            many = next((n for n, other in enumerate(lengths[text:]) if other != length), len(lengths) - text)
            stop = start + many * length
            split = qkv[start:stop].reshape(many, length, 3, self.heads, size)
            queries, keys, values = (np.ascontiguousarray(split[:, :, part].swapaxes(1, 2)) for part in range(3))
            scores = (queries @ np.ascontiguousarray(keys.swapaxes(2, 3))) * scale
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            mixed[start:stop] = (scores @ values).swapaxes(1, 2).reshape(stop - start, width)
            start, text = stop, text + many


def _for_rows(weight: Singles) -> Singles:
    """A matrix that is multiplied by rows from the left; the weight of a normalisation stays as it is."""
    return np.ascontiguousarray(weight.T)
