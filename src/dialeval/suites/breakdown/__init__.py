"""The feature `breakdown`: evaluation of detectors of dialogue breakdowns (DBDC)."""

from dialeval.core import inputs
from dialeval.core.features import Command, Feature

FEATURE = Feature(
    "breakdown",
    topic="Breakdown detection",
    metrics={inputs.LABELS: ("dialeval.metrics.breakdown:LabelAccuracy,BreakdownDetection,BreakdownDistance",)},
    details={"breakdown": "dialeval.suites.breakdown.report:BreakdownDetails"},
    commands={
        "breakdown": Command(
            "dialeval.suites.breakdown.commands:breakdown",
            "Breakdown detectors (DBDC); `breakdown detect` labels chats.",
            "Suites",
        )
    },
)
