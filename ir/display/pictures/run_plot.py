"""A run to be looked at: the time that each step takes, and the memory that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol
from xml.sax.saxutils import escape

from ....schemas import UsageError
from ....schemas.printing import printable

#: Sizes of the picture; a chart lies between the labels at its left and the right border.
WIDTH, _MARGIN, _LEFT, _CHART, _ROW = 1100, 20, 90, 170, 20
#: Layers that are named, the slowest.
NAMED = 20

_STYLE = """
svg{background:#fff;font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.h{font-size:13px;font-weight:600;fill:#1b2027}.t{font-size:12px;fill:#1b2027}
.d{font-size:10.5px;fill:#4a5361}.b{fill:#5b8def}.s{fill:#e0703f}.m{fill:#9fd3c7}
.p{fill:none;stroke:#1d6b62;stroke-width:1.3}.x{stroke:#d5dae1}
@media(prefers-color-scheme:dark){svg{background:#15181d}.h,.t{fill:#eef1f5}.d{fill:#b3bac6}
.b{fill:#6ea2ff}.s{fill:#f59a5b}.m{fill:#1c5a50}.p{stroke:#8fdccd}.x{stroke:#363d48}}
"""


class Step(Protocol):
    """One step of a run: a layer with those that are computed together with it."""

    @property
    def name(self) -> str:
        """The layer."""

    @property
    def operation(self) -> str:
        """What it computes."""

    @property
    def seconds(self) -> float:
        """How long it takes."""

    @property
    def held(self) -> int:
        """Bytes of all values that are needed meanwhile."""


def plot_run(steps: Sequence[Step], title: str) -> str:
    """The time of each step and the memory over the run as SVG, and the slowest by name.

    Args:
        steps: In the order of computing.
        title: What the picture is called.

    Raises:
        UsageError: Nothing is computed.
    """
    if not steps:
        raise UsageError("nothing is computed, there is no time to draw")
    whole = sum(step.seconds for step in steps)
    order = sorted(range(len(steps)), key=lambda n: -steps[n].seconds)[:NAMED]
    memory = _MARGIN + 60 + _CHART
    table = memory + 56 + _CHART
    height = table + 24 + _ROW * len(order) + _MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(printable(title, 200))}</title>",
        f"<style>{_STYLE}</style>",
        *_times(steps, set(order[:5]), whole, _MARGIN + 22),
        *_memory(steps, memory + 18),
        *_slowest(steps, order, whole, table + 18),
        "</svg>",
        "",
    ])  # fmt: skip


def _column(number: int, count: int) -> tuple[float, float]:
    """The left end and the width of a step's part of a chart."""
    each = (WIDTH - _MARGIN - _LEFT) / count
    return _LEFT + each * number, each


def _axis(y: int, top: str, label: str) -> Iterator[str]:
    """The heading of a chart, its largest value and its zero."""
    yield f'<text class="h" x="{_MARGIN}" y="{y - 8}">{escape(label)}</text>'
    for text, place in ((top, y), ("0", y + _CHART)):
        yield f'<line class="x" x1="{_LEFT}" x2="{WIDTH - _MARGIN}" y1="{place}" y2="{place}"/>'
        yield (
            f'<text class="d" x="{_LEFT - 6}" y="{place + 4}" text-anchor="end">'
            f"{escape(text)}</text>"
        )


def _times(steps: Sequence[Step], slow: set[int], whole: float, y: int) -> Iterator[str]:
    most = max(step.seconds for step in steps)
    yield from _axis(y, seconds_text(most), f"time by layer, {seconds_text(whole)} in all")
    for number, step in enumerate(steps):
        x, each = _column(number, len(steps))
        tall = _CHART * step.seconds / most if most else 0.0
        kind = "s" if number in slow else "b"
        yield (
            f'<rect class="{kind}" x="{x:.2f}" y="{y + _CHART - tall:.1f}" '
            f'width="{max(each - min(1.0, each / 4), 0.3):.2f}" height="{tall:.1f}">'
            f"<title>{_said(step)}: {seconds_text(step.seconds)}</title></rect>"
        )


def _memory(steps: Sequence[Step], y: int) -> Iterator[str]:
    most = max(step.held for step in steps)
    highest = next(step for step in steps if step.held == most)
    label = f"memory over the run, at most {bytes_text(most)} in {printable(highest.name, 80)}"
    yield from _axis(y, bytes_text(most), label)
    line = []
    for number, step in enumerate(steps):
        x, each = _column(number, len(steps))
        tall = _CHART * step.held / most if most else 0.0
        line.append(f"L{x:.2f} {y + _CHART - tall:.1f}H{x + each:.2f}")
        yield (
            f'<rect class="m" x="{x:.2f}" y="{y + _CHART - tall:.1f}" width="{each:.2f}" '
            f'height="{tall:.1f}"><title>{_said(step)}: {bytes_text(step.held)}</title></rect>'
        )
    yield f'<path class="p" d="M{"".join(line)[1:]}"/>'


def _slowest(steps: Sequence[Step], order: Sequence[int], whole: float, y: int) -> Iterator[str]:
    yield f'<text class="h" x="{_MARGIN}" y="{y - 8}">the slowest</text>'
    most = max(steps[order[0]].seconds, 1e-12)
    for place, number in enumerate(order):
        step, low = steps[number], y + _ROW * (place + 1)
        share = step.seconds / whole if whole else 0.0
        wide = 250 * step.seconds / most
        yield (
            f'<text class="t" x="{_MARGIN}" y="{low}">{escape(printable(step.name, 62))}</text>'
            f'<text class="d" x="470" y="{low}">{escape(printable(step.operation, 40))}</text>'
            f'<rect class="{"s" if place < 5 else "b"}" x="720" y="{low - 10}" '
            f'width="{wide:.1f}" height="11"/>'
            f'<text class="d" x="{730 + wide:.1f}" y="{low}">{seconds_text(step.seconds)}, '
            f"{share:.1%}</text>"
        )


def _said(step: Step) -> str:
    return escape(f"{printable(step.name, 120)} ({printable(step.operation, 80)})")


def seconds_text(seconds: float) -> str:
    """A time as a person reads it."""
    for least, factor, unit in ((1.0, 1.0, "s"), (1e-3, 1e3, "ms")):
        if seconds >= least:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.1f} µs"


def bytes_text(count: int) -> str:
    """A number of bytes as a person reads it."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


__all__ = ["plot_run"]
