"""Small ONNX models for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx_pool_oracle import Pool


def kind_of(array: Any) -> int:
    """ONNX's number for an array's type."""
    return int(helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype))


def one_node(
    kind: str,
    opset: int,
    inputs: list[Any],
    outputs: int = 1,
    shapes: list[Any] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node."""
    names = [f"x{index}" for index in range(len(inputs))]
    given = [
        helper.make_tensor_value_info(
            name, kind_of(array), (shapes or [np.shape(i) for i in inputs])[index]
        )
        for index, (name, array) in enumerate(zip(names, inputs, strict=True))
    ]
    made = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(kind, names, made, name="the node", **attributes)
    graph = helper.make_graph(
        [node], "one", given, [onnx.ValueInfoProto(name=name) for name in made]
    )
    return model_of(graph, opset)


def model_of(graph: onnx.GraphProto, opset: int, **more: Any) -> onnx.ModelProto:
    """A model of a graph."""
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


def pool_model(pool: Pool, x: Any, shape: Any = None) -> onnx.ModelProto:
    """A model of one pooling."""
    return one_node(
        pool.kind, pool.opset, [x], 1 + pool.indices, [shape or x.shape], **pool.attributes()
    )


def typed_outputs(model: onnx.ModelProto, kinds: list[int]) -> onnx.ModelProto:
    """With the outputs' types stated, which ONNX Runtime wants."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    for index, kind in enumerate(kinds):
        copy.graph.output.append(helper.make_tensor_value_info(f"y{index}", kind, None))
    return copy


def pool_types(pool: Pool, x: Any) -> list[int]:
    """The types of a pooling's outputs."""
    return [kind_of(x), *([TensorProto.INT64] if pool.indices else [])]
