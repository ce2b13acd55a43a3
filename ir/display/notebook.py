"""What objects show of themselves in a notebook: one table each, bounded in time and size.

An object says what it is by ``as_table``; those of the document and of inference are described
here. Names are escaped, and what a browser would obey in them is not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import islice
from math import prod
from typing import Any

import numpy as np

from ...schemas import Array, IRError
from ...schemas.printing import Table, counted, printable
from ..document import Ends, Graph, Layer, Model
from ..inference import Inferred
from .pictures.ranges import shares

#: Rows of a table, characters of a cell, and arrays that get a picture.
ROWS, LONGEST, PICTURES = 40, 160, 8
#: Squares of a picture along an axis, and of one that is a strip.
SIDE, STRIP = 24, 64
#: Elements of a constant that is unpacked to be shown.
LARGEST = 1 << 24
_LEFT = 'style="text-align:left"'


def html(shown: object) -> str:
    """A table of what there is to say of an object."""
    described = next((make for kind, make in _TABLES.items() if isinstance(shown, kind)), None)
    as_table = getattr(shown, "as_table", None)
    try:
        table: Table = described(shown) if described is not None else as_table()  # type: ignore[misc]  # what has neither is not shown
        return table_html(table)
    except IRError as error:
        # Something in the file is wrong: that is what there is to say.
        return f"<p><b>{_text(type(shown).__name__)}</b></p><p>{_text(error)}</p>"


def table_html(table: Table) -> str:
    """A table as HTML."""
    rows = list(islice(table.rows, ROWS + 1))
    more = len(rows) > ROWS
    lines = [f"<p><b>{_text(table.title)}</b></p>"]
    if rows:
        heads = "".join(
            f'<th style="text-align:left">{_text(name)}</th>' for name in table.columns
        )
        lines.append(f"<table><thead><tr>{heads}</tr></thead><tbody>")
        pictures = 0
        for row in rows[:ROWS]:
            cells = []
            for cell in row:
                if isinstance(cell, np.ndarray):
                    pictures += 1
                    inner = picture(cell) if pictures <= PICTURES else ""
                else:
                    inner = _text(cell)
                cells.append(f"<td {_LEFT}>{inner}</td>")
            lines.append(f"<tr>{''.join(cells)}</tr>")
        lines.append("</tbody></table>")
    if more:
        rest = "more" if table.total is None else f"{table.total - ROWS} more"
        lines.append(f"<p>… and {rest}</p>")
    if table.hint:
        lines.append(f"<p><i>next: {_text(table.hint)}</i></p>")
    return "".join(lines)


def _text(value: object) -> str:
    return escape(printable("" if value is None else value, LONGEST))


def picture(array: Array) -> str:
    """An array as squares from dark to light, a few taken from all of it; NaN is red."""
    if not array.size or array.dtype.kind not in "biufV":
        return ""
    plane = array[(0,) * (array.ndim - 2)] if array.ndim > 1 else array.reshape(1, -1)
    if min(plane.shape) == 1:
        plane = plane.reshape(1, -1)
        plane = plane[:, _taken(plane.shape[1], STRIP)]
    else:
        plane = plane[np.ix_(_taken(plane.shape[0], SIDE), _taken(plane.shape[1], SIDE))]
    with np.errstate(all="ignore"):
        values = plane.astype(np.float64)
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        shades = shares(np.clip(values, low, high), low, high)
    size = 5
    squares = "".join(
        f'<rect x="{x * size}" y="{y * size}" width="{size}" height="{size}" '
        f'fill="{_colour(float(shades[y, x]))}"/>'
        for y, x in np.ndindex(*shades.shape)
    )
    height, width = (length * size for length in shades.shape)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'role="img" aria-label="values from {low:.3g} to {high:.3g}">{squares}</svg>'
    )


def _taken(length: int, most: int) -> Array:
    """Which places of an axis are shown."""
    return np.unique(np.linspace(0, length - 1, min(length, most)).astype(np.int64))


def _colour(shade: float) -> str:
    if shade != shade:
        return "#c00"
    level = int(40 + 200 * shade)
    return f"#{level:02x}{level:02x}{min(255, level + 15):02x}"


# What the document's own objects say.


def _model(model: Model) -> Table:
    kinds = Counter(layer.type for layer in model.layers).most_common(6)
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds)
    size = "" if model.weights is None else f", {model.weights.size:,} bytes of weights"
    return Table(
        f"model {model.name!r}, IR version {model.version}, {counted(len(model), 'layer')} "
        f"({listed}){size}",
        ("", "name", "type", "shape", "further names"),
        _ends(model),
        hint="ir.check(model), ir.run(model, {name: array}), model.edit, ir.draw(model)",
    )


def _ends(model: Model) -> Iterator[Sequence[object]]:
    for what, ends in (("input", model.inputs), ("output", model.outputs)):
        for end in ends:
            names = ", ".join(name for name in end.names if name != end.name)
            yield what, end.name, end.type, f"[{end.shape}]", names


def _graph(graph: Graph) -> Table:
    return Table(
        f"graph of {counted(len(graph), 'layer')}",
        ("id", "name", "operation"),
        ((x.id, x.name, f"{x.type} {x.version}") for x in graph.layers),
        len(graph),
    )


def _only_ends(ends: Ends) -> Table:
    rows = ((e.name, e.type, f"[{e.shape}]", ", ".join(e.names[1:])) for e in ends)
    return Table(
        counted(len(ends), "tensor"), ("name", "type", "shape", "further names"), rows, len(ends)
    )


def _layer(layer: Layer) -> Table:
    return Table(repr(layer).strip("<>"), ("", "name", "value", "joined to"), _parts(layer))


def _parts(layer: Layer) -> Iterator[Sequence[object]]:
    for name, text in layer.data.items():
        yield "attribute", name, text, ""
    for port in layer.inputs:
        source = port.source
        yield "input", port.name, port.tensor, "" if source is None else source.name
    for port in layer.outputs:
        users = ", ".join(user.name for user in port.consumers[:8])
        yield "output", port.name, port.tensor, users
    if layer.is_constant and layer.has_value and prod(layer.sizes) <= LARGEST:
        yield "value", "", "", layer.value


def _inferred(inferred: Inferred) -> Table:
    return Table(
        f"types and shapes of {counted(len(inferred.tensors), 'layer')}",
        ("output", "type", "shape"),
        ((name, tensor.type, f"[{tensor.shape}]") for name, tensor in inferred.items()),
        len(inferred),
        'inferred["name of a layer or tensor"], inferred.ports()',
    )


_TABLES: dict[type, Callable[[Any], Table]] = {
    Model: _model,
    Graph: _graph,
    Ends: _only_ends,
    Layer: _layer,
    Inferred: _inferred,
}

__all__ = ["html", "picture", "table_html"]
