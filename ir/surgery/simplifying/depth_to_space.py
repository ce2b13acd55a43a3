"""Reshape, Transpose, Reshape → DepthToSpace, or SpaceToDepth: channels to places and back.

For blocks of b x b: (n, b, b, c, h, w) or (n, c, b, b, h, w) to (n, c, h, b, w, b), and back.
"""

from __future__ import annotations

from ...document import Layer
from .patterns import fuse, reshaped_transpose
from .rewriter import Rewriter, Rule


def _apply(net: Rewriter, layer: Layer) -> bool:
    found = reshaped_transpose(net, layer)
    if found is None:
        return False
    split, order = found
    source = net.inputs(split[0])[0]
    given, parts, made = net.shape(source), net.shape(split), net.shape((layer, 0))
    if given is None or parts is None or made is None or 0 in given:
        return False
    axes = len(given) - 2
    if len(made) != axes + 2 or axes < 1 or len(parts) != 2 + 2 * axes:
        return False
    for kind, mode, groups, turn in _forms(axes):
        block = parts[groups[0]]
        if order != turn or block < 2 or any(parts[axis] != block for axis in groups):
            continue
        space, depth = (made, given) if kind == "DepthToSpace" else (given, made)
        if space[0] != depth[0] or depth[1] != space[1] * block**axes:
            continue
        sizes = [size for axis, size in enumerate(parts) if axis not in groups]
        if sizes != [depth[0], space[1], *depth[2:]]:
            continue
        if any(a != b * block for a, b in zip(space[2:], depth[2:], strict=True)):
            continue
        data = {"mode": mode, "block_size": str(block)}
        return fuse(net, layer, net.add(kind, "opset1", [source], data, like=layer))
    return False


def _forms(axes: int) -> list[tuple[str, str, list[int], list[int]]]:
    """Operation, mode, the axes of blocks after the first Reshape, and the order of axes."""
    rows = []
    places = range(axes)
    for mode, block, depth in (
        ("blocks_first", [1 + i for i in places], 1 + axes),
        ("depth_first", [2 + i for i in places], 1),
    ):
        spread = [0, depth]
        for i in places:
            spread += [2 + axes + i, block[i]]
        rows.append(("DepthToSpace", mode, block, spread))
        back = [0] * len(spread)
        for place, axis in enumerate(spread):
            back[axis] = place
        rows.append(("SpaceToDepth", mode, [3 + 2 * i for i in places], back))
    return rows


RULE = Rule("depth-to-space", ("Reshape",), _apply)
