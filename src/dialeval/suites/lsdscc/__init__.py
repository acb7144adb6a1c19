"""The feature `lsdscc`: diversity of sampled responses over reference groups."""

from dialeval.core import inputs
from dialeval.core.features import Command, Feature

FEATURE = Feature(
    "lsdscc",
    topic="Sampled responses",
    metrics={inputs.HYPOTHESES: ("dialeval.suites.lsdscc.metrics:Coverage",)},
    packs=("dialeval.suites.lsdscc:packs.toml",),
    details={"alignments": "dialeval.suites.lsdscc.evaluation:AlignmentDetails"},
    sections={
        "alignments": {
            "rows": "dialeval.suites.lsdscc.evaluation:explain_rows",
            "note": "dialeval.suites.lsdscc.evaluation:describe_reached_groups",
        }
    },
    commands={
        "lsdscc": Command(
            "dialeval.suites.lsdscc.commands:lsdscc",
            "Diversity of sampled responses over reference groups.",
            "Suites",
        )
    },
)
