"""Results as text, tables, files and one HTML page; `report` is taken by the function `dialeval.report`."""

from dialeval.core.features import Feature

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
    sections={"trials": {"table": "dialeval.reports.explorer:list_trials"}},
)
