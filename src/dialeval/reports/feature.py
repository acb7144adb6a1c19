"""The feature `reports`: how results of analyses are shown, and the documents that are printed."""

from dialeval.core.features import Feature, WrittenFile

FEATURE = Feature(
    "reports",
    documents={
        "Agreement": "dialeval.reports.analyses:describe_agreement",
        "Comparison": "dialeval.reports.comparisons:to_document",
        "ScoreTable": "dialeval.reports.documents:describe_rows",
        "LabelAgreement": "dialeval.reports.analyses:describe_labels",
        "SequentialTest": "dialeval.reports.analyses:describe_sequential_test",
        "Discovery": "dialeval.reports.analyses:describe_discovery",
        "Survival": "dialeval.reports.analyses:describe_survival",
        "UserComparison": "dialeval.reports.analyses:describe_users",
        "Slices": "dialeval.reports.slices:to_brief_document",
        "Trend": "dialeval.reports.analyses:describe_trend",
    },
    loaders={
        "verdict": "dialeval.reports.comparisons:make_verdict",
        "metric name": "dialeval.metrics.registry:canonicalize",
        "html": "dialeval.reports.html:html",
        "plot": "dialeval.reports.drawings:draw_figure",
        "write_table": "dialeval.reports.papers:write_table",
    },
    sections={"trials": {"table": "dialeval.reports.trials:list_trials"}},
    files={
        "run": WrittenFile(
            "run.json", "every command that saves a run (-o)", "dialeval.core.run_schema:run_with_details"
        ),
        "printed-run": WrittenFile(
            "-f json", "score, lsdscc, multiwoz, sgd, breakdown", "dialeval.core.run_schema:run_with_details", True
        ),
        "comparison": WrittenFile("-f json", "compare", "dialeval.analysis.comparison:Comparison", True),
        "discovery": WrittenFile("-f json", "discover", "dialeval.analysis.discovery:Discovery", True),
        "survival": WrittenFile("-f json", "survival", "dialeval.analysis.survival:Survival", True),
        "users": WrittenFile("-f json", "users", "dialeval.analysis.users:UserComparison", True),
        "agreement": WrittenFile("-f json", "agreement", "dialeval.analysis.agreement:Agreement", True),
        "pack": WrittenFile("manifest.json", "data add", "dialeval.io.schemas:PackManifest"),
        "vectors": WrittenFile("entry.json", "the cache of word vectors", "dialeval.io.schemas:VectorEntry"),
    },
)
