"""Task dialogues in the form of the MultiWOZ evaluation: public names for Inform, Success, BLEU, richness, tracking.

    from dialeval.multiwoz import Evaluator

    results = Evaluator(bleu=True, success=True, richness=True).evaluate(predictions)

gives the documented output of the original for a dictionary of predictions (or the path of a file), and leaves the
input as it was. `Evaluator.run` gives the same figures as a `Run`, with intervals, one value per dialogue or turn and
signatures; `explain` and `failures` say why dialogues were lost. The data is the installed pack `multiwoz`, unless
`data` names a folder, or `"town"` for the invented town that ships with dialeval.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dialeval.core.arguments import checked
from dialeval.core.errors import SettingError
from dialeval.engine.folding import Options
from dialeval.suites.multiwoz.data import TaskData, load_task
from dialeval.suites.multiwoz.evaluation import (
    Choices,
    dialogue_rows,
    evaluate_task,
    explanations,
    original_output,
    with_transcripts,
)
from dialeval.suites.multiwoz.ontology import MULTIWOZ, load_ontology
from dialeval.suites.multiwoz.predictions import Predictions, checked_document, read_predictions
from dialeval.suites.multiwoz.states import slot_domains

if TYPE_CHECKING:
    from dialeval.core.result import Run
    from dialeval.suites.multiwoz.explain import Explanation
    from dialeval.suites.multiwoz.turns import Fallback
    from dialeval.text.similarity import Ratio

__all__ = ["Evaluator", "add_slot_domains", "dialogue_rows", "evaluate", "load_task"]


class Evaluator:
    """Evaluates predictions against the data of a task, which is loaded once.

    `fallback`, `strict`, `unify_booking` and `ratio` depart from the original and are in the signatures. `baselines`
    adds floors and ceilings to runs, and gold replies to explanations. `warnings` holds what is to be said about the
    predictions that were evaluated last.
    """

    @checked
    def __init__(
        self,
        bleu: bool = True,
        success: bool = True,
        richness: bool = True,
        dst: bool = False,
        *,
        data: str | os.PathLike[str] | TaskData | None = None,
        split: str | None = None,
        fallback: Fallback = "file",
        strict: bool = False,
        unify_booking: bool = False,
        ratio: Ratio = "historical",
        baselines: bool = False,
    ) -> None:
        self.choices = Choices(bleu, success, richness, dst, fallback, strict, unify_booking, ratio, baselines)
        self.task = data if isinstance(data, TaskData) else load_task(data, split)
        self.warnings: tuple[str, ...] = ()

    def read(self, predictions: Any) -> list[Predictions]:
        """Predictions that are read and checked, for several of the methods below."""
        return read_predictions(predictions, self.task.files)

    def run(self, predictions: Any, **options: Any) -> Run:
        """Evaluate a document, a file, or a mapping of systems to these; `options` are those of `Options`."""
        run = evaluate_task(predictions, self.task, self.choices, Options(**options))
        self.warnings = run.warnings
        return run

    def evaluate(self, predictions: Any) -> dict[str, Any]:
        """Return the documented output of the original for one system's predictions."""
        run = self.run(predictions)
        if (systems := len(run) - len(run.baselines)) != 1:
            raise SettingError(f"evaluate takes one system, and there are {systems}; use run for several")
        return original_output(next(iter(run.values())), self.choices)

    @checked
    def explain(self, predictions: Any, dialogue: str) -> dict[str, list[Explanation]]:
        """Return why a dialogue lost Inform or Success, by system; an empty list where a system does not give it."""
        return explanations(predictions, self.task, self.choices, dialogue)

    def with_transcripts(self, run: Run, predictions: Any) -> Run:
        """Return a run of these predictions with the transcripts that a report shows: of lost dialogues first."""
        return with_transcripts(run, predictions, self.task, self.choices)

    def failures(self, predictions: Any) -> dict[str, list[Explanation]]:
        """Return the explanations of all dialogues that lost Inform or Success, by system."""
        every = explanations(predictions, self.task, self.choices)
        return {system: [each for each in found if each.causes] for system, found in every.items()}


def evaluate(predictions: Any, data: str | os.PathLike[str] | TaskData | None = None, **options: Any) -> Run:
    """Evaluate one or several systems; `options` are those of `Evaluator`."""
    return Evaluator(data=data, **options).run(predictions)


@checked
def add_slot_domains(
    predictions: Mapping[str, Any], ontology: str | os.PathLike[str] = MULTIWOZ
) -> dict[str, list[dict[str, Any]]]:
    """Return a copy of predictions with the active domains that the placeholders of each response name."""
    domains = load_ontology(ontology).domains
    return {
        dialogue: [{**turn, "active_domains": slot_domains(turn["response"], domains)} for turn in turns]
        for dialogue, turns in checked_document(predictions, "predictions").items()
    }
