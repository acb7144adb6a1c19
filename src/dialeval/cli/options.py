"""Options that more than one command has, each defined once, and how their values are read.

An option is a decorator: `@options.contexts`. `combine_options` makes one decorator of several; the options of a group
in `HelpCommand.groups` reach the command as one argument. `--help` imports this module: it imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dialeval.cli.help import Choice, HelpCommand, command, group
from dialeval.cli.output import STYLE, VERBOSE
from dialeval.core import inputs

if TYPE_CHECKING:
    from dialeval.analysis.gates import Gate
    from dialeval.core.result import Result, Run

AnyRun = TypeVar("AnyRun", bound="Run")
Decorator = Callable[[Any], Any]

__all__ = ["Choice", "command", "group"]

inputs.OPTIONS.update(
    responses="RESPONSES",
    references="-r",
    contexts="-c",
    reference_groups="-r",
    data="--data",
    predictions="PREDICTIONS",
    labels="LABELS",
    schema="--schema",
    train="--train",
    vocabulary="--vocabulary",
    vectors="--vectors",
    checks="--checks",
    judge="--judge-dir",
    llm="--llm-endpoint and --llm-model",
)
FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
SEED = click.IntRange(0, (1 << 63) - 1)
"""What fits into a file that a run or a sample is saved in."""
FORMATS = ("table", "json", "csv", "md", "latex")
RUN_FORMATS = (*FORMATS, "metrics-txt")
GATE_FORMATS = ("github", "junit")
"""Formats with the results of gates: Markdown for a pull request, and test results."""


def parse_pairs(
    _context: click.Context,
    parameter: click.Parameter,
    values: Sequence[str],
    split: Callable[[str, str], tuple[str, str, str]] = str.partition,
) -> dict[str, str]:
    """Parse options of the form NAME=VALUE; `split`: where, if there are several equals signs."""
    pairs = {}
    for value in values:
        name, equals, rest = split(value, "=")
        if not equals or not name or not rest:
            raise click.BadParameter(
                f"{value!r} is not of the form {parameter.metavar or 'NAME=VALUE'}", param=parameter
            )
        pairs[name] = rest
    return pairs


def parse_numbers(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, float]:
    """Parse options of the form KEY=NUMBER; a key may have equals signs, as `label:error=repetition`."""
    try:
        return {key: float(value) for key, value in parse_pairs(context, parameter, values, str.rpartition).items()}
    except ValueError as error:
        raise click.UsageError(f"{parameter.opts[0]} takes KEY=NUMBER, such as sacrebleu=0.2: {error}") from None


def parse_systems(_context: click.Context, _parameter: click.Parameter, places: Sequence[str]) -> str | dict[str, str]:
    """Parse FILE or NAME=FILE: the path of a single file without a name, else a mapping of systems to paths."""
    from dialeval.io.sources import name_system

    if len(places) == 1 and not _has_name(places[0]):
        return places[0]
    systems: dict[str, str] = {}
    for argument in places:
        name, path = argument.split("=", 1) if _has_name(argument) else (name_system(argument), argument)
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


def combine_options(*options: Decorator) -> Decorator:
    """Combine several options into one decorator, in the order in which the help lists them."""

    def decorate(command: object) -> object:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True)
class IntervalOptions:
    """The values of --intervals, --resamples and --seed."""

    method: str | None
    """None: the default of the evaluation."""
    resamples: int | None
    seed: int | None

    def __post_init__(self) -> None:
        if not self.is_resampled and (self.resamples is not None or self.seed is not None):
            context = click.get_current_context(silent=True)
            raise click.UsageError("--resamples and --seed need --intervals studentized", context)

    @property
    def is_resampled(self) -> bool:
        """Whether intervals by resampling were requested."""
        return self.method == "studentized"

    @property
    def kind(self) -> Any:
        """The intervals that the evaluation itself computes."""
        return None if self.is_resampled else self.method

    def add_to(self, run: AnyRun, confidence: float | None = None) -> AnyRun:
        """Return the run with intervals by resampling; the run itself if none were requested."""
        if not self.is_resampled:
            return run
        from dialeval.analysis.values import with_intervals

        settings = {"resamples": self.resamples, "seed": self.seed, "confidence": confidence}
        chosen: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        return with_intervals(run, **chosen)


@dataclass(frozen=True)
class Limits:
    """The values of --fail-under and --fail-over, by key."""

    lowest: Mapping[str, float]
    highest: Mapping[str, float]
    missing: float = 0.0
    """The fraction of what is due that may have no value."""

    def with_metrics(self, metrics: str | None) -> str | None:
        """Return the metrics to compute: where none are named, also those that have a limit."""
        if metrics is not None or not (self.lowest or self.highest):
            return metrics
        from dialeval.metrics.registry import GROUPS, PANEL, registry

        keys = (registry().canonicalize(key).partition("/")[0] for key in (*self.lowest, *self.highest))
        return ",".join([PANEL, *(key for key in keys if key in registry().presets and key not in GROUPS[PANEL])])

    def make_gates(self, results: Mapping[str, Result], baseline: str | None = None) -> Iterator[Gate]:
        """Return a gate for each value that has a limit; that of the baseline is not limited, but must be there."""
        if not self.lowest and not self.highest:
            return iter(())
        from dialeval.analysis.gates import check_limits

        return check_limits(results, self.lowest, self.highest, self.missing, baseline)


class LanguageModel(dict[str, Any]):
    """The options of a language model as the judge: arguments of `judges.llm.judge.LLM`, by name."""

    def open(self, meter: Any = None) -> Any:
        """Return the judge, or the panel of several; None where no model is named."""
        import orjson

        from dialeval.core.features import find_place

        if not self["model"]:
            if any(self[name] for name in ("endpoint", "replay", "rubric", "mode", "presets")):
                raise click.UsageError("name the model of the judge: --llm-model NAME")
            return None
        settings = {name: value for name, value in self.items() if name not in ("endpoint", "model")}
        try:
            settings["options"] = {name: orjson.loads(value) for name, value in self["options"].items()}
        except orjson.JSONDecodeError as error:
            raise click.UsageError(f"--llm-option wants KEY=JSON, such as top_p=0.9: {error}") from None
        judges = []
        for model, place in zip(self["model"], cycle(self["endpoint"] or [None]), strict=False):
            judges.append(find_place("loaders", "language_model")(place, model, **settings))
            if meter is not None:
                judges[-1].changed = meter.show
                judges[-1].report = lambda text: meter.note(f"llm: {text}")
        if meter is not None:
            meter.llms = judges
        return judges[0] if len(judges) == 1 else find_place("loaders", "panel")(*judges)


HelpCommand.groups = {"intervals": IntervalOptions, "limits": Limits, "llm": LanguageModel}


def option(flags: str, help_text: str, kind: Any = None, **settings: Any) -> Decorator:
    """Return an option: its flags and, if it is another, the name of its argument; its help; the type of its values."""
    return click.option(*flags.split(), type=kind, help=help_text, **settings)


def refuse_options(flag: str, *names: str) -> None:
    """Refuse options that were given next to a flag that they do not go with (UsageError), by their arguments."""
    context = click.get_current_context()
    typed = [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    flags = [parameter.opts[-1] for parameter in context.command.params if parameter.name in typed]
    if flags:
        raise click.UsageError(f"with {flag}, leave {', '.join(flags)} out")


def choice(flag: str, values: Sequence[str], help_text: str) -> Decorator:
    """Return an option with some values; the first is the default."""
    return option(flag, help_text, Choice(values), default=values[0])


def judge_keys(help_text: str) -> Decorator:
    """Return the option `--judge` of estimates of human ratings."""
    return option("--judge", help_text, metavar="KEYS", default="", show_default=False)


def pairs(flags: str, metavar: str, help_text: str) -> Decorator:
    """Return an option NAME=VALUE that may be repeated."""
    return option(flags, help_text, multiple=True, callback=parse_pairs, metavar=metavar)


def numbers(flags: str, help_text: str) -> Decorator:
    """Return an option KEY=NUMBER that may be repeated."""
    return option(flags, help_text, multiple=True, callback=parse_numbers, metavar="KEY=VALUE")


def responses(name: str = "responses") -> Decorator:
    """Return the argument that names the files of one or several systems."""
    return click.argument(name, nargs=-1, required=True, type=click.Path(), callback=parse_systems)


def metrics(default: str) -> Decorator:
    """Return the option that names the metrics to compute."""
    help_text = f"Metrics or families, comma-separated.  [default: {default}]"
    return option("-m --metrics", help_text)


TOKENIZERS = ("words.1", "lower-words.1", "13a", "lower-13a", "intl", "zh", "char", "ja", "unicode", "rouge", "auto")
"""As in `text.tokenizers`, which is not imported to print help."""

tokenizer = option(
    "--tokenizer",
    f"Tokenizer of every metric that counts words: {', '.join(TOKENIZERS)}; auto chooses by the script of the texts.  "
    "[default: words.1, split at whitespace; rouge for rouge-score]",
    Choice(TOKENIZERS),
    metavar="NAME",
)


def field_names(what: str) -> Decorator:
    """Return the option that names the fields of rows in a file."""
    return pairs("--field fields", "OURS=THEIRS", f"Map a field to its name in {what}.")


def _keep_style(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep an option about tables for papers in the context, where the writer finds it."""
    if value:
        named = _read_names(context, parameter, value) if parameter.name == "rename" else value
        context.meta.setdefault(STYLE, {})[parameter.name] = named


def _read_names(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    """Read names of a paper: NAME=TEXT, or a TOML file of them."""
    names: dict[str, str] = {}
    for value in values:
        if value.endswith(".toml") and "=" not in value:
            from dialeval.core import validation

            remedy = 'write lines such as "bleu-4" = "BLEU-4"'
            document = validation.parse_toml(validation.read_bytes(value, remedy), value, remedy)
            names |= validation.convert(document, dict[str, str], value, remedy)
        else:
            names |= parse_pairs(context, parameter, [value], str.rpartition)
    return names


def _style(flag: str, help_text: str, kind: Any = None, **settings: Any) -> Decorator:
    return option(flag, help_text, kind, expose_value=False, callback=_keep_style, **settings)


_STYLES = (
    _style("--label", "Label of the table (latex)."),
    _style(
        "--width", "Fit the text or a column, with further panels (latex).  [default: text]", Choice(["text", "column"])
    ),
    _style(
        "--spread",
        "Uncertainty of values: interval, ± half of it, or none (latex).  [default: interval]",
        Choice(["interval", "pm", "none"]),
    ),
    _style(
        "--rename",
        "Name in the paper of a metric or system, or a TOML file of such names (latex).",
        multiple=True,
        metavar="NAME=TEXT",
    ),
)


def format_(formats: Sequence[str] = FORMATS) -> Decorator:
    """Return the option that names the output format, those of tables for papers, and the one for more details."""
    return combine_options(
        *(_STYLES if "latex" in formats else ()),
        option("-f --format format_", "Output format.", Choice(formats), default=formats[0]),
        option(
            "-v --verbose",
            "Below a table, also print settings and signatures.",
            is_flag=True,
            expose_value=False,
            callback=lambda context, _parameter, value: context.meta.update({VERBOSE: value}),
        ),
    )


def parse_fields(_context: click.Context, parameter: click.Parameter, value: str | None) -> list[str]:
    """Parse the comma-separated fields that rows are split into slices by."""
    from dialeval.io.rows import split_fields

    fields = split_fields(value or "")
    if value is not None and not fields:
        raise click.BadParameter("name a field, such as turn", param=parameter)
    if "system" in fields:
        raise click.BadParameter(
            "every slice already compares the systems; name a field other than system", param=parameter
        )
    return fields


def parse_separator(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Parse a separator; shells make it hard to type a tab."""
    return "\t" if value in ("\\t", "tab") else value


by = option(
    "--by",
    "Also split the rows into slices, comma-separated: turn, length, history, or fields of the rows.",
    metavar="FIELDS",
    callback=parse_fields,
)
compared = option("--compare/--no-compare compared", "Test the differences to the first system.", default=True)
judge = option("--judge-dir", "Folder of a judge.  [default: the shipped one]", click.Path(file_okay=False))
base_encoder = option("--encoder", "Folder, or minilm.", default="minilm")
contexts = option("-c --contexts", "Dialogue context of each response.", click.Path())
row_fields = field_names("rows")
judged_inputs = combine_options(option("-r --references", "One reference per response.", click.Path()), contexts)
judged_rows = combine_options(judged_inputs, judge)
reading = combine_options(
    option("--system-prompts", "Keep system prompts as part of the contexts.", is_flag=True),
    option(
        "--separator", "Delimiter of CSV files.  [default: detected]", metavar="CHARACTER", callback=parse_separator
    ),
    pairs("--role roles", "THEIRS=OURS", "Map a role of messages to system, user, assistant or tool."),
    option("--skip-invalid", "Skip and count rows that cannot be read.", is_flag=True),
    option("--keep-reasoning", "Keep <think> blocks as part of replies.", is_flag=True),
)
resources = combine_options(
    option("--train", "Training text (source side), one text a line.", click.Path()),
    option("--vocabulary", "Vocabulary (oov=unk), one word a line.  [default: of --train]", click.Path()),
    option("--vectors", "Word vectors: a file, an installed data pack, or wordllama."),
)
confidence = option("--confidence", "Confidence level.  [default: 0.95]", float, metavar="LEVEL")
intervals = combine_options(
    option(
        "--intervals intervals_method",
        "clustered: standard errors over dialogues; studentized: bootstrap over dialogues, for every value; rows: as "
        "dialog-eval; none.  [default: clustered]",
        Choice(["clustered", "rows", "none", "studentized"]),
    ),
    option("--resamples intervals_resamples", "Bootstrap resamples.  [default: 1000]", click.IntRange(min=1)),
    option("--seed intervals_seed", "Random seed.  [default: 12345]", SEED),
)
open_page = option("--open opened", "Open the page in the browser.", is_flag=True)
percent = option("--percent", "Show scores between -1 and 1 times 100 (table, md, latex).", is_flag=True)
limits = combine_options(
    numbers("--fail-under limits_lowest", "Exit 1 if the mean of a system is lower."),
    numbers("--fail-over limits_highest", "Exit 1 if it is higher (for metrics where lower is better)."),
    option(
        "--allow-missing limits_missing",
        "Let a gate pass where so much of what is due has no value.",
        click.FloatRange(0, 1),
        default=0.0,
        metavar="FRACTION",
    ),
)
margins = numbers(
    "--margin margins",
    "Systems that differ by less are equivalent; with --no-worse-than, exit 1 unless the interval rules out more.",
)
cluster = combine_options(
    option(
        "--cluster",
        "Field of the rows, such as the user: all dialogues with the same value are sampled together; two fields, "
        "such as user,prompt, are crossed.  [default: dialogues]",
        metavar="FIELD",
    ),
    option(
        "--replicate",
        "Field that numbers the generation seeds or training runs of each system: intervals hold for other ones.",
        metavar="FIELD",
    ),
)
_PRESETS = ("openai", "azure", "openrouter", "vllm", "ollama", "llama.cpp", "reasoning")
llm = combine_options(
    option("--llm-endpoint", "OpenAI-compatible API of a language model.", multiple=True, metavar="URL"),
    option("--llm-model", "Model of the judge; repeat for a panel.", multiple=True, metavar="NAME"),
    option("--llm-preset llm_presets", "Settings for a kind of server or model.", Choice(_PRESETS), multiple=True),
    option("--llm-auth", "How the key is sent.  [default: bearer]", Choice(["bearer", "api-key", "none"])),
    pairs("--llm-header llm_headers", "NAME=VALUE", "Another header; '$NAME' in it is an environment variable."),
    option("--llm-ca", "Further certificates to trust, a PEM file.", FILE),
    option(
        "--llm-served-model",
        "Name of the model in answers, where a gateway has another.",
        metavar="NAME",
        default="",
        show_default=False,
    ),
    option("--probe/--no-probe llm_probe", "Send single requests until one is answered.", default=True),
    option("--rubric llm_rubric", "Rubric: a name, or a TOML file.  [default: by the metric]"),
    option(
        "--llm-mode",
        "expected: mean grade by token probabilities; grade: the answer; vote: mean of several answers.  "
        "[default: expected]",
        Choice(["expected", "grade", "vote"]),
    ),
    option("--llm-samples", "Answers per row with --llm-mode vote.  [default: 5]", click.IntRange(1, 100)),
    pairs("--llm-option llm_options", "KEY=JSON", "Another field of the request; null removes one."),
    option("--llm-concurrency", "Concurrent requests.", click.IntRange(1, 1024), default=16),
    option("--llm-timeout", "Seconds until a request times out.", click.FloatRange(0, min_open=True), default=120.0),
    option("--llm-retries", "Retries of a failed request.", click.IntRange(min=0), default=8),
    option("--max-requests llm_max_requests", "Stop after this many requests.", click.IntRange(min=0)),
    option("--max-tokens llm_max_total_tokens", "Stop after this many tokens.", click.IntRange(min=0)),
    option("--llm-price llm_prices", "Price of a million prompt and completion tokens.", float, nargs=2),
    option("--llm-cache", "File of recorded answers.  [default: in the cache folder]", FILE),
    option("--llm-replay", "Use recorded answers only; open no connection.", is_flag=True),
    option("--llm-key-env llm_key_variable", "Environment variable with the API key.", default="DIALEVAL_LLM_KEY"),
    pairs("--system-model llm_systems", "SYSTEM=MODEL", "A system's model, to warn of a judge of the same family."),
)
baseline = option("--baseline", "The system that others are compared with.  [default: the first]", metavar="NAME")
level = option("--confidence", "Confidence level.", float, default=0.95, metavar="LEVEL")
seed = option("--seed", "Random seed.", SEED, default=12345)
bootstrap_resamples = option("--resamples", "Bootstrap resamples.", click.IntRange(min=1), default=1000)
threads = option("-j --threads", "Threads to use.  [default: one per core]", click.IntRange(min=1))


def baselines(what: str) -> Decorator:
    """Return the switch for floor and ceiling systems; `what`: those of the command."""
    return option("--baselines/--no-baselines", f"Also score floor and ceiling systems: {what}.", default=False)


output_folder = combine_options(
    option("-o --output", "Save the run in this folder.", FOLDER),
    option("--force", "With -o: replace a run of other files.", is_flag=True),
)
of_task_runs = combine_options(output_folder, by, compared, format_(), confidence, limits, intervals)
"""Options about the run of commands that evaluate task dialogues: where it is saved, how it is shown and checked."""
output_file = option("--save output", "Write to this file instead.", FILE)
