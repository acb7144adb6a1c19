"""A help desk: what this package adds to dialeval. Nothing here is imported before it is used."""

from dialeval.plugin import Feature, Input, Resource

TONE: Input = Resource("helpdesk-tone")
"""The judge that ships with this package."""

FEATURE = Feature(
    "helpdesk",
    topic="Help desk",
    metrics={"response": ("helpdesk.metrics:Openings,Tone,resolved",)},
    resources={TONE: "helpdesk.judge:ToneJudge"},
    formats=("helpdesk:formats.toml",),
    sections={"openings": {"section": "helpdesk.report:make_section"}},
)
