"""Commands and their help: what is used most and examples first, then all options by section.

`SECTIONS` has the section of every option once, for all commands. `--help` imports this module, so that it imports
nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import cleandoc
from textwrap import indent as indent_lines
from textwrap import wrap
from typing import Any, ClassVar, TypeAlias

import click

from dialeval.cli.output import STYLE
from dialeval.core.errors import suggest

Function: TypeAlias = Callable[..., object]
_MOST_USED = 3
"""Options at the top of a help: the first ones of the examples."""

_SECTIONS: Mapping[str, str] = {
    "Input": "references contexts input data split schema train-schema train vocabulary vectors field separator shards "
    "system-prompts role skip-invalid keep-reasoning human sample pairs ratings form db systems adjudicated any-scores "
    "eos no-eos development part fallback checks from data-add:address rate-serve:raters score:dialogues score:scores "
    "key",
    "Metrics": "metrics tokenizer bleu-smoothing judge-dir encoder baselines bleu success richness dst strict "
    "completion model dst-unify-booking dst-exact dst-ignore-dontcare names ratio match lenient threshold aligner "
    "lsdscc:n judge quality metric all lexicalized groups joint-across-turns macro error-categories labels",
    "Language model": "llm-endpoint llm-model rubric llm-mode llm-samples llm-option llm-concurrency llm-timeout "
    "llm-preset llm-auth llm-header llm-ca llm-served-model probe llm-retries max-requests max-tokens llm-price "
    "llm-cache llm-replay llm-key-env system-model show-prompt row",
    "Statistics": "intervals confidence resamples seed alpha trials design weight adjust detect sequential trend "
    "compare baseline by cluster replicate level population raters assume-random correlation std sample:width length "
    "position below above",
    "Sampling": "n stratify dialogues plan",
    "Training": "rank license strength response-strength turns tokens",
    "Server": "host port per-row",
    "Output": "output save force format percent transpose row-scores open title card figure figures "
    "report:width disputed failures multiwoz:dialogues breakdown:turns adjudicate "
    "most progress details verbose label width spread rename appendix bib to version help",
    "Checks": "fail-under fail-over allow-missing no-worse-than margin",
    "Scale": "threads jobs engine address",
}
"""By section its options; those that are in several sections follow the name of a command, as in `lsdscc:n`."""
SECTIONS = {flag: title for title, flags in _SECTIONS.items() for flag in flags.split()}
ORIGINAL = "Options of the original program"


def find_section(option: click.Option, command: str) -> str | None:
    """Return the section of an option of a command, such as `rate serve`; None where there is none."""
    flag = option.opts[-1].lstrip("-")
    of_original = command.startswith("compat ") and flag != "help"
    return ORIGINAL if of_original else SECTIONS.get(f"{command.replace(' ', '-')}:{flag}", SECTIONS.get(flag))


class HelpCommand(click.Command):
    """A command with examples, whose help lists options by section; `inner`: commands of its own, by name."""

    inner: Mapping[str, click.Command] = {}
    groups: ClassVar[Mapping[str, Callable[..., object]]] = {}
    """Types of arguments that hold several options: `NAME` is made of the values of all options `NAME_...`."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = examples

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        if args and (command := self.inner.get(args[0])):
            return command.make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if ctx.meta.get(STYLE) and ctx.params.get("format_", "latex") != "latex":
            raise click.UsageError("--label, --width, --spread and --rename are for tables in LaTeX: -f latex", ctx)
        for group, kind in self.groups.items():
            names = [name for name in ctx.params if name.startswith(f"{group}_")]
            if names:
                ctx.params[group] = kind(**{name.removeprefix(f"{group}_"): ctx.params.pop(name) for name in names})
        return rest

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, summary, the most used options, examples, the rest of the text, and options by section."""
        self.format_usage(ctx, formatter)
        summary, _, more = cleandoc(self.help or "").partition("\n\n")
        _write_text(formatter, summary)
        options = [parameter for parameter in self.get_params(ctx) if isinstance(parameter, click.Option)]
        by_flag = {flag: option for option in options for flag in option.opts}
        words = (word for example in self.examples for word in example.split())
        first = list(dict.fromkeys(by_flag[word] for word in words if word in by_flag))[:_MOST_USED]
        path = ctx.command_path.partition(" ")[2]
        titles = {option.name: find_section(option, path) or "Options" for option in options}
        _write_list(formatter, "Most used", (option.get_help_record(ctx) for option in first))
        if self.examples:
            with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
                for line in self.examples:
                    formatter.write(_fold_example(line, formatter.current_indent, formatter.width))
        _write_text(formatter, more)
        self._write_commands(ctx, formatter)
        for title in (ORIGINAL, *_SECTIONS, "Options"):
            listed = [option for option in options if option not in first and titles[option.name] == title]
            _write_list(formatter, title, (option.get_help_record(ctx) for option in listed))

    def _write_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 12
        commands = ((name, command.get_short_help_str(limit)) for name, command in self.inner.items())
        _write_list(formatter, "Commands", commands)


class Group(HelpCommand, click.Group):
    """A group of commands, whose names may be in any case; an unknown one gets a suggestion."""

    def command(self, *examples: str, **settings: object) -> Callable[[Function], click.Command]:  # type: ignore[override]
        """Make a function a command of the group, with examples for its help; a decorator."""
        return super().command(cls=HelpCommand, examples=examples, **settings)

    def _write_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        name = args[0] if args[0] in names else args[0].lower()
        if name not in names and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"there is no command {args[0]!r}; {suggest(args[0], names)}", ctx)
        return super().resolve_command(ctx, [name, *args[1:]])


class Choice(click.Choice):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.2
    """One of some words, in any case; an unknown one gets a suggestion."""

    def __init__(self, choices: Iterable[str]) -> None:
        super().__init__(tuple(choices), case_sensitive=False)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            raise click.BadParameter(f"{value!r} is not known; {suggest(value, self.choices)}", ctx, param) from None


def command(*examples: str, **settings: Any) -> Callable[[Function], HelpCommand]:
    """Make a function a command, with examples for its help; a decorator."""
    return click.command(cls=HelpCommand, examples=examples, **settings)


def group(*examples: str, **settings: Any) -> Callable[[Function], Group]:
    """Make a function a group of commands, with examples for its help; a decorator."""
    return click.group(cls=Group, examples=examples, **settings)


def _fold_example(example: str, indent: int, width: int) -> str:
    """Return a command and its comment in lines of a width that can be copied into a shell."""
    command, _, comment = (part.strip() for part in example.partition("  "))
    lines = wrap(command, width - indent - 2, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    folded = " \\\n".join(lines)
    if comment:
        alone = f"# {comment}\n{folded}"
        folded = f"{folded}  # {comment}" if indent + len(folded) + len(comment) + 4 <= width else alone
    return f"{indent_lines(folded, ' ' * indent)}\n"


def _write_text(formatter: click.HelpFormatter, text: str) -> None:
    if text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)


def _write_list(formatter: click.HelpFormatter, title: str, records: Iterable[tuple[str, str] | None]) -> None:
    shown = [record for record in records if record is not None]
    if shown:
        with formatter.section(title):
            formatter.write_dl(shown)
