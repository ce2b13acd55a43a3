"""Replace `Reshape(Transpose(Reshape(Transpose(x))))` and longer rows by three of them: one copy.

Where images are cut into patches, and put together again, several such follow each other, and
each reshape of what a transpose has moved copies it. All of them together only cut axes, reorder
the pieces and join them: what is cut and reordered is a view, and what joins copies once.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import NamedTuple

from ..plan import Node, Plan, Value, in_order, only_moves, only_user, reshaping, transposing

#: What multiplies matrices turned or not: what turns them last is a view, and stays one.
MULTIPLYING = ("MatMul", "ScaledDotProductAttention")


class _Pieces:
    """The axes of a value as pieces of those of the first one, in their new order."""

    def __init__(self, sizes: list[int], first: list[int], axes: list[list[int]]) -> None:
        self.sizes = sizes
        #: The pieces in the order of the first value, and those of each axis now.
        self.first, self.axes = first, axes

    @property
    def order(self) -> list[int]:
        """The pieces as they follow each other now."""
        return [piece for axis in self.axes for piece in axis]

    def reorder(self, axes: list[int]) -> None:
        """Transpose."""
        self.axes = [self.axes[axis] for axis in axes]

    def cut(self, shape: tuple[int, ...]) -> _Pieces | None:
        """What a reshape makes of them; None where an axis is made of uneven parts."""
        found = _Pieces([*self.sizes], [*self.first], [])
        rest = [piece for piece in self.order[::-1] if self.sizes[piece] != 1]
        for size in shape:
            axis: list[int] = []
            while size > 1:
                piece = rest.pop()
                if found.sizes[piece] > size and found.sizes[piece] % size == 0:
                    rest.append(found.split(piece, size))
                if size % found.sizes[piece]:
                    return None
                size //= found.sizes[piece]
                axis.append(piece)
            found.axes.append(axis)
        return found

    def split(self, piece: int, size: int) -> int:
        """Cut a piece into so many and others that follow, which are new."""
        self.sizes.append(self.sizes[piece] // size)
        self.sizes[piece] = size
        self.first.insert(self.first.index(piece) + 1, len(self.sizes) - 1)
        return len(self.sizes) - 1

    def joins_what_lies_apart(self) -> bool:
        """Whether an axis is made of pieces that do not follow each other in the first value."""
        known = [piece for piece in self.first if self.sizes[piece] != 1]
        places = {piece: place for place, piece in enumerate(known)}
        return any(
            places[after] != places[before] + 1
            for axis in self.axes
            for before, after in pairwise(axis)
        )


class _Move(NamedTuple):
    """Reshapes and transposes in a row, and what they do together."""

    nodes: list[Node]
    pieces: _Pieces
    #: Whether one of them reorders what another had to copy.
    copies_again: bool


def join_moves(plan: Plan) -> None:
    """Apply the pass."""
    replaced: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in plan.nodes:
        if node in seen or not _is_move(node):
            continue
        row = _row(node)
        seen.update(row)
        while row and row[-1].kind == "Transpose" and _is_multiplied(row[-1].outputs[0]):
            row.pop()
        begin = 0
        while begin < len(row):
            found = _first(row, begin)
            begin += max(len(found.nodes), 1)
            if found.copies_again:
                replaced |= {former: [] for former in found.nodes}
                replaced[found.nodes[-1]] = _joined(found)
    plan.replace(replaced)


def _is_move(node: Node) -> bool:
    """Whether a node only cuts, joins or reorders axes that are known, and there are numbers."""
    some = prod(node.outputs[0].shape) > 0
    return only_moves(node) and some and node.inputs[0].constant is None


def _row(node: Node) -> list[Node]:
    """All such nodes from one on, of which each is the only one to read the one before."""
    found = [node]
    while True:
        after = only_user(found[-1].outputs[0])
        if after is None or not _is_move(after) or after.inputs[0] is not found[-1].outputs[0]:
            return found
        found.append(after)


def _is_multiplied(value: Value) -> bool:
    """Whether a value is read, by nothing but products of matrices."""
    users = value.users
    return not value.is_output and bool(users) and all(user.kind in MULTIPLYING for user in users)


def _first(nodes: list[Node], begin: int) -> _Move:
    """As many nodes, from one on, as only move pieces of axes."""
    sizes = list(nodes[begin].inputs[0].shape)
    axes = range(len(sizes))
    pieces = _Pieces(sizes, list(axes), [[axis] for axis in axes])
    copies = again = False
    for place in range(begin, len(nodes)):
        node = nodes[place]
        shape = node.outputs[0].shape
        if node.kind == "Transpose":
            told = node.inputs[1].constant
            assert told is not None
            order = [int(axis) % len(shape) for axis in told.ravel()]
            pieces.reorder(order or list(range(len(shape)))[::-1])
            again |= copies
        else:
            cut = pieces.cut(shape)
            if cut is None:
                return _Move(nodes[begin:place], pieces, again)
            pieces = cut
            copies |= pieces.joins_what_lies_apart()
    return _Move(nodes[begin:], pieces, again)


def _joined(move: _Move) -> list[Node]:
    """What cuts, what reorders and what joins."""
    first, last = move.nodes[0], move.nodes[-1]
    source, output, pieces = first.inputs[0], last.outputs[0], move.pieces
    known = [piece for piece in pieces.first if pieces.sizes[piece] != 1]
    order = [known.index(piece) for piece in pieces.order]
    sizes = [pieces.sizes[piece] for piece in known]
    for node in move.nodes:
        node.detach()
    cut = Value(tuple(sizes), source.type, element=source.element)
    turned = in_order(cut, order)
    return [
        reshaping(last.layer, source, cut),
        transposing(last.layer, cut, order, turned),
        reshaping(last.layer, turned, output),
    ]
