"""Replace `W q(x)` by `W l(x)`, l the levels that q rounds to, kept as bytes less 128.

What only moves or chooses them on the way there does it to bytes, and who computes with numbers
element by element makes these in cache, or finds what he makes of each level in a table. Numbers
take four times the memory, and products of integers would have to make levels of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..plan import (
    BINARY,
    CONVOLUTIONS,
    MIDDLE,
    MOVING,
    POOLINGS,
    UNARY,
    Grid,
    Node,
    Plan,
    Value,
    add_through,
    constant,
    grid_of,
    has_many_groups,
    is_depthwise,
    is_function_of,
    moved,
    sees_the_image,
)
from .fold_affine import fold


def keep_levels(plan: Plan) -> None:
    """Apply the pass."""
    kept = _kept(plan) if plan.means.integers else {}
    for node in plan.nodes:
        if not any(value in kept for value in node.outputs):
            continue
        for value in node.outputs:
            if value in kept:
                value.type, value.grid = np.dtype(np.int8), kept[value]
                for user in value.users:
                    if _sums(user, value):
                        _take_bytes(user, kept[value])
        if not _moves(node):
            _make_bytes(node)


def _kept(plan: Plan) -> dict[Value, Grid]:
    """The values of which nobody wants to know more than the levels."""
    found: dict[Value, Grid] = {}
    for node in plan.nodes:
        grid = grid_of(node) if _makes_levels(node) else None
        if _moves(node):
            given = {found.get(value) for value in moved(node)}
            grid = given.pop() if len(given) == 1 else None
        if grid is not None:
            found |= {value: grid for value in node.outputs if value.type == np.float32}
    pending = list(found)
    while pending:
        value = pending.pop()
        if value in found and not _stays(value, found):
            del found[value]
            pending += _moved_with(value)
    return found


def _moved_with(value: Value) -> Iterator[Value]:
    """What is moved to where a value goes, or from where it comes."""
    movers = [node for node in (value.producer, *value.users) if node is not None and _moves(node)]
    for node in movers:
        yield from moved(node)
        yield from node.outputs


def _stays(value: Value, found: Mapping[Value, Grid]) -> bool:
    """Whether all that a value is made of and made into are levels."""
    producer = value.producer
    if value.is_output or producer is None:
        return False
    if _moves(producer) and not all(other in found for other in moved(producer)):
        return False
    # What is moved somebody wishes for who reads another part of it. Sums of integers are rounded
    # to bytes sooner than to the numbers that these stand for.
    wished = (
        _moves(producer)
        or producer.integers is not None
        or any(
            _moves(user)
            or _multiplies(user, value)
            or _sums(user, value)
            or is_function_of(user, value)
            for user in value.users
        )
    )
    if not wished:
        return False
    return all(_takes(user, value, count, found) for user, count in value.users.items())


def _multiplies(node: Node, value: Value) -> bool:
    """Whether a node multiplies a value as integers."""
    return node.integers is not None and node.inputs[0] is value


def _sums(node: Node, value: Value) -> bool:
    """Whether a node reads channels of an image one by one, into memory where they are numbers."""
    return (
        is_depthwise(node)
        and node.inputs[0] is value
        and len(value.shape) == 4
        and not node.prologue
        and not has_many_groups(node)
    )


def _take_bytes(node: Node, grid: Grid) -> None:
    """Let such a node take levels less the middle one: `W (s l + m)` is `(s W) l + W m`."""
    channels = node.inputs[0].shape[1]
    if grid.middle:
        add_through(node, np.full(channels, grid.middle))
    if grid.middle or node.padding is not None:
        fill = np.zeros(channels) if node.padding is None else node.padding
        node.padding = ((fill - grid.middle) / grid.step).astype(np.float32)
    weights = node.inputs[1].constant
    assert weights is not None
    if grid.step != 1:
        node.replace_input(1, constant((weights * grid.step).astype(np.float32)))


def _takes(node: Node, value: Value, count: int, found: Mapping[Value, Grid]) -> bool:
    """Whether all that a node reads of a value may be levels."""
    if _moves(node):
        wanted = (made for made in node.outputs if made.users or made.is_output)
        return all(made in found for made in wanted) and not any(
            value is other for other in node.inputs[len(moved(node)) :]
        )
    if _sums(node, value):
        return count == 1
    if value.shape != node.outputs[0].shape:
        return count == _multiplies(node, value)
    # What is added in cache may be made numbers there.
    added = sum(
        other is value for op, others in node.epilogue for other in others if op.xml_type in BINARY
    )
    plain = node.kind in UNARY | BINARY and not node.prologue
    given = sum(other is value for other in node.inputs) if plain else _multiplies(node, value)
    return count == added + given


def _moves(node: Node) -> bool:
    """Whether a node only moves and chooses, which its kernel does with bytes, too."""
    if node.kind == "MaxPool" and not (len(node.outputs[0].shape) == 4 and sees_the_image(node)):
        return False
    return node.kind in MOVING and not node.epilogue and not node.prologue


def _makes_levels(node: Node) -> bool:
    """Whether the kernel of a node can give bytes."""
    if node.integers is not None:
        return True
    if node.kind in CONVOLUTIONS:
        return len(node.outputs[0].shape) < 5
    if node.kind in POOLINGS:
        return len(node.outputs[0].shape) == 4
    return node.kind in UNARY | BINARY | {"MVN", "SoftMax"}


def _make_bytes(node: Node) -> None:
    """Let the FakeQuantize that a node ends with give levels less the middle one."""
    op, others = node.epilogue[-1] if node.epilogue else (node.op, [None, *node.inputs[1:]])
    steps: int = op.levels - 1  # type: ignore[attr-defined]  # FakeQuantize has them
    low, high = (_number(value) for value in others[1:3])
    ends = [*_constants(-MIDDLE, steps - MIDDLE)]
    folds = node.kind in CONVOLUTIONS or node.integers is not None
    if folds and len(node.epilogue) == 1 and high - low == steps and low.is_integer():
        # Numbers are levels: they may be lifted or lowered to bytes by the product.
        outer = node.outputs[0].shape[1 if node.kind != "MatMul" else -1]
        if low == -MIDDLE or fold(node, np.ones(outer), np.full(outer, -MIDDLE - low)):
            others = [None, *ends, *ends]
    made = [*others[:3], *ends]
    if node.epilogue:
        node.set_epilogue([*node.epilogue[:-1], (op, made)])
    else:
        node.set_inputs([node.inputs[0], *(value for value in made[1:] if value is not None)])


def _number(value: Value | None) -> float:
    """The one number that a value is; none where it is more."""
    array = None if value is None else value.constant
    return float("nan") if array is None or array.size != 1 else float(array.reshape(()))


def _constants(*ends: int) -> Iterator[Value]:
    return (constant(np.array(end, np.float32)) for end in ends)
