"""Weights that a row is multiplied by, kept in 16 bits each where nothing is lost of them.

Where they come from memory, half the bytes take half the time. Of numbers that float16 was widened
to nothing is lost.
"""

from __future__ import annotations

from math import prod
from typing import Any
from weakref import WeakValueDictionary, finalize

import numpy as np

from ....layers.budget import fits
from ....schemas import Array
from ..memory import copy_into, is_wished, shelved, side_by_side
from ..plan import Node, Plan, constant
from ..workers import HalfProducts, half_products

#: So many numbers do not stay in a processor's cache from call to call: they come from memory.
MANY = 1 << 23
#: Fewer are not worth the calls.
LEAST = 1 << 16
#: Bytes of a number.
HALF = 2
#: So many are looked at before all are.
FIRST = 1 << 10


def halve_weights(plan: Plan) -> None:
    """Round the weights of products of a row, if they are many and the library is there."""
    library = half_products()
    if library is None:
        return
    found = [node for node in plan.nodes if _multiplies_a_row(node)]
    size = sum(prod(node.inputs[1].shape) for node in found)
    # The numbers stay, for prompts: of memory that is there for both, half may be taken.
    if size < MANY or plan.means.is_small or not fits(2 * HALF * size):
        return
    for node in found:
        turned = bool(node.op.transpose_b)  # type: ignore[attr-defined]  # products have it
        halves = _halves(node.inputs[1].array, library, turned=turned)
        if halves is not None:
            node.replace_input(1, constant(halves))


def _multiplies_a_row(node: Node) -> bool:
    """Whether a node multiplies a row by a constant matrix, or one by each of some."""
    if node.kind != "MatMul" or node.is_outside or node.prologue or node.integers is not None:
        return False
    (left, right), (output,) = node.inputs, node.outputs
    if right.constant is None or min(len(left.shape), len(right.shape)) < 2 or output.last:
        return False
    lead, rows = output.shape[:-2], prod(output.shape[:-1])
    return (
        left.type == right.type == output.type == np.float32
        and prod(right.shape) >= LEAST
        and (rows == 1 or (output.shape[-2] == 1 and right.shape[:-2] == lead))
    )


def _halves(numbers: Array, library: HalfProducts, *, turned: bool) -> Array | None:
    """Matrices as float16, columns without gaps, if nothing of them is lost; plans share these."""
    along = numbers if numbers.flags.c_contiguous else numbers.swapaxes(-1, -2)
    first = along[(0,) * (along.ndim - 1)][:FIRST]
    with np.errstate(all="ignore"):
        if not along.flags.c_contiguous or (first != first.astype(np.float16)).any():
            return None
    by_columns = turned is (along is numbers)
    key = id(numbers), numbers.shape, numbers.strides, turned
    owner = _in_use.get(key)
    if owner is None:
        owner = np.frombuffer(side_by_side(2 * along.size).data, np.float16)
        if not library.halved(along, owner):
            return None
        if not by_columns:
            gaps = owner.reshape(along.shape).swapaxes(-1, -2)
            owner = np.frombuffer(side_by_side(2 * along.size).data, np.float16)
            copy_into(owner.reshape(gaps.shape), gaps)
        if is_wished():
            owner = shelved(owner)
            owner = owner.base if isinstance(owner.base, np.ndarray) else owner
        _in_use[key] = owner
        # Another array may get its number when this one is gone.
        finalize(numbers, _in_use.pop, key, None)
    columns = owner.reshape(along.shape if by_columns else along.swapaxes(-1, -2).shape)
    return columns if turned else columns.swapaxes(-1, -2)


#: Weights as float16, by the numbers that they were and how these lie, and whether columns do.
_in_use: WeakValueDictionary[tuple[Any, ...], Array] = WeakValueDictionary()
