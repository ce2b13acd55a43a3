"""How much memory the values of a run need while each of its steps is carried out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from ..document import Layer
from ..engine import Node


def held_by_nodes(nodes: Sequence[Node]) -> list[int]:
    """Bytes of the values of a plan that are needed in each step; constants are not counted."""
    spans: dict[int, list[int]] = {}
    for step, node in enumerate(nodes):
        for value in (*node.reads, *node.outputs):
            root, lasts = value, value.is_output
            while root.parent is not None:  # it lies in the memory of another
                root = root.parent
                lasts |= root.is_output
            if root.store is None:  # a constant, or an array of its own at each call
                continue
            # What is read before a step has given it was there before the first: an input.
            begin = step if any(value is one for one in node.outputs) else 0
            span = spans.setdefault(id(root), [root.nbytes, begin, step])
            span[2] = len(nodes) - 1 if lasts else max(span[2], step)
    return _over_time(spans.values(), len(nodes))


def held_by_layers(steps: Sequence[tuple[Layer, int]]) -> list[int]:
    """The same of layers one after the other, given the bytes of what each gives."""
    places = {layer.id: place for place, (layer, _) in enumerate(steps)}
    spans = []
    for place, (layer, size) in enumerate(steps):
        graph = layer.graph
        users = [] if graph is None else [user for user, _ in graph.consumers(layer)]
        if any(user.id not in places for user in users):  # a Result hands it out
            spans.append([size, place, len(steps) - 1])
        else:
            spans.append([size, place, max((places[user.id] for user in users), default=place)])
    return _over_time(spans, len(steps))


def _over_time(spans: Iterable[Sequence[int]], count: int) -> list[int]:
    """Sums of sizes that count from a step until another."""
    changes = [0] * (count + 1)
    for size, first, last in spans:
        changes[first] += size
        changes[last + 1] -= size
    return list(accumulate(changes))[:count]


__all__ = ["held_by_layers", "held_by_nodes"]
