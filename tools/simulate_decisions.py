"""Simulate what comparisons decide: gates, coverage and false positives where other simulations found them wrong.

    python tools/simulate_decisions.py --seed 1 [--replicates 400] [--only skewed]

prints the table of docs/simulation-tables.md, "Decisions". The truth of each case is known. Columns are percentages of
data sets: significant, worse or better in the verdict, the interval has the truth, interval and p contradict each
other, marked as rough, the gate with the margin passes, equivalent, dialogues are paired, and another order of the
dialogues or another seed leads to another decision.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dialeval import evaluate
from dialeval.analysis.comparison import compare
from dialeval.analysis.gates import check_baseline
from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.columns import RaggedColumn
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import PROMPT, RowTable
from dialeval.core.signature import Signature

CORRELATED = ("bleu-1", "bleu-2", "bleu-3", "bleu-4", "rouge-l", "chrf", "rouge-score-1", "rouge-score-2", "call-f1")


class Case(NamedTuple):
    """A data set with its truth, and how it is compared."""

    run: Run
    truth: float
    settings: Mapping[str, Any]
    key: str
    margin: float | None = None
    shuffled: Run | None = None
    """The run with its dialogues in another order, to be compared with this order and with another seed."""


def make(items: Mapping[str, Floats], turns: Ints, users: Floats | None = None, level: Level = Level.TURN) -> Result:
    """Make a result with known values."""
    estimates = {}
    for key, values in items.items():
        signature = Signature.of(key, k=int(key[-1])) if key.startswith("pass-hat") else Signature.of(key)
        size = len(values)
        estimates[key] = Estimate(
            float(values.mean()), 0.0, size, size, scores=values, level=level, signature=signature
        )
    names = [f"d{number}" for number in range(len(turns))]
    fields = {}
    if users is not None:
        fields["user"] = RaggedColumn.from_lists([[f"u{int(user)}"] for user in np.repeat(users, turns)])
    return Result(estimates, table=RowTable(offsets_of(turns), names, fields=fields))


def pair(left: Result, right: Result) -> Run:
    """Return a run of two systems."""
    return Run({"old": left, "new": right}, "0")


def lose(rng: np.random.Generator, rows: int, loss: float, margin: float) -> Case:
    """Draw yes/no values of which the new system loses some, against a margin."""
    before = (rng.random(rows) < 0.95).astype(float)
    after = np.where((before == 1) & (rng.random(rows) < loss / 0.95), 0.0, before)
    turns = np.ones(rows, np.int64)
    return Case(
        pair(make({"accuracy": before}, turns), make({"accuracy": after}, turns)), -loss, {}, "accuracy", margin
    )


def answer(rng: np.random.Generator, dialogues: int, yes: float) -> Case:
    """Draw yes/no values in dialogues of five turns, strongly correlated, without a difference."""
    hard = rng.beta(0.5 * yes, 0.5 * (1 - yes), dialogues)
    turns = np.full(dialogues, 5)
    values = [(rng.random(5 * dialogues) < np.repeat(hard, 5)).astype(float) for _ in range(2)]
    return Case(pair(*(make({"accuracy": each}, turns) for each in values)), 0.0, {}, "accuracy")


def attempt(rng: np.random.Generator, tasks: int, k: int) -> Case:
    """Draw tasks of two kinds that are tried four times, with the same success in both systems."""
    chance = rng.beta(0.4, 0.4, tasks)
    key, turns = f"pass-hat-{k}", np.ones(tasks, np.int64)
    values = [
        np.array([math.comb(passed, k) / math.comb(4, k) for passed in rng.binomial(4, chance).tolist()]) for _ in "ab"
    ]
    return Case(pair(*(make({key: each}, turns, None, Level.DIALOGUE) for each in values)), 0.0, {}, key)


def meet(rng: np.random.Generator, users: int, shared: float, cluster: str | None) -> Case:
    """Draw users who are assigned to systems, with four dialogues each; some meet both systems."""
    levels, sides = rng.normal(size=2 * users), []
    both = int(shared * users)
    for start in (0, users - both):
        who = np.repeat(np.arange(start, start + users), 4)
        values = levels[who] + rng.normal(size=len(who))
        table = make({"reward": values}, np.ones(len(who), np.int64), who.astype(float))
        names = [f"{start}-{number}" for number in range(len(who))]
        rows = table.table
        assert rows is not None
        sides.append(Result(table.estimates, table=RowTable(rows.offsets, names, fields=rows.fields)))
    settings = {"design": "unpaired"} | ({} if cluster is None else {"cluster": cluster})
    return Case(pair(*sides), 0.0, settings, "reward")


def lengthen(rng: np.random.Generator, dialogues: int) -> Case:
    """Draw dialogues in which the new system is better by 0.06, and longer where they are hard."""
    hard, short = rng.random(dialogues), rng.integers(3, 6, dialogues)
    longer = short + np.round(6 * hard).astype(int)
    before, after = (
        np.repeat(0.8 - 0.5 * hard + gain, turns) + 0.05 * rng.normal(size=int(turns.sum()))
        for gain, turns in ((0.0, short), (0.06, longer))
    )
    return Case(pair(make({"reward": before}, short), make({"reward": after}, longer)), 0.06, {}, "reward")


def skew(rng: np.random.Generator, rows: int, kind: str, gain: float = 0.0) -> Case:
    """Draw differences, skewed or not, with a mean of so many of their standard deviations."""
    draws = {
        "lognormal": (rng.lognormal(size=rows) - math.exp(0.5), math.sqrt(math.e * (math.e - 1))),
        "zero-inflated": (np.where(rng.random(rows) < 0.2, rng.lognormal(size=rows), 0.0) - 0.2 * math.exp(0.5), 1.17),
        "normal": (rng.normal(size=rows), 1.0),
        "Laplace": (rng.laplace(size=rows), math.sqrt(2)),
    }
    away, deviation = draws[kind]
    base, turns, truth = rng.normal(size=rows), np.ones(rows, np.int64), gain * deviation
    sides = (make({"reward": values}, turns) for values in (base, base + away + truth))
    return Case(pair(*sides), truth, {}, "reward")


def begin(rng: np.random.Generator, chats: int, named: bool) -> Case:
    """Draw logs of other users: chats without ids that share a greeting, or that share ids and nothing else.

    With a greeting, the new system is ten times slower from the second turn on; otherwise nothing differs.
    """
    sides = []
    for factor in (1.0, 1.0 if named else 10.0):
        turns = rng.integers(2, 5, chats)
        first = offsets_of(turns)[:-1]
        seconds = rng.lognormal(0.0, 0.5, int(turns.sum()))
        slow = np.ones(len(seconds), bool)
        slow[first] = False
        prompts = rng.integers(1 << 62, size=len(seconds)).astype(np.uint64)
        if not named:
            prompts[first] = 1
        result = make({"latency": np.where(slow, factor * seconds, seconds)}, turns)
        names = [f"conv-{number:04}" for number in range(chats)] if named else None
        sides.append(Result(result.estimates, table=RowTable(offsets_of(turns), names, digests={PROMPT: prompts})))
    # Of 2 to 4 turns all but one are slower by 9 times the mean of a lognormal value.
    truth = 0.0 if named else 9 * math.exp(0.125) * 2 / 3
    return Case(pair(*sides), truth, {}, "latency", None if named else 0.5)


def cross(rng: np.random.Generator, design: str, cluster: str) -> Case:
    """Draw 30 users who ask 20 prompts, of which each system has an effect of its own on users and on prompts.

    Every user asks every prompt (`all`), or each of them one in four (`some`).
    """
    users, prompts = map(np.ravel, np.indices((30, 20)))
    kept = rng.random(len(users)) < (0.25 if design == "some" else 1.0)
    users, prompts = users[kept], prompts[kept]
    turns, sides = np.ones(len(users), np.int64), []
    hard = rng.normal(size=20)[prompts]
    for _ in "ab":
        values = hard + 0.3 * rng.normal(size=30)[users] + 0.3 * rng.normal(size=20)[prompts]
        result = make({"reward": values + rng.normal(size=len(users))}, turns)
        fields = {
            name: RaggedColumn.from_lists([[f"{name}{code}"] for code in codes.tolist()])
            for name, codes in (("user", users), ("prompt", prompts))
        }
        names = [f"d{number}" for number in range(len(users))]
        sides.append(Result(result.estimates, table=RowTable(offsets_of(turns), names, fields=fields)))
    return Case(pair(*sides), 0.0, {"cluster": cluster}, "reward")


def replicate(rng: np.random.Generator, dialogues: int, seeds: int, spread: float, field: str | None) -> Case:
    """Draw systems that answer the same dialogues with several seeds, each with an effect of its own."""
    hard, sides = rng.normal(size=(dialogues, 1)), []
    turns = np.full(dialogues, seeds)
    for _ in "ab":
        own = 0.35 * rng.normal(size=(dialogues, 1)) + spread * rng.normal(size=seeds)
        values = (hard + own + rng.normal(size=(dialogues, seeds))).ravel()
        result = make({"reward": values}, turns)
        fields = {"seed": RaggedColumn.from_lists([[str(seed)] for _ in range(dialogues) for seed in range(seeds)])}
        names = [f"d{number}" for number in range(dialogues)]
        sides.append(Result(result.estimates, table=RowTable(offsets_of(turns), names, fields=fields)))
    return Case(pair(*sides), 0.0, {"replicate": field}, "reward")


def waver(rng: np.random.Generator, dialogues: int) -> Case:
    """Draw dialogues without ids whose difference is near the significance level, in two orders."""
    noise, turns = rng.normal(size=dialogues), np.ones(dialogues, np.int64)
    away = (noise - noise.mean()) / noise.std(ddof=1) + rng.uniform(1.9, 2.1) / math.sqrt(dialogues)
    base, order = rng.normal(size=dialogues), rng.permutation(dialogues)
    runs = []
    for places in (np.arange(dialogues), order):
        sides = (make({"reward": values[places]}, turns) for values in (base, base + away))
        prompts = {PROMPT: (places + 1).astype(np.uint64)}
        runs.append(
            pair(*(Result(each.estimates, table=RowTable(offsets_of(turns), digests=prompts)) for each in sides))
        )
    return Case(runs[0], math.nan, {}, "reward", shuffled=runs[1])


def correlate(rng: np.random.Generator, rows: int, gain: float) -> Case:
    """Draw nine correlated metrics; one of them has a gain. Without a gain any significant one is an error."""
    common, turns = rng.normal(size=rows), np.ones(rows, np.int64)
    items: list[dict[str, Floats]] = [{}, {}]
    for number, key in enumerate(CORRELATED):
        away = 0.95 * common + 0.3 * rng.normal(size=rows) + (gain if number == 0 else 0.0)
        items[0][key] = np.full(rows, 0.5)
        items[1][key] = 0.5 + 0.05 * away
    return Case(pair(*(make(each, turns) for each in items)), 0.05 * gain, {"metrics": [*CORRELATED]}, "bleu-1")


def drift(rng: np.random.Generator, rows: int, loss: float, margin: float) -> Case:
    """Draw paired normal values with a loss, against a margin of equivalence."""
    base, turns = rng.normal(size=rows), np.ones(rows, np.int64)
    after = base - loss + 0.3 * rng.normal(size=rows)
    return Case(pair(make({"reward": base}, turns), make({"reward": after}, turns)), -loss, {}, "reward", margin)


def converse(rng: np.random.Generator, dialogues: int) -> Case:
    """Draw dialogues of 1 to 30 turns with skewed, correlated values, which do not differ between systems."""
    turns = rng.integers(1, 31, dialogues)
    hard = np.repeat(rng.exponential(size=dialogues), turns)
    values = (hard * rng.gamma(1.0, 1.0, len(hard)) for _ in "ab")
    return Case(pair(*(make({"latency": each}, turns) for each in values)), 0.0, {}, "latency")


def speak(rng: np.random.Generator, lines: int) -> Case:
    """Draw lines of words by Zipf's law, the same for both systems."""
    weights = 1 / np.arange(1, 5001)
    drawn = rng.choice(5000, (2, lines, 8), p=weights / weights.sum())
    texts = ([" ".join(f"w{word}" for word in line) for line in side] for side in drawn.tolist())
    return Case(evaluate(dict(zip(("old", "new"), texts, strict=True)), metrics="distinct-2"), 0.0, {}, "distinct-2")


CASES: Mapping[str, tuple[Callable[..., Case], tuple[Any, ...]]] = {
    **{f"yes/no, {n} rows, loss .05, margin .05": (lose, (n, 0.05, 0.05)) for n in (10, 20, 50, 200)},
    **{f"yes/no, {n} rows, loss .10, margin .05": (lose, (n, 0.10, 0.05)) for n in (10, 20, 50, 200)},
    **{f"yes/no, {n} dialogues, {y:.0%} yes, no difference": (answer, (n, y)) for n in (20, 50) for y in (0.8, 0.95)},
    **{f"pass^{k}, {n} tasks, no difference": (attempt, (n, k)) for n in (20, 50) for k in (1, 4)},
    **{f"{s:.0%} of 30 users shared, over dialogues": (meet, (30, s, None)) for s in (0.0, 0.5)},
    **{f"{s:.0%} of 30 users shared, --cluster user": (meet, (30, s, "user")) for s in (0.0, 0.5)},
    **{
        f"30 users, {design} of 20 prompts, --cluster {over}": (cross, (design, over))
        for design in ("all", "some")
        for over in ("user", "prompt", "user,prompt")
    },
    **{
        f"{n} dialogues, {r} seeds that vary by {spread}, {over}": (replicate, (n, r, spread, field))
        for n, r in ((20, 3), (50, 3), (50, 5))
        for spread in (0.0, 0.1, 0.3)
        for over, field in (("over dialogues", None), ("--replicate seed", "seed"))
    },
    "wholes, 40 dialogues, better by .06": (lengthen, (40,)),
    **{
        f"{kind} differences, {n} rows": (skew, (n, kind))
        for kind in ("normal", "Laplace", "lognormal", "zero-inflated")
        for n in (8, 10, 20, 50, 200)
    },
    **{
        f"{kind} differences, {n} rows, {gain:+} standard deviations": (skew, (n, kind, gain))
        for kind, signs in (("normal", (1,)), ("Laplace", (1,)), ("lognormal", (1, -1)))
        for n, size in ((8, 1.2), (10, 1.0), (20, 0.66), (50, 0.4))
        for gain in (sign * size for sign in signs)
    },
    "50 chats without ids that share /start, v2 slower": (begin, (50, False)),
    "50 chats of other users under the same ids": (begin, (50, True)),
    "60 dialogues, p near 0.05": (waver, (60,)),
    "family of 9 correlated metrics, no difference": (correlate, (40, 0.0)),
    "family of 9 correlated metrics, gain .5": (correlate, (40, 0.5)),
    "equivalence, 40 rows, loss = margin": (drift, (40, 0.1, 0.1)),
    "equivalence, 40 rows, no loss": (drift, (40, 0.0, 0.2)),
    **{
        f"groups: {kind} differences, {n:,} rows": (skew, (n, kind))
        for n in (1500, 6000)
        for kind in ("normal", "lognormal", "zero-inflated")
    },
    "groups: normal differences, 1,500 rows, +.0724 standard deviations": (skew, (1500, "normal", 0.0724)),
    "groups: normal differences, 6,000 rows, +.0362 standard deviations": (skew, (6000, "normal", 0.0362)),
    "groups: skewed values, 1,500 dialogues of 1 to 30 turns": (converse, (1500,)),
    "groups: skewed values, 6,000 dialogues of 1 to 30 turns": (converse, (6000,)),
    "groups: distinct-2 of 1,500 lines": (speak, (1500,)),
}


def simulate(name: str, replicates: int, seed: int) -> str:
    """Return the line of a case."""
    draw, arguments = CASES[name]
    counts: dict[str, list[bool]] = {}
    for number in range(replicates):
        case = draw(np.random.default_rng([seed, number, *name.encode()]), *arguments)
        settings = {"metrics": [case.key], **case.settings}
        found = compare(case.run, seed=number, **settings)
        row = next(row for row in found.differences if row.key == case.key)
        low, high = row.interval or (math.nan, math.nan)
        significant = row.p < found.alpha if len(found.differences) == 1 else row.significant
        outcome = {
            "significant": any(row.significant for row in found.differences) if case.truth == 0 else significant,
            "better": row.significant and not row.worse,
            "worse": row.significant and row.worse,
            **({} if math.isnan(case.truth) else {"covered": low - 1e-12 <= case.truth <= high + 1e-12}),
            "contradiction": len(found.differences) == 1 and significant == (low <= 0 <= high),
            "marked ~": row.rough,
            "paired": found.design.name != "unpaired",
        }
        if case.margin is not None:
            (gate,) = check_baseline(found, {case.key: case.margin})
            outcome["gate passes"] = gate.failure is None
            outcome["equivalent"] = -case.margin <= low <= high <= case.margin
        if case.shuffled is not None:
            shuffled, reseeded = (
                compare(run, seed=seed, **settings).differences[0].significant
                for run, seed in ((case.shuffled, number), (case.run, number + replicates))
            )
            outcome |= {"order": shuffled != row.significant, "seed": reseeded != row.significant}
        for what, holds in outcome.items():
            counts.setdefault(what, []).append(bool(holds))
    shown = (f"{100 * np.mean(counts[what]):.1f}" if what in counts else "–" for what in COLUMNS)
    return f"| {name} | {' | '.join(shown)} |"


COLUMNS = (
    *("significant", "better", "worse", "covered", "contradiction", "marked ~", "gate passes", "equivalent"),
    *("paired", "order", "seed"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--only", default="", help="only cases with this in their name")
    arguments = parser.parse_args()
    print(f"| case | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
    for name in CASES:
        if arguments.only in name:
            print(simulate(name, arguments.replicates, arguments.seed), flush=True)


if __name__ == "__main__":
    main()
