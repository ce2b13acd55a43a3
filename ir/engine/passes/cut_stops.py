"""Replace `Slice(W * x)` by `W * x` with other pads: what is cut off need not be computed.

Causal convolutions pad both ends alike, and then cut off what would come from the future;
transposed ones cut off what reaches beyond the sound that they make.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from ....layers.windows import reach
from ....schemas.shapes import number
from ..plan import BINARY, CONVOLUTIONS, TRANSPOSED, UNARY, Node, Plan, Value, is_numpy, only_user

#: What leaves out some of its input.
SLICES = frozenset({"Slice", "StridedSlice"})
#: From which place on, and up to which, an axis of images remains.
Kept: TypeAlias = list[tuple[int, int]]


def cut_stops(plan: Plan) -> None:
    """Apply the pass."""
    gone: dict[Node, list[Node]] = {}
    for cut in plan.nodes:
        chain = _chain(cut) if cut.kind in SLICES else []
        kept = _kept(cut) if chain else []
        if not kept or not all(map(_is_alike, chain[1:])):
            continue
        if not _stops_sooner(chain[0], kept):
            continue
        shape = cut.outputs[0].shape
        for node, reader in pairwise(chain):
            before = node.outputs[0]
            made = Value(shape, before.type)
            node.set_output(made)
            reader.replace_input(reader.inputs.index(before), made)
        chain[-1].set_output(cut.outputs[0])
        cut.detach()
        gone[cut] = []
    plan.replace(gone)


def _chain(cut: Node) -> list[Node]:
    """A convolution, and what is done to each of its numbers alone before some are cut off."""
    found: list[Node] = []
    value = cut.inputs[0]
    reader = cut
    while only_user(value) is reader and value.producer is not None:
        reader = value.producer
        found.append(reader)
        if reader.is_outside or reader.outputs[0].type != np.float32:
            return []
        if reader.kind in CONVOLUTIONS | TRANSPOSED:
            return found[::-1]
        value = next((given for given in reader.inputs if not given.is_fixed), value)
    return []


def _kept(cut: Node) -> Kept:
    """What a slice keeps of images; nothing if that is not a part of each channel."""
    shape, made = cut.inputs[0].shape, cut.outputs[0].shape
    if len(shape) != len(made) or shape[:2] != made[:2] or 0 in made:
        return []
    if any(value.constant is None for value in cut.inputs[1:]):
        return []
    whole = np.empty(shape, np.uint8)  # of which nobody reads anything
    (part,) = cut.op.run(whole, *(value.constant for value in cut.inputs[1:]))
    steps = zip(made, part.strides, whole.strides, strict=True)
    if not np.may_share_memory(part, whole) or any(n > 1 and a != b for n, a, b in steps):
        return []
    start = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    first = [int(place) for place in np.unravel_index(start, shape)]
    return [(begin, begin + size) for begin, size in zip(first, made, strict=True)]


def _is_alike(node: Node) -> bool:
    """Whether a node does the same all over a channel, by what is known beforehand."""
    if node.kind not in UNARY | BINARY or not is_numpy(node):
        return False
    others = [value for value in node.inputs if value.is_fixed]
    computed = [value.shape for value in node.inputs if not value.is_fixed]
    if computed != [node.outputs[0].shape]:
        return False  # a constant may make several images or channels of one
    rank, channels = len(node.outputs[0].shape), node.outputs[0].shape[1]
    by_channel = node.kind == "PReLU" and others[0].shape == (channels,)
    return by_channel or all(
        len(value.shape) <= rank and set(value.shape[max(2 + len(value.shape) - rank, 0) :]) <= {1}
        for value in others
    )


def _stops_sooner(node: Node, kept: Kept) -> bool:
    """Let the windows of a convolution stop where something is kept, if pads can tell it."""
    op: Any = node.op
    spread = node.kind in TRANSPOSED
    if len(node.inputs) != 2:
        return False
    begins, ends = [], []
    kernel = node.inputs[1].shape[-len(op.strides) :]
    for axis, (size, taps) in enumerate(zip(node.inputs[0].shape[2:], kernel, strict=True)):
        first, stop = kept[2 + axis]
        whole = node.outputs[0].shape[2 + axis]
        reached, stride = reach(taps, op.dilations[axis]), op.strides[axis]
        if spread:
            begin, end = map(number, op.spread_pads(axis, size, taps))
            begin, end = begin + first, end + whole - stop
        else:
            begin, end = map(number, op.pads(size, axis, reached))
            begin -= first * stride
            if stop < whole:
                end = (stop - first - 1) * stride + reached - size - begin
        begins.append(begin)
        ends.append(end)
    if min(*begins, *ends) < 0:
        return False
    changes = {"auto_pad": "explicit", "pads_begin": tuple(begins), "pads_end": tuple(ends)}
    node.op = op.model_copy(update=changes)
    return True
