"""Repairs that are safe: each is named, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from ...layers.base import Op
from ...schemas import IRError, Tensor
from ...schemas.printing import printable, printable_name
from ..checking import Release, codes, defaults_to_write, misspelt, older_version, release
from ..document import SINKS, FreeNames, Graph, Layer, Model
from ..inference import infer_layer
from ..opening import ModelLike, opened
from .reshaping import same_declaration


class Fix(NamedTuple):
    """One repair: the code of the finding it settles, and what was done where."""

    code: str
    message: str
    layer: int | None = None
    name: str | None = None

    def __str__(self) -> str:
        place = "" if self.layer is None else f'layer {self.layer} "{printable_name(self.name)}": '
        return f"{self.code}: {place}{printable(self.message)}"


class Fixes(list[Fix]):
    """What was repaired, in order, and the model that it was repaired in."""

    def __init__(self, model: Model, fixes: Iterable[Fix] = ()) -> None:
        super().__init__(fixes)
        self.model = model


#: Whether findings of a code are to be repaired.
Wanted = Callable[[str], bool]


def fix(
    model: ModelLike,
    target: str | None = None,
    *,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
) -> Fixes:
    """Repair what can be repaired without guessing; what was done, in order, and the model.

    A bare < or & of a document read leniently is escaped, blanks before the declaration go behind
    it, misspelt attributes get their names,
    defaults are written out where OpenVINO crashes, refuses or takes another one, dead layers
    are removed, names made unique, versions made those of the target where the operation is as
    old, and ports made to declare what is inferred. ``select`` and ``ignore`` name the findings
    that are to be repaired, as in :func:`check`.
    """
    chosen, unwanted = codes(select), codes(ignore)

    def wanted(code: str) -> bool:
        return (not chosen or code.startswith(chosen)) and not code.startswith(unwanted)

    oldest = None if target is None else release(target)
    model = opened(model)
    done = Fixes(model, _escape(model, wanted))
    for graph in _graphs(model):
        for layer in graph.layers:
            done += _mend_attributes(layer, wanted)
            if oldest is not None and wanted("IR902"):
                done += _make_older(layer, oldest)
        if wanted("IR307"):
            done += _remove_dead(graph)
        if wanted("IR216"):
            done += _rename(graph)
    for graph in _graphs(model):
        done += _declare(graph, wanted)
    return done


def _escape(model: Model, wanted: Wanted) -> Iterable[Fix]:
    """Let a document that was read with repairs that lose nothing be written with them."""
    found = [(row.settles, row) for row in model.repairs]
    is_done = model.source is model.text
    if found and not is_done and all(code is not None and wanted(code) for code, _ in found):
        model.source = model.text
        for code, row in found:
            done = "put behind it" if code == "IR108" else "escaped"
            yield Fix(str(code), f"{row.message}, line {row.line}: {done}")


def _graphs(model: Model) -> list[Graph]:
    found: list[Graph] = [model]
    for layer in model.everywhere():
        found.extend(layer.bodies.values())
    return found


def _mend_attributes(layer: Layer, wanted: Wanted) -> Iterable[Fix]:
    """Give misspelt attributes their names, and write out what OpenVINO should not be left to."""
    kind = Op.find(layer.type, layer.version)
    if kind is None:
        return
    if wanted("IR402"):
        meant = misspelt(layer.data, kind)
        taken: set[str] = set()
        for wrong, right in meant.items():
            if right in taken:
                continue  # two names for one attribute: which one is meant is not certain
            taken.add(right)
            layer.data = {right if n == wrong else n: text for n, text in layer.data.items()}
            yield Fix("IR402", f"{wrong} is now {right}", layer.id, layer.name)
    for name, (code, value) in defaults_to_write(layer.data, kind).items():
        empty = code in ("IR411", "IR412") and not layer.data.get(name, "").strip()
        if (name not in layer.data or empty) and wanted(code):
            layer.data = {**layer.data, name: value}
            yield Fix(code, f'{name}="{value}" written out', layer.id, layer.name)


def _make_older(layer: Layer, oldest: Release) -> Iterable[Fix]:
    """Name the opset that brought the operation, where a release does not know the one named."""
    version = older_version(layer.type, layer.version, oldest)
    if version is not None:
        old, layer.version = layer.version, version
        yield Fix("IR902", f"version is now {version}, was {old}", layer.id, layer.name)


def _remove_dead(graph: Graph) -> Iterable[Fix]:
    """Take out what feeds no output, as OpenVINO does when it reads."""
    if not any(layer.type in SINKS for layer in graph.layers):
        return
    try:
        reached = {id(layer) for layer in graph.order()}
    except IRError:
        return  # the edges are wrong: nothing is certain
    dead = [layer for layer in graph.layers if id(layer) not in reached]
    graph.remove(*dead)
    for layer in dead:
        yield Fix("IR307", f"{layer.type} removed: it feeds no output", layer.id, layer.name)


def _rename(graph: Graph) -> Iterable[Fix]:
    """Give layers of the same name a number each."""
    taken = {layer.name for layer in graph.layers}
    free = FreeNames(taken.__contains__)
    seen: set[str] = set()
    for layer in graph.layers:
        old = layer.name
        if old and old in seen:
            layer.name = free(old)
            taken.add(layer.name)
            yield Fix("IR216", f'renamed to "{layer.name}"', layer.id, old)
        seen.add(layer.name)


def _declare(graph: Graph, wanted: Wanted) -> Iterable[Fix]:
    """Make ports declare what is inferred; of a layer with an error, what it declares counts.

    Of a body, as in :func:`check`, its own Parameters say what it is given.
    """
    try:
        order = graph.order()
    except IRError:
        return  # a cycle, or an edge from nowhere: nothing is certain
    # Without the values of constants less is inferred than the file says.
    blind = not all(layer.has_value for layer in order if layer.is_constant)
    tensors: dict[int, tuple[Tensor, ...]] = {}
    for layer in order:
        try:
            found = infer_layer(graph, layer, tensors, {})
        except IRError:
            found = tuple(port.tensor for port in layer.outputs)
        if blind:
            found = _agreed(layer, found)
        tensors[layer.id] = found
        for index, tensor in enumerate(found[: len(layer.outputs)]):
            yield from _describe(layer, index, tensor, wanted, given=True)
            for user, place in graph.consumers(layer, index):
                yield from _describe(user, place, tensor, wanted, given=False)


def _agreed(layer: Layer, found: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What is inferred, with what the ports declare beyond it."""
    told = []
    for index, tensor in enumerate(found):
        declared = layer.outputs[index].tensor if index < len(layer.outputs) else tensor
        with suppress(IRError):  # it contradicts what is inferred
            shape = tensor.shape.merge(declared.shape)
            tensor = tensor if shape == tensor.shape else Tensor(tensor.type, shape)
        told.append(tensor)
    return tuple(told)


def _describe(
    layer: Layer, index: int, tensor: Tensor, wanted: Wanted, *, given: bool
) -> Iterable[Fix]:
    """Make one port say what is known of its tensor."""
    port = (layer.outputs if given else layer.inputs)[index]
    precision, dims = port.precision, port.dims
    if same_declaration(port, tensor):
        return
    sizes, types = ("IR606", "IR607") if given else ("IR604", "IR605")
    code = sizes if port.tensor.shape != tensor.shape else types
    if not wanted(code):
        return
    port.describe(tensor)
    if (port.precision, port.dims) != (precision, dims):
        new, old = (
            f"{kind or 'no type'} {','.join(map(str, rows)) or 'without sizes'}"
            for kind, rows in ((port.precision, port.dims), (precision, dims))
        )
        yield Fix(code, f"port {port.id} declares {new}, was {old}", layer.id, layer.name)


__all__ = ["Fix", "fix"]
