"""ADEM: what people would say of a response, on the scale 1 to 5, by a judge that learned it from ratings.

    adem = (c' M r^ + r' N r^ + w' r^ - alpha) / beta        clipped to 1 .. 5

c, r, r^ are sentence vectors of the context's last three turns, of the reference and of the response; M and N are near
the identity, so that the terms are close to cosines, moved towards what raters prefer (see `weights`, `fitting`). Of
several references the closest one counts. The judge that ships with the package needs no PyTorch; `dialeval adem train`
fits another one to your ratings, which `--judge FOLDER` then uses.

What it is good for: ordering systems and finding bad responses among many. What it is not: a judge of word order. A
response read backwards keeps nearly its score. The model card beside the weights says how often and how badly it errs.

Paper: Lowe et al. 2017, "Towards an Automatic Turing Test: Learning to Evaluate Dialogue Responses", ACL.

Edge cases: without a reference the context's term alone counts (C-ADEM), without a context the reference's; with
neither a row is not scored. An empty response is scored as any text. Differences from the original: a frozen sentence
encoder instead of a recurrent one trained on the task; ridge towards the identity instead of L1; see docs/adem.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.fold import RowMetric
from dialeval.core.needs import Need


@dataclass(frozen=True)
class Adem(RowMetric):
    """A learned judgement of the response by context and reference, from 1 to 5."""

    family = "adem"
    presets = {"adem": {}}
    needs = frozenset({Need.RESPONSE, Need.JUDGE})
    one_of = frozenset({Need.REFERENCE, Need.CONTEXT})
    costly = True
    device = True
    better = "higher"
    bounds = (1.0, 5.0)

    @property
    def wants(self) -> frozenset[Need]:
        return frozenset({Need.REFERENCE, Need.CONTEXT})

    def score(self, batch: Batch) -> Floats:
        judge = batch.resource(Need.JUDGE)
        responses = list(batch.texts(Need.RESPONSE))
        none = [()] * len(responses)
        contexts = list(batch.contexts().last(judge.turns)) if batch.has(Need.CONTEXT) else none
        references = list(batch.lists(Need.REFERENCE)) if batch.has(Need.REFERENCE) else none
        scores: Floats = judge.score(contexts, responses, references)
        return scores
