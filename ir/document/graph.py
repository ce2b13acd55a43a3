"""The graph of a model: layers, the edges between their ports, and who feeds whom.

Nothing here recurses along the graph.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lxml import etree

from ...schemas import IRError, UsageError, Where
from ..text.positions import at
from .layer import BODIES, Layer, check_constant
from .parts import LARGEST_ID, BackEdge, Edge, Info, Port, PortMap, read_info, whole

if TYPE_CHECKING:
    from os import PathLike

    from ..files.older.origin import Origin
    from ..storage.weights import Weights
    from ..text.repair import Repair

#: Layers that are wanted for themselves; all else is there for what it feeds.
SINKS = frozenset({"Result", "Assign"})

#: The attributes of an edge, and all of each kind in a section.
END_NAMES = ("from-layer", "from-port", "to-layer", "to-port")
_ENDS = [etree.XPath(f"edge/@{name}", smart_strings=False) for name in END_NAMES]
_COUNT = etree.XPath("count(edge)")

#: Bodies within bodies; OpenVINO's own models have two.
DEEPEST = 64


class _Uses:
    """Edges by the layer they enter, and by the layer they leave."""

    __slots__ = ("_places", "edges", "entering", "leaving")

    def __init__(self, edges: list[Edge]) -> None:
        self.edges = edges
        self.entering: dict[int, list[Edge]] = {}
        self.leaving: dict[int, list[Edge]] = {}
        self._places: dict[tuple[int, ...], int] | None = None
        entering, leaving = self.entering, self.leaving
        for edge in edges:
            entering.setdefault(edge[2], []).append(edge)
            leaving.setdefault(edge[0], []).append(edge)

    def put(self, new: Edge) -> None:
        """An edge in the place of the one that enters the same input; else a further one."""
        places = self.places
        place = places.get(new[2:])
        if place is None:
            places[new[2:]] = len(self.edges)
            self.edges.append(new)
            self.entering.setdefault(new[2], []).append(new)
            self.leaving.setdefault(new[0], []).append(new)
            return
        old, self.edges[place] = self.edges[place], new
        entering = self.entering[old[2]]
        entering[entering.index(old)] = new
        self.leaving[old[0]].remove(old)
        insort(self.leaving.setdefault(new[0], []), new, key=lambda edge: places[edge[2:]])

    @property
    def places(self) -> dict[tuple[int, ...], int]:
        """Where in the list the edge into an input stands, the first of several."""
        if self._places is None:
            backwards = range(len(self.edges) - 1, -1, -1)
            self._places = {self.edges[place][2:]: place for place in backwards}
        return self._places


class Graph:
    """Layers in the order of the file, and the edges between them."""

    def __init__(self, owner: Layer | None = None) -> None:
        self.owner = owner
        self.rt_info: Info | None = None
        self._layers: list[Layer] = []
        self._edges: list[Edge] = []
        self._by_id: dict[int, Layer] = {}
        self._element: etree._Element | None = None
        self._uses: _Uses | None = None
        self._names: dict[str, Layer] | None = None
        self._tensor_names: dict[str, tuple[Layer, int]] | None = None
        self._free_id: int | None = None
        #: Whether layers or edges came or went since it was read.
        self._rewired = False
        self._read_labels: list[list[object]] = []

    @classmethod
    def _of(cls, element: etree._Element, owner: Layer) -> Graph:
        """The graph of a body."""
        graph = cls(owner)
        depth, outer = 1, owner.graph
        while outer is not None and outer.owner is not None:
            depth, outer = depth + 1, outer.owner.graph
        if depth > DEEPEST:
            raise IRError(f"bodies are nested more than {DEEPEST} deep", owner.where)
        graph._load(element)
        return graph

    def _load(self, element: etree._Element) -> None:
        """Take layers and edges from an element."""
        self._element = element
        layers = element.find("layers")
        if layers is not None:
            make = Layer._of
            self._layers = [make(child, self) for child in layers.iterchildren("layer")]
        self._by_id = {layer.id: layer for layer in self._layers}
        self._read_labels = self._labels()
        edges = element.find("edges")
        if edges is not None:
            self._edges = self._load_edges(edges)
        found = element.find("rt_info")
        self.rt_info = None if found is None else read_info(found)

    def _labels(self) -> list[list[object]]:
        """What each layer is called."""
        layers = self._layers
        return [
            [layer.id for layer in layers],
            [layer._name for layer in layers],
            [layer.type for layer in layers],
            [layer.version for layer in layers],
        ]

    def _load_edges(self, section: etree._Element) -> list[Edge]:
        """Read the edges: all at once where each has four plain numbers, else one by one."""
        ends = [find(section) for find in _ENDS]
        digits = "".join(map("".join, ends))
        if len({_COUNT(section), *map(len, ends)}) == 1 and digits.isascii() and digits.isdigit():
            try:
                columns = [list(map(int, texts)) for texts in ends]
            except ValueError:  # an empty one
                columns = [[-1]]
            if max(map(max, columns)) <= LARGEST_ID and min(map(min, columns)) >= 0:
                return list(map(Edge._make, zip(*columns, strict=True)))
        found = []
        model = self.model
        for child in section.iterchildren("edge"):
            where = Where(model.place if model else None, child.sourceline)
            with at(where, model.text if model else None, child):
                numbers = (whole(_end(child, name), f"{name} of an edge") for name in END_NAMES)
                found.append(Edge(*numbers))
        return found

    # What is there.

    @property
    def model(self) -> Model | None:
        """The model it belongs to, itself for the outermost graph."""
        graph: Graph | None = self
        while graph is not None and graph.owner is not None:
            graph = graph.owner.graph
        return graph if isinstance(graph, Model) else None

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers in the order of the file; changed by ``add`` and ``remove``."""
        return self._layers

    @property
    def edges(self) -> Sequence[Edge]:
        """The edges in the order of the file; changed by ``connect`` and ``disconnect``."""
        return self._edges

    @property
    def parameters(self) -> list[Layer]:
        """The inputs, in the order OpenVINO gives them."""
        return [layer for layer in self._layers if layer.type == "Parameter"]

    @property
    def results(self) -> list[Layer]:
        """The outputs, in the order OpenVINO gives them."""
        return [layer for layer in self._layers if layer.type == "Result"]

    @property
    def constants(self) -> list[Layer]:
        """The layers that hold weights."""
        return [layer for layer in self._layers if layer.type == "Const"]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def __bool__(self) -> bool:
        return True

    def everywhere(self) -> Iterator[Layer]:
        """Every layer, those in bodies of any depth after the layer that holds them."""
        stack: list[Iterator[Layer]] = [iter(self._layers)]
        while stack:
            layer = next(stack[-1], None)
            if layer is None:
                stack.pop()
                continue
            yield layer
            stack.extend(iter(body) for body in reversed(list(layer.bodies.values())))

    # Looking up.

    def layer(self, key: str | int) -> Layer:
        """The layer of this name, id, or name of one of its output tensors."""
        if isinstance(key, int):
            if key in self._by_id:
                return self._by_id[key]
            raise UsageError(f"no layer has the id {key}")
        if self._names is None:
            self._names = {layer.name: layer for layer in reversed(self._layers)}
        found = self._names.get(key)
        if found is None:
            tensor = self._tensor(key)
            found = None if tensor is None else tensor[0]
        if found is None and key.isascii() and key.isdigit() and len(key) < 19:
            found = self._by_id.get(int(key))
        if found is not None:
            return found
        import difflib  # only for those who look for what is not there

        near = difflib.get_close_matches(key, [layer.name for layer in self._layers[:5000]], 3)
        hint = f"did you mean {', '.join(near)}?" if near else None
        raise UsageError(f'no layer or tensor is named "{key}"', hint=hint)

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

    # Who feeds whom.

    def _use_lists(self) -> _Uses:
        if self._uses is None:
            self._uses = _Uses(self._edges)
        return self._uses

    def sources(self, layer: Layer) -> list[tuple[Layer, int] | None]:
        """By input index: the layer and output index that feed it, None where nothing does."""
        ranks = {number: index for index, number in enumerate(layer.port_ids("input"))}
        found: list[tuple[Layer, int] | None] = [None] * len(ranks)
        for edge in self._use_lists().entering.get(layer.id, ()):
            index = ranks.get(edge.to_port)
            if index is None:
                raise IRError(
                    f"an edge enters port {edge.to_port}, input ports are {sorted(ranks)}",
                    layer.where,
                )
            if found[index] is not None:
                raise IRError(f"two edges enter port {edge.to_port}", layer.where)
            found[index] = self._origin(edge, layer)
        return found

    def _origin(self, edge: Edge, target: Layer) -> tuple[Layer, int]:
        producer = self._by_id.get(edge.from_layer)
        if producer is None:
            raise IRError(
                f"port {edge.to_port} is fed by layer {edge.from_layer}, which is not there",
                target.where,
            )
        ports = producer.port_ids("output")
        if edge.from_port in ports:
            return producer, ports.index(edge.from_port)
        raise IRError(
            f"port {edge.to_port} is fed by port {edge.from_port} of layer {edge.from_layer} "
            f'"{producer.name}", whose output ports are {ports}',
            target.where,
        )

    def producer(self, layer: Layer, input_index: int) -> tuple[Layer, int] | None:
        """The layer and output index that feed an input, None where nothing does."""
        sources = self.sources(layer)
        return sources[input_index] if input_index < len(sources) else None

    def consumers(self, layer: Layer, output_index: int | None = None) -> list[tuple[Layer, int]]:
        """The layers and input indices that an output feeds (all outputs: None)."""
        wanted = None if output_index is None else layer.port_ids("output")[output_index]
        found = []
        for edge in self._use_lists().leaving.get(layer.id, ()):
            user = self._by_id.get(edge.to_layer)
            if user is None or (wanted is not None and edge.from_port != wanted):
                continue
            ports = user.port_ids("input")
            if edge.to_port in ports:
                found.append((user, ports.index(edge.to_port)))
        return found

    def order(self, reachable_only: bool = True) -> list[Layer]:
        """The layers so that each comes after what feeds it: Parameters first.

        As OpenVINO reads a file, a layer that feeds no Result or Assign is left out, unless
        ``reachable_only`` is false. The order is the one in which OpenVINO writes layers.
        """
        roots = [x for x in self._layers if x.type == "Assign"]
        roots += [x for x in self._layers if x.type == "Result"]
        roots.reverse()
        roots.sort(key=lambda layer: layer.type == "Result")
        if not reachable_only:
            roots += self._layers
        # An id given twice means its last layer; inputs are listed all the same.
        done: dict[int, Layer] = {x.id: x for x in self._layers if x.type == "Parameter"}
        open_: set[int] = set()
        for root in roots:
            if root.id in done:
                continue
            stack = [(root, self._entering(root))]
            open_.add(root.id)
            while stack:
                layer, edges = stack[-1]
                edge = next(edges, None)
                if edge is None:
                    stack.pop()
                    open_.discard(layer.id)
                    done[layer.id] = layer
                    continue
                feeder = self._by_id.get(edge[0])
                if feeder is None:
                    self._origin(edge, layer)
                elif feeder.id in open_:
                    path = [x for x, _ in stack]
                    raise _cycle(path[next(i for i, x in enumerate(path) if x is feeder) :])
                elif feeder.id not in done:
                    open_.add(feeder.id)
                    stack.append((feeder, self._entering(feeder)))
        return list(done.values())

    def _entering(self, layer: Layer) -> Iterator[Edge]:
        """The edges into a layer by the number of the port, as ports usually stand."""
        edges = self._use_lists().entering.get(layer.id, [])
        return iter(edges if len(edges) < 2 else sorted(edges, key=lambda edge: edge[3]))

    # Changing.

    def add(self, layer: Layer, index: int | None = None) -> Layer:
        """Take a layer in, last or at a place in the order; an id already taken is replaced."""
        if layer.graph is not None and layer.graph is not self:
            for part in with_bodies(layer):
                if part.is_constant and part._value is None:
                    part._value = part.value  # its bytes stay those of the model it came from
        if self._free_id is None:
            self._free_id = max(self._by_id, default=-1) + 1
        if layer.id < 0 or layer.id in self._by_id:
            layer.id = self._free_id
        self._free_id = max(self._free_id, layer.id + 1)
        layer.graph = self
        self._layers.insert(len(self._layers) if index is None else index, layer)
        self._by_id[layer.id] = layer
        if index is None and self._names is not None:
            self._names.setdefault(layer.name, layer)
        else:
            self._names = None
        self._rewired = True
        return layer

    def remove(self, layer: Layer) -> None:
        """Take a layer out, and every edge that touches it."""
        try:
            self._layers.remove(layer)
        except ValueError:
            raise UsageError(f"{layer!r} is not in this graph") from None
        self._edges = [e for e in self._edges if layer.id not in (e.from_layer, e.to_layer)]
        self._by_id = {x.id: x for x in self._layers}
        self._free_id = self._uses = self._names = self._tensor_names = None
        self._rewired = True

    def prune(self) -> list[Layer]:
        """Take out the layers that feed no Result or Assign, which OpenVINO leaves out."""
        kept = {layer.id for layer in self.order()}
        gone = [layer for layer in self._layers if layer.id not in kept]
        if gone:
            self._layers = [layer for layer in self._layers if layer.id in kept]
            self._edges = [e for e in self._edges if e.from_layer in kept and e.to_layer in kept]
            self._uses = None
            self._by_id = {layer.id: layer for layer in self._layers}
        return gone

    def connect(
        self, source: Layer | tuple[Layer, int], target: Layer, input_index: int | None = None
    ) -> None:
        """Feed an input from an output, in place of what fed it; None: one more input."""
        producer, output_index = source if isinstance(source, tuple) else (source, 0)
        for layer in (producer, target):
            if self._by_id.get(layer.id) is not layer:
                raise UsageError(f"{layer!r} is not in this graph")
        if output_index >= len(producer.outputs):
            raise UsageError(f"{producer!r} has {len(producer.outputs)} outputs")
        origin = producer.outputs[output_index]
        if input_index is None:
            input_index = len(target.inputs)
        if input_index > len(target.inputs):
            raise UsageError(f"{target!r} has {len(target.inputs)} inputs, not {input_index}")
        if input_index == len(target.inputs):
            self._add_input(target, origin)
        port = target.inputs[input_index]
        new = Edge(producer.id, origin.id, target.id, port.id)
        self._use_lists().put(new)
        self._rewired = True

    def _add_input(self, layer: Layer, origin: Port) -> None:
        """One more input port; the output ports stay numbered after the inputs."""
        used = [port.id for port in layer.inputs]
        new = max(used, default=-1) + 1
        moved = {}
        if any(port.id == new for port in layer.outputs):
            moved = {port.id: port.id + 1 for port in layer.outputs}
            for port in layer.outputs:
                port.id += 1
            if layer.id in self._use_lists().leaving:
                self._edges = [
                    edge._replace(from_port=moved[edge.from_port])
                    if edge.from_layer == layer.id and edge.from_port in moved
                    else edge
                    for edge in self._edges
                ]
                self._uses = None
        layer.inputs.append(Port(new, origin.precision, origin.dims))

    def disconnect(self, layer: Layer, input_index: int) -> None:
        """Leave an input without what feeds it."""
        port = layer.inputs[input_index].id
        self._edges = [e for e in self._edges if (e.to_layer, e.to_port) != (layer.id, port)]
        self._uses = None
        self._rewired = True

    def replace_output(self, old: tuple[Layer, int], new: tuple[Layer, int]) -> None:
        """Let all that an output feeds be fed by another."""
        for user, index in self.consumers(*old):
            if user is not new[0]:
                self.connect(new, user, index)


def _end(element: etree._Element, name: str) -> str:
    text = element.get(name)
    if text is None:
        raise IRError(f"an edge has no {name}")
    return text


def _cycle(path: Sequence[Layer]) -> IRError:
    """The error that names a cycle's layers in the direction of the data."""
    names = [f'{layer.id} "{layer.name}"' for layer in reversed(path)]
    shown = names if len(names) <= 12 else [*names[:6], "…", *names[-5:]]
    return IRError(f"layers feed each other in a cycle: {' -> '.join(shown)}", path[-1].where)


def with_bodies(layer: Layer) -> Iterator[Layer]:
    """A layer and all layers inside it."""
    yield layer
    for body in layer.bodies.values():
        yield from body.everywhere()


class Model(Graph):
    """A whole model: its graph, its name and version, its weights, and where it came from."""

    def __init__(self, name: str = "", version: int = 11) -> None:
        super().__init__()
        self.name = name
        self.version = version
        self.meta_data: Info | None = None
        self.quantization_parameters: Info | None = None
        self.pre_process: Info | None = None
        self.weights: Weights | None = None
        #: Where it was read from, and the bytes that were read there.
        self.path: str | PathLike[str] | None = None
        self.source: bytes | None = None
        #: What was parsed: ``source``, unless it had to be repaired.
        self.text: bytes | None = None
        self.repairs: list[Repair] = []
        #: What an IR of v2 to v7 was, and what was decided when it was upgraded.
        self.origin: Origin | None = None

    @property
    def place(self) -> str | None:
        """The file's name for messages."""
        return None if self.path is None else str(self.path)

    def __repr__(self) -> str:
        return f"<model {self.name!r}, version {self.version}, {len(self._layers)} layers>"


__all__ = [
    "BODIES",
    "BackEdge",
    "Edge",
    "Graph",
    "Info",
    "Layer",
    "Model",
    "Port",
    "PortMap",
    "check_constant",
]
