"""`adem score` and `judge score` take care of what lies in the folder that they write to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from dialeval.cli.main import dialeval_command
from dialeval.core.errors import DataError


@pytest.mark.parametrize("command", ["adem", "judge"])
def test_an_input_is_refused_as_a_place_before_any_work(command: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"  # the name of a file of every saved run
    path.write_text(json.dumps({"context": ["hello"], "response": "hi", "reference": ["hi"]}) + "\n")
    before = path.read_bytes()
    # A judge that does not exist: work would end with another message.
    arguments = [command, "score", str(path), "--judge-dir", str(tmp_path / "none"), "-o", str(tmp_path)]
    done = CliRunner().invoke(dialeval_command, arguments)
    assert isinstance(done.exception, DataError)
    assert "rows.parquet" in str(done.exception)
    assert "input" in str(done.exception)
    assert path.read_bytes() == before
