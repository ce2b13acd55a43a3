"""f(x, w) * c → f(x, w * c) and f(x * c, w) → f(x, w * c), f a convolution or a MatMul.

With a bias, (f(x, w) + b) * c → f(x, w * c) + b * c; c is a number, or one for each channel.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....schemas import Array
from ...document import Layer, is_on
from ...storage import let_go, parts
from .patterns import REALS, broadcasts, fall_short, fits_into, fuse, is_plain, made_by
from .rewriter import Rewriter, Rule, Value

#: Axes of the weights: those of the channels that come out, and that go in.
AXES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "Convolution": ((0,), (1,)),
    "ConvolutionBackpropData": ((1,), (0,)),
    "GroupConvolution": ((0, 1), (0, 2)),
    "GroupConvolutionBackpropData": ((0, 2), (0, 1)),
}
LINEAR = (*AXES, "MatMul")


def _apply(net: Rewriter, layer: Layer) -> bool:
    if layer.type in LINEAR:
        return _before(net, layer)
    found = scaling(net, layer)
    if found is None:
        return False
    value, scale = found
    linear = made_by(net, value, *LINEAR)
    bias: Array | None = None
    if linear is None:
        add = made_by(net, value, "Add")
        held = None if add is None or not net.is_private(value) else biased(net, add)
        if held is None:
            return False
        value, bias = held
        linear = made_by(net, value, *LINEAR)
    if linear is None or not net.is_private(value):
        return False
    shift = None
    if bias is not None:
        shift = bias * (scale if scale.size > 1 else scale.ravel()[0])
        if shift.size > max(bias.size, scale.size) or not is_plain(shift):
            return False
    return scale_outputs(net, layer, linear, scale, shift)


def scale_outputs(
    net: Rewriter, layer: Layer, linear: Layer, scale: Array, shift: Array | None
) -> bool:
    """Put a linear layer with scaled weights, and what is then added, in the place of a layer."""
    rank = net.tensor((linear, 0)).rank
    if rank is None or rank < 2:
        return False
    rows = channels_of(scale, rank, rank - 1 if linear.type == "MatMul" else 1)
    weights = weights_of(net, linear)
    if rows is None or weights is None or net.kind((layer, 0)) not in REALS:
        return False
    changed = _scaled(net, linear, weights, rows, outputs=True)
    if changed is None:
        return False
    fixed = _fixed(net, linear, changed)
    inputs = [net.inputs(linear)[0], fixed, *net.inputs(linear)[2:]]
    new = net.add(linear.type, linear.version, inputs, linear.data, like=layer)
    if shift is not None:
        fixed = net.constant(shift, net.kind(new), layer)
        new = net.add("Add", "opset1", [new, fixed], like=layer)
    return fuse(net, layer, new)


def _before(net: Rewriter, layer: Layer) -> bool:
    value = net.inputs(layer)[0]
    multiply = made_by(net, value, "Multiply", "Divide")
    found = None if multiply is None or not net.is_private(value) else scaling(net, multiply)
    if found is None or net.kind((layer, 0)) not in REALS:
        return False
    source, scale = found
    rank = net.tensor(value).rank
    if rank is None or rank < 2 or net.tensor(source).rank != rank:
        return False
    if not fits_into(scale.shape, net.tensor(source).shape):
        return False  # weights do not make one channel many
    channel = 1
    if layer.type == "MatMul":
        turned = is_on(layer, "transpose_a")
        channel = rank - 2 if turned else rank - 1
    rows, weights = channels_of(scale, rank, channel), weights_of(net, layer)
    if rows is None or weights is None:
        return False
    changed = _scaled(net, layer, weights, rows, outputs=False)
    if changed is None:
        return False
    fixed = _fixed(net, layer, changed)
    inputs = [source, fixed, *net.inputs(layer)[2:]]
    return fuse(net, layer, net.add(layer.type, layer.version, inputs, layer.data, like=layer))


def _fixed(net: Rewriter, linear: Layer, changed: Array) -> Value:
    """Changed weights as a constant."""
    old = net.inputs(linear)[1]
    if not net.is_private(old):
        net.spare -= changed.nbytes
    return net.constant(changed, net.kind(old), old[0])


def scaling(net: Rewriter, layer: Layer) -> tuple[Value, Array] | None:
    """A value and the numbers that it is multiplied by."""
    if layer.type not in ("Multiply", "Divide") or not broadcasts(layer):
        return None
    one, other = net.inputs(layer)
    if one[0].is_constant and layer.type == "Multiply":
        one, other = other, one
    if one[0].is_constant or not other[0].is_constant or net.kind(one) not in REALS:
        return None
    array = net.known(other)
    if array is None or not is_plain(array):
        return None
    if layer.type == "Divide":
        with np.errstate(all="ignore"):
            array = np.reciprocal(array)
    return (one, array) if is_plain(array) else None


def biased(net: Rewriter, add: Layer) -> tuple[Value, Array] | None:
    """A value and the numbers that are added to it."""
    if not broadcasts(add):
        return None
    one, other = net.inputs(add)
    if one[0].is_constant:
        one, other = other, one
    array = net.known(other) if other[0].is_constant and not one[0].is_constant else None
    return None if array is None or not is_plain(array) else (one, array)


def channels_of(scale: Array, rank: int, channel: int) -> Array | None:
    """Numbers as one for each channel, or as one; None where they vary along other axes."""
    if scale.size == 1:
        return scale.reshape(1) if scale.ndim <= rank else None
    if scale.ndim > rank:
        return None
    wide = [1] * (rank - scale.ndim) + list(scale.shape)
    return scale.ravel() if scale.size == wide[channel] else None


def weights_of(net: Rewriter, linear: Layer) -> Array | None:
    """Constant weights that nothing else uses, or of which there may be a copy."""
    value = net.inputs(linear)[1]
    array = net.known(value) if value[0].is_constant else None
    if array is None or array.dtype.kind != "f" or array.ndim < 2:
        return None
    return array if net.is_private(value) or net.may_grow(array.nbytes) else None


def _scaled(
    net: Rewriter, linear: Layer, weights: Array, rows: Array, *, outputs: bool
) -> Array | None:
    """Weights with one side multiplied; None where the numbers are not one for each channel."""
    shape = [1] * weights.ndim
    if linear.type == "MatMul":
        turned = is_on(linear, "transpose_b")
        axes: tuple[int, ...] = (weights.ndim - (2 if turned == outputs else 1),)
    else:
        axes = AXES[linear.type][0 if outputs else 1]
    for axis in axes:
        shape[axis] = weights.shape[axis]
    count = int(np.prod(shape))
    if rows.size not in (1, count):
        return None
    by = rows.reshape(shape if rows.size == count else (1,) * weights.ndim)
    factor = np.broadcast_to(by, weights.shape)
    most = lost = weights.dtype.type(0)

    def pieces() -> Iterator[Array]:
        nonlocal most, lost
        for index in parts(weights.shape):
            piece, some = weights[index], factor[index]
            with np.errstate(all="ignore"):
                product = piece * some
            short = np.abs(piece[fall_short(product, piece, some)])
            most = np.abs(piece).max(initial=most)
            lost = short.max(initial=lost)
            yield product
            let_go(weights)

    product = net.scratch.put(weights.shape, np.result_type(weights, by), pieces())
    # Channels that training gave up hold next to nothing: beside the others it may be nothing.
    if lost > np.finfo(weights.dtype).eps * most:
        return None
    return product if is_plain(product) else None


RULE = Rule("scale-into-weights", ("Divide", "Multiply", *LINEAR), _apply, exact=False, stage=1)
