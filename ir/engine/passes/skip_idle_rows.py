"""Keep `MatMul(x, W) * m` from rows that `m` makes zero: experts that no token was sent to.

`W` is a stack of constant matrices, one for each expert, and `m` has one number for each row. What
lies between, row by row, may be skipped as well. Which rows these are is seen at each call.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..plan import CUTS, Node, Plan, Value, only_user

#: So many values are looked at, at most: experts have a few.
FAR = 64
#: What computes of each number, and the ones at its place, a number that is finite as they are.
_PLAIN = frozenset({
    "Add", "Clamp", "Gelu", "HSwish", "Maximum", "Minimum", "Mish", "Multiply", "ReLU", "Sigmoid",
    "Subtract", "Swish", "Tanh",
})  # fmt: skip


def skip_idle_rows(plan: Plan) -> None:
    """Apply the pass."""
    found = False
    for node in plan.nodes:
        for factor, products in _chances(node):
            if products and not _reads(factor, products):
                for product in products:
                    product.set_wanted(factor)
                found = True
    if found:
        plan.sort()


def _chances(node: Node) -> Iterator[tuple[Value, set[Node]]]:
    """Factors of whole rows, and the products that are multiplied by them."""
    if node.kind == "Multiply" and not node.prologue:
        for rows, factor in (node.inputs, node.inputs[::-1]):
            if _is_of_rows(factor, rows.shape):
                yield factor, _products([rows], rows.shape[:-1])
    if node.kind == "MatMul":
        shape = node.outputs[0].shape
        for place, (op, others) in enumerate(node.epilogue):
            if op.xml_type != "Multiply":
                continue
            for other in others:
                if other is not None and _is_of_rows(other, shape):
                    own = _taken(node, place, shape[:-1])
                    if own is not None:
                        yield other, own[0] | _products(own[1], shape[:-1])


def _is_of_rows(factor: Value, shape: tuple[int, ...]) -> bool:
    """Whether a computed value has one number for each row of stacked matrices."""
    return not factor.is_fixed and len(shape) > 2 and factor.shape == (*shape[:-1], 1)


def _products(pending: list[Value], lead: tuple[int, ...]) -> set[Node]:
    """The products of which only wanted rows of some values are made, and nothing else."""
    found: set[Node] = set()
    for _ in range(FAR):
        if not pending:
            break
        value = pending.pop()
        node = value.producer
        if node is None or only_user(value) is None or value.shape[:-1] != lead or node.prologue:
            continue
        if node.kind in CUTS and not node.epilogue:
            pending.append(node.inputs[0])
        elif node.kind in _PLAIN or node.kind == "MatMul":
            own = _taken(node, len(node.epilogue), lead)
            if own is not None:
                found |= own[0]
                pending += own[1]
    return found


def _taken(node: Node, place: int, lead: tuple[int, ...]) -> tuple[set[Node], list[Value]] | None:
    """Whether a node is such a product, and what it and its first steps take row by row."""
    steps = node.epilogue[:place]
    if any(op.xml_type not in _PLAIN for op, _ in steps):
        return None
    given = [other for _, others in steps for other in others if other is not None]
    if node.kind != "MatMul":
        return set(), [*node.inputs, *given]
    return ({node}, [node.inputs[0], *given]) if _is_stacked(node, lead) else (set(), given)


def _is_stacked(node: Node, lead: tuple[int, ...]) -> bool:
    """Whether rows are multiplied by a constant matrix for each of the leading places."""
    left, right = node.inputs
    turned = bool(node.op.transpose_a)  # type: ignore[attr-defined]  # products have it
    given = right.constant is not None and node.wanted is None and not turned
    return given and right.shape[:-2] == lead[:-1] and left.shape[:-1] == lead


def _reads(value: Value, nodes: set[Node]) -> bool:
    """Whether a value is computed from what one of some nodes gives."""
    seen: set[Node] = set()
    pending = [value]
    while pending:
        node = pending.pop().producer
        if node is None or node in seen:
            continue
        if node in nodes:
            return True
        seen.add(node)
        pending += node.reads
    return False
