"""Replace `BatchToSpace(f(Conv(SpaceToBatch(x))))` by `f(Conv(x))`, with windows that have gaps.

Images that are cut into every b-th row meet a window as the whole does one whose rows are b apart.
What follows the convolution may be whatever is done to each element of a channel alike.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....layers.base import Op
from ....layers.windows import reach
from ....schemas.shapes import number
from ..plan import (
    BINARY,
    CONVOLUTIONS,
    CUTS,
    UNARY,
    Node,
    Plan,
    Value,
    constant,
    only_user,
    per_channel,
    reshaping,
)


class _Cut(NamedTuple):
    """A node that deals out images to batches, or gathers them: how, by axis."""

    blocks: list[int]
    begins: list[int]
    ends: list[int]


class _Chain(NamedTuple):
    """What stands between the two: a convolution of cut images, and what follows it."""

    source: Value
    cut: _Cut
    head: Node
    followers: list[Node]
    #: The spatial axes that are longer than one, of the cut images and of the convolution.
    outer: list[int]
    inner: list[int]


def dilate_convolutions(plan: Plan) -> None:
    """Apply the pass."""
    plan.replace({node: made for node in plan.nodes if (made := _dilated(node))})
    plan.prune()


def _dilated(node: Node) -> list[Node]:
    """What takes the place of a node that gathers images; nothing where that cannot be."""
    whole = _cut(node, "BatchToSpace")
    chain = None if whole is None else _chain(node)
    if whole is None or chain is None or whole.blocks != chain.cut.blocks:
        return []
    head, data, (output,) = chain.head, chain.source, node.outputs
    op: Any = head.op
    given = head.inputs[0].shape
    rank = len(given)
    sizes, gaps = [1] * (rank - 2), list(op.dilations)
    pads = [
        [number(pad) for pad in op.pads(given[axis + 2], axis, reach(window, gap))]
        for axis, (window, gap) in enumerate(
            zip(head.inputs[1].shape[2 - rank :], op.dilations, strict=True)
        )
    ]
    for outer, inner in zip(chain.outer, chain.inner, strict=True):
        block, place = whole.blocks[outer], inner - 2
        sizes[place] = data.shape[outer]
        gaps[place] *= block
        begin, end = pads[place]
        pads[place] = [
            chain.cut.begins[outer] + block * begin - whole.begins[outer],
            chain.cut.ends[outer] + block * end - whole.ends[outer],
        ]
    if min(map(min, pads)) < 0:
        return []
    windows = head.inputs[1].shape[2 - rank :]
    made = [
        size + sum(pad) - number(reach(window, gap)) + 1
        for size, pad, window, gap in zip(sizes, pads, windows, gaps, strict=True)
    ]
    long = [output.shape[axis] for axis in chain.outer]
    if [made[axis - 2] for axis in chain.inner] != long or prod(made) != prod(long):
        return []
    words = {
        "strides": ",".join("1" * len(gaps)),
        "dilations": ",".join(map(str, gaps)),
        "pads_begin": ",".join(str(begin) for begin, _ in pads),
        "pads_end": ",".join(str(end) for _, end in pads),
        "auto_pad": "explicit",
    }
    image = Value((*data.shape[:2], *sizes), data.type)
    result = Value((data.shape[0], output.shape[1], *made), output.type)
    inputs = [image, *head.inputs[1:]]
    convolution = Node(head.layer, Op.registry[head.kind, 1].read(words), inputs, [result])
    convolution.is_whole = head.is_whole
    found = [reshaping(node.layer, data, image), convolution]
    for follower in chain.followers:
        step = Value(result.shape, output.type)
        others = [_beside(value, follower, result) for value in follower.inputs]
        found.append(Node(follower.layer, follower.op, others, [step]))
        result = step
    node.detach()
    return [*found, reshaping(node.layer, result, output)]


def _cut(node: Node | None, kind: str) -> _Cut | None:
    """How a node of a type cuts images or joins them; None where it does more, or is none."""
    if node is None or node.is_outside or not node.op.is_standard or node.op.xml_type != kind:
        return None
    if any(value.constant is None for value in node.inputs[1:]):
        return None
    words = [value.array.ravel().tolist() for value in node.inputs[1:]]
    if any(block != 1 for block in words[0][:2]) or any(words[1][:2]) or any(words[2][:2]):
        return None
    return _Cut(*words) if len(words[0]) == len(node.inputs[0].shape) else None


def _chain(node: Node) -> _Chain | None:
    """What leads from cut images to a node that joins them."""
    followers: list[Node] = []
    value = node.inputs[0]
    while True:
        maker = value.producer
        if maker is None or maker.epilogue or only_user(value) is None or maker.is_outside:
            return None
        if maker.kind in CONVOLUTIONS:
            break
        if maker.kind not in CUTS:
            if not _is_by_channel(maker):
                return None
            followers.insert(0, maker)
        value = _acted_on(maker)
    head, op = maker, _any(maker)
    cut_value = head.inputs[0]
    while cut_value.producer is not None and cut_value.producer.kind in CUTS:
        cut_value = cut_value.producer.inputs[0]
    images = [follower.outputs[0] for follower in followers] + [node.inputs[0]]
    if not all(_is_image(image, head.outputs[0]) for image in images):
        return None
    if not _is_image(cut_value, head.inputs[0]):
        return None
    cut = _cut(cut_value.producer, "SpaceToBatch")
    plain = not head.prologue and head.padding is None and set(op.strides) == {1}
    if cut is None or cut_value.producer is None or not plain or len(head.inputs) != 2:
        return None
    outer, inner = _long(cut_value), _long(head.inputs[0])
    after = _long(node.inputs[0]), _long(head.outputs[0])
    if len({len(value.shape) for value in (cut_value, head.inputs[0], *images)}) == 1:
        # No axes come or go: each is itself.
        outer, inner = ([*range(2, len(cut_value.shape))] for _ in range(2))
        after = outer, inner
    others = set(range(2, len(cut_value.shape))) - set(outer)
    if after != (outer, inner) or any(
        cut.blocks[axis] != 1 or cut.begins[axis] or cut.ends[axis] for axis in others
    ):
        return None
    return _Chain(cut_value.producer.inputs[0], cut, head, followers, outer, inner)


def _any(node: Node) -> Any:
    return node.op


def _long(value: Value) -> list[int]:
    """The spatial axes that are longer than one."""
    return [axis for axis in range(2, len(value.shape)) if value.shape[axis] > 1]


def _is_image(one: Value, other: Value) -> bool:
    """Whether two shapes differ by spatial axes of one element alone."""
    return one.shape[:2] == other.shape[:2] and [size for size in one.shape[2:] if size > 1] == [
        size for size in other.shape[2:] if size > 1
    ]


def _acted_on(node: Node) -> Value:
    """The input of a node that is computed."""
    return next(value for value in node.inputs if value.constant is None)


def _is_by_channel(node: Node) -> bool:
    """Whether a node does the same to each element of a channel."""
    (output,) = node.outputs
    if node.kind not in UNARY | BINARY or output.type != np.float32:
        return False
    rest = [value for value in node.inputs if value.constant is None]
    if len(rest) != 1 or rest[0].shape != output.shape or len(output.shape) < 3:
        return False
    return all(
        value is rest[0] or per_channel(value.array, output.shape) is not None
        for value in node.inputs
    )


def _beside(value: Value, follower: Node, image: Value) -> Value:
    """What a follower takes beside an image of another rank; the image itself in its place."""
    if value.constant is None:
        return image
    if value.constant.size == 1 or follower.kind == "PReLU":
        return value
    return constant(value.constant.reshape(1, -1, *[1] * (len(image.shape) - 2)))
