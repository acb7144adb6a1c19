"""Small commands: `dialeval metrics`, `formats`, `validate`, `data` and `demo`."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import dialeval
from dialeval.cli import options
from dialeval.cli.output import encode_json, open_download_bar, open_meter, print_content, print_err, print_out
from dialeval.core import inputs
from dialeval.core.errors import suggest

if TYPE_CHECKING:
    from dialeval.core.fold import Metric
    from dialeval.core.inputs import Input
    from dialeval.io.rows import Rows


@options.command("dialeval metrics", "dialeval metrics --all", "dialeval metrics sacrebleu")
@click.argument("name", required=False)
@options.option("--all every", "List every variant, not only families.", is_flag=True)
def metrics(name: str | None, every: bool) -> None:
    """List the metrics; with a NAME, explain that one: formula, range, settings, paper, edge cases, an example."""
    from dialeval.metrics.registry import GROUPS, registry

    name = registry().canonicalize(name)
    if name is None or name == "all" or name in GROUPS:
        presets = GROUPS.get(name or "", registry().presets)
        print_out(_list_metrics(presets, every=every or name is not None))
        return
    print_out(_explain_metric(registry().parse(name)))


def _list_metrics(presets: Iterable[str], every: bool) -> str:
    """Return the metrics by topic: a line for each preset, or for each family."""
    from dialeval.engine.resources import explain_missing
    from dialeval.metrics.registry import GROUPS, find_topic, list_topics, registry

    topics: dict[str, list[tuple[str, ...]]] = {title: [] for title in list_topics()}
    missing: dict[str, None] = {}
    for metric in map(registry().parse, presets):
        family = type(metric)
        missing |= {reason: None for need in sorted(metric.needs) if (reason := explain_missing(need))}
        if every or metric.name == next(iter(family.presets)):
            variants = "" if every or len(family.presets) == 1 else f" ({len(family.presets)})"
            needs = ", ".join(dict.fromkeys(need.option for need in _select_needs(metric))) or "-"
            name = metric.name if every or not variants else family.family
            topics[find_topic(family)].append((name + variants, metric.better or "-", needs, _summarize(metric)))
    lines: list[tuple[str, ...]] = [("metric", "better", "needs", "what it measures")]
    widths = [max(len(row[at]) for row in (*lines, *chain(*topics.values()))) for at in range(3)]
    for title, rows in topics.items():
        lines += [(f"\n{title}",), *sorted(rows)] if rows else []
    text = [" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)) for row in lines]
    text = [" ".join([start, *row[3:]]).rstrip() for start, row in zip(text, lines, strict=True)]
    if not every:
        groups = ", ".join(f"{group} ({len(names)})" for group, names in GROUPS.items())
        text += [
            "",
            f"In brackets: the number of variants, which --all lists. Groups: {groups}, all.",
            "`dialeval metrics NAME` explains.",
        ]
    text += [f"judges and bertscore: {reason}" for reason in missing]
    return "\n".join([*text, *(f"{name}: cannot be loaded ({why})" for name, why in registry().broken.items())])


def _select_needs(metric: Metric[object]) -> list[Input]:
    """Return the inputs that a metric needs, without its subject and judges that ship with the package."""
    from dialeval.engine.resources import list_shipped

    return [need for need in sorted(metric.needs) if need not in (metric.subject, *list_shipped())]


_FILES = {"-r": "references.txt", "-c": "contexts.txt", "--train": "train.txt", "--vectors": "glove-6b"}
_COMMANDS = {
    "context": "score chats.jsonl",
    "hypotheses": "lsdscc samples.txt -r groups.json",
    "task-turns": "multiwoz -i predictions.json",
    "states": "multiwoz -i predictions.json -d",
    "trials": "score trials.jsonl",
    "frames": "sgd predictions/ -r references/",
    "spans": "sgd predictions/ -r references/",
    "labels": "breakdown labels/ -p data/ -f table",
}
"""Commands that compute a metric, by what it measures, where that is not a response."""


def _explain_metric(metric: Metric[object]) -> str:
    from dialeval.metrics.registry import explain

    family = type(metric)
    settings = [f"{name}={getattr(metric, name)}" for name in metric.setting_names()]
    shown = "".join(f"\n  {setting.replace('=', ' = ', 1)}" for setting in settings)
    example = f"{metric.family}({','.join(settings[:2])})"
    low, high = (f"{end:g}".replace("inf", "infinity") for end in metric.bounds_of(metric.name))
    better = "neither higher nor lower is better" if metric.better is None else f"{metric.better} is better"
    flags = dict.fromkeys(need.option for need in _select_needs(metric))
    command = _COMMANDS.get(metric.subject) or " ".join(
        ["score responses.txt", *(f"{flag} {_FILES[flag]}" for flag in flags if flag in _FILES)]
    )
    option = f" -m {metric}" if command.startswith(("score", "sgd")) else ""
    return "\n\n".join(
        [
            f"{metric}: {_summarize(metric)}",
            explain(family),
            f"Range: {low} to {high}; {better}",
            f"Settings (change them as in {example}):{shown}" if settings else "Settings: none",
            "Needs: " + ", ".join(dict.fromkeys(f"{need.argument} ({need.option})" for need in sorted(metric.needs))),
            f"Presets: {', '.join(family.presets)}",
            f"Signature: {metric.signature()}",
            f"Example: dialeval {command}{option}",
        ]
    )


def _summarize(metric: Metric[object]) -> str:
    return (inspect.getdoc(type(metric)) or "").split("\n")[0]


@options.command("dialeval formats", "dialeval formats sharegpt")
@click.argument("name", required=False)
def formats(name: str | None) -> None:
    """List the shapes of rows that are recognized: where each holds our fields, and an example; or explain one NAME.

    Any of them may be in .jsonl, .json, .parquet or, as far as cells hold it, .csv and .tsv; also in .gz and
    .zst; logs of inspect_ai also in .eval. For others, `--field response=NAME` maps names, and `--field
    response=output.text` leads into objects.
    """
    from dialeval.io.row_shapes import OWN, SHAPES

    shapes = {shape.name: shape for shape in (OWN, *SHAPES)}
    if name is not None and name not in shapes:
        raise click.UsageError(f"there is no shape {name!r}; {suggest(name, shapes)}")
    for shape in shapes.values() if name is None else [shapes[name]]:
        example = json.dumps(shape.example, ensure_ascii=False, indent=None if name is None else 2)
        print_out(f"{shape.name}: {shape.title} ({shape.origin})\n  {shape.explained}\n  {example}")


@options.command("dialeval validate outputs/*.txt rows.jsonl", "dialeval validate chats.jsonl -f json")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@options.row_fields
@options.reading
@options.format_(("table", "json"))
def validate(files: tuple[str, ...], fields: Mapping[str, str], format_: str, **reading: object) -> int:
    """List every problem of every file, or the account of what each holds. Exit status 2 if there is a problem.

    The account counts conversations, user turns and replies, and what is missing; the first conversation is shown as
    it was understood.
    """
    from dialeval.io.outcomes import total_account
    from dialeval.io.reading import check

    documents = []
    status = 0
    for file in files:
        systems, problems, notes = check(file, fields or None, **reading)
        status = 2 if problems else status
        if format_ == "json":
            accounts = {rows.system: rows.account.to_dict() for rows in systems}
            document = {
                "account": total_account(systems).to_dict(),
                "systems": accounts,
                "problems": list(map(str, problems)),
                "warnings": list(notes),
            }
            documents.append({"file": file, **document})
        else:
            lines = list(map(str, problems)) or [_describe(file, systems), *(f"  {note}" for note in notes)]
            print_out("\n".join(lines))
    if documents:
        print_content(encode_json(documents[0] if len(files) == 1 else documents).decode())
    return status


_SHOWN_TEXT = 100
"""Characters of a turn that `validate` shows."""


def _describe(file: str, systems: Sequence[Rows]) -> str:
    """Return what a file, or a folder of files, holds, and the first conversation of each system."""
    from dialeval.core.account import count_things
    from dialeval.io.opening import format_of
    from dialeval.io.reading import is_folder

    kind = "folder" if is_folder(file) else format_of(file)
    lines = []
    for rows in systems:
        account = rows.account
        columns = [str(need) for need in rows.columns if str(need) != "outcome"]
        lines.append(f"{file}: {kind}, system {rows.system}: {account.describe()}")
        read = "; ".join(f"{name}: {where}" for name, where in account.fields.items())
        words = (
            ("user_turns", "user turn|user turns"),
            ("tool_calls", "tool call|tool calls"),
            ("scores", "score|scores"),
        )
        counts = ", ".join(count_things(getattr(account, name), each) for name, each in words)
        lines.append(f"  {counts}; columns {', '.join(columns)}{'; ' * bool(read)}{read}")
        ids = list(rows.ids(rows.dialogue_offsets()) or ())
        if parts := len(ids) - len(set(ids)):
            lines.append(
                f"  rows of a conversation are not consecutive, and {parts:,} parts count as others: sort them by id"
            )
        lines += [f"  skipped: {problem}" for problem in account.problems]
        lines += _show_conversation(rows)
    return "\n".join(lines)


def _show_conversation(rows: Rows) -> Iterable[str]:
    """Yield the turns of the first conversation, with their roles."""

    offsets = rows.dialogue_offsets()
    row = int(offsets[1]) - 1
    texts, roles = (_read_row(rows.columns.get(need), row) for need in (inputs.CONTEXT, inputs.ROLES))
    yield f"  conversation {rows.names()[0]!r}:"
    for text, role in zip(texts, roles or ["turn"] * len(texts), strict=False):
        yield f"    {role}: {text[:_SHOWN_TEXT]}"
    outcome = _read_row(rows.columns.get(inputs.OUTCOME), row)
    yield f"    reply{''.join(f' ({why})' for why in outcome)}: {rows.responses[row][:_SHOWN_TEXT]}"


def _read_row(column: Any, row: int) -> list[str]:
    return [] if column is None else list(column[row])


# `dialeval data`: data packs, large public data in the user's cache.


@options.group(
    "dialeval data list",
    "dialeval data add glove-6b",
    "dialeval score outputs/ -r references.txt --train train.txt --vectors glove-6b",
)
def data() -> None:
    """Data packs: large public data such as word vectors, kept in the cache with the digests of its files."""


@data.command(
    "dialeval data add glove-6b",
    "dialeval data add fasttext-en --from downloads/",
    "dialeval data add lsdscc --from LSDSCC/lsdscc/data/test.group.json",
)
@click.argument("name")
@options.option("--from from_folder", "Take the files from here, not from the network.", click.Path())
@options.option("--address", "Download from this address instead of the official one.")
@options.option("--force", "Replace a pack that is installed.", is_flag=True)
def add(name: str, from_folder: str | None, address: str | None, force: bool) -> None:
    """Build a pack from its official source over HTTP, or from a local copy."""
    from dialeval.io.packs import add_pack

    with open_download_bar(name) as progress:
        pack = add_pack(name, address=address, from_folder=from_folder, progress=progress, force=force)
    print_content(f"{pack.path}\n")


@data.command("dialeval data list", name="list")
def list_() -> None:
    """List the packs that are installed and those that could be."""
    from dialeval.io.packs import PACK_SOURCES, find_pack

    for name, source in PACK_SOURCES.items():
        pack = find_pack(name)
        state = "not installed" if pack is None else f"installed, {pack.size / 1e6:,.0f} MB, {pack.digest}"
        print_out(f"{name:<14}{state:<48}{source.title}")


@data.command("dialeval data verify glove-6b")
@click.argument("name")
def verify(name: str) -> int:
    """Compare every file of a pack with its digest. Exit status 2 if one differs."""
    from dialeval.io.packs import verify_pack

    problems = verify_pack(name)
    for problem in problems:
        print_out(str(problem))
    if not problems:
        print_out(f"{name}: all checksums match")
    return 2 if problems else 0


@data.command("dialeval data remove glove-6b")
@click.argument("name")
def remove(name: str) -> None:
    """Delete a pack from the cache."""
    from dialeval.io.packs import remove_pack

    remove_pack(name)
    print_err(f"{name}: removed")


# `dialeval demo`: two chat logs of the sample and their page; with --all every family of metrics.


_MORE = {
    "responses": "score {sample}/responses -r {sample}/references.txt -m bleu-4,rouge-l,distinct-2",
    "sampled-answers": "lsdscc {sample}/lsdscc/varied.txt {sample}/lsdscc/safe.txt -r {sample}/lsdscc/groups.json",
    "task-dialogues": "multiwoz -i {sample}/town/predictions --data town",
    "breakdown-detection": "breakdown {sample}/breakdown/keywords -p {sample}/breakdown/data --no-baselines -f table",
}
"""Commands of `--all`, by the folder of the run."""
SAMPLE_PARTS = ("breakdown", "frames", "logs", "lsdscc", "responses", "town")
"""Folders of the sample."""


@options.command("dialeval demo", "dialeval demo -o dialeval-demo --open", "dialeval demo --all")
@options.option("-o --output", "Folder for the runs and the report.", options.FOLDER, default=Path("dialeval-demo"))
@options.option("--all every", "Also show responses, sampled answers, tasks and breakdowns.", is_flag=True)
@options.open_page
def demo(output: Path, every: bool, opened: bool) -> None:
    """Compare two versions of a chatbot on the shipped sample of invented chats, and write the report.

    Two chat logs are scored, by the judge where it is installed. The page shows which version is better, by how much,
    and which dialogues got worse.
    """
    from dialeval import sample_data
    from dialeval.engine.resources import explain_missing
    from dialeval.reports.comparisons import judge_run
    from dialeval.reports.tables import lay_out

    logs = sample_data.folder() / "logs"
    missing = explain_missing(inputs.DIALOGUE_JUDGE)
    with open_meter() as meter:
        run = dialeval.evaluate(
            {"v1": logs / "v1.jsonl", "v2": logs / "v2.jsonl"},
            metrics="length,distinct-2" if missing else "judge,length",
            execution=dialeval.Execution(progress=meter.update_run),
        )
    if missing:
        print_err(f"without the judge: {missing}")
    verdict = judge_run(run)
    run.save(output, comparison=verdict.dump())
    main = {
        name: replace(result, estimates={key: value for key, value in result.items() if "/" not in key})
        for name, result in run.items()
    }
    print_content(lay_out(replace(run, systems=main), verdict))
    for name, command in _MORE.items() if every else ():
        words = [word.format(sample=logs.parent) for word in command.split()]
        print_out(f"\ndialeval {shlex.join(words)}")
        click.get_current_context().find_root().command.main([*words, "-o", str(output / name)], standalone_mode=False)
        dialeval.report(dialeval.load(output / name), output / f"{name}.html", command="dialeval demo --all")
    path = dialeval.report(run, output / "report.html", command="dialeval demo").resolve()
    print_out("\nEvery dialogue with the replies of both versions; open it in a browser:")
    print_content(f"{path}\n")
    if opened:
        click.launch(path.as_uri())


@options.command("dialeval sample-data sample", "dialeval sample-data town --part town")
@click.argument("folder", type=options.FOLDER)
@options.option("--part", "Copy one folder of the sample only.", options.Choice(SAMPLE_PARTS))
def sample_data(folder: Path, part: str | None) -> None:
    """Copy the sample that ships with dialeval (invented chats, ratings, task dialogues) to FOLDER.

    FOLDER must be new or empty.
    """
    import shutil

    from dialeval import sample_data as sample
    from dialeval.core.errors import DataError, Problem

    if folder.is_dir() and any(folder.iterdir()):
        raise DataError(Problem(str(folder), None, "is not empty", "name a new folder"))
    source = sample.folder() / (part or "")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__*__*"))
    print_err(f"copied to {folder}")


@options.command("dialeval skill", "dialeval skill > SKILL.md")
def skill() -> None:
    """Print instructions for coding agents: how to run dialeval, read its results and act on them."""
    print_content(Path(__file__).parents[1].joinpath("SKILL.md").read_text(encoding="utf-8"))
