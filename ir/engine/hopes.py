"""Hopes: sizes that values may make smaller, taken for what is asked for until they are not.

A mask is cut to what a word may see: from as many places as there were to as many as there are.
That is one row, unless the mask ends before. A plan may as well begin from it: the sizes of all
that follows are known then, and who cuts says when it is otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...layers.base import Kernel
from ...schemas import Array, Dim, Shape, Tensor
from ...schemas.shapes import compatible, limits
from ..document import Graph, Layer
from ..inference import inputs_of
from .plan import Plan, claimed_type

#: What takes some places of an axis.
CUTTING = ("Slice", "StridedSlice")
#: Who asks for more wants all there is: exporters write the largest number that they know.
FAR = 1 << 30


class LoosenedError(Exception):
    """A layer gave another shape than was inferred of it, on which the plan relies."""


class Hopes:
    """The layers of a graph of which something is hoped."""

    def __init__(self) -> None:
        #: Whether something hoped for was not so: then nothing is again.
        self.are_over = False
        self._layers: dict[int, Layer] = {}

    def begin(self) -> None:
        """Forget what was hoped for other shapes."""
        self._layers.clear()

    def of(
        self,
        graph: Graph,
        layer: Layer,
        known: Mapping[int, tuple[Tensor, ...]],
        outputs: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """What a layer gives if it cuts as much as it is asked to."""
        op = layer.op
        if self.are_over or op is None or claimed_type(type(op)) not in CUTTING:
            return outputs
        (made,) = outputs
        if made.rank is None or made.shape.is_static:
            return outputs
        cutting: Any = op
        sizes = list(made.shape)
        for axis, start, stop in cutting.cuts(*inputs_of(graph, layer, known)):
            asked = stop - start
            least, _ = limits(start)
            if isinstance(asked, Dim) or not 0 <= asked < FAR or least is None or least < 0:
                continue
            if isinstance(sizes[axis], Dim) and compatible(asked, sizes[axis]):
                sizes[axis] = asked
        found = Shape(sizes)
        if found == made.shape:
            return outputs
        self._layers[layer.id] = layer
        return (Tensor(made.type, found),)

    def note(self, plan: Plan) -> None:
        """Let those nodes of a plan that something is hoped of lie outside, where it is seen."""
        for node in plan.nodes:
            if self._layers.get(node.layer.id) is node.layer:
                node.is_outside = True
                plan.hoped.add(node)


def watched(kernel: Kernel, shape: Shape) -> Kernel:
    """A kernel that says when what it gives has another shape than this."""
    rank = len(shape)
    known = [(axis, size) for axis, size in enumerate(shape) if not isinstance(size, Dim)]

    def run(*arrays: Array) -> tuple[Array, ...]:
        (found,) = kernel(*arrays)
        if found.ndim != rank or any(found.shape[axis] != size for axis, size in known):
            raise LoosenedError
        return (found,)

    return run


__all__ = ["Hopes", "LoosenedError", "watched"]
