"""A part of a model as a model of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy

from ...schemas import IRError, Tensor, UsageError
from ..document import Graph, Layer, Model, keep_symbols, listed, tensor_keys
from ..inference import infer_graph
from ..opening import ModelLike, opened
from .outcome import Operated, Surgery, size_of
from .reshaping import Tensors, lost_variables, refuse_lost, settle, tensors_of_bodies
from .transplanting import as_model, body_at, ends_in_order
from .workbench import Source, Workbench, expression


def extract(
    model: ModelLike,
    inputs: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    *,
    layers: str | None = None,
    body: str | None = None,
) -> Operated:
    """Cut a part out of a model.

    A tensor is named by its own name, by its layer where that has one output, or as
    ``LAYER:INDEX``. A tensor that becomes an input keeps its names, and gets the type and shape
    that are inferred of it. A variable is kept whole where it is read in the part.

    Args:
        model: The model, or its path; it is not changed.
        inputs: Tensors that are fed from outside; None: the inputs that the outputs need.
        outputs: Tensors that are handed out; None: the model's outputs.
        layers: In place of both, a regular expression for the names of the layers to keep: what
            they take from others becomes an input, what others take from them an output.
        body: The layer whose body is meant, such as ``loop`` or ``if/then_body``.

    Raises:
        UsageError: A tensor is not there, an output needs an input that is not named, or an
            input feeds no output.
    """
    report = Surgery("extract")
    work = deepcopy(opened(model))
    before, lost = size_of(work), lost_variables(work).keys()
    if body is not None:
        work = _opened(work, body)
        report.note("opened", f'the body of "{body}" is the model now')
    bench = Workbench(work)
    known = infer_graph(work, {})
    fed: list[Source] | None
    if layers is not None:
        if inputs is not None or outputs is not None:
            raise UsageError("layers are chosen by a pattern, or by inputs and outputs: not both")
        fed, handed = _around(bench, layers)
    else:
        keys = tensor_keys(work)  # what a run hands out under a name is meant by it

        def named(name: str) -> Source:
            return Source(*keys[name]) if name in keys else bench.tensor(name)

        fed = None if inputs is None else list(map(named, listed(inputs)))
        handed = [] if outputs is None else list(map(named, listed(outputs)))
    for what, given in (("input", fed or ()), ("output", handed)):
        _refuse_doubles(what, given)
    if outputs is None and layers is None:
        results = work.results
        handed = [bench.feeder(result, 0) for result in results]
    else:
        results = []
    if not handed:
        raise UsageError("a part without outputs computes nothing", hint="name an output")
    kept = _Part(bench, fed, handed)
    kept.gather()
    _cut(bench, kept, results, known, report)
    report.layers = before, size_of(work)
    refuse_lost(work, lost)
    settle(work, report)
    return Operated(work, report)


def _refuse_doubles(what: str, given: Iterable[Source]) -> None:
    seen: set[tuple[int, int]] = set()
    for source in given:
        key = source.layer.id, source.index
        if key in seen:
            raise UsageError(f'{what} "{source.spelled}" is named twice')
        seen.add(key)


class _Part:
    """The layers that outputs need, as far as they are not fed from outside."""

    def __init__(self, bench: Workbench, fed: list[Source] | None, handed: list[Source]) -> None:
        self.bench, self.fed, self.handed = bench, fed, handed
        self.layers: dict[int, Layer] = {}
        self.used: set[tuple[int, int]] = set()
        self._cuts = {(s.layer.id, s.index) for s in fed or ()}

    def is_cut(self, source: Source) -> bool:
        """Whether a tensor is fed from outside."""
        return (source.layer.id, source.index) in self._cuts

    def gather(self) -> None:
        """Find the layers; refuse inputs that are missing or feed nothing."""
        for source in self.handed:
            self._reach(source, f'output "{source.spelled}"')
        assigns: dict[str, list[Layer]] = {}
        for layer in self.bench:
            if layer.type == "Assign":
                assigns.setdefault(layer.data.get("variable_id", ""), []).append(layer)
        # A variable that is read is written too; what is written may read further variables.
        while True:
            read = [x.data.get("variable_id", "") for x in self.layers.values()
                    if x.type == "ReadValue"]  # fmt: skip
            missing = [
                layer for name in read for layer in assigns.get(name, ())
                if layer.id not in self.layers
            ]  # fmt: skip
            if not missing:
                break
            for layer in missing:
                self.layers[layer.id] = layer
                for source in self._feeders(layer):
                    self._reach(source, f'variable "{layer.data.get("variable_id", "")}"')
        for source in self.fed or ():
            if (source.layer.id, source.index) not in self.used:
                raise UsageError(
                    f'input "{source.spelled}" feeds none of the outputs',
                    source.layer.where,
                    "leave it out, or name an output that follows from it",
                )

    def _feeders(self, layer: Layer) -> list[Source]:
        found = []
        for index, row in enumerate(self.bench.graph.sources(layer)):
            if row is None:
                raise IRError(f"input {index} is fed by nothing", layer.where)
            found.append(Source(*row))
        return found

    def _reach(self, start: Source, wanted: str) -> None:
        stack: list[tuple[Source, Layer | None]] = [(start, None)]
        while stack:
            source, user = stack.pop()
            layer = source.layer
            if self.is_cut(source):
                self.used.add((layer.id, source.index))
                continue
            if layer.id in self.layers:
                continue
            if layer.type == "Parameter" and self.fed is not None:
                by = "" if user is None else f', by layer "{user.name}" ({user.type})'
                raise UsageError(
                    f'{wanted} needs input "{layer.name}"{by}, which is not among the inputs',
                    layer.where,
                    f'name "{layer.name}" among the inputs, or a tensor between it and the output',
                )
            self.layers[layer.id] = layer
            stack.extend((feeder, layer) for feeder in self._feeders(layer))


def _cut(
    bench: Workbench,
    part: _Part,
    results: Sequence[Layer],
    known: Tensors,
    report: Surgery,
) -> None:
    """Leave the part alone in the graph, between its Parameters and Results."""
    graph = bench.graph
    # The names of what goes are free for what takes its place.
    there: dict[tuple[int, int], Layer] = {}
    for result in graph.results:
        source = bench.feeder(result, 0)
        there.setdefault((source.layer.id, source.index), result)
    wanted: Sequence[Layer | None] = results or [
        there.get((s.layer.id, s.index)) for s in part.handed
    ]
    keeping = {id(layer) for layer in part.layers.values()}
    keeping |= {id(layer) for layer in wanted if layer is not None}
    stays = keeping | {id(s.layer) for s in part.fed or () if s.layer.type == "Parameter"}
    gone = [x for x in graph.layers if id(x) not in stays]
    bench.set_aside(gone)
    fed: list[Layer] = []
    standing: dict[tuple[int, int], Source] = {}
    for source in part.fed or ():
        if source.layer.type == "Parameter":
            fed.append(source.layer)
            continue
        tensor = known[source.layer.id][source.index]
        new = _parameter(bench, source, tensor)
        standing[source.layer.id, source.index] = new
        bench.feed(bench.users(source), new)
        fed.append(new.layer)
        report.note("input", f"{tensor} is fed from outside", new.layer)
    if part.fed is None:
        fed = [layer for layer in graph.parameters if id(layer) in keeping]
    handed: list[Layer] = []
    for source, layer in zip(part.handed, wanted, strict=True):
        if layer is None:
            key = source.layer.id, source.index
            layer = bench.result(standing.get(key, source))
            report.note("output", "is handed out", layer)
        handed.append(layer)
    graph.remove(*gone)
    bench.gone.clear()
    ends_in_order(graph, fed, handed)
    if gone:
        what = f"{len(gone)} layers" if len(gone) > 1 else f'"{gone[0].name}"'
        report.note("removed", what, times=len(gone))
    _forget_inputs(graph)


def _parameter(bench: Workbench, source: Source, tensor: Tensor) -> Source:
    """An input in the place of a tensor, under its names."""
    single = len(source.layer.outputs) == 1
    names = source.port.names
    name = source.layer.name if single else (names[0] if names else source.spelled)
    info = source.port.rt_info
    source.port.names = ()
    made = bench.parameter(
        Tensor(tensor.type, tensor.shape), name=name, names=names or (bench.own_name(source),)
    )
    made.port.rt_info = info
    return made


def _forget_inputs(graph: Graph) -> None:
    """Drop what a file of IR version 10 does to its inputs beforehand, where one is gone."""
    if not isinstance(graph, Model) or graph.pre_process is None:
        return
    named = graph.pre_process.attributes.get("reference-layer-name")
    if named is not None and all(layer.name != named for layer in graph.parameters):
        graph.pre_process = None


def _around(bench: Workbench, layers: str) -> tuple[list[Source], list[Source]]:
    """What layers of a pattern take from others, and what others take from them."""
    pattern = expression(layers)
    matching = [x for x in bench if x.type != "Result" and pattern.fullmatch(x.name)]
    if not matching:
        raise UsageError(f'no layer has a name that matches "{layers}"')
    # What puts a value into a variable that is not read here goes with it.
    read = {x.data.get("variable_id") for x in matching if x.type == "ReadValue"}
    chosen = {id(x) for x in matching if x.type != "Assign" or x.data.get("variable_id") in read}
    fixed = _fixed(bench.graph)
    fed: dict[tuple[int, int], Source] = {}
    handed: dict[tuple[int, int], Source] = {}
    for layer in bench:
        if id(layer) not in chosen:
            continue
        if layer.type == "Parameter":
            fed[layer.id, 0] = Source(layer, 0)
        for row in bench.graph.sources(layer):
            if row is not None and id(row[0]) not in chosen and row[0].id not in fixed:
                fed.setdefault((row[0].id, row[1]), Source(*row))
        if layer.type in ("Parameter", "Const", "Assign"):
            continue
        outputs = [Source(layer, index) for index in range(len(layer.outputs))]
        users = [bench.users(source) for source in outputs]
        for source, using in zip(outputs, users, strict=True):
            # Of a layer that nobody uses all is handed out.
            if not any(users) or any(id(user) not in chosen for user, _ in using):
                handed[source.layer.id, source.index] = source
    used = {
        (row[0].id, row[1])
        for layer in bench if id(layer) in chosen
        for row in bench.graph.sources(layer) if row is not None
    }  # fmt: skip
    return [source for key, source in fed.items() if key in used], list(handed.values())


def _fixed(graph: Graph) -> set[int]:
    """The layers that follow from constants alone, by id."""
    found: set[int] = set()
    for layer in graph.order():
        if layer.type == "Const":
            found.add(layer.id)
        elif layer.type not in ("Parameter", "ReadValue", "Result", "Assign"):
            rows = graph.sources(layer)
            random = layer.op is not None and layer.op.is_random
            if rows and not random and all(r is not None and r[0].id in found for r in rows):
                found.add(layer.id)
    return found


def _opened(model: Model, path: str) -> Model:
    """The body that a path names as a model, its inputs with what is inferred of them."""
    target = body_at(model, path)
    tensors = _given(model, target)
    made = as_model(target, path, model.version)
    for parameter in made.parameters:
        tensor = tensors.get(id(parameter))
        if tensor is not None:
            parameter.data = {
                **parameter.data,
                "shape": tensor.shape.spelling,
                "element_type": str(tensor.type),
            }
            keep_symbols(parameter, tensor.shape)
    return made


def _given(model: Model, target: Graph) -> Mapping[int, Tensor]:
    """What the Parameters of a body are given, by the identity of their layers."""
    chain: list[Layer] = []
    graph: Graph | None = target
    while graph is not None and graph.owner is not None:
        chain.append(graph.owner)
        graph = graph.owner.graph
    outer: Graph = model
    known: Tensors = infer_graph(model, {})
    given: Mapping[int, Tensor] = {}
    for owner, inner in zip(
        reversed(chain), [*(layer.graph for layer in reversed(chain[:-1])), target], strict=True
    ):
        assert inner is not None
        if owner.id not in known:
            return {}
        found = tensors_of_bodies(outer, owner, known)
        if id(inner) not in found:
            return {}  # a side of an If that is not taken, and does not fit
        _, (given, known) = found[id(inner)]
        outer = inner
    return {id(target.layer(number)): tensor for number, tensor in given.items()}


__all__ = ["extract"]
