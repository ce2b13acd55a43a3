"""What layers compute: sums of products by their definitions."""

from __future__ import annotations

from math import prod

from ..document import Layer

_CONVOLUTIONS = ("Convolution", "BinaryConvolution", "DeformableConvolution")
#: Recurrent operations, to the places of their weights among the inputs.
_RECURRENT = {
    "LSTMSequence": (4, 5), "GRUSequence": (3, 4), "RNNSequence": (3, 4),
    "LSTMCell": (3, 4), "GRUCell": (2, 3), "RNNCell": (2, 3),
}  # fmt: skip
#: Operations that are sums of products.
SUMS = frozenset(
    {
        *_CONVOLUTIONS,
        *_RECURRENT,
        "GroupConvolution",
        "ConvolutionBackpropData",
        "GroupConvolutionBackpropData",
        "MatMul",
        "ScaledDotProductAttention",
    }
)


def macs(layer: Layer) -> float | None:
    """Products that are summed up; None where a size is not known, or it is no sum of products.

    Of a body they are those of one turn.
    """
    if layer.type not in SUMS or len(layer.inputs) < 2 or not layer.outputs:
        return None
    sizes = [port.dims for port in (*layer.inputs, layer.outputs[0])]
    if any(size < 0 for dims in sizes for size in dims):
        return None
    one, two, out = sizes[0], sizes[1], sizes[-1]
    if layer.type in _CONVOLUTIONS:
        return float(prod(out) * prod(two[1:]))
    if layer.type == "GroupConvolution":
        return float(prod(out) * prod(two[2:]))
    if layer.type == "ConvolutionBackpropData":
        return float(prod(one) * prod(two[1:]))
    if layer.type == "GroupConvolutionBackpropData":
        return float(prod(one) * prod(two[2:]))
    if layer.type in _RECURRENT:
        first, second = _RECURRENT[layer.type]
        if len(layer.inputs) <= second:
            return None
        turns = prod(one[:-1])
        # Each direction has weights of its own, which stand along the first axis.
        return float(turns * (prod(sizes[first]) + prod(sizes[second])))
    if layer.type == "ScaledDotProductAttention":
        return float((prod(one) + prod(out)) * two[-2]) if len(two) > 1 else None
    if not one:
        return None
    turned = layer.data.get("transpose_a", "").lower() in ("true", "1")
    return float(prod(out) * one[-2 if turned and len(one) > 1 else -1])


__all__ = ["SUMS", "macs"]
