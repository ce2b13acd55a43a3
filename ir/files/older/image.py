"""Resizing: Resample, Interp and Upsampling.

Which place of the input a place ``o`` of the output looks at, with f = input size / output size:

- Resample, nearest: floor(o f). Linear: (o + 0.5) f - 0.5, by a triangle of two places each way
  that is widened by f where ``antialias`` and the output is smaller.
- Interp: o (in - 1) / (out - 1) with ``align_corners``, which is the default; else o f.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....schemas import IRError
from ...document import Output
from .layer import NoCounterpartError, Old
from .table import Made, converts

METHODS = {
    "caffe.ResampleParameter.NEAREST": "nearest", "nearest": "nearest",
    "caffe.ResampleParameter.LINEAR": "linear", "linear": "linear", "bilinear": "linear",
    "caffe.ResampleParameter.CUBIC": "cubic", "cubic": "cubic",
    "caffe.ResampleParameter.AREA": "area", "area": "area",
}  # fmt: skip

#: Places of the largest matrix that resizes an axis.
LARGEST = 2**24


def resized(old: Old, one: Output, sizes: tuple[int, ...], *, factor: bool, **how: Any) -> Output:
    """The spatial axes in other sizes; by a whole factor, other inputs are resized by it, too."""
    axes = tuple(range(2, 2 + len(sizes)))
    pairs = list(zip(sizes, one.tensor.shape.static[2:], strict=True))
    factors = {new / size for new, size in pairs}
    how["shape_calculation_mode"] = "sizes"
    if factor and len(factors) == 1 and min(factors).is_integer():
        how["shape_calculation_mode"] = "scales"
    scales = old.constant(np.array([new / size for new, size in pairs], np.float32))
    inputs = [one, old.indices(*sizes), scales, old.indices(*axes)]
    return old.add("Interpolate", "opset4", inputs, **how)


@converts(
    "Resample", "type=caffe.ResampleParameter.NEAREST factor? antialias=0 height=0 width=0",
    becomes="Interpolate-4 MatMul-1 Reshape-1", idle="fx fy num",
)  # fmt: skip
def resample(old: Old) -> Made:
    """Sizes in input 1, or those declared: ceil(size * factor)."""
    dims = old.dims()
    if len(dims) not in (4, 5):
        raise IRError(f"the input is {list(dims)}, Resample takes 4 or 5 axes")
    method = old.choice("type", METHODS)
    sizes = _sizes(old, dims)
    factor = len(old) < 2 and not (old.integer("height") and old.integer("width"))
    if method in ("cubic", "area"):
        raise NoCounterpartError(f"Resample by {method} was run by no CPU plug-in")
    if method == "nearest":
        return resized(
            old, old[0], sizes, factor=factor, mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric",
        )  # fmt: skip
    smaller = any(new < size for new, size in zip(sizes, dims[2:], strict=True))
    if old.flag("antialias") and smaller:
        return _widened(old, sizes)
    return resized(
        old, old.reals(0), sizes, factor=factor, mode="linear",
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip


def _widened(old: Old, sizes: tuple[int, ...]) -> Output:
    """Linear with ``antialias``, as products of matrices: OpenVINO of today ignores the word."""
    dims = old.dims()
    if any(size * new > LARGEST for size, new in zip(dims[2:], sizes, strict=True)):
        raise IRError(f"{list(dims[2:])} to {list(sizes)} takes a matrix of too many places")
    old.remark("linear with antialias is a product by a matrix for each axis")
    *deep, height, width = (
        old.constant(triangles(size, new)) for size, new in zip(dims[2:], sizes, strict=True)
    )
    made = old.add(
        "MatMul", "opset1", [height, old.reals(0)], transpose_a=False, transpose_b=False
    )
    made = old.add("MatMul", "opset1", [made, width], transpose_a=False, transpose_b=True)
    for depth in deep:
        flat = old.reshape(made, (*dims[:3], sizes[-2] * sizes[-1]))
        made = old.add("MatMul", "opset1", [depth, flat], transpose_a=False, transpose_b=False)
        made = old.reshape(made, (*dims[:2], *sizes))
    return made


def triangles(size: int, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """What each place of the output takes of each of the input; of none, nothing."""
    step = size / count
    centres = (np.arange(count) + 0.5) * step - 0.5
    near = np.maximum(0, 1 - np.abs(centres[:, None] - np.arange(size)) / step)
    total = near.sum(1, keepdims=True)
    return np.divide(near, total, out=np.zeros_like(near), where=total > 0).astype(np.float32)


def _sizes(old: Old, dims: tuple[int, ...]) -> tuple[int, ...]:
    """The spatial sizes of the output; what ran are the declared ones."""
    declared = old.declared()
    if len(declared) != len(dims):
        raise IRError(f"the output is {list(declared)}, the input {list(dims)}")
    said: tuple[int, ...] | None = None
    if len(old) > 1:
        value = old.value(1)
        if value is not None and value.size == len(dims):
            said = tuple(int(n) for n in value.ravel()[2:])
    elif old.integer("height", 0) and old.integer("width", 0):
        said = (*dims[2:-2], old.integer("height"), old.integer("width"))
    elif old.has("factor"):
        factor = float(np.float32(old.real("factor")))
        if not 0 < factor < 1e6:
            raise IRError(f"factor is {old.text('factor')}, it lies above 0")
        said = tuple(math.ceil(n * factor) for n in dims[2:])
    if said is not None and said != declared[2:]:
        old.remark(
            f"the declared sizes {list(declared[2:])} are taken, attributes or input 1 give "
            f"{list(said)}"
        )
    return declared[2:]


@converts(
    "Interp",
    "width=0 height=0 factor=0 zoom_factor=0 shrink_factor=0 align_corners=1 pad_beg=0 pad_end=0",
    becomes="Interpolate-4 Slice-8 Pad-1",
)  # fmt: skip
def interp(old: Old) -> Made:
    """Bilinear, to the declared sizes; padding below 0 cuts the input, above 0 adds zeros."""
    dims, declared = old.dims(), old.declared()
    if len(dims) != 4 or len(declared) != 4:
        raise IRError(f"input {list(dims)} and output {list(declared)}, Interp takes 4 axes")
    for name in ("factor", "zoom_factor", "shrink_factor"):
        old.real(name)
    said = old.integer("height", 0) or declared[2], old.integer("width", 0) or declared[3]
    if said != declared[2:]:
        old.remark(f"the declared sizes {list(declared[2:])} are taken, not {list(said)}")
    one = old.reals(0)
    begin, end = old.integer("pad_beg"), old.integer("pad_end")
    if begin or end:
        one = _padded(old, one, begin, end)
    corners = "align_corners" if old.flag("align_corners") else "asymmetric"
    factor = not old.integer("height") and not old.integer("width")
    return resized(
        old, one, declared[2:], factor=factor, mode="linear_onnx",
        coordinate_transformation_mode=corners,
    )  # fmt: skip


def _padded(old: Old, one: Output, begin: int, end: int) -> Output:
    """The input with both spatial axes shorter, or longer by zeros."""
    dims = old.dims()[2:]
    if any(size + begin + end < 1 for size in dims):
        raise IRError(f"pad_beg {begin} and pad_end {end} leave nothing of {list(dims)}")
    cut = (max(0, -begin), max(0, -end))
    if any(cut):
        stops = [size - cut[1] for size in dims]
        rows = [(cut[0], cut[0]), stops, (1, 1), (2, 3)]
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
    scale, dims = old.integer("scale", 1), old.dims()
    if old.text("sample_type") != "nearest":
        raise NoCounterpartError(f'Upsampling by "{old.text("sample_type")[:40]}"')
    if len(dims) not in (4, 5):
        raise IRError(f"the input is {list(dims)}, Upsampling takes 4 or 5 axes")
    return resized(
        old, old[0], tuple(n * scale for n in dims[2:]), factor=True, mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
