"""Values that are views: they lie in the memory of another value.

The output of an operation that only cuts or renames axes is a view of its input; an input of a
concatenation is a part of its output, so that who makes it writes where it is wanted.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....layers.budget import fits
from ....schemas import Array
from ..plan import POOLINGS, Node, Plan, Value
from .turning import lies_in

#: Operations whose kernels give views, where the memory allows it.
CUTTING = frozenset(
    {"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Slice", "StridedSlice", "Split",
     "VariadicSplit", "Identity"}
)  # fmt: skip
#: Operations that copy what they are given, however it lies.
COPYING = CUTTING | {"Concat", "GridSample", "MatMul", "ScaledDotProductAttention"}


def join_concats(plan: Plan) -> None:
    """Let the producers of a concatenation write into its output."""
    written: set[Node] = set()
    for node in _wider_first([node for node in plan.nodes if node.kind == "Concat"]):
        (output,) = node.outputs
        axis = node.op.axis % len(output.shape)  # type: ignore[attr-defined]  # Concat has it
        # Parts that are whole runs of memory, or runs of the channels of images.
        if not (axis == 1 if output.last else prod(output.shape[:axis]) == 1):
            continue
        if _is_part(node, axis):
            output.parent, output.start = node.inputs[0].parent, node.inputs[0].start
            node.detach()
            written.add(node)
            continue
        fits = all(
            value.constant is None
            and value.parent is None
            and value.producer is not None
            and value.last == output.last
            and not value.is_output
            for value in node.inputs
        ) and len({id(value) for value in node.inputs}) == len(node.inputs)
        if not fits:
            continue
        step = output.type.itemsize * (1 if output.last else prod(output.shape[axis + 1 :]))
        start = 0
        for value in node.inputs:
            value.parent, value.start = output, start
            start += value.shape[axis] * step
        node.detach()
        written.add(node)
    plan.nodes = [node for node in plan.nodes if node not in written]


def _wider_first(concats: list[Node]) -> list[Node]:
    """Those before others that join, side by side, all that these join; else in their order."""
    places = [{id(value): place for place, value in enumerate(node.inputs)} for node in concats]

    def holds(wide: int, narrow: int) -> bool:
        given = concats[narrow].inputs
        first = places[wide].get(id(given[0]))
        if first is None or concats[wide].op.axis != concats[narrow].op.axis:  # type: ignore[attr-defined]  # Concat has it
            return False
        found = concats[wide].inputs[first : first + len(given)]
        return list(map(id, found)) == list(map(id, given))

    nested = {
        narrow: [wide for wide in range(narrow + 1, len(concats)) if holds(wide, narrow)]
        for narrow in range(len(concats))
    }
    chained = {number for wides in nested.values() for number in wides}
    chained |= {number for number, wides in nested.items() if wides}
    first = sorted(chained, reverse=True)
    rest = [number for number in range(len(concats)) if number not in chained]
    return [concats[number] for number in (*first, *rest)]


def _is_part(node: Node, axis: int) -> bool:
    """Whether what is joined already lies side by side in the memory of one value."""
    (output,) = node.outputs
    parent, start = node.inputs[0].parent, node.inputs[0].start
    if parent is None or output.parent is not None or output.is_output:
        return False
    if parent.last != output.last or any(user.kind in POOLINGS for user in output.users):
        return False
    step = output.type.itemsize * (1 if output.last else prod(output.shape[axis + 1 :]))
    for value in node.inputs:
        if value.parent is not parent or value.start != start or value.strides is not None:
            return False
        start += value.shape[axis] * step
    return True


def rename(plan: Plan) -> None:
    """Make outputs views of inputs, where all their readers take such strides."""
    trials: dict[Value, Array] = {}
    plan.nodes = [node for node in plan.nodes if not _renames(node, trials)]


def root_of(value: Value) -> tuple[Value, int]:
    """The value whose memory it is, and the bytes before its own."""
    start = 0
    while value.parent is not None:
        start += value.start
        value = value.parent
    return value, start


def seen_in(room: Array, value: Value) -> Array:
    """A value as a view of the memory of its root."""
    root, start = root_of(value)
    if value is root:
        return room
    strides = value.strides
    if strides is None:
        strides = room.strides if value.last else _strides(value.kept_shape, room.itemsize)
    flat = room.reshape(-1)[start // room.itemsize :]
    return as_strided(flat, value.kept_shape, strides)


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides in bytes of a contiguous array."""
    return tuple(itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _renames(node: Node, trials: dict[Value, Array]) -> bool:
    """Make the outputs of a node views of its first input, if they can be that."""
    if node.kind not in CUTTING or any(value.constant is None for value in node.inputs[1:]):
        return False
    source = node.inputs[0]
    root, _ = root_of(source)
    if source.constant is not None or not root.nbytes or not fits(root.nbytes):
        return False
    if root not in trials:
        # Nobody writes to it: it takes no real memory.
        trials[root] = np.empty(root.kept_shape, root.type)
    room = trials[root]
    lying = seen_in(room, source)
    given = [np.moveaxis(lying, -1, 1) if source.last else lying]
    if node.kind == "Reshape" and not lies_in(given[0], node.outputs[0].shape):
        return False  # or it would be copied, to find that
    # What lies there means nothing, whatever somebody's own operation makes of it.
    with node.layer.at(), np.errstate(all="ignore"):
        found = node.op.run(*given, *(value.constant for value in node.inputs[1:]))
    views = [
        np.moveaxis(array, 1, -1) if value.last else array
        for value, array in zip(node.outputs, found, strict=True)
    ]
    if not all(
        value.parent is None and np.may_share_memory(view, room) and _suits(value, view)
        for value, view in zip(node.outputs, views, strict=True)
    ):
        return False
    for value, view in zip(node.outputs, views, strict=True):
        value.parent, value.strides = root, view.strides
        value.start = view.__array_interface__["data"][0] - room.__array_interface__["data"][0]
        value.producer = None
    return True


def _suits(value: Value, view: Array) -> bool:
    """Whether every reader of a value takes the strides that the view would have."""
    if view.flags.c_contiguous:
        return True
    unit = view.shape[-1] == 1 or view.strides[-1] == view.itemsize
    pooled = any(user.kind in POOLINGS for user in value.users)
    if value.last:
        return unit and not pooled
    return all(user.kind in COPYING for user in value.users) or (unit and not pooled)
