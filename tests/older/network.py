"""A small old network."""

from __future__ import annotations

from .case import draw
from .files import OldFile


def small(version: int = 6) -> OldFile:
    """A network of a convolution, a pooling and a product."""
    file = OldFile(version)
    x = file.input((1, 3, 8, 8), "image")
    data = {"kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1", "output": 4}
    if version == 2:
        data = {"kernel-x": 3, "kernel-y": 3, "pad-x": 1, "pad-y": 1, "output": 4}
    blobs = {"weights": draw(4, 3, 3, 3), "biases": draw(4)}
    c = file.add("Convolution", [x], [(1, 4, 8, 8)], data, blobs, name="conv")
    pool = {"kernel": "3,3", "strides": "2,2", "pool-method": "max"}
    p = file.add("Pooling", [c], [(1, 4, 4, 4)], pool, name="pool")
    f = file.add(
        "FullyConnected", [p], [(1, 5)], {"out-size": 5}, {"weights": draw(5, 64)}, name="fc"
    )
    file.add("SoftMax", [f], [(1, 5)], {"axis": 1}, name="prob")
    return file
