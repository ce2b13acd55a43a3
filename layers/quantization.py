"""Values rounded to a few levels, or to an 8-bit float, and brought back.

Specification pages: FakeQuantize-1, FakeConvert-13.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from ..schemas import Array, ElementType, IRError, Shape, Tensor
from ..schemas.attributes import Alias, Int, Type
from .axes import Rule, broadcast
from .base import Op, element_type
from .casting import narrowed
from .elementwise import settled


class FakeQuantizeV1(Op):
    """Rounded to one of ``levels`` between two limits, then laid between two others.

    What is outside the limits becomes the lower or the upper output. Halves go to the even
    level. Where the limits are the same, what is above them becomes the upper output. There is
    no level for NaN: as in integers it becomes the lower output, the upper one of two levels.
    """

    rooms = 1

    like_first: ClassVar[tuple[int, ...]] = (1, 2, 3, 4)

    levels: Int
    auto_broadcast: Annotated[Rule, Alias("explicit", "none")] = "numpy"

    def infer(
        self,
        data: Tensor,
        input_low: Tensor,
        input_high: Tensor,
        output_low: Tensor,
        output_high: Tensor,
    ) -> tuple[Tensor, ...]:
        if self.levels < 2:
            raise IRError(f"levels is {self.levels}, the least is 2")
        shape = data.shape
        for limit in (input_low, input_high, output_low, output_high):
            shape = broadcast(shape, limit.shape, self.auto_broadcast, axis=0)
        return (Tensor(data.type, data.shape),)

    def run(
        self,
        data: Array,
        input_low: Array,
        input_high: Array,
        output_low: Array,
        output_high: Array,
    ) -> tuple[Array, ...]:
        wide = np.float64 if data.dtype == np.float64 else np.float32
        limits = (input_low, input_high, output_low, output_high)
        laid: list[Array] = [self.laid(limit, data).astype(wide) for limit in limits]
        low, high, first, last = laid
        x: Array = data.astype(wide, copy=False)
        steps = wide(self.levels - 1)
        shape = np.broadcast_shapes(x.shape, *(limit.shape for limit in laid))
        if shape != x.shape:
            raise IRError(f"limits widen the data from {data.shape} to {shape}")
        with np.errstate(all="ignore"):
            scale = steps / (high - low)
            values = np.asarray(x * scale)
            values += -low * scale
            np.rint(values, out=values)
            values *= (last - first) / steps
            values += first
        np.copyto(values, last, where=x > np.maximum(low, high))
        np.copyto(values, first, where=x <= np.minimum(low, high))
        np.copyto(values, first if self.levels > 2 else last, where=np.isnan(x))
        return (settled(values, data.dtype),)

    def laid(self, limit: Array, data: Array) -> Array:
        """A limit that goes with the data by NumPy's rule; PaddlePaddle's begins at the front."""
        if self.auto_broadcast == "none" and limit.shape != data.shape:
            broadcast(Shape(data.shape), Shape(limit.shape), "none")  # it is refused
        if self.auto_broadcast != "pdpd":
            further = max(limit.ndim - data.ndim, 0)
            idle = set(limit.shape[:further]) <= {1}
            return limit.squeeze(tuple(range(further))) if idle else limit
        return limit.reshape((*limit.shape, *[1] * (data.ndim - limit.ndim)))


#: The bits of a float32 that hold its power of two, how many are below them, and what is added.
_POWER, _BELOW, _BIAS = 0x7F800000, 23, 127
#: Binary places behind the first digit, and the power of two of the least number with all of them.
_PLACES = {ElementType.F16: (10, -14), ElementType.F8E4M3: (3, -6), ElementType.F8E5M2: (2, -14)}


def _round(values: Array, kind: ElementType) -> None:
    """Round numbers of float32, within the range of a type, to those of the type, in place.

    Beside one and a half times the power of two whose last digit is theirs, no more digits fit.
    """
    places, least = _PLACES[kind]
    bits = values.view(np.int32).copy()
    bits &= _POWER
    np.maximum(bits, (least + _BIAS) << _BELOW, out=bits)
    bits += (_BELOW - places) << _BELOW
    bits |= 1 << (_BELOW - 1)
    beside = bits.view(np.float32)
    values += beside
    values -= beside


class FakeConvertV13(Op):
    """Scaled and shifted, rounded to an 8-bit float by way of float16, and brought back.

    What is too large becomes the largest finite value.
    """

    rooms = 3

    destination_type: Type

    def infer(
        self, data: Tensor, scale: Tensor, shift: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        if self.destination_type not in ("f8e4m3", "f8e5m2"):
            raise IRError(f"destination_type is {self.destination_type}, not f8e4m3 or f8e5m2")
        kind = data.type.merge(scale.type)
        if shift is not None:
            kind = kind.merge(shift.type)
            scale.shape.merge(shift.shape)
        element_type(Tensor(kind), ElementType.F16, ElementType.BF16, ElementType.F32)
        shape = broadcast(data.shape, scale.shape)
        data.shape.merge(shape)
        return (Tensor(kind, shape),)

    def run(self, data: Array, scale: Array, shift: Array | None = None) -> tuple[Array, ...]:
        kind = self.destination_type
        factor = scale.astype(np.float32)
        offset = np.float32(0) if shift is None else shift.astype(np.float32)
        most = 448 if kind is ElementType.F8E4M3 else 57344
        with np.errstate(all="ignore"):
            values = np.asarray(data.astype(np.float32, copy=False) * factor - offset)
            np.clip(values, -most, most, out=values)
            _round(values, ElementType.F16)
            _round(values, kind)
            # As OpenVINO's CPU does: a quotient may end one place beside the product.
            values = (values + offset) * (1 / factor)
        return (narrowed(values, data.dtype),)
