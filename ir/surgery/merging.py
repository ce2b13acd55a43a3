"""Models joined: one after another, or side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from os import PathLike
from typing import Literal, NamedTuple, TypeAlias, TypeGuard

from ...schemas import Size, Tensor, UsageError
from ...schemas.shapes import limits
from ..document import (
    FreeNames,
    Graph,
    Layer,
    Model,
    join_names,
    listed,
    named_inputs,
    output_keys,
    output_names,
    split_names,
)
from ..opening import ModelLike, opened
from .interfaces import modernize
from .outcome import Operated, Surgery, size_of
from .reshaping import settle
from .transplanting import ends_in_order, transplant
from .workbench import Source, Workbench

#: Which output feeds which input: by a map, where names are equal, or one after another.
Joint: TypeAlias = (
    "Mapping[str, str | Iterable[str]] | Iterable[tuple[str, str]] | "
    "Literal['names', 'order'] | None"
)
#: Outputs, and an input that each feeds.
Rows: TypeAlias = "Sequence[tuple[str, str]]"


def merge(
    models: Iterable[ModelLike],
    connect: Joint = None,
    *,
    prefixes: Sequence[str] | None = None,
    share: str | Iterable[str] = (),
    keep_outputs: bool = False,
    name: str | None = None,
) -> Operated:
    """Join models into one.

    Args:
        models: The models, or their paths, in order; they are not changed.
        connect: Which outputs of the earlier models feed which inputs of the later ones: a map
            from outputs to inputs (with their prefixes), one or several, or pairs of them;
            ``names`` for all that have equal names, ``order`` for the first with the first;
            None: side by side.
        prefixes: What to put before all names of each model, so that none are equal; names of
            shared inputs stay.
        share: Inputs that several models have, and that become one.
        keep_outputs: Whether outputs that feed an input remain outputs.
        name: The name of the new model; that of the first, if none is given.

    Raises:
        UsageError: Names are not there or not clear, or types and shapes do not fit.
    """
    if isinstance(models, (str, PathLike)) or getattr(models, "is_graph", False):
        raise UsageError("one model is given, two or more are merged", hint="give them as a list")
    if not isinstance(models, Iterable):
        raise UsageError(f"a list of models is wanted, not {type(models).__name__}")
    rows = _rows(connect)
    if prefixes is not None:
        prefixes = listed(prefixes)
    parts = [deepcopy(opened(model)) for model in models]
    if len(parts) < 2:
        are = "model is" if len(parts) == 1 else "models are"
        raise UsageError(f"{len(parts)} {are} given, two or more are merged")
    if prefixes is not None and len(prefixes) != len(parts):
        raise UsageError(
            f"{len(prefixes)} prefix{'es are' if len(prefixes) != 1 else ' is'} given for "
            f"{len(parts)} models",
            hint='one for each model, in their order; "" for none',
        )
    report = Surgery("merge")
    before = sum(size_of(part) for part in parts)
    newest = max(part.version for part in parts)
    whole = Model(parts[0].name if name is None else name, newest)
    whole.rt_info, whole.meta_data = parts[0].rt_info, parts[0].meta_data
    shared = listed(share)
    joined: set[tuple[str, str]] = set()
    for name_ in shared:
        having = sum(_input_named(part, name_) is not None for part in parts)
        if having < 2:
            names = ", ".join(f'"{x.name}"' for part in parts for x in part.parameters[:8])
            raise UsageError(
                f'"{name_}" is to be shared, and is an input of {having} of the models',
                hint=f"an input that several have can be; there are {names}",
            )
    for number, part in enumerate(parts):
        _refuse_special(part)
        if part.version < newest:
            modernize(part, newest, report)
        if prefixes is not None and prefixes[number]:
            _put_before(part, prefixes[number], shared, report)
    ends = [(set(_inputs_by_name(part)), set(_outputs_by_name(part))) for part in parts]
    for number, part in enumerate(parts):
        if number:
            wires = _wires(whole, part, connect, rows, shared, joined)
            same = _same(whole, part, shared)
            if keep_outputs:
                ending = []
            else:
                wanted = _wanted(whole, connect, rows, ends[number:])
                ending = [one.ours for one in wires if id(one.ours) not in wanted]
            _yield_names(whole, part, ending)
            _tell_apart(whole, part, [one.theirs for one in (*wires, *same)], ending, report)
            _join(whole, part, wires, same, ending, report)
        else:
            transplant(part, whole)
    for row in rows:
        if row not in joined:
            output, input_ = row
            _missing(whole, input_ if any(output == known for known, _ in joined) else output)
    settle(whole, report)
    report.layers = before, size_of(whole)
    return Operated(whole, report)


def _rows(connect: object) -> list[tuple[str, str]]:
    """Which output feeds which input, where the caller says so, each row once."""
    if connect is None or (isinstance(connect, str) and connect in ("names", "order")):
        return []
    rows: list[object] = [connect]
    if isinstance(connect, Mapping):
        rows = [(output, x) for output, inputs in connect.items() for x in listed(inputs)]
    elif isinstance(connect, Iterable) and not isinstance(connect, str):
        rows = [tuple(row) if isinstance(row, list) else row for row in connect]
    found = [row for row in rows if _is_pair(row)]
    if len(found) != len(rows):
        raise UsageError(
            f"connect is {connect!r:.60}, nothing that says what feeds what",
            hint='give a map from outputs to inputs, pairs of them, "names" or "order"',
        )
    return list(dict.fromkeys(found))


def _is_pair(row: object) -> TypeGuard[tuple[str, str]]:
    return isinstance(row, tuple) and len(row) == 2 and all(isinstance(x, str) for x in row)


def _wanted(
    whole: Model, connect: Joint, rows: Rows, ends: Sequence[tuple[set[str], set[str]]]
) -> set[int]:
    """The outputs that feed models after the next one, too, whose ends are the first of these.

    A name means the last output that has it.
    """
    outputs = _outputs_by_name(whole)
    pairs = [(name, name) for name in outputs] if connect == "names" else rows
    found: set[int] = set()
    for output, input_ in pairs:
        for place, (inputs, given) in enumerate(ends):
            if place and input_ in inputs and output in outputs:
                found.add(id(outputs[output]))
            if output in given:
                break
    return found


def _missing(whole: Model, name: str) -> None:
    inputs = [names[0] for _, names in named_inputs(whole.parameters)]
    ends = [f'"{known}"' for known in (*inputs, *output_keys(whole))]
    raise UsageError(
        f'"{name}" of the map is no output of an earlier model with its input in a later one',
        hint=f"inputs and outputs are now {', '.join(ends[:12])}",
    )


def _refuse_special(part: Model) -> None:
    if part.pre_process is not None:
        raise UsageError(
            f'model "{part.name}" has a <pre-process> section, which is about all of its inputs',
            hint="put the mean into the model with vinoir edit, and remove the section",
        )


def _put_before(part: Model, prefix: str, shared: Sequence[str], report: Surgery) -> None:
    """Put a prefix before the names of layers, tensors and variables; not of shared inputs."""
    spared = {id(_input_named(part, name)) for name in shared}
    for layer in part.layers:
        if id(layer) in spared:
            continue
        layer.name = prefix + layer.name
        for port in layer.outputs:
            port.names = tuple(prefix + name for name in port.names)
        if layer.output_names is not None:
            names = split_names(layer.output_names)
            layer.output_names = join_names(prefix + name for name in names)
    for layer in part.everywhere():
        if "variable_id" in layer.data:
            layer.data = {**layer.data, "variable_id": prefix + layer.data["variable_id"]}
    report.note("prefix", f'"{prefix}" before the names of model "{part.name}"')


def _inputs_by_name(graph: Graph) -> dict[str, Layer]:
    return {name: layer for layer, names in named_inputs(graph.parameters) for name in names}


def _input_named(graph: Graph, name: str) -> Layer | None:
    return _inputs_by_name(graph).get(name)


def _outputs_by_name(graph: Graph) -> dict[str, Layer]:
    found: dict[str, Layer] = {}
    for result in graph.results:
        for name in output_names(graph, result):
            found.setdefault(name, result)
        producer = graph.producer(result, 0)
        if producer is not None:
            found.setdefault(producer[0].name, result)
    return found


class Wire(NamedTuple):
    """A Result of what is merged so far, or a Parameter, and the Parameter that it feeds."""

    ours: Layer
    theirs: Layer
    #: What users call the first.
    name: str


def _wires(
    whole: Model,
    part: Model,
    connect: Joint,
    rows: Rows,
    shared: Sequence[str],
    joined: set[tuple[str, str]],
) -> list[Wire]:
    """The outputs of what is merged so far, and the inputs of the next model that they feed."""
    if connect is None:
        return []
    outputs = _outputs_by_name(whole)

    def wire(result: Layer, layer: Layer) -> Wire:
        return Wire(result, layer, output_names(whole, result)[0])

    own = {id(_input_named(part, name)) for name in shared}
    inputs = [layer for layer in part.parameters if id(layer) not in own]
    if connect == "order":
        results = whole.results
        if len(results) != len(inputs):
            raise UsageError(
                f'{len(results)} outputs and {len(inputs)} inputs of model "{part.name}" '
                "are not joined in order",
                hint="say which feeds which: --map OUTPUT=INPUT",
            )
        return [wire(*row) for row in zip(results, inputs, strict=True)]
    if connect == "names":
        wires = []
        names_of = {id(layer): names for layer, names in named_inputs(part.parameters)}
        for layer in inputs:
            name = next((name for name in names_of[id(layer)] if name in outputs), None)
            if name is not None:
                wires.append(wire(outputs[name], layer))
        if not wires:
            ours = ", ".join(f'"{name}"' for name in list(outputs)[:8])
            theirs = ", ".join(f'"{layer.name}"' for layer in inputs[:8])
            raise UsageError(
                f'no input of model "{part.name}" is named as an output is: inputs are {theirs}, '
                f"outputs are {ours}",
                hint="say which feeds which: --map OUTPUT=INPUT",
            )
        return wires
    wires = []
    for output, input_ in rows:
        layer_ = _input_named(part, input_)
        if output in outputs and layer_ is not None:
            if any(layer_ is known.theirs for known in wires):
                raise UsageError(f'input "{input_}" is fed twice', layer_.where)
            wires.append(wire(outputs[output], layer_))
            joined.add((output, input_))
    return wires


def _same(whole: Model, part: Model, shared: Sequence[str]) -> list[Wire]:
    """The inputs that both have."""
    pairs = [(_input_named(whole, name), _input_named(part, name)) for name in shared]
    return [
        Wire(ours, theirs, ours.name)
        for ours, theirs in pairs
        if ours is not None and theirs is not None
    ]


def _yield_names(whole: Model, part: Model, ending: Sequence[Layer]) -> None:
    """Let tensors that are outputs no more leave their names to those of the next model."""
    names = {name for layer in part.layers for row in layer.tensor_names() for name in row}
    for result in ending:
        producer = whole.producer(result, 0)
        if producer is not None:
            port = producer[0].outputs[producer[1]]
            port.names = tuple(name for name in port.names if name not in names)


def _tell_apart(
    whole: Model,
    part: Model,
    replaced: Sequence[Layer],
    ending: Sequence[Layer],
    report: Surgery,
) -> None:
    """Give layers, tensors and variables that are named alike different names."""
    taken = {layer.name for layer in whole.layers}
    tensors = {name for layer in whole.layers for row in layer.tensor_names() for name in row}
    going = {id(layer) for layer in replaced}
    inputs = {name for _, names in named_inputs(whole.parameters) for name in names}
    for layer, names in named_inputs(part.parameters):
        if id(layer) not in going and inputs & set(names):
            raise UsageError(
                f'two of the models have an input named "{layer.name}"',
                hint="give each model a prefix, or let them share the input",
            )
    ours, theirs = _outputs_by_name(whole), _outputs_by_name(part)
    for name, result in theirs.items():
        if name in ours and ours[name] not in ending and name in _output_keys(part, result):
            raise UsageError(
                f'two of the models have an output named "{name}"',
                hint="give each model a prefix",
            )
    own = {layer.name for layer in part.layers}
    free = FreeNames((taken | own).__contains__)
    for layer in part.layers:
        if id(layer) in going:
            for port in layer.outputs:
                port.names = ()  # its tensor is another's, and it goes
        elif layer.name in taken:
            # An output is asked for by the names of its tensor, where that has some.
            told = layer.type != "Result" or output_names(part, layer)[0] == layer.name
            old, layer.name = layer.name, free(layer.name)
            what = {"Parameter": "an input, ", "Result": "an output, "}.get(layer.type, "")
            if told:
                report.note("renamed", f'{what}was "{old}", as another layer is', layer)
    named = tensors | {n for x in part.layers for row in x.tensor_names() for n in row}
    numbers = FreeNames(named.__contains__)
    numbered: dict[tuple[int, int], dict[str, str]] = {}
    for layer in part.layers:
        if any(name in tensors for row in layer.tensor_names() for name in row):
            for index, port in enumerate(layer.outputs):
                new = {name: numbers(name) for name in port.names if name in tensors}
                port.names = tuple(new.get(name, name) for name in port.names)
                numbered[layer.id, index] = new
                for old, name in new.items():
                    report.note("renamed", f'tensor "{old}" is now "{name}"', layer)
    for result in part.results:
        producer = part.producer(result, 0)
        if producer is not None and result.output_names is not None:
            new = numbered.get((producer[0].id, producer[1]), {})
            said = split_names(result.output_names)
            result.output_names = join_names(new.get(name, name) for name in said)
    _tell_variables_apart(whole, part, report)


def _output_keys(part: Model, result: Layer) -> tuple[str, ...]:
    """The names by which a user asks for an output."""
    names = split_names(result.output_names)
    producer = part.producer(result, 0)
    ported = producer[0].outputs[producer[1]].names if producer is not None else ()
    return (*names, *ported)


def _tell_variables_apart(whole: Model, part: Model, report: Surgery) -> None:
    def variables(model: Model) -> set[str]:
        return {
            x.data["variable_id"]
            for x in model.everywhere()
            if x.type in ("ReadValue", "Assign") and "variable_id" in x.data
        }

    ours, theirs = variables(whole), variables(part)
    free = FreeNames((ours | theirs).__contains__)
    new = {name: free(name) for name in sorted(ours & theirs)}
    for layer in part.everywhere():
        if layer.type in ("ReadValue", "Assign") and layer.data.get("variable_id") in new:
            old = layer.data["variable_id"]
            layer.data = {**layer.data, "variable_id": new[old]}
            if layer.type == "ReadValue":
                report.note("renamed", f'variable "{old}" is now "{new[old]}"', layer)


def _join(
    whole: Model,
    part: Model,
    wires: Sequence[Wire],
    same: Sequence[Wire],
    ending: Sequence[Layer],
    report: Surgery,
) -> None:
    """Take a model in, and feed its inputs."""
    inputs, results = whole.parameters, whole.results
    bench = Workbench(whole)
    feeders = [bench.feeder(one.ours, 0) for one in wires]
    feeders += [Source(one.ours, 0) for one in same]
    for source, (_, theirs, name) in zip(feeders, (*wires, *same), strict=True):
        _fit(bench.known(source), theirs, name)
    transplant(part, whole)
    gone = {id(result): result for result in ending}
    for source, (ours, theirs, name) in zip(feeders, (*wires, *same), strict=True):
        whole.replace_output((theirs, 0), source)
        gone[id(theirs)] = theirs
        if ours.type == "Parameter":
            report.note("shared", "is one input of several models", ours)
            continue
        report.note("joined", f'is fed by output "{name}"', theirs)
    known = {id(layer) for layer in (*inputs, *results)}
    new_inputs = [x for x in whole.parameters if id(x) not in known]
    new_results = [x for x in whole.results if id(x) not in known]
    whole.remove(*gone.values())
    bench = Workbench(whole)
    for source in dict.fromkeys(feeders):
        bench.tell_outputs(source)
    ends_in_order(
        whole,
        [x for x in (*inputs, *new_inputs) if id(x) not in gone],
        [x for x in (*results, *new_results) if id(x) not in gone],
    )


def _fit(tensor: Tensor, parameter: Layer, name: str) -> None:
    """Refuse an output that its input does not take."""
    assert parameter.op is not None
    wanted = parameter.op.infer()[0]
    both_known = not (tensor.type.is_dynamic or wanted.type.is_dynamic)
    if both_known and tensor.type is not wanted.type:
        raise UsageError(
            f'"{name}" gives {tensor.type}, input "{parameter.name}" takes {wanted.type}',
            parameter.where,
            "insert a Convert with vinoir edit",
        )
    fits = tensor.shape.rank is None or wanted.shape.rank is None
    if not fits and tensor.shape.rank == wanted.shape.rank:
        fits = all(_overlap(a, b) for a, b in zip(tensor.shape, wanted.shape, strict=True))
    if not fits:
        raise UsageError(
            f'"{name}" gives {tensor.shape.spelling}, input "{parameter.name}" takes '
            f"{wanted.shape.spelling}",
            parameter.where,
            "give the input another shape with vinoir infer --input, or insert a Reshape",
        )


def _overlap(one: Size, other: Size) -> bool:
    """Whether two sizes can be the same."""
    (low, high), (least, most) = limits(one), limits(other)
    return (high is None or (least or 0) <= high) and (most is None or (low or 0) <= most)


__all__ = ["merge"]
