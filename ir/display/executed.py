"""The primitives of an execution graph, and what each took."""

from __future__ import annotations

from typing import NamedTuple

from ..document import Layer, Model, split_names


class Primitive(NamedTuple):
    """One step of a compiled model."""

    order: int | None
    name: str
    type: str
    #: What OpenVINO calls the code that carries it out.
    primitive: str
    precision: str
    layouts: str
    #: None where it was not executed, or not timed.
    microseconds: int | None
    #: The layers of the model that it stands for.
    layers: list[str]


def primitives(model: Model) -> list[Primitive]:
    """The primitives of an execution graph in the order of execution."""
    rows = [_primitive(layer) for layer in model.layers]
    return sorted(rows, key=lambda row: len(rows) if row.order is None else row.order)


def _primitive(layer: Layer) -> Primitive:
    data = layer.data
    return Primitive(
        _count(data.get("execOrder")),
        layer.name,
        data.get("layerType", layer.type),
        data.get("primitiveType", ""),
        data.get("runtimePrecision", ""),
        data.get("outputLayouts", ""),
        _count(data.get("execTimeMcs")),
        list(split_names(data.get("originalLayersNames", ""))),
    )


def _count(text: str | None) -> int | None:
    """A whole number; None for words such as ``not_executed``."""
    plain = text is not None and text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if plain and text is not None else None
