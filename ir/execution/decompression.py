"""Weights that a file makes of levels in half precision, rounded where OpenVINO rounds them.

All else that is declared as f16 is computed in f32. But a Convert that is marked as the end of a
compression keeps what it converts in f16; where that is made of constants they are folded as they
are declared, each result rounded. Not so for products and rows of a table: MatMul, Gather and what
convolves single pixels take levels as they lie, and make numbers of them in f32. Gather does so
whoever else reads them, the others only if nobody else does but Gather. Levels of nf4, which half
precision does not hold, are themselves rounded for all but products, marked or not. So is what a
Convert makes f16 of constants in wider types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...schemas import ElementType
from ..document import Graph, Layer

#: Levels that OpenVINO's rows of a table take as they lie, and those that its products do.
GATHERED = frozenset(map(ElementType, ("u8", "i8", "u4", "i4")))
MULTIPLIED = GATHERED | set(map(ElementType, ("u2", "nf4", "f4e2m1", "f8e4m3", "f8e5m2")))
#: What gives the numbers that it takes.
MOVES = frozenset({"Reshape", "Squeeze", "Transpose", "Unsqueeze"})


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


def made_of_constants(
    graph: Graph, order: Sequence[Layer], may: Callable[[Layer], bool] = is_fixed
) -> set[int]:
    """The ids of constants, and of layers that ``may`` and compute with nothing else."""
    known: set[int] = set()
    for layer in order:
        sources = graph.sources(layer)
        fed = bool(sources) and all(
            source is not None and source[0].id in known for source in sources
        )
        if layer.is_constant or (fed and may(layer)):
            known.add(layer.id)
    return known


def halves(graph: Graph, order: Sequence[Layer]) -> Halves:
    """What is rounded to half precision in a graph."""
    found = Halves(set(), set())
    halving = [layer for layer in order if layer.type == "Convert" and _is_about_halves(layer)]
    known = made_of_constants(graph, order) if halving else set()
    for layer in halving:
        source = layer.producers[0]
        if source is None or layer.id not in known:
            continue
        if _is_half(layer) and _is_wide(source):
            found.layers.add(layer.id)
        elif _is_half(source):
            rounds = _is_half if is_decompression(layer) else _is_uneven
            made = [maker for maker in _makers(layer) if rounds(maker) and not _is_exact(maker)]
            if not made:
                continue
            kind, readers = _levels(layer), graph.consumers(layer)
            others = [r for r in readers if kind not in GATHERED or not _is_of_rows(*r)]
            if _take_levels(layer, [user for user, _ in others], kind):
                continue
            if len(others) == len(readers):
                found.layers.update(maker.id for maker in made)
            else:
                # A shape is the same of either.
                read = [(user.id, index) for user, index in others if user.type != "ShapeOf"]
                found.inputs.update(read)
    return found


def _is_about_halves(layer: Layer) -> bool:
    """Whether a layer that converts makes halves, or takes what others made so."""
    source = layer.producers[0]
    return source is not None and ((_is_half(layer) and _is_wide(source)) or _is_half(source))


def _is_half(layer: Layer) -> bool:
    """Whether a layer, not a constant itself, gives half precision."""
    if layer.is_constant or layer.type == "Parameter":
        return False
    return _type(layer) is ElementType.F16


def _is_wide(layer: Layer) -> bool:
    """Whether a layer gives numbers that half precision may not hold, and no levels."""
    kind = _type(layer)
    return not kind.is_dynamic and kind is not ElementType.F16 and kind.bits > 8


def _is_exact(layer: Layer) -> bool:
    """Whether what a layer makes needs no rounding: levels, differences of them, moves."""
    if layer.type in MOVES:
        return True
    sources = [source for source in layer.producers if source is not None]
    if layer.type == "Convert":
        return all(_type(source).is_integral and _type(source).bits <= 8 for source in sources)
    return layer.type == "Subtract" and all(map(_is_exact, sources))


def _is_uneven(layer: Layer) -> bool:
    """Whether a layer makes halves of levels that are none."""
    source = layer.producers[0] if layer.type == "Convert" else None
    return source is not None and _type(source) is ElementType.NF4 and _is_half(layer)


def _type(layer: Layer) -> ElementType:
    return layer.outputs[0].tensor.type if layer.outputs else ElementType.DYNAMIC


def _makers(end: Layer) -> list[Layer]:
    """Those that make what a layer converts."""
    found: dict[int, Layer] = {}
    ahead = [end]
    while ahead:
        for layer in ahead.pop().producers:
            if layer is not None and layer.id not in found:
                found[layer.id] = layer
                ahead.append(layer)
    return [*found.values()]


def _is_of_rows(user: Layer, index: int) -> bool:
    """Whether a layer takes rows of a table of levels; older ones do not."""
    return user.type == "Gather" and user.version not in ("opset1", "opset7") and index == 0


def _levels(layer: Layer) -> ElementType:
    """Of what type the levels are of which weights are made: what is first in each step."""
    first: Layer | None = layer
    while first is not None and not first.is_constant and first.producers:
        first = first.producers[0]
    return ElementType.DYNAMIC if first is None else _type(first)


def _take_levels(layer: Layer, users: Sequence[Layer], kind: ElementType) -> bool:
    """Whether these who read a layer take levels as they lie."""
    turned = [user for user in users if user.type == "Transpose"]
    others = [user for user in users if user.type != "Transpose"]
    others += [user for one in turned for user in one.consumers]
    return kind in MULTIPLIED and all(
        user.type == "MatMul" or (user.type == "Convolution" and _is_of_pixels(layer))
        for user in others
    )


def _is_of_pixels(layer: Layer) -> bool:
    """Whether filters of images have one place each."""
    shape = layer.outputs[0].tensor.shape
    return shape.is_static and len(shape.static) == 4 and shape.static[2:] == (1, 1)


__all__ = ["Halves", "halves", "is_decompression", "is_fixed"]
