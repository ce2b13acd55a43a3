"""Reshape(f(MatMul(Reshape(x), W))) → f(MatMul(Reshape(x), W)), f of each row by itself.

Rows are counted along several axes at once, not first along one. Where x has these axes, the
Reshape that is left moves nothing, and goes as well.
"""

from __future__ import annotations

from ....schemas import Shape
from ...document import Layer
from .patterns import BINARY, UNARY, as_declared, broadcasts, same_size
from .reshape_chains import pattern_of, put_reshape
from .rewriter import Rewriter, Rule, Value

#: The most layers between the product and the Reshape.
_MOST = 8


def _apply(net: Rewriter, layer: Layer) -> bool:
    made = net.tensor((layer, 0)).shape
    way: list[Layer] = []
    product = _product(net, net.inputs(layer)[0], way)
    if product is None or made.rank is None or made.rank < 3:
        return False
    rows, weights = net.inputs(product)
    first = rows[0]
    flat = net.tensor((product, 0)).shape
    if first.type != "Reshape" or not same_size(made.sizes[-1], flat.sizes[-1]):
        return False
    if not flat.sizes[-1]:
        return False  # of nothing there may be another number of rows
    value = net.inputs(first)[0]
    wanted = Shape([*made.sizes[:-1], net.tensor(rows).shape.sizes[-1]])
    pattern = pattern_of(net.tensor(value).shape, wanted)
    if pattern is None:
        return False
    new = net.copy(product, [put_reshape(net, value, pattern, first), weights])
    before: Value = (product, 0)
    for step in reversed(way):
        new = net.copy(step, [new if one == before else one for one in net.inputs(step)])
        before = (step, 0)
    return as_declared(net.tensor(new), net.tensor((layer, 0))) and net.replace((layer, 0), new)


def _product(net: Rewriter, value: Value, way: list[Layer]) -> Layer | None:
    """The product of rows and constant weights that a value is computed from, row by row."""
    while len(way) < _MOST and net.is_private(value):
        layer = value[0]
        inputs = net.inputs(layer)
        if layer.type == "MatMul":
            fits = (
                net.tensor(value).rank == net.tensor(inputs[1]).rank == 2
                and inputs[1][0].is_constant
                and layer.data.get("transpose_a", "false").strip().lower() in ("false", "0")
            )
            return layer if fits else None
        following = _of_rows(net, layer)
        if following is None:
            return None
        way.append(layer)
        value = following
    return None


def _of_rows(net: Rewriter, layer: Layer) -> Value | None:
    """The input that a layer computes from row by row, all rows alike."""
    inputs = net.inputs(layer)
    if layer.type in UNARY and len(inputs) == 1:
        return inputs[0]
    if layer.type == "Swish":
        return inputs[0]
    if layer.type not in BINARY or not broadcasts(layer):
        return None
    for value, other in (inputs, inputs[::-1]):
        shape = net.shape(other) if other[0].is_constant else None
        if shape is not None and all(size == 1 for size in shape[:-1]) and len(shape) <= 2:
            return value
    return None


RULE = Rule("matmul-between-reshapes", ("Reshape",), _apply, exact=False)
