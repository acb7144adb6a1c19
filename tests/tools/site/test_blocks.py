"""Blocks are found with their language, title and reason, and a block that does not work is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.site.blocks import Block, Runner, blocks, commands

PAGE = """\
# A page

```sh
dialeval metrics length  # a remark
```

<!-- not run: needs a GPU -->
```python
train()
```

- In a list:

  ```toml title="form.toml"
  a = 1
  ```
"""


def test_blocks_are_found() -> None:
    assert list(blocks(PAGE)) == [
        Block(3, "sh", "dialeval metrics length  # a remark\n", None, None),
        Block(8, "python", "train()\n", None, "needs a GPU"),
        Block(14, "toml", "a = 1\n", "form.toml", None),
    ]


def test_commands_are_lines_and_continued_lines() -> None:
    assert commands("a b \\\n  c\n\nd\n") == ["a b    c", "d"]
    assert commands("cat > x <<'END'\n1\nEND\nb\n") == ["cat > x <<'END'\n1\nEND\nb\n"]


@pytest.mark.parametrize("command", ["dialeval metrics no-such", "dialeval metrics no-such | cat; false", "false"])
def test_a_command_that_fails_is_noticed(tmp_path: Path, command: str) -> None:
    with pytest.raises(AssertionError, match="ended with"):
        Runner(tmp_path).command(command)


def test_what_is_printed_is_known(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    runner.command("dialeval metrics length  # in this process")
    runner.command("echo one && echo two")
    runner.python("x = 3")
    runner.python("print('x is', x)")
    assert runner.has_printed("Presets: length")
    assert runner.has_printed("one\ntwo\n")
    assert runner.has_printed("x is 3")
    assert not runner.has_printed("two\none")


def test_commands_run_in_the_folder(tmp_path: Path) -> None:
    before = Path.cwd()
    (tmp_path / "a.txt").write_text("hello\n")
    Runner(tmp_path).command("dialeval score a.txt -m length -o made")
    assert (tmp_path / "made" / "run.json").is_file()
    assert Path.cwd() == before
