"""Conversion for an older OpenVINO: newer operations are expressed by those that it has."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from ...schemas import ElementType, UnsupportedError, UsageError
from ..checking import RELEASES, TYPE_RELEASES, Release, find_operation, opset_number, release
from ..document import Graph, Layer, Model, split_names
from ..opening import ModelLike, opened
from .interfaces import modernize
from .older_forms import RULES, Cannot, Lowering
from .outcome import Operated, Refusal, Surgery, size_of
from .reshaping import settle
from .workbench import Source, Workbench

#: The release that brought IR version 11, and the one that brought the names of a Result.
_V11: Release = (2022, 1)
_OUTPUT_NAMES: Release = (2025, 0)
#: Layers that are named in the message of an error.
_NAMED = 5


def convert(
    model: ModelLike,
    *,
    target: str | None = None,
    opset: int | None = None,
    ir_version: int | None = None,
    partial: bool = False,
) -> Operated:
    """Bring a model into an older form.

    Args:
        model: The model, or its path; it is not changed.
        target: The OpenVINO release that is to read it, such as ``2022.3``.
        opset: The latest opset that layers may name; that of the target, if there is one.
        ir_version: 10 or 11; 10 where the target is older than 2022.1.
        partial: Convert what can be converted, and list the rest in ``report.refusals``.

    Raises:
        UnsupportedError: Layers that cannot be said by older operations, and why.
    """
    if target is None and opset is None and ir_version is None:
        raise UsageError("it is not said to what", hint="give a target, an opset or an IR version")
    oldest = None if target is None else release(target)
    latest = _latest(oldest, opset)
    work, report = deepcopy(opened(model)), Surgery("convert")
    before = size_of(work)
    if latest is not None:
        for graph in [work, *(body for x in work.everywhere() for body in x.bodies.values())]:
            _Older(graph, latest, report).carry_out()
    if oldest is not None:
        _refuse_types(work, oldest, report)
    _set_version(work, oldest, ir_version, report)
    if report.refusals and not partial:
        rows = report.refusals
        named = "; ".join(map(str, rows[:_NAMED]))
        more = f"; and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        many = "layer" if len(rows) == 1 else "layers"
        raise UnsupportedError(f"{len(rows)} {many} cannot be converted: {named}{more}")
    report.layers = before, size_of(work)
    settle(work, report)
    return Operated(work, report)


def _latest(oldest: Release | None, opset: int | None) -> int | None:
    """The latest opset that is allowed."""
    if opset is not None and opset not in RELEASES:
        raise UsageError(f"there is no opset{opset}", hint=f"they are 1 to {max(RELEASES)}")
    if oldest is None:
        return opset
    there = [number for number, text in RELEASES.items() if release(text) <= oldest]
    if not there:
        raise UsageError(
            f"OpenVINO {oldest[0]}.{oldest[1]} is older than opset1, which came with {RELEASES[1]}"
        )
    return max(there) if opset is None else min(opset, max(there))


class _Older:
    """One graph whose layers are brought to an opset."""

    def __init__(self, graph: Graph, latest: int, report: Surgery) -> None:
        self.graph, self.latest, self.report = graph, latest, report
        self.bench = Workbench(graph)

    def carry_out(self) -> None:
        """Convert every layer, those made in place of others too."""
        queue = list(self.graph.layers)
        while queue:
            made: list[Layer] = []
            for layer in queue:
                if not self.bench.is_gone(layer):
                    made += self._bring_down(layer)
            queue = made
        self.bench.finish()

    def _bring_down(self, layer: Layer) -> list[Layer]:
        number = opset_number(layer.version)
        if number is None or number <= self.latest:
            return []
        kind = find_operation(layer.type, layer.version)
        if kind is None:
            self._refuse(layer, "the operation is not known")
            return []
        first = kind.opset_numbers()[0]
        if first <= self.latest:
            old, layer.version = layer.version, f"opset{first}"
            self.report.note("version", f"{layer.version}, was {old}: the same operation", layer)
            return []
        op = layer.op
        rule = None if op is None else RULES.get((op.xml_type, op.number))
        if rule is None:
            self._refuse(layer, f"{kind.spec()} came with {layer_release(first)}")
            return []
        form = Lowering(self.bench, layer)
        try:
            outputs = rule(form)
        except Cannot as reason:
            self._refuse(layer, str(reason))
            self.bench.take_out(form.made)
            return []
        self._replace(layer, outputs, form.made)
        said = ", ".join(dict.fromkeys(x.type for x in form.made if x.type != "Const"))
        self.report.note("replaced", f"{kind.spec()} by {said or 'its input'}", layer)
        return form.made

    def _refuse(self, layer: Layer, reason: str) -> None:
        self.report.refusals.append(Refusal(layer.name, f"{layer.type} {layer.version}", reason))

    def _replace(self, layer: Layer, outputs: Sequence[Source], made: Sequence[Layer]) -> None:
        """Replace the outputs of a layer by those of older layers; one just made has its name."""
        for index in range(len(layer.outputs)):
            old = Source(layer, index)
            users = self.bench.users(old)
            if index < len(outputs):
                new = outputs[index]
                self.bench.move_names(old, new)
                self.bench.feed(users, new)
            elif users:
                raise UnsupportedError(f"output {index} is used", layer.where)
        self.bench.take_out([layer])
        if outputs and any(one is outputs[0].layer for one in made):
            self.bench.rename_layer(outputs[0].layer, layer.name)


def layer_release(opset: int) -> str:
    """An opset, and the release that brought it."""
    return f"opset{opset} (OpenVINO {RELEASES[opset]})"


def _refuse_types(model: Model, oldest: Release, report: Surgery) -> None:
    """List layers whose element types are younger."""
    for layer in model.everywhere():
        for name in ("element_type", "destination_type", "output_type", "variable_type"):
            text = layer.data.get(name, "").lower()
            brought = TYPE_RELEASES.get(text)
            if brought is not None and release(brought) > oldest:
                report.refusals.append(
                    Refusal(
                        layer.name,
                        f"{layer.type} {layer.version}",
                        f"element type {text} came with OpenVINO {brought}",
                    )
                )


def _set_version(
    model: Model, oldest: Release | None, wanted: int | None, report: Surgery
) -> None:
    """Bring the model to an IR version."""
    if oldest is not None and oldest < _OUTPUT_NAMES:
        _name_ports(model, report)
    if wanted is None and oldest is not None and oldest < _V11:
        wanted = 10
    if wanted is None or wanted == model.version:
        return
    if wanted not in (10, 11):
        raise UsageError(f"IR version {wanted} is not written", hint="10 and 11 are")
    if oldest is not None and oldest < _V11 and wanted == 11:
        raise UsageError(f"IR version 11 came with OpenVINO {_V11[0]}.{_V11[1]}")
    old = model.version
    if wanted > old:
        modernize(model, wanted, report)
    else:
        bench = Workbench(model)
        ends = [(x, Source(x, 0)) for x in model.parameters]
        ends += [(x, bench.feeder(x, 0)) for x in model.results]
        for layer, source in ends:
            _tell_of_edge(layer, bench.known(source).type, report)
        _name_ports(model, report)
        model.version = wanted
    report.note("ir version", f"{model.version}, was {old}")


def _name_ports(model: Model, report: Surgery) -> None:
    """Let the ports say what outputs are called: older releases do not ask the Results."""
    bench = Workbench(model)
    for layer in model.results:
        names, layer.output_names = split_names(layer.output_names), None
        source = bench.feeder(layer, 0)
        try:
            bench.name_tensor(source, names)
        except UsageError as clash:
            reason = f"it alone says its names, and its tensor cannot have them: {clash.message}"
            report.refusals.append(Refusal(layer.name, f"{layer.type} {layer.version}", reason))


def _tell_of_edge(layer: Layer, kind: ElementType, report: Surgery) -> None:
    """Say where OpenVINO gives an input or output another type, as it reads IR version 10."""
    if kind in (ElementType.F32, ElementType.I32):
        return
    if kind is ElementType.STRING:
        reason = "IR version 10 is handed out as numbers: it has no inputs and outputs of strings"
        report.refusals.append(Refusal(layer.name, f"{layer.type} {layer.version}", reason))
        return
    what = "input" if layer.type == "Parameter" else "output"
    report.note("edge", f"{what} of {kind}: runtimes hand IR version 10 out as f32 or i32", layer)


__all__ = ["convert"]
