"""f(shape of x) and g(shape of y) → one of them, where each number is known to be the same size.

Sizes are the same that are equal numbers or have equal names, as inference works them out.
"""

from __future__ import annotations

from ....schemas import Dim
from ...document import Layer
from .rewriter import Rewriter, Rule, Value

#: What computes sizes of sizes.
_TYPES = (
    "Add", "Broadcast", "Concat", "Convert", "Divide", "Gather", "Maximum", "Minimum", "Multiply",
    "ReduceProd", "Reshape", "Select", "ShapeOf", "Slice", "Split", "Squeeze", "StridedSlice",
    "Subtract", "Tile", "Unsqueeze", "VariadicSplit",
)  # fmt: skip


def _apply(net: Rewriter, layer: Layer) -> bool:
    done = [_shared(net, (layer, index)) for index in range(len(layer.outputs))]
    return any(done)


def _shared(net: Rewriter, value: Value) -> bool:
    """Whether another value took the place of one."""
    tensor = net.tensor(value)
    if not tensor.has_symbols or not net.uses(value):
        return False
    key = _key(net, value)
    if key is None:
        return False
    known: dict[object, Value] = net.memory.setdefault("share-sizes", {})
    held = known.get(key)
    if held is None or held[0] not in net or _key(net, held) != key:
        known[key] = value
        return False
    if held[0] is value[0]:
        return False
    if net.comes_before(held[0], value[0]):
        return net.replace(value, held)
    if net.comes_before(value[0], held[0]) and net.replace(held, value):
        known[key] = value
        return True
    return False


def _key(net: Rewriter, value: Value) -> object:
    """Type, shape and numbers of a value of sizes; None where one of them is not known."""
    tensor = net.tensor(value)
    parts = tensor.parts
    if parts is None:
        return None
    sizes = parts.ravel().tolist()
    if any(isinstance(size, Dim) and size.symbol is None for size in sizes):
        return None
    return (
        tensor.type,
        parts.shape,
        tuple(size.symbol if isinstance(size, Dim) else int(size) for size in sizes),
    )


RULE = Rule("share-sizes", _TYPES, _apply)
