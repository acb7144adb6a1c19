"""Print how far a language model agrees with people as a judge (docs/llm-judges.md).

    python tools/measure_llm_judge.py MODEL --endpoint ADDRESS [--pairs N] [--rows N] [--minutes M] [--data FOLDER]
    python tools/measure_llm_judge.py MODEL --answers FILE

Three public sets, of which a random part is asked about, in the same order for every model:

- `llm_pairs`, `pandalm_pairs`: pairs of answers by large models. How often the model prefers what most people prefer,
  asked in both orders, a tie counting a half; next to it the rule that the longer answer is better, and `judge`.
- `usr_topicalchat`: Spearman's rho of expected grades with the mean human rating, next to `judge` and the length.

Intervals are over dialogues. Asking stops after so many minutes per set; answers are recorded, so that the same command
goes on from there. The second form asks nobody: it uses answers that were recorded.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.analysis.labels import PairAgreement, measure_pair_agreement
from dialeval.core.arrays import Floats
from dialeval.io.ratings import length_ratio
from dialeval.judges.judge import DialogueJudge
from dialeval.judges.llm.judge import LLM
from dialeval.judges.llm.metric import label_texts
from dialeval.judges.llm.pairs import PairTexts, judge_pairs
from dialeval.judges.llm.rubrics import read_rubric
from dialeval.stats.correlation import Points
from dialeval.stats.resampling import FISHER, jackknife, leave_out_clusters

SEED = 12345


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a set of ratings."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_pairs(path: Path) -> list[PairTexts]:
    """Read the pairs of which most people prefer one, in a random order of pairs and of sides."""
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for row in read_rows(path):
        by_pair.setdefault(row["pair_id"], []).append(row)
    rng = np.random.default_rng(SEED)
    found = []
    for name in rng.permutation(sorted(by_pair)).tolist():
        one, two = (by_pair[name][side] for side in rng.permutation(2).tolist())
        human = int(np.sign(np.mean(one["scores"]["overall"]) - np.mean(two["scores"]["overall"])))
        texts = {"response_a": one["response"], "response_b": two["response"], "dialogue": name}
        if human:
            context = [turn["text"] for turn in one["context"]]
            found.append(PairTexts(a="one", b="two", context=context, human=human, **texts))
    return found


def prefer(pairs: list[PairTexts]) -> Floats:
    """Return what the shipped judge prefers."""
    contexts = [pair.context for pair in pairs]
    one, two = (
        DialogueJudge().score(contexts, [getattr(pair, side) for pair in pairs], [()] * len(pairs))
        for side in ("response_a", "response_b")
    )
    return np.sign(one - two)


def show(rate: Any) -> str:
    """Return a fraction in percent with its interval."""
    return f"{100 * rate.value:.1f} [{100 * rate.interval[0]:.1f}, {100 * rate.interval[1]:.1f}]"


def measure_pairs(llm: LLM, name: str, data: Path, number: int, minutes: float) -> None:
    """Print the line of a set of pairs."""
    pairs, start = read_pairs(data / "ratings" / f"{name}.jsonl.gz")[:number], time.monotonic()
    asked = 0
    while asked < len(pairs) and time.monotonic() - start < 60 * minutes:
        asked = min(asked + 4, len(pairs))
        judge_pairs(llm, pairs[asked - 4 : asked])
    pairs = pairs[:asked]
    found = judge_pairs(llm, pairs)
    judged: PairAgreement | None = found.agreement
    ratios = np.array([length_ratio(pair.response_a, pair.response_b) for pair in pairs])
    human = np.array([pair.human or 0 for pair in pairs])
    shipped = measure_pair_agreement(human, prefer(pairs), ratios, np.arange(len(pairs)))
    if judged is None or found.flips is None:
        print(f"| {name} | {len(pairs)} | no verdicts: {dict(found.missing)} |")
        return
    cells = [show(judged.judge), show(found.flips), show(shipped.judge), show(shipped.longer)]
    print(f"| {name} | {judged.pairs} | {' | '.join(cells)} |", flush=True)


def correlate(values: Floats, human: Floats, dialogues: np.ndarray) -> str:
    """Return Spearman's rho with its interval."""
    there = ~np.isnan(values)
    clusters = np.unique(dialogues[there], return_inverse=True)[1].ravel()
    points = Points(values[there], human[there], clusters)
    without = np.concatenate(
        [points.correlate_resamples(counts) for counts in leave_out_clusters(int(clusters.max()) + 1)]
    )[:, 1]
    rho = float(points.correlate()[1])
    low, high = jackknife(rho, without, np.bincount(clusters).astype(np.float64), FISHER).interval(0.95)
    return f"{rho:.2f} [{low:.2f}, {high:.2f}]"


def measure_grades(llm: LLM, data: Path, number: int, minutes: float) -> None:
    """Print the line of a set of rated replies."""
    rows = read_rows(data / "ratings" / "usr_topicalchat.jsonl.gz")
    order = np.random.default_rng(SEED).permutation(len(rows))[:number].tolist()
    rows, start = [rows[at] for at in order], time.monotonic()
    contexts = [[turn["text"] for turn in row["context"]] for row in rows]
    replies = [row["response"] for row in rows]
    texts = [label_texts("reply", context, reply) for context, reply in zip(contexts, replies, strict=True)]
    grades: list[Any] = []
    while len(grades) < len(rows) and time.monotonic() - start < 60 * minutes:
        with llm:
            grades += llm.grade(read_rubric("reply"), texts[len(grades) : len(grades) + 4], "expected")
    asked = len(grades)
    values = np.array([each.values.get("quality", np.nan) for each in grades])
    human = np.array([np.mean(row["scores"]["overall"]) for row in rows[:asked]])
    dialogues = np.array([row["dialog_id"] for row in rows[:asked]])
    shipped = DialogueJudge().score(contexts[:asked], replies[:asked], [()] * asked)
    words = np.array([float(len(reply.split())) for reply in replies[:asked]])
    cells = [correlate(column, human, dialogues) for column in (values, shipped, words)]
    missing = int(np.isnan(values).sum())
    print(f"| usr_topicalchat | {asked - missing} ({missing} without a grade) | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--endpoint")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=10_000.0)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--data", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "data")
    given = parser.parse_args()
    source = {"cache": given.answers, "replay": given.answers is not None}
    llm = LLM(given.endpoint, given.model, concurrency=given.concurrency, timeout=600.0, least_mass=0.0, **source)
    print("| replies | rows | Spearman of the model | of `judge` | of the length |\n|---|---|---|---|---|")
    measure_grades(llm, given.data, given.rows, given.minutes)
    print("\n| pairs | n | model, both orders | order flips | `judge` | longer |\n|---|---|---|---|---|---|")
    for name in ("llm_pairs", "pandalm_pairs"):
        measure_pairs(llm, name, given.data, given.pairs, given.minutes)


if __name__ == "__main__":
    main()
