"""Squeeze(Split(x)) for each part of size one → Gather(x) for each."""

from __future__ import annotations

import numpy as np

from ....schemas import ElementType
from ...document import Layer
from .patterns import same_shape
from .reshape_chains import RESHAPES
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    value, axes = net.inputs(layer)[:2]
    shape, rows = net.tensor(value).shape, net.ints(axes)
    if rows is None or shape.rank is None:
        return False
    axis = rows[0] % shape.rank
    users: list[tuple[int, Layer]] = []
    for index in range(len(layer.outputs)):
        part = net.tensor((layer, index)).shape
        if net.feeds_result((layer, index)) or part.rank is None or part.sizes[axis] != 1:
            return False
        users += [(index, user) for user, _ in net.uses((layer, index))]
    if not users or any(user.type not in RESHAPES for _, user in users):
        return False
    made = []
    for index, user in users:
        number = net.constant(np.int64(index), ElementType.I64, layer)
        data = {"batch_dims": "0"}
        new = net.add("Gather", "opset8", [value, number, axes], data, like=user)
        # Both have the elements of the part, so that one open size follows from the others.
        if not same_shape(net.tensor(new).shape, net.tensor((user, 0)).shape, count=True):
            return False
        made.append(new)
    done = [net.replace((user, 0), new) for (_, user), new in zip(users, made, strict=True)]
    return all(done)


RULE = Rule("parts-into-gathers", ("Split", "VariadicSplit"), _apply, stage=1)
