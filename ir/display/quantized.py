"""In which precision a model is stored and computed: compressed weights, quantized sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any

from ..document import Graph, Layer, Model
from .costs import sums_products
from .sizes import constant_bytes, elements

#: What hands values on as they are.
_MOVING = frozenset(
    {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "MaxPool", "Split", "VariadicSplit", "Slice",
     "StridedSlice", "Gather", "Concat", "DepthToSpace", "SpaceToDepth", "ShuffleChannels"}
)  # fmt: skip
#: Layers that a chain of constants is followed through at most.
_LONGEST = 16
#: Bits of an element that needs a scale to stand for a weight.
_NARROW = 8
#: Steps of a FakeQuantize that 8 bits hold.
_EIGHT_BITS = 256


def graphs(graph: Graph) -> Iterator[Graph]:
    """A graph and all bodies in it."""
    open_ = [graph]
    while open_:
        found = open_.pop()
        yield found
        open_ += [body for layer in found.layers for body in layer.bodies.values()]


def precisions(model: Model) -> dict[str, Any]:
    """How weights are stored and what they become, and which sums have quantized inputs."""
    stored: dict[tuple[str, str, str], list[int]] = {}
    quantized: Counter[int] = Counter()
    computed: Counter[str] = Counter()
    eight = 0
    for graph in graphs(model):
        for layer in graph.layers:
            if layer.is_constant:
                key = _use(graph, layer)
                if key is not None:
                    count = elements(layer)
                    row = stored.setdefault((str(layer.element_type), *key), [0, 0, 0])
                    row[0] += 1
                    row[1] += count
                    row[2] += constant_bytes(layer, count)
            elif layer.type == "FakeQuantize":
                quantized[_levels(layer)] += 1
            elif sums_products(layer) and layer.outputs:
                computed[str(layer.outputs[0].type)] += 1
                eight += all(_is_eight_bits(graph, layer, index) for index in (0, 1))
    return {
        "stored": [
            {
                "type": kind,
                "becomes": becomes,
                "how": how,
                "constants": row[0],
                "elements": row[1],
                "bytes": row[2],
            }
            for (kind, becomes, how), row in sorted(stored.items(), key=lambda item: -item[1][2])
        ],
        "fake_quantize": {str(levels): count for levels, count in sorted(quantized.items())},
        "sums": dict(computed.most_common()),
        "eight_bit_sums": eight,
    }


def _use(graph: Graph, constant: Layer) -> tuple[str, str] | None:
    """What a stored constant becomes, and how; None where it is read as it is."""
    kind = constant.element_type
    if not kind.is_real and kind.bits > _NARROW:
        return None
    layer, becomes, zeros, scale = constant, "", False, None
    for _ in range(_LONGEST):
        users = graph.consumers(layer, 0)
        if not users:
            break
        user, place = users[0]
        if user.type == "Convert" and user.outputs:
            becomes = str(user.outputs[0].type)
        elif user.type == "FakeQuantize" and place == 0:
            return becomes or str(constant.element_type), f"FakeQuantize, {_levels(user)} levels"
        elif user.type == "Subtract" and place == 0 and becomes:
            zeros = True
        elif user.type == "Subtract" and becomes and not kind.is_real:
            return becomes, "zero points"
        elif user.type == "Multiply" and becomes and kind.bits <= _NARROW:
            if len(user.inputs) == 2:  # of a broken model there may be one, or many
                scale = user.inputs[1 - place].dims
            break
        elif user.type not in ("Reshape", "Transpose") or place != 0:
            break
        layer = user
    if not becomes:
        return None
    return becomes, _scaling(constant, scale, zeros)


def _scaling(constant: Layer, scale: tuple[int, ...] | None, zeros: bool) -> str:
    """How a constant is scaled, in words."""
    if scale is None:
        return "converted"
    count, scales = elements(constant), max(prod(scale), 1)
    with_zeros = ", with zero points" if zeros else ""
    if scales == 1:
        return f"one scale{with_zeros}"
    if scales in constant.sizes and max(scale) == scales:
        return f"a scale per channel{with_zeros}"
    return f"a scale per group of {max(count // scales, 1)}{with_zeros}"


def _levels(layer: Layer) -> int:
    text = layer.data.get("levels", "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _is_eight_bits(graph: Graph, layer: Layer, index: int) -> bool:
    """Whether an input comes from a FakeQuantize of 8 bits, or from scaled 8-bit integers."""
    for _ in range(_LONGEST):
        source = _source(graph, layer, index)
        if source is None:
            return False
        producer = source[0]
        if producer.type == "FakeQuantize":
            return 0 < _levels(producer) <= _EIGHT_BITS
        if producer.is_constant:
            return producer.element_type in ("i8", "u8")
        if producer.type not in _MOVING | {"Convert", "Subtract", "Multiply"}:
            return False
        if producer.type in ("Subtract", "Multiply") and not _is_scale(graph, producer):
            return False
        layer, index = producer, 0
    return False


def _is_scale(graph: Graph, layer: Layer) -> bool:
    """Whether the second input is a constant, converted or not."""
    source = _source(graph, layer, 1)
    for _ in range(_LONGEST):
        if source is None or source[0].is_constant:
            return source is not None
        if source[0].type not in ("Convert", "Reshape"):
            return False
        source = _source(graph, source[0], 0)
    return False


def _source(graph: Graph, layer: Layer, index: int) -> tuple[Layer, int] | None:
    """What feeds an input; None where nothing does, or a broken model has no such input."""
    sources = graph.sources(layer)
    return sources[index] if index < len(sources) else None


__all__ = ["graphs", "precisions"]
