"""`dialeval compat PROGRAM`: the flags of an original program in, what it prints and writes out.

Each command only hands its flags to the functions behind our own commands; docs/migrate.md has the tables.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

WRITTEN = ("metrics.txt", "vocab.txt", "vocab.npy")
"""Files that dialog-eval writes next to the responses; in a folder they are not responses."""
FLAGS = {"train": "-tns", "contexts": "-tts", "references": "-ttt", "vectors": "-vv"}
"""The inputs without which dialog-eval leaves metrics out."""
_IN = click.Path()


@options.group(
    "dialeval compat dialog-eval -tns train.txt -tts contexts.txt -ttt references.txt -r responses/",
    "dialeval compat mwzeval --bleu --success --input predictions.json --output scores.json",
    "dialeval compat lsdscc hypotheses.txt -r groups.json",
    "dialeval compat dbdc -p data/ -o labels/ -t 0.5",
)
def compat() -> None:
    """Take the flags of an original program, and print and write what it does.

    Name the program, then its flags as they are. Our own commands do more: score, multiwoz, lsdscc, breakdown.
    """


@compat.command(
    "dialeval compat dialog-eval -tns train.txt -tts contexts.txt -ttt references.txt -r responses/ -vv vectors.txt",
    name="dialog-eval",
)
@click.option("-tns", "--train_source", "train", type=_IN, help="Training text (source side), one text a line.")
@click.option("-tts", "--test_source", "contexts", type=_IN, help="Dialogue context of each response.")
@click.option("-ttt", "--test_target", "references", type=_IN, help="One reference per response.")
@click.option("-r", "--test_responses", "responses", required=True, type=_IN, help="A response file, or a folder.")
@click.option("-tv", "--text_vocab", "vocabulary", type=_IN, help="Vocabulary, one word a line.")
@click.option("-vv", "--vector_vocab", "vectors", type=_IN, help="A word and its numbers a line.")
@click.option("-s", "--bleu_smoothing", "smoothing", type=click.IntRange(0, 7), default=4, help="Method for BLEU.")
@click.option("-t", "--t", "t", type=float, default=1.97, help="Factor of the confidence t*std/sqrt(n).")
@click.option("-m", "--metrics", "own", multiple=True, help="A metric of your own, MODULE:NAME, in a further column.")
def dialog_eval(responses: str, smoothing: int, t: float, own: tuple[str, ...], **inputs: Any) -> None:
    """Run code/main.py of dialog-eval: 17 metrics in metrics.txt.

    The table is written next to the responses. Every file is read as text, whatever its suffix is (.gz and .zst are
    unpacked); of a folder not what dialog-eval wrote there (metrics.txt, vocab.txt, vocab.npy) and not hidden files. A
    file that is not given switches off the metrics that need it, and a line says which.
    """
    from dialeval.core.account import FAILURES
    from dialeval.engine.evaluate import Reading, evaluate
    from dialeval.io.opening import read_lines
    from dialeval.io.reading import read_any_lines
    from dialeval.reports.tables import METRICS_TXT, to_metrics_txt

    if not math.isfinite(t):
        raise click.BadParameter(f"{t} is not a number", param_hint="'-t'")
    table = (Path(responses) if Path(responses).is_dir() else Path(responses).parent) / "metrics.txt"
    # Of a folder of responses metrics.txt is not read.
    read = (None if Path(responses).is_dir() else responses, *(inputs[name] for name in (*FLAGS, "vocabulary")))
    out.check_places(None, read, files=(table,))
    lines, passed_over = read_any_lines(responses, WRITTEN)
    texts: dict[str, Any] = {name: inputs[name] for name in ("train", "contexts", "references", "vocabulary")}
    for name, path in texts.items():  # `vocab.npy` of dialog-eval is a file of vectors
        if path is not None and not path.lower().endswith((".npy", ".npy.gz", ".npy.zst")):
            texts[name] = {path: read_lines(path)}
    reading = Reading(vocabulary=texts.pop("vocabulary"))
    run = evaluate(
        lines,
        **texts,
        vectors=inputs["vectors"],
        metrics=",".join(("dialog-eval", *own)),
        settings={"bleu": {"smooth": smoothing}},
        intervals="rows",
        reading=reading,
    )
    # Any factor, as in the original; `evaluate` takes positive ones only. Its table has no rate of empty responses.
    systems = {
        name: replace(
            result, estimates={key: value.with_confidence(t) for key, value in result.items() if key != FAILURES}
        )
        for name, result in run.items()
    }
    out.write_output(table, to_metrics_txt(replace(run, systems=systems), verbatim=True).encode())
    if others := [name for name in passed_over if name != str(table)]:
        out.print_err(f"not read as responses: {', '.join(others)}")
    if skipped := [key for key in METRICS_TXT if key in run.skipped]:
        missing = ", ".join(flag for name, flag in FLAGS.items() if inputs[name] is None)
        out.print_err(f"not computed without {missing}: {', '.join(skipped)}")
    out.print_warnings(run.warnings)


@compat.command(
    "dialeval compat mwzeval --bleu --success --richness --input predictions.json --output scores.json",
    "dialeval compat add-slot-domains -i predictions.json -o with-domains.json",
)
@click.option("-b", "--bleu", is_flag=True, help="BLEU.")
@click.option("-s", "--success", is_flag=True, help="Inform and Success.")
@click.option("-r", "--richness", is_flag=True, help="Lexical richness.")
@click.option("-d", "--dst", is_flag=True, help="State tracking.")
@click.option("-i", "--input", "predictions", required=True, type=_IN, help="Predictions.")
@click.option("-o", "--output", type=options.FILE, default="evaluation_results.json", help="Where to write the scores.")
@click.option("--data", help="Folder with the data, or `town`.  [default: the pack multiwoz]")
@out.print_all_problems
def mwzeval(
    predictions: str, output: Path, data: str | None, bleu: bool, success: bool, richness: bool, dst: bool
) -> None:
    """Run evaluate.py of the MultiWOZ evaluation.

    Its output is printed, and written as JSON. add_slot_domains.py is `dialeval compat add-slot-domains`.
    """
    from dialeval.multiwoz import Evaluator

    if not (bleu or success or richness or dst):
        raise click.UsageError("name what to evaluate: --bleu, --success, --richness, --dst")
    out.check_places(None, predictions, files=(output,))
    evaluator = Evaluator(bleu, success, richness, dst, data=data)
    scores = evaluator.evaluate(predictions)
    out.write_output(output, out.encode_json(scores))
    for name, values in scores.items():
        if values is not None:
            lines = [f"====== {name.upper()} ======", *(f"{key:<15}{value}" for key, value in values.items()), "", ""]
            out.print_content("\n".join(lines))
    out.print_warnings(evaluator.warnings)


@compat.command("dialeval compat add-slot-domains -i predictions.json -o with-domains.json", name="add-slot-domains")
@click.option("-i", "--input", "predictions", required=True, type=_IN, help="Predictions.")
@click.option("-o", "--output", required=True, type=options.FILE, help="Where to write them with active domains.")
@out.print_all_problems
def add_slot_domains(predictions: str, output: Path) -> None:
    """Run add_slot_domains.py of the MultiWOZ evaluation: active domains out of slot names ([hotel_name]: hotel).

    It asks before it replaces active domains that every turn has already; the answer may come from a pipe.
    """
    from dialeval.suites.multiwoz.data import add_slot_domains, read_document

    document = read_document(predictions)
    named = ["active_domains" in turn for turns in document.values() for turn in turns]
    if all(named) and not click.confirm("Replace the active domains of all turns?", True, err=True):
        return
    if replaced := sum(named):
        out.print_err(f"the active domains of {replaced:,} turns are replaced")
    out.write_output(output, out.encode_json(add_slot_domains(document)))


@compat.command("dialeval compat lsdscc hypotheses.txt -r groups.json")
@click.argument("hypothesis_file", type=_IN)
@click.option("-r", "--reference_file", type=_IN, help="Reference groups, a JSON file.  [default: data pack lsdscc]")
@click.option("-e", "--eos", default="</s>", help="Separator of two hypotheses of a line.")
def lsdscc(hypothesis_file: str, reference_file: str | None, eos: str) -> None:
    """Run lsdscc_metrics.py of LSDSCC: MaxBLEU, MDS and PDS.

    The hypotheses are lines of text, and the references JSON, whatever the suffixes of their files are.
    """
    from dialeval.core.inputs import HYPOTHESES
    from dialeval.io.rows import Rows
    from dialeval.lsdscc import compute_score_on_corpus
    from dialeval.suites.lsdscc.data import attach_groups, find_reference_groups, read_groups, read_hypothesis_lines

    if not eos:
        raise click.BadParameter("it is empty; give the text between two hypotheses", param_hint="'-e'")
    groups = read_groups(reference_file or find_reference_groups())
    hypotheses = read_hypothesis_lines(hypothesis_file, eos)
    attach_groups(Rows("hypotheses", {HYPOTHESES: hypotheses}, where=hypothesis_file), groups)  # as many of each
    references = [groups.column.list_groups(row) for row in range(len(groups.column))]
    scores = compute_score_on_corpus(list(hypotheses), references)
    out.print_content(f"MaxBLEU: {scores.max_bleu:f}\nMDS: {scores.mds:f}\nPDS: {scores.pds:f}\n")


@compat.command("dialeval compat dbdc -p data/ -o labels/ -t 0.5")
@click.option("-p", "data", required=True, type=_IN, help="Folder of *.log.json with the annotated dialogues.")
@click.option("-o", "labels", required=True, type=_IN, help="Folder of *.labels.json with a detector's labels.")
@click.option(
    "-t",
    "threshold",
    type=float,
    default=0.0,
    help="Threshold of the reference label: fraction of annotators for T or X.",
)
@out.print_all_problems
def dbdc(data: str, labels: str, threshold: float) -> None:
    """Run eval.py of the breakdown detection challenge.

    Its lines are printed, byte for byte. What it evaluates is evaluated as it does, labels by position (`--match
    position --lenient` of our own command), and what it passes over without a word is a warning.
    """
    from dialeval.suites.breakdown.plain import evaluate_folders

    if (lines := evaluate_folders(data, labels, threshold)) is not None:
        out.print_content(lines)
        return
    from dialeval.core.errors import DataError, Problem
    from dialeval.suites.breakdown.evaluation import evaluate_breakdown
    from dialeval.suites.breakdown.report import format_original

    if not math.isfinite(threshold):  # every fraction is below NaN and infinity, none is below -infinity
        threshold = -1.0 if threshold < 0 else 2.0
    run = evaluate_breakdown(data, labels, threshold, match="position", lenient=True, baselines=False)
    if len(run.detectors) > 1:
        raise click.UsageError(f"there are {len(run.detectors)} detectors in {labels}; name the folder of one")
    ((table,),) = ((*by_threshold.values(),) for by_threshold in run.tables.values())
    out.print_warnings(run.warnings)
    if not table.scored:
        what = f"none of {table.turns} annotated turns can be scored"
        raise DataError(Problem(labels, None, what, "name the folder with the labels of these dialogues"))
    out.print_content(format_original(run))
    if table.scored < table.turns:
        out.print_content(f"Scored: {table.scored} of {table.turns} system utterances\n")
