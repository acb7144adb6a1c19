"""The judge: formula against a twin, missing parts, references, saving; fitting, the paper's recipe, attacks."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.metrics.learned.attack import ATTACKS, attack
from dialeval.metrics.learned.examples import examples_of
from dialeval.metrics.learned.fitting import SET_WEIGHT, AdemSettings, fit_adem, fit_identity
from dialeval.metrics.learned.judge import LazyJudge, joined, open_judge, open_vectors, reference_vectors
from dialeval.metrics.learned.weights import Weights, load
from metrics.learned.judges import CONSTANTS, invented_ratings, tiny_judge, tiny_vectors, tiny_weights
from tiny_encoder import write_encoder


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
    np.testing.assert_allclose(weights.score(c, r, said, has_c, has_r), expected, rtol=1e-12)


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    weights = tiny_weights(dimension=384, rank=8)
    dice = np.random.default_rng(2)
    c, r, said = (dice.normal(0, 0.05, (1500, 384)).astype(np.float32) for _ in range(3))
    there = np.ones(1500, bool)
    whole = weights.score(c, r, said, there, there)
    part = slice(1020, 1051)
    np.testing.assert_array_equal(weights.score(c[part], r[part], said[part], there[part], there[part]), whole[part])


def test_weights_are_saved_to_the_bit(tmp_path: Path) -> None:
    weights = replace(tiny_weights(), encoder="tiny", encoder_digest="abc", tokens=32, facts={"data": ["x"]})
    again = load(weights.save(tmp_path))
    assert again.digest == weights.digest
    for name in ("context_left", "context_right", "reference_left", "reference_right", "response"):
        np.testing.assert_array_equal(getattr(again, name), getattr(weights, name))
    assert (again.identity, again.calibration, again.facts) == (0.75, CONSTANTS, {"data": ["x"]})
    assert replace(weights, turns=2).digest != weights.digest


def test_broken_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / "none")
    folder = tiny_weights().save(tmp_path / "a")
    (folder / "judge.safetensors").write_bytes(pickle.dumps({"M": 1}))
    with pytest.raises(DataError, match=r"does not belong to judge\.json"):
        load(folder)
    (folder / "judge.json").write_text("{}")
    with pytest.raises(DataError, match="holds no weights of a judge"):
        load(folder)
    (folder / "judge.json").write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        load(folder)


def test_context_and_closest_reference(tmp_path: Path) -> None:
    assert joined(["a", "b", " ", "c", "d"], 3) == "c d"
    vectors = tiny_vectors(tmp_path / "e")
    said = vectors.of(["the cat", "hello there", "dog"])
    found, there = reference_vectors(vectors, [["mat", "the cat"], [" ", ""], ["dog"]], said)
    np.testing.assert_array_equal(found[0], said[0])
    np.testing.assert_array_equal(found[2], said[2])
    assert there.tolist() == [True, False, True]


def test_a_judge_scores_what_it_can_and_survives_a_process_boundary(tmp_path: Path) -> None:
    judge = tiny_judge(tmp_path / "e")
    rows = (
        [["hello there"], [], ["how are you ?"], []],
        ["i am fine", "the cat", "", "x"],
        [["i am fine"], ["a cat"], [], []],
    )
    scores = judge.score(*rows)
    assert np.isnan(scores).tolist() == [False, False, False, True]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(judge)).score(*rows), scores)
    assert judge.digest.startswith("adem@")
    assert "+e@" in judge.digest


def test_a_judge_of_other_vectors_is_refused(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "e")
    weights = replace(tiny_weights(), encoder=str(encoder), encoder_digest="0" * 12, tokens=32)
    folder = weights.save(tmp_path / "judge")
    with pytest.raises(SettingError, match="was fitted to other vectors"):
        open_judge(folder)
    vectors = open_vectors(encoder, 32)
    replace(weights, encoder_digest=vectors.encoder.files.digest).save(folder)  # type: ignore[attr-defined]
    assert LazyJudge(folder).score([["hello"]], ["the cat"], [[]]).shape == (1,)
    with pytest.raises(SettingError, match="not on 'tpu'"):
        LazyJudge(folder, device="tpu")


def test_the_fit_is_the_solution_of_the_problem(tmp_path: Path) -> None:
    """Against the normal equations of the full problem, with outer products written out."""
    examples = examples_of(invented_ratings(), tiny_vectors(tmp_path / "e"))
    settings = AdemSettings(strength=3.0, response_strength=5.0, rank=8)
    found = fit_adem(examples, settings)
    c, r, said = (part.astype(np.float64) for part in (examples.context, examples.reference, examples.response))
    features = np.concatenate(
        [
            np.einsum("ij,ik->ijk", c, said).reshape(len(c), -1),
            np.einsum("ij,ik->ijk", r, said).reshape(len(c), -1),
            said,
        ],
        1,
    )
    z = examples.scores.copy()
    weight = np.empty(len(z))
    for each in np.unique(examples.sets):
        mine = examples.sets == each
        features[mine] -= features[mine].mean(0)
        z[mine] = (z[mine] - z[mine].mean()) / z[mine].std()
        weight[mine] = SET_WEIGHT / mine.sum()
    eye = np.concatenate([np.eye(8).ravel(), np.eye(8).ravel(), np.zeros(8)])
    term = features @ eye
    share = (weight * term * z).sum() / (weight * term * term).sum()
    penalty = np.concatenate([np.full(128, 3.0), np.full(8, 5.0)])
    left = features.T @ (weight[:, None] * features) + np.diag(penalty)
    expected = np.linalg.solve(left, features.T @ (weight * (z - share * term)))
    assert found.identity == pytest.approx(share, rel=1e-4)
    np.testing.assert_allclose(found.context_left @ found.context_right.T, expected[:64].reshape(8, 8), atol=5e-3)
    np.testing.assert_allclose(
        found.reference_left @ found.reference_right.T, expected[64:128].reshape(8, 8), atol=5e-3
    )
    np.testing.assert_allclose(found.response, expected[128:], rtol=2e-3, atol=1e-3)
    assert fit_adem(examples, settings).digest == found.digest


def test_fits_are_on_the_scale_and_better_than_nothing(tmp_path: Path) -> None:
    vectors = tiny_vectors(tmp_path / "e")
    examples = examples_of(invented_ratings(240), vectors)
    fits: list[Weights] = [fit_identity(examples), fit_adem(examples, AdemSettings(0.01, 0.01))]
    agreement = []
    for weights in fits:
        scores = weights.score(
            examples.context, examples.reference, examples.response, examples.has_context, examples.has_reference
        )
        assert abs(scores.mean() - examples.scores.mean()) < 0.2
        agreement.append(np.corrcoef(scores, examples.scores)[0, 1])
    assert agreement[1] > agreement[0] + 0.1


def test_the_papers_recipe_gives_the_same_twice(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from dialeval.metrics.learned.paper import PaperSettings, fit_paper

    examples = examples_of(invented_ratings(), tiny_vectors(tmp_path / "e"))
    settings = PaperSettings(components=4, epochs=5)
    one, other = fit_paper(examples, settings), fit_paper(examples, settings)
    assert one.digest == other.digest
    assert one.context_left.shape == (8, 4)
    assert load(one.save(tmp_path / "j")).kind == "paper"


def test_rows_of_a_shared_context_are_kept_apart(tmp_path: Path) -> None:
    ratings = invented_ratings(12)
    ratings.contexts[1][-1] = ratings.contexts[0][-1].upper() + " !"  # type: ignore[index]
    examples = examples_of(ratings, tiny_vectors(tmp_path / "e"))
    first, second = examples.of_sets(["set0"]), examples.of_sets(["set1"])
    assert len(second.without(first)) == len(second) - 1
    assert not set(second.without(first).contexts.tolist()) & set(first.contexts.tolist())


def test_attacks(tmp_path: Path) -> None:
    judge = tiny_judge(tmp_path / "e")
    ratings = invented_ratings(40)
    found = {each.name: each for each in attack(judge, ratings.contexts, ratings.responses, ratings.references)}
    assert list(found) == list(ATTACKS)
    assert all(each.rows == 40 for each in found.values())
    real = judge.score(ratings.contexts, ratings.responses, ratings.references)
    turned = [" ".join(reversed(text.split())) for text in ratings.responses]
    other = judge.score(ratings.contexts, turned, ratings.references)
    each = found["reversed"]
    assert each.real == pytest.approx(real.mean())
    assert each.mean == pytest.approx(other.mean())
    assert each.not_worse == pytest.approx((other >= real).mean())
    assert each.correlation == pytest.approx(np.corrcoef(real, other)[0, 1])
    bare = {each.name for each in attack(judge, ratings.contexts, ["word"] * 40, [[]] * 40)}
    assert bare == {"dull", "context"}, "what cannot be tried is left out"
    unasked = {each.name for each in attack(judge, [[]] * 40, ratings.responses, ratings.references)}
    assert unasked == {"reversed", "dull", "random", "reference"}
    with pytest.raises(SettingError, match="no row has a context or a reference"):
        attack(judge, [[]] * 40, ratings.responses, [[]] * 40)


def test_ratings_without_what_is_needed_are_refused(tmp_path: Path) -> None:
    ratings = invented_ratings(6)
    vectors = tiny_vectors(tmp_path / "e")
    with pytest.raises(SettingError, match="nobody rated 'taste'"):
        examples_of(ratings, vectors, quality="taste")
    bare = replace(ratings, contexts=[[]] * 6, references=[[]] * 6)
    with pytest.raises(SettingError, match="both a score and a context or a reference"):
        examples_of(bare, vectors)
    equal = replace(ratings, values={"overall": np.full(6, 3.0)})
    with pytest.raises(SettingError, match="nothing to learn"):
        fit_adem(examples_of(equal, vectors))
