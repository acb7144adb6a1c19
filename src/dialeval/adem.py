"""ADEM, a learned judge of dialogue responses.

    from dialeval.adem import ADEM, ADEMWithEncoder, EncoderSettings       # the models, in PyTorch
    from dialeval.adem import open_judge, train

    model = ADEM(context_dim, model_response_dim, reference_response_dim, learning_rate)
    prediction, loss = model.train_on_single_batch(context, model_response, reference_response, human_score)

    judge = open_judge()                                                   # the shipped one; needs no PyTorch
    judge.score([["hi", "how are you?"]], ["fine, and you?"], [["i am well"]])
    train(["ratings.jsonl"]).save("judge/")                                # another one; open_judge("judge/")

A front door: everything lives elsewhere, and PyTorch is imported when one of its models is asked for.
"""

from typing import TYPE_CHECKING, Any

from dialeval.metrics.learned.attack import attack
from dialeval.metrics.learned.judge import Judge, open_judge
from dialeval.reports.judge_folder import make_judge as train

if TYPE_CHECKING:
    from dialeval.metrics.learned.finetuning import finetune
    from dialeval.metrics.learned.hierarchical import ADEMWithEncoder, EncoderSettings
    from dialeval.metrics.learned.model import ADEM

__all__ = ["ADEM", "ADEMWithEncoder", "EncoderSettings", "Judge", "attack", "finetune", "open_judge", "train"]

_MODELS = {
    "ADEM": "dialeval.metrics.learned.model",
    "ADEMWithEncoder": "dialeval.metrics.learned.hierarchical",
    "EncoderSettings": "dialeval.metrics.learned.hierarchical",
    "finetune": "dialeval.metrics.learned.finetuning",
}


def __getattr__(name: str) -> Any:
    if name not in _MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(_MODELS[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from dialeval.core.errors import SettingError

        raise SettingError("PyTorch is not installed; run: pip install 'dialeval[learned]'") from None
