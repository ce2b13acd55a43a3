"""The attributes of a layer by name and by Python value, over the text that a file holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ...schemas import UsageError
from ...schemas.attributes import spelled
from ...schemas.printing import meant

if TYPE_CHECKING:
    from ...layers.base import Op

#: The layer whose attributes they are; this file knows it by what it offers.
Layer: TypeAlias = Any


class UnknownAttributeError(UsageError, AttributeError):
    """A layer has no such attribute."""


class Attributes(dict[str, str]):
    """Attributes as text, by the names in the file; another value is spelt as a file spells it."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        for name, value in self.items():
            if type(value) is not str:
                super().__setitem__(name, _text(name, value))

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value if type(value) is str else _text(name, value))

    def setdefault(self, name: str, value: Any = "") -> str:
        """The text of an attribute, given it where there is none."""
        if name not in self:
            self[name] = value
        return self[name]

    def update(self, *args: Any, **values: Any) -> None:
        """Take over other attributes."""
        super().update(Attributes(*args, **values))

    def __ior__(self, other: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Self:  # type: ignore[override, misc]  # any value
        self.update(other)
        return self


def _text(name: str, value: Any) -> str:
    try:
        return spelled(value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def known(layer: Layer) -> dict[str, str]:
    """The names of a layer's attributes in Python, and those in the file."""
    fields = {} if layer.kind is None else layer.kind.model_fields
    names = {name: field.alias or name for name, field in fields.items()}
    # What a file says beyond what the operation knows is text.
    return names | {name: name for name in layer.data.keys() - set(names.values())}


def read_attribute(layer: Layer, name: str) -> Any:
    """The value of an attribute; its text, where the operation does not know it."""
    if name not in known(layer):
        raise unknown_attribute(layer, name)
    if layer.kind is None or name not in layer.kind.model_fields:
        return layer.data[name]
    return getattr(layer.op, name)


def write_attribute(layer: Layer, name: str, value: Any) -> None:
    """Give a layer an attribute, by its name in Python or in the file; None: as if not said."""
    names = known(layer)
    in_python = name if name in names else next((k for k, v in names.items() if v == name), None)
    if in_python is None:
        raise unknown_attribute(layer, name)
    if layer.kind is None or in_python not in layer.kind.model_fields:
        layer.data[name] = value
        return
    in_file = names[in_python]
    data = dict(layer.data)
    try:
        with layer.at("data"):
            if value is None:
                data.pop(in_file, None)
            else:
                data[in_file] = spelled(value)
            made = layer.kind.read(data)
    except UsageError:
        raise
    except ValueError as error:
        hint = getattr(error, "hint", None) or _allowed(layer.kind, in_file)
        raise UsageError(
            getattr(error, "message", str(error)), getattr(error, "where", None), hint
        ) from None
    text = None if value is None else made.attributes().get(in_file)
    if text is None:
        layer.data.pop(in_file, None)
    else:
        layer.data[in_file] = text


def write_op(layer: Layer, op: Op) -> None:
    """Make a layer an operation; what stays as it was is spelt as it was."""
    before = layer.op if layer.kind is type(op) else None
    old, new = {} if before is None else before.attributes(), op.attributes()
    said: dict[str, str] = {} if before is None else dict(layer.data)
    for name in old.keys() - new.keys():
        said.pop(name, None)
    said |= {name: text for name, text in new.items() if old.get(name) != text}
    if before is None:
        layer.type = op.xml_type
        if layer.kind is not type(op):
            layer.version = op.version()
    layer.data = said


def unknown_attribute(layer: Layer, name: str) -> UnknownAttributeError:
    """The error about a name that is no attribute."""
    names = known(layer)
    listed = f"it has {', '.join(names)}" if names else "it has none"
    return UnknownAttributeError(
        f"{layer.type} has no attribute {name}", layer.where, meant(name, names) or listed
    )


def _allowed(kind: type[Op], name: str) -> str | None:
    for row in kind.describe():
        if row.name == name:
            return f"{name} is one of {', '.join(row.choices)}" if row.choices else (
                f"{name} is {row.kind}"
            )  # fmt: skip
    return None


__all__ = [
    "Attributes", "UnknownAttributeError", "read_attribute", "unknown_attribute",
    "write_attribute", "write_op",
]  # fmt: skip
