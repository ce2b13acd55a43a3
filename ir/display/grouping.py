"""A model's layers gathered by the modules that their names put them in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..document import Graph, Layer, Model
from .costs import macs
from .pictures.scopes import Scope, scope_of
from .quantized import graphs
from .sizes import constant_bytes, elements

#: Layers that a constant is followed through to the one that says where it belongs.
_HOPS = 8


@dataclass
class Module:
    """A module: what is in it and in those within it, counted."""

    name: str
    layers: int = 0
    parameters: int = 0
    bytes: int = 0
    macs: float = 0.0
    inner: dict[str, Module] = field(default_factory=dict)

    def rows(self, deepest: int | None, sort: str | None = None) -> Iterator[tuple[int, Module]]:
        """Modules below this one with their depths, each before those within it."""
        open_ = [(0, one) for one in reversed(self._sorted(sort))]
        while open_:
            depth, module = open_.pop()
            yield depth, module
            if deepest is None or depth + 1 < deepest:
                open_ += [(depth + 1, one) for one in reversed(module._sorted(sort))]

    def _sorted(self, sort: str | None) -> list[Module]:
        found = list(self.inner.values())
        if sort == "name":
            found.sort(key=lambda module: module.name)
        elif sort is not None:
            key = "layers" if sort == "count" else sort
            found.sort(key=lambda module: -getattr(module, key))
        return found

    def to_json(self, deepest: int | None, sort: str | None = None) -> dict[str, Any]:
        """The module as plain values."""
        made: dict[str, Any] = {
            "name": self.name,
            "layers": self.layers,
            "parameters": self.parameters,
            "bytes": self.bytes,
            "macs": int(self.macs),
        }
        if deepest is None or deepest > 0:
            below = None if deepest is None else deepest - 1
            made["modules"] = [one.to_json(below, sort) for one in self._sorted(sort)]
        else:
            made["modules"] = []
        return made


def modules(model: Model) -> Module:
    """The modules of a model; constants belong to the module that reads them."""
    root = Module(model.name)
    for graph in graphs(model):
        for layer in graph.layers:
            path = [root]
            for word in _scope(graph, layer):
                path.append(path[-1].inner.setdefault(word, Module(word)))
            count = elements(layer) if layer.is_constant else 0
            size = constant_bytes(layer, count) if layer.is_constant else 0
            for module in path:
                module.layers += 1
                module.parameters += count
                module.bytes += size
                module.macs += macs(layer) or 0
    return root


def _scope(graph: Graph, layer: Layer) -> Scope:
    """The modules of a layer; of a constant whose name says none, those of its reader."""
    scope = scope_of(layer.name)
    for _ in range(_HOPS if layer.is_constant else 0):
        users = graph.consumers(layer, 0)
        if scope or not users:
            break
        layer = users[0][0]
        scope = scope_of(layer.name)
    return scope


__all__ = ["Module", "modules"]
