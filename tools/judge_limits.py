"""Print how far the shipped judge agrees with people outside of what it was validated on (docs/judge-card.md).

    python tools/judge_limits.py [DATA]

DATA is the folder of public data sets, ../shared/data unless given. Two tables:

- `llm_pairs`, `pandalm_pairs`: pairs of answers by large models of which people preferred one. How often the judge
  scores that one higher, and how often it is the longer one (ties count a half), with the standard error; over all
  pairs, and over those with at least one answer that `is_outside` finds.
- DBDC3, English test sets: the share of annotators who saw no breakdown against what the judge says, by set. The slope
  is that of least squares; 1 for a calibrated share.
"""

from __future__ import annotations

import gzip
import json
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.judges.judge import DialogueJudge, Verdicts, is_outside

PAIRS = ("llm_pairs", "pandalm_pairs")
CHALLENGE = ("en-IRIS_50", "en-CIC_50-revised", "en-YI_50-revised")


def judge_texts(contexts: Sequence[Sequence[str]], responses: Sequence[str]) -> Verdicts:
    """Return what the shipped judge says of responses without references."""
    return DialogueJudge().verdicts(contexts, responses, [()] * len(responses))


def read_pairs(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the pairs of which people preferred one answer, that one first."""
    pairs: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            pairs.setdefault(row["pair_id"], []).append(row)
    for pair in pairs.values():
        ahead, behind = sorted(pair, key=lambda row: -float(np.mean(row["scores"]["overall"])))
        if np.mean(ahead["scores"]["overall"]) > np.mean(behind["scores"]["overall"]):
            yield ahead, behind


def show_rate(differences: Floats) -> str:
    """Print how often a difference is in favor of the preferred answer, with the standard error."""
    wins = np.where(differences == 0, 0.5, differences > 0)
    return f"{100 * wins.mean():.1f} ({100 * wins.std() / np.sqrt(len(wins)):.1f})"


def preference_lines(data: Path) -> Iterator[str]:
    """Yield the table of pairs."""
    yield "| set | pairs | outside | judge | longer | pairs outside | judge | longer |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name in PAIRS:
        pairs = list(read_pairs(data / "ratings" / f"{name}.jsonl.gz"))
        rows = [row for pair in pairs for row in pair]
        texts = [row["response"] for row in rows]
        scores = judge_texts([[turn["text"] for turn in row["context"]] for row in rows], texts).score
        outside = np.array([is_outside(text) for text in texts])
        words = np.array([float(len(text.split())) for text in texts])
        judged, longer = (values[::2] - values[1::2] for values in (scores, words))
        there = outside[::2] | outside[1::2]
        cells = [str(len(pairs)), f"{100 * outside.mean():.0f}%", show_rate(judged), show_rate(longer)]
        cells += [str(int(there.sum())), show_rate(judged[there]), show_rate(longer[there])]
        yield f"| {name} | {' | '.join(cells)} |"


def read_turns(path: Path) -> Iterator[tuple[list[str], str, float]]:
    """Yield the annotated turns of a set of the challenge: context, response, and the share of O."""
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.name.endswith(".log.json"):
                continue
            file = archive.extractfile(member)
            turns = json.load(file)["turns"] if file is not None else []
            for number, turn in enumerate(turns):
                labels = [each["breakdown"] for each in turn.get("annotations", ())]
                if turn["speaker"] == "S" and labels and number:
                    before = [each["utterance"] for each in turns[:number]]
                    yield before, turn["utterance"], labels.count("O") / len(labels)


def calibration_lines(data: Path) -> Iterator[str]:
    """Yield the table of breakdowns."""
    yield "| set | turns | proportion of O | predicted | 5% to 95% of predictions | slope | correlation |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    found: dict[str, tuple[Floats, Floats]] = {}
    for name in CHALLENGE:
        contexts, responses, shares = zip(*read_turns(data / "dbdc" / f"{name}.tar.gz"), strict=True)
        found[name] = np.array(shares), judge_texts(contexts, responses).breakdown[:, 0]
    every, judged = zip(*found.values(), strict=True)
    found["all"] = np.concatenate(every), np.concatenate(judged)
    for name, (true, said) in found.items():
        low, high = np.quantile(said, [0.05, 0.95])
        r = np.corrcoef(true, said)[0, 1]
        slope = r * true.std() / said.std()
        means = f"{true.mean():.2f} | {said.mean():.2f} | {low:.2f} to {high:.2f}"
        yield f"| {name} | {len(true)} | {means} | {slope:.1f} | {r:.2f} |"


def main() -> None:
    """Print both tables."""
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent.parent / "shared" / "data"
    print("\n".join([*preference_lines(data), ""]), flush=True)
    print("\n".join(calibration_lines(data)))


if __name__ == "__main__":
    main()
