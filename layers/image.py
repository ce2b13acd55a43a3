"""Images: resized, and sampled at given places.

Specification pages: Interpolate-1, -4, -11; GridSample-9.

Resizing goes axis by axis: each output row is a weighted sum of a few input rows, its taps.
Places between the pixels are worked out in float32, as OpenVINO does, for one bit decides which
pixel is the nearest. Of integers, the exact sum is rounded half to even and held in range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor, UnsupportedError
from ..schemas.attributes import Bool, Float, Ints, NotBefore
from ..schemas.shapes import merge
from .base import Op, element_type
from .budget import pieces, require
from .image_sizes import scaled, target
from .windows import surrounded

#: Which input rows an output row is made of, and with which weights: both ``(output, taps)``.
Taps: TypeAlias = "tuple[Array, Array]"
#: An axis and its taps.
Pass: TypeAlias = "tuple[int, Taps]"

Coordinates: TypeAlias = Literal[
    "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"
]
Nearest: TypeAlias = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]
Mode: TypeAlias = Literal[
    "nearest", "linear", "linear_onnx", "cubic", "bilinear_pillow", "bicubic_pillow"
]


class Resized(NamedTuple):
    """One axis to be resized."""

    axis: int
    old: int
    new: int
    scale: np.float32


class Settings(NamedTuple):
    """How rows are weighed; the same for all axes."""

    mode: Mode
    coordinates: Coordinates = "half_pixel"
    nearest: Nearest = "round_prefer_floor"
    antialias: bool = False
    cube_coeff: float = -0.75


class Interpolation(Op):
    """Resizing of some axes, or of all, to sizes or by scales."""

    mode: Annotated[Mode, NotBefore(11, "bilinear_pillow"), NotBefore(11, "bicubic_pillow")]
    shape_calculation_mode: Literal["sizes", "scales"]
    coordinate_transformation_mode: Coordinates = "half_pixel"
    nearest_mode: Nearest = "round_prefer_floor"
    antialias: Bool = False
    pads_begin: Ints = (0,)
    pads_end: Ints = (0,)
    cube_coeff: Float = -0.75

    def inferred(self, data: Tensor, wanted: Tensor, axes: Tensor | None) -> tuple[Tensor, ...]:
        """The output, given sizes or scales of the axes."""
        element_type(data, *PIXELS)
        check_pads(self.pads_begin, self.pads_end)
        for tensor in (wanted, axes):
            if tensor is not None and tensor.rank not in (None, 1):
                raise IRError(f"sizes, scales and axes are lists, one has {tensor.rank} axes")
        if axes is not None:
            element_type(axes, *WHOLE)
        if data.rank is None:
            return (Tensor(data.type, Shape.UNKNOWN),)
        chosen = list(range(data.rank)) if axes is None else axes.ints()
        if chosen is None:
            return (Tensor(data.type, Shape.of_rank(data.rank)),)
        check_axes(chosen, data.rank)
        pads = zip(data.shape, *self.pads(data.rank), strict=True)
        result = [size + (begin + end) for size, begin, end in pads]
        for axis, size in zip(chosen, self.wanted(result, chosen, wanted), strict=True):
            result[axis] = size
        return (Tensor(data.type, Shape(result)),)

    def wanted(self, shape: Sequence[Size], axes: Sequence[int], wanted: Tensor) -> list[Size]:
        """The new sizes of the axes, as far as they are known."""
        by_scale = self.shape_calculation_mode == "scales"
        known = wanted.value if by_scale else wanted.parts
        if known is None:
            return [ANY] * len(axes)
        if len(known) < len(axes):
            raise IRError(f"{len(known)} {self.shape_calculation_mode} for {len(axes)} axes")
        if by_scale:
            return [scaled(shape[axis], float(by)) for axis, by in zip(axes, known, strict=False)]
        return [target(size) for size in known.tolist()[: len(axes)]]

    def pads(self, rank: int) -> tuple[list[int], list[int]]:
        """Zeros before and after each axis: the lists may be shorter or longer than the rank."""
        begin, end = ([*pads, *[0] * rank][:rank] for pads in (self.pads_begin, self.pads_end))
        return begin, end

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def resized(self, data: Array, wanted: Array, axes: Array | None) -> tuple[Array, ...]:
        """The output, given sizes or scales of the axes."""
        data = surrounded(data, list(zip(*self.pads(data.ndim), strict=True)))
        return (resample(data, self.steps(data.shape, wanted, axes), self.settings()),)

    def steps(self, shape: Sequence[int], wanted: Array, axes: Array | None) -> list[Resized]:
        """The axes that are resized, one after the other."""
        steps = []
        chosen = list(range(len(shape))) if axes is None else [int(axis) for axis in axes]
        check_axes(chosen, len(shape))
        for axis, by in zip(chosen, wanted.tolist(), strict=False):
            old = shape[axis]
            if self.shape_calculation_mode == "sizes":
                steps.append(by_size(axis, old, int(by)))
            else:
                new = scaled(old, float(by))
                assert not isinstance(new, Dim)
                steps.append(Resized(axis, old, new, np.float32(by)))
        return steps

    def settings(self) -> Settings:
        """How rows are weighed."""
        return Settings(
            self.mode,
            self.coordinate_transformation_mode,
            self.nearest_mode,
            self.antialias,
            self.cube_coeff,
        )

    @np.errstate(all="ignore")
    def passes(self, shape: Sequence[int], wanted: Array, axes: Array | None) -> list[Pass] | None:
        """The axes of an image of real numbers in order, with their taps; None without such."""
        if self.mode == "nearest" or any(map(any, self.pads(len(shape)))):
            return None
        return passes(self.steps(shape, wanted, axes), self.settings())


class InterpolateV4(Interpolation):
    """Sizes and scales are both given; the mode says which count."""

    def infer(
        self, data: Tensor, sizes: Tensor, scales: Tensor, axes: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        element_type(sizes, *WHOLE)
        element_type(scales, *FRACTIONS)
        wanted = sizes if self.shape_calculation_mode == "sizes" else scales
        return self.inferred(data, wanted, axes)

    def run(
        self, data: Array, sizes: Array, scales: Array, axes: Array | None = None
    ) -> tuple[Array, ...]:
        return self.resized(data, *self.chosen(sizes, scales, axes))

    def chosen(
        self, sizes: Array, scales: Array, axes: Array | None = None
    ) -> tuple[Array, Array | None]:
        """Of the inputs beside the data, those that count."""
        return sizes if self.shape_calculation_mode == "sizes" else scales, axes


class InterpolateV11(Interpolation):
    """Interpolate-4 with sizes or scales in one input, and Pillow's modes."""

    def infer(
        self, data: Tensor, sizes_or_scales: Tensor, axes: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        allowed = WHOLE if self.shape_calculation_mode == "sizes" else FRACTIONS
        element_type(sizes_or_scales, *allowed)
        return self.inferred(data, sizes_or_scales, axes)

    def run(
        self, data: Array, sizes_or_scales: Array, axes: Array | None = None
    ) -> tuple[Array, ...]:
        return self.resized(data, *self.chosen(sizes_or_scales, axes))

    def chosen(
        self, sizes_or_scales: Array, axes: Array | None = None
    ) -> tuple[Array, Array | None]:
        """The inputs beside the data."""
        return sizes_or_scales, axes


class InterpolateV1(Op):
    """Resizing of the axes of an attribute, taken in ascending order."""

    align_corners: Bool = True
    antialias: Bool = False
    axes: Ints
    mode: Literal["nearest", "linear", "cubic", "area", "linear_onnx"]
    pads_begin: Ints = (0,)
    pads_end: Ints = (0,)

    def infer(self, data: Tensor, target_spatial_shape: Tensor) -> tuple[Tensor, ...]:
        if not target_spatial_shape.type.is_integral and not target_spatial_shape.type.is_dynamic:
            raise IRError(f"sizes are of type {target_spatial_shape.type}, not of an integer type")
        check_pads(self.pads_begin, self.pads_end)
        if data.rank is None:
            return (Tensor(data.type, Shape.UNKNOWN),)
        axes = sorted(set(self.axes))
        check_axes(axes, data.rank)
        known = target_spatial_shape.parts
        sizes = [ANY] * len(axes) if known is None else known.ravel().tolist()
        if len(sizes) < len(axes):
            raise IRError(f"{len(sizes)} sizes for {len(axes)} axes")
        result = list(data.shape)
        for axis, size in zip(axes, sizes, strict=False):
            result[axis] = target(size)
        return (Tensor(data.type, Shape(result)),)

    def run(self, data: Array, target_spatial_shape: Array) -> tuple[Array, ...]:
        return self.later(data.ndim).resized(data, *self.chosen(target_spatial_shape))

    def chosen(self, sizes: Array) -> tuple[Array, Array]:
        """Sizes and axes, as Interpolate-4 takes them."""
        return sizes.ravel(), np.array(sorted(set(self.axes)))

    def passes(self, shape: Sequence[int], wanted: Array, axes: Array) -> list[Pass] | None:
        """The axes of an image of real numbers in order, with their taps; None without such."""
        return self.later(len(shape)).passes(shape, wanted, axes)

    def later(self, rank: int) -> InterpolateV4:
        """The Interpolate-4 that it stands for."""
        return InterpolateV4(
            mode=self.later_mode(rank),
            shape_calculation_mode="sizes",
            coordinate_transformation_mode=self.coordinates(rank),
            nearest_mode="simple",
            antialias=self.antialias,
            pads_begin=self.pads_begin,
            pads_end=self.pads_end,
        )

    def later_mode(self, rank: int) -> Mode:
        """The mode of Interpolate-4 that it stands for."""
        if self.mode == "area":
            raise UnsupportedError("area interpolation is nowhere defined")
        if self.mode == "linear" and rank < 5:
            return "linear_onnx"
        return self.mode

    def coordinates(self, rank: int) -> Coordinates:
        """The coordinates of Interpolate-4 that it stands for."""
        if self.align_corners:
            return "align_corners"
        image = rank == 4 and set(self.axes) == {2, 3}
        padded = any(self.pads_begin) or any(self.pads_end)
        linear = self.mode in ("linear", "linear_onnx")
        return "half_pixel" if linear and not padded and not image else "asymmetric"


PIXELS = tuple(map(ElementType, ("f32", "f16", "i8", "bf16", "u8", "i64", "i32", "f64")))
WHOLE = tuple(map(ElementType, ("i32", "i64", "u32", "u64")))
OF_A_PLACE = 256  # bytes of the corners of a place between pixels
FRACTIONS = tuple(map(ElementType, ("f32", "f16", "bf16")))
PILLOWS = -0.5  # the coefficient of its cubic, whatever a file says: exporters write the default


def check_pads(begin: Ints, end: Ints) -> None:
    """Refuse paddings below zero."""
    for name, pads in (("pads_begin", begin), ("pads_end", end)):
        if min(pads, default=0) < 0:
            raise IRError(f"{name} has {min(pads)}, the least is 0")


def check_axes(axes: Iterable[int], rank: int) -> None:
    """Refuse axes counted from the end, as OpenVINO does, and those that are not there."""
    for axis in axes:
        if not 0 <= axis < rank:
            raise IRError(f"axis {axis} is not one of 0 to {rank - 1}")


def by_size(axis: int, old: int, new: int) -> Resized:
    """An axis resized to a given size."""
    if new < 0:
        raise IRError(f"a size is {new}, the least is 0")
    with np.errstate(divide="ignore", invalid="ignore"):
        return Resized(axis, old, new, np.float32(new) / np.float32(old))


def resample(data: Array, steps: Sequence[Resized], settings: Settings) -> Array:
    """Resize axes, one after the other."""
    changed = [step for step in steps if step.old != step.new and step.scale != 1]
    shape = list(data.shape)
    for step in changed:
        shape[step.axis] = step.new
    if 0 in shape:
        return np.zeros(shape, data.dtype)
    if 0 in data.shape:
        raise IRError(f"an image of shape {data.shape} has nothing to be resized to {shape}")
    if settings.mode == "nearest":
        for step in changed:
            data = np.take(data, nearest(step, settings), step.axis)
        return data
    # Integers near the middle of two show in which order they were summed up.
    mix = gathered if data.dtype.kind in "iu" else mixed
    keeps = keeps_bytes(settings.mode, data.dtype)
    return weighted(data, passes(changed, settings), mix, keeps=keeps)


def keeps_bytes(mode: str, dtype: np.dtype[Any]) -> bool:
    """Whether bytes stay bytes between two passes, as Pillow's do; OpenVINO's bfloat16, too."""
    return mode.endswith("pillow") and ElementType.of(dtype) in ("i8", "u8", "bf16")


def weighted(
    data: Array, steps: list[Pass], mix: Callable[[Array, int, Taps], Array], *, keeps: bool
) -> Array:
    """Axes resized one after the other, in the type of the data in the end, or after each."""
    dtype = data.dtype
    for axis, taps in steps:
        made = data.size // data.shape[axis] * len(taps[0])
        # What it is made of, as it is and wider, and what is made, twice where that is tap by tap.
        require(max(data.itemsize, 4) * (3 * data.size + 2 * made))
        data = mix(widen(data), axis, taps)
        data = narrow(data, dtype) if keeps else data
    return narrow(data, dtype)


def passes(steps: Sequence[Resized], settings: Settings) -> list[Pass]:
    """The axes that change, in the order in which they are resized, with their taps."""
    changed = [step for step in steps if step.old != step.new and step.scale != 1]
    if settings.mode.endswith("pillow"):
        return [(step.axis, taps_pillow(step, settings)) for step in reversed(changed)]
    weigh = taps_of(changed, settings)
    return [(step.axis, weigh(step, settings)) for step in changed]


def taps_of(steps: Sequence[Resized], settings: Settings) -> Callable[[Resized, Settings], Taps]:
    """The rule that makes the taps of an axis."""
    if settings.mode == "cubic":
        return taps_cubic
    # Antialiasing narrows all axes' triangles as soon as one axis shrinks.
    shrinks = any(step.scale < 1 for step in steps)
    if settings.mode == "linear" and settings.antialias and shrinks:
        return taps_triangle
    return taps_linear


def mixed(data: Array, axis: int, taps: Taps) -> Array:
    """The weighted sums of rows along an axis."""
    index, weight = taps
    size = data.shape[axis]
    # A small matrix, mostly zeros, takes less time than gathering; but zero times inf is NaN.
    if size <= 64 * index.shape[1] and np.isfinite(data).all():
        matrix = np.zeros((len(index), size), data.dtype)
        np.add.at(matrix, (np.arange(len(index))[:, None], index), weight)
        if axis == data.ndim - 1:
            return data @ matrix.T
        shape = (*data.shape[:axis], len(index), *data.shape[axis + 1 :])
        flat = data.reshape(prod(data.shape[:axis]), size, -1)
        return np.matmul(matrix, flat).reshape(shape)
    return gathered(data, axis, taps)


def gathered(data: Array, axis: int, taps: Taps) -> Array:
    """The same, tap by tap."""
    index, weight = taps
    tail = (-1, *[1] * (data.ndim - axis - 1))
    shape = (*data.shape[:axis], len(index), *data.shape[axis + 1 :])
    total: Array = np.zeros(shape, data.dtype)
    for rows, factors in zip(index.T, weight.T.astype(data.dtype), strict=True):
        if factors.any():
            part = np.take(data, rows, axis)
            part *= factors.reshape(tail)
            total += part
    return total


def widen(data: Array) -> Array:
    """An array in the type that sums are worked out in."""
    return data if data.dtype == np.float64 else data.astype(np.float32, copy=False)


def narrow(data: Array, dtype: np.dtype[Any]) -> Array:
    """An array back in its own type."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # float32 has the limits of bytes, but not those of larger integers.
        data = np.rint(data if dtype.itemsize <= 2 else data.astype(np.float64))
        return np.clip(data, limits.min, limits.max, out=data).astype(dtype)
    return data.astype(dtype, copy=False)


def places(step: Resized, rule: Coordinates) -> Array:
    """Where each output row lies between the input rows."""
    x, scale, half = np.arange(step.new, dtype=np.float32), step.scale, np.float32(0.5)
    if rule == "align_corners":
        if step.new == 1:
            return x
        return x * (np.float32(step.old - 1) / np.float32(step.new - 1))
    if rule == "pytorch_half_pixel" and step.new == 1:
        return x
    if rule == "asymmetric":
        return x / scale
    centre = (x + half) / scale
    return centre if rule == "tf_half_pixel_for_nn" else centre - half


def nearest(step: Resized, settings: Settings) -> Array:
    """The one input row that each output row is."""
    x, rule = places(step, settings.coordinates), settings.nearest
    if rule == "simple":
        rows = np.ceil(x) if step.scale < 1 else np.trunc(x)
    elif rule == "floor":
        rows = np.floor(x)
    elif rule == "ceil":
        rows = np.ceil(x)
    else:
        rows = round_away(x)
        if rule == "round_prefer_floor":
            rows = np.where(x == np.trunc(x) + np.float32(0.5), np.floor(x), rows)
    return np.clip(rows.astype(np.int64), 0, step.old - 1)


def round_away(x: Array) -> Array:
    """Rounded to whole numbers, halves away from zero."""
    return np.trunc(x + np.copysign(np.float32(0.5), x))


def taps_linear(step: Resized, settings: Settings) -> Taps:
    """The two neighbours, each the more the nearer."""
    last = step.old - 1
    x = np.clip(places(step, settings.coordinates), 0, np.float32(last))
    left = x.astype(np.int64)
    right = np.minimum(left + 1, last)
    after = x - left.astype(np.float32)
    return np.stack([left, right], 1), np.stack([1 - after, after], 1)


def taps_triangle(step: Resized, settings: Settings) -> Taps:
    """All rows under a triangle that is as wide as an output row is in the input."""
    x, slope = places(step, settings.coordinates), step.scale
    reach = 2 if slope > 1 else int(np.ceil(np.float32(2) / slope))
    index = round_away(x).astype(np.int64)[:, None] + np.arange(-reach, reach + 1)
    away = x[:, None] - index.astype(np.float32)
    weight = np.maximum(np.float32(0), 1 - np.abs(slope * away))
    return normalised(index, weight, step.old)


def normalised(index: Array, weight: Array, size: int) -> Taps:
    """Taps whose weights sum up to 1 over the rows that are there."""
    weight = np.where((index >= 0) & (index < size), weight, 0)
    total = weight.sum(1, keepdims=True)
    weight = np.divide(weight, total, out=np.zeros_like(weight), where=total != 0)
    return np.clip(index, 0, size - 1), weight


def taps_cubic(step: Resized, settings: Settings) -> Taps:
    """Four neighbours; beyond the border stands the border."""
    x = places(step, settings.coordinates)
    base = np.floor(x)
    index = base.astype(np.int64)[:, None] + np.arange(-1, 3)
    weight = cubic(x - base, np.float32(settings.cube_coeff))
    return np.clip(index, 0, step.old - 1), weight


def cubic(after: Array, a: np.float32) -> Array:
    """Weights of four neighbours, for a place that lies ``after`` the second; on a new axis."""
    far = [a * t * (1 - t) * (1 - t) for t in (after, 1 - after)]
    near = [((a + 2) * t - (a + 3)) * t * t + 1 for t in (after, 1 - after)]
    return np.stack([far[0], *near, far[1]], -1)


def tent(away: Array) -> Array:
    """Weights of two neighbours, by how far each is away."""
    return np.maximum(1 - away, 0)


def bicubic(away: Array, coefficient: float) -> Array:
    """Weights of four neighbours, by how far each is away."""
    x, a = away, np.float32(coefficient)
    near, far = ((a + 2) * x - (a + 3)) * x * x + 1, (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def taps_pillow(step: Resized, settings: Settings) -> Taps:
    """All rows under Pillow's filter, which is at least as wide as an output row."""
    half = np.float32(0.5)
    # The sizes alone count, also where scales were given.
    step = by_size(step.axis, step.old, step.new)
    stretch = max(1 / step.scale, np.float32(1))
    reach = stretch * (1 if settings.mode == "bilinear_pillow" else 2)
    centre = places(step, "tf_half_pixel_for_nn")
    first = np.maximum(np.trunc(centre - reach + half), 0).astype(np.int64)
    stop = np.trunc(centre + reach + half)
    index = first[:, None] + np.arange(int(np.ceil(reach)) * 2 + 1)
    x = np.abs((index.astype(np.float32) - centre[:, None] + half) * (1 / stretch))
    weight = tent(x) if settings.mode == "bilinear_pillow" else bicubic(x, PILLOWS)
    return normalised(index, np.where(index < stop[:, None], weight, 0), step.old)


class GridSampleV9(Op):
    """The data at places given from -1 (one edge) to 1 (the other), as ``x, y`` pairs."""

    align_corners: Bool = False
    mode: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros"

    def infer(self, data: Tensor, grid: Tensor) -> tuple[Tensor, ...]:
        if not grid.type.is_real and not grid.type.is_dynamic:
            raise IRError(f"the grid is of type {grid.type}, not of a real type")
        for name, tensor in (("data", data), ("grid", grid)):
            if tensor.rank not in (None, 4):
                raise IRError(
                    f"{name} has {tensor.rank} axes ({tensor.shape}), GridSample takes 4"
                )
        there = Shape.of_rank(4) if grid.rank is None else grid.shape
        given = Shape.of_rank(4) if data.rank is None else data.shape
        merge(there[3], 2)
        return (Tensor(data.type, Shape((merge(given[0], there[0]), given[1], *there[1:3]))),)

    @np.errstate(all="ignore")  # what is infinite or no number goes its way
    def run(self, data: Array, grid: Array) -> tuple[Array, ...]:
        if 0 in data.shape[2:]:
            raise IRError(f"an image of shape {data.shape} has no pixels to sample")
        lead, count = data.shape[:2], prod(data.shape[2:])
        each = len(data) * (OF_A_PLACE + 16 * lead[1])
        require(data.nbytes + prod((*lead, *grid.shape[1:3])) * data.itemsize + each)
        pixels = np.zeros((*lead, count + 1), data.dtype)
        pixels[..., :count] = data.reshape(*lead, count)
        places = grid.reshape(len(data), -1, 2)
        made = np.empty((*lead, places.shape[1]), data.dtype)
        for some in pieces(places.shape[1], each):
            corners = self.corners(places[:, some].astype(np.float32), *data.shape[2:])
            made[..., some] = summed(pixels, corners)
        return (made.reshape(*lead, *grid.shape[1:3]),)

    def corners(self, grid: Array, height: int, width: int) -> list[tuple[Array, Array | None]]:
        """The pixels that make up each place, counted row by row, with their weights.

        What lies beyond the border and is zero is pixel ``height * width``; one that stands alone
        has no weight.
        """
        columns, rows = (
            [(*self.inside(spot, size), weight) for spot, weight in self.taps(place)]
            for axis, size in enumerate((width, height))
            for place in [self.place(grid[..., axis], size)]
        )
        # Of small images float32 counts all pixels.
        exact = np.dtype("f4" if height * width < 1 << 24 else "f8")
        found: list[tuple[Array, Array | None]] = []
        for row, row_there, by_row in rows:
            first = row.astype(exact, copy=False) * width
            for column, column_there, by_column in columns:
                index = first + column
                if self.padding_mode == "zeros":
                    index[~(row_there & column_there)] = height * width
                weight = None if by_row is None or by_column is None else by_row * by_column
                found.append((index.astype(np.intp), weight))
        return found

    def place(self, along: Array, size: int) -> Array:
        """Coordinates from -1 to 1 as places between the pixels."""
        # Rounded once, as by OpenVINO's CPU: which pixel is nearest hangs on the last bit.
        half = (size - self.align_corners) / 2
        place: Array = (along.astype(np.float64) * half + half).astype(np.float32)
        return place if self.align_corners else place - np.float32(0.5)

    def taps(self, place: Array) -> list[tuple[Array, Array | None]]:
        """The neighbours of each place along an axis, with their weights."""
        if self.mode == "nearest":
            return [(np.rint(place), None)]
        base = np.floor(place)
        after = place - base
        if self.mode == "bilinear":
            return [(base, 1 - after), (base + 1, after)]
        weights = np.moveaxis(cubic(after, np.float32(-0.75)), -1, 0)
        return [(base + i - 1, weight) for i, weight in enumerate(weights)]

    def inside(self, index: Array, size: int) -> tuple[Array, Array]:
        """Indices along an axis brought inside the border, and which of them were there."""
        if self.padding_mode == "reflection":
            period = max(2 * (size - 1), 1) if self.align_corners else 2 * size
            index = (np.abs(index) if self.align_corners else index) % period
            mirrored = period - index - (not self.align_corners)
            index = np.where(index >= size, mirrored, index)
        inner = np.minimum(np.fmax(index, 0), size - 1)
        return inner, inner == index


def summed(pixels: Array, corners: Sequence[tuple[Array, Array | None]]) -> Array:
    """The sums of pixels with their weights, in the type of the pixels."""
    total: Array = np.zeros((*pixels.shape[:2], corners[0][0].shape[1]), np.float32)
    for index, weight in corners:
        picked = np.take_along_axis(pixels, index[:, None], -1)
        if weight is None:
            return picked
        total += picked.astype(np.float32) * weight[:, None]
    return narrow(total, pixels.dtype)
