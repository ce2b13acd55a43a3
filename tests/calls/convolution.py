"""Sample calls of convolution."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
from oracle import Call

PLAIN = {"strides": "1, 1", "dilations": "1, 1", "pads_begin": "0, 0", "pads_end": "0, 0"}
ODD = {"strides": "2, 1", "dilations": "1, 2", "pads_begin": "1, 0", "pads_end": "0, 2"}
BINARY = {"mode": "xnor-popcount", "pad_value": "0"}
#: The CPU of OpenVINO takes the bits of u1 in another order than the file has, and padding of
#: 0 for no padding; its reference implementation is not in the package.
BITS = "the CPU of OpenVINO takes the filter's bits in another order than the file"


def values(*shape: int, kind: Any = "f4", seed: int = 0) -> Any:
    """Small whole numbers, whose sums are exact in every type."""
    return np.random.default_rng([seed, *shape]).integers(-3, 4, shape).astype(kind)


IMAGE = values(2, 4, 7, 6)
BITMAP = (IMAGE > 0).astype("f4")

CALLS = [
    Call("ConvolutionV1", [IMAGE, values(3, 4, 3, 2)], PLAIN),
    Call("ConvolutionV1", [IMAGE, values(3, 4, 3, 2)], ODD),
    Call("GroupConvolutionV1", [IMAGE, values(2, 3, 2, 3, 2)], ODD),
    Call("ConvolutionBackpropDataV1", [IMAGE, values(4, 3, 3, 2)], ODD),
    Call(
        "ConvolutionBackpropDataV1",
        [IMAGE, values(4, 3, 3, 2), np.array([14, 6])],
        PLAIN | {"strides": "2, 1", "auto_pad": "same_upper"},
        const=(2,),
    ),
    Call("GroupConvolutionBackpropDataV1", [IMAGE, values(2, 2, 3, 3, 2)], ODD),
    Call(
        "BinaryConvolutionV1",
        [BITMAP, (values(3, 4, 3, 2, kind="u1") & 1, "u1")],
        PLAIN | BINARY,
        const=(1,),
        differs=BITS,
    ),
    *(
        Call(
            op,
            [IMAGE, values(2, 2 * 2 * 6, 5, 5) / np.float32(4), values(4, 2, 3, 2)],
            PLAIN | {"group": "2", "deformable_group": "2"},
        )
        for op in ("DeformableConvolutionV1", "DeformableConvolutionV8")
    ),
]


def draw(op: str, rng: random.Random) -> Call:
    axes = 2 if op.startswith(("Binary", "Deformable")) else rng.choice([1, 2, 2, 3])

    def per_axis(low: int, high: int) -> list[int]:
        return [rng.randint(low, high) for _ in range(axes)]

    kernel, sizes = per_axis(1, 3), per_axis(5, 8)
    strides, dilations = per_axis(1, 3), per_axis(1, 2)
    pads = [per_axis(0, 2), per_axis(0, 2)]
    auto_pad = rng.choice(["explicit", "explicit", "valid", "same_upper", "same_lower"])
    data = {
        name: ", ".join(map(str, numbers))
        for name, numbers in (
            ("strides", strides),
            ("dilations", dilations),
            ("pads_begin", pads[0]),
            ("pads_end", pads[1]),
        )
    } | {"auto_pad": auto_pad}
    batch, ins, outs, group = (rng.randint(1, n) for n in (2, 3, 3, 3))
    kind = rng.choice(["f4", "f4", "f2", "f8", "i4", "i1", "u1", ml_dtypes.bfloat16])
    seed = rng.randint(0, 99)
    if op == "BinaryConvolutionV1":
        image = values(batch, ins, *sizes, seed=seed) > 0
        bits = values(outs, ins, *kernel, kind="u1", seed=seed) & 1
        data |= BINARY | {"pad_value": rng.choice(["0", "1", "-1", "0.5"])}
        return Call(op, [image.astype("f4"), (bits, "u1")], data, const=(1,), differs=BITS)
    if op.startswith("Deformable"):
        return deformable(op, rng, data, (batch, ins, outs, group), sizes, kernel)
    grouped = op.startswith("Group")
    if grouped:
        # Of an input without upper limit, OpenVINO divides the limit of 64 bits.
        outs = ins + 1
        # Its CPU cannot spread a single group whose filters are an input.
        group = max(group, 2)
    image = values(batch, ins * group if grouped else ins, *sizes, kind=kind, seed=seed)
    channels = (ins, outs) if "Backprop" in op else (outs, ins)
    lead = (group, *channels) if grouped else channels
    inputs = [image, values(*lead, *kernel, kind=kind, seed=seed)]
    const: tuple[int, ...] = (1,) if rng.random() < 0.5 else ()
    if "Backprop" in op:
        data["output_padding"] = ", ".join(str(rng.randint(0, s - 1)) for s in strides)
        if rng.random() < 0.5:
            spans = [
                (n - 1) * s + (k - 1) * d + 1
                for n, s, k, d in zip(sizes, strides, kernel, dilations, strict=True)
            ]
            inputs.append(np.array([max(n - rng.randint(0, 2), 1) for n in spans]))
            const = (*const, 2)
    return Call(op, inputs, data, const=const, rtol=1e-2 if kind == "f2" else 1e-5)


def deformable(
    op: str,
    rng: random.Random,
    data: dict[str, str],
    channels: tuple[int, int, int, int],
    sizes: list[int],
    kernel: list[int],
) -> Call:
    """A call whose offsets have the shape of the output."""
    batch, ins, outs, group = channels
    moved = rng.choice([1, 2])
    data |= {"group": str(group), "deformable_group": str(moved)}
    image = values(batch, ins * group * moved, *sizes)
    filters = values(outs * group, ins * moved, *kernel)
    from vinoir.layers import Op
    from vinoir.schemas import Shape

    made: Any = Op.registry["Convolution", 1].read(data)
    counts = made.stops(*made.sizes(Shape(image.shape), Shape(filters.shape)))
    count = moved * int(np.prod(kernel))
    offsets = values(batch, 2 * count, *counts, seed=1) / np.float32(4)
    inputs = [image, offsets, filters]
    if op == "DeformableConvolutionV8":
        data["bilinear_interpolation_pad"] = rng.choice(["true", "false"])
        if rng.random() < 0.5:
            inputs.append(values(batch, count, *counts, seed=2) / np.float32(2))
    return Call(op, inputs, data)
