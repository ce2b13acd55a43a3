"""Sample calls of the rearrangements by blocks."""

from __future__ import annotations

import random
from math import prod

import numpy as np
from oracle import Call

from calls.movement import INDEX, consts, filled, fronted, numbers, shaped

IMAGE = np.arange(2 * 8 * 4 * 6, dtype="f4").reshape(2, 8, 4, 6)
COLUMNS = np.arange(2 * 12 * 12, dtype="f4").reshape(2, 12, 12)
PADDED = np.array([[1, 1, 2, 3], [0, 0, 1, 0], [0, 0, 1, 3]])
CROPPED = np.array([[1, 1, 2, 1], [0, 0, 1, 0], [0, 1, 3, 2]])
PATCH = {"sizes": "2, 3", "strides": "1, 2", "rates": "2, 1"}

MIXED = "OpenVINO's CPU mixes batches up where a block is larger than the input"

CALLS = [
    Call("ShuffleChannelsV1", [IMAGE], {"axis": "-3", "group": "4"}),
    *(
        Call(op, [IMAGE], {"block_size": "2", "mode": mode})
        for op in ("SpaceToDepthV1", "DepthToSpaceV1")
        for mode in ("blocks_first", "depth_first")
    ),
    Call("SpaceToBatchV2", [IMAGE, *PADDED], {}, (1, 2, 3)),
    Call("BatchToSpaceV2", [IMAGE, *CROPPED], {}, (1, 2, 3)),
    Call("Col2ImV15", [COLUMNS, np.array([4, 5]), np.array([2, 2])], {}, (1, 2)),
    *(
        Call("ExtractImagePatchesV3", [IMAGE], PATCH | {"auto_pad": pad})
        for pad in ("valid", "same_upper", "same_lower")
    ),
]  # fmt: skip


def draw(op: str, rng: random.Random) -> Call:
    drawn: Call = globals()[f"draw_{op.rpartition('V')[0].lower()}"](op, rng)
    return drawn


def draw_shufflechannels(op: str, rng: random.Random) -> Call:
    shape = shaped(rng, 2)
    axis, group = rng.randrange(len(shape)), rng.randint(1, 4)
    shape[axis] = group * rng.randint(1, 3)
    data = {"axis": str(fronted(rng, axis, len(shape))), "group": str(group)}
    return Call(op, [filled(rng, shape)], data)


def draw_spacetodepth(op: str, rng: random.Random) -> Call:
    block, mode = rng.randint(1, 3), rng.choice(["blocks_first", "depth_first"])
    shape = [rng.randint(1, 2), rng.randint(1, 3), *(block * n for n in shaped(rng, 1, 3))]
    return Call(op, [filled(rng, shape)], {"block_size": str(block), "mode": mode})


def draw_depthtospace(op: str, rng: random.Random) -> Call:
    block, mode = rng.randint(1, 3), rng.choice(["blocks_first", "depth_first"])
    space = shaped(rng, 1, 3)
    shape = [rng.randint(1, 2), block ** len(space) * rng.randint(1, 3), *space]
    return Call(op, [filled(rng, shape)], {"block_size": str(block), "mode": mode})


def draw_spacetobatch(op: str, rng: random.Random) -> Call:
    rank = rng.randint(2, 5)
    blocks = [1, *(rng.randint(1, 3) for _ in range(rank - 1))]
    begins, ends = ([0, *(rng.randint(0, 2) for _ in range(rank - 1))] for _ in "ab")
    shape = [rng.randint(1, 3)]
    for block, begin, end in zip(blocks[1:], begins[1:], ends[1:], strict=True):
        shape.append(
            next(n for n in range(rng.randint(1, 4), 9) if (n + begin + end) % block == 0)
        )
    kind = [rng.choice(INDEX)]
    lists = [numbers(rng, values, kind) for values in (blocks, begins, ends)]
    small = any(size < block for size, block in zip(shape, blocks, strict=True))
    differs = MIXED if small else ""
    return Call(op, [filled(rng, shape), *lists], const=consts(rng, 1, 2, 3), differs=differs)


def draw_batchtospace(op: str, rng: random.Random) -> Call:
    rank = rng.randint(2, 5)
    blocks = [1, *(rng.randint(1, 3) for _ in range(rank - 1))]
    shape = [prod(blocks) * rng.randint(1, 2), *(rng.randint(1, 3) for _ in range(rank - 1))]
    begins, ends = [0], [0]
    for size, block in zip(shape[1:], blocks[1:], strict=True):
        begins.append(rng.randint(0, min(2, size * block - 1)))
        ends.append(rng.randint(0, min(2, size * block - 1 - begins[-1])))
    kind = [rng.choice(INDEX)]
    lists = [numbers(rng, values, kind) for values in (blocks, begins, ends)]
    return Call(op, [filled(rng, shape), *lists], const=consts(rng, 1, 2, 3))


def draw_col2im(op: str, rng: random.Random) -> Call:
    kernel, strides, dilations = ([rng.randint(1, n), rng.randint(1, n)] for n in (3, 2, 2))
    begins, ends = ([rng.randint(0, 1), rng.randint(0, 1)] for _ in "ab")
    image = [rng.randint(5, 8), rng.randint(5, 8)]
    columns = prod(
        (image[i] + begins[i] + ends[i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(2)
    )
    shape = [rng.randint(1, 2) * prod(kernel), columns]
    if rng.random() < 0.7:
        shape.insert(0, rng.randint(1, 3))
    rows = {"strides": strides, "dilations": dilations, "pads_begin": begins, "pads_end": ends}
    kind = [rng.choice(INDEX)]
    inputs = [
        filled(rng, shape, ["f4", "f4", "f8", "i4", "f2"]),
        numbers(rng, image, kind),
        numbers(rng, kernel, kind),
    ]
    data = {name: ", ".join(map(str, values)) for name, values in rows.items()}
    # Lists of an unknown length make OpenVINO stumble.
    return Call(op, inputs, data, const=(1, 2))


def draw_extractimagepatches(op: str, rng: random.Random) -> Call:
    shape = [rng.randint(1, 2), rng.randint(1, 3), rng.randint(5, 9), rng.randint(5, 9)]
    data = {
        "sizes": f"{rng.randint(1, 3)}, {rng.randint(1, 3)}",
        "strides": f"{rng.randint(1, 4)}, {rng.randint(1, 4)}",
        "rates": f"{rng.randint(1, 2)}, {rng.randint(1, 2)}",
        "auto_pad": rng.choice(["valid", "same_upper", "same_lower"]),
    }
    return Call(op, [filled(rng, shape)], data)
