"""Functions that networks put between their layers.

Specification pages: Clamp-1, Elu-1, Exp-1, Gelu-2, -7, HardSigmoid-1, HSigmoid-5, HSwish-4,
Identity-16, LogSoftmax-5, Mish-4, PReLU-1, ReLU-1, Selu-1, Sigmoid-1, SoftMax-1, -8, SoftPlus-4,
SoftSign-9, Swish-4.

NaN goes through, and infinity is NumPy's, where OpenVINO's CPU gives other numbers.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np

from ..schemas import Array, ElementType, IRError, Shape, Tensor
from ..schemas.attributes import Float, Int
from .axes import axis_of, broadcast
from .base import Op, element_type
from .budget import require
from .elementwise import (
    ANYTHING,
    NUMERIC,
    REAL,
    RealOnly,
    RealUnary,
    Unary,
    as_real,
    erf,
    scalar,
    settled,
    sigmoid,
    softplus,
)


class ReLUV1(Unary):
    """``x``, but nothing below zero."""

    def of(self, x: Array) -> Array:
        return np.maximum(x, 0)


class ClampV1(Unary):
    """``x`` held between ``min`` and ``max``; for integers, between the whole numbers within."""

    carries_sizes = True

    min: Float
    max: Float

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        if not self.min <= self.max:
            raise IRError(f"min {self.min:g} is above max {self.max:g}")
        return super().infer(data)

    def of(self, x: Array) -> Array:
        if x.dtype.kind == "f":
            return np.clip(x, x.dtype.type(self.min), x.dtype.type(self.max))
        limit = np.iinfo(x.dtype)
        low = math.ceil(min(max(self.min, limit.min), limit.max))
        high = math.floor(min(max(self.max, limit.min), limit.max))
        return np.clip(x, low, high)

    def carry_sizes(self, data: Array) -> None:
        return None


class ExpV1(RealUnary):
    """The exponential function."""

    def of(self, x: Array) -> Array:
        return np.exp(x)


class EluV1(RealUnary):
    """``x``, below zero ``alpha * (exp(x) - 1)``."""

    allowed = ANYTHING

    alpha: Float

    def of(self, x: Array) -> Array:
        below = np.expm1(np.minimum(x, 0))
        below *= x.dtype.type(self.alpha)
        # Above zero no alpha counts, also one that is no number.
        return np.where(x > 0, x, below)


class SigmoidV1(RealUnary):
    """``1 / (1 + exp(-x))``."""

    def of(self, x: Array) -> Array:
        return sigmoid(x)


class HSigmoidV5(RealUnary):
    """Sigmoid in three straight lines: ``min(max(x + 3, 0), 6) / 6``."""

    def of(self, x: Array) -> Array:
        return three_lines(x)


class HSwishV4(RealUnary):
    """``x * min(max(x + 3, 0), 6) / 6``."""

    def of(self, x: Array) -> Array:
        value = three_lines(x)
        value *= x
        return value


class MishV4(RealOnly):
    """``x * tanh(softplus(x))``."""

    def of(self, x: Array) -> Array:
        # tanh(log(1 + e)) = (e * e + 2 * e) / (e * e + 2 * e + 2); beyond 20 it is 1.
        value = np.exp(np.minimum(x, 20))
        value *= value + 2
        value /= value + 2
        value *= x
        return value


class SoftPlusV4(RealOnly):
    """``log(1 + exp(x))``."""

    def of(self, x: Array) -> Array:
        return softplus(x)


class SoftSignV9(RealOnly):
    """``x / (1 + abs(x))``."""

    def of(self, x: Array) -> Array:
        return x / (1 + np.abs(x))


class GeluV2(RealOnly):
    """``x`` times the normal distribution's function of it."""

    def of(self, x: Array) -> Array:
        value = erf(x * x.dtype.type(math.sqrt(0.5)))
        value += 1
        value *= x
        value *= x.dtype.type(0.5)
        return value


class GeluV7(GeluV2):
    """Gelu-2, or the same by way of tanh."""

    approximation_mode: Literal["ERF", "TANH"] = "ERF"

    def of(self, x: Array) -> Array:
        if self.approximation_mode == "ERF":
            return super().of(x)
        value = x * x
        value *= x.dtype.type(0.044715)
        value += 1
        value *= x
        value *= x.dtype.type(math.sqrt(2 / math.pi))
        np.tanh(value, out=value)
        value += 1
        value *= x
        value *= x.dtype.type(0.5)
        return value


class SwishV4(RealOnly):
    """``x * sigmoid(beta * x)``; beta is 1 where it is not given."""

    rooms = 1

    def infer(self, data: Tensor, beta: Tensor | None = None) -> tuple[Tensor, ...]:
        if beta is not None:
            if data.type is not beta.type:
                raise IRError(f"element types {data.type} and {beta.type} differ")
            scalar(beta, "beta")
        return super().infer(data)

    def run(self, data: Array, beta: Array | None = None) -> tuple[Array, ...]:
        x = as_real(np.atleast_1d(data))
        with np.errstate(all="ignore"):
            value = sigmoid(x if beta is None else x * as_real(beta.reshape(())))
            value *= x
        return (settled(value, data.dtype).reshape(data.shape),)


class PReLUV1(Op):
    """``x``, below zero times a slope, which is one for each channel or broadcast."""

    rooms = 1

    allowed: ClassVar[tuple[ElementType, ...]] = ANYTHING
    like_first: ClassVar[tuple[int, ...]] = (1,)

    def infer(self, data: Tensor, slope: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, slope: Array) -> tuple[Array, ...]:
        x, factor = as_real(data), as_real(self.per_channel(data, slope))
        with np.errstate(all="ignore"):
            # At zero and above no slope counts, also one that is no number.
            value = np.where(x < 0, x * factor, x)
        return (settled(value, data.dtype),)

    def per_channel(self, data: Array, slope: Array) -> Array:
        """The slope with such axes that NumPy broadcasts it to the data."""
        channel = min(1, data.ndim - 1)
        if slope.ndim == 1 and data.ndim and slope.size == data.shape[channel]:
            return slope.reshape(-1, *[1] * (data.ndim - channel - 1))
        if slope.size == 1:
            return slope.reshape(())
        whole = broadcast(Shape(data.shape), Shape(slope.shape))  # or it is refused
        if whole != data.shape:
            text = f"slopes of shape {Shape(slope.shape)} do not fit data of shape"
            raise IRError(f"{text} {Shape(data.shape)}")
        return slope


class ThreeInputs(Op):
    """A function with two parameters as further inputs."""

    allowed: ClassVar[tuple[ElementType, ...]] = NUMERIC

    def run(self, data: Array, alpha: Array, factor: Array) -> tuple[Array, ...]:
        x, alpha, factor = (as_real(array) for array in (data, alpha, factor))
        if alpha.size == 1 and factor.size == 1:
            alpha, factor = alpha.reshape(()), factor.reshape(())
        with np.errstate(all="ignore"):
            return (settled(self.of(x, alpha, factor), data.dtype),)

    def of(self, x: Array, alpha: Array, factor: Array) -> Array:
        """The function."""
        raise NotImplementedError


class HardSigmoidV1(ThreeInputs):
    """``min(max(alpha * x + beta, 0), 1)``."""

    rooms = 1

    def infer(self, data: Tensor, alpha: Tensor, beta: Tensor) -> tuple[Tensor, ...]:
        for tensor, name in ((alpha, "alpha"), (beta, "beta")):
            scalar(tensor, name)
            if tensor.type is not data.type:
                raise IRError(f"{name} is {tensor.type}, the data are {data.type}")
        return (Tensor(data.type, data.shape),)

    def of(self, x: Array, alpha: Array, factor: Array) -> Array:
        return np.clip(x * alpha + factor, 0, 1)


class SeluV1(ThreeInputs):
    """``lambda`` times ``x``, below zero times ``alpha * (exp(x) - 1)``."""

    rooms = 1

    def infer(self, data: Tensor, alpha: Tensor, lambda_: Tensor) -> tuple[Tensor, ...]:
        kind = data.type.merge(alpha.type).merge(lambda_.type)
        result = Tensor(kind, data.shape)
        element_type(result, *REAL)
        return (result,)

    def of(self, x: Array, alpha: Array, factor: Array) -> Array:
        return factor * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


class Softmax(Op):
    """What both soft maxima share: all along one axis, as differences from the largest."""

    axis: Int = 1

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        self.along(data.rank)
        return (Tensor(data.type, data.shape),)

    def along(self, rank: int | None) -> int:
        """The axis, counted from the front."""
        return 0 if rank is None else axis_of(self.axis, max(rank, 1))

    def run(self, data: Array) -> tuple[Array, ...]:
        axis = self.along(data.ndim)
        x = as_real(np.atleast_1d(data))
        with np.errstate(all="ignore"):
            if x.dtype != data.dtype:
                require((3 + self.rooms) * x.nbytes)
            below = x - x.max(axis, keepdims=True, initial=-np.inf)
            return (settled(self.of(below, axis), data.dtype).reshape(data.shape),)

    def of(self, below: Array, axis: int) -> Array:
        """The function, of numbers of which the largest is zero; may write to them."""
        np.exp(below, out=below)
        below /= below.sum(axis, keepdims=True)
        return below


class SoftMaxV1(Softmax):
    """``exp(x)``, such that they sum to 1 along an axis, which is counted from the front."""

    def along(self, rank: int | None) -> int:
        if self.axis < 0:
            raise IRError(f"axis is {self.axis}, the least is 0")
        return super().along(rank)


class SoftMaxV8(Softmax):
    """SoftMax-1 whose axis may be counted from the end."""


class LogSoftmaxV5(Softmax):
    """The logarithm of SoftMax-8."""

    rooms = 1

    def of(self, below: Array, axis: int) -> Array:
        total: Any = np.exp(below).sum(axis, keepdims=True)
        below -= np.log(total)
        return below


class IdentityV16(Op):
    """What comes in."""

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array) -> tuple[Array, ...]:
        return (data,)


def three_lines(x: Array) -> Array:
    """``min(max(x + 3, 0), 6) / 6``."""
    value = x + 3
    np.clip(value, 0, 6, out=value)
    value /= 6
    return value
