"""Replace `Convert(a b)`, a product or convolution of whole numbers, by `a' b'` of floating ones.

What dynamically quantised networks multiply are bytes less a zero point, widened to integers of 32
bits: so few that floating numbers hold each of them. Sums of products they hold as well as a
Convert of the sums would, also where an integer, as a bias, is added before. What makes such
integers of bytes makes floating numbers instead.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import prod

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import CONVOLUTIONS, Node, Plan, Value, constant

#: Up to this, floating numbers hold all whole ones.
EXACT = 1 << 24
#: Beyond this, integers of 32 bits begin anew.
WIDEST = (1 << 31) - 1
#: Elementwise operations whose limits are those of their inputs, joined.
JOINED = frozenset({"Add", "Subtract", "Multiply"})
PRODUCTS = CONVOLUTIONS | {"MatMul"}
_INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))

#: The least and the largest a value may be; and what it may be where some integer is added to one
#: that floating numbers hold: biases are such. Of one beyond those the last places are lost.
Limits = tuple[int, int]
ANY: Limits = (-WIDEST, WIDEST)


def multiply_whole(plan: Plan) -> None:
    """Apply the pass."""
    if not any(node.kind in PRODUCTS and node.outputs[0].type in _INTEGERS for node in plan.nodes):
        return
    limits: dict[Value, Limits] = {}
    for node in plan.nodes:
        found = _limits(node, limits)
        if found is not None:
            limits[node.outputs[0]] = found
    floating = _settled(limits)
    numbers = {value: Value(value.shape, np.dtype(np.float32)) for value in floating}
    to_numbers = Op.registry["Convert", 1].read({"destination_type": "f32"})
    dropped = [
        node for value in floating for node in value.users
        if node.kind == "Convert" and node.outputs[0].type == np.float32
    ]  # fmt: skip
    added: dict[Node, list[Node]] = {}
    for value, number in numbers.items():
        maker = value.producer
        assert maker is not None
        if maker.kind == "Convert":
            maker.op = to_numbers
        for given in maker.inputs:
            if _is_beside(given, numbers, maker):
                beside = Value(given.shape, np.dtype(np.float32))
                added[maker] = [Node(maker.layer, to_numbers, [given], [beside]), maker]
                maker.set_inputs([beside if x is given else x for x in maker.inputs])
        maker.set_inputs([_floating(given, numbers, maker) for given in maker.inputs])
        maker.set_output(number)
        maker.is_whole = maker.kind in CONVOLUTIONS
    for node in dropped:
        (source,), (made,) = node.inputs, node.outputs
        if made.is_output:
            node.set_inputs([numbers[source]])
            continue
        node.detach()
        for user in list(made.users):
            user.set_inputs([numbers[source] if x is made else x for x in user.inputs])
    plan.replace({node: [] for node in dropped if not node.outputs[0].is_output} | added)


def _floating(given: Value, numbers: dict[Value, Value], maker: Node) -> Value:
    """An input of what makes floating numbers now."""
    if given in numbers:
        return numbers[given]
    if given.constant is not None and maker.kind != "Convert":
        return constant(given.constant.astype(np.float32))
    return given


def _limits(node: Node, limits: dict[Value, Limits]) -> Limits | None:
    """Between which whole numbers an integer output lies, if it could be floating ones."""
    if len(node.outputs) != 1 or node.outputs[0].type not in _INTEGERS or node.epilogue:
        return None
    if node.kind not in JOINED | PRODUCTS | {"Convert"}:
        return None
    if node.outputs[0].is_output:
        return None
    found = [known(value, limits) for value in node.inputs]
    ends = [one for one in found if one is not None]
    if len(ends) == 1 and any(_is_beside(value, limits, node) for value in node.inputs):
        return ANY
    if len(ends) < len(found):
        return None
    if node.kind == "Convert":
        return ends[0]
    made = joined(node.kind, *ends)
    if node.kind not in PRODUCTS:
        return made if max(map(abs, made)) <= EXACT else None
    is_added = any(user.kind != "Convert" for user in node.outputs[0].users)
    farthest = most(node, ends, EXACT if is_added else WIDEST)
    return (-farthest, farthest) if farthest <= WIDEST else None


def joined(kind: str, one: Limits, other: Limits) -> Limits:
    """Between which numbers sums and differences of some lie; of all other kinds, products."""
    (low, high), (least, most) = one, other
    if kind == "Subtract":
        return low - most, high - least
    if kind == "Add":
        return low + least, high + most
    products = [a * b for a in one for b in other]
    return min(products), max(products)


def most(node: Node, ends: list[Limits], enough: int) -> int:
    """The most that sums of products may be; that it is no more than enough is seen sooner."""
    given, other = (max(map(abs, limits)) for limits in ends)
    found, weights = _terms(node) * given * other, node.inputs[1].constant
    return found if weights is None or found <= enough else given * _weight(node, weights)


def _terms(node: Node) -> int:
    """Of how many products each sum is, at most."""
    left, right = (value.shape for value in node.inputs[:2])
    if node.kind == "MatMul":
        turned = node.op.transpose_a and len(left) > 1  # type: ignore[attr-defined]  # MatMul has it
        return left[-2 if turned else -1]
    return prod(right[1 if node.kind == "Convolution" else 2 :])


def _weight(node: Node, weights: Array) -> int:
    """The most that a sum of inputs of one can be."""
    sizes = np.abs(weights, dtype=np.float32)
    if node.kind == "MatMul":
        last = node.op.transpose_b or sizes.ndim == 1  # type: ignore[attr-defined]  # MatMul has it
        found = sizes.sum(axis=-1 if last else -2, dtype=np.float64)
    else:
        outer = 1 if node.kind == "Convolution" else 2
        found = sizes.reshape(prod(sizes.shape[:outer]), -1).sum(axis=1, dtype=np.float64)
    return int(found.max(initial=0))


def known(value: Value, limits: dict[Value, Limits]) -> Limits | None:
    """Between which whole numbers a value lies."""
    if value in limits:
        return limits[value]
    numbers = value.constant
    if numbers is not None and numbers.size and _is_whole(numbers):
        low, high = int(numbers.min()), int(numbers.max())
        return (low, high) if max(-low, high) <= EXACT else None
    if value.type in _BYTES and not value.is_outside and value.packed is None:
        ends = np.iinfo(value.type)
        return int(ends.min), int(ends.max)
    return None


def _is_whole(numbers: Array) -> bool:
    """Whether all are whole, and of a type that whole numbers have here."""
    if numbers.dtype == np.float32:
        return bool((numbers == np.rint(numbers)).all() and np.isfinite(numbers).all())
    return numbers.dtype in (*_INTEGERS, *_BYTES)


def _settled(limits: dict[Value, Limits]) -> list[Value]:
    """The values that only such floating numbers are made of."""
    kept = dict(limits)
    while True:
        left = [
            value
            for value in kept
            if not all(_reads(value, user, kept) for user in value.users)
            or not all(_fits(given, kept, value) for given in _given(value))
        ]
        if not left:
            break
        for value in left:
            del kept[value]
    return list(kept)


def _reads(value: Value, user: Node, kept: dict[Value, Limits]) -> bool:
    """Whether a user makes floating numbers of a value, or takes them instead of it."""
    if user.kind == "Convert" and user.outputs[0].type == np.float32:
        return not user.epilogue
    exact = max(map(abs, kept[value])) <= EXACT
    return exact and not user.prologue and user.outputs[0] in kept and value in user.inputs


def _given(value: Value) -> Iterator[Value]:
    """What the maker of a value takes."""
    assert value.producer is not None
    yield from value.producer.inputs


def _fits(given: Value, kept: dict[Value, Limits], made: Value) -> bool:
    """Whether floating numbers can be made of an input."""
    if given in kept or given.constant is not None or given.type in _BYTES:
        return True
    return made.producer is not None and _is_beside(given, kept, made.producer)


def _is_beside(given: Value, kept: Container[Value], maker: Node) -> bool:
    """Whether an input is some integer that is added to sums, and is made floating for that."""
    if maker.kind != "Add" or given in kept or given.constant is not None:
        return False
    return given.type in _INTEGERS and any(x in kept for x in maker.inputs)
