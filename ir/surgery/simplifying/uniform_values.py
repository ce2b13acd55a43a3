"""f(Broadcast(a), Broadcast(b)) → Broadcast(f(a, b)), a and b one number each.

f computes elements from elements, moves them, or sums and compares many of the same number. A sum
of many stays where it is not exact: in what order they are added is left to the runtime. So does
what may put other numbers beside: an Interpolate that pads, a Gather of unknown places.
"""

from __future__ import annotations

from math import frexp, prod

import numpy as np

from ....layers.casting import as_computed, computing
from ....layers.memory import run_within_memory
from ....schemas import Array, ElementType
from ...document import Layer
from .patterns import BINARY, REALS, broadcasts, made_by
from .rewriter import Rewriter, Rule, Value

#: What is rounded once: the same for one number as for one of many.
_ROUNDED_ONCE = (BINARY - {"Power"}) | {
    "Abs", "BitwiseNot", "Ceiling", "Clamp", "Convert", "Floor", "LogicalNot", "Negative", "ReLU",
    "Round", "Sign", "Sqrt",
}  # fmt: skip
_MOVES = frozenset({
    "Gather", "Interpolate", "Reshape", "Slice", "Split", "Squeeze", "StridedSlice", "Tile",
    "Transpose", "Unsqueeze", "VariadicSplit",
})  # fmt: skip
_REPEATS = ("Broadcast", "Tile")
_SAME = frozenset({"ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMin"})
_SUMS = frozenset({"ReduceMean", "ReduceSum"})
_TYPES = REALS | {ElementType.BOOLEAN, ElementType.I32, ElementType.I64, ElementType.U8}
#: Bits of the whole numbers that a type holds without a gap.
_BITS = {ElementType.F32: 24, ElementType.F64: 53, ElementType.I32: 31, ElementType.I64: 63}


def _apply(net: Rewriter, layer: Layer) -> bool:
    if not any(one[0].type in _REPEATS for one in net.inputs(layer)):
        return False
    used = [(layer, i) for i in range(len(layer.outputs)) if net.uses((layer, i))]
    shapes = {net.shape(one) for one in used}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None or 0 in shape or any(net.kind(one) not in _TYPES for one in used):
        return False
    if len(used) > 1 and any(net.feeds_result(one) for one in used):
        return False
    number = _number_of(net, layer, shape)
    if number is None:
        return False
    kind = net.kind(used[0])
    sizes = net.constant(np.array(shape, np.int64), ElementType.I64, layer)
    fixed = net.constant(number, kind, layer)
    new = net.add("Broadcast", "opset3", [fixed, sizes], {"mode": "numpy"}, like=layer)
    done = [net.replace(one, new) for one in used]
    return all(done)


def _number_of(net: Rewriter, layer: Layer, shape: tuple[int, ...]) -> Array | None:
    """The number of which all outputs of a layer consist; None where there is none."""
    inputs = net.inputs(layer)
    if layer.type in _ROUNDED_ONCE:
        if layer.type in BINARY and not broadcasts(layer):
            return None
        return _computed(net, layer, [_repeated(net, one) for one in inputs])
    if inputs[0][0].is_constant:
        return None
    if layer.type in _MOVES and _puts_beside(net, layer):
        return None
    number = _repeated(net, inputs[0])
    # What is moved by one layer is repeated by one: there are no more than before.
    if number is None or layer.type in _MOVES:
        return number
    if not net.is_private(inputs[0]):
        return None
    if layer.type in _SAME:
        return number
    given = net.shape(inputs[0])
    count = 0 if given is None else prod(given) // prod(shape)
    bits = _BITS.get(net.kind(inputs[0]), 0)
    if not count or not np.isfinite(number) or _bits_of(float(number) * count) > bits:
        return None
    return number if layer.type == "ReduceMean" else (number * count).astype(number.dtype)


def _puts_beside(net: Rewriter, layer: Layer) -> bool:
    """Whether a layer may give other numbers than those it moves: means of them, or zeros."""
    if layer.type == "Interpolate":
        pads = (*getattr(layer.op, "pads_begin", ()), *getattr(layer.op, "pads_end", ()))
        return layer.data.get("mode", "").lower() != "nearest" or any(pads)
    if layer.type != "Gather":
        return False
    # Of a place beyond the axis zeros are taken.
    data, indices, axes = net.inputs(layer)
    shape, rows, axis = net.shape(data), net.known(indices), net.ints(axes)
    if not shape or rows is None or not axis:
        return True
    size = shape[axis[0]]
    return bool(((rows < -size) | (rows >= size)).any())


def _bits_of(number: float) -> int:
    """Bits from the first to the last of a number."""
    whole = int(frexp(number)[0] * 2**53)
    return whole.bit_length() - (((whole & -whole).bit_length() - 1) if whole else 0)


def _computed(net: Rewriter, layer: Layer, numbers: list[Array | None]) -> Array | None:
    """What comes out where each input consists of one number."""
    op, inputs = layer.op, net.inputs(layer)
    repeated = [one for one in inputs if not one[0].is_constant]
    if op is None or not repeated or not all(map(net.is_private, repeated)):
        return None
    if any(net.kind(one) not in _TYPES for one in inputs):
        return None
    with np.errstate(all="ignore"):
        known = [as_computed(one) for one in numbers if one is not None]
        if len(known) < len(inputs):
            return None
        made = run_within_memory(computing(op), *known)[0]
        return np.asarray(made).reshape(()).astype(net.kind((layer, 0)).dtype)


def _repeated(net: Rewriter, value: Value) -> Array | None:
    """The number of which a value consists, where it is one number or repeats one."""
    broadcast = made_by(net, value, *_REPEATS)
    source = value if broadcast is None else net.inputs(broadcast)[0]
    array = net.known(source) if source[0].is_constant else None
    if array is None or array.size != 1 or net.shape(value) is None:
        return None
    return array.reshape(())


RULE = Rule("uniform-values", tuple(sorted(_ROUNDED_ONCE | _MOVES | _SAME | _SUMS)), _apply)
