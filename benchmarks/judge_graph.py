"""The shipped judge as an ONNX graph, for the comparison in `judge`: padded word pieces in, the heads out."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dialeval.judges.judge import SHIPPED, load_judge, merge_changes, name_weights
from dialeval.metrics.encoder_files import find_encoder


class _Graph:
    """Nodes and constants as they are made; results have numbers for names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        name = f"constant-{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"result-{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def linear(self, rows: str, weight: Any, bias: Any) -> str:
        return self.add("Add", self.add("MatMul", rows, self.constant(weight.T)), self.constant(bias))

    def normalized(self, rows: str, weight: Any, bias: Any, epsilon: float) -> str:
        named = self.constant(weight), self.constant(bias)
        return self.add("LayerNormalization", rows, *named, axis=-1, epsilon=epsilon)


def graph() -> bytes:
    """The model's file."""
    judge = load_judge(SHIPPED)
    files = find_encoder(judge.encoder)
    config, base = files.config, name_weights(files)
    layers = merge_changes(base, judge.changes)
    heads, width, epsilon = config.num_attention_heads, config.hidden_size, config.layer_norm_eps
    made = _Graph()
    zero, one, two = (made.constant(np.array([axis])) for axis in range(3))
    split, joined = made.constant(np.array([0, 0, heads, width // heads])), made.constant(np.array([0, 0, width]))
    second = made.add("Unsqueeze", "second", two)
    length = made.add("Shape", "ids", start=1, end=2)
    positions = made.add("Slice", made.constant(base["positions"]), zero, length, zero)
    words = made.add("Gather", made.constant(base["words"]), "ids")
    summed = made.add("Add", words, made.add("Mul", second, made.constant(base["second"])))
    rows = made.normalized(made.add("Add", summed, positions), base["norm.weight"], base["norm.bias"], epsilon)
    unread = made.add(
        "Sub", made.constant(np.float32(1)), made.add("Unsqueeze", "mask", made.constant(np.array([1, 2])))
    )
    hidden = made.add("Mul", unread, made.constant(np.float32(-1e9)))
    for number in range(config.num_hidden_layers):

        def part(name: str, number: int = number) -> tuple[Any, Any]:
            return layers[f"{number}.{name}.weight"], layers[f"{number}.{name}.bias"]

        parts = zip(*(np.split(each, 3) for each in part("qkv")), strict=True)
        queries, keys, values = (made.add("Reshape", made.linear(rows, *each), split) for each in parts)
        queries, values = (made.add("Transpose", each, perm=[0, 2, 1, 3]) for each in (queries, values))
        scores = made.add("MatMul", queries, made.add("Transpose", keys, perm=[0, 2, 3, 1]))
        scores = made.add("Mul", scores, made.constant(np.float32(1 / np.sqrt(width // heads))))
        shares = made.add("Softmax", made.add("Add", scores, hidden), axis=-1)
        mixed = made.add("Transpose", made.add("MatMul", shares, values), perm=[0, 2, 1, 3])
        mixed = made.linear(made.add("Reshape", mixed, joined), *part("out"))
        rows = made.normalized(made.add("Add", mixed, rows), *part("norm"), epsilon)
        inner = made.linear(made.add("Gelu", made.linear(rows, *part("up"))), *part("down"))
        rows = made.normalized(made.add("Add", inner, rows), *part("last_norm"), epsilon)
    first = made.add("Squeeze", made.add("Slice", rows, zero, one, one), one)
    total = made.add("ReduceSum", made.add("Mul", rows, second), one, keepdims=0)
    said = made.add("Div", total, made.add("ReduceSum", "second", one, keepdims=1))
    feature = made.add("Concat", first, said, axis=1)
    weight, bias = (judge.changes[f"heads.{name}"].astype(np.float32) for name in ("weight", "bias"))
    found = made.linear(feature, weight, bias)
    kinds = {"ids": TensorProto.INT64, "mask": TensorProto.FLOAT, "second": TensorProto.FLOAT}
    inputs = [helper.make_tensor_value_info(name, kind, ["replies", "length"]) for name, kind in kinds.items()]
    output = helper.make_tensor_value_info(found, TensorProto.FLOAT, ["replies", len(bias)])
    whole = helper.make_graph(made.nodes, "judge", inputs, [output], made.constants)
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
