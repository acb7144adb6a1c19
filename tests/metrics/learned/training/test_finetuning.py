"""Further training of an encoder: replies come nearer, seeds are kept, and what is saved is what was trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.resources.encoder import Encoder
from dialeval.resources.encoder_files import find_encoder
from tiny_encoder import write_encoder

pytest.importorskip("torch")

from dialeval.metrics.learned.torch_encoder import TorchEncoder
from dialeval.metrics.learned.training.finetuning import (
    FineTuning,
    Pairs,
    _shuffled,
    fine_tune,
    pairs_of,
    rate,
    save_encoder,
)

TEXTS = ["the cat sat on a mat", "", "hello there", "how are you ?", "dogs do not know .", "cat " * 40, "i am fine"]


def test_further_training_brings_replies_nearer_and_is_saved_as_it_is(tmp_path: Path) -> None:
    files = find_encoder(write_encoder(tmp_path / "before"))
    dialogue = ["hello there", "how are you ?", "i am fine", "the cat sat on a mat", "the dog do not know ."]
    pairs = pairs_of([dialogue] * 4)
    assert len(pairs) == 16
    assert pairs.contexts[2] == "hello there how are you ? i am fine"
    settings = FineTuning(epochs=8, batch_size=4, learning_rate=0.01, same_dialogue=True, share=0.9)
    results = []
    steps: list[tuple[int, int | None]] = []
    for _ in range(2):
        encoder = TorchEncoder(files, 24)
        losses = fine_tune(encoder, pairs, settings, lambda *step: steps.append(step))
        results.append(encoder.encode(TEXTS))
        assert losses[-1] < losses[0]
    np.testing.assert_array_equal(results[0], results[1])
    assert steps == [(number, 32) for number in range(1, 33)] * 2
    saved = find_encoder(save_encoder(encoder, tmp_path / "after"))
    np.testing.assert_allclose(Encoder(saved, 24).encode(TEXTS), results[0], atol=1e-5)
    assert saved.digest != files.digest
    with pytest.raises(DataError, match="it is an input"):
        save_encoder(encoder, tmp_path / "before")
    assert find_encoder(tmp_path / "before").digest == files.digest
    (tmp_path / "config.json").write_text("of the user")
    with pytest.raises(DataError, match=r"config\.json: would be overwritten, but dialeval did not write it"):
        save_encoder(encoder, tmp_path)
    assert find_encoder(save_encoder(encoder, tmp_path / "after")).digest == saved.digest, "an encoder is replaced"
    with pytest.raises(SettingError, match="fewer than two pairs"):
        fine_tune(encoder, Pairs([], [], []))


def test_the_rate_goes_up_in_a_line_and_then_down_to_nothing() -> None:
    assert [rate(step, 10, 0.2) for step in range(11)] == [0.5, 1, 1, *(left / 8 for left in range(7, -1, -1))]
    assert [rate(step, 4, 0.0) for step in range(5)] == pytest.approx([1, 1, 2 / 3, 1 / 3, 0])
    assert [rate(step, 2, 1.0) for step in range(3)] == [0.5, 1, 0]
    assert rate(0, 1, 0.1) == 1


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch_size": 1}, {"learning_rate": 0.0}, {"temperature": 0.0}])
def test_settings_are_checked_one_by_one(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="at least 1"):
        FineTuning(**wrong)


def test_the_share_lies_above_0_and_up_to_1() -> None:
    for share in (0.0, 1.01):
        with pytest.raises(SettingError, match="up to 1"):
            FineTuning(share=share)
    FineTuning(epochs=1, batch_size=2, share=1.0)


def test_every_turn_but_the_first_is_a_reply_to_the_turns_before() -> None:
    pairs = pairs_of([["a", "b", "c", "d"], ["alone"], ["same", "same"], ["x", " ", "y"]], turns=2)
    assert list(zip(pairs.contexts, pairs.replies, strict=True)) == [
        ("a", "b"),
        ("a b", "c"),
        ("b c", "d"),
        ("x", "y"),
    ]
    assert all(
        other in dialogue and other != reply
        for other, reply, dialogue in zip(pairs.others, pairs.replies, ["abcd"] * 3 + ["x y"], strict=True)
    )
    assert [list(column) for column in (pairs.take(np.array([2, 0])).replies, pairs.take(np.array([1])).contexts)] == [
        ["d", "b"],
        ["a b"],
    ]


def test_shuffled_words_are_the_same_words_in_another_order() -> None:
    dice = np.random.default_rng(0)
    assert {_shuffled("one two", dice) for _ in range(20)} == {"two one"}
    assert sorted(_shuffled("a b c d", dice).split()) == ["a", "b", "c", "d"]
    assert _shuffled("yes", dice) == "yes yes"
    assert _shuffled("no no", dice) == "no no no no"


@pytest.mark.parametrize("same_dialogue", [False, True])
def test_the_loss_is_that_of_the_formula(tmp_path: Path, same_dialogue: bool) -> None:
    encoder = TorchEncoder(find_encoder(write_encoder(tmp_path / "e")), 24)
    pairs = pairs_of([["hello there", "how are you ?", "i am fine"], ["the cat sat", "the dog do not know ."]])
    context, reply, other = (
        encoder.encode(column, ends=number == 0).astype(np.float64)
        for number, column in enumerate((pairs.contexts, pairs.replies, pairs.others))
    )
    candidates = np.concatenate([reply, other] if same_dialogue else [reply])
    sizes = np.linalg.norm(context, axis=1)[:, None] * np.linalg.norm(candidates, axis=1)
    likely = np.exp(context @ candidates.T / sizes / 0.5)
    expected = -np.log(np.diag(likely) / likely.sum(axis=1)).mean()
    settings = FineTuning(epochs=1, temperature=0.5, same_dialogue=same_dialogue, shuffled=False)
    assert fine_tune(encoder, pairs, settings) == pytest.approx([expected], rel=1e-4)


def test_the_weights_move_the_given_share_of_the_way(tmp_path: Path) -> None:
    files = find_encoder(write_encoder(tmp_path / "e"))
    pairs = pairs_of([["hello there", "how are you ?", "i am fine", "the cat sat"]])
    before = TorchEncoder(files, 24).model.state_dict()
    weights = []
    for share in (1.0, 0.25):
        encoder = TorchEncoder(files, 24)
        fine_tune(encoder, pairs, FineTuning(epochs=2, batch_size=2, learning_rate=0.01, share=share))
        weights.append(encoder.model.state_dict())
    for name, value in before.items():
        whole, part = (each[name].numpy() for each in weights)
        np.testing.assert_allclose(part, value.numpy() + 0.25 * (whole - value.numpy()), atol=1e-6)
    assert any((weights[0][name] != value).any() for name, value in before.items())


def test_pairs_that_fill_no_batch_wait_for_another_epoch(tmp_path: Path) -> None:
    encoder = TorchEncoder(find_encoder(write_encoder(tmp_path / "e")), 24)
    pairs = pairs_of([["hello", "there", "how", "are", "you", "fine"]])
    assert len(pairs) == 5
    for size, many in ((2, 2), (5, 1), (9, 1)):
        steps: list[tuple[int, int | None]] = []
        losses = fine_tune(encoder, pairs, FineTuning(2, size), lambda *step, seen=steps: seen.append(step))
        assert len(losses) == 2
        assert steps == [(number, 2 * many) for number in range(1, 2 * many + 1)]
    two = pairs.take(np.array([0, 1]))
    assert len(fine_tune(encoder, two, FineTuning(1))) == 1, "two pairs are enough"
    with pytest.raises(SettingError, match="fewer than two pairs"):
        fine_tune(encoder, pairs.take(np.array([0])))
