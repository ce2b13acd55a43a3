"""The inputs and outputs of models of different IR versions."""

from __future__ import annotations

from ...schemas import ElementType, UsageError
from ..document import Model, join_names
from ..inference import input_types, output_type
from .outcome import Surgery
from .workbench import Source, Workbench


def modernize(part: Model, version: int, report: Surgery) -> None:
    """Let a model of IR version 10 look at its edges as it did when it was a file of its own."""
    bench = Workbench(part)
    # Before version 11 inputs and outputs went by the layers that give them, too.
    called = {layer: _called(bench.feeder(layer, 0)) for layer in part.results}
    for layer in part.parameters:
        tensor = bench.known(Source(layer, 0))
        wanted = input_types(part, tensor.type)[-1]
        if wanted is not tensor.type:
            users = bench.users(Source(layer, 0))
            layer.data = {**layer.data, "element_type": str(wanted)}
            bench.forget_tensors()
            made = _converted(bench, Source(layer, 0), tensor.type)
            bench.feed(users, made)
            report.note("converted", f"takes {wanted} as in IR version {part.version}", layer)
    for layer in part.results:
        source = bench.feeder(layer, 0)
        kind = bench.known(source).type
        wanted = output_type(part, kind)
        if wanted is not kind:
            made = _converted(bench, source, wanted)
            names = source.port.names
            layer.output_names = layer.output_names or (join_names(names) if names else None)
            bench.feed([(layer, 0)], made)
            report.note("converted", f"gives {wanted} as in IR version {part.version}", layer)
    part.version = version
    bench.forget_tensors()
    for layer in part.parameters:
        _name(bench, Source(layer, 0), layer.name)
    for layer in part.results:
        _name(bench, bench.feeder(layer, 0), called[layer])


def _called(source: Source) -> str:
    """What OpenVINO calls an output of IR version 10."""
    layer = source.layer
    return layer.name if len(layer.outputs) == 1 else f"{layer.name}.{source.index}"


def _name(bench: Workbench, source: Source, name: str) -> None:
    """Give a tensor a further name, if no other has it; one that has none gets another."""
    try:
        bench.name_tensor(source, [name])
    except UsageError:
        if not source.port.names:
            bench.name_tensor(source, [bench.own_name(source)])


def _converted(bench: Workbench, source: Source, kind: ElementType) -> Source:
    name = f"{source.layer.name}/{kind}"
    return bench.put("Convert", "opset1", [source], {"destination_type": kind}, name=name)


__all__ = ["modernize"]
