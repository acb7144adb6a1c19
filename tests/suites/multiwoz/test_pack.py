"""The pack `multiwoz` from small invented files in the layout of the official repository, on disk and over HTTP."""

from __future__ import annotations

import io
import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.io.packs import add_pack, find_pack, remove_pack
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import load_task
from dialeval.suites.multiwoz.pack import ACTS, GOALS_ZIP, SPLITS, list_dialogue_files

pytestmark = pytest.mark.usefixtures("cache")

GOAL = {
    "hotel": {
        "info": {"price range": "cheap", "type": "guest house", "internet": "free"},
        "fail_info": {},
        "reqt": ["phone", "postcode", "stars"],
        "book": {"day": "monday", "invalid": False, "pre_invalid": True},
    },
    "train": {"info": {"leaveAt": "9:15", "destination": "ely"}, "reqt": ["trainID"]},
    "taxi": {},
    "message": ["find a room"],
}
LOG = [
    {"text": "a cheap room", "metadata": {}},
    {"text": "the willow", "metadata": {"hotel": {"book": {"booked": []}, "semi": {}}}},
    {"text": "book it", "metadata": {}},
    {"text": "booked, AB12", "metadata": {"hotel": {"book": {"booked": [{"name": "willow", "reference": "AB12"}]}}}},
]
TURNS: list[dict[str, Any]] = [
    {
        "turn_id": "0",
        "speaker": "USER",
        "utterance": "a cheap room",
        "frames": [
            {"service": "hotel", "state": {"slot_values": {"hotel-pricerange": ["cheap"], "hotel-area": ["dontcare"]}}}
        ],
    },
    {"turn_id": "1", "speaker": "SYSTEM", "utterance": "The Willow is nice, call 555.", "frames": []},
    {
        "turn_id": "2",
        "speaker": "USER",
        "utterance": "book it",
        "frames": [
            {
                "service": "hotel",
                "state": {"slot_values": {"hotel-pricerange": ["cheap"], "hotel-bookday": ["monday", "mon"]}},
            },
            {"service": "train", "state": {"slot_values": {"train-leaveat": ["9:15"]}}},
        ],
    },
    {"turn_id": "3", "speaker": "SYSTEM", "utterance": "Booked, AB12.", "frames": []},
]
ACTS_OF_ONE: dict[str, Any] = {
    "1": {
        "span_info": [
            ["Hotel-Inform", "phone", "555", 25, 28],
            ["Hotel-Inform", "name", "The Willow", 0, 10],
            ["Hotel-Inform", "type", "Willow", 4, 10],
            ["Hotel-Inform", "area", "dontcare", 14, 18],
        ]
    },
    "3": {"span_info": [["Booking-Book", "ref", "AB12", 8, 12]]},
}


def official(folder: Path) -> Path:
    """A small copy of the official repository: one dialogue in each split."""
    ids = {"train": "SNG01.json", "dev": "SNG02.json", "test": "MUL03.json"}
    files: dict[str, Any] = {name: [] for split in SPLITS for name in list_dialogue_files(split)}
    for split, name in ids.items():
        files[list_dialogue_files(split)[0]] = [{"dialogue_id": name, "services": ["hotel"], "turns": TURNS}]
    files[ACTS] = dict.fromkeys(ids.values(), ACTS_OF_ONE)
    files["db/hotel_db.json"] = [
        {"id": "0", "name": "willow", "pricerange": "cheap", "type": "guesthouse", "internet": "yes"}
    ]
    files["db/train_db.json"] = [{"trainID": "TR1", "leaveAt": "10:00", "destination": "ely"}]
    files |= {f"db/{domain}_db.json": [{"id": "1", "name": "x"}] for domain in ("restaurant", "attraction")}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        document = {name: {"goal": GOAL, "log": LOG} for name in ids.values()}
        archive.writestr("MultiWOZ_2.1/data.json", json.dumps(document))
        archive.writestr("__MACOSX/MultiWOZ_2.1/._data.json", "x")
    (folder / GOALS_ZIP).write_bytes(packed.getvalue())
    return folder


class Quiet(SimpleHTTPRequestHandler):
    asked: list[str] = []
    broken: set[str] = set()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path in self.broken:
            self.send_error(503)
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Quiet, "asked", [])
    monkeypatch.setattr(Quiet, "broken", set())
    folder = official(tmp_path / "site")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_what_is_built_can_be_evaluated(address: str) -> None:
    add_pack("multiwoz", address)
    task = load_task()
    assert list(task.files.turns.items()) == [("mul03", 2)]
    assert load_task(split="dev").files.turns == {"sng02": 2}
    assert load_task(split="dev").files.users == {"sng02": ["a cheap room", "book it"]}
    assert task.files.states is not None
    assert task.files.states.states["mul03"] == [
        {"hotel": {"pricerange": "cheap"}},
        {"hotel": {"pricerange": "cheap", "bookday": "monday"}, "train": {"leave": "09:15"}},
    ]
    assert task.files.references is not None
    assert task.files.references.sets["mwz22"]["mul03"] == ["NAME is nice, call PHONE.", "booked, REFERENCE."]
    assert task.files.goals.booked == {"mul03": [[], ["hotel"]]}
    turns = [
        {"response": "[hotel_name], call [hotel_phone], [hotel_postcode]", "active_domains": ["hotel"]},
        {"response": "[train_id], [ref]", "active_domains": ["train"]},
    ]
    output = Evaluator().evaluate({"mul03": turns})
    assert output["success"]["inform"] == {"hotel": 100.0, "total": 100.0, "train": 100.0}
    assert output["success"]["success"]["total"] == 0.0  # the reference came while the train was active
    with pytest.raises(DataError, match=r"belongs to the split 'dev'.*--split"):
        Evaluator().evaluate({"sng02": turns})
    with pytest.raises(SettingError, match="no split 'tset'; it has train, dev, test"):
        load_task(split="tset")


def test_a_broken_download_goes_on_with_what_is_missing(address: str) -> None:
    Quiet.broken = {f"/{list_dialogue_files('test')[1]}"}
    with pytest.raises(DataError, match="run the same command again"):
        add_pack("multiwoz", address)
    assert find_pack("multiwoz") is None
    before = len(Quiet.asked)
    Quiet.broken = set()
    add_pack("multiwoz", address)
    assert Quiet.asked[before:] == [f"/{list_dialogue_files('test')[1]}"]


def test_a_folder_of_neither_layout(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds neither goals.json nor data/MultiWOZ_2.2/dialog_acts.json"):
        add_pack("multiwoz", from_folder=tmp_path)
    assert find_pack("multiwoz") is None


def test_damaged_data_is_named(tmp_path: Path) -> None:
    folder = official(tmp_path)
    (folder / list_dialogue_files("dev")[1]).write_text("[{]")
    with pytest.raises(DataError, match=r"dialogues_002.json:1: not JSON"):
        add_pack("multiwoz", from_folder=folder)
    broken = [{"dialogue_id": "SNG02.json", "turns": [{"speaker": "USER"}, {"speaker": "SYSTEM", "turn_id": "1"}]}]
    (folder / list_dialogue_files("dev")[1]).write_text(json.dumps(broken))
    with pytest.raises(DataError, match=r"sng02: is not in the official form \(KeyError: 'utterance'\)"):
        add_pack("multiwoz", from_folder=folder)


@pytest.mark.golden
def test_from_the_shared_layout(shared_data: Path) -> None:
    add_pack("multiwoz", from_folder=shared_data / "multiwoz")
    predictions = shared_data / "multiwoz" / "predictions" / "lava.json.gz"
    expected = json.loads((shared_data / "multiwoz" / "golden.json").read_text())["systems"]["lava"]["outputs"]
    assert Evaluator().evaluate(predictions)["success"] == expected["as_shipped"]["success"]


METADATA = {
    "2.1": {"semi": {"pricerange": "cheap", "area": "not mentioned"}, "book": {"booked": [], "day": "monday"}},
    "2.4": {"semi": {"pricerange": "moderate", "area": "dontcare"}, "book": {"booked": [], "day": ""}},
}


def unpacked(folder: Path, version: str, suffix: str) -> Path:
    """The folder that the archive of a version unpacks to: one dialogue in each split."""
    log = [
        {"text": "a cheap room", "metadata": {}},
        {"text": "the willow", "metadata": {"hotel": METADATA[version], "taxi": {"semi": {}, "book": {"booked": []}}}},
        {"text": "book it", "metadata": {}},
        {"text": "booked", "metadata": {"hotel": {**METADATA[version], "book": {"booked": [{"reference": "AB12"}]}}}},
    ]
    folder.mkdir()
    corpus = {name: {"goal": GOAL, "log": log} for name in ("SNG01.json", "SNG02.json", "MUL03.json")}
    (folder / "data.json").write_text(json.dumps(corpus))
    (folder / f"valListFile.{suffix}").write_text("SNG02.json\n")
    (folder / f"testListFile.{suffix}").write_text("MUL03.json\n\n")
    return folder


def test_versions_differ_in_goals_and_states_and_are_not_compared(tmp_path: Path) -> None:
    old, new = unpacked(tmp_path / "2.1", "2.1", "txt"), unpacked(tmp_path / "2.4", "2.4", "json")
    with pytest.raises(NeedError, match="dialeval data add multiwoz"):
        add_pack("multiwoz-2.4", from_folder=new)
    add_pack("multiwoz", from_folder=official(tmp_path / "official"))
    for name, folder in (("multiwoz-2.1", old), ("multiwoz-2.4", new)):
        add_pack(name, from_folder=folder)
    tasks = {name: load_task(name) for name in ("multiwoz-2.1", "multiwoz-2.2", "multiwoz-2.4")}
    assert [task.files.version for task in tasks.values()] == list(tasks)
    states = {name: task.files.states for name, task in tasks.items()}
    assert states["multiwoz-2.1"] is not None
    assert states["multiwoz-2.4"] is not None
    assert states["multiwoz-2.1"].states["mul03"][0] == {"hotel": {"pricerange": "cheap", "bookday": "monday"}}
    assert states["multiwoz-2.4"].states["mul03"][0] == {"hotel": {"pricerange": "moderate"}}
    assert tasks["multiwoz-2.4"].files.goals.is_booked("mul03", 1, "hotel")
    assert tasks["multiwoz-2.4"].files.references is not None
    assert tasks["multiwoz-2.4"].files.users == {"mul03": ["a cheap room", "book it"]}
    assert load_task("multiwoz-2.4", "train").files.turns == {"sng01": 2}
    document = {"mul03": [{"response": "[hotel_name] [hotel_phone]"}, {"response": "[hotel_reference]"}]}
    runs = {
        name: Evaluator(richness=False, data=task).run({name: document})
        for name, task in tasks.items()
        if name != "multiwoz-2.2"
    }
    inform = runs["multiwoz-2.4"]["multiwoz-2.4"]["inform"]
    assert inform.signature is not None
    assert inform.signature["data"] == "multiwoz-2.4"
    reasons = {row.key: row.reason for row in dialeval.compare(runs).differences}
    assert reasons["inform"] == reasons["combined"] == "versions of the data differ: multiwoz-2.1 and multiwoz-2.4"
    assert "data" not in (runs["multiwoz-2.4"]["multiwoz-2.4"]["bleu/mwz22"].signature or {})


def test_problems_of_a_version(tmp_path: Path) -> None:
    add_pack("multiwoz", from_folder=official(tmp_path / "official"))
    with pytest.raises(DataError, match=r"does not hold data.json; name the folder that the archive of MultiWOZ 2.4"):
        add_pack("multiwoz-2.4", from_folder=tmp_path)
    folder = unpacked(tmp_path / "2.4", "2.4", "json")
    (folder / "testListFile.json").unlink()
    with pytest.raises(DataError, match=r"holds neither testListFile.json nor testListFile.txt"):
        add_pack("multiwoz-2.4", from_folder=folder)
    (folder / "testListFile.json").write_text("MUL99.json")
    with pytest.raises(DataError, match="mul99: is not in the official form"):
        add_pack("multiwoz-2.4", from_folder=folder)
    with pytest.raises(SettingError, match=r"the data pack multiwoz-2.0 is not installed"):
        load_task("multiwoz-2.0")
    with pytest.raises(SettingError, match="no address to download from"):
        add_pack("multiwoz-2.0")


def test_a_split_of_a_pack_is_taken_as_the_test_set(tmp_path: Path) -> None:
    pack = add_pack("multiwoz", from_folder=official(tmp_path / "official"))
    folder = shutil.copytree(pack.path / "dev", tmp_path / "split")
    shutil.copytree(pack.path / "database", folder / "database")
    (folder / "version.json").write_text('"multiwoz-2.2"')
    before = load_task(split="dev").files
    remove_pack("multiwoz")
    add_pack("multiwoz", from_folder=folder)
    task = load_task().files
    assert (task.goals, task.states, task.references) == (before.goals, before.states, before.references)
    assert (task.users, task.turns, task.version) == (before.users, {"sng02": 2}, "multiwoz-2.2")
    remove_pack("multiwoz")
    (folder / "splits.json").write_text("{}")
    with pytest.raises(DataError, match="has splits already; pass it as --data"):
        add_pack("multiwoz", from_folder=folder)


def test_goals_may_be_unpacked_already(tmp_path: Path) -> None:
    folder = official(tmp_path)
    with zipfile.ZipFile(folder / GOALS_ZIP) as archive:
        archive.extract("MultiWOZ_2.1/data.json", folder / "data")
    (folder / GOALS_ZIP).unlink()
    add_pack("multiwoz", from_folder=folder)
    assert load_task().files.turns == {"mul03": 2}
    remove_pack("multiwoz")
    (folder / "data" / "MultiWOZ_2.1" / "data.json").unlink()
    with pytest.raises(DataError, match=rf"does not hold {GOALS_ZIP}"):
        add_pack("multiwoz", from_folder=folder)
