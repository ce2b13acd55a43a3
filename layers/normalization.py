"""Values brought to a common scale.

Specification pages: BatchNormInference-1, -5; GRN-1; GroupNormalization-12; LRN-1; MVN-1, -6;
NormalizeL2-1.

All are calculated in float32, or float64 where the data are, or are integers. The variance is that
of the whole: the mean of the squared distances.
"""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from ..schemas import Array, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Int, Ints
from ..schemas.shapes import compatible, merge
from .axes import axis_of
from .base import Op
from .budget import steps
from .casting import fractional
from .elementwise import settled
from .shape import numeric

Axes = tuple[int, ...]


class Normalization(Op):
    """An operation that leaves the shape and the type of its data as they are."""

    def settled(self, values: Array, data: Array) -> tuple[Array, ...]:
        """The output, in the type of the data; of integers the nearest."""
        return (settled(values, data.dtype),)


class BatchNorm(Normalization):
    """The mean and the variance of each channel are known, and taken away."""

    rooms = 1

    epsilon: Float

    def normal(
        self, data: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, ...]:
        """Type and shape of the output."""
        if not self.epsilon >= 0:
            raise IRError(f"epsilon is {self.epsilon}, the least is 0")
        kind, channels = data.type, Shape.UNKNOWN
        for tensor in (gamma, beta, mean, variance):
            kind, channels = kind.merge(tensor.type), channels.merge(tensor.shape)
        if not (kind.is_real or kind.is_dynamic):
            raise IRError(f"the data are {kind}, they have to be real")
        if channels.rank not in (None, 1):
            raise IRError(f"gamma, beta, mean, variance are lists, their shape is {channels}")
        shape = data.shape
        if shape.rank is None:
            return (Tensor(kind, shape),)
        if shape.rank < 2:
            raise IRError(f"the data have {shape.rank} axes, the least is 2")
        if channels.rank is not None:
            shape = shape.with_size(1, merge(shape[1], channels[0]))
        if shape[1] == 0:
            raise IRError("the data have no channels")
        return (Tensor(kind, shape),)

    def normalized(
        self, data: Array, gamma: Array, beta: Array, mean: Array, variance: Array
    ) -> tuple[Array, ...]:
        """The output."""
        wide, scale, shift, middle, spread = (
            fractional(array) for array in (data, gamma, beta, mean, variance)
        )
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(spread + wide.dtype.type(self.epsilon))
            offset = shift - middle * factor
        return self.settled(
            wide * per_channel(factor, data.ndim) + per_channel(offset, data.ndim), data
        )


class BatchNormInferenceV1(BatchNorm):
    """The data are the third input."""

    def infer(
        self, gamma: Tensor, beta: Tensor, data: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, ...]:
        return self.normal(data, gamma, beta, mean, variance)

    def run(
        self, gamma: Array, beta: Array, data: Array, mean: Array, variance: Array
    ) -> tuple[Array, ...]:
        return self.normalized(data, gamma, beta, mean, variance)


class BatchNormInferenceV5(BatchNorm):
    """The data are the first input."""

    def infer(
        self, data: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor
    ) -> tuple[Tensor, ...]:
        return self.normal(data, gamma, beta, mean, variance)

    def run(
        self, data: Array, gamma: Array, beta: Array, mean: Array, variance: Array
    ) -> tuple[Array, ...]:
        return self.normalized(data, gamma, beta, mean, variance)


class GroupNormalizationV12(Normalization):
    """Mean and variance of groups of channels; then a scale and a bias for each channel."""

    rooms = 2

    num_groups: Int
    epsilon: Float

    def infer(self, data: Tensor, scale: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
        if self.num_groups < 1:
            raise IRError(f"num_groups is {self.num_groups}, the least is 1")
        for tensor in (scale, bias):
            if tensor.rank not in (None, 1):
                raise IRError(f"scale and bias are lists, a shape is {tensor.shape}")
        if data.rank is not None:
            if data.rank < 2:
                raise IRError(f"the data have {data.rank} axes, the least is 2")
            self.check_channels(data.shape[1], scale.shape, bias.shape)
        scale.shape.merge(bias.shape)
        return (Tensor(data.type, data.shape),)

    def check_channels(self, channels: Size, *lists: Shape) -> None:
        """Refuse channels that do not form the groups, or have not each their scale and bias."""
        for shape in lists:
            if shape.rank is not None and not compatible(shape[0], channels):
                raise IRError(f"{shape[0]} scales or biases for {channels} channels")
        if isinstance(channels, int) and (
            channels < self.num_groups or channels % self.num_groups
        ):
            raise IRError(f"{channels} channels do not divide into {self.num_groups} groups")

    def run(self, data: Array, scale: Array, bias: Array) -> tuple[Array, ...]:
        members = prod(data.shape[1:]) // self.num_groups
        groups = fractional(data).reshape(len(data), self.num_groups, members)
        values = standardized(groups, (2,), self.epsilon).reshape(data.shape)
        factor, offset = (per_channel(fractional(array), data.ndim) for array in (scale, bias))
        return self.settled(values * factor + offset, data)


class MeanVariance(Normalization):
    """The mean taken away and, if wanted, the standard deviation made 1."""

    rooms = 1

    eps: Float
    normalize_variance: Bool

    def inside(self) -> bool:
        """Whether ``eps`` is added to the variance, or else to its root."""
        return True

    def normalized(self, data: Array, axes: Axes) -> tuple[Array, ...]:
        """The output."""
        wide = fractional(data)
        if not self.normalize_variance:
            return self.settled(wide - average(wide, axes), data)
        return self.settled(standardized(wide, axes, self.eps, inside=self.inside()), data)


class MVNV1(MeanVariance):
    """The axes are an attribute, or all spatial axes, or these and the channels."""

    since = 2
    until = 5
    also = frozenset({"opset1"})
    written: ClassVar[tuple[str, ...]] = (
        "eps",
        "across_channels",
        "normalize_variance",
        "reduction_axes",
    )

    across_channels: Bool = False
    reduction_axes: Ints = ()

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array) -> tuple[Array, ...]:
        first = 1 if self.across_channels else 2
        given = tuple(axis_of(axis, data.ndim) for axis in self.reduction_axes)
        return self.normalized(data, given or tuple(range(first, data.ndim)))


class MVNV6(MeanVariance):
    """The axes are an input."""

    eps_mode: Literal["INSIDE_SQRT", "OUTSIDE_SQRT"]

    def inside(self) -> bool:
        return self.eps_mode == "INSIDE_SQRT"

    def infer(self, data: Tensor, axes: Tensor) -> tuple[Tensor, ...]:
        check_axes(data, axes)
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, axes: Array) -> tuple[Array, ...]:
        return self.normalized(data, known_axes(axes, data.ndim))


class NormalizeL2V1(Normalization):
    """The square root of the sum of squares made 1; without axes, every element but 0."""

    rooms = 1

    eps: Float
    eps_mode: Literal["add", "max"]

    def infer(self, data: Tensor, axes: Tensor) -> tuple[Tensor, ...]:
        if axes.rank is not None and axes.rank > 1:
            raise IRError(f"axes have the shape {axes.shape}, they are a number or a list")
        numeric(axes, "axes")
        check_values(data, axes)
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, axes: Array) -> tuple[Array, ...]:
        wide, found = fractional(data), known_axes(axes, data.ndim)
        if not found:
            return self.settled((wide != 0).astype(wide.dtype), data)
        total = np.square(wide).sum(found, keepdims=True)
        eps = wide.dtype.type(self.eps)
        length = np.sqrt(total + eps if self.eps_mode == "add" else np.maximum(total, eps))
        with np.errstate(all="ignore"):
            return self.settled(wide / length, data)


class GRNV1(Normalization):
    """Divided by the root of the sum of squares over the channels, ``bias`` added to it."""

    rooms = 1

    bias: Float

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        if data.rank not in (None, 2, 3, 4):
            raise IRError(f"the data have {data.rank} axes, GRN takes 2, 3 or 4")
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array) -> tuple[Array, ...]:
        wide = fractional(data)
        total = np.square(wide).sum(1, keepdims=True) + wide.dtype.type(self.bias)
        with np.errstate(all="ignore"):
            return self.settled(wide / np.sqrt(total), data)


class LRNV1(Normalization):
    """Divided by ``(bias + alpha * mean of the squares around) ** beta``.

    Around is up to ``(size - 1) // 2`` elements either way along each of the axes; the mean is
    always that of ``size`` for each axis.
    """

    rooms = 3

    alpha: Float
    beta: Float
    bias: Float
    size: Int

    def infer(self, data: Tensor, axes: Tensor) -> tuple[Tensor, ...]:
        if self.size < 1:
            raise IRError(f"size is {self.size}, the least is 1")
        if not (axes.type.is_integral or axes.type.is_dynamic):
            raise IRError(f"axes are integers, here they are {axes.type}")
        check_axes(data, axes)
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, axes: Array) -> tuple[Array, ...]:
        wide, found = fractional(data), known_axes(axes, data.ndim)
        total = np.square(wide)
        for axis in found:
            total = around(total, axis, (self.size - 1) // 2)
        with np.errstate(all="ignore"):
            scale = self.alpha / float(self.size) ** len(found)
            factor = np.power(self.bias + scale * total, self.beta)
            return self.settled(wide / factor.astype(wide.dtype), data)


def average(data: Array, axes: Axes) -> Array:
    """The mean along axes, which keep the size 1; itself where there are no axes."""
    if not data.size:  # NumPy warns of the mean of nothing
        return data.sum(axes, keepdims=True)
    mean: Array = data.mean(axes, keepdims=True)
    return mean


def standardized(data: Array, axes: Axes, eps: float, *, inside: bool = True) -> Array:
    """Mean 0 and variance 1 along axes; ``inside``: eps is added to the variance."""
    distance = data - average(data, axes)
    variance = average(np.square(distance), axes)
    with np.errstate(all="ignore"):
        small = np.asarray(eps).astype(data.dtype)
        spread = np.sqrt(variance + small) if inside else np.sqrt(variance) + small
        return distance / spread


def around(data: Array, axis: int, reach: int) -> Array:
    """Each element and up to ``reach`` neighbours either way along an axis, summed."""
    total = data.copy()
    for step in steps(range(1, min(reach, data.shape[axis] - 1) + 1)):
        here: list[Any] = [slice(None)] * data.ndim
        there = list(here)
        here[axis], there[axis] = slice(None, -step), slice(step, None)
        total[tuple(here)] += data[tuple(there)]
        total[tuple(there)] += data[tuple(here)]
    return total


def per_channel(values: Array, rank: int) -> Array:
    """A list laid along axis 1."""
    return values.reshape(-1, *[1] * (rank - 2))


def known_axes(axes: Array, rank: int) -> Axes:
    """Axes counted from the front, each once."""
    return tuple(sorted({axis_of(int(axis), rank) for axis in axes.ravel()}))


def check_values(data: Tensor, axes: Tensor) -> None:
    """Refuse axes that the data do not have."""
    values = axes.ints()
    if values is not None and data.rank is not None:
        for axis in values:
            axis_of(axis, data.rank)


def check_axes(data: Tensor, axes: Tensor) -> None:
    """Refuse axes that are no list, more than the data have, or not among them."""
    if axes.rank not in (None, 1):
        raise IRError(f"axes have the shape {axes.shape}, they are a list")
    if data.rank is not None and axes.rank is not None and axes.shape[0] > data.rank:
        raise IRError(f"{axes.shape[0]} axes for data that have {data.rank}")
    check_values(data, axes)
