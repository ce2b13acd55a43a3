"""Replace `s (c(clamp(round(x / s) + z)) - z)`, c a Convert to bytes, by `q(x)`, a FakeQuantize.

So says ONNX what is one operation of OpenVINO's. Bytes may be moved on the way. Where they stand
for numbers without the scale, by which something is multiplied later, q gives these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ....layers.base import Op
from ..plan import MOVING, Node, Plan, Value, constant, maker, single

_BYTES = tuple(map(np.dtype, ("i1", "u1", "i2", "u2")))
#: Scales by which numbers stay far from the ends of what float32 holds.
_LEAST, _MOST = 1e-30, 1e30
#: Means of levels are exact with scales of so many bits.
_SHORT = 12
#: Levels for zero so far from others that float32 tells these apart.
_FAR = 1 << 17
#: What only moves one tensor.
MOVERS = MOVING - {"Concat"}


class _Rounded(NamedTuple):
    """What is divided by a scale and rounded to levels, one of which stands for zero."""

    data: Value
    scale: float
    zero: float


class _Read(NamedTuple):
    """Where levels go: who moves them, and the numbers that are made of which of them."""

    movers: list[Node]
    numbers: list[tuple[Value, Value]]
    #: By what all numbers are multiplied, if they are.
    scale: float | None


def join_rounding(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        rounded = _rounded(node)
        read = None if rounded is None else _read(node.outputs[0], rounded.zero)
        if rounded is not None and read is not None:
            node.detach()
            replaced[node] = [_quantized(node, rounded, read)]
    plan.replace(replaced)
    if replaced:
        plan.prune()


def _rounded(node: Node) -> _Rounded | None:
    """What a Convert to bytes rounds."""
    value = node.outputs[0]
    if node.kind != "Convert" or value.type not in _BYTES or value.is_outside:
        return None
    ends, (shifted, *limits) = np.iinfo(value.type), _clipped(node.inputs[0])
    if limits != [ends.min, ends.max]:
        return None
    zero = 0.0
    added = maker(shifted, "Add")
    if added is not None:
        left, right = added.inputs
        shifted, point = (right, left) if left.is_fixed else (left, right)
        number = single(point)
        if number is None or not number.is_integer() or abs(number) > _FAR:
            return None
        zero = number
    whole = maker(shifted, "Round")
    if whole is None or whole.op.mode != "half_to_even":  # type: ignore[attr-defined]  # Round has it
        return None
    data, scale = whole.inputs[0], 1.0
    divided = maker(data, "Divide")
    if divided is not None:
        number = single(divided.inputs[1])
        if number is not None and _LEAST < number < _MOST:
            data, scale = divided.inputs[0], number
    if data.shape != value.shape or data.type != np.float32:
        return None
    if (zero - ends.min) % 2 and _has_halves(data, scale):
        return None
    return _Rounded(data, scale, zero)


def _has_halves(data: Value, scale: float) -> bool:
    """Whether numbers may lie right between two levels, and not by accident.

    A FakeQuantize counts levels from its lowest one on. If that is an odd one, halves fall to the
    other side.
    """
    by = [np.array(scale)]
    scaled = maker(data, "Multiply") or maker(data, "Divide")
    if scaled is not None:
        by += [value.constant for value in scaled.inputs if value.constant is not None]
    parts = [np.ldexp(np.frexp(one)[0], _SHORT) for one in by]
    return all(bool((part == np.rint(part)).any()) for part in parts)


def _clipped(value: Value) -> tuple[Value, float | None, float | None]:
    """What is held between two limits, and these; as importers write it, or simplified."""
    clip = maker(value, "Clamp")
    if clip is not None:
        op: Any = clip.op
        return clip.inputs[0], op.min, op.max
    upper = maker(value, "Minimum")
    lower = None if upper is None else maker(upper.inputs[0], "Maximum")
    if upper is None or lower is None:
        return value, None, None
    return lower.inputs[0], single(lower.inputs[1]), single(upper.inputs[1])


def _read(levels: Value, zero: float) -> _Read | None:
    """Where levels go, if all that is made of them are numbers less that for zero."""
    movers: list[Node] = []
    numbers: list[tuple[Value, Value]] = []
    pending = [levels]
    while pending:
        value = pending.pop()
        if value.is_output:
            return None
        for user, count in value.users.items():
            if user.epilogue or user.prologue or user.is_outside or user.inputs[0] is not value:
                return None
            if user.kind == "Convert" and user.outputs[0].type == np.float32:
                found = list(_less(user.outputs[0], zero))
                if not found:
                    return None
                numbers += [(value, number) for number in found]
            elif user.kind in MOVERS and count == 1:
                movers.append(user)
                pending += [made for made in user.outputs if made.type == levels.type]
            else:
                return None
    if not numbers or any(number.is_output for _, number in numbers):
        return None
    return _Read(movers, numbers, _scale([number for _, number in numbers]))


def _less(value: Value, zero: float) -> Iterator[Value]:
    """The numbers that are made of what levels are widened to; none if some are not less that."""
    found: list[Value] = []
    for user in value.users:
        less = user.kind == "Subtract" and user.inputs[0] is value
        if less and user.outputs[0].shape == value.shape and single(user.inputs[1]) == zero:
            found.append(user.outputs[0])
        elif zero:
            return
        else:
            found.append(value)
    if not value.is_output:
        yield from dict.fromkeys(found)


def _scale(numbers: list[Value]) -> float | None:
    """By what all readers multiply numbers, if by one number."""
    found: set[float | None] = set()
    for number in numbers:
        for user in number.users:
            scaled = user.kind == "Multiply" and not user.outputs[0].is_output
            scaled = scaled and user.outputs[0].shape == number.shape and not user.epilogue
            found.add(next(filter(None, map(single, user.inputs)), None) if scaled else None)
    scale = found.pop() if len(found) == 1 else None
    return scale if scale is not None and _LEAST < scale < _MOST else None


def _quantized(node: Node, rounded: _Rounded, read: _Read) -> Node:
    """The FakeQuantize, whose numbers are moved as the levels were and read by all readers."""
    levels = node.outputs[0]
    ends = np.iinfo(levels.type)
    limits = np.array([ends.min - rounded.zero, ends.max - rounded.zero])
    scale = 1.0 if read.scale is None else read.scale
    given = [*rounded.scale * limits, *scale * limits]
    words = {"levels": str(ends.max - ends.min + 1), "auto_broadcast": "numpy"}
    op: Any = Op.registry["FakeQuantize", 1].read(words)
    moved = {levels: Value(levels.shape, np.dtype(np.float32))}
    inputs = [rounded.data, *(constant(np.array(end, np.float32)) for end in given)]
    made = Node(node.layer, op, inputs, [moved[levels]])
    for mover in read.movers:
        number = moved[mover.inputs[0]]
        for place, value in enumerate(mover.outputs):
            if value.type == levels.type:
                moved[value] = Value(value.shape, np.dtype(np.float32))
                mover.outputs[place] = moved[value]
                moved[value].producer = mover
        mover.replace_input(0, number)
    for source, number in read.numbers:
        wanted = [number]
        if read.scale is not None:
            wanted = [user.outputs[0] for user in number.users]
        for value in wanted:
            for user in list(value.users):
                user.set_inputs([moved[source] if x is value else x for x in user.inputs])
    return made
