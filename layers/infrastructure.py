"""The ends of a graph: inputs, constants, outputs.

Specification pages: Parameter-1, Constant-1, Result-1.
"""

from __future__ import annotations

from ..schemas import Array, Shape, Tensor
from ..schemas.attributes import Int, Ints, PartialShape, Type
from .base import Op


class ParameterV1(Op):
    """An input of the model."""

    until = 17

    shape: PartialShape
    element_type: Type

    def infer(self) -> tuple[Tensor, ...]:
        return (Tensor(self.element_type, self.shape),)


class ConstV1(Op):
    """A constant; its value is in the .bin, and is the document's to find."""

    element_type: Type
    shape: Ints
    offset: Int
    size: Int

    def infer(self) -> tuple[Tensor, ...]:
        return (Tensor(self.element_type, Shape(self.shape)),)


class ResultV1(Op):
    """An output of the model: what comes in is what is handed out."""

    carries_sizes = True

    def infer(self, value: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(value.type, value.shape),)

    def run(self, value: Array) -> tuple[Array, ...]:
        return (value,)
