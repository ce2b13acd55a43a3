"""The graph of a model: layers, the edges between their ports, and who feeds whom.

Nothing here recurses along the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from lxml import etree

from ...schemas import IRError, Tensor, UsageError
from ..faces import door
from .copies import copied, reduced
from .edges import EdgeIndex, read_edges
from .layer import Layer
from .layer_parts import BODIES
from .lookup import Named
from .parts import LARGEST_ID, Edge, Info, Port, check_id, read_info

if TYPE_CHECKING:
    from .model import Model

#: Layers that are wanted for themselves; all else is there for what it feeds.
SINKS: frozenset[str] = frozenset({"Result", "Assign"})

#: What a graph keeps that follows from its layers, their ids and the edges, or is not its own.
_DERIVED = frozenset({
    "_by_id", "_free_id", "_layers", "_looked_up", "_names", "_ranks", "_tensor_names", "_uses",
    "copied_for", "element", "owner",
})  # fmt: skip

#: Bodies within bodies; OpenVINO's own models have two.
DEEPEST = 64


#: Outputs of a layer from which on their ranks are kept.
_MANY = 16


@dataclass
class LookUps:
    """The order of a graph, and by layer id what feeds each, as far as somebody has asked."""

    order: list[Layer] | None = None
    sources: dict[int, list[tuple[Layer, int] | None]] = field(default_factory=dict)
    #: What is known of constants.
    constants: dict[int, Tensor] = field(default_factory=dict)
    #: What was inferred last: of which inputs, and what.
    inferred: dict[int, tuple[list[Tensor], tuple[Tensor, ...]]] = field(default_factory=dict)
    #: The same of those bodies that somebody has looked at.
    bodies: list[tuple[Graph, LookUps]] = field(default_factory=list)

    def everywhere(self, graph: Graph) -> Iterator[tuple[Graph, LookUps]]:
        """Itself with its graph, then those of bodies of any depth."""
        yield graph, self
        for body, its in self.bodies:
            yield from its.everywhere(body)


class Graph(Named):
    """Layers in the order of the file, and the edges between them."""

    _repr_html_ = door("display", "html")

    #: What tells it from a layer where either may stand.
    is_graph: ClassVar[bool] = True
    #: Whether it is the outermost, with weights and a file.
    is_model: ClassVar[bool] = False

    def __init__(self, owner: Layer | None = None) -> None:
        self.owner = owner
        self.rt_info: Info | None = None
        self._layers = []
        self._edges: list[Edge] = []
        self._by_id = {}
        #: What it was read from, None where it was made in memory; never changed.
        self.element: etree._Element | None = None
        #: Of layers with many outputs, by their ids, the places of their ports.
        self._ranks: dict[int, dict[int, int]] = {}
        self._uses: EdgeIndex | None = None
        self._looked_up: LookUps | None = None
        self._names = self._tensor_names = None
        self._free_id: int | None = None
        #: Whether layers or edges came or went since it was read.
        self._rewired = False
        self._read_labels: list[list[object]] = []
        #: The layer whose copy brought a copy of all around it along: another graph may take it.
        self.copied_for: Layer | None = None

    @classmethod
    def of(cls, element: etree._Element, owner: Layer) -> Graph:
        """The graph of a body."""
        graph = cls(owner)
        depth, outer = 1, owner.graph
        while outer is not None and outer.owner is not None:
            depth, outer = depth + 1, outer.owner.graph
        if depth > DEEPEST:
            raise IRError(f"bodies are nested more than {DEEPEST} deep", owner.where)
        graph.load(element)
        return graph

    def load(self, element: etree._Element) -> None:
        """Take layers and edges from an element."""
        self.element = element
        layers = element.find("layers")
        if layers is not None:
            make = Layer.of
            self._layers = [make(child, self) for child in layers.iterchildren("layer")]
        self._index()
        self._read_labels = self._labels()
        edges = element.find("edges")
        if edges is not None:
            model = self.model
            place, text = (None, None) if model is None else (model.place, model.text)
            self._edges = read_edges(edges, place, text)
        found = element.find("rt_info")
        self.rt_info = None if found is None else read_info(found)

    def _labels(self) -> list[list[object]]:
        """What each layer is called."""
        layers = self._layers
        return [
            [layer.id for layer in layers],
            [layer.name for layer in layers],
            [layer.type for layer in layers],
            [layer.version for layer in layers],
        ]

    # What is there.

    @property
    def model(self) -> Model | None:
        """The model it belongs to, itself for the outermost graph."""
        graph: Graph | None = self
        while graph is not None and graph.owner is not None:
            graph = graph.owner.graph
        return cast("Model", graph) if graph is not None and graph.is_model else None

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

    def everywhere(
        self, order: Callable[[Graph], Iterable[Layer]] = lambda graph: graph.layers
    ) -> Iterator[Layer]:
        """Every layer, those in bodies of any depth after the layer that holds them.

        Those of each graph come as they are, or in another ``order``.
        """
        stack: list[Iterator[Layer]] = [iter(order(self))]
        while stack:
            layer = next(stack[-1], None)
            if layer is None:
                stack.pop()
                continue
            yield layer
            if bodies := layer.bodies:
                stack.extend(iter(order(bodies[t])) for t in reversed(BODIES) if t in bodies)

    # Who feeds whom.

    def _use_lists(self) -> EdgeIndex:
        if self._uses is None:
            self._uses = EdgeIndex(self._edges)
        return self._uses

    @property
    def look_ups(self) -> LookUps | None:
        """What was looked up so far, where nobody may edit it."""
        return self._looked_up

    @contextmanager
    def looked_up(self, found: LookUps) -> Iterator[None]:
        """Inside, its order and what feeds whom are looked up but once: nobody may edit it."""
        for graph, its in found.everywhere(self):
            graph._looked_up = its
        try:
            yield
        finally:
            for graph, _ in found.everywhere(self):
                graph._looked_up = None

    def look_up_bodies(self, layer: Layer) -> None:
        """Look up the same in the bodies of a layer, for as long as here."""
        known = self._looked_up
        if known is not None:
            for body in layer.bodies.values():
                if body._looked_up is None:
                    its = LookUps()
                    known.bodies.append((body, its))
                    body._looked_up = its
                    if self._looked_up is not known:  # another thread has just ended it
                        body._looked_up = None

    def sources(self, layer: Layer) -> list[tuple[Layer, int] | None]:
        """By input index: the layer and output index that feed it, None where nothing does."""
        known = self._looked_up
        if known is None:
            return self._sources(layer)
        if layer.id not in known.sources:
            known.sources[layer.id] = self._sources(layer)
        return known.sources[layer.id].copy()

    def _sources(self, layer: Layer) -> list[tuple[Layer, int] | None]:
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
        index = self._output_index(producer, edge.from_port)
        if index is not None:
            return producer, index
        raise IRError(
            f"port {edge.to_port} is fed by port {edge.from_port} of layer {edge.from_layer} "
            f'"{producer.name}", whose output ports are {producer.port_ids("output")}',
            target.where,
        )

    def _output_index(self, layer: Layer, port: int) -> int | None:
        """The place of an output port; looked up, where a layer has many and all are asked for."""
        ranks = self._ranks.get(layer.id)
        if ranks is not None and port in ranks:
            ports, index = layer.outputs, ranks[port]
            if index < len(ports) and ports[index].id == port:
                return index
        ids = layer.port_ids("output")
        if len(ids) > _MANY:
            self._ranks[layer.id] = {
                number: index for index, number in reversed(list(enumerate(ids)))
            }
        return ids.index(port) if port in ids else None

    def producer(self, layer: Layer, input_index: int) -> tuple[Layer, int] | None:
        """The layer and output index that feed an input, None where nothing does."""
        if self._looked_up is None and input_index < len(layer.inputs) > _MANY:
            # Of a layer that joins thousands, all of them would be looked up for each.
            index = self._use_lists()
            place = index.places.get((layer.id, layer.inputs[input_index].id))
            return None if place is None else self._origin(index.edges[place], layer)
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
        known = self._looked_up
        if known is None or not reachable_only:
            return self._ordered(reachable_only)
        if known.order is None:
            known.order = self._ordered(reachable_only)
        return known.order.copy()

    def _ordered(self, reachable_only: bool) -> list[Layer]:
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
                if done[root.id].type == "Parameter" and root.type != "Parameter":
                    raise IRError(f"a Parameter has the id {root.id}, too", root.where)
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
        if layer.graph is not None:
            other, held = layer.graph, layer.is_in_graph
            if held and (other is self or other.copied_for is not layer):
                where = "this graph already" if other is self else "another graph"
                hint = "add a copy of it: copy.copy(layer)"
                raise UsageError(f"{layer!r} is in {where}", hint=hint)
            for part in with_bodies(layer) if other is not self else ():
                if part.is_constant:
                    part.keep_value()
            if held:
                other.remove(layer)
        if self._free_id is None:
            self._free_id = max(self._by_id, default=-1) + 1
        number = layer.id
        if number < 0 or number in self._by_id:
            number = self._free_id
            layer.take_id(number)
        if number >= self._free_id:
            self._free_id = number + 1
        layer.graph = self
        if index is None:
            self._layers.append(layer)
        else:
            self._layers.insert(index, layer)
        self._by_id[number] = layer
        if index is None and self._names is not None:
            self._names.setdefault(layer.name, layer)
        else:
            self._names = self._tensor_names = None
        self._rewired = True
        return layer

    def _changed(self) -> None:
        """Layers or edges came, went or changed: what follows from them is found anew.

        Every change ends here, but those that keep the indices up: one more layer at the end,
        and an edge that is put in.
        """
        self._rewired = True
        self._index()

    def _index(self) -> None:
        """Find layers by their ids; all else is found when it is asked for."""
        self._by_id = {layer.id: layer for layer in self._layers}
        self._free_id = self._names = self._tensor_names = self._uses = None

    @property
    def is_rewired(self) -> bool:
        """Whether layers or edges came or went since it was read."""
        return self._rewired

    @property
    def is_relabelled(self) -> bool:
        """Whether a layer has another id, name, type or version since it was read."""
        return self._read_labels != self._labels()

    def forget_names(self) -> None:
        """Look names up anew: a layer was given another one."""
        self._names = None

    def renumber(self, ids: Mapping[Layer, int]) -> None:
        """Give layers other ids, and say so wherever they are meant by them."""
        ids = {layer: check_id(number, layer) for layer, number in ids.items()}
        taken = {layer.id: layer for layer in self._layers if layer not in ids}
        for layer, number in ids.items():
            if self._by_id.get(layer.id) is not layer:
                raise UsageError(f"{layer!r} is not in this graph")
            other = taken.setdefault(number, layer)
            if other is not layer or not 0 <= number <= LARGEST_ID:
                raise UsageError(
                    f"{layer!r} cannot have the id {number}"
                    + (f": {other!r} has it" if other is not layer else ""),
                    hint=f"ids are 0 to {LARGEST_ID}, each given once",
                )
        new = {layer.id: number for layer, number in ids.items()}
        self._edges = [
            edge._replace(from_layer=new.get(edge[0], edge[0]), to_layer=new.get(edge[2], edge[2]))
            for edge in self._edges
        ]
        for layer, number in ids.items():
            layer.take_id(number)
        if self.owner is not None:
            self.owner.renumber_body(self, new)
        self._ranks = {}
        self._changed()

    def remove(self, *layers: Layer) -> None:
        """Take layers out, and every edge that touches them."""
        gone = {id(layer) for layer in layers}
        kept = [layer for layer in self._layers if id(layer) not in gone]
        if len(self._layers) - len(kept) != len(gone):
            held = {id(layer) for layer in self._layers}
            stranger = next(layer for layer in layers if id(layer) not in held)
            raise UsageError(f"{stranger!r} is not in this graph")
        ids = {layer.id for layer in layers}
        self._layers = kept
        self._edges = [e for e in self._edges if e[0] not in ids and e[2] not in ids]
        self._changed()

    def arrange(self, layers: Sequence[Layer]) -> None:
        """Put the layers into another order."""
        if {id(layer) for layer in layers} != {id(layer) for layer in self._layers}:
            raise UsageError(
                f"{len(layers)} layers are to be put in order, the graph holds "
                f"{len(self._layers)} others"
            )
        self._layers = list(layers)
        self._changed()

    def prune(self) -> list[Layer]:
        """Take out the layers that feed no Result or Assign, in bodies too; they are returned.

        They are what OpenVINO leaves out. A graph without Result and Assign is left as it is.
        """
        gone: list[Layer] = []
        graphs: list[Graph] = [self]
        while graphs:
            graph = graphs.pop()
            if any(layer.type in SINKS for layer in graph.layers):
                reached = {id(layer) for layer in graph.order()}
                dead = [layer for layer in graph.layers if id(layer) not in reached]
                if dead:
                    graph.remove(*dead)
                    gone += dead
            graphs.extend(body for layer in graph.layers for body in layer.bodies.values())
        return gone

    def connect(
        self, source: Layer | tuple[Layer, int], target: Layer, input_index: int | None = None
    ) -> None:
        """Feed an input from an output, in place of what fed it; None: one more input."""
        producer, output_index = source if isinstance(source, tuple) else (source, 0)
        for layer in (producer, target):
            if self._by_id.get(layer.id) is not layer:
                raise UsageError(f"{layer!r} is not in this graph")
        outputs, inputs = producer.outputs, target.inputs
        if output_index >= len(outputs):
            raise UsageError(f"{producer!r} has {len(outputs)} outputs")
        origin = outputs[output_index]
        if input_index is None:
            input_index = len(inputs)
        if input_index > len(inputs):
            raise UsageError(f"{target!r} has {len(inputs)} inputs, not {input_index}")
        if input_index == len(inputs):
            self._add_input(target, origin)
        port = inputs[input_index]
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
                self._changed()
        layer.inputs.append(Port(new, origin.precision, origin.dims))

    def disconnect(self, layer: Layer, input_index: int) -> None:
        """Leave an input without what feeds it."""
        port = layer.inputs[input_index].id
        self._edges = [e for e in self._edges if (e.to_layer, e.to_port) != (layer.id, port)]
        self._changed()

    def replace_output(self, old: tuple[Layer, int], new: tuple[Layer, int]) -> None:
        """Let all that an output feeds be fed by another."""
        for user, index in self.consumers(*old):
            if user is not new[0]:
                self.connect(new, user, index)

    # Copies.

    @property
    def document(self) -> bytes | None:
        """The text it was read from, of a model."""
        return None

    @property
    def fields(self) -> dict[str, Any]:
        """All that it keeps but layers, owner, element, and what follows from them."""
        return {name: value for name, value in vars(self).items() if name not in _DERIVED}

    def restore(
        self,
        fields: Mapping[str, Any],
        layers: list[Layer],
        owner: Layer | None,
        element: etree._Element | None,
    ) -> None:
        """Take over the fields of the graph that this one is a copy of."""
        Graph.__init__(self, owner)
        vars(self).update(fields)
        self.element, self._layers = element, layers
        for layer in layers:
            layer.graph = self
        self._index()

    def __copy__(self) -> Self:
        return deepcopy(self)  # a layer is in one graph alone

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copied(self, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)


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


Layer.body_of = staticmethod(Graph.of)


__all__ = ["DEEPEST", "SINKS", "Graph", "with_bodies"]
