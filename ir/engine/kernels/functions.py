"""What is made of numbers of few levels is looked up: there are no more results than levels."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....schemas import Array
from ..plan import Grid, Node, Value
from ..workers import Part, sequence, spans
from .blocks import Scratch
from .matrices import even_pieces
from .rooms import NEAR


def tabulated(node: Node, value: Value, abreast: int, scratch: Scratch) -> list[list[Part]]:
    """The steps of a node that makes something of each number of a value of levels."""
    (output,) = node.outputs
    assert value.grid is not None
    assert value.store is not None
    assert output.store is not None
    entries = _entries(node, value, value.grid, output.type)
    given, made = value.store.view(np.uint8), output.store
    if given.flags.c_contiguous and made.flags.c_contiguous:
        given, made = given.reshape(-1), made.reshape(-1)
    lanes = abreast if made.size > NEAR else 1
    blocks = even_pieces(made.shape, NEAR, lanes)
    parts: list[Part] = []
    for _, (begin, end) in scratch.dealt(spans(len(blocks), lanes)):
        cuts = [partial(_found, entries, given[cut], made[cut]) for cut in blocks[begin:end]]
        parts.append(sequence(cuts))
    return [parts]


def _entries(node: Node, value: Value, grid: Grid, kind: np.dtype) -> Array:
    """What a node makes of each level, by its byte."""
    levels = np.arange(256).astype(np.uint8).view(np.int8)
    numbers = grid.numbers(levels).reshape(*[1] * (len(value.shape) - 1), -1)

    def read(other: Value | None, made: Array | None) -> Array | None:
        if other is None:
            return made
        return numbers if other is value else other.constant

    with np.errstate(all="ignore"):
        (found,) = node.op.run(*[read(other, None) for other in node.inputs])
        for op, others in node.epilogue:
            (found,) = op.run(*[read(other, found) for other in others])
    return np.asarray(found).reshape(-1).astype(kind)


def _found(entries: Array, given: Array, made: Array) -> None:
    if made.itemsize == 1:
        found = np.frombuffer(given.tobytes().translate(entries.tobytes()), np.uint8)
        np.copyto(made.view(np.uint8), found.reshape(made.shape))
    else:
        entries.take(given, out=made, mode="clip")
