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

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dialeval.core.errors import SettingError
from dialeval.io.opening import PathSource
from dialeval.judges.adem import Judge, open_judge
from dialeval.judges.card import JudgeCard
from dialeval.judges.validation import attack, make_judge

if TYPE_CHECKING:
    from dialeval.judges.hierarchical import ADEMWithEncoder, EncoderSettings
    from dialeval.judges.trainer import ADEM

__all__ = ["ADEM", "ADEMWithEncoder", "EncoderSettings", "Judge", "attack", "open_judge", "train"]

_MODELS = {"ADEM": "trainer", "ADEMWithEncoder": "hierarchical", "EncoderSettings": "hierarchical"}


def train(ratings: Sequence[PathSource], tests: Sequence[PathSource] = (), **settings: Any) -> JudgeCard:
    r"""Train a judge of `adem` on files of rated rows. The command is `dialeval adem train`.

    Args:
        ratings: Files of rated rows to learn from.
        tests: Files of rated rows to validate on only.
        **settings: `encoder`, `kind` (`"adem"` or `"identity"`), `strength`, `response_strength`, `rank`, `turns`,
            `tokens`, `quality`, `licenses`, `validate`, `device`, `fields` and `progress`; see `dialeval adem train
            --help`.

    Returns:
        The judge with its model card: `save(folder)`, `tables()` and `text()`.

    Raises:
        DataError: A file cannot be read.
        SettingError: A setting does not exist, or cannot have this value.

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from dialeval.adem import open_judge, train
        >>> rows = [
        ...     {"context": [f"tea {n} ?"], "response": "yes please" if n % 2 else "a train", "reference": "yes",
        ...      "scores": {"overall": 1 + 4 * (n % 2)}}
        ...     for n in range(8)
        ... ]
        >>> _ = Path("ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
        >>> folder = train(["ratings.jsonl"], validate=False).save("judge")
        >>> scores = open_judge(folder).score([["tea ?"]] * 2, ["yes please", "a train"], [["yes"]] * 2)
        >>> bool(scores[0] > scores[1])
        True
    """
    return make_judge(ratings, tests, **settings)


def __getattr__(name: str) -> Any:
    if name not in _MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"dialeval.judges.{_MODELS[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise SettingError("PyTorch is not installed; run: pip install 'dialeval[learned]'") from None
