"""Operators that contradict themselves: an error that says so, never a bug's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import IRError

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402  # only where onnx is there
from onnx_models import one_node  # noqa: E402

EMPTY = np.zeros(0, "f4")


def real(*shape: int) -> np.ndarray:
    return np.ones(shape, "f4")


def whole(*values: Any) -> np.ndarray:
    return np.array(values, "i8")


@pytest.mark.parametrize(
    ("kind", "opset", "inputs", "fed", "words", "said"),
    [
        ("Trilu", 23, [real()], 1, {}, "no axes|axis -. is beyond"),
        ("EyeLike", 13, [real()], 1, {}, "no axes"),
        ("GatherElements", 13, [real(), np.zeros((), "i8")], 1, {}, "axes"),
        ("Split", 20, [real(4)], 1, {"axis": 1, "num_outputs": 2}, "axis 1 is beyond"),
        ("Det", 18, [real()], 1, {}, "a determinant of 0 rows"),
        ("GroupNormalization", 18, [real(4), real(2), real(2)], 1, {"num_groups": 2},
         "axis 1 is beyond the 1 axes"),
        ("ConvTranspose", 20, [real(1, 4, 5), real(4, 2, 3)], 1, {"group": 0}, "group is 0"),
        ("Conv", 20, [real(1, 4, 5), real(4, 2, 3)], 1, {"group": 0}, "channels|group is 0"),
        ("LpPool", 20, [real(1, 2, 6)], 1, {"p": 0, "kernel_shape": [2]}, "p is 0"),
        ("GlobalLpPool", 7, [real(1, 2, 6)], 1, {"p": 0}, "p is 0"),
        ("ConstantOfShape", 18, [np.array(3)], 0, {}, "has 0 axes"),
        ("ConstantOfShape", 18, [np.array([[3]])], 0, {}, "has 2 axes"),
        ("Resize", 20, [real(1, 1, 4, 4), EMPTY, EMPTY, np.array(3)], 1, {}, "one is needed"),
        ("Resize", 20, [real(1, 1, 4, 4), EMPTY, EMPTY, whole(1, 1, 3)], 1, {}, "one is needed"),
        ("Resize", 20, [real(1, 1, 4, 4), EMPTY, np.ones(3, "f4")], 1, {}, "one is needed"),
        ("Resize", 20, [real(1, 1, 4, 4), EMPTY, EMPTY, whole(1, 1, 3)], 1,
         {"antialias": 1, "mode": "linear"}, "one is needed"),
        ("Pad", 18, [real(2, 3), whole(1, 1, 1), np.float32(0), whole(1)], 1, {},
         "pads has 3 entries"),
        ("Pad", 20, [real(2, 3), whole([1, 1, 1, 1])], 1, {"mode": "wrap"}, "pads has the shape"),
        ("Pad", 20, [real(2, 3), np.array(2)], 1, {}, "pads has the shape"),
        ("DFT", 20, [real(1, 4, 1), np.array(4), np.zeros(0, "i8")], 1, {}, "axis has 0 elements"),
        ("Clip", 13, [real(3), real(2)], 1, {}, "min has 2 elements"),
        ("ConvTranspose", 20, [real(1, 1, 3, 3), real(1, 2, 3, 3)], 1, {"output_shape": [10]},
         "output_shape has 1 sizes, the kernel has 2 axes"),
        ("Resize", 20, [real(1, 1, 0, 4), EMPTY, EMPTY, whole(1, 1, 2, 2)], 1,
         {"antialias": 1, "mode": "linear"}, "axis 2 has no places, 2 are to be made"),
        ("RandomUniformLike", 20, [real(3)], 1, {"seed": np.inf}, "seed is inf"),
        ("RandomNormalLike", 20, [real(3)], 1, {"seed": -np.inf}, "seed is -inf"),
        ("Bernoulli", 20, [real(3)], 1, {"seed": np.nan}, "seed is nan"),
        ("MaxRoiPool", 20, [real(1, 2, 4, 4), real(1, 5)], 1, {"pooled_shape": [2]},
         "pooled_shape has 1 sizes, 2 are needed"),
        ("Trilu", 20, [real(4, 5), np.arange(20)], 1, {},
         r'"x1" has 20 elements, the shape \[1, 1\] takes 1'),
    ],
)  # fmt: skip
def test_contradictions_are_told(
    kind: str, opset: int, inputs: list[Any], fed: int, words: dict[str, Any], said: str
) -> None:
    proto = one_node(kind, opset, inputs, 2 if kind == "Split" else 1, **words)
    constants = list(proto.graph.input)[fed:]
    del proto.graph.input[fed:]
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), one.name)
        for value, one in zip(inputs[fed:], constants, strict=True)
    )
    with pytest.raises(IRError, match=said):
        ir.from_onnx(proto.SerializeToString())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"scan_input_axes": [0, 0]}, "scan_input_axes has 2 entries, .* inputs is 1"),
        ({"scan_input_axes": [2]}, r"scan_input_axes has 2, input 1 has the shape \[3,2\]"),
        ({"scan_input_directions": [0, 1]}, "scan_input_directions has 2 entries, .* is 1"),
        ({"scan_input_directions": [2]}, "scan_input_directions has 2, 0"),
        ({"scan_output_axes": [0, 0]}, "scan_output_axes has 2 entries, .* outputs is 1"),
        ({"scan_output_axes": [-3]}, 'scan_output_axes has -3, "all" is stacked to 2 axes'),
        ({"scan_output_directions": [1, 0]}, "scan_output_directions has 2 entries, .* is 1"),
        ({"scan_output_directions": [-1]}, "scan_output_directions has -1, 0"),
        ({"num_scan_inputs": 2}, r"scan_input_axes has 0, input 0 has the shape \[\]"),
    ],
)
def test_scans_say_what_is_wrong_with_their_lists(words: dict[str, Any], said: str) -> None:
    def values(*names: str) -> list[Any]:
        return [helper.make_tensor_value_info(name, 1, None) for name in names]

    nodes = [
        helper.make_node("Add", ["x", "r"], ["next"]),
        helper.make_node("Relu", ["r"], ["all"]),
    ]
    body = helper.make_graph(nodes, "body", values("x", "r"), values("next", "all"))
    words = {"num_scan_inputs": 1, **words}
    first = () if words["num_scan_inputs"] == 2 else (2,)
    node = helper.make_node("Scan", ["x", "r"], ["last", "whole"], body=body, **words)
    given = [
        helper.make_tensor_value_info(name, 1, shape)
        for name, shape in (("x", first), ("r", (3, 2)))
    ]
    graph = helper.make_graph([node], "g", given, values("last", "whole"))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with pytest.raises(IRError, match=said):
        ir.from_onnx(proto.SerializeToString())


def test_a_tensor_without_elements_that_no_array_can_hold_is_named() -> None:
    proto = one_node("Add", 20, [np.zeros(2, "f4"), np.zeros(2, "f4")])
    proto.graph.initializer.add(name="x1", data_type=1, dims=[0, 2**62], raw_data=b"")
    del proto.graph.input[1:]
    with pytest.raises(IRError, match=r'tensor "x1": shape \[0, 4611686018427387904\]'):
        ir.from_onnx(proto.SerializeToString())
