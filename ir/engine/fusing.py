"""Products outside the arena take over what follows them element by element."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import numpy as np

from ...layers.base import Kernel, Op
from ...schemas import Array, Dim
from ..execution import by_definition
from .kernels import Following, LooseProduct, Rooms
from .plan import BINARY, UNARY, Node, Plan, Value, claimed_type, only_user
from .workers import Crew

#: Steps of a length of their own, or that need more than a piece of the output.
OTHERS = frozenset({"FakeQuantize", "PReLU", "SquaredDifference"})


def fuse_products(
    plan: Plan, apart: Collection[Node], crew: Crew[Rooms], definition: Callable[[Op, str], Kernel]
) -> dict[Node, Kernel]:
    """Let products by constant weights do what follows them, but for those nodes that stay apart.

    Of each, what computes it now; ``definition`` gives that of an operation and its type.
    """
    found: dict[Node, Kernel] = {}
    gone: set[Node] = set()
    for node in plan.nodes:
        if node in gone or node in apart or not _is_product(node):
            continue
        op, (left, right) = node.op, node.inputs
        weights = right.constant
        assert weights is not None
        others: list[Value] = []
        steps: list[Following] = []
        columns = weights.shape[0 if op.transpose_b else 1]  # type: ignore[attr-defined]  # MatMul has it
        while True:
            follower = only_user(node.outputs[0])
            if follower is None or follower in apart or not _follows(node, follower, columns):
                break
            steps.append(_step(node, follower, others))
            node.set_inputs([left, right, *others])
            follower.detach()
            node.outputs = follower.outputs
            node.outputs[0].producer = node
            gone.add(follower)
        # What multiplies it has the weights in its own order.
        node.set_inputs([left, *others])
        found[node] = LooseProduct(op, weights, steps, crew, definition(op, "MatMul"))
    if gone:
        plan.replace({node: [] for node in gone})
        plan.sort()
    return found


def _is_product(node: Node) -> bool:
    """Whether a node multiplies numbers by constant weights."""
    if not node.is_outside or claimed_type(type(node.op)) != "MatMul":
        return False
    left, right = node.inputs
    weights = right.constant
    if weights is None or weights.ndim != 2 or not weights.size:
        return False
    return all(x.type == np.float32 for x in (left, right, node.outputs[0]))


def _follows(node: Node, follower: Node, columns: int) -> bool:
    """Whether a node changes each number of a product that it alone reads."""
    kind, value = claimed_type(type(follower.op)), node.outputs[0]
    if not follower.is_outside or kind in OTHERS or len(follower.outputs) != 1:
        return False
    if any(x.type != np.float32 for x in (*follower.inputs, follower.outputs[0])):
        return False
    others = [x for x in follower.inputs if x is not value]
    if kind in UNARY:
        known = [x.constant for x in others]
        return follower.inputs[0] is value and all(x is not None and x.size == 1 for x in known)
    if kind not in BINARY or getattr(follower.op, "auto_broadcast", "") != "numpy":
        return False
    (other,) = others
    if other.constant is not None:
        shape, rank = other.constant.shape, value.tensor.shape.rank
        is_line = other.constant.size in (1, columns) and shape[-1:] in ((), (1,), (columns,))
        return is_line and rank is not None and len(shape) <= rank
    return _are_alike(value, other)


def _are_alike(value: Value, other: Value) -> bool:
    """Whether two values may well have the same shape."""
    shape, beside = value.tensor.shape, other.tensor.shape
    if shape.rank is None or beside.rank is None or shape.rank != beside.rank:
        return False
    pairs = zip(shape.sizes, beside.sizes, strict=True)
    return all(isinstance(a, Dim) or isinstance(b, Dim) or a == b for a, b in pairs) and not any(
        b == 1 and a != 1 for a, b in zip(shape.sizes, beside.sizes, strict=True)
    )


def _step(node: Node, follower: Node, others: list[Value]) -> Following:
    """A follower as a step; what it reads beside the product joins the others."""
    value = node.outputs[0]
    more = [x for x in follower.inputs if x is not value]
    given: Array | int | None = None
    if more and more[0].constant is not None:
        given = more[0].constant
    elif more:
        given = len(others)
        others.append(more[0])
    slowly = partial(_told, follower, partial(by_definition, follower.op))
    return Following(follower.op, given, follower.inputs[0] is not value, slowly)


def _told(follower: Node, kernel: Kernel, *arrays: Array) -> tuple[Array, ...]:
    """What a follower gives by its definition, and where it is if that goes wrong."""
    with follower.layer.at():
        return kernel(*arrays)
