"""Operators that contradict themselves: an error that says so, never a bug's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from vinoir import ir
from vinoir.schemas import IRError

onnx = pytest.importorskip("onnx")
from onnx import numpy_helper  # noqa: E402  # only where onnx is there
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
