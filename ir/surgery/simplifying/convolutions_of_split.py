"""Concat(f(x1, w1), f(x2, w2), ...) → GroupConvolution(x, w): convolutions of the parts of x."""

from __future__ import annotations

import numpy as np

from ...document import Layer
from .patterns import FLOATS, fuse, made_by
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = net.inputs(layer)
    rank = net.tensor((layer, 0)).rank
    if rank is None or len(inputs) < 2 or int(layer.data["axis"]) not in (1, 1 - rank):
        return False
    products = [made_by(net, one, "Convolution") for one in inputs]
    first = products[0]
    if first is None or net.inputs(first)[0][0].type not in ("Split", "VariadicSplit"):
        return False
    split = net.inputs(first)[0][0]
    arrays = []
    for number, (one, product) in enumerate(zip(inputs, products, strict=True)):
        if product is None or not net.is_private(one) or product.data != first.data:
            return False
        data, weights = net.inputs(product)
        array = net.known(weights) if weights[0].is_constant else None
        if data != (split, number) or array is None or net.kind(weights) not in FLOATS:
            return False
        if net.tensor(data).shape.sizes[1] != array.shape[1]:
            return False
        arrays.append(array)
    axes = net.ints(net.inputs(split)[1])
    if axes not in ([1], [1 - rank]) or len(split.outputs) != len(inputs):
        return False
    if any(array.shape != arrays[0].shape for array in arrays):
        return False
    kind = net.kind(net.inputs(first)[1])
    if any(net.kind(net.inputs(one)[1]) != kind for one in products if one is not None):
        return False
    weights = net.constant(np.stack(arrays), kind, layer)
    fed = [net.inputs(split)[0], weights]
    return fuse(net, layer, net.add("GroupConvolution", "opset1", fed, first.data, like=layer))


RULE = Rule("convolutions-of-split", ("Concat",), _apply, exact=False)
