"""Repairs that are safe: each is named, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...layers.base import Op
from ...schemas import IRError
from ...schemas.printing import printable, printable_name
from ..checking.rules.attributes import CRASHES, OTHERWISE, REFUSED
from ..document.graph import SINKS, Graph, Layer, Model
from ..inference.shapes import infer
from .reshaping import declare


class Fix(NamedTuple):
    """One repair: the code of the finding it settles, and what was done where."""

    code: str
    message: str
    layer: int | None = None
    name: str | None = None

    def __str__(self) -> str:
        place = "" if self.layer is None else f'layer {self.layer} "{printable_name(self.name)}": '
        return f"{self.code}: {place}{printable(self.message)}"


def fix(model: Model) -> list[Fix]:
    """Repair what can be repaired without guessing; what was done, in order.

    Dead layers are removed, names made unique, defaults written out where OpenVINO crashes,
    refuses or takes another one, and ports made to declare what is inferred.
    """
    done: list[Fix] = []
    for graph in _graphs(model):
        done += _remove_dead(graph)
        done += _rename(graph)
        for layer in graph.layers:
            done += _write_defaults(layer)
    done += _declare(model)
    return done


def _graphs(model: Model) -> list[Graph]:
    found: list[Graph] = [model]
    for layer in model.everywhere():
        found.extend(layer.bodies.values())
    return found


def _remove_dead(graph: Graph) -> Iterable[Fix]:
    """Take out what feeds no output, as OpenVINO does when it reads."""
    if not any(layer.type in SINKS for layer in graph.layers):
        return
    try:
        reached = {id(layer) for layer in graph.order()}
    except IRError:
        return  # the edges are wrong: nothing is certain
    dead = [layer for layer in graph.layers if id(layer) not in reached]
    graph.remove(*dead)
    for layer in dead:
        yield Fix("IR307", f"{layer.type} removed: it feeds no output", layer.id, layer.name)


def _rename(graph: Graph) -> Iterable[Fix]:
    """Give layers of the same name a number each."""
    taken = {layer.name for layer in graph.layers}
    seen: set[str] = set()
    for layer in graph.layers:
        old = layer.name
        if old and old in seen:
            number = 1
            while f"{old}_{number}" in taken:
                number += 1
            layer.name = f"{old}_{number}"
            taken.add(layer.name)
            yield Fix("IR216", f'renamed to "{layer.name}"', layer.id, old)
        seen.add(layer.name)


def _write_defaults(layer: Layer) -> Iterable[Fix]:
    """Write out what the specification lets a file leave out and OpenVINO does not."""
    kind = _kind(layer)
    if kind is None:
        return
    key = kind.xml_type, kind.number
    described = {row.name: row for row in kind.describe()}
    wanted: dict[str, tuple[str, str]] = {}
    for name in CRASHES.get(key, ()):
        if not described[name].required:
            wanted[name] = "IR407", _spread(layer, name)
    for name in REFUSED.get(key, ()):
        default = described[name].default
        if default is not None:
            wanted[name] = "IR408", default
    for name, (specified, _) in OTHERWISE.get(key, {}).items():
        wanted[name] = "IR409", specified
    for name, (code, value) in wanted.items():
        empty = code == "IR407" and not layer.data.get(name, "").strip()
        if name not in layer.data or empty:
            layer.data = {**layer.data, name: value}
            yield Fix(code, f'{name}="{value}" written out', layer.id, layer.name)


def _kind(layer: Layer) -> type[Op] | None:
    from ... import layers  # noqa: F401  # declares the operations

    return Op.find(layer.type, layer.version)


def _spread(layer: Layer, name: str) -> str:
    """The neutral value, once for each spatial axis."""
    axes = len(layer.data["kernel"].split(",")) if layer.data.get("kernel") else 2
    return ", ".join(["0" if name.startswith("pads") else "1"] * axes)


def _declare(model: Model) -> Iterable[Fix]:
    """Make ports declare what is inferred."""
    before = {
        (id(layer), id(port)): (layer, port.precision, port.dims)
        for layer in model.layers
        for port in (*layer.inputs, *layer.outputs)
    }
    try:
        declare(model, infer(model))
    except IRError:
        return  # a layer does not take its inputs: what is declared may be what is right
    for layer in model.layers:
        for port in (*layer.inputs, *layer.outputs):
            _, precision, dims = before[id(layer), id(port)]
            if (port.precision, port.dims) != (precision, dims):
                new = f"{port.precision} {','.join(map(str, port.dims)) or 'without sizes'}"
                old = f"{precision} {','.join(map(str, dims)) or 'without sizes'}"
                yield Fix(
                    "IR606", f"port {port.id} declares {new}, was {old}", layer.id, layer.name
                )


__all__ = ["Fix", "fix"]
