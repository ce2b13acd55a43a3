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

from ..schemas import ANY, Array, Dim, ElementType, Shape, Size, Tensor, UnsupportedError
from ..schemas.shapes import limits
from ..schemas.tensor import Bounds
from ..schemas.types import numbers
from .budget import at_most

#: Values are carried through inference only while they are small: they describe shapes.
CARRIED = 4096
#: Up to here float64 tells whole numbers apart.
_EXACT = 2**53
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
        low, high, parts = low.copy(), high.copy(), parts.copy()
        for index, part in np.ndenumerate(parts):
            if not _is_held(part, low.dtype):
                parts[index] = ANY  # what the name says, and the type does not hold, wraps around
            elif not isinstance(part, Dim) and low[index] != high[index]:
                low[index] = high[index] = part
    return Tensor(out.type, low.shape, parts=parts, bounds=(low, high))


def _is_held(size: Size, dtype: np.dtype[Any]) -> bool:
    """Whether a type holds all that a size may be; what has no limit is taken to fit."""
    (low, high), (least, most) = limits(size), ends(dtype)
    return (least < 0 if low is None else low >= least) and (high is None or high <= most)


def corners(op: Any, lows: Sequence[Array], highs: Sequence[Array]) -> list[Bounds]:
    """Bounds of what grows and falls with two operands that broadcast: those of its extremes.

    An input without limit leaves the output without limit, and at no more than zero. So does an
    outcome that wraps around.
    """
    outcomes = [op.run(*pair)[0] for pair in product(*zip(lows, highs, strict=True))]
    low, high = np.minimum.reduce(outcomes), np.maximum.reduce(outcomes)
    endless: Any = False
    for first, second in (lows, highs):
        # The second operand may lie along other axes of the first than NumPy lays it.
        for limit in (first, op.aligned(first, second)):
            endless = endless | (limit == largest(limit.dtype))
    exact_low, exact_high = _exact(op, lows, highs)
    least, most = ends(low.dtype)
    if low.dtype.kind in "iu" and low.dtype.itemsize > 1:
        wraps = np.isfinite(exact_low) & (exact_low < least)
        wraps |= np.isfinite(exact_high) & (exact_high >= float(most))
        exact_low = np.where(wraps, -np.inf, exact_low)
        endless = endless | wraps
    endless = np.broadcast_to(endless | (exact_high == np.inf), low.shape)
    low = without(low, endless, np.clip(np.floor(exact_low), max(least, -_EXACT), 0))
    low = without(low, exact_low < -_EXACT, least)
    return [(low, without(high, endless, most))]


def _exact(op: Any, lows: Sequence[Array], highs: Sequence[Array]) -> Bounds:
    """The bounds by real numbers, infinite where there is no limit."""
    wide = [[as_reals(limit) for limit in limits] for limits in (lows, highs)]
    pairs = product(*zip(*wide, strict=True))
    found = [np.asarray(op.of(one, op.aligned(one, other))) for one, other in pairs]
    # Nothing, or no more than that, times or less what is infinite.
    found = [without(values, np.isnan(values), 0) for values in found]
    return np.minimum.reduce(found), np.maximum.reduce(found)


def as_reals(limits: Array) -> Array:
    """Limits as float64, infinite where the type's last number says that there is none."""
    wide = limits.astype(np.float64)
    if is_narrow(ElementType.of(limits.dtype)):
        return wide
    least, most = ends(limits.dtype)
    wide = without(wide, limits == most, np.inf)
    return without(wide, limits == least, -np.inf) if least < 0 else wide


def is_narrow(kind: ElementType) -> bool:
    """Whether it is a type whose largest number OpenVINO does not take for "without limit"."""
    return (kind.is_integral or kind is ElementType.BOOLEAN) and kind.bits <= 16


def without(values: Array, where: Array, instead: Any) -> Array:
    """The values, with others in the place of some."""
    return np.where(where, np.asarray(instead, values.dtype), values)


def largest(dtype: np.dtype[Any]) -> Any:
    """The largest number of a type."""
    return ends(dtype)[1]


def ends(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the largest number of a type."""
    if dtype == np.bool_:
        return False, True
    ends = numbers(dtype)
    return ends.min, ends.max
