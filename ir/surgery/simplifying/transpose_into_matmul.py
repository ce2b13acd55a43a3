"""MatMul(Transpose(a), b) → MatMul(a, b, transpose_a): the last two axes changed places."""

from __future__ import annotations

from ....schemas.attributes import spelled
from ...document import Layer, is_on, swaps_last
from .patterns import made_by, order_of
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = list(net.inputs(layer))
    flags = {name: is_on(layer, name) for name in ("transpose_a", "transpose_b")}
    changed = False
    for place, name in enumerate(flags):
        transpose = made_by(net, inputs[place], "Transpose")
        order = None if transpose is None else order_of(net, transpose)
        if transpose is None or not swaps_last(order):
            continue
        inputs[place] = net.inputs(transpose)[0]
        flags[name] = not flags[name]
        changed = True
    if not changed:
        return False
    data = layer.data | {name: spelled(flag) for name, flag in flags.items()}
    new = net.add("MatMul", "opset1", inputs, data, like=layer)
    return net.replace((layer, 0), new)


RULE = Rule("transpose-into-matmul", ("MatMul",), _apply, exact=False)
