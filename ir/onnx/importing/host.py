"""What a converter may ask of the importer that calls it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ....layers.base import Op
from ....schemas import Array, ElementType, Shape, Tensor
from ...document import Builder, Layer, Output
from .semantics import Semantics
from .tensors import Store


class Initializer(Output):
    """Numbers of the protobuf, which become a layer when one is fed by them.

    Many are only read: shapes, axes, and what converters lay out in another way.
    """

    __slots__ = ("_made", "_name", "_names", "_type")

    def __init__(
        self,
        builder: Builder,
        array: Array,
        kind: ElementType,
        name: str,
        names: tuple[str, ...] = (),
    ) -> None:
        self.index, self._builder = 0, builder
        self._tensors = [Tensor(kind, Shape(array.shape), array)]
        self._type, self._name, self._names = kind, name, names
        self._made: Layer | None = None

    @property
    def is_constant(self) -> bool:
        """It always is one."""
        return True

    @property
    def layer(self) -> Layer:  # type: ignore[override]  # what feeds others has one, sooner or later
        """Its layer, made when it is first asked for."""
        if self._made is None:
            array = self.tensor.value
            if array is not None and not array.flags.c_contiguous:
                array = array.copy()  # one number stands for all
            made = self.builder.constant(array, self._type, name=self._name)
            self._made = made.named(*self._names).layer
        return self._made

    def named(self, *names: str) -> Output:
        """Give the tensor further names, which it has once it is made."""
        if self._made is not None:
            return super().named(*names)
        self._names += names
        return self


class Scope:
    """The tensors of a graph, body or function by name."""

    def __init__(self, builder: Builder, prefix: str = "", around: Scope | None = None) -> None:
        self.builder = builder
        self.values: dict[str, Output] = {}
        #: Initializers that nothing has read yet.
        self.tensors: dict[str, Any] = {}
        #: The scope whose tensors are seen here, too; a function sees none.
        self.around = around
        #: What a body takes from around it: there, and the Parameter here.
        self.captured: list[tuple[Output, Output]] = []
        self.prefix = prefix


class Host(Protocol):
    """An importer, as its converters see it."""

    store: Store
    semantics: Semantics
    #: Operations that were made so far, by their names and attributes: many are alike.
    operations: dict[tuple[str, str | None], Op]
    #: Bytes by which constants may grow that the model says by a rule, and what was made so.
    room: int
    repeated: dict[tuple[Any, ...], Initializer]

    @property
    def builder(self) -> Builder:
        """What makes layers of the graph that is being converted."""

    def note(self, topic: str, text: str) -> None:
        """Keep a remark about the node that is being converted."""

    def body(self, graph: Any) -> AbstractContextManager[Scope]:
        """Make the graph of a body; its tensors are known inside only."""

    def walk(self, graph: Any) -> None:
        """Convert all nodes of a body."""

    def lookup(self, name: str) -> Output | None:
        """The tensor of a name, from around the graph where it is not inside."""

    def inline(self, graph: Any, name: str, given: Sequence[Output] = ()) -> list[Output | None]:
        """Convert the nodes of a body as if they stood around it, of some inputs; its outputs."""
