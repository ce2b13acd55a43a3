"""What constants that are joined to a target shape tell of it, where another part is unknown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...schemas import Dim, Shape, Tensor
from .graph import Graph
from .layer import Layer


def joined_numbers(
    graph: Graph,
    source: tuple[Layer, int] | None,
    target: Tensor,
    tensor_of: Callable[[Layer, int], Tensor],
) -> Tensor:
    """The target, of which nothing is known, with the sizes that are constants.

    As in OpenVINO, which asks this for Broadcast alone, and where each part is a single number;
    less than none is none.
    """
    if source is None or source[0].type != "Concat" or not target.type.is_integral:
        return target
    parts = [part for part in graph.sources(source[0]) if part is not None]
    if any(tensor_of(*part).shape != Shape([1]) for part in parts):
        return target
    sizes = np.empty(len(parts), object)
    for place, (part, _) in enumerate(parts):
        is_told = part.is_constant and part.has_value and not part.element_type.is_dynamic
        sizes[place] = max(int(part.value[0]), 0) if is_told else Dim()
    return Tensor(target.type, target.shape, parts=sizes)


__all__ = ["joined_numbers"]
