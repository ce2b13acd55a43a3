"""Upgrade of a whole document: read, its edges resolved, layers upgraded in topological order.

Whatever any layer has in common is done here. An output gets the type that its port declares,
its sizes are compared with the declared ones, its tensor gets the name the old runtime gave it,
and the last of the new layers the name of the old one. What nothing feeds is an input of the
network, what nobody reads an output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lxml import etree

from ....schemas import ElementType, IRError, Shape, Tensor, UnreadableError, UnsupportedError
from ....schemas.shapes import MOST_AXES
from ....schemas.version import VERSION
from ...document import (
    Builder,
    Info,
    Layer,
    Model,
    Origin,
    Output,
    Port,
    Remark,
    dims_of,
    read_info,
)
from ...storage import Weights
from .document import (
    OldEdge,
    OldGraph,
    OldLayer,
    Reading,
    first_ids,
    read_graph,
    read_precision,
)
from .layer import TYPES, NoCounterpartError, Old, Scene
from .preprocess import Preprocess, read_preprocess
from .table import LEFTOVERS, find

#: The versions that are upgraded.
VERSIONS = range(2, 8)

#: An output port of the old document, by the ids of its layer and itself.
Place: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Settings:
    """Options of an upgrade."""

    #: Leave the mean values to the caller, and say them in rt_info.
    keep_preprocess: bool = False
    #: Refuse bytes that are missing: None where there is a .bin, False never.
    need_weights: bool | None = None


#: What helps a document of today that says an old version.
NEWER = 'write version="11"'


def newer(version: int) -> str:
    """The message about a document of a version newer than those that are read."""
    return (
        f"IR version {version} was written by OpenVINO 2020.4 or before, and dropped in 2021.1; "
        "these layers name opsets, which came with version 10"
    )


def names_opsets(root: etree._Element) -> bool:
    """Whether a document that says an old version has the layers of today."""
    section = root.find("layers")
    rows = () if section is None else section.iterchildren("layer")
    return any((layer.get("version") or "").startswith("opset") for layer in rows)


def upgrade(model: Model, root: etree._Element, version: int, settings: Settings) -> None:
    """Fill a model with the operations that an old document stands for.

    Raises:
        IRError: Something in it is wrong. What only has no counterpart stays in the model as a
            layer that nobody can run.
    """

    def refuse(error: IRError, _: etree._Element) -> None:
        raise error

    Upgrade(model, root, version, settings, refuse).whole()


def examine(
    root: etree._Element, version: int, file: str | None, weights: Weights | None
) -> Origin:
    """Everything that is wrong or worth knowing about an old document.

    Remarks have the elements that they are about: where these stand is found for all at once.
    """
    model = Model()
    model.path, model.weights = file, weights
    faults: list[Remark] = []

    def note(error: IRError, element: etree._Element) -> None:
        faults.append(Remark("wrong", error.message, error.where, error.hint, element=element))

    work = Upgrade(model, root, version, Settings(), note)
    work.whole()
    work.origin.remarks += faults
    return work.origin


class Upgrade:
    """The upgrade of one document."""

    def __init__(
        self,
        model: Model,
        root: etree._Element,
        version: int,
        settings: Settings,
        report: Callable[[IRError, etree._Element], None],
    ) -> None:
        self.model, self.root, self.settings = model, root, settings
        self.origin = Origin(version)
        self.reading = Reading(version, model.place, model.text, report)
        self.version = version
        #: Numbers in the matrices that resize axes.
        self.matrix_places = 0

    def whole(self) -> None:
        """The network."""
        model, root, reading = self.model, self.root, self.reading
        model.name, model.version, model.source = root.get("name", ""), 11, None
        model.origin = self.origin
        reading.guard(root, reading.place(root), self._refuse_newer)
        precision = reading.guard(root, reading.place(root), read_precision, root.get("precision"))
        graph = read_graph(root, reading, precision)
        wiring = Wiring(self, graph)
        means = self._means(wiring)
        builder = Builder(into=model)
        builder.reserve(layer.name for layer in graph.layers)
        walk = Walk(self, wiring, builder, {}, means)
        walk.walk()
        walk.results()
        model.rt_info = self._rt_info(means)
        self._leavings()

    def _refuse_newer(self) -> None:
        """Refuse what only says that it is old: the layers of v10 name the opset they are of."""
        section = self.root.find("layers")
        if section is None:
            raise UnreadableError("<net> has no <layers>")
        if names_opsets(self.root):
            raise UnsupportedError(newer(self.version), hint=NEWER)

    def _means(self, wiring: Wiring) -> Preprocess | None:
        element = self.root.find("pre-process")
        if element is None:
            return None
        place = self.reading.place(element)
        return self.reading.guard(element, place, read_preprocess, element, list(wiring.inputs()))

    def _leavings(self) -> None:
        """Report the parts of the document that belong to no layer."""
        found = self.root.find("statistics")
        count = 0 if found is None else sum(1 for _ in found.iterchildren("layer"))
        if found is not None and count:
            self.note(
                found,
                f"the ranges of {count} layers for calibrated 8-bit execution are not applied: "
                "everything is computed in f32, as on devices without int8",
            )
        found = self.root.find("quantization_parameters")
        if found is not None:
            self.note(found, "quantization_parameters say how it was made, and are left out")

    def note(self, element: etree._Element, message: str) -> None:
        """A remark about an element that is no layer."""
        self.origin.remarks.append(
            Remark("changed", message, self.reading.place(element), element=element)
        )

    def _rt_info(self, means: Preprocess | None) -> Info:
        """Where the model comes from, for whoever reads the upgraded file."""
        rows = [
            Info("upgraded_from", {"value": f"IR v{self.version}"}),
            Info("upgraded_by", {"value": f"vinoir {VERSION}"}),
        ]
        found = self.root.find("meta_data")
        if found is not None:
            told = read_info(found)
            rows += [Info(one.tag, {"value": one.value}) for one in told if one.value is not None]
        if means is not None and self.settings.keep_preprocess:
            rows.append(means.info())
        said = self.root.find("rt_info")  # which such documents have not, unless somebody adds it
        rows += [] if said is None else read_info(said).children
        return Info("rt_info", {}, rows)


class Wiring:
    """Which output port feeds each input port of a graph."""

    def __init__(self, upgrade: Upgrade, graph: OldGraph) -> None:
        self.graph = graph
        self.sources: dict[Place, Place] = {}
        #: Sizes by port, by side and layer.
        self._dims = {
            (side, layer.id): {port.id: port.dims for port in ports}
            for layer in graph.layers
            for side, ports in (("input", layer.inputs), ("output", layer.outputs))
        }
        reading = upgrade.reading
        for edge in graph.edges:
            reading.guard(edge.element, reading.place(edge.element), self._take, edge)

    def _take(self, edge: OldEdge) -> None:
        giver = self._port("output", edge.from_layer, edge.from_port, "leaves")
        taker = self._port("input", edge.to_layer, edge.to_port, "enters")
        place = (edge.to_layer, edge.to_port)
        if place in self.sources:
            raise IRError(f"two edges enter port {edge.to_port} of layer {edge.to_layer}")
        if giver != taker:
            raise IRError(
                f"port {edge.from_port} of layer {edge.from_layer} gives {list(giver)}, port "
                f"{edge.to_port} of layer {edge.to_layer} declares {list(taker)}"
            )
        self.sources[place] = (edge.from_layer, edge.from_port)

    def _port(self, side: str, layer: int, port: int, verb: str) -> tuple[int, ...]:
        """The sizes of the port at one end of an edge."""
        ports = self._dims.get((side, layer), {})
        if port in ports:
            return ports[port]
        one = self.graph.by_id.get(layer)
        if one is None:
            raise IRError(f"an edge {verb} layer {layer}, which is not there")
        raise IRError(
            f'an edge {verb} {side} port {port} of layer {layer} "{one.name}", whose {side} ports '
            f"are [{first_ids(ports)}]"
        )

    def inputs(self) -> Iterator[tuple[str, OldLayer, Port]]:
        """The network's inputs: layers of type Input, and ports that no edge enters."""
        for layer in self.graph.layers:
            if layer.type.lower() == "input" and layer.outputs:
                port = layer.outputs[0]
                yield layer.name, layer, Port(port.id, layer.output_precision(0), port.dims)
                continue
            for rank, port in enumerate(layer.inputs):
                if (layer.id, port.id) in self.sources:
                    continue
                name = layer.name if len(layer.inputs) == 1 else f"{layer.name}.{rank}"
                yield name, layer, Port(port.id, port.precision or layer.precision, port.dims)

    def order(self) -> list[OldLayer]:
        """The layers so that each comes after what feeds it, else in the order of the file."""
        by_id = self.graph.by_id
        feeders: dict[int, list[int]] = {}
        for (taker, _), (giver, _) in self.sources.items():
            feeders.setdefault(taker, []).append(giver)
        done: dict[int, OldLayer] = {}
        open_: set[int] = set()
        for root in self.graph.layers:
            stack = [(root.id, iter(feeders.get(root.id, ())))]
            if root.id in done:
                continue
            open_.add(root.id)
            while stack:
                number, rest = stack[-1]
                feeder = next(rest, None)
                if feeder is None:
                    stack.pop()
                    open_.discard(number)
                    done[number] = by_id[number]
                elif feeder in open_:
                    names = [f'"{by_id[one].name}"' for one, _ in stack][-12:]
                    raise IRError(
                        f"layers feed each other in a cycle: {' <- '.join(names)}", root.where
                    )
                elif feeder not in done:
                    open_.add(feeder)
                    stack.append((feeder, iter(feeders.get(feeder, ()))))
        return list(done.values())


class Walk:
    """The layers of one graph, the network's or a body's, in the order of the data."""

    def __init__(
        self,
        upgrade: Upgrade,
        wiring: Wiring,
        builder: Builder,
        given: Mapping[Place, Output],
        means: Preprocess | None = None,
        *,
        depth: int = 0,
    ) -> None:
        self.upgrade, self.wiring, self.builder, self.means = upgrade, wiring, builder, means
        #: How many bodies it is within.
        self.depth = depth
        settings = upgrade.settings
        self.scene = Scene(
            upgrade.version, builder, upgrade.model.weights, upgrade.model.bin_place,
            settings.need_weights, upgrade.origin, self,
        )  # fmt: skip
        #: What feeds input ports from outside of the graph.
        self.given = given
        self.outer = isinstance(builder.graph, Model)
        self.values: dict[Place, Output] = {}
        self.read: set[Place] = set(wiring.sources.values())

    def walk(self) -> None:
        """Upgrade every layer."""
        reading = self.upgrade.reading
        try:
            order = self.wiring.order()
        except IRError as error:
            reading.report(error, self.upgrade.root)
            return
        for layer in order:
            made = reading.guard(layer.element, layer.where, self.layer, layer)
            if made is None:
                made = self.stand_in(layer)
            for port, one in zip(layer.outputs, made, strict=True):
                self.values[layer.id, port.id] = one

    def layer(self, layer: OldLayer) -> list[Output]:
        """One layer: its outputs, in order."""
        inputs = [self.feed(layer, index) for index in range(len(layer.inputs))]
        entry = find(layer.type)
        if entry is None:
            return self.no_counterpart(layer, inputs, f"no operation stands for {layer.type}")
        for index in range(len(layer.outputs)):
            if layer.output_precision(index) == "Q78":
                raise IRError("precision Q78 is of fixed-point numbers that no CPU ran")
        old = Old(layer, entry, self.scene, inputs)
        try:
            made = entry.convert(old)
        except NoCounterpartError as error:
            return self.no_counterpart(layer, inputs, error.message)
        self.unread(old)
        outputs = [made] if isinstance(made, Output) else list(made)
        if len(outputs) < len(layer.outputs):
            raise IRError(
                f"{layer.type} gives {len(outputs)} outputs, the file declares "
                f"{len(layer.outputs)}"
            )
        outputs = outputs[: len(layer.outputs)]
        settled = [self.settle(old, index, one) for index, one in enumerate(outputs)]
        self.information(old, settled)
        return settled

    def information(self, old: Old, outputs: Sequence[Output]) -> None:
        """Keep what a layer and its outputs say besides at the layers that are made of them.

        Documents of these versions have no such parts; what somebody has added is not lost.
        """
        element = old.layer.element
        said = element.find("rt_info")
        if said is not None:
            made = [one.layer for one in outputs if one.layer.element is element] + old.made[-1:]
            if made:
                made[0].rt_info = read_info(said)
            else:
                old.remark("nothing is left of it that its rt_info could stand at")
        for port, one in zip(element.iterfind("output/port"), outputs, strict=False):
            said = port.find("rt_info")
            if said is not None and one.layer.element is element:
                one.layer.outputs[one.index].rt_info = read_info(said)

    def feed(self, layer: OldLayer, index: int) -> Output:
        """What feeds an input; an input of the network, where no edge does."""
        port = layer.inputs[index]
        place = (layer.id, port.id)
        source = self.wiring.sources.get(place)
        if source is not None:
            found = self.values.get(source)
            if found is None:
                raise IRError(f"input {index} is fed by layer {source[0]}, which gives nothing")
            return found
        if place in self.given:
            return self.given[place]
        if not self.outer:
            raise IRError(f"input {index} is fed by nothing, and by no line of the port map")
        name = layer.name if len(layer.inputs) == 1 else f"{layer.name}.{index}"
        made = self.parameter(layer, name, port.precision or layer.precision, port.dims)
        told = (
            f'input {index} is fed by nothing: it is the input "{made.layer.name}" of the network'
        )
        self.upgrade.origin.remarks.append(
            Remark("changed", told, layer.where, element=layer.element)
        )
        return self.mean_free(layer, port.id, made)

    def parameter(
        self, layer: OldLayer, name: str, precision: str | None, dims: Sequence[int]
    ) -> Output:
        """An input of the network."""
        if precision == "Q78":
            raise IRError("precision Q78 is of fixed-point numbers that no CPU ran")
        kind = TYPES[precision or "FP32"]
        made = self.builder.parameter(name, kind, dims)
        made.layer.made_of(layer.element)
        return made

    def mean_free(self, layer: OldLayer, port: int, made: Output) -> Output:
        """An input minus its mean values, where the document has any for it."""
        means = self.means
        if means is None or (means.layer, means.port) != (layer.id, port):
            return made
        if self.upgrade.settings.keep_preprocess:
            means.keep(self.upgrade.note)
            return made
        return means.apply(made, self.scene, self.upgrade.note)

    def settle(self, old: Old, index: int, made: Output) -> Output:
        """An output with the declared type, its sizes compared, its name given."""
        layer = old.layer
        precision = layer.output_precision(index)
        # A calibrated layer is called I8 and gives real numbers; a constant has the type of its
        # bytes, and its port may have that of the network.
        if precision not in (None, "I8", "BIN") and layer.type.lower() != "const":
            made = old.cast(made, TYPES[precision])
        declared = layer.outputs[index].dims
        shape = made.tensor.shape
        if not _may_be(shape, declared):
            old.remark(
                f"output {index} is declared as {list(declared)}, its operation gives "
                f"[{shape}]", "unlike", "the sizes of the operation are taken",
            )  # fmt: skip
        elif not shape.is_static:
            made = Output(
                made.layer,
                made.index,
                [
                    Tensor(made.tensor.type, Shape(declared)) if i == made.index else one.tensor
                    for i, one in enumerate(made)
                ],
            )
            made.layer.outputs[made.index].dims = tuple(declared)
        if layer.type.lower() == "input":
            return made  # the Parameter has the name, and not what takes the means off
        if index == 0 and made.layer in old.made:
            made.layer.name = layer.name
        if self.outer:
            made.named(self.data_name(layer, index))
        return made

    def data_name(self, layer: OldLayer, index: int) -> str:
        """What the old runtime called an output."""
        return layer.name if len(layer.outputs) == 1 else f"{layer.name}.{index}"

    def unread(self, old: Old) -> None:
        """Report attributes that no reader of these versions knew."""
        layer = old.layer
        known = old.entry.attributes
        for name in layer.attributes:
            if name in known or name in LEFTOVERS or name in old.entry.idle:
                continue
            import difflib

            near = difflib.get_close_matches(name, [n for n in known if n not in old.used], 1)
            old.remark(
                f"attribute {name} is not read",
                "ignored",
                f"{near[0]} is perhaps meant" if near else None,
            )

    def no_counterpart(self, layer: OldLayer, inputs: list[Output], why: str) -> list[Output]:
        """A layer that stays as it is, and cannot be run."""
        self.upgrade.origin.remarks.append(
            Remark(
                "missing", why, layer.where, "the model is read, and refuses to run",
                element=layer.element,
            )
        )  # fmt: skip
        return self.stand_in(layer, inputs)

    def stand_in(self, layer: OldLayer, inputs: Iterable[Output] = ()) -> list[Output]:
        """An unknown layer with the declared outputs."""
        tensors = [
            Tensor(
                TYPES.get(layer.output_precision(i) or "FP32", ElementType.F32),
                Shape(port.dims if len(port.dims) <= MOST_AXES else None),  # told where it is read
            )
            for i, port in enumerate(layer.outputs)
        ]
        inputs = list(inputs)
        made = Layer(
            layer.type, f"v{self.upgrade.version}", layer.name, data=layer.attributes,
            inputs=[Port.of(i, one.tensor) for i, one in enumerate(inputs)],
            outputs=[Port.of(len(inputs) + i, tensor) for i, tensor in enumerate(tensors)],
        )  # fmt: skip
        made.made_of(layer.element)
        self.builder.graph.add(made)
        for index, one in enumerate(inputs):
            self.builder.graph.connect((one.layer, one.index), made, index)
        outputs = [Output(made, index, tensors) for index in range(len(tensors))]
        if self.outer:
            for index, one in enumerate(outputs):
                one.named(self.data_name(layer, index))
        return outputs

    def results(self) -> None:
        """Make a Result of each output that no layer reads."""
        for layer in self.wiring.graph.layers:
            for index, port in enumerate(layer.outputs):
                place = (layer.id, port.id)
                if place in self.read or place not in self.values:
                    continue
                if layer.type.lower() in ("input", "const"):
                    why = "nobody reads what it gives, and it computes nothing: it is no output"
                    self.upgrade.origin.remarks.append(
                        Remark("changed", why, layer.where, element=layer.element)
                    )
                    continue
                name = self.data_name(layer, index)
                made = self.builder.result(self.values[place], name=f"{name}/result", names=())
                made.output_names = name.replace(",", "\\,")
                made.made_of(layer.element)


def _may_be(shape: Shape, declared: Sequence[int]) -> bool:
    """Whether an inferred shape can be the declared one."""
    if shape.rank is None:
        return True
    found = dims_of(shape)
    return len(found) == len(declared) and all(
        size in (-1, told) for size, told in zip(found, declared, strict=True)
    )
