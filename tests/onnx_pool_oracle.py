"""ONNX pooling by its definition, in plain loops; shares nothing with what it tests.

For each output cell the window's elements are looked up one by one. What the cell is:

    MaxPool       the largest element; where there is none, the lowest number of the type
    AveragePool   their sum divided by their number; with count_include_pad the number of cells
                  inside the padded input, so that what overhangs it is never counted
    LpPool        the root of the sum of their powers
    Indices       the element's number, row by row, or column by column with storage_order=1

A window that begins in the end padding is dropped where ``ceil_mode`` made it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

import numpy as np


@dataclass
class Pool:
    """One node: its operator, version and attributes."""

    kind: str
    opset: int
    kernel: list[int]
    strides: list[int] | None = None
    pads: list[int] | None = None
    dilations: list[int] | None = None
    auto_pad: str | None = None
    ceil_mode: int | None = None
    count_include_pad: int | None = None
    storage_order: int | None = None
    p: float | None = None
    indices: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    def attributes(self) -> dict[str, Any]:
        """As the node states them."""
        names = ("strides", "pads", "dilations", "auto_pad", "ceil_mode", "count_include_pad",
                 "storage_order", "p")  # fmt: skip
        stated = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {"kernel_shape": self.kernel} | stated | self.more

    def axis(self, index: int, size: int) -> tuple[int, int, int]:
        """Windows along an axis, and the padding before and after it."""
        kernel, stride = self.kernel[index], (self.strides or [1] * 9)[index]
        reach = (kernel - 1) * (self.dilations or [1] * 9)[index] + 1
        mode = self.auto_pad or "NOTSET"
        if mode.startswith("SAME"):
            count = ceil(size / stride)
            total = max((count - 1) * stride + reach - size, 0)
            small, large = total // 2, total - total // 2
            return (count, small, large) if mode == "SAME_UPPER" else (count, large, small)
        begin = end = 0
        if mode == "NOTSET" and self.pads:
            begin, end = self.pads[index], self.pads[index + len(self.kernel)]
        steps = (size + begin + end - reach) / stride
        if not self.ceil_mode:
            return floor(steps) + 1, begin, end
        count = ceil(steps) + 1
        while (count - 1) * stride >= size + begin:
            count -= 1
        return count, begin, end


def definition(pool: Pool, x: Any) -> list[Any]:
    """The outputs of the node."""
    sizes = x.shape[2:]
    rows = [pool.axis(index, size) for index, size in enumerate(sizes)]
    out = np.zeros((*x.shape[:2], *(row[0] for row in rows)), np.float64)
    where = np.zeros(out.shape, np.int64)
    strides, gaps = pool.strides or [1] * len(sizes), pool.dilations or [1] * len(sizes)
    for place in np.ndindex(*out.shape):
        cells = []
        inside_padding = 0
        for step in itertools.product(*(range(k) for k in pool.kernel)):
            at = [
                place[i + 2] * strides[i] + step[i] * gaps[i] - rows[i][1]
                for i in range(len(sizes))
            ]
            if all(-rows[i][1] <= at[i] < sizes[i] + rows[i][2] for i in range(len(sizes))):
                inside_padding += 1
            if all(0 <= at[i] < sizes[i] for i in range(len(sizes))):
                cells.append((float(x[(*place[:2], *at)]), at))
        values = [value for value, _ in cells]
        if pool.kind == "MaxPool":
            least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else float(np.finfo(x.dtype).min)
            best = max(range(len(cells)), key=lambda i: values[i], default=None)
            out[place] = least if best is None else values[best]
            # Where there is none, OpenVINO names the plane's first element; ONNX says nothing.
            at = [0] * len(sizes) if best is None else cells[best][1]
            where[place] = number(x.shape, place, at, pool.storage_order or 0)
        elif pool.kind == "AveragePool":
            count = inside_padding if pool.count_include_pad else len(cells)
            out[place] = sum(values) / count if count else np.nan
        else:
            power = 2 if pool.p is None else pool.p
            out[place] = sum(abs(value) ** power for value in values) ** (1 / power)
    made = out.astype(x.dtype)
    return [made, where] if pool.indices else [made]


def number(shape: tuple[int, ...], place: tuple[int, ...], at: list[int], order: int) -> int:
    """The number of an element in the whole input."""
    sizes, total = list(shape[2:]), 0
    pairs = list(zip(at, sizes, strict=True))
    for here, size in reversed(pairs) if order else pairs:
        total = total * size + here
    return int((place[0] * shape[1] + place[1]) * np.prod(sizes) + total)
