"""A page per family of metrics, made from the registry, the docstring of its module, and the tables of docs/.

What a page says about formula, paper and edge cases is the docstring; names, settings, needs and ranges come from the
class; floors, ceilings and agreement with human ratings are the lines of docs/metrics.md and docs/floors.md that name a
metric of the family.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from tools.site.tables import Table, quoted, table, tables

from dialeval.core import inputs
from dialeval.core.errors import SettingError
from dialeval.core.fold import Metric
from dialeval.metrics.registry import explain, registry
from dialeval.suites.multiwoz import STATES, TASK_TURNS
from dialeval.suites.sgd import FRAMES, SPANS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("metrics.md", "floors.md")
_CEILING = "ceiling (Pearson)"
"""Pages with tables about metrics."""
ARROWS = {"higher": "higher", "lower": "lower", None: "neither"}
GIVEN = {
    inputs.REFERENCE: "-r sample/references.txt",
    inputs.CONTEXT: "-c sample/contexts.txt",
    inputs.TRAIN: "--train sample/train.txt",
    inputs.EMBEDDINGS: "--vectors sample/vectors.txt",
    inputs.TEXT_CHECKS: "--checks sample/checks.toml",
    inputs.LLM: "--llm-endpoint http://localhost:8000/v1 --llm-model NAME",
}
COMMANDS = {
    inputs.CONTEXT: """\
dialeval score sample/logs/v1.jsonl sample/logs/v2.jsonl \\
  -m dialogue-turns,self-repetition""",
    inputs.HYPOTHESES: """\
dialeval lsdscc sample/lsdscc/varied.txt sample/lsdscc/safe.txt \\
  -r sample/lsdscc/groups.json""",
    TASK_TURNS: "dialeval multiwoz -i sample/town/predictions --data town",
    STATES: "dialeval multiwoz -i sample/town/predictions --data town -d",
    FRAMES: """\
dialeval sgd sample/frames/steady sample/frames/forgetful.json \\
  -r sample/frames/references -m all""",
    SPANS: "dialeval sgd sample/frames/steady -r sample/frames/references -m slot-tagging",
    inputs.LABELS: "dialeval breakdown sample/breakdown/keywords -p sample/breakdown/data -t 0.5",
    inputs.OUTCOME: "dialeval score sample/labels/v1.jsonl sample/labels/v2.jsonl -m failure-rate",
    inputs.TURN_LABELS: "dialeval score sample/labels/v1.jsonl sample/labels/v2.jsonl -m labels",
    inputs.SCORES: """\
dialeval score sample/labels/v1.jsonl sample/labels/v2.jsonl \\
  --scores sample/labels/scores.csv -m scores""",
    inputs.LATENCY: """\
dialeval score sample/labels/v1.jsonl sample/labels/v2.jsonl \\
  -m latency,latency-p50,latency-p95""",
    inputs.TRIALS: """\
dialeval score sample/agents/careful.jsonl sample/agents/quick.jsonl \\
  -m pass-hat,pass-at""",
    inputs.CALLS: """\
dialeval score sample/agents/careful.jsonl sample/agents/quick.jsonl \\
  --checks sample/agents/rules.toml \\
  -m call-match,call-order,call-exact,call-assertions""",
}
"""What computes a metric on the sample, by what it measures; responses are scored by flags for their needs."""

EXPECTED = {
    **dict.fromkeys(("contains", "not-contains", "starts-with", "equals"), "text=The"),
    "regex": "pattern=[Tt]he",
    "max-words": "words=12",
}
"""What checks compare with in their examples."""

MetricClass = type[Metric[Any]]


def page_of(family: str) -> str:
    """The place of a family's page in the site."""
    return f"metrics/{family}.md"


def pages() -> Iterator[tuple[str, str]]:
    """The place and the text of each family's page."""
    said = [each for name in PAGES for each in tables((DOCS / name).read_text(encoding="utf-8"))]
    for family, metric in registry().families.items():
        yield page_of(family), page(metric, said)


def page(metric: MetricClass, said: Sequence[Table]) -> str:
    """The page of a family."""
    presets = [registry().parse(name) for name in metric.presets]
    parts = [
        f"# {metric.family}",
        *_summary(metric),
        "## What it measures",
        explain(metric),
        *_judged(metric, said),
        "## Names",
        _names(presets),
        "## Needs",
        _needs(presets[0]),
        "## Settings",
        _settings(metric, presets[0]),
        *_baselines(metric, said),
        *_people(metric, said),
        "## Try it",
        "On the [shipped sample](../start.md#the-sample):",
        f"{_reason(presets[0])}```sh\n{command(metric)}\n```",
        f"`dialeval metrics {presets[0]}` prints these facts in a terminal. The signature, without digests of data:",
        f"```text\n{_fold(str(presets[0].signature()))}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def linked(markdown: str) -> str:
    """A page whose tables name metrics in their first column: each name leads to the metric's page."""
    lines = []
    for line in markdown.splitlines():
        if line.startswith("| `"):
            first, rest = line[1:].split("|", 1)
            for name in quoted(first):
                if (metric := _family(name)) is not None:
                    first = first.replace(f"`{name}`", f"[`{name}`]({page_of(metric.family)})")
            line = f"|{first}|{rest}"
        lines.append(line)
    return "\n".join(lines)


def command(metric: MetricClass) -> str:
    """What computes the metrics of a family on the sample."""
    if metric.subject != inputs.RESPONSE:
        return COMMANDS[metric.subject]
    asked = {need for name in metric.presets for need in registry().parse(name).needs} | metric.one_of
    given = [flag for need, flag in GIVEN.items() if need in asked]
    systems = "sample/responses/careful.txt" if metric.costly else "sample/responses"
    asked_for = f"'{metric.family}({EXPECTED[metric.family]})'" if metric.family in EXPECTED else metric.family
    first, *others = [f"dialeval score {systems} -m {asked_for}", *given]
    return " \\\n  ".join([first, " ".join(others)]) if others else first


def _fold(signature: str) -> str:
    return re.sub(r"(?=.{81})(.{1,79}\|)", r"\1\n", signature)


def _reason(metric: Metric[Any]) -> str:
    """The mark of a command that is not run."""
    return "<!-- not run: needs a language model -->\n" if inputs.LLM in metric.needs else ""


@cache
def _family(name: str) -> MetricClass | None:
    """The class of what a table calls a metric; None for another name."""
    try:
        return type(registry().parse(name))
    except SettingError:
        return None


def _of_family(metric: MetricClass, some: Sequence[Table], column: str) -> Iterator[tuple[Table, list[str]]]:
    """The lines about a family in the tables that have a column of some name."""
    for each in some:
        if column in each.head:
            yield from ((each, row) for row in each.rows if metric in map(_family, quoted(row[0])))


def _judged(metric: MetricClass, said: Sequence[Table]) -> Iterator[str]:
    for each, row in _of_family(metric, said, "weak where"):
        told = dict(zip(each.head, row, strict=True))
        yield f'!!! tip "{told["metric"].replace(chr(96), "")}"'
        text = f"    **Use it for** {told['use it for']}.\n\n    **Weak where** {told['weak where']}."
        yield text.replace("](", "](../")


def _summary(metric: MetricClass) -> Iterator[str]:
    """What a family is, where its module has others as well."""
    beside = [each for each in registry().families.values() if each.__module__ == metric.__module__]
    if len(beside) > 1:
        yield (inspect.getdoc(metric) or "").splitlines()[0]


def _names(presets: Sequence[Metric[Any]]) -> str:
    rows = []
    for metric in presets:
        settings = ", ".join(f"`{name}={value}`" for name, value in type(metric).presets[str(metric)].items())
        rows.append(
            [f"`{metric}`", settings or "the defaults", _range(metric), ARROWS[metric.better], str(metric.level)]
        )
    return table(["name", "settings", "range", "better", "a value for each"], rows)


def _range(metric: Metric[Any]) -> str:
    least, largest = (f"{end:g}" if isfinite(end) else "" for end in metric.bounds)
    return f"{least} to {largest}" if least and largest else f"from {least}" if least else "any number"


def _needs(metric: Metric[Any]) -> str:
    rows = [(f"`{need.argument}`", f"`{need.option}`", "yes") for need in sorted(metric.needs)]
    for need in sorted(metric.wants):
        told = "one of these" if need in metric.one_of else "used where given"
        rows.append((f"`{need.argument}`", f"`{need.option}`", told))
    return table(["argument in Python", "on the command line", "needed"], [list(row) for row in dict.fromkeys(rows)])


def _settings(metric: MetricClass, example: Metric[Any]) -> str:
    hints = get_type_hints(metric)
    rows = [[f"`{field.name}`", f"`{field.default}`", _values(hints[field.name])] for field in fields(metric)]
    if not rows:
        return "None."
    name, value = rows[0][0].strip("`"), getattr(example, rows[0][0].strip("`"))
    return (
        f"Written in brackets, as in `{metric.family}({name}={value})`; all of them are in the signature.\n\n"
        + table(["setting", "default", "values"], rows)
    )


def _values(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    kinds: Mapping[Any, str] = {int: "a whole number", float: "a number", bool: "`true`, `false`", str: "a text"}
    return kinds[hint]


def _baselines(metric: MetricClass, said: Sequence[Table]) -> Iterator[str]:
    """Floors and ceilings: a line per data set, a column per anchor, for each metric of the family."""
    for each, row in _of_family(metric, said, "sample: constant"):
        sets: dict[str, dict[str, str]] = {}
        for column, cell in zip(each.head[1:], row[1:], strict=True):
            name, _, anchor = column.partition(": ")
            sets.setdefault(name, {})[anchor] = cell
        baselines = list(dict.fromkeys(anchor for cells in sets.values() for anchor in cells))
        if row[0] == next(_of_family(metric, said, "sample: constant"))[1][0]:
            yield "## Floors and ceilings"
            yield (
                "What a constant reply, shuffled gold replies, random training lines and the gold replies score. "
                "[How it was measured](../floors.md)."
            )
        yield table(
            [row[0], *baselines], [[name, *(cells.get(each, "") for each in baselines)] for name, cells in sets.items()]
        )


def _people(metric: MetricClass, said: Sequence[Table]) -> Iterator[str]:
    """Agreement with human ratings: a line per data set, a column per metric of the family and the ceiling."""
    (measured,) = (each for each in said if any(row[0] == _CEILING for row in each.rows))
    lines = {row[0]: row[1:] for row in measured.rows}
    own = {name: cells for name, cells in lines.items() if metric in map(_family, quoted(name))}
    if not own:
        return
    yield "## Agreement with human ratings"
    yield (
        "Pearson / Spearman with the mean human rating of single replies; `^`: above the length of the reply. "
        f'"{_CEILING}" is the highest correlation to be expected. '
        "[How it was measured](../floors.md#agreement-of-metrics-with-human-ratings)."
    )
    shown = {"rated replies": lines["rated replies"], **own, _CEILING: lines[_CEILING]}
    yield table(
        ["data", *shown],
        [[name, *(cells[column] for cells in shown.values())] for column, name in enumerate(measured.head[1:])],
    )
