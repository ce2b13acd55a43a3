"""Attention of several queries to the same keys and values, which are not repeated for each.

Exporters repeat them by Unsqueeze, Broadcast and Reshape, so that there are as many as queries;
of what grows with each word that would be a copy of all that was ever seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...layers.base import Kernel
from ...layers.budget import require
from ...layers.matrix import usual_scale
from ...schemas import Array, Dim, Shape
from .kernels import Rooms, Scratch, attend
from .memory import ask_for
from .plan import Node, Plan, Value, claimed_type, only_user
from .workers import Crew, lanes

#: What repeats each head, from the last to the first.
REPEATED = ("Reshape", "Broadcast", "Unsqueeze")
#: From so many queries, and products for all keys, on threads share them.
MANY, LARGE = 16, 1 << 22


def share_heads(plan: Plan) -> set[Node]:
    """Let attention outside take keys and values as they are before they are repeated.

    It gives the nodes that do so.
    """
    found: set[Node] = set()
    for node in plan.nodes:
        if not node.is_outside or node.layer.type != "ScaledDotProductAttention":
            continue
        if not 3 <= len(node.inputs) <= 5 or not is_plain(node):
            continue
        query = node.inputs[0].tensor.shape
        keys, values = (_before(value, query) for value in node.inputs[1:3])
        if keys is None or values is None or keys.tensor.shape[1] != values.tensor.shape[1]:
            continue
        # A mask may repeat queries, too.
        given, made = (Shape(shape[:3]) for shape in (query, node.outputs[0].tensor.shape))
        if given != made or not made.is_static:
            continue
        node.set_inputs([node.inputs[0], keys, values, *node.inputs[3:]])
        found.add(node)
    if found:
        plan.prune()
    return found


def is_shared(arrays: Sequence[Array]) -> bool:
    """Whether these are queries, keys and values of as many heads, and what ``attended`` takes."""
    query, keys, values, *others = arrays
    if not query.ndim == keys.ndim == values.ndim == 4 or keys.shape[2] != values.shape[2]:
        return False
    if not query.shape[:2] == keys.shape[:2] == values.shape[:2] or len(others) > 2:
        return False
    mask = others[0] if others else None
    if mask is None:
        return True
    sizes = keys.shape[2], *query.shape[2::-1]
    return (
        2 <= mask.ndim <= 4
        and mask.dtype in (np.float32, np.bool_)
        and all(size in (1, n) for size, n in zip(reversed(mask.shape), sizes, strict=False))
    )


def is_plain(node: Node, *, causal: bool = False) -> bool:
    """Whether the keys that count are told by a mask alone, or by nothing but their places."""
    real = all(value.type == np.float32 for value in node.inputs[:3])
    return real and bool(node.op.causal) == causal  # type: ignore[attr-defined]  # attention has it


def _before(value: Value, query: Shape) -> Value | None:
    """A value (batch, heads, length, depth) before each head was repeated for some queries."""
    shapes = [value.tensor.shape]
    for kind in REPEATED:
        maker = value.producer
        if maker is None or only_user(value) is None or not maker.is_outside:
            return None
        # Claimed versions alone: another operation may only be called like that.
        if claimed_type(type(maker.op)) != kind:
            return None
        value = maker.inputs[0]
        shapes.append(value.tensor.shape)
    if [shape.rank for shape in (query, *shapes)] != [4, 4, 5, 5, 4]:
        return None
    after, repeated, apart, before = shapes
    batch, heads, _, depth = before
    times = repeated[2]
    if isinstance(heads, Dim) or isinstance(times, Dim):
        return None
    if isinstance(batch, Dim) or isinstance(depth, Dim):
        return None
    sizes = (
        (after[0], after[1], after[3]) == (batch, heads * times, depth)
        and (repeated[0], repeated[1], repeated[4]) == (batch, heads, depth)
        and (apart[0], apart[1], apart[2], apart[4]) == (batch, heads, 1, depth)
        and (query[0], query[1]) == (batch, heads * times)
    )
    return value if sizes and value.is_outside else None


class Attention:
    """Values weighted by how well keys match; each is for as many queries as follow each other.

    Of many queries threads take some each, a few at a time.
    """

    def __init__(self, crew: Crew[Rooms], scratch: Scratch) -> None:
        self._crew, self._scratch = crew, scratch

    def __call__(
        self,
        query: Array,
        keys: Array,
        values: Array,
        mask: Array | None = None,
        scale: Array | None = None,
    ) -> tuple[Array, ...]:
        """The weighted values."""
        batch, heads, rows, depth = query.shape
        length = keys.shape[2]
        if 0 in (batch, heads, rows, length):  # nobody asks, or there is nothing to be seen
            return (np.zeros((batch, heads, rows, values.shape[-1]), np.float32),)
        factor = np.float32(usual_scale(depth) if scale is None else scale.reshape(-1)[0])
        if not _are_many(query, keys):
            require(2 * batch * heads * rows * length * query.itemsize)
            return (_attended(query, keys, values, mask, factor),)
        return self._shared_out(query, keys, values, mask, factor)

    def up_to_own(self, general: Kernel) -> Kernel:
        """The same where each query sees the keys up to its own place; of a few by ``general``."""

        def run(query: Array, keys: Array, values: Array, *others: Array) -> tuple[Array, ...]:
            if len(others) > 1 or not is_shared((query, keys, values)):
                return general(query, keys, values, *others)
            if not _are_many(query, keys):
                return general(query, keys, values, *others)
            factor = np.float32(usual_scale(query.shape[-1]))
            return self._shared_out(query, keys, values, None, factor, causal=True)

        return run

    def _shared_out(
        self,
        query: Array,
        keys: Array,
        values: Array,
        mask: Array | None,
        factor: np.float32,
        *,
        causal: bool = False,
    ) -> tuple[Array, ...]:
        """What threads make of many queries."""
        (batch, heads, rows, depth), (shared, length) = query.shape, keys.shape[1:3]
        shape = batch, heads, rows, values.shape[-1]
        ask_for(4 * prod(shape))
        made = np.empty(shape, np.float32)
        if mask is not None:
            mask = np.broadcast_to(mask, (batch, heads, rows, length))
        group = batch, shared, heads // shared, rows
        amount = query.size * length
        parts = attend(
            query.reshape(*group, depth),
            _in_rows(keys)[:, :, None],
            _in_rows(values)[:, :, None],
            None if mask is None else mask.reshape(*group, length),
            factor,
            made.reshape(*group, -1),
            lanes(amount),
            self._scratch,
            causal=causal,
        )
        self._crew.work(parts)
        return (made,)


def _are_many(query: Array, keys: Array) -> bool:
    """Whether queries are so many that threads share them."""
    return query.shape[2] >= MANY and query.size * keys.shape[2] >= LARGE


def _in_rows(stack: Array) -> Array:
    """Matrices as BLAS takes them: copied where they lie otherwise."""
    down, along = stack.strides[-2:]
    fits = along == stack.itemsize and down >= along * stack.shape[-1]
    return stack if fits else np.ascontiguousarray(stack)


def _attended(
    query: Array, keys: Array, values: Array, mask: Array | None, factor: np.float32
) -> Array:
    """The same at once, for a few queries."""
    batch, heads, rows, depth = query.shape
    shared, length = keys.shape[1:3]
    together = heads // shared * rows
    group = (query * factor).reshape(batch, shared, together, depth)
    scores = np.matmul(group, keys.swapaxes(-1, -2)).reshape(batch, heads, rows, length)
    if mask is not None and mask.dtype == np.bool_:
        scores = np.where(mask, scores, np.float32(-np.inf))
    elif mask is not None:
        np.add(scores, mask, scores)
    np.subtract(scores, np.maximum.reduce(scores, axis=-1, keepdims=True), scores)
    np.exp(scores, scores)
    found = np.matmul(scores.reshape(batch, shared, together, length), values)
    found = found.reshape(batch, heads, rows, -1)
    np.divide(found, np.add.reduce(scores, axis=-1, keepdims=True), found)
    return found
