"""The pytest plugin: the fixture `dialeval`, the option `--dialeval-baseline`, and the comparisons in the summary.

    def test_the_new_version(dialeval):
        run = dialeval.evaluate("branch.jsonl", metrics="rouge-l")
        dialeval.assert_no_worse(run, "rouge-l", margin=0.02, by="topic")

With `--dialeval-baseline FOLDER` every run is compared with the run that is saved there; without it, and without
`baseline=`, such a test is skipped. dialeval itself is imported when a test uses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dialeval.analysis.comparison import Comparison
    from dialeval.analysis.gates import Saved
    from dialeval.core.result import Run

OPTION = "--dialeval-baseline"
_SUMMARIES = pytest.StashKey[list[tuple[str, str]]]()


class Dialeval:
    """What the fixture `dialeval` gives a test."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._name = request.node.nodeid
        self._summaries = request.config.stash.setdefault(_SUMMARIES, [])
        self.baseline: str | None = request.config.getoption(OPTION)
        """The folder of the baseline run."""

    def evaluate(self, *sources: Any, **settings: Any) -> Run:
        """Evaluate responses, as `dialeval.evaluate` does."""
        from dialeval import evaluate

        return evaluate(*sources, **settings)

    def assert_no_worse(
        self, run: Saved, metrics: str | Iterable[str], *, baseline: Saved | None = None, **settings: Any
    ) -> Comparison:
        """Fail if a system is worse than the baseline, as `dialeval.assert_no_worse` does; the summary has the verdict.

        Args:
            run: A run, or the folder of a saved one.
            metrics: The metrics, whose p-values are adjusted together.
            baseline: The run to compare with; None: that of `--dialeval-baseline`.
            **settings: `margin`, `by`, `cluster` and so on, as in `dialeval.assert_no_worse`.

        Returns:
            The comparison, if no system is worse.
        """
        from dialeval import assert_no_worse

        baseline = self.baseline if baseline is None else baseline
        if baseline is None:
            pytest.skip(f"no baseline: pass {OPTION} FOLDER")
        try:
            comparison = assert_no_worse(run, baseline, metrics, **settings)
        except AssertionError as error:
            self._summaries.append((self._name, str(error).partition("\n")[0]))
            raise
        self._summaries.append((self._name, str(comparison)))
        return comparison


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the baseline."""
    group = parser.getgroup("dialeval", "dialogue evaluation")
    group.addoption(OPTION, metavar="FOLDER", help="saved run that dialeval.assert_no_worse compares with")


@pytest.fixture(name="dialeval")
def dialeval_fixture(request: pytest.FixtureRequest) -> Dialeval:
    """Evaluate, and compare with the baseline run (dialeval)."""
    return Dialeval(request)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the verdict of every comparison."""
    if summaries := config.stash.get(_SUMMARIES, []):
        terminalreporter.section("dialeval")
        for name, verdict in summaries:
            terminalreporter.write_line(f"{name}: {verdict}")
