"""Edits of a model itself, one by one: what the short verbs of a model are carried out by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...schemas import ElementType, UsageError
from ..document import Graph, Layer, Model, array_of, write_attributes
from .editing import edit_of
from .orders import Desk, Key, bench_of
from .orders_layers import delete, give_value
from .outcome import Surgery
from .reshaping import settle
from .workbench import Workbench


class Session:
    """Edits of one model, whose ports say what follows from them at the end."""

    def __init__(self, model: Model) -> None:
        self.model, self.report = model, Surgery("edit")
        self._benches: dict[str | Graph | None, Workbench] = {}

    def _desk(self, within: str | Graph | None) -> Desk:
        bench = bench_of(self.model, self._benches, within)
        return Desk(self.model, bench, self.report, Path())

    def apply(self, within: str | Graph | None, entry: Mapping[str, Any]) -> Layer | None:
        """Carry out an entry of a patch file; the layer that it has made."""
        desk = self._desk(within)
        edit_of(entry).apply(desk)
        return desk.made

    def remove(self, within: str | Graph | None, layers: Sequence[Key]) -> None:
        """Take layers out together."""
        desk = self._desk(within)
        delete(desk, [desk.bench.layer(key) for key in layers])

    def set(self, within: str | Graph | None, key: Key, attributes: Mapping[str, Any]) -> None:
        """Give a layer attributes by their names in Python or in the file."""
        desk = self._desk(within)
        layer = desk.bench.layer(key)
        write_attributes(layer, attributes)
        desk.bench.forget_tensors()

    def constant(
        self, within: str | Graph | None, key: Key, value: Any, type: ElementType | str | None
    ) -> None:
        """Give a constant a value, a type, or both."""
        desk = self._desk(within)
        layer = desk.bench.layer(key)
        if not layer.is_constant:
            raise UsageError(f"{layer.type} has no value, only Const has one", layer.where)
        if value is None and type is None:
            raise UsageError("neither a value nor a type is given", layer.where)
        held = layer.element_type if type is None else ElementType.named(type)
        array = array_of(layer.value if value is None else value, held, "the value")
        give_value(desk, layer, array, held)
        desk.bench.forget_tensors()

    def end(self, *, infer: bool) -> None:
        """Let go of what was taken out, and infer anew if all went well."""
        for bench in self._benches.values():
            bench.finish()
        if infer:
            settle(self.model, self.report)


__all__ = ["Session"]
