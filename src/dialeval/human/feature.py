"""The feature `human`: human evaluation, from sampling to estimates."""

from dialeval.core.features import Command, Feature, WrittenFile

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
    files={
        "estimate": WrittenFile("-f json", "estimate", "dialeval.human.estimate:HumanEstimates", True),
        "ranking": WrittenFile("-f json", "rank", "dialeval.human.rank:Ranking", True),
        "sample": WrittenFile("sample.json", "sample -o", f"{_SAMPLE}:SavedSample"),
        "sample-row": WrittenFile("rows.jsonl, a line", "sample -o", f"{_SAMPLE}:SampledRow"),
        "rating": WrittenFile("ratings-NAME.jsonl, a line", "the page of rate page", "dialeval.human.store:Rating"),
        "rated-row": WrittenFile("a line", "rate merge --sample -o", f"{_SAMPLE}:RatedRow"),
    },
    commands={
        name: Command(f"dialeval.human.commands:{name}", summary, "Human evaluation")
        for name, summary in _SUMMARIES.items()
    },
)
