"""The sentence encoder: a vector for any text, by a transformer's forward pass in NumPy.

A text is cut into word pieces, of which the first `tokens` count (for a context the last ones: what was said last is
what is answered). The forward pass is that of BERT; the vector is pooled and normalized as the encoder's folder says.
It equals PyTorch's within 1e-5, and needs neither PyTorch nor a GPU.

A text's vector is the same to the last bit whatever other texts are encoded with it. Matrix products are therefore made
on tiles of a fixed number of rows, the last one filled up with zeros, so that their shape never depends on the input.
Attention is computed text by text, in a shape that depends on the text's own length. Where a processor's product
depends on the place of a row in its tile, texts begin only at places that are alike (`find_row_step`).

Differences from sentence-transformers: no padding, texts of all lengths share a tile; contexts keep their end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints
from dialeval.core.errors import SettingError
from dialeval.core.kernels import kernel
from dialeval.metrics.encoder_files import EncoderFiles, Part, Singles, TransformerWeights, find_encoder

# What of an encoder's forward pass is not a matrix product: activation and layer normalization, in place.

_SUMS = {"reassoc", "nsz"}
"""Sums within a row may be taken in any order; the order is still the same for every row."""


@kernel(error_model="numpy")
def gelu(rows, bias):  # type: ignore[no-untyped-def]
    """Compute x * (1 + erf(x / sqrt(2))) / 2 of rows + bias, with erf as a quotient of polynomials, exact to float32.

    `min`, `max` and a division that may raise would each keep the compiler from taking sixteen values at once.
    """
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            value = rows[row, column] + bias[column]
            x = value * np.float32(0.7071067811865476)
            x = max(np.float32(-4.0), x)
            x = min(np.float32(4.0), x)
            square = x * x
            above = np.float32(-2.72614225801306e-10)
            above = above * square + np.float32(2.77068142495902e-08)
            above = above * square + np.float32(-2.10102402082508e-06)
            above = above * square + np.float32(-5.69250639462346e-05)
            above = above * square + np.float32(-7.34990630326855e-04)
            above = above * square + np.float32(-2.95459980854025e-03)
            above = above * square + np.float32(-1.60960333262415e-02)
            below = np.float32(-1.45660718464996e-05)
            below = below * square + np.float32(-2.13374055278905e-04)
            below = below * square + np.float32(-1.68282697438203e-03)
            below = below * square + np.float32(-7.37332916720468e-03)
            below = below * square + np.float32(-1.42647390514189e-02)
            rows[row, column] = np.float32(0.5) * value * (np.float32(1.0) + x * above / below)


@kernel(fastmath=_SUMS)
def add_and_normalize(rows, added, bias, weight, shift, epsilon):  # type: ignore[no-untyped-def]
    """Compute the layer normalization of rows + added + bias, written over `rows`."""
    width = rows.shape[1]
    for row in range(rows.shape[0]):
        total = np.float32(0.0)
        for column in range(width):
            rows[row, column] += added[row, column] + bias[column]
            total += rows[row, column]
        mean = total / np.float32(width)
        spread = np.float32(0.0)
        for column in range(width):
            distance = rows[row, column] - mean
            spread += distance * distance
        scale = np.float32(1.0) / np.sqrt(spread / np.float32(width) + epsilon)
        for column in range(width):
            rows[row, column] = (rows[row, column] - mean) * scale * weight[column] + shift[column]


_PROBES = 3

TOKENS = 128
"""Word pieces of a text that count, or as many as the encoder takes, unless another number is asked for."""

TILE = 192
"""Rows of a matrix product: enough to run at nearly full speed, few enough for a text or two. Products that depend on
the place of a row repeat after 12 or 16 rows, as far as we know: so it is a multiple of both."""

TOGETHER = 12 * TILE
"""Tokens of the texts that pass through the layers together: few of them are zeros, and all of them fit a cache."""


MOST_KEPT = 1 << 26
"""Numbers that are kept at most: 256 MB, vectors of 170,000 texts or of the tokens of some 10,000 replies."""


class Encoder:
    """An encoder in NumPy: the vectors of texts out of the files of a folder. Pickled as the place of its files."""

    def __init__(self, files: EncoderFiles, tokens: int | None = None) -> None:
        tokens = min(TOKENS, files.most_tokens) if tokens is None else tokens
        if not 3 <= tokens <= files.most_tokens:
            raise SettingError(f"{files.name} takes 3 to {files.most_tokens} tokens of a text, not {tokens}")
        self.files, self.tokens, self.name = files, tokens, files.name

    @property
    def dimension(self) -> int:
        """Numbers per text."""
        return self.files.config.hidden_size

    @property
    def digest(self) -> str:
        """What the vectors depend on."""
        made_of = f"{self.files.digest} {self.tokens}"
        return hashlib.sha256(made_of.encode()).hexdigest()[: len(self.files.digest)]

    @cached_property
    def _tokenizer(self) -> object:
        return self.files.read_tokenizer()

    def split_pieces(self, texts: Sequence[str], ends: bool = False) -> list[npt.NDArray[np.int64]]:
        """Return the ids of each text's word pieces, between the marks of beginning and end."""
        texts_of_pieces = []
        for pieces in self.files.split_pieces(self._tokenizer, texts):
            ids = np.array(pieces, np.int64)
            if len(ids) > self.tokens and ends:
                ids = np.concatenate((ids[:1], ids[len(ids) - self.tokens + 1 :]))
            elif len(ids) > self.tokens:
                ids = np.concatenate((ids[: self.tokens - 1], ids[-1:]))
            texts_of_pieces.append(ids)
        return texts_of_pieces

    def __reduce__(self) -> tuple[type[Encoder], tuple[EncoderFiles, int]]:
        return type(self), (EncoderFiles(self.files.name, self.files.folder), self.tokens)

    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        """Return one row per text; `ends` keeps the end of a text that is too long, not its beginning."""
        vectors = np.empty((len(texts), self.files.config.hidden_size), np.float32)
        first = self.files.pooling == "cls"
        for text, rows in self._forward(texts, ends):
            vectors[text] = rows[0] if first else rows.sum(axis=0) / np.float32(len(rows))
        return self._finish(vectors)

    def encode_tokens(self, texts: Sequence[str]) -> list[Singles]:
        """Return per text the last layer's vector of each token, the marks of beginning and end among them."""
        encoded = {text: rows.copy() for text, rows in self._forward(texts)}
        return [encoded[text] for text in range(len(texts))]

    def _forward(self, texts: Sequence[str], ends: bool = False) -> Iterator[tuple[int, Singles]]:
        """Yield the number of each text and the vectors of its tokens, shortest texts first."""
        pieces = self.split_pieces(texts, ends)
        for group in group_texts([len(ids) for ids in pieces]):
            yield from zip(group, self._layers.forward([pieces[text] for text in group]), strict=True)

    @cached_property
    def _layers(self) -> Transformer:
        return Transformer(self.files, self.files.read_weights())

    def _finish(self, vectors: Singles) -> Singles:
        if self.files.normalized:
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            vectors = vectors / np.maximum(lengths, np.float32(1e-12))[:, None]
        return vectors


class SentenceVectors:
    """The vectors of texts by one encoder: unless one is given that of the shipped judges, found when it is first used.

    The vectors of the texts that it met last are kept: systems share contexts and references, and replies are repeated.
    """

    def __init__(self, encoder: Encoder | None = None) -> None:
        self._given = encoder
        self._kept: dict[tuple[str, bool | None], Singles] = {}

    def __reduce__(self) -> tuple[type[SentenceVectors], tuple[Encoder | None]]:
        return type(self), (self._given,)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder itself."""
        return Encoder(find_encoder()) if self._given is None else self._given

    @property
    def digest(self) -> str:
        """What its vectors depend on, after its name."""
        return f"{self.encoder.name}@{self.encoder.digest}"

    def of(self, texts: Sequence[str], ends: bool = False) -> Singles:
        """Return one row per text; see `Encoder.encode`."""
        rows = self._look_up(texts, ends, partial(self.encoder.encode, ends=ends))
        return np.array(rows, np.float32).reshape(len(texts), self.encoder.dimension)

    def encode_tokens(self, texts: Sequence[str]) -> list[Singles]:
        """Return what `Encoder.encode_tokens` returns, each different text being encoded once."""
        return self._look_up(texts, None, self.encoder.encode_tokens)

    def _look_up(
        self, texts: Sequence[str], part: bool | None, encode: Callable[[Sequence[str]], Iterable[Singles]]
    ) -> list[Singles]:
        kept = self._kept  # never changed, only replaced: threads share it
        new = [text for text in dict.fromkeys(texts) if (text, part) not in kept]
        encoded = kept | dict(zip(((text, part) for text in new), encode(new), strict=True))
        found = [encoded[text, part] for text in texts]
        choices = [encoded, {(text, part): vectors for text, vectors in zip(texts, found, strict=True)}, {}]
        self._kept = next(choice for choice in choices if sum(map(np.size, choice.values())) <= MOST_KEPT)
        return found


def group_texts(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of the texts that are encoded together, shortest texts first."""
    group: list[int] = []
    filled = 0
    for text in np.argsort(lengths, kind="stable").tolist():
        if group and filled + lengths[text] > TOGETHER:
            yield group
            group, filled = [], 0
        group.append(text)
        filled += lengths[text]
    if group:
        yield group


def find_row_step(weights: Sequence[Singles]) -> int:
    """Return by how many rows a row can be moved in its tile without any change of its product with a weight.

    This is 1 with AVX-512. The float32 product of OpenBLAS for AVX2 takes sums in one order for six rows and in another
    one for the next six. Which it is, is seen in products of tiles that have the same row everywhere.
    """
    step, dice = 1, np.random.default_rng(0)
    for weight in weights:
        for row in dice.normal(size=(_PROBES, len(weight))).astype(np.float32):
            product = np.tile(row, (TILE, 1)) @ weight
            while not (product[step:] == product[:-step]).all():
                step = next(more for more in range(step + 1, TILE + 1) if TILE % more == 0)
                if step == TILE:
                    return step
    return step


class Transformer:
    """The weights, laid out for row vectors, and the forward pass over a group of texts."""

    def __init__(self, files: EncoderFiles, weights: TransformerWeights) -> None:
        self.heads, self.epsilon = files.config.num_attention_heads, np.float32(files.config.layer_norm_eps)
        self.words, self.positions = weights.words, weights.positions
        self.second, self.norm = weights.second, weights.norm
        # Matrices are multiplied by rows from the left; the weight of a normalization stays as it is.
        self.layers = [
            {name: (np.ascontiguousarray(weight.T), bias) for name, (weight, bias) in layer.items()}
            for layer in weights.layers
        ]
        first = self.layers[:1]  # there may be none
        self.step = find_row_step([layer[name][0] for layer in first for name in ("qkv", "out", "up", "down")])

    def forward(
        self,
        pieces: Sequence[npt.NDArray[Any]],
        seconds: Sequence[int] | None = None,
        kept: Sequence[Ints] | None = None,
    ) -> list[Singles]:
        """Return by text the last layer's vectors of its tokens, or only of the tokens whose numbers are `kept`.

        `seconds` says of each text how many tokens at its end are of the second token type. Texts of one length should
        stand together.
        """
        lengths = [len(ids) for ids in pieces]
        starts, size = self._place_texts(lengths)
        rows: Singles = np.zeros((size, self.words.shape[1]), np.float32)
        places: Singles = np.zeros_like(rows)
        taken = _number_rows(starts, list(map(np.arange, lengths)))
        rows[taken] = self.words[np.concatenate(pieces)]
        places[taken] = self.positions[np.concatenate(list(map(np.arange, lengths)))]
        if seconds is not None:
            for start, length, many in zip(starts, lengths, seconds, strict=True):
                places[start + length - many : start + length] += self.second
        nothing: Singles = np.zeros(rows.shape[1], np.float32)
        add_and_normalize(rows, places, nothing, *self.norm, self.epsilon)
        mixed: Singles = np.zeros_like(rows)
        qkv: Singles = np.empty((size, 3 * rows.shape[1]), np.float32)
        for layer in self.layers:
            weight, bias = layer["qkv"]
            for start in range(0, size, TILE):
                tile = qkv[start : start + TILE]
                np.matmul(rows[start : start + TILE], weight, out=tile)
                tile += bias
            self._attend(qkv, starts, lengths, mixed)
            if kept is not None and layer is self.layers[-1]:
                # No token is read by others from here on.
                taken, lengths = _number_rows(starts, kept), list(map(len, kept))
                starts, size = self._place_texts(lengths)
                rows, mixed = (self._move(side, taken, starts, lengths, size) for side in (rows, mixed))
            for start in range(0, size, TILE):
                self._transform(layer, rows[start : start + TILE], mixed[start : start + TILE])
        return [rows[start : start + length] for start, length in zip(starts, lengths, strict=True)]

    def _place_texts(self, lengths: Sequence[int]) -> tuple[list[int], int]:
        """Return where each text begins among the rows, and the number of rows: whole tiles."""
        ends = np.cumsum([0, *(-(-length // self.step) * self.step for length in lengths)]).tolist()
        return ends[:-1], -(-ends[-1] // TILE) * TILE

    @staticmethod
    def _move(rows: Singles, taken: Ints, starts: Sequence[int], lengths: Sequence[int], size: int) -> Singles:
        """Copy some rows to their new places, among zeros."""
        moved: Singles = np.zeros((size, rows.shape[1]), np.float32)
        moved[_number_rows(starts, list(map(np.arange, lengths)))] = rows[taken]
        return moved

    def _transform(self, layer: Mapping[str, Part], rows: Singles, mixed: Singles) -> None:
        """Apply to each row of a tile what a layer does after its attention, in place."""
        weight, bias = layer["out"]
        add_and_normalize(rows, mixed @ weight, bias, *layer["norm"], self.epsilon)
        weight, bias = layer["up"]
        inner: Singles = rows @ weight
        gelu(inner, bias)
        weight, bias = layer["down"]
        add_and_normalize(rows, inner @ weight, bias, *layer["last_norm"], self.epsilon)

    def _attend(self, qkv: Singles, starts: Sequence[int], lengths: Sequence[int], mixed: Singles) -> None:
        """Write the attention of each token to those of its text into `mixed`; texts of one length at once."""
        width = qkv.shape[1] // 3
        size = width // self.heads
        scale = np.float32(1 / np.sqrt(size))
        text = 0
        while text < len(lengths):
            length, start = lengths[text], starts[text]
            many = next((n for n, other in enumerate(lengths[text:]) if other != length), len(lengths) - text)
            stride = -(-length // self.step) * self.step
            stop = start + many * stride
            split = qkv[start:stop].reshape(many, stride, 3, self.heads, size)[:, :length]
            queries, keys, values = (np.ascontiguousarray(split[:, :, part].swapaxes(1, 2)) for part in range(3))
            scores = (queries @ np.ascontiguousarray(keys.swapaxes(2, 3))) * scale
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            read = mixed[start:stop].reshape(many, stride, self.heads, size)
            read[:, :length] = (scores @ values).swapaxes(1, 2)
            text += many


def _number_rows(starts: Sequence[int], chosen: Sequence[Ints]) -> Ints:
    """Return the rows of tokens that are given by their number in their text."""
    return np.concatenate([start + numbers for start, numbers in zip(starts, chosen, strict=True)])
