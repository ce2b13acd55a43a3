"""Records as text, in the form in which OpenVINO writes them: tabs, `` />``, its order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ..document import BODIES, PARTS, Edge, Graph, Info, Layer, Model, Port, PortMap, join_names
from ..text import escape, escape_text, opening

#: Offset and size of each constant whose bytes are not where its ``data`` says.
Placing: TypeAlias = "Mapping[Layer, tuple[int, int]]"

#: An edge as a line.
_EDGE = '<edge from-layer="%s" from-port="%s" to-layer="%s" to-port="%s" />\n'


class Printer:
    """Gathers the lines of a document.

    With ``numbers`` (new ids by layer) ports are numbered anew too, as OpenVINO numbers them.
    ``spell`` is how attributes are escaped.
    """

    def __init__(
        self,
        places: Placing,
        numbers: Mapping[Layer, int] | None = None,
        spell: Callable[[str], str] = escape,
    ) -> None:
        self.lines: list[str] = []
        self.places = places
        self.numbers = numbers
        self.spell = spell

    @property
    def text(self) -> str:
        """All lines so far."""
        return "".join(self.lines)

    def open(self, depth: int, tag: str, attributes: Mapping[str, str] | None = None) -> None:
        """A line with a start tag."""
        self.lines.append("\t" * depth + opening(tag, attributes or {}, self.spell) + ">\n")

    def empty(self, depth: int, tag: str, attributes: Mapping[str, str] | None = None) -> None:
        """A line with an element that holds nothing."""
        self.lines.append("\t" * depth + opening(tag, attributes or {}, self.spell) + " />\n")

    def close(self, depth: int, tag: str) -> None:
        """A line with an end tag."""
        self.lines.append("\t" * depth + f"</{tag}>\n")

    def info(self, info: Info, depth: int) -> None:
        """An ``<rt_info>`` or another tree of metadata."""
        stack: list[tuple[Info | str, int]] = [(info, depth)]
        while stack:
            node, level = stack.pop()
            if isinstance(node, str):
                self.close(level, node)
            elif node.children:
                self.open(level, node.tag, node.attributes)
                stack.append((node.tag, level))
                stack.extend((child, level + 1) for child in reversed(node.children))
            elif node.text:
                start = "\t" * level + opening(node.tag, node.attributes, self.spell)
                text = escape_text(node.text) if self.spell is escape else self.spell(node.text)
                self.lines.append(f"{start}>{text}</{node.tag}>\n")
            else:
                self.empty(level, node.tag, node.attributes)

    def port(self, port: Port, number: int, depth: int) -> None:
        """One port."""
        attributes = {"id": str(number)}
        if port.precision is not None:
            attributes["precision"] = port.precision
        if port.names:
            attributes["names"] = join_names(sorted(port.names))
        attributes |= port.extra
        if not port.dims and port.rt_info is None:
            self.empty(depth, "port", attributes)
            return
        self.open(depth, "port", attributes)
        tabs = "\t" * (depth + 1)
        self.lines += [f"{tabs}<dim>{size}</dim>\n" for size in port.dims]
        if port.rt_info is not None:
            self.info(port.rt_info, depth + 1)
        self.close(depth, "port")

    def ports(self, tag: str, ports: list[Port], first: int, depth: int) -> None:
        """The ports of one side."""
        if not ports:
            return
        self.open(depth, tag)
        for index, port in enumerate(ports):
            self.port(port, port.id if self.numbers is None else first + index, depth + 1)
        self.close(depth, tag)

    def port_map(self, tag: str, entries: PortMap, body: Graph | None, depth: int) -> None:
        """One port map."""
        if not entries.entries:
            self.empty(depth, tag)
            return
        self.open(depth, tag)
        for entry in entries.entries:
            attributes = dict(entry.attributes)
            if self.numbers is not None and body is not None:
                inner = body.layer(entry.internal_layer_id)
                attributes["internal_layer_id"] = str(self.numbers[inner])
            self.empty(depth + 1, entry.kind, attributes)
        self.close(depth, tag)

    def data(self, layer: Layer, depth: int) -> None:
        """The attributes of a layer."""
        data = constant_data(layer, self.places)
        if data:
            self.empty(depth, "data", data)

    def layer_info(self, layer: Layer, depth: int) -> None:
        """The ``<rt_info>`` of a layer."""
        if layer.rt_info is not None:
            self.info(layer.rt_info, depth)

    def port_maps(self, layer: Layer, depth: int) -> None:
        """The port maps of a layer."""
        tags = {tag: body for body, tag in BODIES.items() if body in layer.port_maps}
        for tag in PARTS["port_maps"].tags:
            if tag in tags:
                graph = layer.bodies.get(tags[tag])
                self.port_map(tag, layer.port_maps[tags[tag]], graph, depth)

    def back_edges(self, layer: Layer, depth: int) -> None:
        """The back edges of a loop: what an iteration hands to the next."""
        if not layer.back_edges:
            return
        body = layer.bodies.get("body")
        self.open(depth, "back_edges")
        for ends in layer.back_edges:
            numbers: Iterable[int] = ends
            if self.numbers is not None and body is not None:
                numbers = [self.numbers[body.layer(end)] for end in ends]
            pairs = zip(("from-layer", "to-layer"), map(str, numbers), strict=True)
            self.empty(depth + 1, "edge", dict(pairs))
        self.close(depth, "back_edges")

    def inputs(self, layer: Layer, depth: int) -> None:
        """The input ports of a layer."""
        self.ports("input", layer.inputs, 0, depth)

    def outputs(self, layer: Layer, depth: int) -> None:
        """The output ports of a layer, numbered after its inputs."""
        self.ports("output", layer.outputs, len(layer.inputs), depth)

    def bodies(self, layer: Layer, depth: int) -> None:
        """The graphs inside a layer."""
        for tag in PARTS["bodies"].tags:
            if tag in layer.bodies:
                self.body(tag, layer.bodies[tag], depth)

    def body(self, tag: str, graph: Graph, depth: int) -> None:
        """One graph inside a layer."""
        self.open(depth, tag)
        self.graph(graph, depth + 1)
        self.close(depth, tag)

    def layer(self, layer: Layer, depth: int) -> None:
        """One layer with all that is in it."""
        with layer.at():
            self._layer(layer, depth)

    def _layer(self, layer: Layer, depth: int) -> None:
        number = layer.id if self.numbers is None else self.numbers[layer]
        attributes = layer_attributes(layer) | {"id": str(number)}
        inner = Printer(self.places, self.numbers, self.spell)
        for name in PARTS:
            _PRINTING[name](inner, layer, depth + 1)
        if not inner.lines:
            self.empty(depth, "layer", attributes)
            return
        self.open(depth, "layer", attributes)
        self.lines += inner.lines
        self.close(depth, "layer")

    def graph(self, graph: Graph, depth: int) -> None:
        """Layers, edges and further information of a model or body."""
        layers = list(graph.layers)
        if self.numbers is not None:
            layers.sort(key=self.numbers.__getitem__)
        if layers:
            self.open(depth, "layers")
            for layer in layers:
                self.layer(layer, depth + 1)
            self.close(depth, "layers")
        else:
            self.empty(depth, "layers")
        edges = self.edges(graph)
        if edges:
            self.open(depth, "edges")
            tabs = "\t" * (depth + 1)
            self.lines += [tabs + _EDGE % edge for edge in edges]
            self.close(depth, "edges")
        else:
            self.empty(depth, "edges")
        self.info(graph.rt_info or Info("rt_info"), depth)

    def edges(self, graph: Graph) -> list[Edge]:
        """The edges of a graph in the order of a file."""
        if self.numbers is None:
            return list(graph.edges)
        found = []
        for layer in graph.layers:
            for index, source in enumerate(graph.sources(layer)):
                if source is not None:
                    feeder, output = source
                    start = self.numbers[feeder], len(feeder.inputs) + output
                    found.append(Edge(*start, self.numbers[layer], index))
        return sorted(found)

    def model(self, model: Model) -> None:
        """A whole document."""
        self.lines.append('<?xml version="1.0"?>\n')
        self.open(0, "net", {"name": model.name, "version": str(model.version)})
        self.graph(model, 1)
        for info in (model.meta_data, model.quantization_parameters, model.pre_process):
            if info is not None:
                self.info(info, 1)
        self.close(0, "net")


def _said_with_the_name(printer: Printer, layer: Layer, depth: int) -> None:
    """Nothing: output_names is an attribute of ``<layer>`` itself."""


#: What prints each part of a layer.
_PRINTING: dict[str, Callable[[Printer, Layer, int], None]] = {
    "output_names": _said_with_the_name,
    "data": Printer.data,
    "rt_info": Printer.layer_info,
    "port_maps": Printer.port_maps,
    "back_edges": Printer.back_edges,
    "inputs": Printer.inputs,
    "outputs": Printer.outputs,
    "bodies": Printer.bodies,
}


def layer_attributes(layer: Layer) -> dict[str, str]:
    """The attributes of a ``<layer>``."""
    attributes = {
        "id": str(layer.id), "name": layer.name, "type": layer.type, "version": layer.version
    }  # fmt: skip
    if layer.output_names is not None:
        attributes["output_names"] = layer.output_names
    return attributes


def constant_data(layer: Layer, places: Placing) -> dict[str, str]:
    """The attributes of a ``<data>``, a constant's bytes where they will be."""
    place = places.get(layer)
    if place is None:
        return layer.data
    data = {key: text for key, text in layer.data.items() if key != "value"}
    return data | {"offset": str(place[0]), "size": str(place[1])}


def edge_attributes(edge: Edge) -> dict[str, str]:
    """The attributes of an ``<edge>``."""
    names = ("from-layer", "from-port", "to-layer", "to-port")
    return dict(zip(names, map(str, edge), strict=True))


def written_order(graph: Graph) -> list[Layer]:
    """The layers as OpenVINO writes them: Parameters, the rest in order, sinks, Results."""
    ordered = graph.order(reachable_only=False)
    ends = ("Parameter", "Assign", "Result")
    first, sinks, last = ([x for x in graph.layers if x.type == kind] for kind in ends)
    return [*first, *(x for x in ordered if x.type not in ends), *sinks, *last]


def numbered(graph: Graph) -> dict[Layer, int]:
    """New ids for all layers, from zero in each graph."""
    numbers: dict[Layer, int] = {}
    graphs = [graph]
    while graphs:
        for index, layer in enumerate(written_order(graphs.pop())):
            numbers[layer] = index
            graphs.extend(layer.bodies.values())
    return numbers
