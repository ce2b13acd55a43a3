"""Replace `MatMul(SoftMax(MatMul(q, k') * s + m), v)` by attention: scores never leave the cache.

The scale s is a number that is known, or one for each head. The mask m is whatever is added, once
or several times, or what is put in the place of scores by Select where that is as good as -inf.
In between scores may be reshaped, as long as each row of them stays one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..plan import CUTS, Node, Plan, Value, constant, in_order, only_user, reshaping, transposing

#: With fewer queries to each head nothing is gained.
FEW = 16
#: Scales within these go with the queries as well as with the scores: neither leaves float32.
SMALL, LARGE = 1e-6, 1e6
#: To add so little to a score is as good as to put it in its place.
HIDDEN = np.float32(-1e30)
#: Numbers of a constant mask, beyond which several are not made one.
MOST = 1 << 22

Shape: TypeAlias = "tuple[int, ...]"


@dataclass
class _Mask:
    """What is added to scores, with what it is multiplied by, beside scores of some shape."""

    value: Value
    beside: Shape
    factor: float = 1.0
    #: Where the value is the condition of a Select: that, with the number that it puts in place of
    #: scores and of what was added to them before; they themselves are None.
    select: Op | None = None
    choices: list[Array | None] = field(default_factory=list)


@dataclass
class _Chain:
    """What becomes of scores."""

    shapes: list[Shape]
    scale: float = 1.0
    #: Scales of heads, with the shapes of scores beside which they stand.
    scales: list[tuple[Value, Shape]] = field(default_factory=list)
    masks: list[_Mask] = field(default_factory=list)
    between: list[Node] = field(default_factory=list)


def join_attention(plan: Plan) -> None:
    """Apply the pass."""
    joined: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        if node not in joined and _is_product(node):
            joined |= _joined(node)
    plan.replace(joined)


def _joined(head: Node) -> dict[Node, list[Node]]:
    """What takes the place of a product with keys and of all that follows; or nothing."""
    chain = _Chain([head.outputs[0].shape])
    last = _last(head, chain)
    lead = None if last is None else _common([shape[:-2] for shape in chain.shapes])
    if last is None or lead is None or not SMALL <= abs(chain.scale) <= LARGE:
        return {}
    making = _Making(last)
    first, stop = chain.shapes[0], chain.shapes[-1]
    turned, tail = _turns(head), _turns(last)
    given = [
        making.turned(making.spread(value, beside, lead)) if is_turned
        else making.spread(value, beside, lead)
        for value, beside, is_turned in (
            (head.inputs[0], first, turned[0]),
            (head.inputs[1], first, not turned[1]),
            (last.inputs[1], stop, tail[1]),
        )
    ]  # fmt: skip
    for scale, beside in chain.scales:
        given[0] = making.made(_binary("Multiply"), given[0], making.spread(scale, beside, lead))
    mask = making.sum_of(chain.masks, lead)
    # No mask is one that adds nothing.
    given.append(constant(np.zeros((1, 1), np.float32)) if mask is None else mask)
    given.append(constant(np.full(1, chain.scale, np.float32)))
    former, (output,) = [head, *chain.between, last], last.outputs
    for one in former:
        one.detach()
    whole = Value((*lead, *output.shape[-2:]), output.type)
    is_same = whole.shape == output.shape
    op = Op.registry["ScaledDotProductAttention", 13].read({"causal": "false"})
    found = [*making.sides, Node(last.layer, op, given, [output if is_same else whole])]
    if not is_same:
        found.append(reshaping(last.layer, whole, output))
    return {one: [] for one in former} | {last: found}


def _is_product(node: Node) -> bool:
    """Whether a node multiplies stacks of matrices that are both computed."""
    return (
        node.kind == "MatMul"
        and all(v.constant is None and len(v.shape) >= 3 for v in node.inputs)
        and all(v.type == np.float32 for v in (*node.inputs, *node.outputs))
    )


def _turns(product: Node) -> tuple[bool, bool]:
    """Which operands of a product are transposed."""
    op: Any = product.op
    return op.transpose_a, op.transpose_b


def _last(head: Node, chain: _Chain) -> Node | None:
    """The product with the values, if all that leads to it fits; the chain is filled."""
    scores, softened = head.outputs[0], False
    if scores.shape[-2] < FEW:
        return None
    while True:
        node = only_user(scores)
        if node is None or node.is_outside:
            return None
        if softened and _is_product(node):
            break
        made = node.outputs[0].shape
        if node.kind in CUTS:
            if len(made) < 2 or made[-2:] != scores.shape[-2:] or node.inputs[0] is not scores:
                return None
            chain.shapes.append(made)
        elif made != scores.shape or softened:
            return None
        elif node.kind == "SoftMax":
            op: Any = node.op
            softened = op.axis % len(made) == len(made) - 1
            if not softened:
                return None
        elif not _takes(node, scores, chain):
            return None
        chain.between.append(node)
        scores = node.outputs[0]
    if node.inputs[0] is not scores or _turns(node)[0]:
        return None
    return node if scores.shape[:-1] == node.outputs[0].shape[:-1] else None


def _takes(node: Node, scores: Value, chain: _Chain) -> bool:
    """Take a step with scores into the chain: a scale or a mask, if it is that."""
    if any(value.type != np.float32 for value in (scores, *node.outputs)):
        return False
    if getattr(node.op, "auto_broadcast", "") != "numpy":
        return False
    if node.op.is_standard and node.op.xml_type == "Select":
        hidden = _hidden(node, scores)
        chain.masks += hidden
        return bool(hidden)
    if len(node.inputs) != 2:
        return False
    others = [value for value in node.inputs if value is not scores]
    if len(others) != 1 or others[0].type != np.float32:
        return False
    if node.kind == "Add" or (node.kind == "Subtract" and node.inputs[0] is scores):
        sign = 1.0 if node.kind == "Add" else -1.0
        chain.masks.append(_Mask(others[0], scores.shape, sign))
        return True
    factor = _factor(node, others[0])
    if factor is None:
        if chain.masks or not _is_of_heads(node, others[0]):
            return False
        chain.scales.append((others[0], scores.shape))
        return True
    chain.scale *= factor
    for mask in chain.masks:
        mask.factor *= factor
    return True


def _factor(node: Node, other: Value) -> float | None:
    """The number by which a node multiplies scores."""
    if other.constant is None or other.constant.size != 1:
        return None
    number = float(other.constant.reshape(()))
    if node.kind == "Multiply":
        return number
    return 1 / number if node.kind == "Divide" and other is node.inputs[1] and number else None


def _is_of_heads(node: Node, other: Value) -> bool:
    """Whether a node multiplies scores by a known number for each head."""
    return (
        node.kind == "Multiply"
        and other.constant is not None
        and other.shape[-2:] == (1, 1)
        and bool(((np.abs(other.constant) >= SMALL) & (np.abs(other.constant) <= LARGE)).all())
    )


def _hidden(node: Node, scores: Value) -> list[_Mask]:
    """The mask that is as good as a Select that puts a number in the place of scores."""
    condition, *sides = node.inputs
    number = next((value for value in sides if value is not scores), None)
    if scores not in sides or number is None or condition.is_outside or condition is scores:
        return []
    if number.constant is None or number.constant.size != 1 or number.type != np.float32:
        return []
    if not number.constant.reshape(()) <= HIDDEN:
        return []
    word = number.constant.reshape(())
    choices = [None if value is scores else word for value in sides]
    return [_Mask(condition, scores.shape, select=node.op, choices=choices)]


def _common(leads: list[Shape]) -> Shape | None:
    """The leading axes of which those of all shapes are made, each of some neighbours."""
    edges: set[int] = {1}
    for lead in leads:
        edges |= {prod(lead[axis:]) for axis in range(len(lead))}
    found: list[int] = []
    ordered = sorted(edges)
    for below, above in pairwise(ordered):
        if above % below:
            return None
        found.insert(0, above // below)
    # Axes of one element are told apart from none only where all agree on them.
    return leads[0] if all(lead == leads[0] for lead in leads) else tuple(found)


class _Making:
    """Nodes that bring operands and masks to the leading axes of an attention."""

    def __init__(self, reader: Node) -> None:
        self._reader = reader
        self.sides: list[Node] = []

    def spread(self, value: Value, beside: Shape, lead: Shape) -> Value:
        """A value that stands beside scores of a shape as it stands beside their common axes."""
        if lead == beside[:-2]:
            return value
        sizes = (1,) * (len(beside) - len(value.shape)) + value.shape
        left, axes = list(lead), []
        for size, whole in zip(reversed(sizes[:-2]), reversed(beside[:-2]), strict=True):
            reach = 1
            while reach < whole:
                axis = left.pop()
                reach *= axis
                axes.append(1 if size == 1 else axis)
        goal = (*reversed(axes), *sizes[-2:])
        return value if goal == value.shape else self._reshaped(value, goal)

    def turned(self, value: Value) -> Value:
        """A value with its last two axes exchanged: a view, wherever it can be one."""
        order = [*range(len(value.shape))]
        order[-2:] = order[:-3:-1]
        turned = in_order(value, order)
        self.sides.append(transposing(self._reader.layer, value, order, turned))
        return turned

    def sum_of(self, masks: list[_Mask], lead: Shape) -> Value | None:
        """All masks as one; None where there are none."""
        total: Value | None = None
        for mask in masks:
            value = self.spread(mask.value, mask.beside, lead)
            if mask.select is not None:
                before = constant(np.zeros((), np.float32)) if total is None else total
                factor = np.array(mask.factor, np.float32)
                with np.errstate(over="ignore"):  # hidden is hidden
                    sides = [
                        before if word is None else constant(np.multiply(word, factor))
                        for word in mask.choices
                    ]
                total = self.made(mask.select, value, *sides)
                continue
            if mask.factor != 1:
                times = constant(np.full(1, mask.factor, np.float32))
                value = self.made(_binary("Multiply"), value, times)
            total = value if total is None else self.made(_binary("Add"), total, value)
        return total

    def _reshaped(self, value: Value, shape: Shape) -> Value:
        if value.constant is not None:
            return constant(value.constant.reshape(shape))
        made = Value(shape, value.type)
        self.sides.append(reshaping(self._reader.layer, value, made))
        return made

    def made(self, op: Op, *inputs: Value) -> Value:
        """What an operation makes of inputs that broadcast; at once where that is little."""
        made = Value(np.broadcast_shapes(*(x.shape for x in inputs)), np.dtype(np.float32))
        if all(x.constant is not None for x in inputs) and prod(made.shape) <= MOST:
            return constant(op.run(*(x.constant for x in inputs))[0])
        self.sides.append(Node(self._reader.layer, op, inputs, [made]))
        return made


def _binary(kind: str) -> Op:
    return Op.registry[kind, 1].read({"auto_broadcast": "numpy"})
