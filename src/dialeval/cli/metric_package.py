"""A package with a metric of one's own, to be changed: what `dialeval metrics new` writes.

It can be installed as it is: its entry point makes the metric known to every command, and its tests hold the laws that
every metric of dialeval obeys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from keyword import iskeyword
from pathlib import Path

from dialeval.core.errors import SettingError
from dialeval.core.version import __version__

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "dialeval-<name>"
version = "0.1.0"
description = "The metric <name> for dialeval."
readme = "README.md"
requires-python = ">=3.10"
dependencies = ["dialeval>=<version>"]

[project.optional-dependencies]
dev = ["pytest>=8.3"]

[project.entry-points."dialeval.metrics"]
<name> = "dialeval_<module>:<Class>"

[tool.hatch.build.targets.wheel]
packages = ["src/dialeval_<module>"]

[tool.pytest.ini_options]
pythonpath = ["src"]
"""

README = """\
# dialeval-<name>

The metric `<name>` for dialeval: say here what it measures, and why.

```sh
pip install -e '.[dev]'
pytest
dialeval metrics <name>
dialeval score responses.txt -m <name>
```

- `src/dialeval_<module>/__init__.py`: the metric. Its docstring is what `dialeval metrics <name>` prints.
- `tests/test_<module>.py`: its value, and the laws that every metric obeys.

Raise `definition` by one whenever the same settings would give another number than in your last release: it stands in
every signature, and two figures of different definitions are not compared.
"""

METRIC = '''\
"""<Title>: the share of responses that end in a question mark.

    <name> = 1 if the response ends in the mark, else 0

Edge cases: an empty response is scored 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.fold import Bounds, RowMetric
from dialeval.core.needs import Need


@dataclass(frozen=True)
class <Class>(RowMetric):
    """Share of responses that end in a question mark."""

    family = "<name>"
    presets = {"<name>": {}}
    needs = frozenset({Need.RESPONSE})  # Need.REFERENCE, Need.CONTEXT: what it cannot do without
    better = None  # or "higher", "lower": tells a comparison which way is up
    definition = 1

    mark: str = "?"

    @property
    def bounds(self) -> Bounds:
        """The least and the largest possible value."""
        return (0.0, 1.0)

    def score(self, batch: Batch) -> Floats:
        """One value per row; NaN where a row cannot be scored, which is never 0."""
        texts = batch.texts(Need.RESPONSE)
        return np.array([float(text.rstrip().endswith(self.mark)) for text in texts], np.float64)
'''

TEST = '''\
"""<name>: its value, and the laws that every metric of dialeval obeys."""

from __future__ import annotations

import copy
import pickle

import dialeval
import numpy as np
import pytest
from dialeval.core.signature import Signature
from dialeval.metrics.registry import registry

from dialeval_<module> import <Class>

RESPONSES = ["at nine ?", "", " ", "yes", "the ferry leaves at nine .", "why ? because .", "où ?", "what ? "]
REFERENCES = ["at nine .", "yes", "", "no", "it leaves at nine .", "because .", "là .", "what ?"]
CONTEXTS = [["hello", "when does it leave ?"]] * len(RESPONSES)


def evaluated(order: list[int] | None = None, **how: int) -> dialeval.Result:
    """The metric of the rows in some order."""
    rows = range(len(RESPONSES)) if order is None else order
    texts = ([column[row] for row in rows] for column in (RESPONSES, REFERENCES, CONTEXTS))
    return dialeval.evaluate(*texts, metrics=[<Class>()], **how)["system"]


def test_values() -> None:
    found = evaluated()["<name>"]
    assert found.items.tolist() == [1, 0, 0, 0, 0, 0, 1, 1]
    assert found.mean == 3 / 8


@pytest.mark.parametrize("size", [1, 2, 5])
def test_cutting_rows_into_batches_changes_nothing(size: int) -> None:
    whole, cut = evaluated(), evaluated(batch_rows=size)
    for key, estimate in whole.items():
        assert repr(cut[key].mean) == repr(estimate.mean)
        np.testing.assert_array_equal(cut[key].items, estimate.items)


def test_the_order_of_rows_changes_nothing() -> None:
    order = list(range(len(RESPONSES)))[::-1]
    whole, mixed = evaluated(), evaluated(order)
    for key, estimate in whole.items():
        assert repr(mixed[key].mean) == repr(estimate.mean)
        np.testing.assert_array_equal(mixed[key].items, estimate.items[order])


def test_inputs_are_left_as_they_were() -> None:
    before = copy.deepcopy((RESPONSES, REFERENCES, CONTEXTS))
    evaluated()
    assert (RESPONSES, REFERENCES, CONTEXTS) == before


def test_values_lie_within_the_bounds() -> None:
    for key, estimate in evaluated().items():
        least, largest = <Class>().bounds_of(key)
        known = estimate.items[~np.isnan(estimate.items)]
        assert ((known >= least) & (known <= largest)).all()
        assert estimate.scored == len(known)


@pytest.mark.parametrize("response", ["", " ", "word " * 2000])
def test_one_row(response: str) -> None:
    estimate = dialeval.evaluate([response], ["yes"], [["hello"]], metrics=[<Class>()])["system"]["<name>"]
    assert (estimate.rows, len(estimate.items)) == (1, 1)


def test_it_survives_a_process_boundary() -> None:
    assert pickle.loads(pickle.dumps(<Class>())) == <Class>()


def test_its_name_and_its_signature_read_back() -> None:
    metric = <Class>()
    assert registry().parse(str(metric)) == metric  # by the entry point: install the package first
    assert Signature.parse(str(metric.signature())) == metric.signature()
    assert str(<Class>(mark="!").signature()) != str(metric.signature())
'''


def metric_package(name: str) -> Mapping[str, str]:
    """The files of a new package, by their path; SettingError for a name that cannot be one."""
    from dialeval.metrics.registry import registry

    kind = "".join(word.capitalize() for word in name.split("-"))
    if not _NAME.fullmatch(name) or iskeyword(kind):
        raise SettingError(
            f"{name!r} is no name for a metric; take lower-case words with hyphens, such as polite-words"
        )
    taken = registry().families.get(name) or registry().presets.get(name)
    if taken is not None:
        raise SettingError(f"there is a metric {name!r} already ({taken.__module__}); take another name")
    module = name.replace("-", "_")
    words = {
        "<name>": name,
        "<module>": module,
        "<Class>": kind,
        "<Title>": name.replace("-", " ").capitalize(),
        "<version>": __version__,
    }
    templates = {
        "pyproject.toml": PYPROJECT,
        "README.md": README,
        f"src/dialeval_{module}/__init__.py": METRIC,
        f"src/dialeval_{module}/py.typed": "",
        f"tests/test_{module}.py": TEST,
    }
    return {path: _filled(text, words) for path, text in templates.items()}


def write_metric_package(name: str, folder: Path) -> None:
    """Write a new package into a folder that is not there yet: whole, or not at all."""
    from dialeval.core.files import building, write_bytes

    files = metric_package(name)
    if folder.exists() or folder.is_symlink():
        raise SettingError(f"{folder} is there already, and nothing is overwritten; name another folder: -o FOLDER")
    try:
        with building(folder) as beside:
            for path, text in files.items():
                write_bytes(beside / path, text.encode())
    except OSError as error:
        raise SettingError(f"{folder} cannot be written ({error.strerror}); name another folder: -o FOLDER") from None


def _filled(text: str, words: Mapping[str, str]) -> str:
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text
