"""IR3xx: the edges: their ends, cycles, layers that feed nothing."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from ....schemas.printing import shown
from .loose import SINKS, LooseEdge, LooseGraph, LooseLayer, LooseModel, LoosePort
from .note import Note, listed

#: A list of layers in one message is no longer than this.
_MOST = 12


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group."""
    for graph in model:
        yield from ends(graph)
        yield from inputs(graph)
        yield from cycles(graph)
        yield from unreached(graph)
        for node in graph.nodes:
            yield from order(node)
    yield from results(model)


def ends(graph: LooseGraph) -> Iterator[Note]:
    """Both ends of each edge are there; each input has one."""
    taken: dict[LoosePort, LooseEdge] = {}
    for wire in graph.wires:
        from_layer, from_port, to_layer, to_port = wire.numbers
        source, target = wire.source, wire.target
        arrow = f"{from_layer}:{from_port} -> {to_layer}:{to_port}"
        if from_layer is not None and source is None:
            yield Note(
                "IR301",
                f"edge {arrow} comes from layer {from_layer}, which is not there",
                wire.element, target, "from-layer", _layers(graph, from_layer),
            )  # fmt: skip
        elif source is not None and from_port is not None and wire.source_pin is None:
            yield Note(
                "IR302",
                f"edge {arrow} leaves port {from_port} of layer {source.label}, whose output "
                f"ports are {_ids(source.outputs)}",
                wire.element, source, "from-port",
            )  # fmt: skip
        if to_layer is not None and target is None:
            yield Note(
                "IR301", f"edge {arrow} goes to layer {to_layer}, which is not there",
                wire.element, source, "to-layer", _layers(graph, to_layer),
            )  # fmt: skip
        elif target is not None and to_port is not None and wire.target_pin is None:
            yield Note(
                "IR302",
                f"edge {arrow} enters port {to_port} of layer {target.label}, whose input "
                f"ports are {_ids(target.inputs)}",
                wire.element, target, "to-port",
            )  # fmt: skip
        pin = wire.target_pin
        if pin is None or target is None:
            continue
        first = taken.setdefault(pin, wire)
        if first is not wire:
            same = first.numbers == wire.numbers
            code = "IR304" if same else "IR303"
            again = "the same edge stands" if same else f"an edge from layer {first.numbers[0]} is"
            yield Note(
                code,
                f"edge {arrow} enters port {to_port} of layer {target.label} a second time: "
                f"{again} in line {first.element.sourceline}",
                wire.element, target, "to-port", "each input has one edge: remove one",
            )  # fmt: skip


def _layers(graph: LooseGraph, number: int) -> str:
    ids = graph.ids
    if not ids:
        return "there are no layers"
    place = min(bisect_left(ids, number), len(ids) - 1)
    near = min(ids[max(place - 1, 0) : place + 1], key=lambda other: abs(other - number))
    return (
        f"ids are {ids[0]} to {ids[-1]}; the nearest is {near} ({shown(graph.by_id[near].name)})"
    )


def _ids(pins: list[LoosePort]) -> str:
    return listed(pins, text=lambda pin: str(pin.id)) or "none"


def inputs(graph: LooseGraph) -> Iterator[Note]:
    """Every input port is fed."""
    broken = {wire.numbers[2] for wire in graph.wires if wire.target_pin is None}
    fed = {wire.target_pin for wire in graph.wires}
    for node in graph.nodes:
        for pin in node.inputs:
            if pin.index in node.sources or pin.id is None or pin in fed:
                continue
            also = "; an edge to this layer enters no port" if node.id in broken else ""
            yield Note(
                "IR305", f"input port {pin.id} is fed by no edge{also}", pin.element, node,
                hint="add the edge, or remove the port where the input is optional",
            )  # fmt: skip


def cycles(graph: LooseGraph) -> Iterator[Note]:
    """Layers that feed each other."""
    if len(graph.order) == len(graph.nodes):
        return
    done = set(graph.order)
    for start in graph.nodes:
        if start in done:
            continue
        # Everything left either is in a cycle or is fed by one: going backwards finds it.
        path: list[LooseLayer] = []
        index: dict[LooseLayer, int] = {}
        node: LooseLayer | None = start
        while node is not None and node not in done and node not in index:
            index[node] = len(path)
            path.append(node)
            node = next(
                (w.source for w in node.sources.values() if w.source and w.source not in done),
                None,
            )
        if node is not None and node in index:
            ring = path[index[node] :][::-1]
            names = [member.label for member in ring]
            if len(names) > _MOST:
                names = [*names[: _MOST // 2], "…", *names[-_MOST // 2 :]]
            first = min(ring, key=lambda member: member.element.sourceline or 0)
            feeder = next(w for w in first.sources.values() if w.source in index)
            yield Note(
                "IR306", f"layers feed each other in a cycle: {' -> '.join([*names, names[0]])}",
                feeder.element, first, hint="an edge of the cycle is wrong",
            )  # fmt: skip
        done.update(path)


def unreached(graph: LooseGraph) -> Iterator[Note]:
    """Layers that feed no output: OpenVINO leaves them out."""
    if not any(node.type in SINKS for node in graph.nodes):
        return  # told once, instead of for every layer
    cyclic = set(graph.nodes) - set(graph.order)
    # OpenVINO writes the seventh input of LSTMCell-1, which is of no use, without an edge.
    spare = any(node.type == "LSTMCell" for node in graph.nodes)
    for node in graph.nodes:
        if node not in graph.reached and node not in cyclic:
            if spare and node.type == "Const" and not node.users:
                continue
            yield Note(
                "IR307", f"{node.type} feeds no Result and no Assign, OpenVINO leaves it out",
                node.element, node, hint="connect it, or remove it (vinoir check --fix)",
            )  # fmt: skip


def order(node: LooseLayer) -> Iterator[Note]:
    """Ports are numbered in the order they stand."""
    for pins, what in ((node.inputs, "input"), (node.outputs, "output")):
        if len(pins) < 2:
            continue
        ids = [pin.id for pin in pins if pin.id is not None]
        if ids != sorted(ids):
            at = next(n for n in range(1, len(ids)) if ids[n] < ids[n - 1])
            yield Note(
                "IR308",
                f"{what} ports stand in the order {listed(ids)}: "
                "OpenVINO counts lines, not ids",
                pins[at].element, node, hint="put the <port> lines in the order of their ids",
            )  # fmt: skip


def results(model: LooseModel) -> Iterator[Note]:
    """A model has an output."""
    main = model.main
    if main.nodes and not any(node.type in SINKS for node in main.nodes):
        lower = [node for node in main.nodes if node.type.lower() in ("result", "assign")]
        if not lower:
            yield Note(
                "IR309", f"none of the {len(main.nodes)} layers is a Result: the model gives "
                "nothing", main.parts.get("layers", main.element),
                hint="add a Result for each output",
            )  # fmt: skip
    elif not main.nodes and "layers" in main.parts:
        yield Note("IR309", "the model has no layers", main.parts["layers"])
