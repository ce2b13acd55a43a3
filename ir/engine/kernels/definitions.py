"""What has no kernel, shared: the definition of an operation, of some elements or rows at a time.

What lies between stays in cache, and takes no fresh memory, which costs more than sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....layers.elementwise import Binary, Unary
from ....schemas import Array
from ..plan import Node
from ..workers import Part, sequence, spans
from .blocks import CACHE, Scratch, kept
from .matrices import even_pieces

#: Fewer bytes are sooner made in one go.
SHARED = 1 << 16


def in_pieces(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a node by its definition; None where nothing is to be shared."""
    found = each(node, abreast, scratch)
    return by_rows(node, abreast, scratch) if found is None else found


def each(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """What is done to each element by itself, block by block; None of other operations."""
    op: Any = node.op
    if not op.is_standard:
        return None  # somebody's own may do more than what it derives from
    if not isinstance(op, Unary | Binary) and op.xml_type not in BESIDE:
        return None
    output, aligned = node.outputs[0], getattr(op, "auto_broadcast", "numpy") == "numpy"
    if not aligned or not _is_worth_it(node):
        return None
    assert output.store is not None
    target = output.store
    given = [
        value.array.reshape(()) if prod(value.shape) == 1
        else kept(value, output.shape, output.last)
        for value in node.inputs
    ]  # fmt: skip
    blocks = even_pieces(target.shape, CACHE // 8, abreast)
    steps: list[Part] = []
    for _, (begin, end) in scratch.dealt(spans(len(blocks), abreast)):
        parts = [
            partial(_by_definition, op, [x[index] if x.ndim else x for x in given], target[index])
            for index in blocks[begin:end]
        ]
        steps.append(sequence(parts))
    return [steps]


def _summed_along(op: Any, node: Node) -> int | None:
    if len(node.inputs) < 2:
        return 0
    axis = node.inputs[1].constant
    return None if axis is None else int(axis.ravel()[0]) % len(node.inputs[0].shape)


#: Functions of each number and one or two more.
BESIDE = frozenset({"FakeConvert", "HardSigmoid", "Selu"})
#: Operations along one axis, which rows along others know nothing of; -1: along none. By name:
#: a network that has none of them need not load what they are.
ALONG: dict[str, Callable[[Any, Node], int | None]] = {
    "CumSum": _summed_along,
    "LogSoftmax": lambda op, node: op.along(len(node.inputs[0].shape)),
    "Bucketize": lambda op, node: -1,
}


def by_rows(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The same of what is done along one axis, some rows at a time."""
    asked, output = ALONG.get(node.op.xml_type), node.outputs[0]
    if asked is None or not (node.op.is_standard and _is_worth_it(node)):
        return None
    first, *others = node.inputs
    axis = asked(node.op, node)
    if axis is None or first.is_fixed or any(value.constant is None for value in others):
        return None
    shape = output.shape
    free = [place for place in range(len(shape)) if place != axis]
    if first.shape != shape or not free:
        return None
    cut = next((p for p in free if shape[p] >= 2 * abreast), max(free, key=shape.__getitem__))
    given, made, rest = first.array, output.array, [value.array for value in others]
    # Parts of longer rows are short runs of memory: there as few as there are workers.
    whole = -(-prod(shape) // (CACHE // 8)) if axis < 0 or cut < axis else 1
    pieces = spans(shape[cut], max(abreast, whole))
    steps: list[Part] = []
    for _, (begin, end) in scratch.dealt(spans(len(pieces), abreast)):
        places = [(slice(None),) * cut + (slice(*run),) for run in pieces[begin:end]]
        parts = [
            partial(_by_definition, node.op, [given[place], *rest], made[place])
            for place in places
        ]
        steps.append(sequence(parts))
    return [steps]


def _is_worth_it(node: Node) -> bool:
    """Whether there is much to share: numbers as they are, and not the caller's own arrays.

    For these nothing would have to be copied, were they taken as a whole.
    """
    (output, *others), values = node.outputs, [v for v in node.inputs if v.constant is None]
    if others or not output.shape or output.nbytes < SHARED or node.epilogue or node.prologue:
        return False
    if any(value.producer is None or value.grid is not None for value in values):
        return False
    return output.grid is None and not any(v.type.hasobject for v in (output, *values))


def _by_definition(op: Any, given: Sequence[Array], target: Array) -> None:
    np.copyto(target, op.run(*given)[0])
