"""ADEM, a learned judge of dialogue responses.

    from dialeval.adem import ADEM, ADEMWithEncoder, EncoderSettings       # the models, in PyTorch
    from dialeval.adem import open_judge, train

    model = ADEM(context_dim, model_response_dim, reference_response_dim, learning_rate)
    prediction, loss = model.train_on_single_batch(context, model_response, reference_response, human_score)

    judge = open_judge()                                                   # the shipped one; needs no PyTorch
    judge.score([["hi", "how are you?"]], ["fine, and you?"], [["i am well"]])
    train(["ratings.jsonl"]).save("judge/")                                # another one; open_judge("judge/")

Everything is defined elsewhere; PyTorch is imported when one of its models is asked for.
"""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from dialeval.analysis.judges import MadeJudge, make_judge
from dialeval.metrics.learned.attack import attack
from dialeval.metrics.learned.judge import Judge, open_judge
from dialeval.reports.judge_card import JudgeCard

if TYPE_CHECKING:
    from dialeval.metrics.learned.training.finetuning import finetune
    from dialeval.metrics.learned.training.hierarchical import ADEMWithEncoder, EncoderSettings
    from dialeval.metrics.learned.training.model import ADEM

__all__ = ["ADEM", "ADEMWithEncoder", "EncoderSettings", "Judge", "attack", "finetune", "open_judge", "train"]

_MODELS = {
    "ADEM": "dialeval.metrics.learned.training.model",
    "ADEMWithEncoder": "dialeval.metrics.learned.training.hierarchical",
    "EncoderSettings": "dialeval.metrics.learned.training.hierarchical",
    "finetune": "dialeval.metrics.learned.training.finetuning",
}


_Options = ParamSpec("_Options")


def _with_card(make: Callable[_Options, MadeJudge]) -> Callable[_Options, JudgeCard]:
    @wraps(make)
    def train(*args: _Options.args, **kwargs: _Options.kwargs) -> JudgeCard:
        return JudgeCard(make(*args, **kwargs))

    return train


train = _with_card(make_judge)
"""`make_judge`, with the judge's card: what it returns has `save`, `tables` and `text`, and the judge as `judge`."""


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
