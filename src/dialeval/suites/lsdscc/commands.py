"""`dialeval lsdscc`: files of several hypotheses per query in, MDS, PDS and MaxBLEU out."""

from __future__ import annotations

from typing import Any

import click

from dialeval.cli import options
from dialeval.cli import output as out

ALIGNERS = ("bleu", "nltk-bleu", "nltk-nist", "sacre", "embedding")
"""As in `suites.lsdscc.alignment`, which is not imported to print help."""
METRICS = "mds,pds,max-bleu"
EOS = "</s>"


@options.command(
    "dialeval lsdscc beam.txt sampled.txt -r groups.json",
    "dialeval lsdscc sampled.txt",
    "dialeval lsdscc sampled.txt -r groups.json --aligner nltk-bleu --bleu-smoothing 3 -f json",
    "dialeval lsdscc sampled.txt -r groups.json --aligner embedding --vectors wordllama -o results/",
)
@options.responses("hypotheses")
@click.option(
    "-r", "--references", "reference_groups", type=click.Path(), help="Reference groups (JSON).  [default: the pack]"
)
@click.option("--eos", default=EOS, help="Separator of two hypotheses of a line.")
@click.option("--no-eos", is_flag=True, help="No separator: each line is one hypothesis.")
@options.choice("--aligner", ALIGNERS, "How a hypothesis is assigned to a reference group.")
@click.option("-n", "n", type=click.IntRange(1, 100), default=4, help="Longest n-grams to count.")
@click.option("--bleu-smoothing", type=click.IntRange(0, 7), help="nltk's method for nltk-bleu.  [default: none]")
@click.option("--vectors", "vectors", help="Word vectors for embedding: a file, a data pack, or wordllama.")
@click.option("--train", type=click.Path(), help="Text whose frequent words weigh less under embedding.")
@options.tokenizer
@options.baselines("a reference of each group, those of other queries and a constant")
@options.confidence
@options.output_folder
@options.format_(options.FORMATS)
@options.limits
@options.intervals
@options.threads
def lsdscc(
    hypotheses: str | dict[str, str], aligner: str, n: int, no_eos: bool, bleu_smoothing: int | None, **inputs: Any
) -> int:
    """Measure the diversity of sampled responses by the reference groups that they cover: MDS, PDS, MaxBLEU.

    HYPOTHESES are files with a line per query and --eos between the hypotheses (.json, .jsonl: a list per query; each
    also .gz or .zst), one system each, or a directory of them; NAME=FILE names a system. The references are a JSON
    object of query -> group -> list, in the order of the lines; without -r those of the LSDSCC program, if that data
    pack is installed. The default aligner is that of the LSDSCC program; it
    favors short hypotheses. Where each hypothesis landed is in the JSON, in the report and in the saved run.
    """
    from dialeval.engine.evaluate import Execution
    from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

    if bleu_smoothing is not None and aligner != "nltk-bleu":
        raise click.UsageError(f"--bleu-smoothing is for --aligner nltk-bleu; {aligner} has none to choose")
    if inputs["vectors"] is not None and aligner != "embedding":
        raise click.UsageError(f"--vectors is for --aligner embedding; {aligner} looks at words alone")
    if no_eos:
        if inputs["eos"] != EOS:
            raise click.UsageError("give --eos or --no-eos, not both")
        inputs["eos"] = None
    if inputs["reference_groups"] is None:
        from dialeval.suites.lsdscc import data

        inputs["reference_groups"] = data.find_reference_groups()
    shown = out.TaskRun.take(inputs)
    shown.check((hypotheses, *(inputs[name] for name in ("reference_groups", "vectors", "train"))))
    inputs["settings"] = {"coverage": {"aligner": aligner, "n": n, "smooth": bleu_smoothing or 0}}
    inputs |= {"alignments": shown.format_ == "json" or shown.output is not None, "confidence": shown.confidence}
    inputs["intervals"] = shown.intervals.kind
    with out.open_meter() as meter:
        execution = Execution(progress=meter.update_run, threads=inputs.pop("threads"))
        run = evaluate_hypotheses(hypotheses, metrics=METRICS, execution=execution, **inputs)
    return shown.deliver(shown.intervals.add_to(run, shown.confidence))
