"""The types in which kernels calculate, and the way back to the type of the tensor."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from ..schemas import Array, ElementType, Tensor
from .budget import steps

OpT = TypeVar("OpT", bound=BaseModel)

#: Below it, float16 keeps fewer digits.
_LEAST_NORMAL = np.finfo(np.float16).smallest_normal
#: From here on float16 has no number but infinity, and float32 keeps so many more digits.
_HIGHEST, _DROPPED = 65504, 13
#: So many numbers are rounded at once: they stay in cache.
_AT_ONCE = 1 << 14
#: For kernels whose sums and products may meet infinity: IEEE's answers, without warnings.
quiet = np.errstate(invalid="ignore", over="ignore", divide="ignore")


def widened(data: Array) -> Array:
    """The same values in a type whose sums of products are right and whose products use BLAS.

    Real types below 32 bits become float32; integers below 64 bits become float64, in which
    their sums are exact up to 2**53.
    """
    if data.dtype in (np.float32, np.float64):
        return data
    if data.dtype.kind in "iu":
        return data if data.dtype.itemsize == 8 else data.astype(np.float64)
    return as_float(data)


def fractional(data: Array) -> Array:
    """The same values, widened to a type that has fractions: for quotients and roots."""
    wide = widened(data)
    return wide.astype(np.float64) if wide.dtype.kind in "iu" else wide


def as_float(data: Array) -> Array:
    """The same values as float32; reals of a byte are looked up, five times as quickly."""
    if data.dtype.itemsize > 1 or not ElementType.of(data.dtype).is_real:
        return data.astype(np.float32, copy=False)
    return _of_bytes(data.dtype)[data.view(np.uint8)]


@cache
def _of_bytes(dtype: np.dtype[Any]) -> Array:
    """What each byte stands for, as float32."""
    with np.errstate(all="ignore"):
        return np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)


def narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    """Results in the type of the tensor; integers stop at the ends of their type."""
    if values.dtype == dtype:
        return values
    if dtype.kind in "iu" and values.dtype.kind == "f":
        ends = np.iinfo(dtype)
        return np.clip(values, ends.min, ends.max).astype(dtype)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


# Half precision: a model declares f16, and is computed in f32, as OpenVINO's CPU does whose
# INFERENCE_PRECISION_HINT is f32. Only what comes in and what goes out is f16.


def computed(kind: ElementType) -> ElementType:
    """The element type in which tensors of a declared type are computed."""
    return ElementType.F32 if kind is ElementType.F16 else kind


def as_computed(array: Array) -> Array:
    """An array in the type in which it is computed."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def aligned(array: Array) -> Array:
    """An array that begins where its type wants it: BLAS is far slower with any other."""
    return array if array.flags.aligned else array.copy()


def as_half(values: Array) -> Array:
    """Numbers rounded to float16.

    NumPy takes forty times as long for each that it rounds to a multiple of the least one: these
    are rounded before, which is exact, as 24 powers of two are between it and one.
    """
    with np.errstate(all="ignore"):
        if values.dtype == np.float32:
            small = np.abs(values) < _LEAST_NORMAL
            if small.any():
                rounded = np.rint(values * np.float32(2**24)) * np.float32(2**-24)
                values = np.where(small, rounded, values)
        return values.astype(np.float16)


def rounded_to_half(array: Array) -> Array:
    """An array as float16 holds it, in the type in which it is computed."""
    if array.dtype != np.float32:
        return array
    rounded = np.empty(array.shape, np.float32)
    given, made = np.ascontiguousarray(array).reshape(-1), rounded.reshape(-1)
    for begin in steps(range(0, given.size, _AT_ONCE)):
        block = slice(begin, begin + _AT_ONCE)
        made[block] = _halved(given[block])
    return rounded


def _halved(values: Array) -> Array:
    """Some numbers rounded to the eleven digits of float16, at once where that is by their bits.

    What carries beyond the digits that are dropped goes on into the exponent, as it should.
    """
    sizes = np.abs(values)
    if not sizes.max(initial=0) < _HIGHEST or sizes[sizes < _LEAST_NORMAL].any():
        return as_half(values).astype(np.float32)
    bits = values.view(np.int32)
    carried = (bits >> _DROPPED) & 1  # ties to even
    carried += (1 << (_DROPPED - 1)) - 1
    carried += bits
    carried &= -1 << _DROPPED
    return carried.view(np.float32)


def tensor_as_computed(tensor: Tensor) -> Tensor:
    """A tensor of the type in which it is computed."""
    if tensor.type is not ElementType.F16:
        return tensor
    value = None if tensor.value is None else as_computed(tensor.value)
    return Tensor(ElementType.F32, tensor.shape, value)


def computing(op: OpT) -> OpT:
    """An operation that computes in f32 what its attributes declare as f16."""
    halves = [name for name in type(op).model_fields if getattr(op, name) is ElementType.F16]
    return op.model_copy(update=dict.fromkeys(halves, ElementType.F32)) if halves else op
