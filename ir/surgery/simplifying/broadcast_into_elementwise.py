"""f(x, Broadcast(y)) → f(x, y), where f broadcasts y by itself to the same shape."""

from __future__ import annotations

from ...document import Layer
from .patterns import BINARY, as_declared, broadcasts, made_by
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    inputs = list(net.inputs(layer))
    if len(inputs) != 2 or not broadcasts(layer):
        return False
    for place in (0, 1):
        broadcast = made_by(net, inputs[place], "Broadcast", "Tile")
        if broadcast is None or not _is_plain(net, broadcast):
            continue
        source = net.inputs(broadcast)[0]
        other = inputs[1 - place]
        shapes = net.shape(source), net.shape(other), net.shape((layer, 0))
        if None in shapes or not _reaches(*shapes):
            continue
        fed = [source, other] if place == 0 else [other, source]
        new = net.copy(layer, fed)
        if as_declared(net.tensor(new), net.tensor((layer, 0))):
            return net.replace((layer, 0), new)
    return False


def _is_plain(net: Rewriter, layer: Layer) -> bool:
    """Whether a layer repeats along axes of size one only, as NumPy broadcasts."""
    if layer.type == "Broadcast":
        return layer.data.get("mode", "numpy").lower() in ("numpy", "bidirectional")
    shape, made = net.shape(net.inputs(layer)[0]), net.shape((layer, 0))
    if shape is None or made is None:
        return False
    wide = [1] * (len(made) - len(shape)) + list(shape)
    return all(a in (1, b) for a, b in zip(wide, made, strict=True))


def _reaches(
    one: tuple[int, ...] | None, other: tuple[int, ...] | None, made: tuple[int, ...] | None
) -> bool:
    """Whether two shapes broadcast to a third."""
    if one is None or other is None or made is None:
        return False
    rank = max(len(one), len(other))
    rows = [(1,) * (rank - len(shape)) + shape for shape in (one, other)]
    return tuple(b if a == 1 else a for a, b in zip(*rows, strict=True)) == made


RULE = Rule("broadcast-into-elementwise", tuple(sorted(BINARY)), _apply)
