"""Replace `Depthwise(Shuffle(x))` by `Shuffle(Depthwise'(x))`, its weights in the other order.

A depthwise convolution takes channels in any order. What it makes is shuffled instead where it
leaves fewer places, or where runs of channels may stay together, since a convolution of groups
follows and takes those of a group in any order; else it shuffles what it pads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import SHUFFLE, Node, Plan, Value, constant, is_depthwise, only_user


def shuffle_late(plan: Plan) -> None:
    """Apply the pass."""
    for node in plan.nodes:
        if not node.epilogue or node.epilogue[-1][0].xml_type != SHUFFLE:
            continue
        after = only_user(node.outputs[0])
        if after is None or not is_depthwise(after) or node.outputs[0].type != np.float32:
            continue
        *earlier, last = node.epilogue
        shuffle, _ = last
        unit = 1 if after.epilogue else _stays_together(shuffle, after)
        op: Any = after.op
        node.set_epilogue(earlier)
        if unit == 1 and (after.epilogue or max(op.strides) == 1):
            after.set_prologue([last])
            continue
        after.set_epilogue([*after.epilogue, (shuffle, [None, constant(np.array(unit))])])
        groups = shuffle.group  # type: ignore[attr-defined]  # ShuffleChannels has it
        places = np.arange(node.outputs[0].shape[1]).reshape(-1, groups).T.ravel()
        reordered = [constant(_known(value)[places]) for value in after.inputs[1:]]
        after.set_inputs([after.inputs[0], *reordered])
        after.padding = None if after.padding is None else after.padding[places]
        if unit > 1:
            then = only_user(after.outputs[0])
            assert then is not None
            places = np.arange(groups * unit).reshape(unit, groups).T.ravel()
            then.replace_input(1, constant(_known(then.inputs[1])[:, :, places]))


def _stays_together(shuffle: Op, node: Node) -> int:
    """How many channels stay side by side before the convolution of groups that follows."""
    then = only_user(node.outputs[0])
    if then is None or then.kind != "GroupConvolution" or then.inputs[0] is not node.outputs[0]:
        return 1
    weights = then.inputs[1].constant
    groups = shuffle.group  # type: ignore[attr-defined]  # ShuffleChannels has it
    if weights is None or weights.shape[2] % groups:
        return 1
    return int(weights.shape[2] // groups)


def _known(value: Value) -> Array:
    """The array of a constant."""
    assert value.constant is not None
    return value.constant
