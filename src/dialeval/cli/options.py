"""Options that more than one command has, each defined once, and how their values are read.

An option is a decorator: `@options.contexts`. Those that belong together come as one decorator (`together`); those of
`Command.groups` also reach the command as one argument. `--help` imports this module, so that it imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dialeval.cli.help import Choice, Command, command, examples, group

if TYPE_CHECKING:
    from dialeval.analysis.gates import Gate
    from dialeval.core.result import Result, Run

AnyRun = TypeVar("AnyRun", bound="Run")
Decorator = Callable[[Any], Any]

__all__ = ["Choice", "command", "examples", "group"]

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
SEED = click.IntRange(0, (1 << 63) - 1)
"""What fits into a file that a run or a sample is saved in."""
FORMATS = ("table", "json", "csv", "md", "latex")
RUN_FORMATS = (*FORMATS, "metrics-txt")
GATE_FORMATS = ("github", "junit")
"""What also says which gates hold: Markdown for a pull request, and test results."""


def read_pairs(_context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Read options of the form NAME=VALUE."""
    pairs = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not name or not rest:
            raise click.BadParameter(
                f"{value!r} is not of the form {parameter.metavar or 'NAME=VALUE'}", param=parameter
            )
        pairs[name] = rest
    return pairs


def read_numbers(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Read options of the form KEY=NUMBER."""
    try:
        return {key: float(value) for key, value in read_pairs(context, parameter, values).items()}
    except ValueError as error:
        raise click.UsageError(f"{parameter.opts[0]} takes KEY=NUMBER, such as sacrebleu=0.2: {error}") from None


def read_systems(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> str | dict[str, str]:
    """Read FILE or NAME=FILE: the path of a single file without a name, else a mapping of systems to paths."""
    from dialeval.io.sources import system_name

    if len(given) == 1 and not _has_name(given[0]):
        return given[0]
    systems: dict[str, str] = {}
    for argument in given:
        name, path = argument.split("=", 1) if _has_name(argument) else (system_name(argument), argument)
        if name in systems:
            raise click.UsageError(
                f"two systems are called {name!r} ({systems[name]}, {path}); write NAME=FILE for one"
            )
        systems[name] = path
    return systems


def _has_name(argument: str) -> bool:
    name, equals, _ = argument.partition("=")
    # os.path and not pathlib, which raises for a name that is too long.
    return bool(equals) and "/" not in name and not os.path.exists(argument)  # noqa: PTH110


def together(*options: Decorator) -> Decorator:
    """Combine several options into one decorator, in the order in which the help lists them."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True)
class Intervals:
    """What --intervals, --resamples and --seed say."""

    method: str | None
    """None: those that are made unless others are asked for."""
    resamples: int | None
    seed: int | None

    def __post_init__(self) -> None:
        if not self.resampled and (self.resamples is not None or self.seed is not None):
            context = click.get_current_context(silent=True)
            raise click.UsageError("--resamples and --seed are those of --intervals studentized", context)

    @property
    def resampled(self) -> bool:
        """Return whether intervals by resampling were asked for."""
        return self.method == "studentized"

    @property
    def kind(self) -> Any:
        """Return the intervals that the evaluation itself makes."""
        return None if self.resampled else self.method

    def added_to(self, run: AnyRun, confidence: float | None = None) -> AnyRun:
        """Return the run with intervals by resampling; the run itself if none were asked for."""
        if not self.resampled:
            return run
        from dialeval.analysis.values import with_intervals

        given = {"resamples": self.resamples, "seed": self.seed, "confidence": confidence}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return with_intervals(run, **chosen)


@dataclass(frozen=True)
class Limits:
    """What --fail-under and --fail-over say, by key."""

    lowest: Mapping[str, float]
    highest: Mapping[str, float]

    def with_metrics(self, metrics: str | None) -> str | None:
        """Return the metrics to compute: where none are named, also those that have a limit."""
        if metrics is not None or not (self.lowest or self.highest):
            return metrics
        from dialeval.metrics.registry import GROUPS, PANEL, registry

        keys = (registry().canonical(key).partition("/")[0] for key in (*self.lowest, *self.highest))
        return ",".join([PANEL, *(key for key in keys if key in registry().presets and key not in GROUPS[PANEL])])

    def gates(self, results: Mapping[str, Result]) -> Iterator[Gate]:
        """Return a gate for each value that has a limit."""
        if not self.lowest and not self.highest:
            return iter(())
        from dialeval.analysis.gates import limit_gates

        return limit_gates(results, self.lowest, self.highest)


class LanguageModel(dict[str, Any]):
    """What the options of a language model as the judge say: the arguments of `judges.llm.judge.LLM`, by name."""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models."""
        return tuple(self["model"])

    def open(self, meter: Any = None) -> Any:
        """Return the judge, or the panel of several; None where no model is named."""
        from pkgutil import resolve_name

        import orjson

        if not self.models:
            if any(self[name] for name in ("endpoint", "replay", "rubric", "mode")):
                raise click.UsageError("name the model of the judge: --llm-model NAME")
            return None
        settings = {name: value for name, value in self.items() if name not in ("endpoint", "model")}
        try:
            settings["options"] = {name: orjson.loads(value) for name, value in self["options"].items()}
        except orjson.JSONDecodeError as error:
            raise click.UsageError(f"--llm-option wants KEY=JSON, such as top_p=0.9: {error}") from None
        judges = []
        for model, place in zip(self.models, cycle(self["endpoint"] or [None]), strict=False):
            judges.append(resolve_name("dialeval.judges.llm.judge:LLM")(place, model, **settings))
            judges[-1].changed = None if meter is None else meter.show
        if meter is not None:
            meter.llms = judges
        return judges[0] if len(judges) == 1 else resolve_name("dialeval.judges.llm.judge:Panel")(*judges)


Command.groups = {"intervals": Intervals, "limits": Limits, "llm": LanguageModel}


def choice(flag: str, values: Sequence[str], help_text: str) -> Decorator:
    """Return an option with some values; the first is the default."""
    return click.option(flag, type=Choice(values), default=values[0], help=help_text)


def pairs(flag: str, name: str, metavar: str, help_text: str) -> Decorator:
    """Return an option NAME=VALUE that may be repeated."""
    return click.option(flag, name, multiple=True, callback=read_pairs, metavar=metavar, help=help_text)


def numbers(flag: str, name: str, help_text: str) -> Decorator:
    """Return an option KEY=NUMBER that may be repeated."""
    return click.option(flag, name, multiple=True, callback=read_numbers, metavar="KEY=VALUE", help=help_text)


def responses(name: str = "responses") -> Decorator:
    """Return the argument that names the files of one or several systems."""
    return click.argument(name, nargs=-1, required=True, type=click.Path(), callback=read_systems)


def metrics(default: str) -> Decorator:
    """Return the option that names the metrics to compute."""
    told = f"Metrics or families, comma-separated.  [default: {default}]"
    return click.option("-m", "--metrics", help=told, shell_complete=complete_metrics)


def complete_metrics(_context: click.Context, _parameter: click.Parameter | None, incomplete: str) -> list[str]:
    """Complete the last of several comma-separated names of metrics and families, for a shell."""
    from dialeval.metrics.registry import GROUPS, registry

    before, comma, last = incomplete.rpartition(",")
    names = dict.fromkeys((*registry().presets, *registry().families, *GROUPS))
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


TOKENIZERS = ("words.1", "lower-words.1", "13a", "lower-13a", "intl", "zh", "char", "ja", "unicode", "rouge", "auto")
"""As in `text.tokenize`, which is not imported to print help."""

tokenizer = click.option(
    "--tokenizer",
    type=Choice(TOKENIZERS),
    help="What a word is, for every metric that counts words; auto chooses by the scripts of the texts.  "
    "[default: words.1, split at whitespace; rouge for rouge-score]",
)


def fields_in(what: str) -> Decorator:
    """Return the option that names the fields of rows in a file."""
    return pairs("--field", "fields", "OURS=THEIRS", f"Name of a field in {what}.")


def format_(formats: Sequence[str] = FORMATS) -> Decorator:
    """Return the option that names the output format."""
    return click.option("-f", "--format", "format_", type=Choice(formats), default="table", help="Print as.")


def read_by(_context: click.Context, parameter: click.Parameter, value: str | None) -> list[str]:
    """Read fields that rows are cut into slices by, with commas between them."""
    from dialeval.io.rows import split_fields

    fields = split_fields(value or "")
    if value is not None and not fields:
        raise click.BadParameter("name a field, such as turn", param=parameter)
    if "system" in fields:
        raise click.BadParameter("systems stand side by side in every slice; name another field", param=parameter)
    return fields


def read_separator(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Read a separator; shells make it hard to type a tab."""
    return "\t" if value in ("\\t", "tab") else value


by = click.option(
    "--by",
    metavar="FIELDS",
    callback=read_by,
    help="Also split the rows into slices, comma-separated: turn, length, history, or fields of the rows.",
)
compared = click.option(
    "--compare/--no-compare", "compared", default=True, help="Test the differences to the first system."
)
judge = together(
    click.option(
        "--judge-dir", type=click.Path(file_okay=False), help="Folder of a judge.  [default: the shipped one]"
    ),
    click.option("--encoder", help="Where the judge's encoder lies: a folder, minilm, or a name in the hub cache."),
)
base_encoder = click.option("--encoder", default="minilm", help="Folder, minilm, or a name in the hub cache.")
contexts = click.option("-c", "--contexts", type=click.Path(), help="Dialogue context of each response.")
row_fields = fields_in("rows")
judged_inputs = together(
    click.option("-r", "--references", type=click.Path(), help="One reference per response."), contexts
)
judged_rows = together(judged_inputs, judge)
validate = click.option(
    "--validate/--no-validate", default=True, show_default=False, help="Leave sets out to see what the judge is worth."
)
reading = together(
    click.option("--system-prompts", is_flag=True, help="System prompts of chats are part of contexts."),
    click.option(
        "--separator",
        "separator",
        metavar="CHARACTER",
        callback=read_separator,
        help="Between cells of CSV.  [default: found]",
    ),
)
resources = together(
    click.option("--train", type=click.Path(), help="Training text (source side), one text a line."),
    click.option(
        "--vocabulary",
        "vocabulary",
        type=click.Path(),
        help="Vocabulary (oov=unk), one word a line.  [default: of --train]",
    ),
    click.option("--vectors", "vectors", help="Word vectors: a file, an installed data pack, or wordllama."),
)
in_vocabulary = click.option(
    "--in-vocabulary",
    type=Choice(["listed", "vectors"]),
    help="For -m dialog-eval: whether words with a vector that are not in the vocabulary are known too.  [default: "
    "listed if the vector file has a header line, as there]",
)
confidence = together(
    click.option("--factor", "t", type=float, help="t of t*std/sqrt(n), for --intervals rows.  [default: 1.97]"),
    click.option("--confidence", type=float, metavar="LEVEL", help="Level of the intervals.  [default: 0.95]"),
)
intervals = together(
    click.option(
        "--intervals",
        "intervals_method",
        type=Choice(["clustered", "rows", "none", "studentized"]),
        help="Over whole dialogues, or over rows that stand alone, by a formula (clustered); as dialog-eval (rows); "
        "none; by resampling dialogues, for every value (studentized).  [default: clustered]",
    ),
    click.option(
        "--resamples",
        "intervals_resamples",
        type=click.IntRange(min=1),
        help="Resamples of --intervals.  [default: 1000]",
    ),
    click.option("--seed", "intervals_seed", type=SEED, help="Seed of --intervals.  [default: 12345]"),
)
open_page = click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
percent = click.option("--percent", is_flag=True, help="Show scores from 0 to 1 times 100 (table, md, latex).")
transpose = click.option("--transpose", is_flag=True, help="Swap rows and columns (table, md, latex).")
limits = together(
    numbers("--fail-under", "limits_lowest", "Exit 1 if the mean of a system is lower."),
    numbers("--fail-over", "limits_highest", "Exit 1 if it is higher, for metrics where lower is better."),
)
llm = together(
    click.option("--llm-endpoint", multiple=True, metavar="URL", help="OpenAI-compatible API of a language model."),
    click.option("--llm-model", multiple=True, metavar="NAME", help="The model that judges; repeat for a panel."),
    click.option("--rubric", "llm_rubric", help="What it is asked: a name, or a TOML file.  [default: by the metric]"),
    click.option(
        "--llm-mode",
        type=Choice(["expected", "grade", "vote"]),
        help="Grades by probabilities of tokens, by the answer, by several answers.  [default: expected]",
    ),
    click.option("--llm-samples", type=click.IntRange(1, 100), help="Answers per row of the mode vote.  [default: 5]"),
    pairs("--llm-option", "llm_options", "KEY=JSON", "Further field of requests; null leaves one out."),
    click.option("--llm-concurrency", type=click.IntRange(1, 1024), default=16, help="Requests at a time."),
    click.option(
        "--llm-timeout", type=click.FloatRange(0, min_open=True), default=120.0, help="Seconds for an answer."
    ),
    click.option("--llm-retries", type=click.IntRange(min=0), default=8, help="Times that a request is sent again."),
    click.option("--max-requests", "llm_max_requests", type=click.IntRange(min=0), help="Budget of requests."),
    click.option("--max-tokens", "llm_max_total_tokens", type=click.IntRange(min=0), help="Budget of tokens."),
    click.option("--llm-price", "llm_prices", nargs=2, type=float, help="Of a million tokens, sent and answered."),
    click.option("--llm-cache", type=FILE, help="File of recorded answers.  [default: in the cache folder]"),
    click.option("--llm-replay", is_flag=True, help="Use recorded answers only; open no connection."),
    click.option("--llm-key-env", "llm_key_variable", default="DIALEVAL_LLM_KEY", help="Variable with the key."),
    pairs("--system-model", "llm_systems", "SYSTEM=MODEL", "The model behind a system, to name a judge of its family."),
)


bootstrap_resamples = click.option("--resamples", type=click.IntRange(min=1), default=1000, help="Of the bootstrap.")
threads = click.option("-j", "--threads", type=click.IntRange(min=1), help="Threads to use.  [default: one per core]")


def baselines(what: str) -> Decorator:
    """Return the switch for floors and ceilings; `what` they are in the command."""
    told = f"Also score floors and ceilings: {what}.  [default: not]"
    return click.option("--baselines/--no-baselines", default=False, show_default=False, help=told)


output_folder = together(
    click.option("-o", "--output", type=FOLDER, help="Save the run in this folder."),
    click.option("--force", is_flag=True, help="With -o: replace a run of other files."),
)
of_task_runs = together(output_folder, by, compared, format_(), transpose, confidence, limits, intervals)
"""What commands that evaluate task dialogues take about the run: where it is saved, how it is shown and checked."""
output_file = click.option("--save", "output", type=FILE, help="Write to this file instead.")
