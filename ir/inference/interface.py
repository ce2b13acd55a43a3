"""IR v10 at a model's edges: which types OpenVINO gives its inputs and outputs.

Files of 2020 and 2021 were made for an interface that knew f32 and i32 only; when OpenVINO
reads one, it converts at the inputs and outputs so that it still looks that way.
"""

from __future__ import annotations

import numpy as np

from ...layers.casting import as_half
from ...schemas import Array, ElementType
from ..document import Graph, output_type


def input_types(graph: Graph, kind: ElementType) -> tuple[ElementType, ...]:
    """The types that an input of ``kind`` may be given as."""
    old = getattr(graph, "version", 11) == 10 and kind is ElementType.F16
    return (kind, ElementType.F32) if old else (kind,)


def output_array(graph: Graph, array: Array, kind: ElementType) -> Array:
    """An output's array as the type that is inferred of it, as which it is handed out."""
    if kind.is_dynamic:
        kind = output_type(graph, ElementType.of(array.dtype))
    if array.dtype == kind.dtype:
        return array
    if kind is ElementType.F16:
        return as_half(array)
    with np.errstate(all="ignore"):  # f64 may hold more than f32
        return array.astype(kind.dtype)


__all__ = ["input_types", "output_array", "output_type"]
