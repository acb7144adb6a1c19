"""Make the judge that ships with the package: `python tools/make_checkpoint.py RATINGS_FOLDER [OUTPUT]`.

RATINGS_FOLDER holds the rated sets by name (`NAME.jsonl.gz`). Trained on are only those whose licence is stated and
permits it; the others are for validation. The files come out the same, bit for bit, on every x86-64 processor with
AVX2: the program starts itself again with one thread and with the instructions that all of them have, so that sums of
floats are taken in one order.
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
    """Start again with the same instructions as everywhere, then train."""
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
        title="The judge of dialogue responses that ships with dialeval",
    )
    card.save(output)
    sys.stdout.write(card.text())


if __name__ == "__main__":
    main()
