from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core.errors import DataError
from dialeval.resources.json_files import json_bytes, read_json


def test_what_is_wrong_names_the_file_and_the_line(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    with pytest.raises(DataError, match=r"x\.json: cannot be read \(No such file or directory\); get it"):
        read_json(file, "get it")
    file.write_text('{"a": 1,\n]')
    with pytest.raises(DataError, match=r"x\.json:2: not JSON .*; get it"):
        read_json(file, "get it")
    file.write_bytes(json_bytes({"a": [1, None]}))
    assert read_json(file, "get it") == {"a": [1, None]}
    assert file.read_text().endswith("}\n")
