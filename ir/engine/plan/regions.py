"""Regions: nodes of unknown shapes that have a plan of their own for what shapes they meet.

How long speech becomes is known when its first half is computed. Convolutions after that would
be done one by one, by definition; as one region they are planned for the length that came, with
layouts, epilogues and helpers as any others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ....schemas import Array, ElementType, Tensor
from .building import STATEFUL, needs_care, value_of
from .constants import Folded
from .folding import fold
from .nodes import Member, Node, Plan, Region, Value
from .operations import CONVOLUTIONS, TRANSPOSED

#: A region has at least so many convolutions, with so many weights: else a plan is not worth it.
CONVOLVING, WEIGHTS = 4, 1 << 20


def region_of(nodes: Sequence[Node]) -> Region:
    """What nodes are for others: that one is put in their place."""
    members = [Member(n.layer, n.op, n.inputs, tuple(n.outputs)) for n in nodes]
    made = {value for member in members for value in member.outputs}
    read = dict.fromkeys(value for member in members for value in member.inputs)
    inside = set(nodes)
    given = [
        value for member in members for value in member.outputs
        if value.is_output or not value.users.keys() <= inside
    ]  # fmt: skip
    taken = [value for value in read if value not in made and not value.is_fixed]
    return Region(members, taken, given)


def plan_region(region: Region, arrays: Iterable[Array]) -> Plan:
    """The plan of a region for inputs of these shapes."""
    values: dict[Value, Value] = {}
    inputs: dict[int, Value] = {}
    for place, (value, array) in enumerate(zip(region.inputs, arrays, strict=True)):
        kind = value.element or ElementType.of(value.type)
        inputs[place] = values[value] = value_of(Tensor(kind, array.shape))
    nodes: list[Node] = []
    folded = Folded()
    for layer, op, taken, given in region.members:
        feeders = [values.setdefault(x, _copy(x)) if x.is_fixed else values[x] for x in taken]
        with layer.at():
            tensors = op.infer_outputs([feeder.tensor for feeder in feeders])
        made = [value_of(tensor) for tensor in tensors]
        if not fold(layer, op, feeders, made, tensors, folded):
            node = Node(layer, op, feeders, made)
            node.is_outside = any(map(needs_care, (*feeders, *made)))
            nodes.append(node)
        values |= zip(given, made, strict=True)
    plan = Plan(nodes, inputs, [values[value] for value in region.outputs])
    plan.prune()
    return plan


def _copy(value: Value) -> Value:
    found = Value(value.shape, value.type, value.constant, value.element)
    found.packed = value.packed
    return found


def cut_regions(plan: Plan) -> None:
    """Put one node in the place of each region of a plan."""
    found = [nodes for nodes in _regions(plan) if _pays(nodes)]
    if not found:
        return
    for nodes in found:
        region, heaviest = region_of(nodes), max(nodes, key=_weights)
        for node in nodes:
            node.detach()
        joined = Node(heaviest.layer, heaviest.op, region.inputs, region.outputs)
        joined.is_outside, joined.region = True, region
        plan.replace({node: [joined] if node is nodes[-1] else [] for node in nodes})
    plan.sort()


def _regions(plan: Plan) -> list[list[Node]]:
    """Nodes that can be computed one after the other, when what others give them is there."""
    found: list[list[Node]] = []
    inside: set[Value] = set()
    #: What others make of what the region gives: it cannot wait for that.
    after: set[Value] = set()
    for node in plan.nodes:
        begins = not all(map(_is_known, (*node.inputs, *node.outputs)))
        fits = _fits(node) and (begins or not inside.isdisjoint(node.inputs))
        if fits and not after.isdisjoint(node.inputs):
            fits = begins
            if fits:
                inside, after = set(), set()
        if fits:
            if not inside:
                found.append([])
            found[-1].append(node)
            inside.update(node.outputs)
        elif not (inside | after).isdisjoint(node.inputs):
            after.update(node.outputs)
    return found


def _fits(node: Node) -> bool:
    """Whether the shapes of what a node takes, and constants, may tell those of what it gives.

    If they do not, though they come to be known, the plan of the region ends there for another.
    """
    if all(map(_is_known, node.inputs)) and not all(map(_is_known, node.outputs)):
        return False
    if node.layer.bodies or node.layer.type in STATEFUL or node.op.is_random or node.op.rows_vary:
        return False
    return not any(value.type.hasobject for value in (*node.inputs, *node.outputs))


def _is_known(value: Value) -> bool:
    """Whether a value has the same shape at each call."""
    return value.is_fixed or value.inferred is None or value.inferred.shape.is_static


def _pays(nodes: Sequence[Node]) -> bool:
    """Whether there is enough to be convolved."""
    weights = [size for node in nodes if (size := _weights(node))]
    return len(weights) >= CONVOLVING and sum(weights) >= WEIGHTS


def _weights(node: Node) -> int:
    """How many weights a convolution has, whose shapes are not known."""
    if not node.is_outside or node.layer.type not in CONVOLUTIONS | TRANSPOSED:
        return 0
    return prod(node.inputs[1].shape) if node.inputs[1].is_fixed else 0


__all__ = ["cut_regions", "plan_region"]
