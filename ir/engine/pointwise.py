"""Elementwise operations, local response normalisation, products with matrices, and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...schemas import Array
from .blocks import (
    CACHE,
    UFUNCS,
    Scratch,
    call,
    epilogue,
    filling,
    followed,
    follower,
    kept,
    lined,
    sequence,
    shuffled,
    slopes,
    tileable,
)  # fmt: skip
from .graph import UNARY, Node
from .team import Part, spans


def elementwise(node: Node, threads: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of an elementwise operation and its followers, block by block."""
    output = node.outputs[0]
    if output.type != np.float32 or any(v.type != np.float32 for v in node.inputs):
        return None
    if node.kind not in UNARY and getattr(node.op, "auto_broadcast", "") != "numpy":
        return None
    assert output.store is not None
    if not output.shape:
        return None
    given = [kept(node.inputs[0], output.shape, output.last)]
    if node.kind not in UNARY:
        given += [kept(value, output.shape, output.last) for value in node.inputs[1:]]
    elif any(value.constant is None for value in node.inputs[1:]):
        return None
    elif node.kind == "PReLU":
        given.append(slopes(node.inputs[1], output))
    else:
        # Parameters of activations: numbers.
        given += [value.constant for value in node.inputs[1:] if value.constant is not None]
    target = output.store
    fixed = tileable(node.inputs, output)
    head = follower(node.op, [None, *given[1:]], scratch, fixed=fixed)
    function = UFUNCS.get(node.kind)
    if function is None and node.kind not in UNARY:
        return None
    followers = epilogue(node, scratch)
    # Cut along the longest run of leading axes that is worth it.
    axis = next((i for i, size in enumerate(target.shape) if size > 1), 0)
    rows = target.shape[axis]
    per_row = max(1, output.nbytes // max(rows, 1)) * 2
    at_once = max(1, CACHE // per_row)
    lanes = threads if output.nbytes > 1 << 16 else 1
    steps: list[Part] = []
    for begin, end in spans(rows, lanes):
        parts: list[Part] = []
        for first in range(begin, end, at_once):
            index = (slice(None),) * axis + (slice(first, min(first + at_once, end)),)
            block = target[index]
            if function is None:
                parts += head(given[0][index], index, block)
            elif fixed:
                left, right = (array[index] for array in given)
                parts.append(lined(function, left, right, block, scratch))
            else:
                left, right = (array[index] for array in given)
                parts.append(call(function, left, right, out=block))
            parts += followed(followers, block, index)
        steps.append(sequence(parts))
    return [steps] if steps else [[lambda: None]]


def local_response(node: Node, threads: int, scratch: Scratch) -> list[list[Part]] | None:
    """LRN over channels that are kept last: sums of shifted squares."""
    value, output = node.inputs[0], node.outputs[0]
    axes = node.inputs[1].constant
    op: Any = node.op
    if axes is None or axes.ravel().tolist() not in ([1], [1 - len(value.shape)]):
        return None
    if not value.last or value.type != np.float32 or op.beta != 0.75:
        return None
    assert value.store is not None
    assert output.store is not None
    channels = value.shape[1]
    source = value.store.reshape(-1, channels)
    target = output.store.reshape(-1, channels)
    if not np.shares_memory(target, output.store) or not np.shares_memory(source, value.store):
        return None
    before = op.size // 2
    steps: list[Part] = []
    factor, bias = np.float32(op.alpha / op.size), np.float32(op.bias)
    # Rows with a margin of zeros: sums run over all of a block as one row.
    wide = channels + op.size - 1
    at_once = max(1, CACHE // (wide * 4 * 3))
    for part, (begin, end) in enumerate(spans(len(source), threads)):
        parts: list[Part] = []
        for first in range(begin, end, at_once):
            scratch.reset()
            stop = min(first + at_once, end)
            rows = stop - first
            squares = scratch.take(part, rows * wide + op.size)
            total = scratch.take(part, rows * wide)
            spare = scratch.take(part, rows * wide)
            grid = squares[: rows * wide].reshape(rows, wide)
            middle = grid[:, before : before + channels]
            block, out = source[first:stop], target[first:stop]
            parts += [
                filling(grid[:, :before], 0),
                filling(grid[:, before + channels :], 0),
                filling(squares[rows * wide :], 0),
                call(np.multiply, block, block, out=middle),
            ]
            shifts = [squares[i : i + rows * wide] for i in range(op.size)]
            parts.append(
                call(np.add, shifts[0], shifts[1], out=total)
                if len(shifts) > 1
                else call(np.copyto, total, shifts[0])
            )
            parts += [call(np.add, total, shift, out=total) for shift in shifts[2:]]
            # x ** -0.75 is 1 / (sqrt(x) * sqrt(sqrt(x))), and square roots are quick.
            parts += [
                call(np.multiply, total, factor, out=total),
                call(np.add, total, bias, out=total),
                call(np.sqrt, total, out=total),
                call(np.sqrt, total, out=spare),
                call(np.multiply, total, spare, out=total),
                call(np.divide, block, total.reshape(rows, wide)[:, :channels], out=out),
            ]
        steps.append(sequence(parts))
    return [steps]


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
    """Any operation by its definition, copied to where its outputs belong."""
    inputs = [value.array for value in node.inputs]
    outputs = [value.array for value in node.outputs]
    op, at = node.op, node.layer.at

    def run() -> None:
        with at():
            for target, result in zip(outputs, op.run(*inputs), strict=True):
                np.copyto(target, result)

    parts = [run]
    followers = epilogue(node, scratch)
    store = node.outputs[0].store
    if followers:
        assert store is not None
        parts += followed(followers, store, (...,))
    return [[sequence(parts)]]
