"""Measure the judges on a GPU, and try the further training of the encoder of `adem`.

    python tools/measure_gpu.py judge CORPORA_FOLDER [REPLIES]
    python tools/measure_gpu.py RATINGS_FOLDER CORPORA_FOLDER ENCODER_FOLDER OUTPUT.json [PAIRS]

The first prints how many replies a second the shipped `judge` judges, each with the three turns before it.

The second is about `adem`. It prints, and writes as JSON: texts and replies per second in float32 and bfloat16,
tokenising included; and for the encoder as it is and after every variant of fine-tuning, Spearman's rho of `identity`
and `adem` on each rated set, left out of the fit as `dialeval adem train` leaves it out, and the correlation of scores
of reversed replies with those of the real ones. Dialogues that share a turn of five words or more with a rated row are
not trained on.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.core.arrays import Floats
from dialeval.data.rows.ratings import Ratings, read_ratings
from dialeval.metrics.learned import dialogue_judge
from dialeval.metrics.learned.attack import attack
from dialeval.metrics.learned.cross_weights import encoder_weights
from dialeval.metrics.learned.dialogue_judge import load_judge
from dialeval.metrics.learned.judge import SHIPPED, Judge
from dialeval.metrics.learned.pairs import PairTokeniser, rated_pairs
from dialeval.metrics.learned.torch_encoder import TorchEncoder
from dialeval.metrics.learned.training.candidates import Corpus
from dialeval.metrics.learned.training.cross_model import CrossModel
from dialeval.metrics.learned.training.cross_training import heads
from dialeval.metrics.learned.training.examples import examples_of
from dialeval.metrics.learned.training.finetuning import FineTuning, Pairs, fine_tune, pairs_of
from dialeval.metrics.learned.training.fitting import AdemSettings, fit_adem, fit_identity
from dialeval.metrics.learned.weights import load
from dialeval.resources.encoder_files import EncoderFiles, find_encoder
from dialeval.resources.sentence_vectors import SentenceVectors

TRAINED = ("dstc7_reddit", "engage_dailydialog", "ddpp_dev")
TESTED = (
    "usr_topicalchat",
    "grade_convai2",
    "grade_empathetic",
    "zhao_dailydialog",
    "gupta_dailydialog",
    "humod_test",
    "engage_dailydialog",
    "llmeval_dailydialog",
    "dstc7_reddit",
)
VARIANTS = {
    "random": FineTuning(epochs=1, shuffled=False, share=1),
    "random, three epochs": FineTuning(shuffled=False, share=1),
    "random and same dialogue": FineTuning(epochs=1, shuffled=False, same_dialogue=True, share=1),
    "random and shuffled": FineTuning(epochs=1, share=1),
    "random and shuffled, three epochs": FineTuning(share=1),
    "random, same dialogue and shuffled": FineTuning(epochs=1, same_dialogue=True, share=1),
    "random, same dialogue and shuffled, three epochs": FineTuning(same_dialogue=True, share=1),
}
SHARES = (0.3, 0.6, 1.0)
"""How far from the original weights to the fine-tuned ones the tried encoder lies."""


def plain(text: str) -> str:
    """The words alone, for comparison."""
    return re.sub(r"\W+", " ", text.lower()).strip()


def dialogues(corpora: Path, rated: Ratings) -> Iterator[list[str]]:
    """The dialogues of all corpora, without those that a rated row is taken from."""
    columns = (*rated.contexts, *rated.references, list(rated.responses))
    seen = {key for texts in columns for text in texts if len((key := plain(text)).split()) >= 5}
    return (turns for turns in _turns(corpora) if not any(plain(turn) in seen for turn in turns))


def _turns(corpora: Path) -> Iterator[list[str]]:
    for file in sorted(corpora.rglob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["turns"]


def spearman(one: Floats, other: Floats) -> float:
    """Spearman's rho; the script runs where no compiler is."""

    def ranks(values: Floats) -> Floats:
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[inverse]

    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def speed(files: EncoderFiles, pairs: Pairs, device: str) -> dict[str, float]:
    """Replies per second from texts to scores, each with a context and a reference of its own."""
    many = min(len(pairs), 200_000 if device == "cuda" else 200)
    contexts = [[text] for text in pairs.contexts[:many]]
    responses, references = list(pairs.replies[:many]), [[text] for text in pairs.others[:many]]
    distinct = len({*pairs.contexts[:many]}) + len({*responses}) + len({text for texts in references for text in texts})
    weights = replace(load(SHIPPED), encoder_digest="")  # whatever the encoder, the formula takes as long
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        judge = Judge(weights, SentenceVectors(TorchEncoder(files, device=device, dtype=dtype), keep=False))
        judge.score(contexts[:2000], responses[:2000], references[:2000])
        start = time.perf_counter()
        judge.score(contexts, responses, references)
        seconds = time.perf_counter() - start
        name = str(dtype).removeprefix("torch.")
        found[f"replies per second, {name}"] = many / seconds
        found[f"distinct texts per second, {name}"] = distinct / seconds
    return found


def judge_speed(corpora: Path, most: int, device: str) -> dict[str, float]:
    """Replies of dialogues per second by the shipped judge, from texts to what its heads say, and from word pieces."""
    weights = load_judge(dialogue_judge.SHIPPED)
    files = find_encoder(weights.encoder)
    base, tokeniser = encoder_weights(files), PairTokeniser(files)
    model = CrossModel(base, files.config.num_attention_heads, files.config.layer_norm_eps).to(device)
    model.load(base, weights.changes)
    every = (turns[at - 3 : at + 1] for turns in _turns(corpora) for at in range(3, len(turns)))
    rows = list(islice(every, most))
    marks, going_on = (tokeniser.first, tokeniser.end), tokeniser.continuations()

    def judged(rows: Sequence[Sequence[str]]) -> float:
        """Judge all, and give the seconds that it took behind the tokeniser."""
        pairs = rated_pairs(tokeniser, [row[:-1] for row in rows], [row[-1] for row in rows])
        corpus = Corpus(pairs, weights.shape, marks, going_on, device)
        start = time.perf_counter()
        heads(model, corpus, np.arange(len(rows)))
        return time.perf_counter() - start

    judged(rows[:4000])
    start = time.perf_counter()
    alone = judged(rows)
    whole = time.perf_counter() - start
    return {
        "replies": len(rows),
        "words of a reply": float(np.mean([len(row[-1].split()) for row in rows])),
        "replies per second": len(rows) / whole,
        "replies per second, without the tokeniser": len(rows) / alone,
    }


def quality(encoder: TorchEncoder, rated: Ratings) -> dict[str, Any]:
    """Spearman's rho on every tested set, left out of the fit; and what reversing the words does."""
    vectors = SentenceVectors(encoder, keep=False)
    examples = examples_of(rated, vectors)
    known = examples.of_sets(TRAINED)
    found: dict[str, Any] = {"identity": {}, "adem": {}, "reversed": {}}
    fits: dict[bytes, Any] = {}
    for name in TESTED:
        test = examples.of_sets([name])
        test = test.take(test.has_reference)
        others = known.take(known.sets != examples.names.index(name)).without(test)
        key = np.packbits(np.isin(known.rows, others.rows)).tobytes()
        if key not in fits:
            fits[key] = fit_identity(others), fit_adem(others, AdemSettings())
        for kind, weights in zip(("identity", "adem"), fits[key], strict=True):
            scores = weights.score(test)
            found[kind][name] = round(spearman(scores, test.scores), 4)
    for kind in ("identity", "adem"):
        found[kind]["mean"] = round(float(np.mean(list(found[kind].values()))), 4)
    some = rated.take(np.array([name in TESTED[:6] for name in rated.datasets]))
    some = some.take(np.random.default_rng(0).permutation(len(some))[:500])
    whole = fit_adem(known, AdemSettings())
    for each in attack(Judge(whole, vectors), some.contexts, some.responses, some.references):
        figures = each.real, each.mean, each.not_worse, each.correlation
        found["reversed"][each.name] = [round(figure, 3) for figure in figures]
    return found


def between(encoder: TorchEncoder, before: dict[str, Any], share: float) -> None:
    """Move the encoder back towards its original weights."""
    after = encoder.model.state_dict()
    encoder.model.load_state_dict({name: torch.lerp(before[name], after[name], share) for name in after})


def main(arguments: Sequence[str]) -> None:
    """Measure everything, and write what is known after each step."""
    if arguments[0] == "judge":
        device = "cuda" if torch.cuda.is_available() else "cpu"
        many = int(arguments[2]) if len(arguments) > 2 else 200_000
        for name, figure in judge_speed(Path(arguments[1]), many, device).items():
            sys.stdout.write(f"{name}: {figure:,.1f}\n")
        return
    ratings, corpora, folder, output = map(Path, arguments[:4])
    most = int(arguments[4]) if len(arguments) > 4 else 1_000_000
    device = "cuda" if torch.cuda.is_available() else "cpu"
    names = dict.fromkeys((*TRAINED, *TESTED))
    rated = read_ratings([ratings / f"{name}.jsonl.gz" for name in names])
    if most < 10_000:  # a trial of the script itself
        rated = rated.take(np.random.default_rng(0).permutation(len(rated))[:1500])
    files = find_encoder(folder)
    pairs = pairs_of(dialogues(corpora, rated))
    pairs = pairs.take(np.random.default_rng(0).permutation(len(pairs))[:most])
    results: dict[str, Any] = {
        "pairs": len(pairs),
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
    }

    def report(name: str, value: Any) -> None:
        results[name] = value
        sys.stdout.write(f"{name} {json.dumps(value)}\n")
        sys.stdout.flush()
        output.write_text(json.dumps(results, indent=1))

    report("speed", speed(files, pairs, device))
    encoder = TorchEncoder(files, device=device, dtype=torch.float32)
    original = deepcopy(encoder.model.state_dict())
    report("original", quality(encoder, rated))
    for name, settings in VARIANTS.items():
        encoder.model.load_state_dict(original)
        start = time.perf_counter()
        losses = fine_tune(encoder, pairs, settings)
        report(f"{name}: losses", [*(round(loss, 4) for loss in losses), round(time.perf_counter() - start, 1)])
        tuned = deepcopy(encoder.model.state_dict())
        for share in SHARES:
            encoder.model.load_state_dict(tuned)
            between(encoder, original, share)
            report(f"{name}, share {share}", quality(encoder, rated))


if __name__ == "__main__":
    main(sys.argv[1:])
