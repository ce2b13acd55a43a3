"""Prior boxes: the boxes around each cell of a grid from which detection starts.

Specification pages: PriorBox-1, -8; PriorBoxClustered-1. All is worked out in float32.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Bool, Float, Floats
from .base import Op
from .budget import require, steps
from .movement import listed, shape_of

F = np.float32


class Box(NamedTuple):
    """A box around a point: its centre beside the point, and half its sides."""

    x: np.float32
    y: np.float32
    width: np.float32
    height: np.float32
    #: Whether it is held on the image, as the boxes of a density are.
    held: bool = False


class Priors(Op):
    """What both kinds share: two lists of sizes in, boxes and variances out."""

    def count(self) -> int:
        """How many boxes each cell has."""
        raise NotImplementedError

    def deviations(self) -> Floats:
        """One variance, or one for each side."""
        raise NotImplementedError

    def infer(self, output_size: Tensor, image_size: Tensor) -> tuple[Tensor, ...]:
        for name, tensor in (("output_size", output_size), ("image_size", image_size)):
            if not tensor.type.is_dynamic and not tensor.type.is_integral:
                raise IRError(f"element type {tensor.type} of {name} is no integer")
            count = listed(tensor, name)
            if isinstance(count, int) and count != 2:
                raise IRError(f"{name} has {count} elements, it has two")
        grid, boxes = shape_of(output_size), self.count()
        length: Size = ANY if grid is None else grid.count * (boxes * 4)
        return (Tensor(ElementType.F32, Shape((2, length))),)

    def check_room(self, rows: int, columns: int, boxes: int) -> None:
        """Refuse more memory than is allowed for the centres and sides, and for the boxes."""
        require(8 * (boxes + 1) * (rows + columns) + 80 * boxes * rows * columns)

    def with_variances(self, boxes: Array) -> Array:
        """The boxes, and below them the variance of each side."""
        variances = np.array(self.deviations() or (0.1,), F)
        if variances.size not in (1, 4):
            raise IRError(f"{variances.size} variances, there are 1 or 4")
        return np.stack([boxes, np.tile(variances, boxes.size // variances.size)])


class PriorBoxV1(Priors):
    """Boxes of several sizes and shapes around each cell."""

    min_size: Floats = ()
    max_size: Floats = ()
    aspect_ratio: Floats = ()
    density: Floats = ()
    fixed_ratio: Floats = ()
    fixed_size: Floats = ()
    clip: Bool = False
    flip: Bool = False
    step: Float = 0
    offset: Float
    variance: Floats = ()
    scale_all_sizes: Bool = True

    @property
    def large_first(self) -> bool:
        """Whether the box of ``max_size`` comes before those of other ratios."""
        return True

    def deviations(self) -> Floats:
        return self.variance

    def count(self) -> int:
        for name in ("density", "aspect_ratio"):
            for value in getattr(self, name):
                if not isfinite(value) or (value == 0 and name == "aspect_ratio" and self.flip):
                    raise IRError(f"{name} is {value:g}")
        ratios = {1.0}
        for ratio in self.aspect_ratio:
            both = (ratio, 1 / ratio) if self.flip else (ratio,)
            ratios |= {float(F(round(float(r) * 1e6) / 1e6)) for r in both}
        if self.fixed_size:
            count = len(ratios) * len(self.fixed_size)
        elif self.scale_all_sizes:
            count = len(ratios) * len(self.min_size) + len(self.max_size)
        else:
            count = len(ratios) + len(self.min_size) - 1
        for density in self.density:
            count += (len(self.fixed_ratio) or len(ratios)) * (int(density) ** 2 - 1)
        return count

    def run(self, output_size: Array, image_size: Array) -> tuple[Array, ...]:
        height, width = (int(n) for n in output_size)
        image = np.array(image_size[::-1], F)
        least, step = np.array(self.min_size, F), F(self.step)
        if not self.scale_all_sizes:
            # So MXNet has it: sizes are parts of the image.
            step = image[1] / F(height) if step == -1 else step * image[1]
            least = least * image[1]
        if step == 0:
            steps, offset = image / np.array([width, height], F), F(0.5)
        else:
            steps, offset = np.array([step, step], F), F(self.offset)
        boxes = [*self.dense(), *self.sized(least)]
        self.check_room(height, width, len(boxes))
        sides = np.array([box[:4] for box in boxes], F).reshape(-1, 4)
        x = (np.arange(width, dtype=F) + offset)[:, None] * steps[0] + sides[:, 0]
        y = (np.arange(height, dtype=F) + offset)[:, None] * steps[1] + sides[:, 1]
        found = np.empty((height, width, len(boxes), 4), F)
        for axis, (centre, half) in enumerate(((x, sides[:, 2]), (y[:, None], sides[:, 3]))):
            found[..., axis] = (centre - half) * (1 / image[axis])
            found[..., axis + 2] = (centre + half) * (1 / image[axis])
        held = np.array([box.held for box in boxes], bool)
        found[:, :, held, :2] = np.maximum(found[:, :, held, :2], 0)
        found[:, :, held, 2:] = np.minimum(found[:, :, held, 2:], 1)
        if self.clip:
            found = np.clip(found, 0, 1)
        # Of odd attributes OpenVINO's count is another than that of the boxes.
        flat = np.zeros(height * width * self.count() * 4, F)
        flat[: found.size] = found.ravel()[: flat.size]
        return (self.with_variances(flat),)

    def ratios(self) -> list[np.float32]:
        """The ratios of sides, other than 1."""
        ratios = [F(1)]
        for ratio in np.array(self.aspect_ratio, F):
            if all(abs(ratio - known) >= 1e-6 for known in ratios):
                ratios += [ratio, F(1) / ratio] if self.flip else [ratio]
        return [ratio for ratio in ratios if abs(ratio - F(1)) >= 1e-6]

    def dense(self) -> list[Box]:
        """The boxes of a fixed size, several of them beside one another."""
        boxes = []
        for index, size in enumerate(np.array(self.fixed_size, F)):
            density = self.density[index] if index < len(self.density) else 1
            if not (isfinite(size) and isfinite(density) and density >= 1):
                raise IRError(f"fixed_size {size:g} with a density of {density:g}, the least is 1")
            count = int(density)
            whole, shift = int(size), int(size / F(count))
            places = [F(shift) / 2 - F(whole // 2) + F(i * shift) for i in steps(range(count))]
            shapes = [(ratio, size) for ratio in np.array(self.fixed_ratio, F)]
            if not shapes:
                shapes = [(F(1), F(whole)), *((ratio, size) for ratio in self.ratios())]
            for ratio, side in shapes:
                root, half = np.sqrt(ratio), side * F(0.5)
                boxes += [
                    Box(x, y, half * root, half / root, True)
                    for y in places
                    for x in steps(places)
                ]
        return boxes

    def sized(self, least: Array) -> list[Box]:
        """The boxes of the least sizes, of those between and of other ratios."""
        boxes = []
        for index, size in enumerate(least):
            half = size * F(0.5)
            boxes.append(Box(F(0), F(0), half, half))
            large = []
            if index < len(self.max_size):
                between = np.sqrt(size * F(self.max_size[index])) * F(0.5)
                large.append(Box(F(0), F(0), between, between))
            shaped = []
            if self.scale_all_sizes or index == len(least) - 1:
                half = (size if self.scale_all_sizes else least[0]) * F(0.5)
                roots = (np.sqrt(ratio) for ratio in self.ratios())
                shaped = [Box(F(0), F(0), half * root, half / root) for root in roots]
            boxes += [*large, *shaped] if self.large_first else [*shaped, *large]
        return boxes


class PriorBoxV8(PriorBoxV1):
    """PriorBox-1 with a choice of the boxes' order."""

    min_max_aspect_ratios_order: Bool = True

    @property
    def large_first(self) -> bool:
        return self.min_max_aspect_ratios_order


class PriorBoxClusteredV1(Priors):
    """Boxes of given sides around each cell."""

    step: Float = 0
    step_w: Float = 0
    step_h: Float = 0
    width: Floats = (1.0,)
    height: Floats = (1.0,)
    clip: Bool = True
    offset: Float
    variance: Floats = ()

    def deviations(self) -> Floats:
        return self.variance

    def count(self) -> int:
        if len(self.width) != len(self.height):
            raise IRError(f"{len(self.width)} widths, {len(self.height)} heights")
        return len(self.width)

    def run(self, output_size: Array, image_size: Array) -> tuple[Array, ...]:
        rows, columns = (int(n) for n in output_size)
        self.check_room(rows, columns, self.count())
        image = np.array(image_size[::-1], F)
        steps: Array = np.array([self.step_w or self.step, self.step_h or self.step], F)
        if not steps.any():
            steps = image / np.array([columns, rows], F)
        found = np.empty((rows, columns, self.count(), 4), F)
        x = (np.arange(columns, dtype=F) + F(self.offset))[:, None] * steps[0]
        y = (np.arange(rows, dtype=F) + F(self.offset))[:, None, None] * steps[1]
        for axis, (centre, sides) in enumerate(((x, self.width), (y, self.height))):
            half = np.array(sides, F) / F(2)
            found[..., axis] = (centre - half) / image[axis]
            found[..., axis + 2] = (centre + half) / image[axis]
        if self.clip:
            found = np.clip(found, 0, 1)
        return (self.with_variances(found.ravel()),)
