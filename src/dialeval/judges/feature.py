"""The feature `judges`: judges that were fitted to ratings, and language models as judges."""

from dialeval.core import inputs
from dialeval.core.features import Command, Feature

FEATURE = Feature(
    "judges",
    details={"judge_sampling": "dialeval.core.run_schema:SamplingDetails"},
    topic="Learned judges",
    metrics={
        inputs.RESPONSE: (
            "dialeval.judges.adem:Adem",
            "dialeval.judges.judge:Judgment",
            "dialeval.judges.llm.metric:LLMGrades,LLMConversations",
        ),
    },
    resources={
        inputs.JUDGE: "dialeval.judges.adem:Judge",
        inputs.DIALOGUE_JUDGE: "dialeval.judges.judge:DialogueJudge",
    },
    loaders={
        "judge": "dialeval.judges.judge:open_judge",
        "language_model": "dialeval.judges.llm.judge:LLM",
        "panel": "dialeval.judges.llm.judge:Panel",
    },
    sections={"judge/": {"rows": "dialeval.judges.judge:explain_rows"}},
    documents={
        "JudgedPairs": "dialeval.reports.analyses:describe_preferences",
        "JudgeDrift": "dialeval.judges.drift:describe_drift",
    },
    packs=("dialeval.judges:packs.toml",),
    commands={
        "adem": Command("dialeval.judges.commands:adem", "ADEM, a learned judge: train, score, attack.", "Suites"),
        "judge": Command(
            "dialeval.judges.commands:judge",
            "A learned judge that reads the context; language models as judges.",
            "Judges",
        ),
    },
)
