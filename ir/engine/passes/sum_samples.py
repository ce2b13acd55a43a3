"""Replace `ReduceSum(Concat(GridSample(a), GridSample(b)) * w)` by one node each, and their sum.

Each weights its samples and sums them up where they are gathered: attention at some places of
images of several sizes, whose weights are those of the samples side by side.
"""

from __future__ import annotations

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant, only_user


def sum_samples(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        found = _weighted(node)
        if found is not None:
            replaced[node] = _summed(node, *found)
    if replaced:
        plan.replace(replaced)
        plan.prune()
        plan.sort()


def _weighted(node: Node) -> tuple[list[Node], Value] | None:
    """The samplings that a sum is made of, and the weights of all of them."""
    axes = node.inputs[1].constant if node.kind == "ReduceSum" else None
    if axes is None or axes.ravel().tolist() not in ([-1], [3]):
        return None
    source = node.inputs[0]
    if len(node.outputs[0].shape) != 3:
        return None
    product = _alone(source, node)
    if product is None or product.kind != "Multiply" or len(source.shape) != 4:
        return None
    for value, weights in (product.inputs, product.inputs[::-1]):
        images, _, sums, terms = value.shape if value.shape == source.shape else (0, 0, 0, 0)
        if weights.shape == (images, 1, sums, terms) and weights.type == np.float32:
            found = _samplings(value, product)
            if found is not None:
                return found, weights
    return None


def _samplings(value: Value, reader: Node) -> list[Node] | None:
    """The nodes whose samples lie side by side in a value that has one reader."""
    node = _alone(value, reader)
    if node is None:
        return None
    if node.kind == "GridSample":
        plain = value.type == node.inputs[0].type == node.inputs[1].type == np.float32
        return [node] if plain and node.summed is None else None
    if node.kind == "Concat" and node.op.axis in (3, -1):  # type: ignore[attr-defined]  # Concat has it
        parts = [_samplings(part, node) for part in node.inputs]
    elif node.kind == "Reshape" and len(node.inputs[0].shape) == 5:
        # Stacked, and then side by side.
        stack = _alone(node.inputs[0], node)
        if stack is None or stack.kind != "Concat" or stack.op.axis not in (3, -2):  # type: ignore[attr-defined]  # Concat has it
            return None
        if node.inputs[0].shape[:3] != value.shape[:3]:
            return None
        parts = [_spread(part, stack) for part in stack.inputs]
    else:
        return None
    return None if None in parts else [one for part in parts for one in part or []]


def _spread(value: Value, stack: Node) -> list[Node] | None:
    """The samplings of a part that is stacked on others: it has an axis of one more."""
    node = _alone(value, stack)
    if node is None or node.kind not in ("Unsqueeze", "Reshape"):
        return None
    if value.shape != (*node.inputs[0].shape[:3], 1, *node.inputs[0].shape[3:]):
        return None
    return _samplings(node.inputs[0], node)


def _alone(value: Value, reader: Node) -> Node | None:
    """The node that makes a value for one reader."""
    return value.producer if only_user(value) is reader else None


def _summed(node: Node, samplings: list[Node], weights: Value) -> list[Node]:
    """What takes the place of a sum: the weights of each sampling, and what they add up to."""
    (output,) = node.outputs
    slicing, add = Op.registry["Slice", 8].read({}), Op.registry["Add", 1].read({})
    made: list[Node] = []
    terms: list[Value] = []
    start = 0
    for sampling in samplings:
        stop = start + sampling.outputs[0].shape[3]
        own = weights
        if len(samplings) > 1:
            own = Value((*weights.shape[:3], stop - start), weights.type)
            words = [constant(np.array([n])) for n in (start, stop, 1, 3)]
            made.append(Node(sampling.layer, slicing, [weights, *words], [own]))
        terms.append(Value(output.shape, output.type))
        sampling.set_summed(own)
        sampling.outputs[0].producer = None
        sampling.set_output(terms[-1])
        start = stop
    node.detach()
    if len(terms) == 1:
        samplings[0].set_output(output)
    total = terms[0]
    for term in terms[1:]:
        both = output if term is terms[-1] else Value(output.shape, output.type)
        made.append(Node(node.layer, add, [total, term], [both]))
        total = both
    return made
