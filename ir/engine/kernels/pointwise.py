"""Elementwise operations, local response normalisation, products with matrices, and the rest."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from ....layers.choice import choose
from ....schemas import Array
from ..memory import keep_what_is_freed_for, unshared_copy
from ..plan import MOVING, UNARY, Node, Value, is_function_of, stands_beside
from ..workers import Part, spans
from .activations import QUICK_POWERS
from .beside_levels import read
from .blocks import (
    CACHE,
    QUANTIZE,
    UFUNCS,
    Scratch,
    epilogue,
    followed,
    follower,
    is_finite,
    kept,
    limits,
    lined,
    sequence,
    shuffled,
    slopes,
    tileable,
)
from .calls import call
from .functions import tabulated
from .loose import quick
from .matrices import even_pieces
from .pooling import joined


def elementwise(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an elementwise operation and its followers, block by block."""
    output = node.outputs[0]
    if output.type not in NUMBERS or not all(_is_number(value) for value in node.inputs):
        return None
    if node.kind not in UNARY and getattr(node.op, "auto_broadcast", "") != "numpy":
        return None
    assert output.store is not None
    if not output.shape:
        return None
    found = next((value for value in node.inputs if value.grid is not None), None)
    if found is not None and found.last == output.last and is_function_of(node, found):
        return tabulated(node, found, abreast, scratch)
    others = node.inputs[1:]
    if node.kind in UNARY and not stands_beside(
        node.op, [value.shape for value in others], output.shape
    ):
        return None
    given = [kept(node.inputs[0], output.shape, output.last)]
    if node.kind not in UNARY:
        given += [kept(value, output.shape, output.last) for value in others]
    elif any(value.constant is None for value in others):
        return None
    elif node.kind == "PReLU":
        given.append(slopes(node.inputs[1], output))
    elif node.kind == QUANTIZE:
        given += limits(others, output)
    else:
        # Parameters of activations: numbers.
        given += [value.constant for value in others if value.constant is not None]
    target = output.store
    fixed = tileable(node.inputs, output)
    finite = is_finite(node.inputs[0])
    head = follower(node.op, [None, *given[1:]], scratch, fixed=fixed, finite=finite)
    squares = node.kind == "SquaredDifference"
    function = np.subtract if squares else UFUNCS.get(node.kind)
    if function is None and node.kind not in UNARY:
        return None
    followers = epilogue(node, scratch)
    count = prod(output.shape)
    if not count:
        return [[lambda: None]]
    lanes = abreast if 4 * count > 1 << 16 else 1
    blocks = even_pieces(target.shape, max(1, min(CACHE // 8, -(-count // lanes))), lanes)
    steps: list[Part] = []
    operands = 1 if function is None else 2
    # What becomes levels in the end has not the room of numbers before.
    beside = bool(node.epilogue) and output.type != np.float32
    for part, (begin, end) in scratch.dealt(spans(len(blocks), lanes)):
        parts: list[Part] = []
        for index in blocks[begin:end]:
            scratch.reset()
            block = scratch.take(part, *target[index].shape) if beside else target[index]
            left, *right = (
                read(array[index], value.grid, partial(scratch.take, part), parts)
                for array, value in zip(given[:operands], node.inputs[:operands], strict=True)
            )
            if function is None:
                parts += head(left, index, block)
            else:
                parts.append(lined(function, left, right[0], block, scratch, fixed=fixed))
            if squares:
                parts.append(call(np.multiply, block, block, out=block))
            parts += followed(followers, block, index, target[index] if beside else None)
        steps.append(sequence(parts))
    return [steps]


def selected(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a Select of numbers, block by block."""
    (mask, *others), output = node.inputs, node.outputs[0]
    if node.op.auto_broadcast != "numpy" or mask.type != np.bool_:  # type: ignore[attr-defined]  # Select has it
        return None
    if any(value.type != np.float32 for value in (*others, output)):
        return None
    if not output.shape or not output.nbytes:
        return None
    assert output.store is not None
    target = output.store
    given = [kept(value, output.shape, output.last) for value in (mask, *others)]
    count = prod(output.shape)
    lanes = abreast if 4 * count > 1 << 16 else 1
    blocks = even_pieces(target.shape, max(1, min(CACHE // 8, -(-count // lanes))), lanes)
    steps: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(blocks), lanes)):
        parts: list[Part] = []
        for index in blocks[begin:end]:
            scratch.reset()
            asked, then, other, out = (array[index] for array in (*given, target))
            # What holds for several is looked at once.
            once = tuple(slice(0, None if step else 1) for step in asked.strides)
            asked = asked[once]
            room = scratch.take(part, *asked.shape).view(np.int32)
            parts.append(partial(choose, asked, then, other, out, room))
        steps.append(sequence(parts))
    return [steps]


def _is_number(value: Value) -> bool:
    """Whether a value holds numbers, or levels that stand for such."""
    return value.type == np.float32 or value.grid is not None


#: Numbers, and levels of such.
NUMBERS = (np.float32, np.int8)


def local_response(node: Node, abreast: int, scratch: Scratch) -> list[list[Part]] | None:
    """LRN over channels that are kept last: sums of shifted squares."""
    value, output = node.inputs[0], node.outputs[0]
    axes = node.inputs[1].constant
    op: Any = node.op
    if axes is None or axes.ravel().tolist() not in ([1], [1 - len(value.shape)]):
        return None
    half = (op.size - 1) // 2
    channels = value.shape[1]
    if not value.last or value.type != np.float32 or channels < 2 * half:
        return None
    if op.bias <= 0 or op.alpha < 0:
        return None  # powers of what may be negative
    assert value.store is not None
    assert output.store is not None
    source = value.store.reshape(-1, channels)
    target = output.store.reshape(-1, channels)
    if not np.shares_memory(target, output.store) or not np.shares_memory(source, value.store):
        return None
    steps: list[Part] = []
    for part, (begin, end) in scratch.dealt(spans(len(source), abreast)):
        parts: list[Part] = []
        for first, stop in spans(end - begin, -(-(end - begin) * channels // SQUARES)):
            scratch.reset()
            block, out = (array[begin + first : begin + stop] for array in (source, target))
            squares = scratch.take(part, *block.shape)
            total = scratch.take(part, *block.shape)
            parts.append(call(np.multiply, block, block, out=squares))
            parts += _around(squares, half, total, part, scratch)
            parts += [
                call(np.multiply, total, np.float32(op.alpha / op.size), out=total),
                call(np.add, total, np.float32(op.bias), out=total),
            ]
            if op.beta == 0.75 and not QUICK_POWERS:
                # x ** 0.75 is sqrt(x) * sqrt(sqrt(x)), and square roots are quick everywhere.
                parts += [
                    call(np.sqrt, total, out=total),
                    call(np.sqrt, total, out=squares),
                    call(np.multiply, total, squares, out=total),
                    call(np.divide, block, total, out=out),
                ]
            else:
                parts += [
                    call(np.log2, total, out=total),
                    call(np.multiply, total, np.float32(-op.beta), out=total),
                    call(np.exp2, total, out=total),
                    call(np.multiply, block, total, out=out),
                ]
        steps.append(sequence(parts))
    return [steps]


def _around(squares: Array, half: int, total: Array, part: int, scratch: Scratch) -> list[Part]:
    """Parts that sum up to ``half`` neighbours either way along rows.

    All rows are summed as one; then the ends of rows, where there is less than that, anew.
    """
    size = 2 * half + 1
    middle = total.reshape(-1)[half : total.size - half]
    parts = joined(np.add, squares.reshape(-1), size, 1, middle, part, scratch)
    for given, sums in ((squares, total), (squares[:, ::-1], total[:, ::-1])):
        columns, found = given.T, sums.T
        if half:
            parts.append(call(np.add, columns[0], columns[1], out=found[0]))
        for place in range(2, half + 1):
            parts.append(call(np.add, found[0], columns[place], out=found[0]))
        for place in range(1, half):
            parts.append(call(np.add, found[place - 1], columns[place + half], out=found[place]))
    return parts


#: So many squares are summed at once: fewer take more calls, more do not stay in cache.
SQUARES = 3 << 15


def shuffle(node: Node) -> list[list[Part]] | None:
    """ShuffleChannels where channels are kept last."""
    value, output = node.inputs[0], node.outputs[0]
    op: Any = node.op
    if not (value.last and output.last) or op.axis not in (1, 1 - len(value.shape)):
        return None
    return [[sequence(shuffled(*_stores(node), op.group))]]


def _stores(node: Node) -> tuple[Array, Array]:
    source, target = node.inputs[0].store, node.outputs[0].store
    assert source is not None
    assert target is not None
    return source, target


def otherwise(node: Node, scratch: Scratch) -> list[list[Part]]:
    """Any operation by its definition; at the ends of a plan on the caller's own arrays."""
    keep_what_is_freed_for(node)
    followers = epilogue(node, scratch)
    at = node.layer.at
    with at():
        kernel = quick(node.op, node.op.prepare([value.tensor for value in node.inputs]))
    places = [value.store for value in node.outputs]
    made = [(value, value.store, value.array) for value in node.outputs]
    # What becomes levels in the end has not the room of numbers before.
    place = places[0] if places else None
    beside = place is not None and place.dtype == np.int8 and followers
    room = np.empty(place.shape, np.float32) if beside and place is not None else None
    rule: Any = "unsafe" if node.kind == QUANTIZE else "same_kind"
    # What nodes make lies where it does for good; the caller may bring arrays of his own.
    # What only moves levels need not know what they stand for.
    given = [
        (value, value.array if value.producer or value.constant is not None else None,
         None if node.kind in MOVING else value.grid)
        for value in node.inputs
    ]  # fmt: skip

    def run() -> None:
        arrays = [value.array if here is None else here for value, here, _ in given]
        inputs = [
            array if grid is None else grid.numbers(array)
            for array, (_, _, grid) in zip(arrays, given, strict=True)
        ]
        try:
            found = kernel(*inputs)
            taken = inputs
            for (value, place, target), result in zip(made, found, strict=True):
                if room is not None and value is node.outputs[0]:
                    np.copyto(np.moveaxis(room, -1, 1) if value.last else room, result)
                elif value.store is place:
                    np.copyto(target, result, casting=rule)
                else:
                    value.store = unshared_copy(result, taken, value.type)
                    taken = [*taken, value.store]
        except Exception:
            with at():
                raise

    node.looks_up = not followers and not any(v.last for v in (*node.inputs, *node.outputs))
    parts = [run]
    if followers:
        assert places[0] is not None
        block = places[0] if room is None else room
        parts += followed(followers, block, (...,), places[0])
    return [[sequence(parts)]]
