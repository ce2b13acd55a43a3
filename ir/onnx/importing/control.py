"""If, Loop and Scan: bodies within the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....schemas import ANY, ElementType, IRError, Shape, Tensor, UnsupportedError
from ...document import BackEdge, Builder, Graph, Layer, Output, Port, PortMap
from ...inference import infer_bodies, infer_graph
from .host import Host
from .listed import Growing, Listed
from .node import Made, Node, converts, normal
from .pooling import scalar
from .sequences import piled, stacked

#: How often a body is made anew until the sizes it keeps are those it gives.
_ROUNDS = 8


class Body(NamedTuple):
    """A body that was made: its graph, its outer inputs, its Parameters and Results."""

    graph: Graph
    captured: list[tuple[Output, Output]]
    parameters: list[Output]
    results: list[Layer]
    #: Of each sequence that it has: what a turn adds, if anything.
    added: list[Layer | None]


def build(
    importer: Host,
    proto: Any,
    given: Sequence[Tensor | None],
    *,
    wrap: Sequence[int | None] = (),
    cut: Sequence[int | None] = (),
    scalars: int = 0,
) -> Body:
    """Make a body.

    Args:
        importer: What is converting the graph around it.
        proto: The graph of the body.
        given: Types and shapes of its inputs; None of a sequence, which it may make longer.
        wrap: For each output, the axis that is added after the body, for turns to be stacked on.
        cut: For each input, the axis that is taken away before the body sees it.
        scalars: How many inputs come first that are scalars, and which a body may take as lists
            of one; with them its first output, the condition.
    """
    if len(given) != len(proto.input):
        raise IRError(f"the body has {len(proto.input)} inputs, {len(given)} are given")
    with importer.body(proto) as scope:
        parameters = []
        for index, (value, tensor) in enumerate(zip(proto.input, given, strict=True)):
            if tensor is None:
                scope.values[value.name] = Growing(index)
                continue
            made = scope.builder.parameter(value.name, tensor.type, tensor.shape)
            parameters.append(made)
            axis = cut[index] if index < len(cut) else None
            if axis is not None:
                axes = scope.builder.constant(np.array([axis]))
                made = scope.builder.add("Squeeze", "opset1", [made, axes])
            if index < scalars and len(value.type.tensor_type.shape.dim) == 1:
                made = _reshaped(scope.builder, made, [1])
            scope.values[value.name] = made
        importer.walk(proto)
        results: list[Layer] = []
        added: list[Layer | None] = []
        for index, value in enumerate(proto.output):
            found = importer.lookup(value.name)
            if found is None:
                raise IRError(f'output "{value.name}" of the body is a tensor that nothing makes')
            axis = wrap[index] if index < len(wrap) else None
            # The states of a Loop are behind two inputs, and behind one output.
            if given[index + 1 : index + 2] == [None]:
                more = _added(found, index + 1, value.name)
                added.append(None if more is None else _result(scope.builder, more, value.name, 0))
                continue
            if isinstance(found, Listed):
                raise UnsupportedError(
                    f'the body gives "{value.name}", a sequence: IR has tensors only'
                )
            if scalars and index == 0 and found.tensor.rank != 0:
                found = _reshaped(scope.builder, found, [])
            results.append(_result(scope.builder, found, value.name, axis))
        scope.builder.graph.prune()
        return Body(scope.builder.graph, scope.captured, parameters, results, added)


def _added(found: Output, place: int, name: str) -> Output | None:
    """What a turn adds to a sequence, if anything, by what it hands on in its place."""
    if isinstance(found, Growing) and found.place == place:
        return found.added
    what = "another sequence" if isinstance(found, Listed) else "a tensor"
    raise UnsupportedError(f'the body gives "{name}", {what} in the place of the one it has')


def _result(builder: Builder, x: Output, name: str, axis: int | None) -> Layer:
    """What gives an output of a body, with an axis for turns to be stacked on."""
    if axis is not None:
        rank = x.tensor.rank
        if rank is not None and not -rank - 1 <= axis <= rank:
            raise IRError(f'scan_output_axes has {axis}, "{name}" is stacked to {rank + 1} axes')
        x = builder.add("Unsqueeze", "opset1", [x, builder.constant(np.array([axis]))])
    return builder.result(x, name=f"{name}/result", names=())


def _reshaped(builder: Builder, x: Output, shape: Sequence[int]) -> Output:
    sizes = builder.constant(np.array(shape, np.int64))
    return builder.add("Reshape", "opset1", [x, sizes], special_zero=False)


def place(
    node: Node,
    kind: str,
    opset: str,
    inputs: Sequence[Output],
    bodies: dict[str, tuple[Graph, PortMap]],
    outputs: int,
    edges: Sequence[BackEdge] = (),
) -> list[Output]:
    """A layer with bodies, its outputs inferred."""
    ports = [Port.of(index, one.tensor) for index, one in enumerate(inputs)]
    layer = Layer(kind, opset, node.name, inputs=ports)
    for name, (graph, wiring) in bodies.items():
        layer.add_body(name, graph, wiring)
    layer.back_edges = list(edges)
    tensors = infer_bodies(layer, [one.tensor for one in inputs], infer_graph)
    if len(tensors) != outputs:
        raise IRError(f"{len(tensors)} outputs, {outputs} are needed")
    layer.outputs = [Port.of(len(inputs) + i, tensor) for i, tensor in enumerate(tensors)]
    builder = node.importer.builder
    builder.graph.add(layer)
    for index, one in enumerate(inputs):
        builder.graph.connect((one.layer, one.index), layer, index)
    builder.rename(layer, node.name)
    return [Output(layer, index, list(tensors)) for index in range(len(tensors))]


@converts("If")
def if_(node: Node) -> Made:
    """The branch itself where the condition is known, else If-8."""
    condition = node.single(0, "the condition")
    branches = [node.attribute("then_branch"), node.attribute("else_branch")]
    if condition is not None:
        return node.importer.inline(branches[0 if condition else 1], node.name)
    inputs = [scalar(node, node[0])]
    bodies: dict[str, tuple[Graph, PortMap]] = {}
    made = [build(node.importer, branch, []) for branch in branches]
    count = len(inputs) + sum(len(body.captured) for body in made)
    for name, body in zip(("then_body", "else_body"), made, strict=True):
        wiring = PortMap()
        for outer, inner in body.captured:
            wiring.add("input", external_port_id=len(inputs), internal_layer_id=inner.layer.id)
            inputs.append(outer)
        for index, result in enumerate(body.results):
            wiring.add("output", external_port_id=count + index, internal_layer_id=result.id)
        bodies[name] = body.graph, wiring
    return place(node, "If", "opset8", inputs, bodies, len(node.outputs))


def settled(importer: Host, proto: Any, given: list[Tensor | None], kept: range, first: int,
            **more: Any) -> Body:  # fmt: skip
    """A body whose kept inputs are as loose as what it gives for the next turn.

    Args:
        importer: What is converting the graph around it.
        proto: The graph of the body.
        given: Types and shapes of its inputs.
        kept: Which inputs are kept from turn to turn.
        first: The output that feeds the first of them.
        more: As of ``build``.
    """
    for _ in range(_ROUNDS):
        body = build(importer, proto, given, **more)
        changed = False
        held = [(index, one) for index in kept if (one := given[index]) is not None]
        for offset, (index, tensor) in enumerate(held):
            loose = _loosened(tensor.shape, body.results[first + offset].inputs[0].shape)
            if loose != tensor.shape:
                given[index] = Tensor(tensor.type, loose)
                changed = True
        if not changed:
            return body
    raise UnsupportedError("the sizes that the body keeps do not settle")


def _loosened(held: Shape, fed: Shape) -> Shape:
    if held.rank is None or fed.rank is None or held.rank != fed.rank:
        return Shape.UNKNOWN
    return Shape(a if a == b else ANY for a, b in zip(held, fed, strict=True))


@converts("Loop")
def loop(node: Node) -> Made:
    """Loop-5."""
    proto = node.attribute("body")
    states = [node[index] for index in range(2, len(node.inputs))]
    scanned = len(proto.output) - 1 - len(states)
    if scanned < 0:
        raise IRError(f"the body gives {len(proto.output)} outputs for {len(states)} states")
    tensors = [one for one in states if not isinstance(one, Listed)]
    count = _trips(node)
    condition = scalar(node, node[1]) if node.get(1) is not None else node.constant(np.array(True))
    given = [
        Tensor("i64", ()),
        Tensor(ElementType.BOOLEAN, ()),
        *(
            None if isinstance(one, Listed) else Tensor(one.tensor.type, one.tensor.shape)
            for one in states
        ),
    ]
    wrap: list[int | None] = [None] * (1 + len(states)) + [0] * scanned
    body = settled(node.importer, proto, given, range(2, len(given)), 1, wrap=wrap, scalars=2)
    inputs, wiring = [count, condition, *tensors], PortMap()
    for index, one in enumerate(body.parameters[1:], 1):
        wiring.add("input", external_port_id=index, internal_layer_id=one.layer.id)
    for outer, inner in body.captured:
        wiring.add("input", external_port_id=len(inputs), internal_layer_id=inner.layer.id)
        inputs.append(outer)
    longer = [one for one in body.added if one is not None]
    stacks = scanned + len(longer)
    results = [*body.results[1:], *longer]
    _outputs(wiring, results, len(inputs), len(tensors), [(0, False)] * stacks)
    turn = body.parameters[0].layer.id
    wiring.add("input", external_port_id=-1, internal_layer_id=turn, purpose="current_iteration")
    wiring.add(
        "output", external_port_id=-1, internal_layer_id=body.results[0].id,
        purpose="execution_condition",
    )  # fmt: skip
    pairs = zip(body.results, body.parameters[1:], strict=False)
    edges = [BackEdge(result.id, one.layer.id) for result, one in pairs]
    bodies = {"body": (body.graph, wiring)}
    made = place(node, "Loop", "opset5", inputs, bodies, len(tensors) + stacks, edges)
    return _in_order(node, states, made, body.added)


def _trips(node: Node) -> Output:
    """How many turns there are at the most; IR's word for any number is -1, ONNX has none."""
    if node.get(0) is None:
        return node.ints64(-1)
    count = scalar(node, node[0])
    value = count.tensor.value
    if value is None:
        return node.add("Maximum-1", count, node.like(0, count))
    most = int(value.reshape(()))
    return node.ints64(-1 if most == np.iinfo(np.int64).max else max(most, 0))


def _in_order(
    node: Node, states: Sequence[Output], made: Sequence[Output], added: Sequence[Layer | None]
) -> list[Output]:
    """The outputs of a Loop as the node has them; last in the layer is what sequences got."""
    kept = len(states) - len(added)
    last = len(made) - sum(one is not None for one in added)
    tensors, behind, grown = iter(made[:kept]), iter(made[last:]), iter(added)
    outputs: list[Output] = []
    for one in states:
        if not isinstance(one, Listed):
            outputs.append(next(tensors))
        elif next(grown) is None:
            outputs.append(one)
        else:
            before = [stacked(node, one)] if not one.is_counted or one.items else []
            outputs.append(Listed(stacked=piled(node, [*before, next(behind)])))
    return [*outputs, *made[kept:last]]


def _outputs(
    wiring: PortMap, results: Sequence[Layer], first: int, states: int,
    stacks: Sequence[tuple[int, bool]],
) -> None:  # fmt: skip
    """The last states, then what is stacked along an axis, perhaps from the end."""
    for index, result in enumerate(results):
        port = first + index
        if index < states:
            wiring.add("output", external_port_id=port, internal_layer_id=result.id)
            continue
        axis, back = stacks[index - states]
        wiring.add(
            "output", axis=axis, external_port_id=port, internal_layer_id=result.id,
            start=-1 if back else 0, end=0 if back else -1, stride=-1 if back else 1, part_size=1,
        )  # fmt: skip


@converts("Scan", since=9)
def scan(node: Node) -> Made:
    """TensorIterator-1."""
    proto, sliced = node.attribute("body"), node.integer("num_scan_inputs")
    kept = len(node.inputs) - sliced
    inputs = [node[index] for index in range(len(node.inputs))]
    stacked = len(proto.output) - kept
    if sliced < 1 or kept < 0 or stacked < 0:
        raise IRError(f"{sliced} of {len(inputs)} inputs are scanned")
    axes_in, back_in = _scanned(node, "input", sliced)
    axes_out, back_out = _scanned(node, "output", stacked)
    given: list[Tensor | None] = [Tensor(x.tensor.type, x.tensor.shape) for x in inputs]
    cut: list[int | None] = [None] * kept
    for index, axis in enumerate(axes_in):
        kind, shape = inputs[kept + index].tensor.type, inputs[kept + index].tensor.shape
        if shape.rank is None:
            raise UnsupportedError(f"the rank of input {kept + index} is not known")
        if not -shape.rank <= axis < shape.rank:
            raise IRError(
                f"scan_input_axes has {axis}, input {kept + index} has the shape [{shape}]"
            )
        cut.append(normal(axis, shape.rank))
        given[kept + index] = Tensor(kind, shape.with_size(axis, 1))
    wrap: list[int | None] = [None] * kept + axes_out
    body = settled(node.importer, proto, given, range(kept), 0, wrap=wrap, cut=cut)
    wiring = PortMap()
    for index, one in enumerate(body.parameters):
        if index < kept:
            wiring.add("input", external_port_id=index, internal_layer_id=one.layer.id)
            continue
        _sliced(wiring, one, index, cut[index] or 0, back_in[index - kept])
    for outer, inner in body.captured:
        wiring.add("input", external_port_id=len(inputs), internal_layer_id=inner.layer.id)
        inputs.append(outer)
    stacks = [
        (_from_front(axis, result), back)
        for axis, back, result in zip(axes_out, back_out, body.results[kept:], strict=True)
    ]
    _outputs(wiring, body.results, len(inputs), kept, stacks)
    pairs = zip(body.results, body.parameters[:kept], strict=False)
    edges = [BackEdge(result.id, one.layer.id) for result, one in pairs]
    bodies = {"body": (body.graph, wiring)}
    return place(node, "TensorIterator", "opset1", inputs, bodies, kept + stacked, edges)


def _from_front(axis: int, result: Layer) -> int:
    """The axis that turns are stacked on, which counts from the front in IR."""
    rank = result.inputs[0].shape.rank
    if rank is None and axis < 0:
        raise UnsupportedError(
            f'scan_output_axes has {axis}, the rank of "{result.name}" is not known',
            hint="count the axis from the front",
        )
    return axis if rank is None else normal(axis, rank)


def _scanned(node: Node, side: str, count: int) -> tuple[list[int], list[bool]]:
    """Along which axis each scanned input or output goes, and whether from its end."""
    lists = []
    for what in ("axes", "directions"):
        name = f"scan_{side}_{what}"
        given = node.integers(name) or [0] * count
        if len(given) != count:
            raise IRError(
                f"{name} has {len(given)} entries, the number of scanned {side}s is {count}"
            )
        lists.append(given)
    for one in lists[1]:
        if one not in (0, 1):
            raise IRError(f"scan_{side}_directions has {one}, 0 (forward) or 1 are known")
    return lists[0], [bool(one) for one in lists[1]]


@converts("CumProd")
def cum_prod(node: Node) -> Made:
    """TensorIterator-1, a product in each turn."""
    x, rank = node[0], node.rank()
    if not rank:
        raise IRError("the input has no axes")
    if rank > 1:
        node.known(1, "axis")
    given = node.single(1, "axis")
    axis, back = normal(int(given or 0), rank), node.flag("reverse")
    sizes = [1 if index == axis else node.size(x, index) for index in range(rank)]
    ones = node.add("Broadcast-3", node.like(1, x), node.vector(sizes))
    body = Builder(into=Graph())
    shape = x.tensor.shape.with_size(axis, 1)
    former, piece = (body.parameter(name, x.tensor.type, shape) for name in ("former", "piece"))
    product = body.add("Multiply", "opset1", [former, piece])
    given_out = former if node.flag("exclusive") else product
    last, kept = body.result(product, name="last"), body.result(given_out, name="kept")
    wiring = PortMap()
    wiring.add("input", external_port_id=0, internal_layer_id=former.layer.id)
    _sliced(wiring, piece, 1, axis, back)
    _outputs(wiring, [last, kept], 2, 1, [(axis, back)])
    edges = [BackEdge(last.id, former.layer.id)]
    bodies = {"body": (body.graph, wiring)}
    return place(node, "TensorIterator", "opset1", [ones, x], bodies, 2, edges)[1]


def _sliced(wiring: PortMap, given: Output, port: int, axis: int, back: bool) -> None:
    """A turn takes a slice of an input, the first or the last of those that are left."""
    wiring.add(
        "input", axis=axis, external_port_id=port, internal_layer_id=given.layer.id,
        start=-1 if back else 0, end=0 if back else -1, stride=-1 if back else 1, part_size=1,
    )  # fmt: skip
