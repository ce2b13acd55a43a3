"""Weights to be looked at: the range and the histogram of every constant, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log10, prod
from xml.sax.saxutils import escape

import numpy as np

from ....schemas import Array, UsageError
from ....schemas.printing import printable
from ...document import Layer, Model
from .labels import spell
from .ranges import Range, pieces, places, scale_of

#: Bars of a histogram.
BARS = 40
ROW, _NAME, _RANGE, _HISTOGRAM, _FACTS, _MARGIN = 30, 330, 300, 240, 250, 20
#: Magnitudes that the common scale shows below the largest.
_DECADES = 6

_STYLE = """
svg{background:#fff;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.t{font-size:12px;fill:#1b2027}.d{font-size:10.5px;fill:#4a5361}.b{fill:#5b8def}.r{fill:#bcd6fb}
.m{stroke:#244a80;stroke-width:1.5}.x{stroke:#d5dae1}.w{fill:#d9534f}
@media(prefers-color-scheme:dark){svg{background:#15181d}.t{fill:#eef1f5}.d{fill:#b3bac6}
.b{fill:#6ea2ff}.r{fill:#244a80}.m{stroke:#bcd6fb}.x{stroke:#363d48}.w{fill:#f0776a}}
"""


@dataclass
class Spread:
    """How the values of a constant lie; of the finite ones, if there are any."""

    count: int
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    deviation: float = 0.0
    zeros: int = 0
    #: Values that are infinite or no number.
    strange: int = 0
    bars: tuple[int, ...] = ()

    @classmethod
    def of(cls, value: Array) -> Spread:
        """All values, a piece at a time, so that no second copy of them is made."""
        flat = value.reshape(-1)
        whole = Range.of(flat)
        found = cls(int(flat.size), zeros=whole.zeros, strange=whole.strange)
        if not whole.counted:
            return found
        low, high = whole.low, whole.high
        found.low, found.high, found.mean = low, high, whole.mean
        bars = np.zeros(BARS, np.int64)
        # Squares of shares of the furthest from the mean: none is too large or too small.
        scale = scale_of(low, high)
        middle = whole.mean * scale
        furthest = max(high * scale - middle, middle - low * scale)
        squares = 0.0
        for part in pieces(flat):
            finite = part[np.isfinite(part)]
            if low == high:
                bars[BARS // 2] += finite.size  # all the same
            else:
                squares += float(np.square((finite * scale - middle) / furthest).sum())
                bars += np.bincount(places(finite, low, high, BARS), minlength=BARS)
        found.deviation = furthest * (squares / whole.counted) ** 0.5 / scale
        found.bars = tuple(bars.tolist())
        return found


def plotted(model: Model, least: int = 2) -> list[tuple[int, Layer]]:
    """The constants of so many numbers or more, each with its count."""
    sized = (
        (prod(layer.sizes), layer)
        for layer in model.everywhere()
        if layer.is_constant and layer.element_type.dtype.kind not in "TOSU"
    )
    return [pair for pair in sized if pair[0] >= least]


def plot_weights(model: Model, *, least: int = 2, most: int = 500) -> str:
    """The constants as SVG, in the order of the file: a common scale, and each one's histogram.

    Args:
        model: The model, with its weights.
        least: Constants of fewer values are left out.
        most: So many constants are shown, the largest.

    Raises:
        UsageError: There is no constant of so many numbers.
    """
    sized = plotted(model, least)
    if not sized:
        raise UsageError(f"the model has no constant of {least} numbers or more")
    # Of equal sizes those that come first in the file.
    largest = sorted(range(len(sized)), key=lambda index: -sized[index][0])[:most]
    shown = [sized[index][1] for index in sorted(largest)]
    spreads = [Spread.of(layer.value) for layer in shown]
    top = max((max(abs(s.low), abs(s.high)) for s in spreads), default=0.0)
    width = _NAME + _RANGE + _HISTOGRAM + _FACTS + 2 * _MARGIN
    height = ROW * (len(shown) + 1) + 2 * _MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{escape(printable(f'weights of {model.name}', 200))}</title>",
        f"<style>{_STYLE}</style>",
        *_head(top, len(shown), len(sized)),
        *(part for index, (layer, spread) in enumerate(zip(shown, spreads, strict=True))
          for part in _row(layer, spread, _MARGIN + ROW * (index + 1), top)),
        "</svg>",
        "",
    ])  # fmt: skip


def _head(top: float, shown: int, whole: int) -> Iterator[str]:
    x = _MARGIN + _NAME
    yield f'<text class="d" x="{_MARGIN}" y="{_MARGIN + 12}">constant</text>'
    half = top / 10 ** (_DECADES / 2)
    said = [(_place(value, top), f"{value:.3g}") for value in (-top, -half, half, top) if value]
    # What is smaller than all decades lies in the middle, as 0 does.
    for offset, text in [*said, (0.0, "0")]:
        yield (
            f'<text class="d" x="{x + _RANGE / 2 + offset:.1f}" y="{_MARGIN + 12}" '
            f'text-anchor="middle">{text}</text>'
        )
    yield (
        f'<text class="d" x="{x + _RANGE / 2}" y="{_MARGIN + 25}" text-anchor="middle">'
        f"logarithmic: {_DECADES} decades to each side</text>"
    )
    right = x + _RANGE + 20
    yield f'<text class="d" x="{right}" y="{_MARGIN + 12}">from its least to its largest</text>'
    if shown < whole:
        yield (
            f'<text class="d" x="{_MARGIN}" y="{_MARGIN + 25}">'
            f"the {shown} largest of {whole}</text>"
        )


def _place(value: float, top: float) -> float:
    """A value on the common scale, in magnitudes to both sides of zero."""
    if not value or not top:
        return 0.0
    depth = min(max(1 + log10(abs(value) / top) / _DECADES, 0.0), 1.0)
    return (_RANGE / 2 - 14) * (depth if value > 0 else -depth)


def _row(layer: Layer, spread: Spread, y: int, top: float) -> Iterator[str]:
    name = printable(layer.name, 52)
    yield f'<line class="x" x1="{_MARGIN}" x2="1100" y1="{y}" y2="{y}"/>'
    yield f'<text class="t" x="{_MARGIN}" y="{y + 13}">{escape(name)}</text>'
    kind = spell(layer.outputs[0]) if layer.outputs else str(layer.element_type)
    yield f'<text class="d" x="{_MARGIN}" y="{y + 26}">{escape(kind)}</text>'
    middle = _MARGIN + _NAME + _RANGE / 2
    low, high = middle + _place(spread.low, top), middle + _place(spread.high, top)
    wide = max(high - low, 1.0)
    yield f'<rect class="r" x="{low:.1f}" y="{y + 10}" width="{wide:.1f}" height="10"/>'
    mean = middle + _place(spread.mean, top)
    yield f'<line class="m" x1="{mean:.1f}" x2="{mean:.1f}" y1="{y + 6}" y2="{y + 24}"/>'
    left = _MARGIN + _NAME + _RANGE + 20
    most = max(spread.bars, default=0)
    step = (_HISTOGRAM - 30) / BARS
    for index, count in enumerate(spread.bars):
        if count:
            bar = max((ROW - 6) * count / most, 0.8)
            yield (
                f'<rect class="b" x="{left + step * index:.1f}" y="{y + ROW - 2 - bar:.1f}" '
                f'width="{step - 0.6:.1f}" height="{bar:.1f}"/>'
            )
    right = left + _HISTOGRAM - 10
    facts = f"{spread.low:.4g} to {spread.high:.4g}"
    more = f"mean {spread.mean:.3g}, deviation {spread.deviation:.3g}"
    if spread.zeros:
        more += f", {spread.zeros / spread.count:.0%} zeros"
    yield f'<text class="d" x="{right}" y="{y + 13}">{facts}</text>'
    yield f'<text class="d" x="{right}" y="{y + 26}">{more}</text>'
    if spread.strange:
        are = "value is" if spread.strange == 1 else "values are"
        yield (
            f'<circle class="w" cx="{right - 8}" cy="{y + 10}" r="3.5">'
            f"<title>{spread.strange} {are} infinite or no number</title></circle>"
        )


__all__ = ["BARS", "Spread", "plot_weights", "plotted"]
