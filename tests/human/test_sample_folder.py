"""The folder of rows to rate: read as it was written, and refused where it was changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import dialeval
from dialeval.core.errors import DataError, SettingError
from dialeval.core.result import Run
from dialeval.human.sample_files import check_same_run, find_sample, read_sample
from human.rated_runs import run_of

RUN, _ = run_of(dialogues=10)


def test_a_sample_is_read_as_it_was_written(tmp_path: Path) -> None:
    drawn = dialeval.sample(RUN, 12, stratify=["turn"])
    folder = drawn.save(tmp_path / "to-rate")
    found = read_sample(folder)
    assert found.responses == drawn.responses
    assert found.design.strata == drawn.design.strata
    assert found.design.seed == 12345
    line = json.loads((folder / "rows.jsonl").read_text().splitlines()[0])
    assert list(line) == [
        *("id", "system", "row", "probability", "stratum", "response", "context", "dialog_id", "turn", "aligned")
    ]
    assert found.by_id()[line["id"]] == line
    dialeval.sample(RUN, 6).save(folder)
    assert len(read_sample(folder).responses) == 6


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("mine")
    with pytest.raises(DataError, match="did not write it"):
        dialeval.sample(RUN, 6).save(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda sample: sample.update(format=99), "was saved in layout 99"),
        (lambda sample: sample.update(unit="hours"), "unit"),
        (lambda sample: sample["rows"].update(sha256="0" * 64), "does not belong"),
        (lambda sample: sample["rows"].update(file="../rows.jsonl"), "rows.file"),
        (lambda sample: sample["strata"]["all"].update(drawn_units=10**9), "a stratum has fewer rows"),
        (lambda sample: sample["strata"]["all"].update(drawn_responses=8), "holds 12 rows"),
        (lambda sample: sample["systems"].pop("b"), "does not name"),
        (lambda sample: sample["systems"]["a"].update(rows=0), "which has fewer"),
    ],
)
def test_what_was_changed_is_refused(tmp_path: Path, change: object, words: str) -> None:
    folder = dialeval.sample(RUN, 12).save(tmp_path)
    sample = json.loads((folder / "sample.json").read_text())
    change(sample)  # type: ignore[operator]
    (folder / "sample.json").write_text(json.dumps(sample))
    with pytest.raises(DataError, match=words):
        read_sample(folder)


def changed_rows(folder: Path, **change: object) -> None:
    """Change a field of every row, with the digest made anew, as a forger would."""
    write_rows(folder, [json.loads(line) | change for line in (folder / "rows.jsonl").read_text().splitlines()])


def write_rows(folder: Path, rows: list[dict[str, object]]) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (folder / "rows.jsonl").write_bytes(content)
    sample = json.loads((folder / "sample.json").read_text())
    sample["rows"]["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "sample.json").write_text(json.dumps(sample))


@pytest.mark.parametrize("probability", [1e-300, 1e-9, 0.001])
def test_a_probability_that_the_design_does_not_give_is_refused(tmp_path: Path, probability: float) -> None:
    folder = dialeval.sample(RUN, 12).save(tmp_path)
    changed_rows(folder, probability=probability)
    with pytest.raises(DataError, match=f"has the probability {probability:g}"):
        read_sample(folder)


@pytest.mark.parametrize(("by", "dialogues"), [([], False), (["turn"], False), ([], True)])
def test_probabilities_of_every_draw_are_those_of_its_design(tmp_path: Path, by: list[str], dialogues: bool) -> None:
    for seed in range(5):
        drawn = dialeval.sample(run_of(dialogues=30, seed=seed)[0], 60, stratify=by, dialogues=dialogues, seed=seed)
        assert read_sample(drawn.save(tmp_path)).responses == drawn.responses


@pytest.mark.parametrize("name", ["ratings.sqlite", "ann.jsonl", "rate.html"])
def test_a_sample_with_ratings_is_not_replaced(tmp_path: Path, name: str) -> None:
    drawn = dialeval.sample(RUN, 12)
    folder = drawn.save(tmp_path / "to-rate")
    (folder / name).write_text("ratings")
    with pytest.raises(DataError, match=f"{name}: is in the folder of a sample"):
        dialeval.sample(RUN, 6).save(folder)
    assert read_sample(folder).responses == drawn.responses
    (folder / name).rename(tmp_path / name)
    dialeval.sample(RUN, 6).save(folder)
    assert len(read_sample(folder).responses) == 6


def test_another_run_is_not_taken_for_it() -> None:
    drawn = dialeval.sample(RUN, 12)
    check_same_run(drawn, RUN)
    with pytest.raises(SettingError, match="a has other rows now"):
        check_same_run(drawn, run_of(dialogues=11)[0])
    with pytest.raises(SettingError, match="b is not in this run"):
        check_same_run(drawn, Run({"a": RUN["a"]}, "0"))


def rated(path: Path, ids: list[str]) -> Path:
    lines = [json.dumps({"id": each, "rater": "ann", "scores": {"overall": 1}}) for each in ids]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_sample_of_ratings_is_found_by_its_ids(tmp_path: Path) -> None:
    one, two = (dialeval.sample(RUN, 12, seed=seed) for seed in (1, 2))
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    ratings = rated(tmp_path / "ratings.jsonl", [row.id for row in two.responses[:5]])
    found = find_sample([ratings])
    assert found is not None
    assert found[0].responses == two.responses
    inside = rated(tmp_path / "one" / "own.jsonl", [one.responses[0].id])
    found = find_sample([inside])
    assert found is not None
    assert found[0].responses == one.responses


def test_no_sample_is_guessed(tmp_path: Path) -> None:
    drawn = dialeval.sample(RUN, 12)
    drawn.save(tmp_path / "one")
    own = [row.id for row in drawn.responses]
    assert find_sample([rated(tmp_path / "a.jsonl", [*own, "other"])]) is None  # not all ids
    (tmp_path / "b.jsonl").write_text('{"response": "hi", "rating": 3}\n')
    assert find_sample([tmp_path / "b.jsonl"]) is None  # no ids
    assert find_sample([]) is None
    (tmp_path / "one" / ".hidden").touch()
    drawn.save(tmp_path / "one")  # hidden files hold no ratings
    ratings = rated(tmp_path / "c.jsonl", own)
    assert find_sample([ratings]) is not None
    drawn.save(tmp_path / "copy")
    assert find_sample([ratings]) is None  # two
    (tmp_path / "copy" / "rows.jsonl").write_text("{}\n")
    assert find_sample([ratings]) is not None  # the damaged one does not count


def test_a_sample_that_has_ratings_is_not_replaced(tmp_path: Path) -> None:
    run = dialeval.evaluate({"a": ["one", "two", "three"]}, metrics="length")
    dialeval.sample(run, 2, seed=1).save(tmp_path)
    dialeval.sample(run, 2, seed=2).save(tmp_path)
    for name in ("ratings.sqlite", "ann.jsonl"):
        (tmp_path / name).write_text("")
        with pytest.raises(DataError, match=rf"{name}: is in the folder of a sample"):
            dialeval.sample(run, 2, seed=3).save(tmp_path)
        (tmp_path / name).unlink()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row": 31}, "is row 31 of"),
        ({"stratum": "other"}, "is of a stratum or system that sample.json does not name"),
        ({"system": "other"}, "is of a stratum or system that sample.json does not name"),
        ({"row": 0}, "row"),
        ({"probability": 1.01}, "probability"),
        ({"id": ""}, "id"),
        ({"id": "x" * 65}, "id"),
        ("id", "holds a row or an id twice"),
        ("row", "holds a row or an id twice"),
    ],
)
def test_a_row_that_does_not_belong_to_the_design_is_refused(
    tmp_path: Path, change: dict[str, object] | str, words: str
) -> None:
    folder = dialeval.sample(RUN, 4).save(tmp_path)
    first, *others = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    if isinstance(change, str):  # as in another row of the system
        other = next(row for row in others if row["system"] == first["system"])
        change = {change: other[change]}
    write_rows(folder, [first | change, *others])
    with pytest.raises(DataError) as error:
        read_sample(folder)
    (problem,) = error.value.problems
    assert words in problem.what
    assert problem.where == str(folder / "rows.jsonl")
