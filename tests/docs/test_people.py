"""The page about people works as it shows, command after command, on invented logs and invented people."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from dialeval.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "people.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]
WORDS = (
    *("yes", "no", "the", "train", "leaves", "at", "nine", "ten", "platform", "four", "table", "booked", "for"),
    *("two", "people", "tonight", "sure", "thanks"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of two systems that answered the same users, the second one a little better."""
    made, rng = tmp_path_factory.mktemp("people"), np.random.default_rng(1)
    (made / "logs").mkdir()
    references = [rng.choice(WORDS, size=8).tolist() for _ in range(600)]
    easy = np.repeat(rng.uniform(-0.25, 0.25, size=200), 3)
    pairs = []
    replies: dict[str, list[str]] = {}
    for system, good in {"main": 0.45, "branch": 0.58}.items():
        kept = rng.random((600, 8)) < np.clip(good + easy, 0.05, 0.95)[:, None]
        replies[system] = [
            " ".join(word if keep else str(rng.choice(WORDS)) for word, keep in zip(words, keeps, strict=True))
            for words, keeps in zip(references, kept, strict=True)
        ]
        rows = [
            {
                "dialog_id": f"d{n // 3}",
                "turn": n % 3,
                "system": system,
                "context": [f"question {n}"],
                "response": replies[system][n],
                "reference": " ".join(references[n]),
            }
            for n in range(600)
        ]
        (made / "logs" / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for n in range(0, 600, 4):
        shares = [opinion(replies[name][n], " ".join(references[n]), rng) for name in ("main", "branch")]
        better = "tie" if shares[0] == shares[1] else "a" if shares[0] > shares[1] else "b"
        pairs.append({"dialog_id": f"d{n // 3}", "a": "main", "b": "branch", "better": better})
        pairs[-1] |= {"response_a": replies["main"][n], "response_b": replies["branch"][n]}
    (made / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    return made


def opinion(response: str, reference: str, rng: np.random.Generator) -> int:
    """What a person says of a response, from 1 to 5: how much of the reference it has, and a mood."""
    same = np.mean([one == other for one, other in zip(response.split(), reference.split(), strict=True)])
    return int(np.clip(round(1 + 4 * float(same) + rng.normal() * 0.6), 1, 5))


def rated(folder: Path) -> None:
    """What two people send back, each a file; every tenth row came twice."""
    rng = np.random.default_rng(2)
    rows = [json.loads(line) for line in (folder / "to-rate" / "rows.jsonl").read_text().splitlines()]
    lines: dict[str, list[dict[str, object]]] = {"ann": [], "bob": []}
    for row in rows:
        for rater, own in lines.items():
            said = opinion(row["response"], row["reference"][0], rng)
            own.append({"id": row["id"], "rater": rater, "scores": {"overall": said}, "seconds": 9.5})
    for rater, own in lines.items():
        again = [{**line, "again": True} for line in own[::10]]
        again[0] |= {"scores": {"overall": 3}}
        (folder / f"{rater}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in own + again))


def ran(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_commands_python_and_tables(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (form,) = (block for kind, block in BLOCKS if kind == "toml")
    (folder / "form.toml").write_text(form)
    assert len(COMMANDS) > 10
    shown = [block for kind, block in BLOCKS if kind == "text"]
    printed = []
    for command in COMMANDS:
        capsys.readouterr()
        assert ran(command, monkeypatch) == 0, f"{command}: {capsys.readouterr().err}"
        printed.append("\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()))
        if "-o to-rate" in command:
            rated(folder)
    for block in shown:
        assert any(block.strip() in out for out in printed), block
    (code,) = (block for kind, block in BLOCKS if kind == "python")
    exec(code, {})
    assert "branch" in capsys.readouterr().out
    rows = [json.loads(line) for block in [b for k, b in BLOCKS if k == "json"] for line in block.splitlines()]
    assert all(isinstance(row, dict) for row in rows)
    assert len(rows) == 3
