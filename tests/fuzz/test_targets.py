"""Every target for a moment: seeds give results, and what is made of them a result or an error of our own.

Without a clock, so that the same inputs are tried every time. `make fuzz` goes on for minutes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import harness

INPUTS = 90
NAMES = tuple(harness.all_targets())


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, harness.Attacked]:
    findings = tmp_path_factory.mktemp("findings")
    return harness.fuzz(harness.Work(NAMES, 1, harness.Budget(inputs=INPUTS), str(findings)))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found(attacked: dict[str, harness.Attacked], name: str) -> None:
    one = attacked[name]
    assert not one.findings, "\n".join(f"{each.what}\npython -m tests.fuzz replay {each.path}" for each in one.findings)
    assert one.tally.inputs >= INPUTS
    assert one.tally.results + one.tally.refused == one.tally.inputs


@pytest.mark.parametrize("name", NAMES)
def test_changes_matter(attacked: dict[str, harness.Attacked], name: str) -> None:
    """Not all is refused, and not all is taken: else the mutators would only scratch the surface."""
    chosen = harness.TARGETS[name]
    assert attacked[name].tally.results > len(chosen.seeds())
    assert attacked[name].tally.refused > 0


def test_old_findings_belong_to_targets() -> None:
    for path in harness.FOUND.glob("*"):
        assert path.name.endswith(".zip")
        assert path.stem.rpartition("-")[0] in NAMES


def test_inputs_depend_on_seed_and_number_alone() -> None:
    chosen = harness.TARGETS["jsonl"]
    one, other = (harness.Inputs.of(chosen, 3) for _ in range(2))
    numbers = list(range(30))
    assert [one[number] for number in numbers] == [other[number] for number in reversed(numbers)][::-1]
    assert len({harness.packed(one[number]) for number in numbers}) > 20
    assert harness.Inputs.of(chosen, 4)[25] != one[25]


def test_every_mutator_is_used(tmp_path: Path) -> None:
    """Each of them makes something of some seed."""
    import random

    from fuzz import mutation

    every = {*mutation.BYTES, *(each for suited in mutation.BY_SUFFIX.values() for each in suited)}
    worked = set()
    for chosen in harness.all_targets().values():
        for files in chosen.seeds():
            for name, content in files.items():
                for mutator in (*mutation.BYTES, *mutation.BY_SUFFIX.get(Path(name).suffix, ())):
                    rng = random.Random(name)
                    for _ in range(5):
                        try:
                            if mutator(content, rng) != content:
                                worked.add(mutator)
                        except mutation.Unfit:
                            continue
    assert every - worked == set()
