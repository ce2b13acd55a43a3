"""Layers found by name, id, or the name of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ...schemas import UsageError
from ...schemas.printing import meant
from .layer import Layer


class Named:
    """What has layers that are asked for by name; indices are made when they are needed."""

    _layers: list[Layer]
    _by_id: dict[int, Layer]
    _names: dict[str, Layer] | None
    _tensor_names: dict[str, tuple[Layer, int]] | None

    def __getitem__(self, key: str | int) -> Layer:
        return self.layer(key)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, int):
            return key in self._by_id
        if isinstance(key, str):
            return self._named(key) is not None
        return isinstance(key, Layer) and self.holds(key)

    def _by_name(self) -> dict[str, Layer]:
        """The first layer of each name."""
        if self._names is None:
            self._names = {layer.name: layer for layer in reversed(self._layers)}
        return self._names

    def holds(self, layer: Layer) -> bool:
        """Whether a layer is one of its own."""
        return self._by_id.get(layer.id) is layer or any(one is layer for one in self._layers)

    def layer(self, key: str | int) -> Layer:
        """The layer of this name, id, or name of one of its outputs."""
        if isinstance(key, int):
            if key in self._by_id:
                return self._by_id[key]
            raise UsageError(f"no layer has the id {key}")
        if not isinstance(key, str):
            raise UsageError(f"a layer has a name or an id, not {type(key).__name__}")
        found = self._named(key)
        if found is not None:
            return found
        words = (name for one in self._layers for name in (one.name, *sum(one.tensor_names(), ())))
        hint = self.told_of_bodies(key) or meant(key, words, 3)
        raise UsageError(f'no layer or tensor is named "{key}"', hint=hint)

    def _named(self, key: str) -> Layer | None:
        """The layer of this name, name of an output as runs hand it out, or id as text."""
        found = self._by_name().get(key)
        if found is not None:
            return found
        place = self._tensor(key) or self.placed(key)
        if place is not None and place[1] < len(place[0].outputs):
            return place[0]
        return self._by_id.get(int(key)) if _is_number(key) else None

    def told_of_bodies(self, name: str) -> str | None:
        """In which body a layer of this name is: those are not found by name alone."""
        inside: list[tuple[str, Sequence[Layer]]] = [("", self._layers)]
        for path, layers in inside:
            if path and any(layer.name == name for layer in layers):
                return f'it is in the body "{path[:-1]}"'
            for owner in layers:
                single = len(owner.bodies) == 1
                for tag, body in owner.bodies.items():
                    own = owner.name if single else f"{owner.name}/{tag}"
                    inside.append((f"{path}{own}/", body.layers))
        return None

    def is_name(self, text: str) -> bool:
        """Whether a layer or a tensor has just this name."""
        return text in self._by_name() or self._tensor(text) is not None

    def output(self, name: str) -> tuple[Layer, int]:
        """The output whose tensor has this name."""
        found = self._tensor(name)
        if found is None:
            raise UsageError(f'no tensor is named "{name}"')
        return found

    def _tensor(self, name: str) -> tuple[Layer, int] | None:
        """The output of that name, by an index that is made anew where it was wrong."""
        index = self._tensor_names
        if index is not None:
            found = index.get(name) or self._renamed(name)
            if found is None:
                return None
            layer, place = index[name] = found
            ports = layer.outputs
            if place < len(ports) and name in ports[place].names:
                return found
        self._tensor_names = {
            known: (layer, place)
            for layer in reversed(self._layers)
            for place, names in reversed(list(enumerate(layer.tensor_names())))
            for known in names
        }
        return self._tensor_names.get(name)

    def _renamed(self, name: str) -> tuple[Layer, int] | None:
        """An output that was given that name: ports that nobody has read are as the file says."""
        for layer in self._layers:
            for place, names in enumerate(layer.tensor_names(unread=False)):
                if name in names:
                    return layer, place
        return None

    def placed(self, text: str) -> tuple[Layer, int] | None:
        """What ``NAME:INDEX`` means, and ``NAME#ID`` where names are not clear; None: neither."""
        head, sign, number = text.rpartition("#")
        layer = self._by_id.get(int(number)) if sign and _is_number(number) else None
        if layer is not None and head == layer.name:
            return layer, 0
        name, sign, index = (head if layer is not None else text).rpartition(":")
        if not sign or not _is_number(index):
            return None
        if layer is None:
            layer = self._by_name().get(name)
        return None if layer is None or layer.name != name else (layer, int(index))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
