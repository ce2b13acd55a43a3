"""IR6xx: what the operations make of their inputs, against what the file declares."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....layers.budget import budget
from ....layers.sequence_recurrent import Along, Recurrent
from ....layers.value_bounds import CARRIED
from ....schemas import ElementType, IRError, LimitError, Shape, Tensor, Where, placed
from ....schemas.packing import unpack
from ....schemas.shapes import compatible
from ...document import BODIES_OF, Graph, Layer, Port
from ...inference import infer_bodies, infer_graph
from . import attributes, known, weights
from .loose import Inferences, LooseGraph, LooseLayer, LooseModel, LoosePort, Tensors, whole
from .note import Note


def rules(model: LooseModel) -> Iterator[Note]:
    """Everything of this group; a layer of a body is refused once, by it or by what it is in."""
    refused: set[LooseLayer] = set()
    for graph in model:
        for note in graph.inferred.notes:
            if note.code == "IR601" and isinstance(note.node, LooseLayer):
                if note.node in refused:
                    continue
                refused.add(note.node)
            yield note


def infer(graph: LooseGraph) -> Inferences:
    """What each layer of a graph gives; after an error the declared ports count."""
    tensors: Tensors = {}
    with np.errstate(all="ignore"):
        notes = tuple(_graph(graph, tensors))
    return Inferences(tensors, notes)


def _graph(graph: LooseGraph, tensors: Tensors) -> Iterator[Note]:
    """One graph, each layer after what feeds it."""
    allowed = budget()
    for node in graph.order:
        allowed.check_time()
        yield from arity(node)
        given = [(pin, graph.fed(node, pin, tensors)) for pin in node.inputs]
        yield from fed(node, given)
        yield from pads(node, given)
        yield from hidden(node, given)
        yield from lengths(node, given)
        found: tuple[Tensor, ...] | None = None
        try:
            with placed(node.where):
                found = outputs(node, given)
        except LimitError:
            raise
        except IRError as error:
            yield _refused(_where(node, error.where), error.message)
        if found is None:
            tensors[node] = tuple(pin.tensor for pin in node.outputs)
            continue
        if node.type != "Result":
            yield from declared_ports(node, found)
        if node.type == "Pad" and given:
            yield from emptied(node, given[0][1], found)
        tensors[node] = found


def _where(node: LooseLayer, place: Where) -> LooseLayer:
    """The layer at which an error was met: the node, or one in its bodies."""

    def is_there(one: LooseLayer) -> bool:
        line = one.element.sourceline
        return (place.layer, place.name, place.line) == (one.id, one.name, line)

    waiting = [node]
    while waiting:
        one = waiting.pop()
        if is_there(one):
            return one
        waiting += [inner for body in one.bodies.values() for inner in body.nodes]
    return node


def _refused(node: LooseLayer, message: str) -> Note:
    name = node.kind.spec() if node.kind is not None else node.type
    return Note(
        "IR601", f"{name} does not take its inputs: {message}", node.element, node,
        hint="mend the attribute or the input that does not fit",
    )  # fmt: skip


def arity(node: LooseLayer) -> Iterator[Note]:
    """The number of inputs, and of outputs that the file declares."""
    op = known.find_operation(node.type, node.version)
    if op is None:
        return
    count = len(node.inputs)
    _, least, most = op.arity()
    if count < least or (most is not None and count > most):
        many = str(least) if least == most else f"{least} to {'any' if most is None else most}"
        yield Note(
            "IR602", f"{op.spec()} has {count} inputs, it takes {many}", node.element, node,
            hint="add or remove <port> lines and their edges",
        )  # fmt: skip
    if op.xml_type in ("Result", "Assign"):
        return  # their outputs are not used
    fewest, most = op.output_count
    if most is not None and len(node.outputs) > most:
        yield _surplus(node, op.spec(), most)
    elif not node.outputs and fewest:
        yield Note(
            "IR609", f"{op.spec()} declares no output port, it has {fewest}", node.element, node,
            hint="add an <output> with its ports",
        )  # fmt: skip


def _surplus(node: LooseLayer, name: str, most: int) -> Note:
    """That there are more output ports than the operation has."""
    v10 = node.graph.model.version == 10
    return Note(
        "IR608" if v10 else "IR603",
        f"{name} declares {len(node.outputs)} output ports, it has {most}",
        node.outputs[most].element, node, hint="remove the port",
    )  # fmt: skip


def fed(node: LooseLayer, given: list[tuple[LoosePort, Tensor]]) -> Iterator[Note]:
    """The sizes and types an input port declares against those that come in."""
    for pin, tensor in given:
        sizes = pin.sizes
        if sizes is not None:
            problem = differs(sizes, tensor.shape)
            if problem:
                yield Note(
                    "IR604", f"input port {pin.id} declares {_sizes(sizes)}, {tensor.shape} comes "
                    f"in{problem}", pin.element, node, hint="vinoir check --fix writes what is "
                    "inferred",
                )  # fmt: skip
        kind = pin.type
        if types_differ(kind, tensor.type):
            yield Note(
                "IR605", f"input port {pin.id} declares {kind.port}, {tensor.type.port} comes in",
                pin.element, node, "precision", f'write precision="{tensor.type.port}"',
            )  # fmt: skip


def pads(node: LooseLayer, given: list[tuple[LoosePort, Tensor]]) -> Iterator[Note]:
    """Interpolate's pads, of which OpenVINO ignores those beyond the axes."""
    if node.type != "Interpolate" or not given:
        return
    rank = given[0][1].shape.rank
    for name in ("pads_begin", "pads_end"):
        values = getattr(node.op, name, None)
        if rank is not None and isinstance(values, tuple) and len(values) > rank:
            yield Note(
                "IR410", f"{name} has {len(values)} values, the input {rank} axes", node.place,
                node, name, "write one for each axis",
            )  # fmt: skip


def emptied(node: LooseLayer, data: Tensor, found: tuple[Tensor, ...]) -> Iterator[Note]:
    """A Pad whose margins cut off all there is."""
    if data.shape.rank is None or not found or found[0].shape.rank != data.shape.rank:
        return
    for axis, (before, after) in enumerate(zip(data.shape, found[0].shape, strict=True)):
        if after == 0 and before != 0:
            yield Note(
                "IR612", f"the margins cut off all of axis {axis}, which has {before}: nothing is "
                "left", node.element, node, hint="negative margins cut off: mend them",
            )  # fmt: skip


def hidden(node: LooseLayer, given: list[tuple[LoosePort, Tensor]]) -> Iterator[Note]:
    """The hidden size that a recurrent layer names against that of its state and weights."""
    op = node.op
    if not isinstance(op, Recurrent):
        return
    said, names = op.hidden_size, op.arity()[0]
    for name, (pin, tensor) in zip(names, given, strict=False):
        shape = tensor.shape
        if not shape.rank:
            continue
        state = name.startswith("initial_") or name == "r"
        axis = -1 if state else (shape.rank - 2 if name == "w" else None)
        if axis is None or not -shape.rank <= axis < shape.rank:
            continue
        many = 1 if state else op.gates
        if not compatible(shape[axis], said * many):
            rows = f"{shape[axis]} rows for {many} gates" if many > 1 else f"size {shape[axis]}"
            yield Note(
                "IR611", f"hidden_size is {said}, {name} (port {pin.id}) has {rows}", node.place,
                node, "hidden_size", "OpenVINO takes the one of the weights",
            )  # fmt: skip
            return


def lengths(node: LooseLayer, given: list[tuple[LoosePort, Tensor]]) -> Iterator[Note]:
    """Lengths of sequences where OpenVINO goes through all steps, as the sizes are not known."""
    op = node.op
    if not isinstance(op, Along) or not given or given[0][1].shape.is_static:
        return
    # Others, and those that clip, it makes a loop of, which looks at the lengths.
    usual = op.xml_type == "RNNSequence" or tuple(map(str.lower, op.activations)) == op.usual
    at = op.arity()[0].index("sequence_lengths")
    if not usual or op.clip or at >= len(given) or not _are_given(node, at):
        return
    yield Note(
        "IR613", f"X is {given[0][1].shape}: OpenVINO's CPU does not look at sequence_lengths of "
        f"{op.spec()} where sizes are not known, and goes through all steps", node.element, node,
        hint="write the sizes in: vinoir infer MODEL --input NAME=SIZES -o FIXED.xml",
    )  # fmt: skip


def _are_given(node: LooseLayer, index: int) -> bool:
    """Whether values that the model is given, not their sizes alone, come into an input."""
    if node.graph.owner is not None:
        return False  # what a body is given may be sizes
    waiting, seen = [(node, [index])], {node}
    while waiting:
        one, which = waiting.pop()
        for wire in (one.sources.get(number) for number in which):
            source = wire.source if wire is not None else None
            if source is None or source in seen or source.type == "ShapeOf":
                continue
            if source.type in ("Parameter", "ReadValue"):
                return True
            seen.add(source)
            waiting.append((source, list(source.sources)))
    return False


def outputs(node: LooseLayer, given: list[tuple[LoosePort, Tensor]]) -> tuple[Tensor, ...] | None:
    """The outputs of one layer, None where the file is to be trusted."""
    if node.type in BODIES_OF:
        return bodied(node, [tensor for _, tensor in given])
    if node.op is None or node.kind is None:
        return None
    if node.kind.xml_type == "Const":
        return constant(node)
    if node.kind.xml_type == "Parameter":
        return node.op.infer()
    tensors = [tensor for _, tensor in given]
    _names, least, most = node.kind.arity()
    if len(tensors) < least or (most is not None and len(tensors) > most):
        return None  # told
    return node.op.infer_outputs(tensors)


def bodied(node: LooseLayer, tensors: list[Tensor]) -> tuple[Tensor, ...] | None:
    """The outputs of a layer with bodies, where the strict reader reads them."""
    layer = _strict(node)
    return infer_bodies(layer, tensors, infer_graph) if layer is not None else None


def _strict(node: LooseLayer) -> Layer | None:
    """A layer with bodies as the strict reader reads it, also one that is in a body itself."""
    graph, owner = node.graph, node.graph.owner
    held: Graph | None = graph.model.strict
    if owner is not None:
        try:
            outer = _strict(owner)
        except IRError:
            return None  # told of the owner
        tags = [tag for tag, body in owner.bodies.items() if body is graph]
        held = outer.bodies.get(tags[0]) if outer is not None else None
    if held is None or node.id is None or node.type == "":
        return None
    layer = held.layer(node.id)
    return layer if layer.bodies else None


def constant(node: LooseLayer) -> tuple[Tensor, ...] | None:
    """A constant with its value where it is small and its bytes are there."""
    kind, shape = weights.element_type(node), weights.sizes(node)
    if kind is None or shape is None or kind.is_dynamic or any(size < 0 for size in shape):
        return None
    count = 1
    for size in shape:
        count *= size
    if count > 2**63 - 1:
        return None
    held = node.graph.model.weights
    begin, size_ = (whole(node.data.get(name)) for name in ("offset", "size"))
    if count > CARRIED or held is None or begin is None or size_ is None:
        return (Tensor(kind, Shape(shape)),)
    needed = weights.least_bytes(kind, shape)
    if kind is ElementType.STRING or needed is None or size_ < needed:
        return (Tensor(kind, Shape(shape)),)
    if not held.reaches(begin + size_):
        return (Tensor(kind, Shape(shape)),)
    return (Tensor(kind, Shape(shape), unpack(held.view(begin, size_), kind, shape)),)


def declared_ports(node: LooseLayer, found: tuple[Tensor, ...]) -> Iterator[Note]:
    """The sizes and types that output ports declare against those that are inferred."""
    lost = [] if node.kind is None else list(attributes.without(node.data, node.kind))
    counted = node.kind is not None and node.kind.output_count[1] is None
    if counted and node.type not in BODIES_OF and len(node.outputs) > len(found):
        # How many there are, the attributes say, as those of Split do.
        yield _surplus(node, node.kind.spec() if node.kind else node.type, len(found))
    for pin, tensor in zip(node.outputs, found, strict=False):
        sizes = pin.sizes
        if sizes is not None:
            problem = differs(sizes, tensor.shape)
            if problem:
                what = f"output port {pin.id} declares {_sizes(sizes)}, inferred is {tensor.shape}"
                if lost and sizes:  # what the file lacks was something else than OpenVINO takes
                    yield Note(
                        "IR610", f"{what}{problem}: {' and '.join(lost)} of the layer must have "
                        "been something else than OpenVINO takes without", pin.element, node,
                        hint=f"add {', '.join(lost)}",
                    )  # fmt: skip
                    continue
                yield Note(
                    "IR606", what + problem, pin.element, node,
                    hint="vinoir check --fix writes what is inferred",
                )  # fmt: skip
        kind = pin.type
        if types_differ(kind, tensor.type):
            yield Note(
                "IR607", f"output port {pin.id} declares {kind.port}, inferred is "
                f"{tensor.type.port}", pin.element, node, "precision",
                f'write precision="{tensor.type.port}"',
            )  # fmt: skip


def contradicts(port: Port, tensor: Tensor) -> bool:
    """Whether what an output port declares and what is inferred exclude each other."""
    return types_differ(port.type, tensor.type) or differs(port.dims, tensor.shape) is not None


def types_differ(one: ElementType, other: ElementType) -> bool:
    """Whether both types are known, and not the same."""
    return not one.is_dynamic and not other.is_dynamic and one is not other


def differs(sizes: tuple[int, ...], shape: Shape) -> str | None:
    """What is contradictory between declared sizes and a shape."""
    if shape.rank is None or shape == sizes:
        return None
    if not sizes:
        # Without sizes the rank may be unknown; only where nothing is, the file means a scalar.
        return ": the sizes are missing" if shape.rank else None
    if len(sizes) != shape.rank:
        return f": {len(sizes)} axes against {shape.rank}"
    for axis, (size, other) in enumerate(zip(sizes, shape, strict=True)):
        if size >= 0 and not compatible(size, other):
            return f": axis {axis} differs"
    return None


def _sizes(sizes: tuple[int, ...]) -> str:
    return ",".join("?" if size < 0 else str(size) for size in sizes) or "no sizes"
