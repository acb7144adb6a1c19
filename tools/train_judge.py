"""Train a judge on plain dialogues and on ratings, and write it with its model card.

It needs PyTorch and, for useful sizes, a GPU:

    python tools/train_judge.py --dialogues chats.jsonl --ratings rated.jsonl -o judge/ --device cuda
    python tools/train_judge.py --dialogues chats.jsonl --ratings rated.jsonl -o judge/ --steps 200 --batch-size 32
    dialeval score rows.jsonl -m judge --judge-dir judge/

Dialogues are JSONL files with `{"turns": [...]}` or `{"messages": [...]}` a line, and where known `replies`, other
replies to the last turn. Dialogues that share turns with a rated context are left out. Checkpoints are in the folder
`training` of the output; the same command continues from there.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.judge_training.card import card_text
from tools.judge_training.dialogue_training import make_dialogue_judge

from dialeval.core.errors import DialevalError
from dialeval.judges.adem import check_folder

SETTINGS = {"steps": 7200, "batch_size": 512, "learning_rate": 2e-4, "rating_steps": 310, "rank": 64, "seed": 0}
"""The defaults of the recipe, which made the shipped judge."""


def main(arguments: list[str]) -> None:
    """Train a judge as the arguments say, and print its card."""
    parser = argparse.ArgumentParser(description="Train a judge on plain dialogues and on ratings.")
    parser.add_argument("--dialogues", nargs="+", required=True, help="JSONL files of dialogues")
    parser.add_argument("--ratings", nargs="+", required=True, help="files of rated rows")
    parser.add_argument("--test", nargs="+", default=[], help="rated rows to validate on only")
    parser.add_argument("--breakdown", metavar="SET", help="rated set whose annotators said O, T or X (1, 0.5 and 0)")
    parser.add_argument("--license", nargs="+", default=[], metavar="SET=TEXT", help="license of a set, for the card")
    parser.add_argument("--encoder", help="folder of another sentence encoder to start from")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("-o", "--output", type=Path, required=True)
    for name, default in SETTINGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    asked = parser.parse_args(arguments)
    try:
        check_folder(asked.output, asked.dialogues, asked.ratings, asked.test)
        made = make_dialogue_judge(
            asked.dialogues,
            asked.ratings,
            asked.output,
            tests=asked.test,
            breakdown=asked.breakdown,
            device=asked.device,
            licenses=dict(each.split("=", 1) for each in asked.license),
            log=lambda line: print(line, file=sys.stderr, flush=True),
            command=shlex.join(["python", "tools/train_judge.py", *arguments]),
            **({} if asked.encoder is None else {"encoder": asked.encoder}),
            **{name: getattr(asked, name) for name in SETTINGS},
        )
        card = card_text(made, "A judge of dialogue responses")
        made.save(asked.output, card)
    except DialevalError as error:
        raise SystemExit(f"train_judge: {error}") from None
    print(card)


if __name__ == "__main__":
    main(sys.argv[1:])
