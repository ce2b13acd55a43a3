"""The names under which a model's inputs and outputs are asked for, and names that are free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TypeVar, cast

from ...schemas import UsageError
from .execution_graph import refuse_execution_graph
from .graph import Graph
from .layer import Layer
from .parts import split_names

T = TypeVar("T")
SINGLE = "put a single array into a list: [array]"


class FreeNames:
    """Finds names that are not taken, for who then takes them."""

    def __init__(self, is_taken: Callable[[str], bool]) -> None:
        self._is_taken = is_taken
        #: The last number that each name was given, as many may ask for the same.
        self._last: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        """The name, or the name with the first number that makes it a free one."""
        chosen, number = name, self._last.get(name, 0)
        while self._is_taken(chosen):
            number += 1
            chosen = f"{name}_{number}"
        self._last[name] = number
        return chosen


def body_path(graph: Graph) -> str:
    """The path of a body, such as ``loop/body``; "" of a model."""
    owner = graph.owner
    if owner is None:
        return ""
    (tag,) = (tag for tag, body in owner.bodies.items() if body is graph)
    return f"{path_of(owner)}/{tag}"


def path_of(layer: Layer) -> str:
    """The name of a layer, in a body behind the path of that: ``loop/body/add``."""
    around = "" if layer.graph is None else body_path(layer.graph)
    return f"{around}/{layer.name}" if around else layer.name


def named_inputs(parameters: Sequence[Layer]) -> list[tuple[Layer, list[str]]]:
    """Inputs with all their names, the one each is called by first; no two have the same.

    What a layer is called its tensor is called, too, where no other input's tensor is: exporters
    leave models of which one input's layer has the name of another's tensor.
    """
    tensors = [layer.outputs[0].names if layer.outputs else () for layer in parameters]
    owners: dict[str, int] = {}
    for place, names in enumerate(tensors):
        for name in names:
            owners.setdefault(name, place)
    for place, layer in enumerate(parameters):
        owners.setdefault(layer.name, place)
    found = []
    for place, (layer, names) in enumerate(zip(parameters, tensors, strict=True)):
        own = [name for name in (layer.name, *names) if owners[name] == place]
        found.append((layer, list(dict.fromkeys(own)) or [f"{layer.name}#{place}"]))
    return found


def output_names(graph: Graph, result: Layer) -> list[str]:
    """Every name of an output, the one it is called by first."""
    producer = graph.producer(result, 0) if result.inputs else None
    ported: Iterable[str] = ()
    if producer is not None:
        layer, index = producer
        ported = layer.outputs[index].names
    return list(dict.fromkeys([*split_names(result.output_names), *ported, result.name]))


def output_keys(graph: Graph) -> list[str]:
    """One name for each output, no two the same."""
    keys: dict[str, None] = {}  # in order, and found at once
    for index, result in enumerate(graph.results):
        names = [*output_names(graph, result), f"{result.name}#{index}"]
        keys[next(name for name in names if name and name not in keys)] = None
    return list(keys)


def paired_by_name(
    what: str, ours: Sequence[Sequence[str]], path: str | PathLike[str], theirs: Sequence[str]
) -> list[int]:
    """The place in ``theirs``, of an ONNX file, of each of ours: by name, the rest in order.

    Raises:
        UsageError: They are not as many.
    """
    if len(ours) != len(theirs):
        raise UsageError(
            f"the model has {len(ours)} {what}, {path} has {len(theirs)}",
            hint="give the ONNX of the same model by --onnx FILE",
        )
    free = dict.fromkeys(range(len(theirs)))
    found: dict[int, int] = {}
    for place, names in enumerate(ours):
        same = next((at for name in names for at in free if theirs[at] == name), None)
        if same is not None:
            found[place] = same
            del free[same]
    rest = iter(free)
    return [found[place] if place in found else next(rest) for place in range(len(ours))]


def by_input(
    graph: Graph, given: Mapping[str, T] | Mapping[int, T] | Iterable[T] | None
) -> dict[int, T]:
    """What the caller gives for inputs, by the ids of their layers.

    Keys may be layer names, tensor names or indices; without keys the order is the model's. An
    array is that of a single input.
    """
    refuse_execution_graph(graph)  # whose inputs are none of a model
    if given is None:
        return {}
    if hasattr(given, "dtype") and len(graph.parameters) == 1:
        given = [cast("T", given)]
    if not isinstance(given, Iterable):
        raise UsageError(
            f"inputs are of the type {type(given).__name__}, not arrays by name or in order",
            hint=SINGLE,
        )
    parameters = graph.parameters
    pairs: Iterable[tuple[str | int, T]] = (
        given.items() if isinstance(given, Mapping) else enumerate(given)
    )
    rows = named_inputs(parameters)
    known = {name: (layer, names[0]) for layer, names in rows for name in names}
    found: dict[int, T] = {}
    for key, value in pairs:
        if isinstance(key, int):
            if not -len(parameters) <= key < len(parameters):
                raise UsageError(
                    f"input {key} is asked for, the model has {len(parameters)}",
                    hint=SINGLE if hasattr(given, "dtype") else None,
                )
            layer, (name, *_) = rows[key]
        elif key in known:
            layer, name = known[key]
        else:
            import difflib

            near = difflib.get_close_matches(str(key), known, 1)
            listed = ", ".join(f'"{names[0]}"' for _, names in rows) or "none"
            hint = f'did you mean "{near[0]}"?' if near else None
            raise UsageError(f'no input is named "{key}"; the inputs are {listed}', hint=hint)
        if layer.id in found:
            raise UsageError(f'input "{name}" is given twice')
        found[layer.id] = value
    return found


def tensor_keys(graph: Graph) -> dict[str, tuple[Layer, int]]:
    """One name for every tensor that is computed, no two the same: its layer and output index."""
    found: dict[str, tuple[Layer, int]] = {}
    for layer in graph.order():
        if layer.type == "Result":
            continue
        for index, port in enumerate(layer.outputs):
            name = next((n for n in port.names if n not in found), None)
            plain = layer.name if len(layer.outputs) == 1 else f"{layer.name}:{index}"
            key = name or (plain if plain not in found else f"{plain}#{layer.id}")
            found[key] = (layer, index)
    return found


def named_output(graph: Graph, name: str) -> tuple[Layer, int]:
    """The output that a name means: as it is handed out, of a tensor, a layer, ``LAYER:INDEX``."""
    given: object = name
    if not isinstance(given, str):
        raise UsageError(f"a tensor is asked for by its name, not by {type(given).__name__}")
    place = graph.placed(name)
    if place is not None and not graph.is_name(name):
        layer, index = place
        if index >= len(layer.outputs):
            raise UsageError(
                f'layer "{layer.name}" has {len(layer.outputs)} outputs, {index} is asked for',
                hint="outputs are counted from 0",
            )
        return place
    layer = graph.layer(name)
    index = next((i for i, port in enumerate(layer.outputs) if name in port.names), 0)
    return layer, index


def listed(names: str | Iterable[str]) -> list[str]:
    """Names as a caller gives them: several, or a single one, which is no list of letters."""
    found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    for name in found:
        if not isinstance(name, str):
            raise UsageError(f"a name, or several, is wanted, not {name!r:.60}")
    return found
