"""What a picture shows of a model: its layers, values and readers as plain rows and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....schemas import IRError
from ...document import Graph, Layer, Model

Ints: TypeAlias = "NDArray[np.int64]"

#: A constant expression of at most so many layers is shown as a chip at the layer that reads it.
LARGEST_CHIP = 12
#: Types whose values come from outside the graph: what follows from them is no constant.
_GIVEN = frozenset({"Parameter", "ReadValue", "Result", "Assign"})


@dataclass
class Body:
    """One graph: the model's own, or a body of a layer."""

    graph: Graph
    #: The number of the layer that it is in, -1 for the model's own, and its tag there.
    owner: int
    tag: str
    #: The numbers of its layers, each after those that feed it.
    order: list[int] = field(default_factory=list)
    #: Its edges as the file has them: layer, output index, layer, input index.
    edges: list[tuple[int, int, int, int]] = field(default_factory=list)


@dataclass
class Sheet:
    """The layers of a model and its bodies, numbered; and the edges between them."""

    layers: list[Layer] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    #: Of each layer, the number of its body.
    body_of: list[int] = field(default_factory=list)
    #: The edges of all bodies.
    edges: list[tuple[int, int, int, int]] = field(default_factory=list)
    #: Of each layer, the layer at whose readers it is shown as a part of a chip; -1: by itself.
    chip: list[int] = field(default_factory=list)
    #: Values in the picture: edges from a shown layer to a shown layer, and the value's number.
    wires: list[tuple[int, int, int]] = field(default_factory=list)
    #: The layer and output index of each value.
    values: list[tuple[int, int]] = field(default_factory=list)
    #: Of a layer, the chips that it reads.
    chips: dict[int, list[int]] = field(default_factory=dict)

    #: What tells layers apart that do the same, by their numbers: how each was changed.
    marks: Mapping[int, str] = field(default_factory=dict)
    #: Layers that are left out.
    hidden: frozenset[int] = frozenset()

    def shown(self, number: int) -> bool:
        """Whether a layer has a box of its own."""
        return self.chip[number] < 0 and number not in self.hidden

    def around_body(self, number: int) -> list[tuple[Layer, str]]:
        """The layers in whose bodies a layer is, and which bodies, from the outermost."""
        found: list[tuple[Layer, str]] = []
        body = self.bodies[self.body_of[number]]
        while body.owner >= 0:
            found.insert(0, (self.layers[body.owner], body.tag))
            body = self.bodies[self.body_of[body.owner]]
        return found

    def around(self, number: int, hops: int) -> frozenset[int]:
        """The layers with boxes at most so many values away, up and down, and what is in them.

        What feeds or reads a layer with bodies is near to it, and to what reads or gives the
        value inside.
        """
        near: dict[int, set[int]] = {}
        for source, target in self._pairs():
            near.setdefault(source, set()).add(target)
            near.setdefault(target, set()).add(source)
        if self.chip[number] >= 0:
            root = self.chip[number]
            found = {reader for reader, chips in self.chips.items() if root in chips}
        else:
            found = {number}
        edge = set(found)
        # The layer itself comes with its bodies.
        for body in self.bodies[1:]:
            if body.owner in found:
                found.update(body.order)
        for _ in range(hops):
            if not edge:
                break
            edge = {each for start in edge for each in near.get(start, ())} - found
            found |= edge
        owners = {self.bodies[self.body_of[each]].owner for each in found} - {-1}
        while owners:
            found |= owners
            owners = {self.bodies[self.body_of[each]].owner for each in owners} - {-1} - found
        # A layer with a body of which nothing was met comes with all of it.
        for body in self.bodies[1:]:
            if body.owner in found and not found.intersection(body.order):
                found.update(body.order)
        return frozenset(each for each in found if self.shown(each))

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """Layers of which one gives a value that the other reads, or that is read inside it."""
        for source, target, _ in self.wires:
            yield source, target
        for source, _, target, _ in self.edges:
            if self.shown(source) and self.shown(target):
                yield source, target

    def part(self, only: frozenset[int]) -> Sheet:
        """The same with some of the boxes alone."""
        every = {number for number in range(len(self.layers)) if self.shown(number)}
        wires = [wire for wire in self.wires if wire[0] in only and wire[1] in only]
        chips = {reader: found for reader, found in self.chips.items() if reader in only}
        return replace(self, hidden=frozenset(every - only), wires=wires, chips=chips)


def read_sheet(model: Model) -> Sheet:
    """Number the layers of a model and its bodies, and find what is shown where."""
    sheet = Sheet()
    _number(sheet, model)
    _find_chips(sheet)
    _find_wires(sheet)
    return sheet


def _number(sheet: Sheet, model: Model) -> None:
    """Give every layer its number, bodies after the graph that holds them."""
    open_: list[tuple[Graph, int, str]] = [(model, -1, "")]
    for graph, owner, tag in open_:
        body = Body(graph, owner, tag)
        number_of: dict[int, int] = {}
        for layer in graph.order(reachable_only=False):
            number_of[layer.id] = len(sheet.layers)
            body.order.append(len(sheet.layers))
            sheet.body_of.append(len(sheet.bodies))
            sheet.layers.append(layer)
        sheet.bodies.append(body)
        body.edges += _edges(graph, number_of)
        sheet.edges += body.edges
        for number in body.order:
            bodies = sheet.layers[number].bodies
            open_.extend((inner, number, tag) for tag, inner in bodies.items())


def _edges(graph: Graph, number_of: dict[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """The edges of a graph by numbers and indices instead of ids."""
    by_id = {layer.id: layer for layer in graph.layers}
    ranks: dict[tuple[int, str], dict[int, int]] = {}

    def rank(number: int, tag: str, port: int) -> int:
        key = (number, tag)
        if key not in ranks:
            ids = by_id[number].port_ids(tag)
            ranks[key] = {each: index for index, each in enumerate(ids)}
        found = ranks[key].get(port)
        if found is None:
            raise IRError(
                f"an edge names {tag} port {port}, {tag} ports are {sorted(ranks[key])}",
                by_id[number].where,
                "vinoir check lists all that is wrong with the file",
            )
        return found

    for source, source_port, target, target_port in graph.edges:
        for end in (source, target):
            if end not in number_of:
                raise IRError(
                    f"an edge names layer {end}, which is not there",
                    hint="vinoir check lists all that is wrong with the file",
                )
        yield (
            number_of[source],
            rank(source, "output", source_port),
            number_of[target],
            rank(target, "input", target_port),
        )


def _is_random(layer: Layer) -> bool:
    """Whether it gives other values each time, whatever it reads."""
    return layer.kind is not None and layer.kind.is_random


def _find_chips(sheet: Sheet) -> None:
    """Find the small constant expressions; each is shown at the layers that read it."""
    count = len(sheet.layers)
    readers: list[list[int]] = [[] for _ in range(count)]
    feeders: list[list[int]] = [[] for _ in range(count)]
    for source, _, target, _ in sheet.edges:
        readers[source].append(target)
        feeders[target].append(source)
    size = [0] * count
    for body in sheet.bodies:
        for number in body.order:
            layer = sheet.layers[number]
            if layer.is_constant and not layer.bodies:
                size[number] = 1
            elif feeders[number] and layer.type not in _GIVEN and not _is_random(layer):
                parts = [size[each] for each in feeders[number]]
                if all(parts) and sum(parts) < LARGEST_CHIP and not layer.bodies:
                    size[number] = 1 + sum(parts)
    sheet.chip = [-1] * count
    for body in sheet.bodies:
        for number in reversed(body.order):
            if not size[number] or not readers[number]:
                continue
            shown = [each for each in readers[number] if sheet.chip[each] < 0]
            if shown:
                sheet.chip[number] = number
                for reader in dict.fromkeys(shown):
                    sheet.chips.setdefault(reader, []).append(number)
            else:
                sheet.chip[number] = sheet.chip[readers[number][0]]
    for chips in sheet.chips.values():
        chips.reverse()


def _find_wires(sheet: Sheet) -> None:
    """Follow the values between shown layers, through the walls of bodies too."""
    inner_targets: dict[tuple[int, int], list[int]] = {}
    inner_sources: dict[tuple[int, int], list[int]] = {}
    for body in sheet.bodies[1:]:
        wiring = sheet.layers[body.owner].port_maps.get(body.tag)
        if wiring is None:
            continue
        numbers = {sheet.layers[number].id: number for number in body.order}
        for entry in wiring.inputs:
            inner = numbers.get(entry.internal_layer_id)
            if inner is not None:
                inner_targets.setdefault((body.owner, entry.external_port_id), []).append(inner)
        handed = [entry for entry in wiring.outputs if entry.external_port_id >= 0]
        handed.sort(key=lambda entry: entry.external_port_id)
        for index, entry in enumerate(handed):
            inner = numbers.get(entry.internal_layer_id)
            if inner is not None:
                inner_sources.setdefault((body.owner, index), []).append(inner)
    value_of: dict[tuple[int, int], int] = {}
    for source, output, target, index in sheet.edges:
        if not sheet.shown(source) or not sheet.shown(target):
            continue
        value = value_of.setdefault((source, output), len(value_of))
        for start in inner_sources.get((source, output), [source]):
            for end in inner_targets.get((target, index), [target]):
                sheet.wires.append((start, end, value))
    # Values in the order of the layers that give them.
    sheet.values = sorted(value_of)
    rank = {value_of[key]: index for index, key in enumerate(sheet.values)}
    sheet.wires = [(start, end, rank[value]) for start, end, value in sheet.wires]


__all__ = ["Body", "Ints", "Sheet", "read_sheet"]
