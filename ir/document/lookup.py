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
        if isinstance(key, (str, int)):
            try:
                self.layer(key)
            except UsageError:
                return False
            return True
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
        """The layer of this name, id, or name of one of its output tensors."""
        if isinstance(key, int):
            if key in self._by_id:
                return self._by_id[key]
            raise UsageError(f"no layer has the id {key}")
        if not isinstance(key, str):
            raise UsageError(f"a layer has a name or an id, not {type(key).__name__}")
        found = self._by_name().get(key)
        if found is None:
            tensor = self._tensor(key)
            found = None if tensor is None else tensor[0]
        if found is None and key.isascii() and key.isdigit() and len(key) < 19:
            found = self._by_id.get(int(key))
        if found is not None:
            return found
        words = (name for one in self._layers for name in (one.name, *sum(one.tensor_names(), ())))
        hint = self.told_of_bodies(key) or meant(key, words, 3)
        raise UsageError(f'no layer or tensor is named "{key}"', hint=hint)

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
        found = None if self._tensor_names is None else self._tensor_names.get(name)
        if found is not None:
            layer, index = found
            ports = layer.outputs
            if index < len(ports) and name in ports[index].names:
                return found
        # Ports do not tell when they are renamed; what is not found is looked for.
        self._tensor_names = {
            known: (layer, index)
            for layer in reversed(self._layers)
            for index, names in reversed(list(enumerate(layer.tensor_names())))
            for known in names
        }
        return self._tensor_names.get(name)

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
