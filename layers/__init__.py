"""The operations: one class per version, found by type and opset.

Their files are imported when one of their operations is first asked for (see ``registry``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .base import Op
from .registry import FILES

if TYPE_CHECKING:
    from . import (
        activation,
        arithmetic,
        arithmetic_functions,
        bitwise,
        comparison,
        condition,
        convolution,
        detection,
        detection_experimental,
        detection_output,
        detection_prior,
        detection_sampling,
        generation,
        image,
        image_color,
        infrastructure,
        logical,
        matrix,
        movement,
        movement_blocks,
        movement_gather,
        movement_slice,
        normalization,
        pooling,
        quantization,
        reduction,
        sequence,
        sequence_recurrent,
        shape,
        signals,
        sort,
        sort_classes,
        sort_nms,
        sparse,
        type,
    )

__all__ = [
    "Op",
    "activation",
    "arithmetic",
    "arithmetic_functions",
    "bitwise",
    "comparison",
    "condition",
    "convolution",
    "detection",
    "detection_experimental",
    "detection_output",
    "detection_prior",
    "detection_sampling",
    "generation",
    "image",
    "image_color",
    "infrastructure",
    "logical",
    "matrix",
    "movement",
    "movement_blocks",
    "movement_gather",
    "movement_slice",
    "normalization",
    "pooling",
    "quantization",
    "reduction",
    "sequence",
    "sequence_recurrent",
    "shape",
    "signals",
    "sort",
    "sort_classes",
    "sort_nms",
    "sparse",
    "type",
]


def __getattr__(name: str) -> Any:
    if name not in FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f".{name}", __name__)
