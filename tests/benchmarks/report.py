"""Tables as Markdown, and ratios as an SVG plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import exp, log
from typing import Any

Row = Mapping[str, Any]


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def table(title: str, rows: Sequence[Row]) -> str:
    """A section with one table."""
    names = list(rows[0])
    lines = [f"## {title}", "", f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    lines += [f"| {' | '.join(cell(row[name]) for name in names)} |" for row in rows]
    ratios = [name for name in names if name.startswith("ratio")]
    lines += [""] + [
        f"Geometric mean of {name}: {mean([row[name] for row in rows]):.2f}" for name in ratios
    ]
    return "\n".join(lines) + "\n"


def cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 1e-2 else f"{value:.2f}"


def plot(title: str, bars: Sequence[tuple[str, float]]) -> str:
    """Ratios as bars; the line at 1 is where both take the same time."""
    left, wide, high = 330, 420, 18
    top = max(2.0, max(value for _, value in bars) * 1.1)
    height = 60 + high * len(bars)

    def across(value: float) -> float:
        return left + wide * value / top

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + wide + 60}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="10" y="22" font-size="15">{escape(title)}</text>',
    ]
    for place, (name, value) in enumerate(bars):
        y = 40 + high * place
        colour = "#3a7d44" if value <= 1 else "#c98b2e" if value <= 1.3 else "#b3412f"
        lines += [
            f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{left}" y="{y}" width="{across(value) - left:.1f}" height="{high - 4}" '
            f'fill="{colour}"/>',
            f'<text x="{across(value) + 4:.1f}" y="{y + 11}">{value:.2f}</text>',
        ]
    one = f"{across(1):.1f}"
    line = f'<line x1="{one}" x2="{one}" y1="34" y2="{height - 16}" stroke="#333"/>'
    return "\n".join([*lines, line, "</svg>", ""])
