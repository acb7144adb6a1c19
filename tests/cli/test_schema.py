"""`dialeval schema` lists what is written, and prints a schema."""

from __future__ import annotations

import json

from click.testing import CliRunner

from dialeval.cli.schema import schema
from dialeval.reports import schemas


def test_the_list_has_every_schema() -> None:
    result = CliRunner().invoke(schema, [])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list(schemas.WRITTEN)


def test_one_schema() -> None:
    result = CliRunner().invoke(schema, ["run"])
    assert json.loads(result.output) == schemas.schema("run")


def test_an_unknown_one() -> None:
    result = CliRunner().invoke(schema, ["nothing"])
    assert result.exit_code == 2
    assert "no schema 'nothing'; there are run," in result.output
