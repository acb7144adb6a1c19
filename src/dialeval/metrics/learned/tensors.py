"""PyTorch models on disk: weights as safetensors, settings as JSON, in one folder. A pickle is never loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn

from dialeval.core.errors import DataError, Fault
from dialeval.core.files import write_bytes

FORMAT = 1


class Saved(Protocol):
    """A model whose weights are those of its network."""

    @property
    def network(self) -> nn.Module:
        """The module."""


Model = TypeVar("Model", bound=Saved)


def save_model(
    folder: str | os.PathLike[str], kind: str, settings: Mapping[str, Any], state: Mapping[str, Tensor]
) -> Path:
    """Write a model's settings and weights; the folder is made if it is not there."""
    import orjson
    from safetensors.torch import save

    folder = Path(folder)
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in state.items()})
    document = {"format": FORMAT, "kind": kind, "settings": dict(settings)}
    write_bytes(folder / f"{kind}.safetensors", content)
    write_bytes(folder / f"{kind}.json", orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return folder


def load_model(folder: str | os.PathLike[str], kind: str, make: Callable[[dict[str, Any]], Model]) -> Model:
    """The model of some kind that was saved in a folder; `make` gives an untrained one for its settings."""
    import orjson
    from safetensors import SafetensorError
    from safetensors.torch import load

    folder = Path(folder)
    facts, weights = folder / f"{kind}.json", folder / f"{kind}.safetensors"
    remedy = "give a folder that `save` of this model wrote"
    if folder.is_file():
        what = "is a file; weights are read from safetensors and JSON in a folder, never from a pickle"
        raise DataError(Fault(str(folder), None, what, remedy))
    try:
        document = orjson.loads(facts.read_bytes())
        if document["format"] > FORMAT:
            raise DataError(Fault(str(facts), None, f"layout {document['format']} is newer", "upgrade dialeval"))
        state = load(weights.read_bytes())
        model = make(dict(document["settings"]))
        _fill(model.network, state)
        return model
    except OSError as error:
        raise DataError(Fault(str(error.filename), None, f"cannot be read ({error.strerror})", remedy)) from None
    except (orjson.JSONDecodeError, SafetensorError, KeyError, TypeError, ValueError) as error:
        what = f"holds no model of the kind {kind} ({type(error).__name__}: {error})"[:300]
        raise DataError(Fault(str(folder), None, what, remedy)) from None


def _fill(network: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Put weights into a network that wants exactly these."""
    wanted = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    if wanted != found:
        names = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
        raise ValueError(f"weights do not fit the settings: {', '.join(names)}")
    network.load_state_dict(state)
