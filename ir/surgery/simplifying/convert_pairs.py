"""Convert(Convert(x, wide), type of x) → x, and Convert(Convert(x, wide), t) → Convert(x, t).

The type between must hold every number of the type of x.
"""

from __future__ import annotations

from ....schemas import ElementType
from ...document import Layer
from .patterns import made_by
from .rewriter import Rewriter, Rule

_REAL_BITS = {ElementType.F16: 11, ElementType.F32: 24, ElementType.F64: 53}


def _apply(net: Rewriter, layer: Layer) -> bool:
    inner = made_by(net, net.inputs(layer)[0], "Convert")
    if inner is None:
        return False
    source = net.inputs(inner)[0]
    given, between, made = net.kind(source), net.kind((inner, 0)), net.kind((layer, 0))
    if not _holds(between, given) or given.is_dynamic:
        return False
    if given == made:
        return net.replace((layer, 0), source)
    # From real numbers to integers what is out of range depends on the runtime.
    if given.dtype.kind != made.dtype.kind or between.dtype.kind != made.dtype.kind:
        return False
    if any(
        one.rt_info is not None and one.rt_info.find("decompression") for one in (inner, layer)
    ):
        return False
    return net.replace((layer, 0), net.copy(layer, [source]))


def _holds(wide: ElementType, narrow: ElementType) -> bool:
    """Whether every number of a type is one of another."""
    if wide in _REAL_BITS and narrow in _REAL_BITS:
        return _REAL_BITS[wide] >= _REAL_BITS[narrow]
    kinds = {"i": 1, "u": 0}
    if {wide.bits, narrow.bits} <= {8, 16, 32, 64} and narrow.dtype.kind in kinds:
        if wide in _REAL_BITS:
            return _REAL_BITS[wide] >= narrow.bits
        if wide.dtype.kind in kinds:
            signs = kinds[wide.dtype.kind], kinds[narrow.dtype.kind]
            return wide.bits - signs[0] >= narrow.bits - signs[1] and signs[0] >= signs[1]
    return narrow is ElementType.BOOLEAN and (wide in _REAL_BITS or wide.dtype.kind in kinds)


RULE = Rule("convert-pairs", ("Convert",), _apply)
