"""What all tests share: markers by what a test needs, how hard hypothesis tries, the golden data, and fixtures."""

from __future__ import annotations

import atexit
import functools
import gc
import gzip
import inspect
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

# One thread for matrix products, as in the command: with as many workers as cores, several would wait for each other.
# NumPy and PyTorch read this when they are imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import is_hypothesis_test, settings

from dialeval.cli.main import main
from dialeval.core.errors import DataError, Problem
from dialeval.io.rows import Rows

Dialeval: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]
Plain: TypeAlias = dict[str, Any]
Write: TypeAlias = Callable[[str, "bytes | str"], Path]

QUICK = "DIALEVAL_QUICK" in os.environ
"""Set by `make check`: hypothesis tries few examples, and the same ones every time."""
QUICK_EXAMPLES = 3

# A first call compiles kernels, so a deadline would measure the compiler. On CI the examples are the same every time.
settings.register_profile("dialeval", deadline=None, max_examples=25, derandomize=QUICK or "CI" in os.environ)
settings.load_profile("dialeval")

# Shells ignore Ctrl-C for what they run in the background, and programs that tests start would do so, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
SHARED_DATA = TESTS.parent.parent / "shared" / "data"
BROWSER = ("browser/",)
RAY = ("engine/test_cluster.py",)
LONG = (
    "analysis/test_agreement.py::test_equal_seeds_give_equal_intervals",
    "analysis/test_assertions.py::test_in_pytest",
    "analysis/test_best.py::test_equal_systems_are_rarely_left_out",
    "analysis/test_comparison.py::test_every_family_can_be_compared",
    "analysis/test_metric_ranking.py::test_equally_good_metrics_are_rarely_told_apart",
    "analysis/test_slices.py::test_without_a_difference_no_slice_is_significant",
    "analysis/test_trends.py::test_equal_systems_rarely_have_a_trend",
    "cli/",
    "core/test_rowtable.py::test_saving_and_loading_a_run_does_not_import_pandas",
    "core/test_display.py::test_core_loads_no_layer_above_until_something_is_shown",
    "core/test_kernels.py",
    "docs/",
    "engine/test_evaluate.py::test_a_streamed_run_is_compared_and_resampled",
    "engine/test_evaluate.py::test_all_metrics_of_the_sample",
    "engine/test_evaluate.py::test_items_of_a_packed_file",
    "engine/test_evaluate.py::test_memory",
    "engine/test_evaluate.py::test_shards_of_rows_are_one_system",
    "engine/test_processes.py",
    "engine/test_scale.py",
    "fuzz/",
    "golden/",
    "human/test_estimate_command.py",
    "human/test_rank.py::test_what_is_left_at_equal_length",
    "human/test_rank_command.py",
    "human/test_rate_command.py",
    "human/test_sample_command.py",
    "io/test_embeddings.py::test_several_processes",
    "io/test_ratings.py::test_real_ratings",
    "io/test_reading.py::test_real_rated_rows",
    "judges/test_adem.py",
    "judges/test_adem_commands.py",
    "judges/test_cross_encoder.py::test_nor_on_a_processor",
    "judges/test_dialogue_judge.py::test_the_shipped_one_knows_a_reply",
    "judges/test_judge_commands.py",
    "judges/test_validation.py",
    "layers/test_imports.py::test_a_small_run",
    "layers/test_imports.py::test_task_dialogues_and_breakdowns",
    "metrics/test_bleu_counts.py::test_a_text_of_a_million_words",
    "metrics/test_chrf.py::test_a_long_text",
    "metrics/test_registry.py::test_an_installed_package_adds_metrics",
    "metrics/test_registry.py::test_long_lines",
    "metrics/test_trials.py::test_intervals_of_differences_cover",
    "packaging/",
    "reports/test_drawings.py",
    "simulations/",
    "stats/test_sequences.py::test_a_thousand_looks",
    "stats/test_sequences.py::test_independent_systems",
    "suites/breakdown/test_commands.py",
    "suites/lsdscc/test_commands.py",
    "suites/lsdscc/test_alignment.py::test_nltk_is_not_imported",
    "suites/multiwoz/test_evaluation.py::test_gold_on_multiwoz_by_cause",
    "suites/multiwoz/test_commands.py",
    "suites/multiwoz/test_lexicalized.py::test_lexicalized_gold_scores_like_gold",
    "suites/multiwoz/test_predictions.py::test_a_hundred_megabytes",
    "suites/sgd/test_commands.py",
    "text/test_ngrams.py::test_merging_large_counts",
    "tools/site/test_blocks.py",
)
"""What starts programs, reads large files or takes seconds; a test may have the marker itself instead."""
SPREAD = ("docs/test_pages.py", "docs/test_python.py", "docs/test_examples.py", "laws/test_laws.py")
"""Files whose tests share nothing that takes long to make: parallel workers take them one by one. Others stay whole."""
JOINED = {"browser/test_site.py": "docs/test_site.py"}
"""Files that go to the worker of another file, as both use what takes long to make."""
TORCH = re.compile(r'^(?:torch = )?pytest\.importorskip\("torch"\)', re.MULTILINE)
"""A file whose tests all need PyTorch."""
FIRST = (*RAY, *LONG)
"""Files that take longest begin first, and files that are split come last, so that parallel workers end together."""


def pytest_report_header() -> str | None:
    """Report that tests are left out: a run of a single folder may then hold none."""
    return "DIALEVAL_QUICK: without tests of browsers, Ray, PyTorch and those that take seconds" if QUICK else None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not even import, in `make check`, what it leaves out: Ray and PyTorch alone take seconds."""
    file = collection_path.relative_to(TESTS).as_posix()
    if not QUICK or not file.endswith(".py"):
        return None
    left_out = file.startswith((*BROWSER, *RAY, *LONG))
    return left_out or TORCH.search(_text(collection_path)) is not None or None


def _place(item: pytest.Item) -> str:
    return f"{item.path.relative_to(TESTS).as_posix()}::{item.name}"


@functools.cache
def _skips_without_torch(test: Any) -> bool:
    return 'importorskip("torch")' in inspect.getsource(test)


def _needs_torch(item: pytest.Function) -> bool:
    text = _text(item.path)
    return "torch" in text and (hasattr(item.module, "torch") or _skips_without_torch(item.function))


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _tries_less(test: Any) -> None:
    """Have hypothesis try few examples; a test's own settings stand above the profile, so they are replaced."""
    own = getattr(test, "_hypothesis_internal_use_settings", None) or settings()
    fewer = settings(own, max_examples=min(own.max_examples, QUICK_EXAMPLES), derandomize=True, database=None)
    test._hypothesis_internal_use_settings = fewer  # hypothesis has no public name for it


def pytest_sessionfinish() -> None:
    """Look for garbage in the end all the same: libraries that tests import tell what is left of them."""
    atexit.unregister(gc.freeze)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what needs a browser, a cluster or PyTorch, or takes seconds, for `make check`."""
    for marker, applies in (
        (pytest.mark.browser, _place(item).startswith(BROWSER)),
        (pytest.mark.ray, _place(item).startswith(RAY)),
        (pytest.mark.long, _place(item).startswith(LONG)),
        (pytest.mark.torch, isinstance(item, pytest.Function) and _needs_torch(item)),
    ):
        if applies:
            item.add_marker(marker)
    if QUICK and isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
        _tries_less(item.obj)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take longest, those last that are split, and leave the order as it is otherwise."""
    items.sort(key=lambda item: (_place(item).startswith(SPREAD), not _place(item).startswith(FIRST)))


def worker_unit(nodeid: str) -> str:
    """Return what a worker takes as a whole together with a test: its file, or the test alone where files are split."""
    file = nodeid.partition("::")[0].removeprefix(f"{TESTS.name}/")
    return nodeid if file in SPREAD else JOINED.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Distribute tests by `worker_unit`."""
    from xdist.scheduler import LoadScopeScheduling

    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = worker_unit
    return scheduler


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does; a warning would be an error."""
    place = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real inputs with the originals' outputs; tests that need it are skipped where it is not."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the golden data (../shared/data beside the checkout) is not here")
    return SHARED_DATA


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own, and no proxy between it and a local server."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("DIALEVAL_CACHE", str(folder))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def dialeval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Dialeval:
    """Run `dialeval ARGUMENTS` in an empty folder; in this process, since there are many."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["dialeval", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, int(end.value.code or 0), out, err)

    return run


def _as_plain(rows: Rows) -> Plain:
    return {
        "system": rows.system,
        "columns": {str(need): list(column) for need, column in rows.columns.items()},
        "dialogues": None if rows.dialogues is None else list(rows.dialogues),
        "turns": None if rows.turns is None else rows.turns.tolist(),
    }


@pytest.fixture
def as_plain() -> Callable[[list[Rows]], list[Plain]]:
    """Turn rows into Python objects, to be compared with `==`."""
    return lambda found: [_as_plain(rows) for rows in found]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file and return its path; `.gz` is compressed."""

    def write_file(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write_file


@pytest.fixture
def problems_of() -> Callable[[Callable[[], object]], list[Problem]]:
    """Return the problems with which a call fails."""

    def catch(call: Callable[[], object]) -> list[Problem]:
        with pytest.raises(DataError) as info:
            call()
        return list(info.value.problems)

    return catch
