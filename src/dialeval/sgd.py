"""Public names of schema-guided dialogues (SGD): the evaluation of schema_guided_dst.

    from dialeval.sgd import evaluate_sgd, make_original_output

    run = evaluate_sgd("predictions/", "dstc8/test/", train_schema="dstc8/train/schema.json")
    run["predictions"]["joint-goal-accuracy"].mean
    make_original_output(run["predictions"])["#UNSEEN_SERVICES"]["joint_goal_accuracy"]

Nothing is computed here; see `dialeval.suites.sgd.evaluation`.
"""

from dialeval.suites.sgd.evaluation import evaluate_sgd, make_original_output

__all__ = ["evaluate_sgd", "make_original_output"]
