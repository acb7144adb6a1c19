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

from dialeval.core.arguments import check_arguments
from dialeval.core.errors import SettingError
from dialeval.engine.folding import Options
from dialeval.suites.multiwoz.data import TaskData, TaskPredictions, check_document, load_task
from dialeval.suites.multiwoz.evaluation import (
    Choices,
    dialogue_rows,
    evaluate_task,
    explain_dialogues,
    original_output,
    read_systems,
    with_transcripts,
)
from dialeval.suites.multiwoz.ontology import MULTIWOZ, load_ontology
from dialeval.suites.multiwoz.venues import find_slot_domains

if TYPE_CHECKING:
    from dialeval.core.result import Run
    from dialeval.suites.multiwoz.explanations import Explanation
    from dialeval.suites.multiwoz.turns import Fallback
    from dialeval.text.similarity import Ratio

__all__ = ["Evaluator", "add_slot_domains", "dialogue_rows", "evaluate", "load_task"]


class Evaluator:
    """Evaluates predictions against the data of a task, which is loaded once.

    `fallback`, `strict`, `unify_booking` and `ratio` depart from the original program and are in the signatures.

    Args:
        bleu: Compute BLEU.
        success: Compute Inform and Success.
        richness: Compute lexical richness.
        dst: Compute dialogue state tracking metrics.
        data: A folder with the data of a task, a loaded task, `"town"` for the invented town that ships with dialeval;
            None: the installed data pack `multiwoz`.
        split: A split of the data, where it has several.
        fallback: Where a turn lacks its state or active domains: `"file"` replaces those of the whole file, as the
            original does; `"turn"` replaces only what is lacking.
        strict: Count dialogues without a turn as failed, and missing turns as empty.
        unify_booking: Count `bookday` and `day` as one slot in state tracking.
        ratio: The partial ratio by which names are compared: `"historical"`, or `"exact"`, which finds the best
            alignment.
        baselines: Also score floor and ceiling systems, and add gold replies to explanations.
        lexicalized: Map values in replies (names, phone numbers) to placeholders first, for systems whose replies have
            none.

    Attributes:
        choices: These choices.
        task: The data of the task.
        warnings: Remarks about the predictions that were evaluated last.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.multiwoz import Evaluator
        >>> predictions = sample_data.folder() / "town" / "predictions"
        >>> evaluator = Evaluator(data="town", bleu=False, richness=False)
        >>> evaluator.evaluate(predictions / "hasty.json")["success"]["success"]["total"]
        14.3
    """

    @check_arguments
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
        lexicalized: bool = False,
    ) -> None:
        self.choices = Choices(
            bleu, success, richness, dst, fallback, strict, unify_booking, ratio, baselines, lexicalized
        )
        self.task = data if isinstance(data, TaskData) else load_task(data, split)
        self.warnings: tuple[str, ...] = ()

    def read(self, predictions: Any) -> list[TaskPredictions]:
        """Read and check predictions, to pass them to several methods.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.

        Returns:
            The predictions of each system.

        Raises:
            DataError: The predictions have another form, or name dialogues that the task does not have.
        """
        return read_systems(predictions, self.task, self.choices)

    def run(self, predictions: Any, **options: Any) -> Run:
        """Evaluate one or several systems.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.
            **options: `confidence`, `intervals` and `t`, as in `dialeval.evaluate`, and other settings of a run.

        Returns:
            A run with intervals, and a value per dialogue or turn.

        Raises:
            DataError: The predictions have another form.
        """
        run = evaluate_task(predictions, self.task, self.choices, Options(**options))
        self.warnings = run.warnings
        return run

    def evaluate(self, predictions: Any) -> dict[str, Any]:
        """Evaluate one system, with the output of the original program.

        Args:
            predictions: A mapping of dialogue ids to turns, or a file.

        Returns:
            The documented output of the original: `bleu`, `success` and `richness`.

        Raises:
            DataError: The predictions have another form.
            SettingError: There are several systems.
        """
        run = self.run(predictions)
        if (systems := len(run) - len(run.baselines)) != 1:
            raise SettingError(f"evaluate takes one system, and there are {systems}; use run for several")
        return original_output(next(iter(run.values())), self.choices)

    @check_arguments
    def explain(self, predictions: Any, dialogue: str) -> dict[str, list[Explanation]]:
        """Explain why a dialogue lost Inform or Success.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.
            dialogue: The id of the dialogue.

        Returns:
            By system, the explanation; an empty list where a system does not have the dialogue.
        """
        return explain_dialogues(predictions, self.task, self.choices, dialogue)

    def with_transcripts(self, run: Run, predictions: Any) -> Run:
        """Return a run with the transcripts that a report shows, of failed dialogues first.

        Args:
            run: The run of these predictions.
            predictions: The predictions.

        Returns:
            The run with transcripts in its details.
        """
        return with_transcripts(run, predictions, self.task, self.choices)

    def failures(self, predictions: Any) -> dict[str, list[Explanation]]:
        """Explain every dialogue that lost Inform or Success.

        Args:
            predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.

        Returns:
            By system, the explanations.
        """
        every = explain_dialogues(predictions, self.task, self.choices)
        return {system: [each for each in found if each.causes] for system, found in every.items()}


def evaluate(predictions: Any, data: str | os.PathLike[str] | TaskData | None = None, **options: Any) -> Run:
    """Evaluate one or several systems on task dialogues.

    Args:
        predictions: A mapping of dialogue ids to turns, a file or a folder, or a mapping of systems to these.
        data: The data of the task; see `Evaluator`.
        **options: Further arguments of `Evaluator`.

    Returns:
        A run with intervals, and a value per dialogue or turn.

    Raises:
        DataError: The predictions have another form.

    Examples:
        >>> from dialeval import multiwoz, sample_data
        >>> run = multiwoz.evaluate(sample_data.folder() / "town" / "predictions", "town")
        >>> [round(run[name]["success"].mean, 3) for name in run]
        [14.286, 87.5]
    """
    return Evaluator(data=data, **options).run(predictions)


@check_arguments
def add_slot_domains(
    predictions: Mapping[str, Any], ontology: str | os.PathLike[str] = MULTIWOZ
) -> dict[str, list[dict[str, Any]]]:
    """Return a copy of predictions with the active domains that the placeholders of each response name.

    Args:
        predictions: A mapping of dialogue ids to turns.
        ontology: The ontology of the task; that of MultiWOZ unless given.

    Returns:
        The predictions, with `active_domains` in every turn.

    Raises:
        DataError: The predictions have another form.

    Examples:
        >>> from dialeval.multiwoz import add_slot_domains
        >>> add_slot_domains({"d1": [{"response": "the [hotel_name] is nice"}]})["d1"][0]["active_domains"]
        ['hotel']
    """
    domains = load_ontology(ontology).domains
    return {
        dialogue: [{**turn, "active_domains": find_slot_domains(turn["response"], domains)} for turn in turns]
        for dialogue, turns in check_document(predictions, "predictions").items()
    }
