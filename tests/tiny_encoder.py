"""A tiny sentence encoder with random weights, written as a folder in the format of sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "dog",
    "hello",
    "there",
    "how",
    "are",
    "you",
    "i",
    "am",
    "fine",
    "not",
    "know",
    "do",
    ".",
    "?",
    "##s",
]
HIDDEN, INNER, HEADS, LAYERS, POSITIONS = 8, 16, 2, 2, 64


def write_encoder(
    folder: Path, *, pooling: str = "mean_tokens", normalized: bool = True, prefix: str = "", seed: int = 0
) -> Path:
    """Write the folder and give it back."""
    dice = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "bert",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "max_position_embeddings": POSITIONS,
        "vocab_size": len(WORDS),
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    _dump(folder / "config.json", config)
    save_file({f"{prefix}{name}": value for name, value in _weights(dice).items()}, folder / "model.safetensors")
    parts: list[tuple[str, str]] = [("Transformer", ""), ("Pooling", "1_Pooling")]
    (folder / "1_Pooling").mkdir(exist_ok=True)
    kinds = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
    _dump(folder / "1_Pooling" / "config.json", {f"pooling_mode_{kind}": kind == pooling for kind in kinds})
    if normalized:
        parts.append(("Normalize", "2_Normalize"))
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in parts]
    _dump(folder / "modules.json", modules)
    return folder


def _dump(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def _weights(dice: np.random.Generator) -> Mapping[str, Any]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        for name, out, inner in (
            *((f"attention.self.{part}", HIDDEN, HIDDEN) for part in ("query", "key", "value")),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INNER, HIDDEN),
            ("output.dense", HIDDEN, INNER),
        ):
            shapes[f"{at}{name}.weight"], shapes[f"{at}{name}.bias"] = (out, inner), (out,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{at}{name}.weight"], shapes[f"{at}{name}.bias"] = (HIDDEN,), (HIDDEN,)
    return {name: dice.normal(0.2, 0.7, shape).astype(np.float32) for name, shape in shapes.items()}
