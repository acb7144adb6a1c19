from __future__ import annotations

import json

from click.testing import CliRunner

from dialeval.cli.formats import formats
from dialeval.data.formats.row_shapes import OWN, SHAPES


def test_the_table_has_every_shape_with_its_fields_and_an_example() -> None:
    result = CliRunner().invoke(formats, [])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert len(lines) == 3 * (1 + len(SHAPES))
    for number, shape in enumerate((OWN, *SHAPES)):
        title, where, example = lines[3 * number : 3 * number + 3]
        assert title == f"{shape.name}: {shape.title}"
        assert where.strip() == shape.explained
        assert json.loads(example) == shape.example


def test_one_shape() -> None:
    result = CliRunner().invoke(formats, ["sharegpt"])
    assert result.output.startswith("sharegpt: a chat of ShareGPT\n  messages = conversations; dialog_id = id\n")
    assert CliRunner().invoke(formats, ["nothing"]).exit_code == 2
