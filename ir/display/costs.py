"""What layers compute: sums of products by their definitions."""

from __future__ import annotations

from math import isfinite

from ...layers.base import Op
from ...schemas import IRError
from ..document import Layer


def sums_products(layer: Layer) -> bool:
    """Whether its operation is a sum of products, such as a convolution."""
    kind = layer.kind
    return kind is not None and kind.multiply_adds is not Op.multiply_adds


def macs(layer: Layer) -> float | None:
    """Products that are summed up; None where a size is not known, or it is no sum of products.

    Of a body they are those of one turn.
    """
    inputs = [port.dims for port in layer.inputs]
    if not layer.outputs or min((n for dims in inputs for n in dims), default=0) < 0:
        return None
    output = layer.outputs[0].dims
    try:
        if layer.op is None or min(output, default=0) < 0:
            return None
        layer.op.check_arity(len(inputs))
        count = float(layer.op.multiply_adds(inputs, output))
    except (IRError, IndexError, OverflowError):
        return None  # wrong models are shown, too: with inputs of too few axes, or of too large
    return count if count and isfinite(count) else None


__all__ = ["macs", "sums_products"]
