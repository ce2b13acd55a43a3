"""What a converter may ask of the importer that calls it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...document import Builder, Output
from .semantics import Semantics
from .tensors import Store


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

    def inline(self, graph: Any, name: str) -> list[Output | None]:
        """Convert the nodes of a body as if they stood around it; its outputs."""
