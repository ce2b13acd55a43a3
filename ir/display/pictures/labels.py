"""What is written in the boxes of a picture, and how large that makes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....schemas import Tensor
from ....schemas.printing import printable
from ...document import Layer, Port
from ..summaries import declared
from .hierarchy import Tree
from .sheet import Sheet

#: Between the sizes of a shape.
TIMES = "\N{MULTIPLICATION SIGN}"
#: Characters that are written of a name.
LONGEST = 300
#: Heights of a layer, of a closed group, and of a chip; the width of a character.
LAYER, GROUP, CHIP, LETTER = 40.0, 46.0, 17.0, 6.7
NARROWEST, WIDEST, WIDEST_CHIP = 104.0, 236.0, 130.0
#: Chips that are shown of a layer.
MOST_CHIPS = 6


@dataclass
class Labels:
    """The texts of every layer and group, and the sizes of their closed boxes."""

    title: list[str]
    detail: list[str]
    #: Half the width of the box, and how far the chips beside it reach.
    half: NDArray[np.float64]
    chips: NDArray[np.float64]
    height: NDArray[np.float64]


def label(sheet: Sheet, tree: Tree) -> Labels:
    """Write on every box what it is."""
    title = [printable(layer.type, 80) for layer in sheet.layers]
    detail = [shapes(layer) for layer in sheet.layers]
    counts = _counts(sheet, tree)
    for index, group in enumerate(tree.groups):
        title.append(printable(group.label, LONGEST))
        count = counts[tree.count + index]
        if group.kind == "run":
            title[-1] += f" {TIMES} {len(group.children)}"
        detail.append(f"{count:,} layer{'s' if count != 1 else ''}")
    lengths = np.array(
        [max(len(a) + 1, len(b) * 0.88) for a, b in zip(title, detail, strict=True)]
    )
    half = np.clip(lengths * LETTER + 20, NARROWEST, WIDEST) / 2
    height = np.where(np.arange(len(title)) < tree.count, LAYER, GROUP)
    chips = np.zeros(len(title))
    for reader, found in sheet.chips.items():
        box = tree.owners.get(reader, reader)
        widest = max(len(chip_text(sheet.layers[each])) for each in found[:MOST_CHIPS])
        chips[box] = min(widest * LETTER * 0.86 + 14, WIDEST_CHIP) + 8
        height[box] = max(height[box], CHIP * min(len(found), MOST_CHIPS + 1))
    return Labels(title, detail, half, chips, height)


def _counts(sheet: Sheet, tree: Tree) -> list[int]:
    """How many layers each group holds, with those in chips."""
    counts = [0] * len(tree.parent)
    for number in range(tree.count):
        counts[number] = int(sheet.shown(number))
    first_reader: dict[int, int] = {}
    for reader, found in sheet.chips.items():
        for chip in found:
            first_reader.setdefault(chip, reader)
    for chip in sheet.chip:
        if chip in first_reader:
            counts[first_reader[chip]] += 1
    for owner, group in tree.owners.items():
        counts[group] += 1
        counts[owner] = 0
    for index, each_group in enumerate(tree.groups):
        counts[tree.count + index] += sum(counts[each] for each in each_group.children)
    return counts


def shapes(layer: Layer) -> str:
    """The types and shapes of a layer's outputs, as far as the file tells them."""
    if layer.type == "Result":
        return "" if not layer.inputs else spell(layer.inputs[0])
    found = layer.outputs
    if not found:
        return ""
    first = tensor_text(layer, 0)
    return first if len(found) == 1 else f"{first} +{len(found) - 1}"


def tensor_text(layer: Layer, output: int) -> str:
    """The type and shape of an output; of a Parameter as its attributes have them."""
    if layer.type == "Parameter" and output == 0:
        return _spelled(declared(layer)[0])
    return spell(layer.outputs[output])


def spell(port: Port) -> str:
    """A type and a shape, such as ``f32 1 x 64 x ?``, with the sign of a product."""
    return _spell(port.precision, port.dims)


@lru_cache(4096)
def _spell(precision: str | None, dims: tuple[int, ...]) -> str:
    return _spelled(Port(0, precision, dims).tensor)


def _spelled(tensor: Tensor) -> str:
    sizes = str(tensor.shape).replace(",", TIMES)
    return f"{tensor.type} {sizes}".strip()


def chip_text(layer: Layer) -> str:
    """What a constant is called beside its reader."""
    return spell(layer.outputs[0]) if layer.outputs else printable(layer.type, 80)


__all__ = [
    "CHIP",
    "LONGEST",
    "MOST_CHIPS",
    "Labels",
    "chip_text",
    "label",
    "shapes",
    "spell",
    "tensor_text",
]
