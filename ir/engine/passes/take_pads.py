"""Replace `W * pad(x, 0)` by `W * x` with the same paddings: nothing is copied for their sake.

Images that are padded on one side more than on the other come so from frameworks whose
convolutions pad both alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.windows import reach
from ....schemas.shapes import number
from ..plan import CONVOLUTIONS, Node, Plan, Value


def take_pads(plan: Plan) -> None:
    """Apply the pass."""
    gone: dict[Node, list[Node]] = {}
    for pad in plan.nodes:
        margins = _margins(pad)
        if margins is None:
            continue
        padded = pad.outputs[0]
        readers = list(padded.users)
        if padded.is_output or not all(_convolves(node, padded) for node in readers):
            continue
        for node in readers:
            _pad_more(node, margins)
            node.replace_input(0, pad.inputs[0])
        pad.set_inputs([])
        gone[pad] = []
    plan.replace(gone)


def _margins(pad: Node) -> list[tuple[int, int]] | None:
    """How many zeros a node puts around images, along each of their axes; None if it does not."""
    if pad.kind != "Pad" or pad.is_outside or pad.inputs[0].type != np.float32:
        return None
    begins, ends, *fill = (value.constant for value in pad.inputs[1:])
    if pad.op.pad_mode != "constant" or begins is None or ends is None:  # type: ignore[attr-defined]  # Pad has it
        return None
    if any(value is None or value.any() for value in fill):
        return None
    found = list(zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True))
    if any(map(any, found[:2])) or min(map(min, found), default=0) < 0:
        return None
    return found[2:]


def _convolves(node: Node, images: Value) -> bool:
    """Whether a node is a convolution of images, which are not its weights, too."""
    if node.kind not in CONVOLUTIONS or node.is_outside:
        return False
    return node.inputs[0] is images and node.inputs.count(images) == 1


def _pad_more(node: Node, margins: list[tuple[int, int]]) -> None:
    op: Any = node.op
    kernel = node.inputs[1].shape[-len(margins) :]
    pads = [
        tuple(map(number, op.pads(size, axis, reach(taps, dilation))))
        for axis, (size, taps, dilation) in enumerate(
            zip(node.inputs[0].shape[2:], kernel, op.dilations, strict=True)
        )
    ]
    begins, ends = (
        tuple(own[side] + more[side] for own, more in zip(pads, margins, strict=True))
        for side in (0, 1)
    )
    changes = {"auto_pad": "explicit", "pads_begin": begins, "pads_end": ends}
    node.op = op.model_copy(update=changes)
