"""Ratings of whole conversations: sampled, estimated and ranked at the level of dialogues."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dialeval
from conftest import Dialeval
from dialeval.core.errors import SettingError
from human.rated_runs import ratings_of, run_of

TURNS = 3
JSON = ("-f", "json")
RUN, OPINIONS = run_of(dialogues=80, turns=TURNS)
WHOLE = {name: values.reshape(-1, TURNS).mean(axis=1) for name, values in OPINIONS.items()}
"""What people would say of each dialogue."""


def test_a_sample_of_conversations_estimates_their_mean() -> None:
    sample = dialeval.sample(RUN, 80, level="dialogue")
    assert sample.design.level == "dialogue"
    assert {row.dialog_id for row in sample.responses} <= {f"d{n}" for n in range(80)}
    assert len(sample.responses) == len({(row.system, row.dialog_id) for row in sample.responses}) == 80
    found = dialeval.estimate_ratings(RUN, ratings_of(sample, WHOLE), judge="judge", sample=sample)
    for name, truth in WHOLE.items():
        low, high = found[name].interval
        assert low < truth.mean() < high
        assert found[name].ratings == 40
        assert high - low < np.diff(found[name].alone_interval)[0], "the judge helps"


def test_the_sample_is_read_back_and_rated(dialeval: Dialeval, tmp_path: Path) -> None:
    RUN.save(tmp_path / "run")
    done = dialeval("sample", "run", "-n", "60", "--level", "dialogue", "-o", "to-rate")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "to-rate" / "rows.jsonl").read_text().splitlines()]
    scores = [{"id": row["id"], "rater": "ann", "scores": {"overall": 1 + row["row"] % 5}} for row in rows]
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(each) + "\n" for each in scores))
    found = dialeval(
        "estimate", "run", "--human", "ratings.jsonl", "--sample", "to-rate", "--judge", "judge", "-f", "json"
    )
    assert found.returncode == 0, found.stderr
    assert sum(each["ratings"] for each in json.loads(found.stdout)["systems"]) == 60
    assert dialeval("rate", "page", "to-rate", "--save", "page.html").returncode == 0
    assert "How good is the conversation?" in (tmp_path / "page.html").read_text()
    (tmp_path / "form.toml").write_text("compare = true\n")
    refused = dialeval("rate", "page", "to-rate", "--form", "form.toml", "--save", "pairs.html")
    assert refused.returncode == 2
    assert "one by one" in refused.stderr


def test_ratings_of_dialogues_by_another_program() -> None:
    """They have the level `dialog`, and the last reply as the response."""
    rows = [
        {
            "dialog_id": f"d{n}",
            "system": name,
            "level": "dialog",
            "response": f"{name} says {TURNS * n + 2}",
            "context": [f"what {TURNS * n + 2}"],
            "scores": {"overall": float(WHOLE[name][n])},
        }
        for name in WHOLE
        for n in range(0, 80, 2)
    ]
    found = dialeval.estimate_ratings(RUN, rows, judge="judge", assume_random=True)
    assert [each.ratings for each in found.systems] == [40, 40]
    mixed = [*rows, {**rows[0], "level": "turn"}]
    with pytest.raises(SettingError, match="each level by itself"):
        dialeval.estimate_ratings(RUN, mixed, assume_random=True)


def test_conversations_are_compared_as_pairs() -> None:
    """Pairs are two dialogues of one id, although their contexts hold the replies of each system."""
    sample = dialeval.sample(RUN, 40, level="dialogue")
    assert len(sample.pairs()) == 20


def test_levels_that_do_not_exist() -> None:
    with pytest.raises(SettingError, match=r"turn or a dialogue|level"):
        dialeval.sample(RUN, 10, level="session")  # type: ignore[arg-type]
