"""Make the judges that ship with the package:

    python tools/make_checkpoint.py RATINGS [OUTPUT]                          that of `adem`
    python tools/make_checkpoint.py judge CORPORA RATINGS [DEVICE [WORK]]     that of `judge`

RATINGS is a folder of rated sets by name (`NAME.jsonl.gz`), CORPORA one of dialogues (`NAME/*.jsonl.gz`). Trained on
are only those whose licence is stated and permits it; the others are for validation.

The files of `adem` come out the same, bit for bit, on every x86-64 processor with AVX2: the program starts itself again
with one thread and with the instructions that all of them have, so that sums of floats are taken in one order.

`judge` takes a quarter of an hour on a GPU (DEVICE cuda, the default). What is done is kept in the folder WORK
(build/judge), and the same command goes on from there. On a GPU sums have no fixed order, so the weights come out
nearly the same, not bit for bit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

TRAINED = {
    "dstc7_reddit": "O-UDA 1.0",
    "engage_dailydialog": "MIT",
    "ddpp_dev": "MIT",
}
TESTED = (
    "usr_topicalchat",
    "grade_convai2",
    "grade_empathetic",
    "zhao_dailydialog",
    "gupta_dailydialog",
    "humod_test",
    "llmeval_dailydialog",
)
CORPORA = {
    "ddpp_positives": "MIT",
    "self_dialogue": "BSD-3-Clause",
    "star": "MIT",
    "synthetic_persona_chat": "CC BY 4.0",
    "topicalchat": "CDLA-Sharing 1.0",
}
JUDGE_TRAINED = {"conture": "CC BY 4.0", "dbdc3_dev": "MIT", "engage_dailydialog": "MIT"}
JUDGE_TESTED = (*TESTED, "convai2_thumbs", "ddpp_dev", "abc_eval")
ATTACKED = "dailydialog/test.jsonl.gz"
"""Dialogues of people that were not trained on; their replies are attacked."""
TITLE = "The judge of dialogue responses that ships with dialeval"
SAME_EVERYWHERE = {
    "OPENBLAS_CORETYPE": "HASWELL",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}
HERE = Path(__file__).resolve().parents[1]
SHIPPED = HERE / "src" / "dialeval" / "metrics" / "learned" / "checkpoints" / "dialogue"


def main() -> None:
    """Make one of them; for `adem`, start again with the same instructions as everywhere."""
    if sys.argv[1] == "judge":
        _make_judge(*sys.argv[2:])
        return
    if any(os.environ.get(name) != value for name, value in SAME_EVERYWHERE.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SAME_EVERYWHERE})
    import warnings

    # Where a processor lacks what is switched off, NumPy remarks on it.
    warnings.filterwarnings("ignore", category=ImportWarning)
    import tempfile

    ratings = Path(sys.argv[1])
    output = Path(sys.argv[2]) if len(sys.argv) > 2 else SHIPPED
    with tempfile.TemporaryDirectory() as fresh:
        # Vectors that another processor left in the cache may differ in the last bit.
        os.environ["DIALEVAL_CACHE"] = os.environ.get("CHECKPOINT_CACHE", fresh)
        _make(ratings, output)


def _make(ratings: Path, output: Path) -> None:
    from dialeval.adem import train

    card = train(
        [ratings / f"{name}.jsonl.gz" for name in TRAINED],
        [ratings / f"{name}.jsonl.gz" for name in TESTED],
        licences=TRAINED,
        command="python tools/make_checkpoint.py RATINGS_FOLDER",
        title=TITLE,
    )
    card.save(output)
    sys.stdout.write(card.text())


def _make_judge(corpora: str, ratings: str, device: str = "cuda", work: str | None = None) -> None:
    from dialeval.analysis.dialogue_judges import make_dialogue_judge
    from dialeval.metrics.learned import dialogue_judge
    from dialeval.reports.dialogue_judge_card import save_card

    made = make_dialogue_judge(
        [file for name in CORPORA for file in sorted(Path(corpora, name).glob("*.jsonl.gz"))],
        [Path(ratings, f"{name}.jsonl.gz") for name in JUDGE_TRAINED],
        Path(work) if work else HERE / "build" / "judge",
        tests=[Path(ratings, f"{name}.jsonl.gz") for name in JUDGE_TESTED],
        attacked=[Path(corpora, ATTACKED)],
        breakdown="dbdc3_dev",
        device=device,
        licences=CORPORA | JUDGE_TRAINED,
        log=print,
        command="python tools/make_checkpoint.py judge CORPORA RATINGS",
    )
    made.save(dialogue_judge.SHIPPED)
    print(save_card(dialogue_judge.SHIPPED, TITLE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
