"""Train the shipped judge of `dialeval score -m judge` anew: make_judge.py CORPORA RATINGS OUTPUT [DEVICE]

CORPORA and RATINGS are folders of public data: CORPORA/NAME/*.jsonl.gz with dialogues, RATINGS/NAME.jsonl.gz with
rated rows. Trained on are only those whose licence is stated and allows it; the others are for validation. It takes
minutes on a GPU (DEVICE cuda, the default). On a GPU sums have no fixed order, so the weights come out nearly the same,
not bit for bit.
"""

from __future__ import annotations

import sys
from pathlib import Path

CORPORA = {
    "ddpp_positives": "MIT",
    "self_dialogue": "BSD-3-Clause",
    "star": "MIT",
    "synthetic_persona_chat": "CC BY 4.0",
    "topicalchat": "CDLA-Sharing 1.0",
}
TRAINED = {"conture": "CC BY 4.0", "dbdc3_dev": "MIT", "engage_dailydialog": "MIT"}
TESTED = (
    "usr_topicalchat",
    "grade_convai2",
    "grade_empathetic",
    "zhao_dailydialog",
    "gupta_dailydialog",
    "humod_test",
    "llmeval_dailydialog",
    "convai2_thumbs",
    "ddpp_dev",
    "abc_eval",
)


def main() -> None:
    """Train, write the folder, print the card."""
    from dialeval.analysis.dialogue_judges import make_dialogue_judge
    from dialeval.reports.dialogue_judge_card import save_card

    corpora, ratings, output = map(Path, sys.argv[1:4])
    make_dialogue_judge(
        [file for name in CORPORA for file in sorted((corpora / name).glob("*.jsonl.gz"))],
        [ratings / f"{name}.jsonl.gz" for name in TRAINED],
        output,
        tests=[ratings / f"{name}.jsonl.gz" for name in TESTED],
        device=sys.argv[4] if len(sys.argv) > 4 else "cuda",
        licences=CORPORA | TRAINED,
        log=print,
        command="python tools/make_judge.py CORPORA RATINGS OUTPUT",
    )
    print(save_card(output, "The judge of dialogue responses that ships with dialeval").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
