"""The ports of a layer, in order and by their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, SupportsIndex, TypeAlias, overload

from ...schemas import UsageError
from ...schemas.printing import meant
from .parts import Port

#: The layer whose ports they are; this file knows it by what it offers.
Layer: TypeAlias = Any


class Ports(list[Port]):
    """The inputs or the outputs of a layer, by index or by name; each knows its layer."""

    __slots__ = ("_layer",)

    def __init__(self, layer: Layer, ports: Iterable[Port] = ()) -> None:
        super().__init__(ports)
        self._layer = layer
        for port in self:
            port.layer = layer

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Port: ...
    @overload
    def __getitem__(self, key: slice) -> list[Port]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Port | list[Port]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for port in self:
            if key in port.names or key == port.name:
                return port
        # As runs and edits name a place: LAYER:INDEX, and #ID where names are not clear.
        bare = key.removesuffix(f"#{self._layer.id}")
        for index, port in enumerate(self):
            if bare in (port.name, f"{self._layer.name}:{index}"):
                return port
        known = [port.name for port in self]
        raise UsageError(
            f'no {self._what} is named "{key}"; there are {", ".join(known) or "none"}',
            self._layer.where,
            meant(key, known),
        )

    @property
    def _what(self) -> str:
        return "input" if self is self._layer.inputs else "output"

    def _taken(self, ports: Iterable[Port]) -> list[Port]:
        taken = list(ports)
        for port in taken:
            port.layer = self._layer
        return taken

    def __setitem__(self, key: Any, value: Any) -> None:
        one = isinstance(value, Port)
        taken = self._taken([value] if one else value)
        super().__setitem__(key, taken[0] if one else taken)

    def __iadd__(self, ports: Iterable[Port]) -> Self:  # type: ignore[override, misc]  # ports alone
        self.extend(ports)
        return self

    def append(self, port: Port) -> None:
        """One more, last."""
        super().append(*self._taken([port]))

    def extend(self, ports: Iterable[Port]) -> None:
        """More, last."""
        super().extend(self._taken(ports))

    def insert(self, index: SupportsIndex, port: Port) -> None:
        """One more, before another."""
        super().insert(index, *self._taken([port]))

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)
