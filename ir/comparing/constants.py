"""How far two constants are apart, measured piece by piece."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...schemas import Array
from ...schemas.packing import plain_texts
from ..document import Layer
from ..storage import blocks


@dataclass(frozen=True)
class Distance:
    """What separates the values of two constants of one shape."""

    #: Elements, and how many of them differ.
    elements: int
    differing: int
    #: The largest difference, and the largest relative to the first constant's value there.
    absolute: float
    relative: float
    #: The mean square of the difference over that of the first constant.
    nmse: float
    #: Bits that differ; None where the two are stored in different types.
    bits: int | None

    def __str__(self) -> str:
        text = f"{self.differing} of {self.elements} values differ"
        if self.absolute:
            text += (
                f", the most by {self.absolute:.3g} (relative {self.relative:.3g}, "
                f"normalised mean square {self.nmse:.3g})"
            )
        return text if self.bits is None else f"{text}, {self.bits} bits"


def distance(one: Layer, two: Layer) -> Distance | None:
    """Measure two constants; None where their shapes differ or a value is not at hand."""
    if not (one.has_value and two.has_value) or one.sizes != two.sizes:
        return None
    left, right = one.value.reshape(-1), two.value.reshape(-1)
    bits = None
    if one.element_type == two.element_type and len(one.blob) == len(two.blob):
        bits = _bits(np.frombuffer(one.blob, np.uint8), np.frombuffer(two.blob, np.uint8))
    if left.dtype.kind == "T" or right.dtype.kind == "T":
        differing = int(np.count_nonzero(plain_texts(left) != plain_texts(right)))
        return Distance(left.size, differing, 0.0, 0.0, 0.0, bits)
    differing, absolute, relative, square, power = 0, 0.0, 0.0, 0.0, 0.0
    with np.errstate(all="ignore"):
        for a, b in zip(blocks(left), blocks(right), strict=True):
            apart = unequal(a, b)
            differing += int(np.count_nonzero(apart))
            x, y = a.astype(np.float64), b.astype(np.float64)
            power += float(np.square(x[np.isfinite(x)]).sum())
            if not apart.any():
                continue
            off = np.abs(x[apart] - y[apart])
            off = np.where(np.isnan(off), np.inf, off)
            absolute = max(absolute, float(off.max()))
            base = np.abs(x[apart])
            ratio = np.where((base > 0) & np.isfinite(base), off / base, np.inf)
            relative = max(relative, float(ratio.max()))
            square += float(np.square(off).sum())
    nmse = square / power if power else (float("inf") if square else 0.0)
    return Distance(left.size, differing, absolute, relative, nmse, bits)


def unequal(one: Array, two: Array) -> Array:
    """Where two arrays of numbers differ; NaN is what NaN is."""
    if one.dtype.kind in "iub" and two.dtype.kind in "iub":
        return np.asarray(one != two)
    x, y = one.astype(np.float64), two.astype(np.float64)
    return np.asarray((x != y) & ~(np.isnan(x) & np.isnan(y)))


def _bits(one: Array, two: Array) -> int:
    pairs = zip(blocks(one), blocks(two), strict=True)
    return sum(int(np.bitwise_count(a ^ b).sum()) for a, b in pairs)
