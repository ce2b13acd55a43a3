"""What holds a graph together: inputs, constants, outputs, state, loops over a body.

Specification pages: Parameter-1, Constant-1, Result-1, ReadValue-3, -6, Assign-3, -6,
TensorIterator-1, Loop-5. The bodies of loops and the values of variables are the document's:
``ir.subgraphs`` and ``ir.execution`` infer and run them.
"""

from __future__ import annotations

from ..schemas import Array, ElementType, IRError, Shape, Tensor
from ..schemas.attributes import Ints, MaybeInt, MaybeShape, PartialShape, Text, Type
from ..schemas.shapes import limits
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
    # Neither, where it was made in memory and not written yet.
    offset: MaybeInt = None
    size: MaybeInt = None

    def infer(self) -> tuple[Tensor, ...]:
        return (Tensor(self.element_type, Shape(self.shape)),)


class ResultV1(Op):
    """An output of the model: what comes in is what is handed out."""

    output_count = (0, 0)
    carries_sizes = True

    def infer(self, value: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(value.type, value.shape),)

    def run(self, value: Array) -> tuple[Array, ...]:
        return (value,)


class ReadValueV3(Op):
    """The value a variable has kept; before anything was assigned, the initial value."""

    variable_id: Text

    def infer(self, init_value: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(init_value.type, init_value.shape),)


class ReadValueV6(Op):
    """ReadValue-3 with the variable's type and shape; without an initial value it begins at 0."""

    variable_id: Text
    variable_type: Type = ElementType.DYNAMIC
    variable_shape: MaybeShape = None

    def infer(self, init_value: Tensor | None = None) -> tuple[Tensor, ...]:
        shape = self.variable_shape
        if init_value is None:
            return (Tensor(self.variable_type, Shape.UNKNOWN if shape is None else shape),)
        kind = self.variable_type.merge(init_value.type)
        if shape is None:
            return (Tensor(kind, init_value.shape),)
        if shape.rank is None and self.variable_type.is_dynamic:
            # Of a variable of which nothing is said, as optimum writes them.
            return (Tensor(init_value.type, init_value.shape),)
        if not takes(shape, init_value.shape):
            raise IRError(
                f"variable {self.variable_id} has the shape {shape}, "
                f"its initial value may be {init_value.shape}"
            )
        return (Tensor(self.variable_type, shape),)


def takes(wide: Shape, narrow: Shape) -> bool:
    """Whether every shape that ``narrow`` may be is one that ``wide`` may be."""
    if wide.rank is None:
        return True
    if wide.rank != narrow.rank:
        return False
    for room, size in zip(wide, narrow, strict=True):
        (a, b), (c, d) = limits(room), limits(size)
        if (c or 0) < (a or 0) or (b is not None and (d is None or d > b)):
            return False
    return True


#: The opsets whose Assign looks for its ReadValue among what feeds it.
LOOKING_BACK = frozenset({"opset3", "opset4", "opset5"})


class AssignV3(Op):
    """Keeps a value in a variable, for the next inference; the value goes through."""

    variable_id: Text

    def infer(self, new_value: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(new_value.type, new_value.shape),)

    def run(self, new_value: Array) -> tuple[Array, ...]:
        return (new_value,)


class AssignV6(AssignV3):
    """Assign-3, to a variable whose type and shape its ReadValue-6 declares."""


class TensorIteratorV1(Op):
    """Runs its body once for each slice of its inputs."""

    output_count = (1, None)

    def infer(self, first: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        raise IRError("it has no body")


class LoopV5(Op):
    """Runs its body a number of times, or for as long as a condition holds."""

    output_count = (0, None)

    def infer(self, trip_count: Tensor, condition: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        raise IRError("it has no body")
