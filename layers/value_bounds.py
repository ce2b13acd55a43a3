"""How values, whole or partly known, go through an operation while shapes are inferred.

As in OpenVINO, what is known of a value is the least and the greatest number that each element
may be, in the tensor's own type; the type's largest number stands for "without limit". Most
operations turn the least inputs into the least outputs and the greatest into the greatest;
those that do not, such as a difference, say so in :meth:`Op.bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, ClassVar, Protocol

import numpy as np

from ..schemas import Array, Dim, Shape, Tensor, UnsupportedError
from ..schemas.tensor import Bounds
from ..schemas.types import numbers
from .budget import at_most

#: Values are carried through inference only while they are small: they describe shapes.
CARRIED = 4096
#: Nor is it worth much memory beside them.
_WORK = 1 << 24


class Carrier(Protocol):
    """What an operation says of how values go through it."""

    is_random: ClassVar[bool]
    rows_vary: ClassVar[bool]

    def run(self, *inputs: Any, **_: Any) -> tuple[Array, ...]:
        """The outputs, from the inputs."""

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        """Least and greatest values of each output, from those of the inputs."""

    def carry_sizes(self, *inputs: Any) -> Sequence[Array | None] | None:
        """The outputs for inputs that are arrays of named sizes."""

    @classmethod
    def may_vary(cls, index: int) -> bool:
        """Whether something is known of the outputs where this input is only partly known."""


def carry(
    op: Carrier, inputs: Sequence[Tensor], outputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Work out what is known of the outputs' values, where the inputs are known and small."""
    if op.is_random or op.rows_vary:
        return outputs
    if any(out.bounds is not None or out.type.is_dynamic for out in outputs):
        return outputs
    known = [tensor.bounds for tensor in inputs]
    if not known or None in known:  # most often, and found faster than the number of elements
        return outputs
    if not all(_is_small(tensor.shape) for tensor in (*inputs, *outputs)):
        return outputs
    lows, highs = ([pair[side] for pair in known if pair is not None] for side in (0, 1))
    partly = [index for index, tensor in enumerate(inputs) if tensor.value is None]
    if not all(op.may_vary(index) for index in partly):
        return outputs
    with np.errstate(all="ignore"), at_most(_WORK):
        try:
            if partly:
                bounds = op.bounds(lows, highs)
            else:
                values = nothing(outputs)
                bounds = [(value, value) for value in values or op.run(*lows)]
        except (MemoryError, NotImplementedError, UnsupportedError):
            return outputs
        if bounds is None:
            return outputs
        named = _named(op, inputs) or [None] * len(outputs)
    return tuple(
        _filled(out, pair, parts) for out, pair, parts in zip(outputs, bounds, named, strict=True)
    )


def nothing(outputs: Sequence[Tensor]) -> tuple[Array, ...] | None:
    """Outputs that are known to be all empty; a kernel may go through much to find nothing."""
    if not outputs or not all(map(_is_empty, outputs)):
        return None
    return tuple(np.empty(out.shape.static, out.type.dtype) for out in outputs)


def _is_empty(tensor: Tensor) -> bool:
    return tensor.shape.is_static and 0 in tensor.shape.static and not tensor.type.is_dynamic


def _is_small(shape: Shape) -> bool:
    # An empty array may have other sizes that are too large for NumPy.
    return shape.is_static and prod(max(size, 1) for size in shape.static) <= CARRIED


def _named(op: Carrier, inputs: Sequence[Tensor]) -> Sequence[Array | None] | None:
    """The outputs as sizes that keep their names, where the inputs have such."""
    if not any(tensor.has_symbols for tensor in inputs):
        return None
    parts = [t.parts if op.may_vary(i) else t.value for i, t in enumerate(inputs)]
    return None if any(part is None for part in parts) else op.carry_sizes(*parts)


def _filled(out: Tensor, bounds: Bounds, parts: Array | None) -> Tensor:
    """The tensor with what is known of its value."""
    low, high = (limit.astype(out.type.dtype, copy=False) for limit in bounds)
    if parts is not None and low is not high:
        # Names may tell a size exactly where limits do not: B - B is 0.
        exact = np.array([not isinstance(part, Dim) for part in parts.ravel()], bool)
        exact = exact.reshape(parts.shape)
        low, high = low.copy(), high.copy()
        low[exact] = high[exact] = parts[exact].astype(low.dtype)
    return Tensor(out.type, low.shape, parts=parts, bounds=(low, high))


def corners(op: Any, lows: Sequence[Array], highs: Sequence[Array]) -> list[Bounds]:
    """Bounds of what grows and falls with two operands that broadcast: those of its extremes.

    An input without limit leaves the output without limit.
    """
    outcomes = [op.run(*pair)[0] for pair in product(*zip(lows, highs, strict=True))]
    low, high = np.minimum.reduce(outcomes), np.maximum.reduce(outcomes)
    open_ended: Any = False
    for first, second in (lows, highs):
        # The second operand may lie along other axes of the first than NumPy lays it.
        for limit in (first, op.aligned(first, second)):
            open_ended = open_ended | (limit == largest(limit.dtype))
    open_ended = np.broadcast_to(open_ended, low.shape)
    return [(without(low, open_ended, 0), without(high, open_ended, largest(high.dtype)))]


def without(values: Array, where: Array, instead: Any) -> Array:
    """The values, with others in the place of some."""
    return np.where(where, np.asarray(instead, values.dtype), values)


def largest(dtype: np.dtype[Any]) -> Any:
    """The largest number of a type."""
    if dtype == np.bool_:
        return True
    return numbers(dtype).max
