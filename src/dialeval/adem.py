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

from importlib import import_module
from typing import TYPE_CHECKING

from dialeval.core.errors import SettingError
from dialeval.judges.adem import Judge, open_judge
from dialeval.judges.attacks import attack
from dialeval.judges.training import train

if TYPE_CHECKING:
    from dialeval.judges.hierarchical import ADEMWithEncoder, EncoderSettings
    from dialeval.judges.trainer import ADEM

__all__ = ["ADEM", "ADEMWithEncoder", "EncoderSettings", "Judge", "attack", "open_judge", "train"]

_MODELS = {"ADEM": "trainer", "ADEMWithEncoder": "hierarchical", "EncoderSettings": "hierarchical"}


def __getattr__(name: str) -> object:
    if name not in _MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"dialeval.judges.{_MODELS[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise SettingError("PyTorch is not installed; run: pip install 'dialeval[learned]'") from None
