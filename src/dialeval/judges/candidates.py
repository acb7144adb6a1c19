"""Candidates: for a context the true response and others that a judge must like less, made on the device by indexing.

For each pair: the response itself, some responses to other contexts (most of them of the same corpus), an echo (a turn
of the context, or its second half), and a broken copy of the response: words shuffled, reversed, left out, or
neighbors swapped, pieces repeated, the first half said twice. What comes out equal to the true response is no
candidate.

Everything drawn depends on the seed and the number of the step alone, so that a run can be cut anywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dialeval.core.arrays import Ints
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.io.judge_settings import PairShape
from dialeval.judges.cross_encoder import Pairs
from dialeval.judges.torch_encoder import Batch

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

    def batch(self, rows: Tensor) -> Batch:
        """Return pairs as they are, each a sequence."""
        return self._packed(rows, *self._texts(self.responses[rows]))

    def candidates(self, rows: Tensor, dice: torch.Generator) -> tuple[Batch, Tensor, Tensor]:
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

    def _packed(self, rows: Tensor, texts: Tensor, counts: Tensor) -> Batch:
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
        return Batch(ids, places, second, owner, bounds, longest)

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
