"""f(Pad(x), w) → f(x, w) with the padding as its own, f a convolution, where zeros are added."""

from __future__ import annotations

from ...document import Layer
from .patterns import made_by
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    data, weights = net.inputs(layer)
    pad = made_by(net, data, "Pad")
    if pad is None or not net.is_private(data):
        return False
    if layer.data.get("auto_pad", "explicit").strip().lower() not in ("explicit", "notset"):
        return False
    added = _zeros(net, pad)
    if added is None:
        return False
    ends = dict(layer.data)
    for name, sizes in zip(("pads_begin", "pads_end"), added, strict=True):
        own = [int(size) for size in layer.data.get(name, "").split(",") if size.strip()]
        if any(sizes[:2]) or len(own) != len(sizes) - 2:
            return False
        ends[name] = ",".join(str(a + b) for a, b in zip(own, sizes[2:], strict=True))
    new = net.add(layer.type, layer.version, [net.inputs(pad)[0], weights], ends, like=layer)
    return net.replace((layer, 0), new)


def _zeros(net: Rewriter, pad: Layer) -> tuple[list[int], list[int]] | None:
    """How many zeros a Pad adds before and after each axis; None where it does anything else."""
    inputs = net.inputs(pad)
    value = net.scalar(inputs[3]) if len(inputs) > 3 else 0.0
    if pad.data.get("pad_mode", "").strip().lower() != "constant" or value != 0.0:
        return None
    begin, end = net.ints(inputs[1]), net.ints(inputs[2])
    if begin is None or end is None or min([*begin, *end], default=0) < 0:
        return None
    return begin, end


RULE = Rule("pad-into-convolution", ("Convolution", "GroupConvolution"), _apply, exact=False)
