"""The attributes of a layer by name and by Python value, over the text that a file holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ...schemas import IRError, UsageError
from ...schemas.attributes import Spelling, spelled
from ...schemas.printing import meant

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from ...layers.base import Op

_TOGETHER = "attributes that go together are set together: model.edit.set(layer, a=..., b=...)"
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


def _write_attribute(layer: Layer, name: str, value: Any) -> None:
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
                # One number is no list, though its text in a file may well be one.
                _read_by(layer.kind.model_fields[in_python], in_file, value)
                data[in_file] = spelled(value)
            made = layer.kind.read(data)
    except UsageError:
        raise
    except ValueError as error:
        message = getattr(error, "message", str(error))
        hint = getattr(error, "hint", None) or _allowed(layer.kind, in_file, message)
        raise UsageError(message, getattr(error, "where", None), hint) from None
    text = None if value is None else made.attributes().get(in_file)
    if text is None:
        layer.data.pop(in_file, None)
    else:
        layer.data[in_file] = text


def _read_by(field: FieldInfo, name: str, value: Any) -> None:
    """Refuse a value that is not of an attribute's kind."""
    rule = next((rule for rule in field.metadata if isinstance(rule, Spelling)), None)
    try:
        if rule is not None and rule.read is not None:
            rule.read(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def write_attributes(layer: Layer, values: Mapping[str, Any]) -> None:
    """Give a layer attributes, all or none: with what they are together it can take inputs."""
    before = dict(layer.data)
    try:
        for name, value in values.items():
            _write_attribute(layer, name, value)
        if layer.kind is not None:
            with layer.at("data"):
                _check(layer.op, values)
    except UsageError:
        layer.data = before
        raise


def _check(op: Op, values: Mapping[str, Any]) -> None:
    """Refuse what was given; not what was wrong before, or waits for the next attribute."""
    names = op.names()
    try:
        op.check_attributes()
    except IRError as error:
        # Such a sentence begins with the attribute that it is about, and goes on with another.
        about = {part.partition(" ")[0] for part in error.message.split(", ")}
        if about & {names.get(name) for name in values}:
            raise UsageError(error.message, hint=error.hint or _TOGETHER) from None


def write_op(layer: Layer, op: Op) -> None:
    """Make a layer an operation; what stays as it was is spelt as it was."""
    if not hasattr(op, "xml_type"):
        raise UsageError(
            f"an operation is wanted, not {type(op).__name__}",
            layer.where,
            "write layer.op.with_(...), or one of vinoir.layers",
        )
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


def _allowed(kind: type[Op], name: str, message: str) -> str | None:
    """What an attribute may be, as far as the message does not tell it."""
    for row in kind.describe():
        if row.name == name:
            choices = ", ".join(row.choices or ())
            if choices and choices in message:
                return None
            return f"{name} is one of {choices}" if choices else f"{name} is {row.kind}"
    return None


__all__ = [
    "Attributes", "UnknownAttributeError", "read_attribute", "unknown_attribute",
    "write_attributes", "write_op",
]  # fmt: skip
