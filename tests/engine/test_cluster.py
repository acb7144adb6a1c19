"""A Ray cluster gives the same figures, also when it loses a node."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dialeval
import evaluating
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import DataError, SettingError
from dialeval.core.fold import RowMetric
from dialeval.engine.cluster import _LOCAL, _QUIET, Cluster
from engine.chats import Delicate, bare, estimates, in_chunks, write_shards
from engine.planted import run_among_planted_modules

pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)

TESTS = Path(__file__).parent.parent


@dataclass(frozen=True)
class Slow(RowMetric):
    """For tests: takes its time over each batch."""

    family = "slow"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {"slow": {}}
    needs = frozenset({inputs.RESPONSE})

    marks: str = ""
    """A folder in which every batch that is begun, and every one that is ended, leaves a mark."""

    def score(self, batch: Batch) -> Floats:
        if self.marks:
            import ray

            name = f"{ray.get_runtime_context().get_node_id()}-{os.getpid()}-{uuid.uuid4().hex}"
            Path(self.marks, f"begun-{name}").touch()
            time.sleep(0.3)
            Path(self.marks, f"ended-{name}").touch()
        return np.array([float(len(text)) for text in batch.texts(inputs.RESPONSE)])


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A head that does not work, and three nodes that do."""
    import ray
    from ray.cluster_utils import Cluster as Nodes

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), before]))
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    store = {"object_store_memory": 100 << 20}
    cluster = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **store})
    for _ in range(3):
        cluster.add_node(num_cpus=1, **store)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before


def test_a_cluster_that_is_not_there() -> None:
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        with pytest.raises(SettingError, match=r"no Ray cluster answers at .*check --address"), Cluster(address):
            pass


class RecordedRay:
    """Counts how often a cluster is started and ended."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def is_initialized(self) -> bool:
        return self.calls[-1:] == ["init"]

    def init(self, **options: Any) -> None:
        self.options = options
        self.calls.append("init")

    def shutdown(self) -> None:
        self.calls.append("shutdown")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No variable of Ray is set, and none that a test sets stays."""
    for name in [*_QUIET, *_LOCAL, "RAY_ADDRESS", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"]:
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    return monkeypatch


def test_a_cluster_is_ended_by_its_last_user(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("127.0.0.1:1")
    cluster._ray = ray = RecordedRay()
    with pytest.raises(SettingError, match="no Ray cluster answers"):
        cluster.__enter__()  # who could not start it is no user of it
    monkeypatch.setattr("dialeval.engine.cluster._refuse_no_answer", lambda _: None)
    with cluster:
        with cluster:
            assert ray.calls == ["init"]
        assert ray.calls == ["init"]
    assert ray.calls == ["init", "shutdown"]
    ray.calls.append("init")  # by somebody else
    with cluster:
        pass
    assert ray.calls == ["init", "shutdown", "init"]
    ray.calls.append("shutdown")
    with cluster:
        assert ray.calls[3:] == ["shutdown", "init"]


def test_the_same_to_the_last_digit(nodes: Any, tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 80, 3)
    whole = tmp_path / "whole.jsonl"
    expected = dialeval.evaluate({"bot": whole}, train=whole, metrics="all")
    given: dict[str, Any] = {"train": whole, "chunk_bytes": 1_000, "batch_rows": 9}
    run = in_chunks({"bot": f"{tmp_path}/shards/*"}, **given, engine=Cluster(), output=tmp_path / "out")
    assert estimates(run) == estimates(expected)
    assert bare(dialeval.load(tmp_path / "out")) == bare(expected)


def test_what_comes_to_the_first_process_does_not_grow_with_the_rows(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of sixteen times the rows, with items, hardly a byte more is fetched; larger numbers have more digits."""
    fetched, fetch = [], Cluster._fetch

    def counted(self: Cluster, reference: Any, chunk: Any) -> Any:
        found = fetch(self, reference, chunk)
        fetched.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(Cluster, "_fetch", counted)
    totals = []
    for rows in (60, 960):
        folder = tmp_path / str(rows)
        write_shards(folder / "shards", rows, 4)
        fetched.clear()
        asked: dict[str, Any] = {"metrics": "length,distinct,bleu-4"}
        run = in_chunks({"s": f"{folder}/shards/*"}, **asked, engine=Cluster(), output=folder / "out")
        totals.append(sum(fetched))
        plain = evaluating.evaluate({"s": folder / "whole.jsonl"}, **asked)
        assert estimates(run) == estimates(plain)
        assert bare(dialeval.load(folder / "out")) == bare(plain)
    assert totals[1] < 1.1 * totals[0]


def test_an_error_in_the_data_comes_through_once(nodes: Any, tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 20, 3)
    with (tmp_path / "shards" / "part-01.jsonl").open("a") as file:
        file.write('{"response": "poison"}\n')
    with pytest.raises(DataError, match=r"part-01.jsonl:21: delicate cannot score this row") as caught:
        in_chunks(f"{tmp_path}/shards/*", metrics=[Delicate()], engine=Cluster())
    assert len(caught.value.problems) == 1


def test_a_lost_node(nodes: Any, tmp_path: Path) -> None:
    """One of three nodes is killed in mid-run: its chunks are folded again, and no row is lost or counted twice."""
    write_shards(tmp_path / "shards", 36, 4)
    marks = tmp_path / "marks"
    marks.mkdir()
    plain = dialeval.evaluate({"s": tmp_path / "whole.jsonl"}, metrics=["length", "distinct", "bleu-4", Slow()])["s"]
    killed: list[str] = []

    def at_work() -> dict[str, int]:
        """The processes that are at work by node, once some batches are done."""
        names = {what: {path.name[6:] for path in marks.glob(f"{what}-*")} for what in ("begun", "ended")}
        there = names["begun"] - names["ended"] if len(names["ended"]) > 5 else set()
        return {name.split("-")[0]: int(name.split("-")[1]) for name in there}

    def kill() -> None:
        while not killed:
            for node in list(nodes.worker_nodes):
                if process := at_work().get(node.node_id):
                    killed.append(node.node_id)
                    os.kill(process, signal.SIGKILL)  # as if the power were cut: the worker does not outlive its node
                    nodes.remove_node(node, allow_graceful=False)
                    return
            time.sleep(0.05)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    slow = Slow(str(marks))
    run = in_chunks(
        {"s": f"{tmp_path}/shards/*"},
        metrics=["length", "distinct", "bleu-4", slow],
        engine=Cluster(),
        output=tmp_path / "out",
        chunk_bytes=1_500,
    )["s"]
    killer.join()
    begun, ended = (len(list(marks.glob(f"{what}-{killed[0]}-*"))) for what in ("begun", "ended"))
    assert begun > ended, "the node was at work on a chunk when it was killed"
    back = dialeval.load(tmp_path / "out")["s"]
    for (key, estimate), (name, expected) in zip(run.items(), plain.items(), strict=True):
        assert (estimate.mean, estimate.std, estimate.units) == (expected.mean, expected.std, expected.units), name
        np.testing.assert_array_equal(back[key].scores, expected.scores)


def test_tallies_of_ray_tasks_are_merged(nodes: Any) -> None:
    import ray

    @ray.remote  # type: ignore[untyped-decorator]
    def measured(texts: list[str], references: list[str]) -> dialeval.Tally:
        tally = dialeval.make_tally("bleu-4,distinct-2")
        tally.update(texts, references)
        return tally

    texts = [f"so {number} it is" for number in range(30)]
    references = [f"so it {number % 7} is" for number in range(30)]
    parts = [measured.remote(texts[start : start + 10], references[start : start + 10]) for start in (0, 10, 20)]
    whole = dialeval.make_tally("bleu-4,distinct-2")
    for tally in ray.get(parts):
        whole.merge(tally)
    assert whole.run() == dialeval.evaluate(texts, references, metrics="bleu-4,distinct-2")


def test_a_function_of_rows_goes_to_a_ray_task(nodes: Any) -> None:
    """Also one that no module has, as those of notebooks and scripts."""
    import ray

    @dialeval.metric_of_rows(name="words-of-ray")
    def words(response: str) -> int:
        return len(response.split())

    @ray.remote  # type: ignore[untyped-decorator]
    def measured(tally: dialeval.Tally, texts: list[str]) -> dialeval.Tally:
        tally.update(texts)
        return tally

    tally = ray.get(measured.remote(dialeval.make_tally(words), ["a b", "c"]))
    assert tally.compute()["words-of-ray"].mean == 1.5


def test_modules_of_the_working_folder_are_not_imported_and_stdout_is_json(tmp_path: Path) -> None:
    printed = run_among_planted_modules(tmp_path, "--engine", "ray")
    assert "bot" in str(printed["systems"])
    assert not list((tmp_path / "home").rglob("*token*"))


LISTENING = """
import os, sys
from pathlib import Path
from dialeval.engine.cluster import Cluster

with Cluster() as cluster:
    import ray

    task = ray.remote(lambda: os.getppid())
    raylet = ray.get(task.remote())
    ours = {os.getpid(), raylet}
    for _ in range(3):
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) in ours:
                ours.add(int(status.parent.name))
    sockets = set()
    for process in ours:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            try:
                sockets.add(os.readlink(link))
            except OSError:
                continue
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                print(fields[1].partition(":")[0])
    print("mode", ray._private.authentication.authentication_utils.is_token_auth_enabled())
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="asks Linux what listens")
def test_a_local_cluster_listens_on_loopback_only_and_asks_for_a_token(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LISTENING)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(tmp_path)}
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        environment.pop(name, None)  # another test of this process may have set it
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    *addresses, mode = done.stdout.splitlines()
    assert mode == "mode True"
    assert len(addresses) >= 4
    assert set(addresses) <= LOOPBACK


def test_a_cluster_of_others_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("127.0.0.1:1")
    cluster._ray = ray = RecordedRay()
    ray.calls.append("init")  # by somebody else
    with cluster:
        pass
    assert ray.calls == ["init"]
