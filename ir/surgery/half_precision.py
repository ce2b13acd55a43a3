"""Weights in half precision, and back.

As OpenVINO compresses: a constant of f32 or f64 becomes one of f16 behind a Convert that is marked
as a decompression, so that whoever computes in f32 still does. A constant stays as it is

- where a single number leaves the range of f16, or would be off by 1 or a ten-thousandth,
- where three of four numbers leave the range, or would be off by 1 or a thousandth,
- where shapes are computed from it,
- in a model that is quantized, all of whose constants stay.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from ...layers.casting import as_half
from ...schemas import Array, ElementType, UsageError
from ..document import Graph, Info, Layer, Model, Port
from ..execution import is_decompression
from ..opening import ModelLike, opened
from ..storage import blocks
from .outcome import Operated, Surgery, size_of
from .reshaping import settle
from .scratch import Scratch
from .workbench import expression

#: The inputs of operations that OpenVINO marks as sensitive to precision: those of shapes.
_SENSITIVE: dict[str, tuple[int, ...]] = {
    "BatchToSpace": (1, 2, 3),
    "Broadcast": (1,),
    "ConvolutionBackpropData": (2,),
    "GroupConvolutionBackpropData": (2,),
    "Interpolate": (1, 2),
    "OneHot": (1,),
    "Pad": (1, 2),
    "Reshape": (1,),
    "SpaceToBatch": (1, 2, 3),
    "StridedSlice": (1, 2, 3),
    "Tile": (1,),
    "TopK": (1,),
}
#: The element types of weights that tell OpenVINO that a model is quantized.
_NARROW = frozenset(map(ElementType, ("i8", "u8", "i4", "u4", "nf4", "f8e4m3", "f8e5m2")))
#: A number that is off by more than this is lost; or by such a part, alone and among others.
_MOST_OFF, _MOST_OFF_OF_ONE, _MOST_OFF_OF_MANY = 1.0, 1e-4, 1e-3
#: The part of lost numbers from which a constant stays.
_TOO_MANY = 0.75
_LARGEST = float(np.finfo(np.float16).max)


def compress(model: ModelLike, *, keep: str | None = None) -> Operated:
    """Store weights in half precision, where OpenVINO would.

    Args:
        model: The model, or its path; it is not changed.
        keep: A regular expression for the names of constants that stay as they are.
    """
    work, report = deepcopy(opened(model)), Surgery("compress")
    before = size_of(work)
    pattern = None if keep is None else expression(keep)
    names = [layer.name for graph in _graphs(work) for layer in graph.constants]
    if pattern is not None and not any(map(pattern.fullmatch, names)):
        raise UsageError(f'no constant has a name that matches "{keep}"')
    chosen: list[tuple[Graph, Layer]] = []
    quantized = next((layer for layer in work.everywhere() if _quantizes(layer)), None)
    if quantized is not None:
        report.note("kept", "the model is quantized: all constants stay", quantized)
    values: list[Array] = []
    with Scratch() as scratch:
        for graph in _graphs(work) if quantized is None else ():
            sensitive = _upstream_of_shapes(graph)
            for layer in graph.constants:
                if layer.element_type not in (ElementType.F32, ElementType.F64):
                    continue
                if layer.id in sensitive:
                    reason: str | None = "shapes are computed from it"
                elif pattern is not None and pattern.fullmatch(layer.name):
                    reason = "it is to be kept"
                else:
                    reason = _what_is_lost(layer.value)
                if reason is not None:
                    report.note("kept", reason, layer)
                    continue
                flat, half = layer.value.reshape(-1), np.dtype(np.float16)
                values.append(scratch.put(layer.sizes, half, map(_to_half, blocks(flat))))
                chosen.append((graph, layer))
    made: dict[int, list[tuple[Layer, Layer]]] = {}
    for (graph, layer), value in zip(chosen, values, strict=True):
        said = f"f16 for {layer.element_type}{list(layer.sizes)}"
        convert = _decompressed(graph, layer, value)
        made.setdefault(id(graph), []).append((layer, convert))
        report.note("compressed", said, convert)
    for graph in _graphs(work):
        _place_behind(graph, made.get(id(graph), []))
    report.layers = before, size_of(work)
    settle(work, report)
    return Operated(work, report)


def decompress(model: ModelLike) -> Operated:
    """Store weights that are compressed to f16 in the type in which they are used."""
    work, report = deepcopy(opened(model)), Surgery("decompress")
    before = size_of(work)
    chosen: list[tuple[Graph, Layer, Layer, ElementType]] = []
    values: list[Array] = []
    with Scratch() as scratch:
        for graph in _graphs(work):
            for layer in graph.layers:
                constant = _compressed(graph, layer)
                if constant is not None:
                    kind = ElementType.parse(layer.data["destination_type"])
                    # Each block in the type that it is put in as.
                    flat = constant.value.reshape(-1)
                    values.append(scratch.put(constant.sizes, kind.dtype, blocks(flat)))
                    chosen.append((graph, layer, constant, kind))
    gone: dict[int, list[Layer]] = {}
    shared: list[tuple[Graph, Layer]] = []
    for (graph, layer, constant, kind), value in zip(chosen, values, strict=True):
        if len(graph.consumers(constant)) > 1:
            shared.append((graph, constant))
            constant = graph.add(Layer("Const", "opset1"))
        constant.set_value(value, kind)
        constant.name = layer.name
        constant.outputs[0].names = layer.outputs[0].names or constant.outputs[0].names
        for user, place in graph.consumers(layer, 0):
            graph.connect((constant, 0), user, place)
        gone.setdefault(id(graph), []).append(layer)
        report.note("decompressed", f"{kind}{list(constant.sizes)}", constant)
    for graph in _graphs(work):
        if id(graph) in gone:
            graph.remove(*gone[id(graph)])
    for graph, constant in shared:
        if constant.is_in_graph and not graph.consumers(constant):
            graph.remove(constant)
    report.layers = before, size_of(work)
    settle(work, report)
    return Operated(work, report)


def _compressed(graph: Graph, layer: Layer) -> Layer | None:
    """The constant of f16 whose decompression a layer is."""
    if layer.type != "Convert" or not is_decompression(layer):
        return None
    source = graph.producer(layer, 0)
    if source is None or not source[0].is_constant:
        return None
    if source[0].element_type is not ElementType.F16:
        return None
    wide = layer.data.get("destination_type") in ("f32", "f64")
    return source[0] if wide else None


def _graphs(model: Model) -> list[Graph]:
    return [model, *(body for x in model.everywhere() for body in x.bodies.values())]


def _quantizes(layer: Layer) -> bool:
    """Whether a layer quantizes, or brings back weights that are quantized.

    As OpenVINO sees it: a scale that is converted, as MXFP4 has it, quantizes no model.
    """
    if layer.type in ("FakeConvert", "FakeQuantize"):
        return True
    if layer.type != "Multiply":
        return False
    factors = _sources(layer)
    for shifted, scale in zip(factors, reversed(factors), strict=True):
        levels = _levels(shifted)
        if scale.is_constant and levels is not None and levels.element_type in _NARROW:
            return True
    return False


def _levels(layer: Layer) -> Layer | None:
    """The constant that a layer makes numbers of, which may be less a zero point."""
    if layer.type != "Subtract":
        return _converted(layer)
    match _sources(layer):
        case [levels, zero] if zero.is_constant or _converted(zero):
            return _converted(levels)
    return None


def _converted(layer: Layer) -> Layer | None:
    """The constant that a layer converts."""
    match _sources(layer):
        case [source] if layer.type == "Convert" and source.is_constant:
            return source
    return None


def _sources(layer: Layer) -> list[Layer]:
    """What feeds a layer."""
    assert layer.graph is not None
    return [row[0] for row in layer.graph.sources(layer) if row is not None]


def _upstream_of_shapes(graph: Graph) -> set[int]:
    """The layers from which an input is computed that is sensitive to precision, by id.

    As OpenVINO, it goes up as far as a ShapeOf.
    """
    stack: list[Layer] = []
    for layer in graph.layers:
        places = _SENSITIVE.get(layer.type, ())
        if layer.type == "Interpolate" and not _takes_scales(layer):
            places = (1,)
        rows = graph.sources(layer)
        stack += [row[0] for i, row in enumerate(rows) if i in places and row is not None]
    seen: set[int] = set()
    while stack:
        layer = stack.pop()
        if layer.id in seen:
            continue
        seen.add(layer.id)
        if layer.type != "ShapeOf":
            stack.extend(row[0] for row in graph.sources(layer) if row is not None)
    return seen


def _takes_scales(layer: Layer) -> bool:
    """Whether an Interpolate has scales beside the sizes."""
    return layer.op is not None and layer.op.number == 4


def _what_is_lost(value: Array) -> str | None:
    """Why a value is not to be stored in f16, None where it may be."""
    flat = value.reshape(-1)
    if not flat.size:
        return "it is empty"
    if flat.size == 1:
        lost = _lost(flat, _MOST_OFF_OF_ONE)
        # In seven digits: the shortest text for a half, such as 0.1, hides what is lost.
        pair = f"{float(flat[0]):.7g} would be {float(_to_half(flat)[0]):.7g} in f16"
        return pair if lost else None
    lost = sum(_lost(block, _MOST_OFF_OF_MANY) for block in blocks(flat))
    if lost >= _TOO_MANY * flat.size:
        return f"{lost} of {flat.size} numbers would be lost in f16"
    return None


def _lost(block: Array, most: float) -> int:
    """How many numbers leave the range of f16, or are off by too much in it."""
    exact = block.astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.abs(_to_half(block).astype(np.float64) - exact)
        size = np.abs(exact)
        fine = (size <= _LARGEST) & (off <= _MOST_OFF) & (off <= most * size)
    return int(fine.size - np.count_nonzero(fine))


def _to_half(block: Array) -> Array:
    """Numbers in f16; those beyond its range become its largest."""
    with np.errstate(all="ignore"):
        return as_half(np.clip(block, -_LARGEST, _LARGEST))


def _decompressed(graph: Graph, layer: Layer, value: Array) -> Layer:
    """Give a constant a value of f16, and a Convert behind it that goes by its name."""
    kind, sizes, names = layer.element_type, layer.sizes, layer.outputs[0].names
    users = graph.consumers(layer, 0)
    convert = Layer("Convert", "opset1", layer.name, data={"destination_type": str(kind)})
    convert.rt_info = Info("rt_info", {}, [
        Info("attribute", {"name": "decompression", "version": "0"})
    ])  # fmt: skip
    layer.name = f"{layer.name}_compressed"
    layer.outputs[0].names = ()
    layer.set_value(value, ElementType.F16)
    convert.inputs = [Port(0, ElementType.F16, sizes)]
    convert.outputs = [Port(1, kind, sizes, names)]
    graph.add(convert)
    for user, place in users:
        graph.connect((convert, 0), user, place)
    graph.connect((layer, 0), convert, 0)
    return convert


def _place_behind(graph: Graph, pairs: list[tuple[Layer, Layer]]) -> None:
    """Let new layers stand behind those that feed them."""
    if not pairs:
        return
    behind = {id(layer): new for layer, new in pairs}
    new = {id(layer) for layer in behind.values()}
    order: list[Layer] = []
    for layer in graph.layers:
        if id(layer) not in new:
            order.append(layer)
            if id(layer) in behind:
                order.append(behind[id(layer)])
    graph.arrange(order)


__all__ = ["compress", "decompress"]
