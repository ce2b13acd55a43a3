"""A model's layers gathered by the modules that their names put them in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..document import Model
from .costs import macs, sums_products
from .pictures.scopes import Scope, scopes
from .pictures.sheet import read_sheet
from .sizes import constant_bytes, elements


@dataclass
class Module:
    """A module: what is in it and in those within it, counted."""

    name: str
    layers: int = 0
    parameters: int = 0
    bytes: int = 0
    macs: float = 0.0
    #: Sums of products whose sizes are not known: they are not among the MACs.
    macs_unknown: int = 0
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
            "macs_unknown": self.macs_unknown,
        }
        if deepest is None or deepest > 0:
            below = None if deepest is None else deepest - 1
            made["modules"] = [one.to_json(below, sort) for one in self._sorted(sort)]
        else:
            made["modules"] = []
        return made


def modules(model: Model) -> Module:
    """The modules of a model; constants belong to the module that reads them."""
    sheet = read_sheet(model)
    found: dict[int, Scope] = {}
    for body in sheet.bodies:
        # A body is in the module of the layer that holds it, whether its names say so or not.
        outer = found[body.owner] if body.owner >= 0 else ()
        for number, scope in scopes(sheet, body).items():
            found[number] = scope if scope[: len(outer)] == outer else outer + scope
    reader_of = {chip: reader for reader, chips in sheet.chips.items() for chip in chips}
    root = Module(model.name)
    for number, layer in enumerate(sheet.layers):
        shown = number if sheet.chip[number] < 0 else reader_of.get(sheet.chip[number], -1)
        path = [root]
        for word in found.get(shown, ()):
            path.append(path[-1].inner.setdefault(word, Module(word)))
        count = elements(layer) if layer.is_constant else 0
        size = constant_bytes(layer, count) if layer.is_constant else 0
        work = macs(layer)
        unknown = work is None and sums_products(layer)
        for module in path:
            module.layers += 1
            module.parameters += count
            module.bytes += size
            module.macs += work or 0
            module.macs_unknown += unknown
    return root


__all__ = ["Module", "modules"]
