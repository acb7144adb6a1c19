"""The judge that reads context and response together: verdicts, folders, and the one that ships."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.judges.adem import SHIPPED as ADEM
from dialeval.judges.adem import open_vectors
from dialeval.judges.judge import DialogueJudge, load_judge, softmax, split_heads
from dialeval.metrics.encoder_files import find_install_command
from judges.tiny_judges import tiny_dialogue_judge
from sealing import write_sealed
from tiny_encoder import write_encoder

needs_encoder = pytest.mark.skipif(find_install_command() is not None, reason="the weights of minilm are not installed")

CONTEXTS = [["hello there", "how are you ?"], [], [" "], ["the cat sat"]]
RESPONSES = ["i am fine", "the cat", "a dog", "do you know ?"]
REFERENCES = [["i am not fine", "a dog"], ["the cat"], [], []]


def test_verdicts_are_those_of_the_heads(tmp_path: Path) -> None:
    judge = tiny_dialogue_judge(tmp_path)
    verdicts = judge.verdicts(CONTEXTS, RESPONSES, REFERENCES)
    heads = split_heads(judge._cross_encoder.compute_heads([CONTEXTS[0], CONTEXTS[3]], [RESPONSES[0], RESPONSES[3]]))
    vectors = open_vectors(tmp_path / "encoder")
    closest = float((vectors.of(REFERENCES[0]) @ vectors.of(RESPONSES[:1])[0]).max())
    (first, last), ranks = heads["rating"][:, 0], heads["rank"][:, 0]
    with_reference = -0.3 + 0.3 * (first + 0.2 * ranks[0] + 1.5 * closest)
    without = -0.1 + 0.4 * (last + 0.2 * ranks[1])
    expected = [1 + 4 / (1 + np.exp(-with_reference)), np.nan, np.nan, 1 + 4 / (1 + np.exp(-without))]
    np.testing.assert_allclose(verdicts.score, expected, rtol=1e-6)
    np.testing.assert_array_equal(judge.score(CONTEXTS, RESPONSES, REFERENCES), verdicts.score)
    kinds = np.exp(heads["kind"])
    for values, other in ((verdicts.relevance, 1), (verdicts.novelty, 2), (verdicts.fluency, 3)):
        np.testing.assert_allclose(values[[0, 3]], kinds[:, 0] / (kinds[:, 0] + kinds[:, other]))
        assert np.isnan(values[[1, 2]]).all()
    np.testing.assert_allclose(verdicts.breakdown[[0, 3]], softmax(heads["breakdown"]))
    np.testing.assert_allclose(verdicts.breakdown[[0, 3]].sum(axis=1), 1)


def test_folders_that_hold_no_such_judge_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="judge of `dialeval adem`"):
        load_judge(ADEM)
    tiny_dialogue_judge(tmp_path)
    facts = tmp_path / "judge" / "judge.json"
    document = json.loads(facts.read_text())
    for name, value, message in (
        ("sha256", "0" * 64, "does not belong"),
        ("format", 99, "was saved in layout 99"),
        ("scale", {}, "missing required field rank"),
    ):
        write_sealed({**document, name: value}, facts)
        with pytest.raises(DataError, match=message):
            load_judge(tmp_path / "judge")
    facts.write_text(json.dumps(document))
    (tmp_path / "judge" / "judge.safetensors").unlink()
    with pytest.raises(DataError, match="there is no such file"):
        load_judge(tmp_path / "judge")


def test_no_digit_of_a_judge_is_changed_unnoticed(tmp_path: Path) -> None:
    tiny_dialogue_judge(tmp_path)
    facts = tmp_path / "judge" / "judge.json"
    sound = facts.read_bytes()
    for place, byte in enumerate(sound):
        if chr(byte).isdigit():
            facts.write_bytes(sound[:place] + b"%d" % ((byte - ord("0") + 5) % 10) + sound[place + 1 :])
            with pytest.raises(DataError, match=r"judge\.json"):
                load_judge(tmp_path / "judge")


def test_an_encoder_that_it_was_not_trained_on_is_refused(tmp_path: Path) -> None:
    tiny_dialogue_judge(tmp_path)
    other = DialogueJudge(tmp_path / "judge", write_encoder(tmp_path / "other", seed=1))
    with pytest.raises(SettingError, match="other weights"):
        other.verdicts(CONTEXTS, RESPONSES, REFERENCES)


@needs_encoder
def test_the_shipped_one_knows_a_reply_from_what_is_none() -> None:
    context = ["hi , how are you ?", "not so well , i have a cold ."]
    replies = ["oh no , get well soon !", context[-1], "soon well get , no oh !", "the train leaves at nine ."]
    judge = DialogueJudge()
    found = judge.verdicts([context] * 4, replies, [[]] * 4)
    assert found.score.argmax() == 0
    assert found.novelty.argmin() == 1
    assert found.fluency.argmin() == 2
    assert found.relevance.argmin() == 3
    assert found.breakdown[:, 2].argmin() == 0
