"""Weights that a file makes of levels in half precision, rounded where OpenVINO rounds them.

All else that is declared as f16 is computed in f32. But a Convert that is marked as the end of a
compression keeps what it converts in f16; where that is made of constants they are folded as they
are declared, each result rounded. Not so for products and rows of a table: MatMul, Gather and what
convolves single pixels take levels as they lie, and make numbers of them in f32. Gather does so
whoever else reads them, the others only if nobody else does but Gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...layers.casting import as_computed, as_half
from ...schemas import Array, ElementType
from ..document import Graph, Layer


class Halves(NamedTuple):
    """What is rounded to half precision."""

    #: The ids of layers whose results, of constants alone, are rounded.
    layers: set[int]
    #: Inputs, by layer id and index, that are rounded when they are read: others read the same as
    #: it is. Of levels and their zeros, which are whole, only the product with a scale is rounded.
    inputs: set[tuple[int, int]]


def is_decompression(layer: Layer) -> bool:
    """Whether a layer is marked as the end of a compression."""
    return layer.rt_info is not None and layer.rt_info.find("decompression") is not None


def is_fixed(layer: Layer) -> bool:
    """Whether a layer gives the same whenever it takes the same."""
    kept = layer.type in ("Assign", "ReadValue", "Result")
    return not (kept or layer.bodies or layer.op is None or layer.op.is_random)


def halves(graph: Graph, order: Sequence[Layer]) -> Halves:
    """What is rounded to half precision in a graph."""
    found = Halves(set(), set())
    for layer in order:
        if layer.type == "Convert" and _is_half(layer.producers[0]) and is_decompression(layer):
            made = _made_of_constants(layer, graph)
            readers = graph.consumers(layer)
            others = [reader for reader in readers if not _is_of_rows(*reader)]
            if not made or _take_levels(layer, [user for user, _ in others]):
                continue
            if len(others) == len(readers):
                found.layers.update(made)
            else:
                # A shape is the same of either.
                read = [(user.id, index) for user, index in others if user.type != "ShapeOf"]
                found.inputs.update(read)
    return found


def rounded_to_half(array: Array) -> Array:
    """An array as half precision holds it, in the type in which it is computed."""
    return as_computed(as_half(array)) if array.dtype == np.float32 else array


def _is_half(layer: Layer | None) -> bool:
    """Whether a layer, not a constant itself, gives half precision."""
    if layer is None or layer.is_constant or layer.type == "Parameter" or not layer.outputs:
        return False
    return layer.outputs[0].tensor.type is ElementType.F16


def _made_of_constants(end: Layer, graph: Graph) -> set[int]:
    """The ids of those that make what a layer converts, of constants alone; else none."""
    found: set[int] = set()
    ahead = [end]
    while ahead:
        for source in graph.sources(ahead.pop()):
            if source is None:
                return set()
            layer = source[0]
            if layer.is_constant or layer.id in found:
                continue
            if layer.type == "Parameter" or not is_fixed(layer):
                return set()
            if _is_half(layer):
                found.add(layer.id)
            ahead.append(layer)
    return found


def _is_of_rows(user: Layer, index: int) -> bool:
    """Whether a layer takes rows of a table of levels; older ones do not."""
    return user.type == "Gather" and user.version not in ("opset1", "opset7") and index == 0


def _take_levels(layer: Layer, users: Sequence[Layer]) -> bool:
    """Whether these who read a layer take levels as they lie."""
    turned = [user for user in users if user.type == "Transpose"]
    others = [user for user in users if user.type != "Transpose"]
    others += [user for one in turned for user in one.consumers]
    return all(
        user.type == "MatMul" or (user.type == "Convolution" and _is_of_pixels(layer))
        for user in others
    )


def _is_of_pixels(layer: Layer) -> bool:
    """Whether filters of images have one place each."""
    shape = layer.outputs[0].tensor.shape
    return shape.is_static and len(shape.static) == 4 and shape.static[2:] == (1, 1)


__all__ = ["Halves", "halves", "is_decompression", "is_fixed", "rounded_to_half"]
