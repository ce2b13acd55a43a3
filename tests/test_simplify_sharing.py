"""Constants that are equal stay two where OpenVINO makes other numbers of one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_decompression import mark, weights
from test_simplify import by_openvino
from vinoir import ir

RNG = np.random.default_rng(5)


def product(net: ir.Builder, x: ir.Output, held: Any, turned: str) -> ir.Output:
    """A product with weights as they are, or turned by the product or beforehand."""
    levels = net.constant(held)
    made = levels
    if held.dtype != np.float32:
        made = net.add("Convert", "opset1", [made], destination_type="f32")
    if held.dtype == np.int8:
        made = net.add("Multiply", "opset1", [made, np.float32(0.01)])
    if turned == "Transpose":
        made = net.add("Transpose", "opset1", [made, np.array([1, 0])])
    if turned == "Gather":
        made = net.add("Gather", "opset8", [made, np.arange(made.tensor.shape.static[0]), 0])
    if turned == "VariadicSplit":
        made = net.add("VariadicSplit", "opset1", [made, 0, made.tensor.shape.static[:1]])
    straight = ("", "Transpose")
    return net.add("MatMul", "opset1", [x, made], transpose_b=turned not in straight)


def two_products(kind: str, first: str, second: str, rows: int = 8) -> ir.Model:
    """A model whose weights are equal, each with bytes of its own in the file."""
    held = RNG.uniform(-99, 99, (rows, 8)).astype(kind)
    net = ir.Builder()
    x = net.parameter("x", "f32", "?,8")
    for name, turned in (("y", first), ("z", second)):
        net.result(product(net, x, held, turned), name=name)
    text, data = ir.dumps(net.model())
    weighed = re.findall(rb'shape="%d, ?8" offset="(\d+)" size="(\d+)"' % rows, text)
    if len(set(weighed)) > 1:
        return ir.loads(text, data)  # as they are written for OpenVINO's sake
    (offset, size), start = map(int, weighed[0]), -(-len(data) // 64) * 64
    return _apart(text, data.ljust(start, b"\0"), offset, size)


def _apart(text: bytes, data: bytes, offset: int, size: int) -> ir.Model:
    """The model with a copy of some bytes, which the second of those who have them takes."""
    said = b'offset="%d"' % offset
    where = text.index(said, text.index(said) + 1)
    text = text[:where] + b'offset="%d"' % len(data) + text[where + len(said) :]
    return ir.loads(text, data + data[offset : offset + size])


def weights_of(model: ir.Model) -> int:
    return sum(len(layer.sizes) == 2 and max(layer.sizes) > 1 for layer in model.constants)


@pytest.mark.parametrize("kind", ["f4", "f2", "i1"])
@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        ("", "transpose_b", 2), ("transpose_b", "", 2), ("", "Transpose", 2),
        ("", "Gather", 2), ("VariadicSplit", "", 2), ("Gather", "transpose_b", 1),
        ("transpose_b", "Transpose", 1), ("transpose_b", "transpose_b", 1), ("", "", 1),
    ],
)  # fmt: skip
def test_square_weights_that_products_take_in_two_ways_stay_two(
    kind: str, first: str, second: str, left: int
) -> None:
    model = two_products(kind, first, second)
    fed = {"x": RNG.standard_normal((3, 8)).astype("f4")}
    shared, _ = ir.simplify(model, only=["share-constants"])
    assert weights_of(shared) == left
    for new in (shared, ir.simplify(model)[0]):
        found, wanted = by_openvino(new, fed), ir.run(model, fed)
        for name in ("y", "z"):
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("marks", [(True, True), (False, True), (True, False), (False, False)])
@pytest.mark.parametrize("zero", [True, False])
def test_weights_that_are_rounded_and_such_as_are_not_stay_two(
    marks: tuple[bool, bool], zero: bool
) -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "16,16")
    ends = [weights(net, (16, 16), "i8", zero, 0) for _ in range(2)]
    net.result(net.add("MatMul", "opset1", [x, ends[0]]), name="y")
    net.result(net.add("Add", "opset1", [x, ends[1]]), name="z")
    model = net.model()
    for end, marked in zip(ends, marks, strict=True):
        if marked:
            mark(model, end.layer.name)
    fed = {"x": np.eye(16, dtype="f4")}
    new, _ = ir.simplify(model, certify=1)
    before, after = by_openvino(model, fed), by_openvino(new, fed)
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name])


def test_weights_that_are_read_alike_become_one() -> None:
    net = ir.Builder()
    x = net.parameter("x", "f32", "5,32")
    for name in "yz":
        end = weights(net, (24, 32), "u8", True, 0)
        net.result(net.add("MatMul", "opset1", [x, end], transpose_b=True), name=name)
    model = net.model()
    for layer in [layer for layer in model.layers if layer.name.startswith("end")]:
        mark(model, layer.name)
    new, _ = ir.simplify(model)
    # Of the levels, of their zeros, and of what is made of both.
    assert sum(layer.type == "Convert" for layer in new.layers) == 3
