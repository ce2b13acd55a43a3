"""f(x) → x, where f moves nothing: Identity, Transpose, Pad, Slice, Broadcast, Tile, Gather, ...

Where as many elements come out as go in, in the same order and of the same shape, nothing moved.
"""

from __future__ import annotations

from ...document import Layer
from .patterns import order_of, same_shape
from .rewriter import Rewriter, Rule, Value

_FAR = 2**31 - 1


def _apply(net: Rewriter, layer: Layer) -> bool:
    value: Value = net.inputs(layer)[0]
    given, made = net.tensor(value), net.tensor((layer, 0))
    if given.type != made.type or given.type.is_dynamic:
        return False
    if len(layer.outputs) != 1 or not _moves_nothing(net, layer):
        return False
    return net.replace((layer, 0), value)


def _moves_nothing(net: Rewriter, layer: Layer) -> bool:
    inputs = net.inputs(layer)
    shapes = net.tensor(inputs[0]).shape, net.tensor((layer, 0)).shape
    same = same_shape(*shapes)
    match layer.type:
        case "Identity" | "Convert" | "ConvertLike":
            return True
        case "Transpose":
            order = order_of(net, layer)
            return order is not None and order == sorted(order)
        case "Reshape" | "Squeeze" | "Unsqueeze":
            return same_shape(*shapes, count=True)
        case "Broadcast" | "Interpolate":
            return layer.type == "Broadcast" and same
        case "Tile":
            repeats = net.ints(inputs[1])
            return repeats is not None and set(repeats) <= {1} and (
                shapes[0].rank is not None and len(repeats) <= shapes[0].rank
            )  # fmt: skip
        case "Pad":
            ends = [net.ints(one) for one in inputs[1:3]]
            return all(end is not None and not any(end) for end in ends)
        case "Concat" | "Split" | "VariadicSplit":
            return layer.type != "Concat" or len(inputs) == 1
        case "Roll":
            shift = net.ints(inputs[1])
            return shift is not None and not any(shift)
        case "Gather":
            return _takes_all(net, layer)
        case "StridedSlice" | "Slice":
            return _slices_whole(net, layer, same)
    return len(inputs) > 1 and _reduces_nothing(net, layer) and same


def _takes_all(net: Rewriter, layer: Layer) -> bool:
    """Whether a Gather takes every element of an axis, in order."""
    data, indices, axis = net.inputs(layer)
    numbers, axes, shape = net.ints(indices), net.ints(axis), net.tensor(data).shape
    if numbers is None or axes is None or shape.rank is None or net.tensor(indices).rank != 1:
        return False
    if layer.data.get("batch_dims", "0").strip() != "0":
        return False
    return numbers == list(range(len(numbers))) and shape.sizes[axes[0]] == len(numbers)


def _slices_whole(net: Rewriter, layer: Layer, same: bool) -> bool:
    """Whether a slice takes everything: all its steps go forwards, and nothing is left out."""
    inputs = net.inputs(layer)
    steps = [1] if len(inputs) < 4 else net.ints(inputs[3])
    if steps is None or min(steps, default=1) < 1:
        return False
    if same:
        return True
    begin, end = net.ints(inputs[1]), net.ints(inputs[2])
    if begin is None or end is None:
        return False
    if layer.type == "Slice":
        return set(begin) <= {0} and all(one >= _FAR for one in end) and set(steps) <= {1}
    masks = {name: _mask(layer.data.get(f"{name}_mask", ""), len(begin)) for name in
             ("begin", "end", "new_axis", "shrink_axis", "ellipsis")}  # fmt: skip
    if any(any(masks[name]) for name in ("new_axis", "shrink_axis", "ellipsis")):
        return False
    whole = zip(begin, end, masks["begin"], masks["end"], strict=True)
    return set(steps) <= {1} and all(
        (b or first == 0) and (e or last >= _FAR) for first, last, b, e in whole
    )


def _mask(text: str, count: int) -> list[bool]:
    bits = [part.strip() not in ("", "0") for part in text.split(",")] if text.strip() else []
    return (bits + [False] * count)[:count]


def _reduces_nothing(net: Rewriter, layer: Layer) -> bool:
    """Whether a reduction is over axes of size one, which it keeps."""
    shape, axes = net.shape(net.inputs(layer)[0]), net.ints(net.inputs(layer)[1])
    return shape is not None and axes is not None and all(
        -len(shape) <= axis < len(shape) and shape[axis] == 1 for axis in axes
    )  # fmt: skip


RULE = Rule(
    "whole-movements",
    (
        "Broadcast", "Concat", "Convert", "ConvertLike", "Gather", "Identity", "Pad", "ReduceMax",
        "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Roll", "Slice", "Split",
        "Squeeze", "StridedSlice", "Tile", "Transpose", "Unsqueeze", "VariadicSplit",
    ),
    _apply,
)  # fmt: skip
