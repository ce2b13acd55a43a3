"""MatMul(Transpose(a), b) → MatMul(a, b, transpose_a): the last two axes changed places."""

from __future__ import annotations

from ...document import Layer
from .patterns import made_by, order_of
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = list(net.inputs(layer))
    flags = {name: layer.data.get(name, "false") for name in ("transpose_a", "transpose_b")}
    changed = False
    for place, name in enumerate(flags):
        transpose = made_by(net, inputs[place], "Transpose")
        order = None if transpose is None else order_of(net, transpose)
        if transpose is None or order is None or len(order) < 2:
            continue
        if order != [*range(len(order) - 2), len(order) - 1, len(order) - 2]:
            continue
        inputs[place] = net.inputs(transpose)[0]
        flags[name] = "false" if flags[name].strip().lower() in ("true", "1") else "true"
        changed = True
    if not changed:
        return False
    new = net.add("MatMul", "opset1", inputs, {**layer.data, **flags}, like=layer)
    return net.replace((layer, 0), new)


RULE = Rule("transpose-into-matmul", ("MatMul",), _apply, exact=False)
