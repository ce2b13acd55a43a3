"""How many products an operation sums: with ones for data and weights, the sum of its output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_pictures import content_of
from vinoir import ir
from vinoir.layers import Op

PLAIN = {"strides": "2,1", "dilations": "1,2", "pads_begin": "0,0", "pads_end": "0,0"}
CASES: list[tuple[tuple[str, int], dict[str, str], list[tuple[int, ...]]]] = [
    (("Convolution", 1), PLAIN, [(2, 3, 9, 8), (4, 3, 3, 2)]),
    (("GroupConvolution", 1), PLAIN, [(2, 6, 9, 8), (3, 4, 2, 3, 2)]),
    (("ConvolutionBackpropData", 1), PLAIN, [(2, 3, 5, 4), (3, 4, 3, 2)]),
    (("GroupConvolutionBackpropData", 1), PLAIN, [(2, 6, 5, 4), (3, 2, 4, 3, 2)]),
    (("MatMul", 1), {}, [(2, 3, 5), (5, 7)]),
    (("MatMul", 1), {"transpose_a": "true"}, [(2, 5, 3), (5, 7)]),
    (("MatMul", 1), {"transpose_b": "true"}, [(5,), (4, 7, 5)]),
    (("MatMul", 1), {"transpose_a": "true"}, [(5,), (5,)]),
]


@pytest.mark.parametrize(("key", "data", "shapes"), CASES, ids=str)
def test_ones_add_up_to_the_number_of_products(
    key: tuple[str, int], data: dict[str, str], shapes: list[tuple[int, ...]]
) -> None:
    op: Any = Op.registry[key].read(data)
    (output,) = op.run(*(np.ones(shape, np.float32) for shape in shapes))
    assert op.multiply_adds(shapes, output.shape) == output.sum() > 0


@pytest.mark.parametrize("version", [1, 8])
def test_offsets_are_no_weights(version: int) -> None:
    op: Any = Op.registry["DeformableConvolution", version].read(PLAIN)
    data, filters = np.ones((1, 2, 9, 9), np.float32), np.ones((4, 2, 3, 3), np.float32)
    offsets = np.zeros((1, 18, 4, 5), np.float32)
    (output,) = op.run(data, offsets, filters)
    shapes = [x.shape for x in (data, offsets, filters)]
    assert op.multiply_adds(shapes, output.shape) == output.sum() > 0


@pytest.mark.parametrize(
    ("key", "shapes", "expected"),
    [
        # Two sequences of five steps, three gates of four numbers, from six and from four.
        (("GRUSequence", 5), [(2, 5, 6), (2, 1, 4), (2,), (1, 12, 6), (1, 12, 4)], 10 * 12 * 10),
        (("LSTMCell", 4), [(2, 6), (2, 4), (2, 4), (16, 6), (16, 4), (16,)], 2 * 16 * 10),
        (("RNNSequence", 5), [(2, 5, 6), (2, 2, 4), (2,), (2, 4, 6), (2, 4, 4)], 10 * 2 * 4 * 10),
        # Three queries, seven keys of five numbers, values of two.
        (("ScaledDotProductAttention", 13), [(2, 3, 5), (2, 7, 5), (2, 7, 2)], 2 * 3 * 7 * 7),
    ],
)
def test_sums_within(key: tuple[str, int], shapes: list[tuple[int, ...]], expected: int) -> None:
    words = {"hidden_size": "4", "direction": "forward", "causal": "false"}
    op: Any = Op.registry[key].read(words)
    assert op.multiply_adds(shapes, (2, 3, 2)) == expected


def test_what_passes_over_its_elements_sums_no_products() -> None:
    op: Any = Op.registry["Add", 1].read({})
    assert op.multiply_adds([(2, 3), (2, 3)], (2, 3)) == 0


def test_pictures_say_the_same() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", (1, 2, 9, 9))
    offsets = net.parameter("offsets", "f32", (1, 18, 4, 5))
    filters = net.constant(np.ones((4, 2, 3, 3), np.float32))
    net.result(net.add("DeformableConvolution", "opset8", [x, offsets, filters], data=PLAIN))
    (paint,) = [
        p for p in content_of(ir.draw(net.model()).html())["paints"] if p["name"] == "MACs"
    ]
    assert [value for value in paint["values"] if value] == [4 * 4 * 5 * 2 * 9]
