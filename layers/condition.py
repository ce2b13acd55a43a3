"""Choices: by a condition, of what is not zero, of a bucket.

Specification pages: Bucketize-3, If-8, NonZero-3, Select-1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Tensor
from ..schemas.attributes import Bool, Type
from ..schemas.shapes import interval, limits
from .base import Op, element_type, index_type
from .budget import fits, require
from .choice import either
from .elementwise import NUMERIC, Broadcasting, widened
from .sort import Side, places_in


class SelectV1(Broadcasting):
    """``then`` where the condition holds, ``else`` where it does not."""

    rooms = 1

    carries_sizes = (1, 2)

    def infer(self, cond: Tensor, then: Tensor, else_: Tensor) -> tuple[Tensor, ...]:
        element_type(cond, ElementType.BOOLEAN)
        if self.auto_broadcast == "pdpd":
            shape = self.together(self.together(then.shape, else_.shape), cond.shape)
        else:
            shape = self.together(self.together(else_.shape, then.shape), cond.shape)
        return (Tensor(then.type.merge(else_.type), shape),)

    def run(self, cond: Array, then: Array, else_: Array) -> tuple[Array, ...]:
        return (either(self.aligned(then, cond), then, self.aligned(then, else_)),)


class NonZeroV3(Op):
    """Where the elements are that are not zero: a row of indices per axis."""

    output_type: Type = ElementType.I64

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        index_type("output_type", self.output_type)
        if data.value is not None and data.value.dtype.kind in "fiub":
            (places,) = self.run(data.value)
            return (Tensor(self.output_type, places.shape),)
        if not data.rank:
            return (Tensor(self.output_type, Shape((ANY, ANY))),)
        _, most = limits(data.shape.count)
        return (Tensor(self.output_type, Shape((data.rank, interval(0, most)))),)

    def run(self, data: Array) -> tuple[Array, ...]:
        # Places by axes and all in one array, or the narrower ones; and the widened data.
        each = 12 if data.ndim < 2 else 16 * data.ndim
        beside = 4 * data.size if data.itemsize == 2 else 0
        if not fits(each * data.size + beside):
            require(each * int(np.count_nonzero(data)) + beside)
        if data.ndim == 0:
            # OpenVINO counts one axis in a number, and none if it is zero.
            places: Any = np.zeros((1, 1) if data != 0 else (0, 0))
        elif data.ndim == 1:
            places = np.nonzero(widened(data))[0][None]
        else:
            places = np.stack(np.nonzero(widened(data)))
        return (places.astype(self.output_type.dtype, copy=False),)


class BucketizeV3(Op):
    """In which of the buckets each element lies, of which the ends are given in order."""

    output_type: Type = ElementType.I64
    with_right_bound: Bool = True

    def infer(self, data: Tensor, buckets: Tensor) -> tuple[Tensor, ...]:
        element_type(data, *NUMERIC)
        element_type(buckets, *NUMERIC)
        index_type("output_type", self.output_type)
        if buckets.rank not in (None, 1):
            raise IRError(f"buckets have {buckets.rank} axes ({buckets.shape}), they are a list")
        return (Tensor(self.output_type, data.shape),)

    def run(self, data: Array, buckets: Array) -> tuple[Array, ...]:
        side: Side = "left" if self.with_right_bound else "right"
        kind = self.output_type.dtype
        return (places_in(widened(buckets), widened(data), side, kind),)


class IfV8(Op):
    """Runs one of two bodies; they are the document's to infer and run (``ir.subgraphs``)."""

    output_count = (0, None)

    def infer(self, condition: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        raise IRError("it has no body")
