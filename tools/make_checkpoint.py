"""Make the judges that ship with the package:

    python tools/make_checkpoint.py RATINGS [OUTPUT]                                             that of `adem`
    python tools/make_checkpoint.py judge CORPORA RATINGS [DEVICE [WORK [OUTPUT]]] [NAME=VALUE...]   that of `judge`
    python tools/make_checkpoint.py rows RATINGS              the digests of the rated rows that both were trained on

RATINGS is a folder of rated sets by name (`NAME.jsonl.gz`), CORPORA one of dialogues (`NAME/*.jsonl.gz`). Trained on
are only those whose license is stated and permits it; the others are for validation.

The files of `adem` come out the same, bit for bit, on every x86-64 processor with AVX2: the program starts itself again
with one thread and with the instructions that all of them have, so that sums of floats are taken in one order.

`judge` takes a quarter of an hour on a GPU (DEVICE cuda, the default). What is done is kept in the folder WORK
(build/judge), and the same command goes on from there. On a GPU sums have no fixed order, so the weights come out
nearly the same, not bit for bit. `tools/judge_training` has the recipe. NAME=VALUE are settings of it
(`steps=20 batch_size=8`), to try the program.

`rows` writes a file per judge, `checkpoints/DIGEST.rows` by the digest of its weights: `agreement` and `estimate` look
there for rows that a shipped judge learned from. In the document of a judge (`trained_on`) they would be copied into
every saved run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

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
JUDGE_CHOSEN_BY = ("usr_topicalchat", "grade_convai2", "zhao_dailydialog", "humod_test", "abc_eval")
"""The sets by which the recipe was decided in the end."""
JUDGE_REMARKS = (
    "Sums on a GPU have no fixed order, so another run gives slightly other weights. Attacks: 500 human replies of the "
    "DailyDialog test split, which was not trained on, without references."
)
JUDGE_CHOICES = (
    "Trained on: {trained}; the other sets were never trained on. That corpora count by the root of their size and "
    "that most wrong responses are from the same corpus was decided after short runs, by {many} sets ({chosen}): mean "
    "{own} without references and {own_references} with them. The others: {rest} and {rest_references}. Which rated "
    "sets to train on, and the weights of the parts of a score, were decided earlier with all sets in view, so the "
    "table is a little too good."
)
TITLE = "The judge of dialogue responses that ships with dialeval"
SAME_EVERYWHERE = {
    "OPENBLAS_CORETYPE": "HASWELL",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}
HERE = Path(__file__).resolve().parents[1]
SHIPPED = HERE / "src" / "dialeval" / "judges" / "checkpoints" / "dialogue"


def main() -> None:
    """Make one of them; for `adem`, start again with the same instructions as everywhere."""
    if sys.argv[1] == "judge":
        _make_judge(sys.argv[2:])
        return
    if sys.argv[1] == "rows":
        _write_training_rows(Path(sys.argv[2]))
        return
    if any(os.environ.get(name) != value for name, value in SAME_EVERYWHERE.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SAME_EVERYWHERE})
    import warnings

    # Where a processor lacks what is switched off, NumPy remarks on it.
    warnings.filterwarnings("ignore", category=ImportWarning)
    _make(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else SHIPPED)


def _write_training_rows(ratings: Path) -> None:
    from dialeval.io.ratings import digest_ratings, read_ratings
    from dialeval.judges import adem, judge

    for digest, sets in ((adem.Judge().weights.digest, TRAINED), (judge.DialogueJudge().weights.digest, JUDGE_TRAINED)):
        rows = digest_ratings(read_ratings([ratings / f"{name}.jsonl.gz" for name in sets]))
        (SHIPPED.parent / f"{digest}.rows").write_bytes(b"".join(map(bytes.fromhex, sorted(set(rows)))))


def _make(ratings: Path, output: Path) -> None:
    sys.path.insert(0, str(HERE))
    from tools.judge_training.validation import train_and_validate

    card = train_and_validate(
        [ratings / f"{name}.jsonl.gz" for name in TRAINED],
        [ratings / f"{name}.jsonl.gz" for name in TESTED],
        licenses=TRAINED,
        command="python tools/make_checkpoint.py RATINGS_FOLDER",
        title=TITLE,
    )
    card.save(output)
    sys.stdout.write(card.to_markdown())


def _make_judge(arguments: Sequence[str]) -> None:
    sys.path.insert(0, str(HERE))
    from tools.judge_training.card import card_text
    from tools.judge_training.dialogue_training import make_dialogue_judge

    from dialeval.judges import judge

    places = [argument for argument in arguments if "=" not in argument]
    named = [argument.split("=") for argument in arguments if "=" in argument]
    settings: dict[str, Any] = {name: int(value) for name, value in named}
    corpora, ratings, device, work, output = places + ["cuda", "", ""][len(places) - 2 :]
    made = make_dialogue_judge(
        [file for name in CORPORA for file in sorted(Path(corpora, name).glob("*.jsonl.gz"))],
        [Path(ratings, f"{name}.jsonl.gz") for name in JUDGE_TRAINED],
        work or HERE / "build" / "judge",
        tests=[Path(ratings, f"{name}.jsonl.gz") for name in JUDGE_TESTED],
        attacked=[Path(corpora, ATTACKED)],
        breakdown="dbdc3_dev",
        device=device,
        licenses=CORPORA | JUDGE_TRAINED,
        log=lambda line: print(line, flush=True),
        command="python tools/make_checkpoint.py judge CORPORA RATINGS",
        **settings,
    )
    validation = {**made.facts["validation"], "remarks": _choices(made.facts["validation"])}
    weights = replace(made, facts={**made.facts, "remarks": JUDGE_REMARKS, "validation": validation})
    card = card_text(weights, TITLE)
    weights.save(output or judge.SHIPPED, card)
    print(card)


def _choices(validation: Mapping[str, Any]) -> str:
    """What was decided by which sets, and the means over these and over the others."""
    chosen = [name for name in validation["sets"] if name in JUDGE_CHOSEN_BY]
    rest = [name for name in validation["sets"] if name not in JUDGE_CHOSEN_BY]

    def mean(names: Sequence[str], column: str) -> str:
        rows = [validation["sets"][name] for name in names]
        # In a file NaN is null.
        values = [row.get(column, row["judge"])["spearman"] for row in rows]
        return f"{fmean(value for value in values if value is not None):.2f}".replace("0.", ".")

    return JUDGE_CHOICES.format(
        trained=", ".join(JUDGE_TRAINED),
        many=len(chosen),
        chosen=", ".join(chosen),
        own=mean(chosen, "judge"),
        own_references=mean(chosen, "judge with references"),
        rest=mean(rest, "judge"),
        rest_references=mean(rest, "judge with references"),
    )


if __name__ == "__main__":
    main()
