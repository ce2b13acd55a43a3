"""One ONNX node while it is turned into layers, and the table of all that can be.

A converter is a function from a node to its outputs::

    @converts("Relu")
    def relu(node: Node) -> Output:
        return node.add("ReLU-1", node[0])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....layers.base import Op
from ....schemas import Array, Dim, ElementType, IRError, Shape, UnsupportedError
from ...document import Output
from .host import Host, Initializer
from .versions import Signature

#: Constants of one number of more elements take room, of which each may take a part.
_SMALL, _SHARE = 1 << 10, 1 << 4
#: What a converter gives: its one output, or all; None for those it does not make.
Made: TypeAlias = "Output | Sequence[Output | None]"
Function: TypeAlias = "Callable[[Node], Made]"
#: A size of a shape: a number, or a tensor of one element that holds it.
Number: TypeAlias = "int | Output"


class Converter(NamedTuple):
    """A function that converts an operator, for a range of its versions."""

    operator: str
    since: int
    until: int | None
    function: Function
    becomes: str


#: By domain and operator.
TABLE: dict[tuple[str, str], list[Converter]] = {}


def converts(
    *operators: str, since: int = 1, until: int | None = None, domain: str = ""
) -> Callable[[Function], Function]:
    """Declare a converter of operators, for nodes of the opsets ``since`` to ``until``."""

    def declare(function: Function) -> Function:
        text = (function.__doc__ or "").partition("\n")[0]
        for operator in operators:
            row = Converter(operator, since, until, function, text)
            TABLE.setdefault((domain, operator), []).append(row)
        return function

    return declare


def find(operator: str, version: int, domain: str = "") -> Converter | None:
    """The converter for a version of an operator."""
    for row in TABLE.get((domain, operator), ()):
        if row.since <= version and (row.until is None or version <= row.until):
            return row
    return None


class Node:
    """An ONNX node: what it reads, its attributes, and the means to make layers of it."""

    def __init__(
        self,
        importer: Host,
        signature: Signature,
        name: str,
        inputs: Sequence[Output | None],
        outputs: Sequence[str],
        attributes: Mapping[str, Any],
        opset: int,
    ) -> None:
        self.importer = importer
        self.kind = signature.name
        self.version = signature.since
        self.opset = opset
        self.name = name
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self._defaults = signature.attributes
        self._attributes = attributes

    # What it reads.

    def __getitem__(self, index: int) -> Output:
        """An input that must be there."""
        found = self.get(index)
        if found is None:
            raise IRError(f"input {index} is missing")
        return found

    def get(self, index: int) -> Output | None:
        """An input, None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def wants(self, index: int) -> bool:
        """Whether anything may read an output."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def value(self, index: int) -> Array | None:
        """The value of an input, None where it is left out or not known."""
        found = self.get(index)
        return None if found is None else found.tensor.value

    def known(self, index: int, what: str) -> Array:
        """The value of an input that must be constant, as IR has an attribute for it."""
        value = self[index].tensor.value
        if value is None:
            raise UnsupportedError(f"{what} (input {index}) is not constant")
        return value

    def single(self, index: int, what: str) -> Any:
        """The one number of an input, None where it is left out or not known."""
        value = self.value(index)
        if value is None:
            return None
        if value.size != 1:
            raise IRError(f"{what} has {value.size} elements, one is needed")
        return value.reshape(()).item()

    def rank(self, index: int = 0) -> int:
        """The rank of an input, which must be known."""
        rank = self[index].tensor.rank
        if rank is None:
            raise UnsupportedError(f"the rank of input {index} is not known")
        return rank

    # Attributes.

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value, else its default in this version, else ``default``."""
        value = self._attributes.get(name)
        if value is None:
            value = self._defaults.get(name)
        return default if value is None else value

    def gives(self, name: str) -> bool:
        """Whether the node states the attribute."""
        return self._attributes.get(name) is not None

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number."""
        return int(self.attribute(name, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """A number that means yes or no."""
        return bool(self.attribute(name, default))

    def real(self, name: str, default: float = 0.0) -> float:
        """A number."""
        # An attribute is a float32; as text it is to read as it was written.
        value = self.attribute(name, default)
        return float(str(np.float32(value)))

    def text(self, name: str, default: str = "") -> str:
        """A word."""
        return str(self.attribute(name, default))

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Whole numbers."""
        return [int(value) for value in self.attribute(name, default)]

    def axis(self, default: int, rank: int | None = None) -> int:
        """The attribute ``axis``, counted from the front."""
        return normal(self.integer("axis", default), self.rank() if rank is None else rank)

    # Layers.

    def add(self, spec: str, *inputs: Output, **attributes: Any) -> Output:
        """A layer of an operation named as its specification, such as ``MaxPool-8``."""
        known = self.importer.operations
        key = spec, _spelled(attributes)
        op = known.get(key)
        if op is None:
            kind, _, number = spec.partition("-")
            found = Op.registry.get((kind, int(number)))
            if found is None:
                raise UnsupportedError(f"it needs {spec}, which is not among the operations")
            op = found.model_validate(attributes)
            if key[1] is not None:
                known[key] = op
        return self.importer.builder.add(op, None, inputs, name=f"{self.name}/{op.xml_type}")

    def constant(self, value: Any, kind: ElementType | None = None) -> Output:
        """A constant."""
        return self.importer.builder.constant(value, kind, name=f"{self.name}/Constant")

    def later(self, value: Array, kind: ElementType) -> Output:
        """A constant that becomes a layer when one is fed by it."""
        return Initializer(self.importer.builder, value, kind, self.name)

    def repeated(self, value: Array, kind: ElementType, shape: tuple[int, ...]) -> Output | None:
        """A constant of one number, each made once; None where it is large, and no room for it."""
        host = self.importer
        key = id(host.builder), kind, shape, value.tobytes()
        made = host.repeated.get(key)
        if made is None:
            size = prod(shape)
            grown = 0 if size <= _SMALL else kind.nbytes(size)
            if grown > host.room // _SHARE:
                return None
            host.room -= grown
            array = np.broadcast_to(value, shape)
            made = Initializer(host.builder, array, kind, self.name)
            host.repeated[key] = made
        return made

    def ints64(self, values: int | Sequence[int]) -> Output:
        """A constant of sizes or axes."""
        return self.constant(np.array(values, np.int64))

    def like(self, value: Any, other: Output) -> Output:
        """A constant of the same element type as a tensor."""
        kind = other.tensor.type
        if kind.is_dynamic:
            return self.add("ConvertLike-1", self.constant(np.float32(value)), other)
        with np.errstate(all="ignore"):  # what the type does not hold becomes what it becomes
            return self.constant(np.asarray(value).astype(kind.dtype), kind)

    def convert(self, x: Output, kind: ElementType | str) -> Output:
        """The same values in another type."""
        wanted = ElementType.parse(kind)
        if x.tensor.type == wanted:
            return x
        return self.add("Convert-1", x, destination_type=wanted)

    def reshape(self, x: Output, shape: Sequence[int] | Output) -> Output:
        """The same elements in another shape; 0 is a size of none."""
        if isinstance(shape, Output):
            return self.add("Reshape-1", x, shape, special_zero=False)
        if x.is_constant and x.tensor.value is not None and -1 not in shape:
            value = x.tensor.value
            if value.size != prod(shape):
                raise IRError(
                    f'"{x.layer.name}" has {value.size} elements, the shape {list(shape)} takes '
                    f"{prod(shape)}"
                )
            return self.constant(value.reshape(shape), x.tensor.type)
        return self.add("Reshape-1", x, self.ints64(list(shape)), special_zero=False)

    def unsqueeze(self, x: Output, axes: Sequence[int]) -> Output:
        """New axes of size 1."""
        return self.add("Unsqueeze-1", x, self.ints64(list(axes))) if axes else x

    def squeeze(self, x: Output, axes: Sequence[int]) -> Output:
        """Without axes of size 1."""
        return self.add("Squeeze-1", x, self.ints64(list(axes))) if axes else x

    def transpose(self, x: Output, order: Sequence[int]) -> Output:
        """The axes in another order."""
        if list(order) == list(range(len(order))):
            return x
        return self.add("Transpose-1", x, self.ints64(list(order)))

    def shape(self, x: Output) -> Output:
        """The shape of a tensor, as a tensor."""
        return self.add("ShapeOf-3", x, output_type="i64")

    def cut(self, x: Output, start: Number, stop: Number, axis: int, step: int = 1) -> Output:
        """A slice along one axis."""
        return self.add(
            "Slice-8", x, self.vector([start]), self.vector([stop]), self.ints64([step]),
            self.ints64([axis]),
        )  # fmt: skip

    # Sizes, which are numbers where they are known.

    def size(self, x: Output, axis: int) -> Number:
        """The size of an axis."""
        shape = x.tensor.shape
        if shape.rank is not None:
            size = shape.sizes[normal(axis, shape.rank)] if shape.rank else None
            if size is None:
                raise IRError("the input has no axes")
            if not isinstance(size, Dim):
                return int(size)
        return self.add("Gather-8", self.shape(x), self.ints64([axis]), self.ints64(0))

    def calculate(self, spec: str, a: Number, b: Number) -> Number:
        """Arithmetic on sizes."""
        if not isinstance(a, Output) and not isinstance(b, Output):
            return _PLAIN[spec](a, b)
        return self.add(spec, self.vector([a]), self.vector([b]))

    def vector(self, numbers: Sequence[Number]) -> Output:
        """Sizes as one tensor."""
        if all(not isinstance(one, Output) for one in numbers):
            return self.ints64([one for one in numbers if not isinstance(one, Output)])
        parts = [
            one if isinstance(one, Output) else self.ints64([one]) for one in numbers
        ]  # fmt: skip
        return parts[0] if len(parts) == 1 else self.add("Concat-1", *parts, axis=0)

    def counted(self, stop: Number) -> Output:
        """0, 1, 2 ... before a number."""
        last = self.squeeze(stop, [0]) if isinstance(stop, Output) else self.ints64(stop)
        return self.add("Range-4", self.ints64(0), last, self.ints64(1), output_type="i64")

    # What to tell.

    def note(self, topic: str, text: str) -> None:
        """Record which of several meanings was chosen, and why."""
        self.importer.note(topic, text)

    @property
    def semantics(self) -> str:
        """The runtime whose results are wanted where runtimes differ."""
        return self.importer.semantics


_PLAIN: dict[str, Callable[[int, int], int]] = {
    "Add-1": lambda a, b: a + b,
    "Subtract-1": lambda a, b: a - b,
    "Multiply-1": lambda a, b: a * b,
    "Divide-1": lambda a, b: a // b,
    "Maximum-1": max,
    "Minimum-1": min,
}


def _spelled(attributes: Mapping[str, Any]) -> str | None:
    """Attributes as text that tells them from others; None of values that are not plain."""
    for value in attributes.values():
        for one in value if type(value) in (list, tuple) else (value,):
            if type(one) not in _TOLD:
                return None
    return repr(attributes)


#: Types of which a value is told from others by how Python shows it.
_TOLD = frozenset({bool, int, float, str, ElementType})


def block_within(block: int, size: int) -> int:
    """How many share a scale: of one block that is longer than its axis, those that are there."""
    return min(block, max(size, 1))


def normal(axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise IRError(f"axis {axis} is beyond the {rank} axes")
    return axis % rank if rank else 0


def static(shape: Shape, what: str) -> tuple[int, ...]:
    """A shape that must be known."""
    if not shape.is_static:
        raise UnsupportedError(f"the shape of {what} is {shape}, it must be known")
    return shape.static
