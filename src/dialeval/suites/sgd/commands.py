"""`dialeval sgd`: schema-guided dialogues, as evaluate.py of schema_guided_dst evaluates them."""

from __future__ import annotations

from typing import Any

import click

from dialeval.cli import options
from dialeval.cli import output as out


@options.command(
    "dialeval sgd predictions/ -r dstc8/test/ --train-schema dstc8/train/schema.json --by seen",
    "dialeval sgd predictions/ -r dstc8/test/ --train-schema dstc8/train/schema.json --groups --joint-across-turns",
    "dialeval sgd mine/ theirs/ -r test/ -o results/",
    "dialeval sgd mine.json -r test.json --schema schema.json --match exact --fail-under joint-goal-accuracy=0.5",
)
@options.responses("predictions")
@click.option("-r", "--references", required=True, type=click.Path(), help="Dialogues with the true frames.")
@click.option("--schema", type=click.Path(), help="Schema of the services.  [default: that of the references]")
@click.option("--train-schema", type=click.Path(), help="Services that were seen in training, for --by seen.")
@options.metrics("joint-goal-accuracy, average-goal-accuracy, active-intent-accuracy, requested-slots-f1")
@options.choice(
    "--match", ["blocks", "edits", "exact"], "Match free values as fuzzywuzzy, with python-Levenshtein, or exactly."
)
@click.option("--strict", is_flag=True, help="Frames that a system does not give count as wrong.")
@click.option("--groups", is_flag=True, help="Print scores by service, domain and seen and unseen services instead.")
@click.option("--joint-across-turns", is_flag=True, help="With --groups: joint accuracies over frames of whole turns.")
@options.baselines("gold frames, those of other dialogues and empty ones")
@options.of_task_runs
@out.print_all_problems
def sgd(predictions: str | dict[str, str], groups: bool, joint_across_turns: bool, **inputs: Any) -> int:
    """Evaluate schema-guided state tracking: goal accuracy, active intent, requested slots.

    PREDICTIONS are folders of dialogues (*.json) or single files in the form of the Schema-Guided Dialogue data, one
    system each; NAME=PATH names one. Scores are means over frames, a frame being a service in a user turn. --by
    service, domain or seen shows them by parts. --groups -f json prints the figures of the original.
    """
    from dialeval.suites.sgd.evaluation import GROUPS, ServiceGroups, evaluate_sgd, make_original_output

    if joint_across_turns and not groups:
        raise click.UsageError("--joint-across-turns is for --groups")
    shown = out.TaskRun.take(inputs)
    shown.check((predictions, inputs["references"], inputs["schema"], inputs["train_schema"]))
    run = shown.evaluate(evaluate_sgd, predictions, **inputs)
    if not groups:
        return shown.deliver(run)
    if shown.output is not None:
        out.save_run(run, shown.output, shown.force)
    scores = {name: make_original_output(result, joint_across_turns) for name, result in run.items()}
    out.print_as(shown.format_, GROUPS, ServiceGroups(scores))
    out.print_warnings(run.warnings)
    return out.print_failed_gates(shown.limits.make_gates(run))
