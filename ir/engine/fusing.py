"""Products and norms outside the arena take over what follows them element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...layers.base import Kernel, Op
from ...schemas import Array, Dim
from ..execution import by_definition
from .kernels import NORMS, Following, LooseLevels, LooseNorm, LooseProduct, Rooms, loose_rows
from .plan import BINARY, UNARY, Node, Plan, Value, claimed_type, only_user
from .workers import Crew

#: Steps of a length of their own, or that need more than a piece of the output.
OTHERS = frozenset({"FakeQuantize", "PReLU", "SquaredDifference"})


def fuse(
    plan: Plan, crew: Crew[Rooms], definition: Callable[[Op, str], Kernel]
) -> dict[Node, Kernel]:
    """Let products by weights, and norms, do what follows them.

    Of each, what computes it now; ``definition`` gives that of an operation and its type.
    """
    found: dict[Node, Kernel] = {}
    gone: set[Node] = set()
    for node in plan.nodes:
        table = node.inputs[0].packed if node.is_outside and node.inputs else None
        if table is not None:
            found[node] = loose_rows(node.op, table)
            node.set_inputs([node.inputs[1]])  # none else reads levels as the first
            continue
        columns = None if node in gone else _columns(node)
        if columns is None:
            continue
        op, (first, second) = node.op, node.inputs
        others: list[Value] = []
        steps: list[Following] = []
        while True:
            follower = only_user(node.outputs[0])
            if follower is None or not _follows(node, follower, columns):
                break
            steps.append(_step(node, follower, others))
            node.set_inputs([first, second, *others])
            follower.detach()
            node.outputs = follower.outputs
            node.outputs[0].producer = node
            gone.add(follower)
        # What computes it has the constant.
        node.set_inputs([first, *others])
        kind = claimed_type(type(op))
        general = definition(op, kind)
        if second.packed is not None:
            found[node] = LooseLevels(op, second.packed, steps, crew, general)
            continue
        make = LooseNorm if kind in NORMS else LooseProduct
        found[node] = make(op, second.array, steps, crew, general)
    if gone:
        plan.replace({node: [] for node in gone})
        plan.sort()
    return found


def _columns(node: Node) -> int | None:
    """How many numbers a row has that a node gives which multiplies by weights, or is a norm."""
    if not node.is_outside or len(node.inputs) != 2 or node.outputs[0].type != np.float32:
        return None
    (first, second), kind = node.inputs, claimed_type(type(node.op))
    if second.packed is not None:
        return int(second.packed.shape[-2 if node.op.transpose_b else -1])  # type: ignore[attr-defined]  # MatMul has it
    known = second.constant
    if known is None or first.type != np.float32:
        return None
    if kind == "MatMul" and known.dtype == np.float32 and known.size:
        rank = first.tensor.shape.rank
        is_product = known.ndim == 2 or known.ndim == rank == 3
        return int(known.shape[-2 if node.op.transpose_b else -1]) if is_product else None  # type: ignore[attr-defined]  # MatMul has it
    last = first.tensor.shape.sizes[-1] if first.tensor.shape.rank else None
    return last if kind in NORMS and known.size == 1 and isinstance(last, int) else None


def _follows(node: Node, follower: Node, columns: int) -> bool:
    """Whether a node changes each number of a product that it alone reads."""
    kind, value = claimed_type(type(follower.op)), node.outputs[0]
    if not follower.is_outside or kind in OTHERS or len(follower.outputs) != 1:
        return False
    if any(x.type != np.float32 for x in (*follower.inputs, follower.outputs[0])):
        return False
    others = [x for x in follower.inputs if x is not value]
    if kind in UNARY:
        numbers = [x.constant for x in others]
        return follower.inputs[0] is value and all(x is not None and x.size == 1 for x in numbers)
    if kind not in BINARY or getattr(follower.op, "auto_broadcast", "") != "numpy":
        return False
    (other,) = others
    if other.constant is not None:
        known, rank = other.constant, value.tensor.shape.rank
        is_line = known.size == 1 or (known.size == columns and known.shape[-1] == columns)
        return is_line and rank is not None and known.ndim <= rank
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
    given: list[Array | int] = []
    for other in follower.inputs:
        if other is not value and other.constant is not None:
            given.append(other.constant)
        elif other is not value:
            given.append(len(others))
            others.append(other)
    slowly = partial(_told, follower, partial(by_definition, follower.op))
    return Following(follower.op, tuple(given), follower.inputs[0] is not value, slowly)


def _told(follower: Node, kernel: Kernel, *arrays: Array) -> tuple[Array, ...]:
    """What a follower gives by its definition, and where it is if that goes wrong."""
    with follower.layer.at():
        return kernel(*arrays)
