"""The words of an IR file: element types, shapes, tensors, attribute spellings, errors."""

from .errors import (
    InternalError,
    IRError,
    LimitError,
    MismatchError,
    UnreadableError,
    UnsupportedError,
    UnwritableError,
    UsageError,
    Where,
    placed,
)
from .shapes import ANY, Dim, Shape, Size
from .tensor import Array, Tensor
from .types import ElementType
from .version import VERSION

__all__ = [
    "ANY",
    "Array",
    "Dim",
    "ElementType",
    "IRError",
    "InternalError",
    "LimitError",
    "MismatchError",
    "Shape",
    "Size",
    "Tensor",
    "UnreadableError",
    "UnsupportedError",
    "UnwritableError",
    "UsageError",
    "VERSION",
    "Where",
    "placed",
]
