"""The weights: formula against a twin, missing parts, saving, broken folders."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from dialeval.core.errors import DataError
from dialeval.judges.adem import Encoded, load_adem, save_weights
from judges.tiny_judges import CONSTANTS, tiny_weights


def test_the_formula_is_that_of_full_matrices() -> None:
    weights = tiny_weights()
    dice = np.random.default_rng(1)
    c, r, said = (dice.normal(0, 0.3, (7, 8)) for _ in range(3))
    by_context = weights.identity * np.eye(8) + weights.context_left @ weights.context_right.T
    by_reference = weights.identity * np.eye(8) + weights.reference_left @ weights.reference_right.T
    by_c, by_r = np.einsum("ij,jk,ik->i", c, by_context, said), np.einsum("ij,jk,ik->i", r, by_reference, said)
    alone = said @ weights.response
    has_c, has_r = np.array([1, 1, 1, 0, 0, 1, 1], bool), np.array([1, 1, 0, 1, 0, 0, 1], bool)
    expected = []
    for row in range(7):
        case = {(1, 1): "both", (1, 0): "context", (0, 1): "reference"}.get((int(has_c[row]), int(has_r[row])))
        raw = by_c[row] * has_c[row] + by_r[row] * has_r[row] + alone[row]
        expected.append(np.clip((raw - CONSTANTS[case][0]) / CONSTANTS[case][1], 1, 5) if case else np.nan)
    np.testing.assert_allclose(weights.score(Encoded(c, r, said, has_c, has_r)), expected, rtol=1e-12)


def test_weights_are_saved_to_the_bit(tmp_path: Path) -> None:
    weights = replace(tiny_weights(), encoder="tiny", encoder_digest="abc", tokens=32, facts={"data": ["x"]})
    again = load_adem(weights.save(tmp_path))
    assert again.digest == weights.digest
    for name in ("context_left", "context_right", "reference_left", "reference_right", "response"):
        np.testing.assert_array_equal(getattr(again, name), getattr(weights, name))
    assert (again.identity, again.calibration, again.facts) == (0.75, CONSTANTS, {"data": ["x"]})
    assert replace(weights, turns=2).digest != weights.digest


def test_broken_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        load_adem(tmp_path / "none")
    folder = tiny_weights().save(tmp_path / "a")
    (folder / "judge.safetensors").write_bytes(pickle.dumps({"M": 1}))
    with pytest.raises(DataError, match=r"does not belong to judge\.json"):
        load_adem(folder)
    (folder / "judge.json").write_text("{}")
    with pytest.raises(DataError, match="missing required field format"):
        load_adem(folder)
    (folder / "judge.json").write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        load_adem(folder)


def test_a_judge_replaces_a_judge_and_nothing_else(tmp_path: Path) -> None:
    first, second = tiny_weights(), replace(tiny_weights(), identity=0.5)
    for weights, card in ((first, "first"), (second, "second")):
        assert load_adem(weights.save(tmp_path / "judge", card)).digest == weights.digest
        assert (tmp_path / "judge" / "README.md").read_text() == card
    assert {path.name for path in (tmp_path / "judge").iterdir()} == {"judge.json", "judge.safetensors", "README.md"}
    for name in ("README.md", "judge.json", "judge.safetensors"):
        (tmp_path / name).write_text("[]")
        with pytest.raises(DataError, match=f"{name}: would be overwritten, but dialeval did not write it"):
            first.save(tmp_path)
        assert (tmp_path / name).read_text() == "[]"
        (tmp_path / name).unlink()


def test_a_judge_stays_when_another_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tiny_weights()
    first.save(tmp_path)

    def full(path: Path, target: Path) -> Path:
        if Path(target).name == "judge.json":
            raise OSError(28, "No space left on device")
        path.rename(target)
        return Path(target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(DataError, match="No space left"):
        replace(first, identity=0.5).save(tmp_path)
    assert load_adem(tmp_path).digest == first.digest


def test_no_digit_of_a_judge_is_changed_unnoticed(tmp_path: Path) -> None:
    facts = tiny_weights().save(tmp_path) / "judge.json"
    sound = facts.read_bytes()
    for place, byte in enumerate(sound):
        if chr(byte).isdigit():
            facts.write_bytes(sound[:place] + b"%d" % ((byte - ord("0") + 5) % 10) + sound[place + 1 :])
            with pytest.raises(DataError, match=r"judge\.json|was saved in layout"):
                load_adem(tmp_path)


@pytest.mark.parametrize(
    ("name", "tensor", "words"),
    [
        ("response", np.zeros(8), "response holds other numbers than weights have"),
        ("context_left", np.zeros((8, 3), np.float32), "context_left and context_right have different shapes"),
        ("reference_right", np.zeros((8, 1), np.float32), "reference_left and reference_right have different shapes"),
    ],
)
def test_tensors_of_another_kind_or_shape_are_refused(
    tmp_path: Path, name: str, tensor: np.ndarray[Any, Any], words: str
) -> None:
    folder = tiny_weights().save(tmp_path)
    document = json.loads((folder / "judge.json").read_text())
    kept = {key: value for key, value in document.items() if key not in ("format", "sha256", "digest")}
    tensors = load_file(folder / "judge.safetensors")
    save_weights(folder, kept, {**tensors, name: tensor})
    with pytest.raises(DataError, match=words):
        load_adem(folder)
