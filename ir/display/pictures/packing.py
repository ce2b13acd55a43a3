"""What a page knows of a model, as one object of small numbers and few texts."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....layers.base import Op
from ....schemas import IRError
from ....schemas.printing import printable
from ...document import Layer
from ..summaries import declared
from .labels import chip_text
from .painting import Paint, rank
from .palette import FAMILIES, family, inks
from .ranges import Range, places
from .scene import Picture
from .sheet import Sheet

#: Characters that are kept of a name, and of an attribute.
LONGEST_NAME, LONGEST_TEXT = 400, 300
#: A constant's first values, the bars of its histogram, and values that are looked at for it.
FIRST, BARS, SAMPLE = 8, 16, 4096
#: Of a constant of more values, the range and the mean are of the sample too, and say so.
LARGEST = 1 << 22
#: No rail.
NONE = "-"


class _Table:
    """Texts or lists, each kept once."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.known: dict[Any, int] = {}

    def put(self, key: Any, row: Any = None) -> int:
        index = self.known.setdefault(key, len(self.rows))
        if index == len(self.rows):
            self.rows.append(key if row is None else row)
        return index


def pack(picture: Picture, paints: Sequence[Paint], title: str, *, values: bool) -> dict[str, Any]:
    """Everything that the page shows.

    Args:
        picture: The model laid out.
        paints: What boxes can be painted by, beside the kind of their operation.
        title: What the page is called.
        values: Whether constants' first values and histograms go with it.
    """
    return {
        "title": printable(title, LONGEST_NAME),
        **_layers(picture),
        **_groups(picture),
        "paints": [_paint(paint) for paint in paints],
        "constants": _constants(picture) if values else {},
    }


def _layers(picture: Picture) -> dict[str, Any]:
    sheet, labels = picture.sheet, picture.labels
    kinds, shapes, attributes = _Table(), _Table(), _Table()
    rows: list[list[int]] = [[] for _ in range(5)]
    types: list[dict[str, Any]] = []
    for number, layer in enumerate(sheet.layers):
        key = (layer.type, layer.version)
        kind = kinds.put(key)
        if kind == len(types):
            types.append(_type(layer))
        given = tuple(layer.data.items())
        if layer.is_constant:
            given = ()  # type and shape are those of its output, the rest is its place
        if layer.type == "Parameter":
            tensors = tuple(f"{t.type} {t.shape}".strip() for t in declared(layer))
        else:
            tensors = tuple(map(_tensor, ((p.precision, p.dims) for p in layer.outputs)))
        texts = [(short(k), short(v)) for k, v in given]
        rows[0].append(kind)
        rows[1].append(shapes.put(tensors, list(tensors)))
        rows[2].append(attributes.put(given, [part for pair in texts for part in pair]))
        rows[3].append(layer.id)
        rows[4].append(sheet.chip[number])
    inputs: list[list[int]] = [[] for _ in sheet.layers]
    for source, output, target, _ in sorted(sheet.edges, key=lambda e: (e[2], e[3])):
        inputs[target] += [target - source, output]
    wide = np.round(labels.half).astype(int).tolist()
    return {
        "types": types,
        "families": [[name, *pair] for name, pair in FAMILIES.items()],
        "tensors": shapes.rows,
        "attributes": attributes.rows,
        "names": _fronted([printable(layer.name, LONGEST_NAME) for layer in sheet.layers]),
        "layers": [rows[0], rows[1], rows[2], _deltas(rows[3]), rows[4]],
        "inputs": [len(row) // 2 for row in inputs],
        "sources": _flat(row[0::2] for row in inputs),
        "outputs": _flat(row[1::2] for row in inputs),
        "body": _deltas(sheet.body_of),
        "walls": _walls(sheet),
        # Layers whose names are not all that is in the file.
        "cut": [
            n
            for n, layer in enumerate(sheet.layers)
            if printable(layer.name, LONGEST_NAME) != layer.name
        ],
        "half": wide,
        "chipWidth": np.round(labels.chips).astype(int).tolist(),
        "height": np.round(labels.height).astype(int).tolist(),
    }


def short(text: str) -> str:
    """A text of the file as a page shows it."""
    return printable(text, LONGEST_TEXT)


def _tensor(port: tuple[str | None, tuple[int, ...]]) -> str:
    return f"{port[0] or '?'} {','.join('?' if n < 0 else str(n) for n in port[1])}".strip()


def _type(layer: Layer) -> dict[str, Any]:
    from .... import layers  # noqa: F401  # declares the operations

    op = Op.find(layer.type, layer.version)
    text = "" if op is None else (op.__doc__ or "").strip().split("\n\n")[0]
    return {
        "name": printable(layer.type, 80),
        "version": printable(layer.version, 40),
        "spec": printable(op.spec() if op else f"{layer.type} ({layer.version})", 120),
        "about": " ".join(text.split()),
        "family": list(FAMILIES).index(family(layer)),
        "inputs": [] if op is None else list(op.arity()[0]),
    }


def _fronted(names: list[str]) -> list[Any]:
    """Names without what each shares with the one before, and how much that is."""
    counts, rests, before = [], [], ""
    for name in names:
        shared, most = 0, min(len(name), len(before))
        while shared < most and name[shared] == before[shared]:
            shared += 1
        # In units of UTF-16, as the page's language counts.
        counts.append(len(name[:shared].encode("utf-16-le", "surrogatepass")) // 2)
        rests.append(name[shared:])
        before = name
    return [counts, rests]


def _walls(sheet: Sheet) -> list[list[int]]:
    """Layers that read a value through the wall of a body, and those that give it."""
    pairs = {(t, s) for s, t, _ in sheet.wires if sheet.body_of[s] != sheet.body_of[t]}
    return [[target for target, _ in sorted(pairs)], [source for _, source in sorted(pairs)]]


def _flat(rows: Iterable[list[int]]) -> list[int]:
    return [number for row in rows for number in row]


def _deltas(numbers: Sequence[int]) -> list[int]:
    """Each number less the one before."""
    return [b - a for a, b in zip([0, *numbers], numbers, strict=False)]


def _groups(picture: Picture) -> dict[str, Any]:
    """The groups, each with the place of its children and the course of its edges."""
    tree, wiring, layout, labels = picture.tree, picture.wiring, picture.layout, picture.labels
    total = len(tree.parent)
    ports: list[list[int]] = [[] for _ in tree.groups]
    for index, group in enumerate((wiring.port_group - tree.count).tolist()):
        ports[group].append(total + index)
    order = np.argsort(wiring.group, kind="stable")
    bounds = np.searchsorted(
        wiring.group[order], np.arange(tree.count, total + 1)
    ).tolist()  # fmt: skip
    source, target = wiring.source[order].tolist(), wiring.target[order].tolist()
    values, port_values = wiring.value[order].tolist(), wiring.port_value.tolist()
    x, row = np.round(layout.x).astype(int).tolist(), layout.row.tolist()
    rail = [NONE if r != r else round(r) for r in layout.rail[order].tolist()]
    out = np.round(layout.out[order]).astype(int).tolist()
    into = np.round(layout.into[order]).astype(int).tolist()
    geometries = _Table()
    groups = []
    for index, group in enumerate(tree.groups):
        members = [*group.children, *ports[index]]
        local = {number: place for place, number in enumerate(members)}
        seen: dict[int, int] = {}
        edges = range(bounds[index], bounds[index + 1])
        columns: list[list[Any]] = [[], [], [], [], [], []]
        for edge in edges:
            value = seen.setdefault(values[edge], len(seen))
            cells = (
                local[source[edge]], local[target[edge]], value, out[edge], into[edge], rail[edge],
            )  # fmt: skip
            for column, cell in zip(columns, cells, strict=True):
                column.append(0 if cell == NONE else cell)
        straight = "".join("0" if rail[edge] == NONE else "1" for edge in edges)
        geometry = {
            "n": len(group.children),
            "row": _deltas([row[each] for each in members]),
            "x": [x[each] for each in members],
            "ports": [seen.setdefault(port_values[p - total], len(seen)) for p in ports[index]],
            "s": _deltas(columns[0]),
            "t": _deltas(columns[1]),
            "v": _deltas(columns[2]),
            "o": columns[3],
            "i": columns[4],
            "r": columns[5],
            "k": straight,
            "gaps": np.round(layout.gaps[index]).astype(int).tolist(),
            "left": round(float(layout.left[index])),
            "right": round(float(layout.right[index])),
        }
        place = geometries.put(json.dumps(geometry), geometry)
        groups.append(
            [labels.title[tree.count + index], group.kind, _deltas(group.children), place,
             _deltas(list(seen))]
        )  # fmt: skip
    chips = {str(tree.owners.get(k, k)): v for k, v in picture.sheet.chips.items()}
    return {
        "groups": groups,
        "counts": labels.detail[tree.count :],
        "geometries": geometries.rows,
        "owners": [list(tree.owners), list(tree.owners.values())],
        "chips": [[int(k) for k in chips], list(chips.values())],
        "chipTexts": _chip_texts(picture),
        "values": [_deltas([n for n, _ in picture.sheet.values]),
                   [o for _, o in picture.sheet.values]],
    }  # fmt: skip


def _chip_texts(picture: Picture) -> list[Any]:
    """The texts of the chips, each once."""
    texts = _Table()
    numbers = [n for n, root in enumerate(picture.sheet.chip) if root == n]
    rows = [texts.put(chip_text(picture.sheet.layers[n])) for n in numbers]
    return [texts.rows, _deltas(numbers), rows]


def _paint(paint: Paint) -> dict[str, Any]:
    colours = paint.colours()
    pairs = _Table()
    numbers = sorted(paint.values)
    if paint.kind == "word":
        first: dict[str, int] = {}
        for number in numbers:
            first.setdefault(str(paint.values[number]), number)
        # What says more has the lower number: a closed group has the colour of that.
        for word in sorted(first, key=rank):
            pairs.put(colours[first[word]])
    return {
        "name": paint.name,
        "kind": paint.kind,
        "unit": paint.unit,
        "layers": _deltas(numbers),
        "values": [_rounded(paint.values[number]) for number in numbers],
        "colours": [pairs.put(colours[number]) for number in numbers],
        "pairs": [[*pair, *(inks(pair) or ())] for pair in pairs.rows],
        "notes": {str(n): printable(text, 1000) for n, text in paint.notes.items()},
        "without": paint.without,
    }


def _rounded(value: float | str) -> float | str:
    if isinstance(value, str):
        return printable(value, 60)
    return int(value) if value == int(value) else float(f"{value:.4g}")


def _constants(picture: Picture) -> dict[str, Any]:
    """First values and a histogram of every constant that can be read."""
    found = {}
    for number, layer in enumerate(picture.sheet.layers):
        if layer.is_constant:
            facts = _constant(layer)
            if facts is not None:
                found[str(number)] = facts
    return found


def _constant(layer: Layer) -> list[Any] | None:
    """First values, smallest, largest and mean, and how many of a sample lie in each bar.

    Last come how many values there are, and of how many the range is; 0: of all.
    """
    try:
        value = layer.value
    except IRError:
        return None  # a model without its .bin, or with a broken constant, has a picture too
    flat = value.ravel()
    first = [_text(each) for each in flat[:FIRST].tolist()]
    if not flat.size or flat.dtype.kind in "TOSU":
        return [first]
    if flat.size <= FIRST:
        return [first]
    taken = flat[:: -(-flat.size // SAMPLE)]
    whole = Range.of(flat if flat.size <= LARGEST else taken)
    if not whole.counted:
        return [first]
    low, high = whole.low, whole.high
    sample = taken.astype(np.float64)
    finite = sample[np.isfinite(sample)]
    bars = np.zeros(BARS, int)
    if high > low:
        bars = np.bincount(places(finite, low, high, BARS), minlength=BARS)
    most = max(int(bars.max()), 1)
    heights = np.ceil(bars * 35 / most).astype(int).tolist()
    return [first, *(f"{n:.4g}" for n in (low, high, whole.mean)),
            "".join(np.base_repr(h, 36) for h in heights), int(flat.size),
            int(taken.size) if flat.size > LARGEST else 0]  # fmt: skip


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else printable(value, 40)


def compressed(content: Mapping[str, Any]) -> str:
    """An object as JSON, deflated, in base64."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    packer = zlib.compressobj(7, zlib.DEFLATED, -15)
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode("ascii")


__all__ = ["compressed", "pack"]
