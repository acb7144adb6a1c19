"""The feature `human`: human evaluation, from sampling to estimates."""

from dialeval.core.features import Command, Feature

_SAMPLE = "dialeval.human.sample_files"
_SUMMARIES = {
    "sample": "Sample responses to rate, or plan the sample size.",
    "rate": "Rating page, rating server, inter-annotator agreement.",
    "estimate": "Estimate mean human ratings from few ratings and a judge.",
    "rank": "Rank systems by pairwise preferences (Bradley-Terry).",
    "agreement": "Correlation of metrics with human ratings.",
}

FEATURE = Feature(
    "human",
    loaders={"sample": f"{_SAMPLE}:read_sample", "people": "dialeval.human.report:make_human_section"},
    documents={
        "HumanEstimates": "dialeval.human.report:describe_estimates",
        "MergedRatings": "dialeval.human.report:describe_merged",
        "Ranking": "dialeval.human.report:describe_ranking",
        "RatingPlan": "dialeval.human.report:describe_plan",
        "Sample": "dialeval.reports.documents:describe_rows",
    },
    commands={
        name: Command(f"dialeval.human.commands:{name}", summary, "Human evaluation")
        for name, summary in _SUMMARIES.items()
    },
)
