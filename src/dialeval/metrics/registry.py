"""The registry: metrics by name.

A metric is asked for as a preset (`distinct-2`), a family (`distinct`: all its presets), a group (`default`,
`dialog-eval`), `all`, an alias (`bertscore`), or with settings (`distinct(n=3,per=response)`), in upper or lower case.
Every metric object prints to a name that reads back to an equal object.

A package adds metrics by its `Feature`; a program by `register`.
Two metrics never share a name: the second one is refused.

A function that `metric_of_rows` made a metric can be passed wherever a metric can. Once it is defined it is known by
its name, but it is not among `all`, unless it is registered: what a script defines for itself is computed when it is
asked for. `module:name` imports a module for a metric in it.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import chain
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from dialeval.core import inputs
from dialeval.core.errors import SettingError, add_warning, suggest
from dialeval.core.features import Feature, list_features, list_installed, list_known
from dialeval.core.fold import Metric
from dialeval.metrics.functions import DECLARED, METRIC_MARK, MetricClass, describe_collision, make_class

_OWN: Mapping[str, Sequence[str]] = {
    inputs.RESPONSE: (
        "dialeval.metrics.words:Length,TrainEntropy,KlDivergence",
        "dialeval.metrics.embedding:Embedding,Coherence,GreedyMatch",
        "dialeval.metrics.distinct:Distinct",
        "dialeval.metrics.bleu:Bleu,NlgBleu",
        "dialeval.metrics.rouge:RougeL,RougeScore",
        "dialeval.metrics.chrf:Chrf",
        "dialeval.metrics.checks:Contains,NotContains,StartsWith,Equals,Matches,MaxWords,IsJson,Refusal,TextChecks",
        "dialeval.metrics.rouge:MeteorExact",
    ),
    inputs.CONTEXT: (
        "dialeval.metrics.conversation:DialogueTurns,TalkRatio,SelfRepetition",
        "dialeval.metrics.conversation:RepeatedQuestions,UserRephrasing,UnansweredQuestions",
    ),
    inputs.TRIALS: ("dialeval.metrics.trials:PassHat,PassAt,Flips,TaskVariance,TrialVariance,Reward,TrialCost",),
    inputs.OUTCOME: ("dialeval.metrics.log_columns:FailureRate",),
    inputs.TURN_LABELS: ("dialeval.metrics.log_columns:Label",),
    inputs.SCORES: ("dialeval.metrics.log_columns:Score",),
    inputs.LATENCY: ("dialeval.metrics.log_columns:Latency,LatencyPercentile",),
    inputs.CALLS: (
        "dialeval.metrics.calls:CallMatch,CallOrder,CallSequence,ArgumentMatch,MissingCalls,ExtraCalls,CallErrors",
        "dialeval.metrics.calls:RepeatedCalls",
        "dialeval.metrics.checks:CallAssertions",
    ),
}
"""By what they measure, in the order in which tables show them; imported when something of the kind is asked for.
Those of features follow."""

PANEL, ALL = "default", "all"
GROUPS: Mapping[str, Sequence[str]] = {
    PANEL: ("sacrebleu", "chrf", "rouge-l", "distinct-1", "distinct-2", "length"),
    "dialog-eval": (
        "length",
        *("per-unigram-entropy", "per-bigram-entropy", "utterance-unigram-entropy", "utterance-bigram-entropy"),
        *("unigram-kl-div", "bigram-kl-div"),
        *("embedding-average", "embedding-extrema", "embedding-greedy", "coherence"),
        *("distinct-1", "distinct-2", "bleu-1", "bleu-2", "bleu-3", "bleu-4"),
    ),
}
"""Presets that belong together, by the name of the group: those that are scored unless others are asked for (a plan
adds the judge where it can), and those of an original program, in its order."""

GROUP_SETTINGS: Mapping[str, Mapping[str, object]] = {"dialog-eval": {"oov": "unk"}}
"""By group: settings that its metrics have in place of their defaults, where they have such a setting."""

ALIASES: Mapping[str, str] = {
    "bertscore": "greedy-match",
    "chrf++": "chrf(words=2)",
    "rouge-1": "rouge-score-1",
    "rouge-2": "rouge-score-2",
    "dist-1": "distinct-1",
    "dist-2": "distinct-2",
    "llm-judge": "llm",
    "g-eval": "llm(mode=expected)",
}
"""Names of the field for metrics that are called otherwise here; results have the name of the metric."""

ALIAS_NOTES: Mapping[str, str] = {
    "bertscore": "bertscore is computed as greedy-match: the formula of BERTScore with the encoder that is installed, "
    "without idf weights, layers chosen by language, and rescaling; add scores of bert_score itself with --scores",
}
"""How a metric differs from what the name stands for elsewhere; a warning says so where the name is asked for."""

_SCORES = "or add scores computed elsewhere: --scores FILE, -m score:NAME"
_INSTEAD: Mapping[str, str] = {
    "meteor": f"meteor-exact has no synonyms, chrf credits inflected words, bertscore paraphrases; {_SCORES}",
    "cider": f"nlg-bleu-4 and rouge-l are the other metrics of coco-caption; {_SCORES}",
    "bleurt": f"bertscore compares with the reference, judge reads the context; {_SCORES}",
    "comet": f"bertscore compares with the reference, judge reads the context; {_SCORES}",
    "self-bleu": f"distinct-1, distinct-2 and self-repetition measure diversity; {_SCORES}",
    "mauve": f"unigram-kl-div and bigram-kl-div compare distributions of words with references; {_SCORES}",
    "usr": f"judge reads the context without references, as usr does; {_SCORES}",
    "fed": f"judge rates turns without references, judge@dialogue-mean dialogues; {_SCORES}",
    "unieval": f"llm asks a language model about several qualities by a rubric; {_SCORES}",
    "perplexity": "judge/fluency of judge is a learned measure of fluency",
}
"""Metrics that are not implemented, each with what is."""

Registered = TypeVar("Registered", bound=Callable[..., Any])

_AT = "@dialogue-"
"""As in `metrics.conversation`, which is imported when a name has it."""
_LABEL = re.compile(r"\s*(label|score):([^\s(),@]+(?: +[^\s(),@]+)*)\s*(?:\(([^()]*)\))?\s*")
"""The rate of a label or the mean of a score, and further settings."""
_PLACE = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
"""A module and a name in it."""


def _require_class(candidate: object) -> MetricClass:
    """Return the class that a metric is registered by; SettingError for what is none."""
    if hasattr(candidate, METRIC_MARK):
        return make_class(candidate)
    name = getattr(candidate, "__qualname__", repr(candidate))
    if isinstance(candidate, type) and issubclass(candidate, Metric):
        return candidate
    way = "a function becomes one by @dialeval.metric_of_rows(name=...)"
    if hasattr(candidate, "update_metrics"):
        way = "a class of dialog-eval becomes one by dialeval.originals.dialog_eval.adapt"
    raise SettingError(f"{name} is not a metric; {way}")


def _import_classes(place: str) -> Iterator[MetricClass]:
    """Yield the metric classes of a place, which may name several of one module."""
    module, _, names = place.partition(":")
    for name in names.split(","):
        yield _require_class(getattr(import_module(module), name))


def _import_name(module: str, name: str) -> object:
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingError(f"the metric {module}:{name} cannot be imported: {error}") from None


class Registry:
    """Metric classes by family, and presets by name."""

    def __init__(
        self, waiting: Mapping[str, Sequence[str]] | None = None, installed: Callable[[], Iterable[Feature]] = tuple
    ) -> None:
        self._families: dict[str, MetricClass] = {}
        self._presets: dict[str, MetricClass] = {}
        self._waiting = dict(waiting or {})
        """Places of classes that are not imported yet, by what they measure."""
        self._installed = installed
        """Gives the features of other packages, until they are loaded: looking for them takes long."""
        self._broken: dict[str, str] = {}
        self._lock = threading.RLock()

    @property
    def broken(self) -> Mapping[str, str]:
        """Entry points that could not be loaded, each with the reason."""
        self._import_all()
        return self._broken

    @property
    def families(self) -> Mapping[str, MetricClass]:
        """Every metric class by the name of its family."""
        self._import_all()
        return self._families

    @property
    def presets(self) -> Mapping[str, MetricClass]:
        """Every preset by its name, with its class."""
        self._import_all()
        return self._presets

    def _import(self, subjects: Iterable[str]) -> None:
        wanted = set(subjects)
        with self._lock:  # a thread that comes second waits until the metrics are there
            for subject in [each for each in self._waiting if each in wanted]:  # in one order, whatever the set's
                for place in self._waiting.pop(subject):
                    for metric in _import_classes(place):
                        self._add(metric)

    def _import_all(self) -> None:
        """Import what is built in, and what installed packages add."""
        self._import(list(self._waiting))
        self._load_installed()

    def _load_installed(self) -> None:
        installed, self._installed = self._installed, tuple
        for feature in installed():
            self._import(list(self._waiting))  # it may not take a name of theirs
            for place in chain.from_iterable(feature.metrics.values()):
                try:
                    for metric in _import_classes(place):
                        self._add(metric)
                except SettingError:
                    raise
                except Exception as error:
                    # A package that does not load must not take the built-in metrics down with it.
                    self._broken[place] = f"{type(error).__name__}: {error}"

    def _find(self, name: str) -> MetricClass | None:
        """Find the class of a preset or family: first among imported ones, then among those that score responses."""
        imported = [
            subject
            for subject, places in list(self._waiting.items())
            if all(place.partition(":")[0] in sys.modules for place in places)
        ]
        for load in (partial(self._import, imported), partial(self._import, [inputs.RESPONSE]), self._import_all):
            load()
            metric = self._presets.get(name) or self._families.get(name)
            if metric is not None:
                return metric
        return DECLARED.get(name)

    def list_measuring(self, subjects: Collection[str]) -> list[Metric]:
        """Return all presets of metrics that measure one of some columns."""
        self._import(subjects)
        self._load_installed()
        measuring = [(name, metric) for name, metric in self._presets.items() if metric.subject in subjects]
        return [metric(**metric.presets[name]) for name, metric in measuring]

    def register(self, metric: Registered) -> Registered:
        """Add a metric class, or a function of `metric_of_rows` (also usable as a decorator).

        A name that is taken is refused, by whatever is built in too.
        """
        self._import_all()
        self._add(_require_class(metric))
        return metric

    def _add(self, metric: MetricClass) -> None:
        self._refuse_taken(metric)
        self._families[metric.family] = metric
        self._presets.update(dict.fromkeys(metric.presets, metric))

    def _refuse_taken(self, metric: MetricClass) -> None:
        for name in {metric.family, *metric.presets}:
            taken = self._families.get(name) or self._presets.get(name)
            if taken is not None and taken is not metric:
                raise SettingError(describe_collision(name, taken, metric))

    def canonicalize(self, name: object) -> Any:
        """Return a name as it is spelled here: not an alias, in lower case unless it is known as it is."""
        if not isinstance(name, str):
            return name
        if label := _LABEL.fullmatch(name):
            name = f"{label[1]}(of={','.join(filter(None, label.groups()[1:]))})"
        head, bracket, settings = name.strip().partition("(")
        lower = head.strip().lower()
        if lower in ALIASES:
            return f"{ALIASES[lower]}{bracket}{settings}"
        is_known = lower == head or (lower not in (ALL, *GROUPS) and (":" in head or self._find(head) is not None))
        return name if is_known else f"{lower}{bracket}{settings}"

    def parse(self, text: str) -> Metric:
        """Return the metric that a name with or without settings stands for."""
        if isinstance(text, str) and _AT in text:
            from dialeval.metrics.conversation import parse_aggregate

            if (aggregate := parse_aggregate(text, self.parse)) is not None:
                return aggregate
        text = self.canonicalize(text)
        match = isinstance(text, str) and re.fullmatch(r"\s*([^\s(),=]+)\s*(?:\(([^()]*)\))?\s*", text)
        if not match:
            named = self._find(text.partition("(")[0].strip()) if isinstance(text, str) else None
            raise SettingError(f"{text!r} is not a metric; {(named or Metric).advice}")
        name, inside = match.groups()
        metric = self._find(name)
        if metric is None:
            raise SettingError(self._describe_unknown(name))
        settings = dict(metric.presets.get(name, {})) | dict(_parse_settings(metric, inside or ""))
        return metric(**settings)

    def select(self, names: str | Iterable[object]) -> list[Metric]:
        """Return the metrics that names, families, groups, `all` and metric objects stand for, each once, in order.

        Those of a group have their defaults; a plan applies `GROUP_SETTINGS`.
        """
        asked = split_names(names) if isinstance(names, str) else list(names)
        for name in asked:
            if isinstance(name, str) and (note := ALIAS_NOTES.get(name.strip().lower())) is not None:
                add_warning(note)
        return list(dict.fromkeys(metric for name in asked for metric in self._expand(self.canonicalize(name))))

    def _expand(self, name: Any) -> Iterator[Metric]:
        if isinstance(name, Metric):
            yield name
        elif isinstance(name, str) and (place := _PLACE.fullmatch(name.strip())):
            yield from self._expand(_import_name(*place.groups()))
        elif isinstance(name, type) and issubclass(name, Metric):
            raise SettingError(f"{name.__qualname__} is a class; pass a metric made of it: {name.__qualname__}(...)")
        elif callable(name):
            metric = _require_class(name)
            self._import_all()
            self._refuse_taken(metric)
            yield metric()
        elif isinstance(name, str) and name in GROUPS:
            yield from map(self.parse, GROUPS[name])
        elif name == ALL:
            yield from (self.parse(preset) for preset in self.presets)
        elif isinstance(name, str) and self._is_family(name) and (family := self._find(name)):
            yield from (self.parse(preset) for preset in family.presets)
        else:
            yield self.parse(name)

    def is_group(self, name: object) -> bool:
        """Return whether a name stands for whatever of a group can be computed rather than for one metric."""
        name = self.canonicalize(name)
        return isinstance(name, str) and (name == ALL or name in GROUPS or self._is_family(name))

    def _is_family(self, name: str) -> bool:
        """Return whether a name is that of a family and of no preset."""
        return self._find(name) is not None and name not in self._presets and name not in DECLARED

    def _describe_unknown(self, name: str) -> str:
        if name in self._broken:
            return f"the metric {name!r} cannot be loaded: {self._broken[name]}"
        if name in GROUPS:
            return f"{name} is a group of metrics: {', '.join(GROUPS[name])}"
        if (instead := _INSTEAD.get(name.lower().replace("_", "-"))) is not None:
            return f"{name} is not implemented; {instead}"
        names = [*self.presets, *self.families, *DECLARED, *GROUPS, *ALIASES]
        return f"no metric is called {name!r}; {suggest(name, names, '`dialeval metrics` lists all of them')}"


@cache
def registry() -> Registry:
    """Return the registry of this process: what is built in, and what installed packages add."""
    waiting = dict(_OWN)
    for feature in list_features():
        for subject, places in feature.metrics.items():
            waiting[subject] = (*waiting.get(subject, ()), *places)
    return Registry(waiting, list_installed)


def canonicalize(name: object) -> object:
    """Return the name of results of a metric that may be asked for by an alias or in other case."""
    canonical = registry().canonicalize(name)
    try:
        return str(registry().parse(canonical)) if canonical != name and "(" in canonical else canonical
    except SettingError:
        return canonical


def register(metric: Registered) -> Registered:
    """Add a metric class or a function of `metric_of_rows` to the registry of this process; a decorator."""
    return registry().register(metric)


def explain(metric: MetricClass) -> str:
    """Return formula, papers and edge cases of a metric: its docstring without the first line, else its module's."""
    text = (inspect.getdoc(metric) or "").partition("\n")[2]
    return (text or sys.modules[metric.__module__].__doc__ or "").strip()


_TOPICS: Mapping[str, Sequence[str]] = {
    "Overlap with references": ("bleu", "chrf", "rouge"),
    "Similarity of meaning": ("embedding",),
    "Conversations": ("conversation",),
    "Learned judges": (),
    "Diversity": ("distinct",),
    "Words and entropy": ("words",),
    "Labels, scores and latency": ("log_columns",),
    "Checks": ("checks",),
    "Agents": ("trials", "calls"),
}
"""Topics by which metrics are listed, with the modules of `dialeval.metrics`; features name theirs."""


def list_topics() -> dict[str, list[str]]:
    """Return the topics, with the modules and folders of their metrics."""
    topics = {title: [f"dialeval.metrics.{name}" for name in homes] for title, homes in _TOPICS.items()}
    for feature in list_known(everything=True):
        homes = {place.partition(":")[0] for place in chain.from_iterable(feature.metrics.values())}
        if homes:
            topics.setdefault(feature.topic, []).extend(homes)
    return {**topics, "Other packages": []}


def find_topic(metric: MetricClass) -> str:
    """Return the topic of a metric."""
    return next((title for title, homes in list_topics().items() if metric.__module__ in homes), "Other packages")


def split_names(text: str) -> list[str]:
    """Return the metric names of a list such as `bleu-4,distinct(n=3,per=response)`."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def _parse_settings(metric: MetricClass, inside: str) -> Iterator[tuple[str, object]]:
    settings = metric.setting_names()
    for part in filter(None, map(str.strip, inside.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in settings:
            hint = suggest(name, settings, f"it has {', '.join(settings) or 'no settings'}")
            advice = f"; {metric.advice}" if metric.advice != Metric.advice and "did you mean" not in hint else ""
            raise SettingError(f"{metric.family} has no setting {name!r}; {hint}{advice}")
        yield name, _parse_value(metric, name, value, get_type_hints(metric)[name])


def _parse_value(metric: MetricClass, name: str, text: str, hint: Any) -> object:
    if get_origin(hint) is Literal:
        return {str(choice): choice for choice in get_args(hint)}.get(text, text)  # the metric refuses other values
    readers = {int: int, float: float, str: str, bool: {"true": True, "false": False}.__getitem__}
    try:
        return readers[hint](text)  # type: ignore[operator]
    except (ValueError, KeyError):
        kind = {int: "a whole number", float: "a number", bool: "true or false"}[hint]
        raise SettingError(f"{metric.family} takes {kind} for {name}, not {text!r}") from None
