"""Resizing: Resample, Interp and Upsampling.

Which place of the input a place ``o`` of the output looks at, with f = input size / output size:

- Resample, nearest: floor(o f). Linear: (o + 0.5) f - 0.5, by a triangle of two places each way
  that is widened by f where ``antialias`` and the output is smaller.
- Interp: o (in - 1) / (out - 1) with ``align_corners``, which is the default; else o f.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ....schemas import ElementType, IRError
from ...document import Output
from .layer import NoCounterpartError, Old
from .movement import until
from .table import Made, converts

METHODS = {
    "caffe.ResampleParameter.NEAREST": "nearest", "nearest": "nearest",
    "caffe.ResampleParameter.LINEAR": "linear", "linear": "linear", "bilinear": "linear",
    "caffe.ResampleParameter.CUBIC": "cubic", "cubic": "cubic",
    "caffe.ResampleParameter.AREA": "area", "area": "area",
}  # fmt: skip

#: What lets sizes follow from those of the input.
_FOLLOWED = "ShapeOf-3 Gather-1 Multiply-1"
#: Places of all matrices of a document that resize axes.
MOST_PLACES = 2**24
#: Places that are worked out at a time.
BLOCK = 2**16


@dataclass(frozen=True)
class Factor:
    """By what the old runtime multiplied each size, as a float, and how it made it whole."""

    number: float
    rounding: Literal["Ceiling", "Floor"]

    def of(self, dims: Sequence[int]) -> tuple[int, ...]:
        """The sizes that come of these."""
        exact = np.array(dims, np.float32) * np.float32(self.number)
        whole = np.ceil(exact) if self.rounding == "Ceiling" else np.floor(exact)
        return tuple(int(size) for size in whole)

    def follow(self, old: Old) -> Output:
        """The same of whatever sizes the input comes to have."""
        sizes = old.cast(old.sizes(old[0], *range(2, len(old.dims()))), ElementType.F32)
        exact = old.add("Multiply", "opset1", [sizes, old.constant(self.number)])
        return old.cast(old.add(self.rounding, "opset1", [exact]), ElementType.I64)


def resized(
    old: Old, one: Output, sizes: tuple[int, ...], factor: Factor | bool, **how: Any
) -> Output:
    """The spatial axes in other sizes.

    By a factor, which may be one that the file does not say, other inputs are resized, too.
    """
    axes = tuple(range(2, 2 + len(sizes)))
    pairs = list(zip(sizes, one.tensor.shape.static[2:], strict=True))
    factors = {new / size for new, size in pairs}
    how["shape_calculation_mode"] = "sizes"
    wanted = None
    if isinstance(factor, Factor) and not factor.number.is_integer():
        wanted = factor.follow(old) if factor.of(old.dims()[2:]) == sizes else None
    elif factor and len(factors) == 1 and min(factors).is_integer():
        how["shape_calculation_mode"] = "scales"
    scales = old.constant(np.array([new / size for new, size in pairs], np.float32))
    if factor and wanted is None and how["shape_calculation_mode"] == "sizes":
        old.remark(
            f"the sizes {list(sizes)} follow from those of the input by no factor in the file: "
            "reshape refuses others", fixed=0,
        )  # fmt: skip
    inputs = [one, old.indices(*sizes) if wanted is None else wanted, scales, old.indices(*axes)]
    return old.add("Interpolate", "opset4", inputs, **how)


@converts(
    "Resample", "type=caffe.ResampleParameter.NEAREST factor? antialias=0 height=0 width=0",
    becomes=f"Interpolate-4 MatMul-1 Reshape-1 Ceiling-1 {_FOLLOWED}", idle="fx fy num",
)  # fmt: skip
def resample(old: Old) -> Made:
    """Sizes in input 1, or those declared: ceil(size * factor)."""
    dims = old.dims(0, 4, 5)
    method = old.choice("type", METHODS)
    factor = _factor(old)
    sizes = _sizes(old, dims, factor)
    if method in ("cubic", "area"):
        raise NoCounterpartError(f"Resample by {method} was run by no CPU plug-in")
    if method == "nearest":
        return resized(
            old, old[0], sizes, factor, mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        )  # fmt: skip
    smaller = any(new < size for new, size in zip(sizes, dims[2:], strict=True))
    if old.flag("antialias") and smaller:
        return _widened(old, sizes)
    return resized(
        old, old.reals(0), sizes, factor, mode="linear",
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip


def _widened(old: Old, sizes: tuple[int, ...]) -> Output:
    """Linear with ``antialias``, as products of matrices: OpenVINO of today ignores the word."""
    dims = old.dims()
    old.remark("linear with antialias is a product by a matrix for each axis", fixed=0)
    # An axis that stays as long is what it was: its matrix would be that of ones.
    *deep, height, width = (
        None if size == new else _matrix(old, size, new)
        for size, new in zip(dims[2:], sizes, strict=True)
    )
    made = old.reals(0)
    straight: dict[str, Any] = {"transpose_a": False, "transpose_b": False}
    if height is not None:
        made = old.add("MatMul", "opset1", [height, made], **straight)
    if width is not None:
        made = old.add("MatMul", "opset1", [made, width], transpose_a=False, transpose_b=True)
    for depth in deep:
        if depth is None:
            continue
        flat = old.reshape(made, (*dims[:3], sizes[-2] * sizes[-1]))
        made = old.add("MatMul", "opset1", [depth, flat], **straight)
        made = old.reshape(made, (*dims[:2], *sizes))
    return made


def _matrix(old: Old, size: int, count: int) -> Output:
    """The matrix that resizes an axis, one for all layers of a graph."""
    scene = old.scene
    if (size, count) not in scene.matrices:
        upgrade, places = scene.walk.upgrade, size * count
        if upgrade.matrix_places + places > MOST_PLACES:
            raise IRError(
                f"{size} to {count} places takes a matrix of {places} numbers, those of layers "
                f"before have {upgrade.matrix_places}, and {MOST_PLACES} are the most in a file",
                hint="without antialias it takes none",
            )
        upgrade.matrix_places += places
        scene.matrices[size, count] = old.constant(triangles(size, count))
    return scene.matrices[size, count]


def triangles(size: int, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """What each place of the output takes of each of the input; of none, nothing."""
    step, rows = size / count, max(1, BLOCK // size)
    made = np.empty((count, size), np.float32)
    for first in range(0, count, rows):
        centres = (np.arange(first, min(first + rows, count)) + 0.5) * step - 0.5
        near = np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(size)) / step)
        total = near.sum(1, keepdims=True)
        made[first : first + rows] = near / np.where(total > 0, total, 1)
    return made


def _factor(old: Old) -> Factor | bool:
    """What Resample resizes by: a factor of the file's, one it does not say, or to its sizes."""
    if len(old) > 1 or (old.integer("height", 0) and old.integer("width", 0)):
        return False
    if not old.has("factor"):
        return True
    factor = float(np.float32(old.real("factor")))
    if not 0 < factor < 1e6:
        raise IRError(f"factor is {old.text('factor')}, it lies above 0")
    return Factor(factor, "Ceiling")


def _sizes(old: Old, dims: tuple[int, ...], factor: Factor | bool) -> tuple[int, ...]:
    """The spatial sizes of the output; what ran are the declared ones."""
    declared = old.declared(0, len(dims), len(dims))
    said: tuple[int, ...] | None = None
    if len(old) > 1:
        value = old.value(1)
        if value is not None and value.size == len(dims):
            said = tuple(int(n) for n in value.ravel()[2:])
    elif isinstance(factor, Factor):
        said = factor.of(dims[2:])
    elif not factor:
        said = (*dims[2:-2], old.integer("height"), old.integer("width"))
    if said is not None and said != declared[2:]:
        old.remark(
            f"the declared sizes {list(declared[2:])} are taken, attributes or input 1 give "
            f"{list(said)}"
        )
    return declared[2:]


@converts(
    "Interp",
    "width=0 height=0 factor=0 zoom_factor=0 shrink_factor=0 align_corners=1 pad_beg=0 pad_end=0",
    becomes=f"Interpolate-4 Slice-8 Pad-1 Floor-1 {_FOLLOWED}",
)  # fmt: skip
def interp(old: Old) -> Made:
    """Bilinear, to the declared sizes; padding below 0 cuts the input, above 0 adds zeros."""
    declared = old.declared(0, 4, 4)
    old.dims(0, 4, 4)
    factor = _interp_factor(old)
    said = old.integer("height", 0) or declared[2], old.integer("width", 0) or declared[3]
    if said != declared[2:]:
        old.remark(f"the declared sizes {list(declared[2:])} are taken, not {list(said)}")
    one = old.reals(0)
    begin, end = old.integer("pad_beg"), old.integer("pad_end")
    if begin or end:
        one = _padded(old, one, begin, end)
    corners = "align_corners" if old.flag("align_corners") else "asymmetric"
    return resized(
        old, one, declared[2:], factor, mode="linear_onnx",
        coordinate_transformation_mode=corners,
    )  # fmt: skip


def _interp_factor(old: Old) -> Factor | bool:
    """What Interp resizes by: its zoom over its shrinking, else its factor; or to its sizes."""
    factor, zoom, shrink = (old.real(n) for n in ("factor", "zoom_factor", "shrink_factor"))
    if old.integer("height") or old.integer("width"):
        return False
    number = (zoom or factor) / (shrink or 1)
    return Factor(float(np.float32(number)), "Floor") if 0 < number < 1e6 else True


def _padded(old: Old, one: Output, begin: int, end: int) -> Output:
    """The input with both spatial axes shorter, or longer by zeros."""
    dims = old.dims()[2:]
    if any(size + begin + end < 1 for size in dims):
        raise IRError(f"pad_beg {begin} and pad_end {end} leave nothing of {list(dims)}")
    cut = (max(0, -begin), max(0, -end))
    if any(cut):
        rows = [(cut[0], cut[0]), until(cut[1], cut[1]), (1, 1), (2, 3)]
        one = old.add("Slice", "opset8", [one, *(old.indices(*row) for row in rows)])
    if begin > 0 or end > 0:
        old.remark("pad_beg or pad_end above 0: zeros are added, as the catalogue of layers says")
        first, last = max(begin, 0), max(end, 0)
        pads = old.indices(0, 0, first, first), old.indices(0, 0, last, last)
        one = old.add("Pad", "opset1", [one, *pads, old.constant(0.0)], pad_mode="constant")
    return one


@converts("Upsampling", "scale sample_type=nearest", becomes="Interpolate-4")
def upsampling(old: Old) -> Made:
    """Each place so often along every spatial axis."""
    scale, dims = old.integer("scale", 1), old.dims(0, 4, 5)
    if old.text("sample_type") != "nearest":
        raise NoCounterpartError(f'Upsampling by "{old.text("sample_type")[:40]}"')
    return resized(
        old, old[0], tuple(n * scale for n in dims[2:]), True, mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
