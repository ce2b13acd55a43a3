"""Edits of layers: names, attributes, versions, constants; out, around, in between."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from ...layers.base import Op
from ...schemas import Array, ElementType, UsageError
from ..document import Graph, Info, Layer, split_names, unknown_attribute
from .orders import Chosen, Desk, Edit, Key, Valued, Word, input_place, sources_of
from .workbench import Source, attribute_text, expression, newest


class Rename(Chosen):
    """Rename layers or tensors; with a regular expression, ``to`` may name its groups."""

    named_by_paths = ("layer", "tensor", "any")

    op: Literal["rename"]
    tensor: str | None = Field(None, description="a tensor by its name")
    tensors: str | None = Field(None, description="a regular expression for whole tensor names")
    input: str | None = Field(None, description="an input: its layer and its tensor")
    output: str | None = Field(None, description="an output: the name of its tensor")
    any: str | None = Field(
        None, description="the first of input, output, layer, tensor, variable so named"
    )
    to: str = Field(min_length=1, description=r"the new name; \1 is the first group")

    @model_validator(mode="after")
    def _one_kind(self) -> Any:
        given = [self.tensor, self.tensors, self.input, self.output, self.any]
        layers = any(x is not None for x in (self.layer, self.layers, self.type))
        if sum(x is not None for x in given) + layers != 1:
            raise ValueError(
                'give one of "layer", "layers", "tensor", "tensors", "input", "output"'
            )
        return self

    def _carry_out(self, desk: Desk) -> None:
        bench = desk.bench
        if self.any is not None:
            self._first(desk, self.any)
        elif self.input is not None:
            self._input(desk, self.input)
        elif self.output is not None:
            self._output(desk, self.output)
        elif self.tensor is not None:
            self._tensor(desk, bench.tensor(self.tensor), self.tensor)
        elif self.tensors is not None:
            self._many(desk, self.tensors)
        elif self.layers is not None:
            pattern = expression(self.layers)
            for layer in self.chosen(desk):
                found = pattern.fullmatch(layer.name)
                assert found is not None
                _rename_layer(desk, layer, _expanded(found, self.to))
        else:
            chosen = self.chosen(desk)
            if len(chosen) > 1:
                raise UsageError(f'{len(chosen)} layers cannot all be named "{self.to}"')
            _rename_layer(desk, chosen[0], self.to)

    def _first(self, desk: Desk, name: str) -> None:
        """Rename the input of that name; else the output, else the layer, else the tensor."""
        # A layer that feeds an output is a layer: by its name it is that which is meant.
        output = partial(desk.bench.output, by_layer=False)
        ends = ((desk.bench.input, self._input), (output, self._output))
        for find, rename in ends if desk.graph is desk.model else ():
            try:
                find(name)
            except UsageError:
                continue
            rename(desk, name)
            return
        if desk.bench.has_layer(name):
            _rename_layer(desk, desk.bench.layer(name), self.to)
        elif not desk.bench.has_tensor(name) and _rename_variable(desk, name, self.to):
            return
        else:
            self._tensor(desk, desk.bench.tensor(name), name)

    def _input(self, desk: Desk, name: str) -> None:
        parameter = desk.bench.input(name)
        source = Source(parameter, 0)
        desk.bench.refuse_named(source, name, self.to)
        _rename_layer(desk, parameter, self.to)
        if name in source.port.names:
            self._tensor(desk, source, name)
        else:  # that of the layer, besides which the tensor keeps its own
            desk.bench.name_tensor(source, [self.to])
            self._tell(desk, source)

    def _output(self, desk: Desk, name: str) -> None:
        result = desk.bench.output(name)
        source = desk.bench.feeder(result, 0)
        said = {*source.port.names, *split_names(result.output_names)}
        ends = [user for user, _ in desk.bench.users(source) if user.type == "Result"]
        if name == result.name and name not in said and len(ends) > 1:
            # The names of the tensor are those of the other outputs, too.
            desk.bench.refuse_named(source, name, self.to)
            _rename_layer(desk, result, self.to)
            return
        desk.bench.tell_outputs(source)
        self._tensor(desk, source, name)

    def _many(self, desk: Desk, text: str) -> None:
        pattern, met = expression(text), False
        for layer in list(desk.bench):
            for index, names in enumerate(layer.tensor_names()):
                found = {name: pattern.fullmatch(name) for name in names}
                wanted = {
                    x: _expanded(one, self.to) for x, one in found.items() if one is not None
                }
                met |= bool(wanted)
                new = {name: other for name, other in wanted.items() if other != name}
                if new:
                    source = Source(layer, index)
                    # Two names may become one: each comes back as it was.
                    desk.undoing.append(partial(setattr, source.port, "names", source.port.names))
                    for user, _ in desk.bench.users(source):
                        desk.keep(user, "output_names")
                    desk.bench.rename_tensor(source, new)
                    former = {other: name for name, other in new.items()}
                    desk.undoing.append(partial(desk.bench.rename_tensor, source, former))
                for name, other in new.items():
                    desk.report.note("renamed", f'tensor "{name}" is now "{other}"', layer)
        if not met:
            raise UsageError(f'no tensor has a name that matches "{text}"')

    def _tensor(self, desk: Desk, source: Source, held: str) -> None:
        """Rename a tensor by one of its names; by its first, where it is told by its place."""
        names = source.port.names
        old = held if held in names else names[0] if names else None
        if old is None:
            desk.bench.name_tensor(source, [self.to])
        elif old != self.to:
            desk.bench.rename_tensor(source, {old: self.to})
        self._tell(desk, source)

    def _tell(self, desk: Desk, source: Source) -> None:
        desk.report.note("renamed", f'tensor is now "{self.to}"', source.layer)


def _expanded(found: Any, to: str) -> str:
    import re

    try:
        new: str = found.expand(to)
    except (re.error, IndexError) as error:
        raise UsageError(f'"{to}" is no replacement: {error}') from None
    if not new:
        raise UsageError(f'"{found[0]}" would be left without a name')
    return new


def _rename_layer(desk: Desk, layer: Layer, new: str) -> None:
    old = layer.name
    if old == new:
        return
    desk.bench.rename_layer(layer, new)
    desk.undoing.append(partial(desk.bench.rename_layer, layer, old))
    section = desk.model.pre_process
    if layer.type == "Parameter" and section is not None and desk.graph is desk.model:
        key = "reference-layer-name"
        if section.attributes.get(key) == old:
            section.attributes[key] = new
    desk.report.note("renamed", f'was "{old}"', layer)


def _rename_variable(desk: Desk, old: str, new: str) -> bool:
    """Rename a variable wherever it is read or written; whether there is one so named."""
    users = [x for x in desk.model.everywhere() if x.type in ("ReadValue", "Assign")]
    found = [layer for layer in users if layer.data.get("variable_id") == old]
    if found and any(layer.data.get("variable_id") == new for layer in users):
        raise UsageError(f'variable "{old}" cannot be renamed to "{new}": there is one so named')
    for layer in found:
        layer.data["variable_id"] = new
        desk.report.note("renamed", f'variable is now "{new}"', layer)
    return bool(found)


class SetAttribute(Chosen):
    """Give layers an attribute; null takes it away."""

    reshapes: ClassVar[bool] = True
    op: Literal["set-attribute"]
    name: str = Field(description="the attribute as the file spells it")
    value: bool | int | float | str | list[Any] | None = Field(description="its value")

    def _carry_out(self, desk: Desk) -> None:
        for layer in self.chosen(desk):
            kind = Op.find(layer.type, layer.version)
            known = None if kind is None else [row.name for row in kind.describe()]
            if known is not None and self.name not in known and self.name not in layer.data:
                raise unknown_attribute(layer, self.name)
            if layer.type == "Const" and self.name in ("offset", "size"):
                raise UsageError(
                    f"{self.name} says where its bytes are, which the writer settles",
                    layer.where,
                    "set-constant gives it another value",
                )
            old = layer.data.get(self.name)
            data = dict(layer.data)
            if self.value is None:
                data.pop(self.name, None)
            else:
                data[self.name] = attribute_text(self.name, self.value)
            if old == data.get(self.name):
                continue
            desk.keep(layer, "data")
            layer.data = data
            layer.op  # noqa: B018  # an error where the operation does not take it
            desk.given.append(layer)
            was = "there was none" if old is None else f'was "{old}"'
            new = data.get(self.name)
            said = "removed" if new is None else f'= "{new}"'
            desk.report.note("attribute", f"{self.name} {said}, {was}", layer)


class SetVersion(Chosen):
    """Name another version of the operation of layers."""

    reshapes: ClassVar[bool] = True
    op: Literal["set-version"]
    version: Word = Field(description="the opset, such as opset8")

    def _carry_out(self, desk: Desk) -> None:
        for layer in self.chosen(desk):
            desk.keep(layer, "version")
            old, layer.version = layer.version, self.version
            if Op.find(layer.type, old) is not None and layer.op is None:
                raise UsageError(f"{layer.type} is not in {self.version}", layer.where)
            if old != self.version:
                desk.report.note("version", f"{self.version}, was {old}", layer)


class SetInfo(Chosen):
    """Give layers, or the model where none is named, an entry of rt_info; null takes it away."""

    op: Literal["set-info"]
    key: list[Word] = Field(min_length=1, description="the path of the entry")
    value: str | None = Field(description="its value")

    def _carry_out(self, desk: Desk) -> None:
        named = any(x is not None for x in (self.layer, self.layers, self.type))
        owners: list[Layer] | list[Graph] = self.chosen(desk) if named else [desk.graph]
        path = "/".join(self.key)
        # Of layers that a pattern names some need not have what is taken away.
        if self.value is None and not any(_has_info(x.rt_info, self.key) for x in owners):
            raise UsageError(f'there is no entry "{path}" to be taken away')
        for owner in owners:
            if self.value is None and not _has_info(owner.rt_info, self.key):
                continue
            info = owner.rt_info or Info("rt_info")
            nodes = [info]
            for word in self.key[:-1]:
                found = nodes[-1].find(word)
                if found is None:
                    found = nodes[-1].set(word, "")
                    del found.attributes["value"]
                nodes.append(found)
            if self.value is None:
                nodes[-1].remove(self.key[-1])
                # What was there for this entry alone goes with it.
                for node, above in pairwise(reversed(nodes)):
                    if node.children or node.text.strip() or node.attributes.keys() - {"name"}:
                        break
                    above.children = [child for child in above.children if child is not node]
            else:
                nodes[-1].set(self.key[-1], self.value)
            # A file always has one for its model, for a layer only where it says something.
            owner.rt_info = None if named and not info.children else info
            said = "removed" if self.value is None else f'= "{self.value}"'
            desk.report.note("rt_info", f"{path} {said}", owner if named else None)  # type: ignore[arg-type]  # a layer, where layers are named


def _has_info(info: Info | None, path: list[str]) -> bool:
    """Whether there is an entry of this path."""
    for word in path:
        info = None if info is None else info.find(word)
    return info is not None


class SetConstant(Valued):
    """Give a constant another value; it keeps its type unless another is named."""

    reshapes: ClassVar[bool] = True
    named_by_paths = ("layer",)
    op: Literal["set-constant"]
    layer: Key = Field(description="the constant")
    type: str | None = Field(None, description="an element type, such as f16")

    def _carry_out(self, desk: Desk) -> None:
        layer = desk.bench.layer(self.layer)
        if not layer.is_constant:
            raise UsageError(f"{layer.type} has no value, only Const has one", layer.where)
        held = ElementType.named(self.type) if self.type is not None else layer.element_type
        give_value(desk, layer, self.array(desk, held), held)


def give_value(desk: Desk, layer: Layer, value: Array, held: ElementType) -> None:
    """Give a constant a value of a type."""
    old = f"{layer.element_type}{list(layer.sizes)}"
    layer.set_value(value, held)
    desk.report.note("constant", f"{held}{list(layer.sizes)}, was {old}", layer)


class Delete(Chosen):
    """Take layers out, and what fed only them; nothing may be left that they feed."""

    op: Literal["delete"]

    def _carry_out(self, desk: Desk) -> None:
        delete(desk, self.chosen(desk))


def delete(desk: Desk, chosen: list[Layer]) -> None:
    """Take layers out; nothing that is left may need them."""
    going = {id(layer) for layer in chosen}
    for layer in chosen:
        for index in range(len(layer.outputs)):
            for user, place in desk.bench.users(Source(layer, index)):
                if id(user) not in going:
                    raise UsageError(
                        f'it feeds input {place} of layer "{user.name}" ({user.type})',
                        layer.where,
                        "delete that too, or bypass this one"
                        if user.type != "Result"
                        else "remove the output first (remove-output), or bypass the layer",
                    )
    desk.bench.take_out(chosen)
    for layer in chosen:
        desk.report.note("deleted", layer.type, layer)


class Bypass(Chosen):
    """Let what layers feed be fed by one of their inputs, and take them out."""

    op: Literal["bypass"]
    input: int | None = Field(
        None, ge=0, description="which input is handed on; the first that is no constant"
    )

    def _carry_out(self, desk: Desk) -> None:
        for layer in self.chosen(desk):
            if not layer.inputs or not layer.outputs:
                raise UsageError(f"{layer.type} has no input to hand on", layer.where)
            for index in range(1, len(layer.outputs)):
                if desk.bench.users(Source(layer, index)):
                    raise UsageError(
                        f"output {index} is used, only output 0 can be bypassed", layer.where
                    )
            source = desk.bench.feeder(layer, self._index(desk, layer))
            desk.bench.replace(Source(layer, 0), source)
            desk.bench.take_out([layer])
            desk.report.note("bypassed", f'"{source.spelled}" is handed on', layer)

    def _index(self, desk: Desk, layer: Layer) -> int:
        if self.input is not None:
            return self.input
        for index in range(len(layer.inputs)):
            source = desk.bench.feeder(layer, index).layer
            if source.type == "Convert":
                source = desk.bench.feeder(source, 0).layer
            if source.type != "Const":
                return index
        return 0


class Insert(Edit):
    """Put a new layer after a tensor (what it feeds is fed by the layer), or before an input."""

    op: Literal["insert"]
    after: str | None = Field(None, description="the tensor")
    before: str | None = Field(None, description="the input of a layer, as LAYER:INDEX")
    type: str = Field(description="the type of the new layer")
    version: Word | None = Field(None, description="its opset; that of the newest version")
    name: Word | None = Field(None, description="its name")
    attributes: dict[str, Any] = Field(default_factory=dict, description="its attributes")
    inputs: list[Any] = Field(
        default_factory=lambda: ["@"],
        description='its inputs: "@" for the tensor, other tensors, {"constant": 2.0}',
    )
    output: int = Field(0, ge=0, description="which of its outputs is handed on")

    @model_validator(mode="after")
    def _one_place(self) -> Any:
        if (self.after is None) == (self.before is None):
            raise ValueError('give one of "after" and "before"')
        return self

    def _carry_out(self, desk: Desk) -> None:
        bench = desk.bench
        version = self.version or newest(self.type)
        name = self.name or self.type
        if self.before is not None:
            layer, index = input_place(desk, self.before)
            source = bench.feeder(layer, index)
            users = [(layer, index)]
        else:
            source = bench.tensor(self.after or "")
            users = bench.users(source)
        inputs = sources_of(desk, self.inputs, self.type, name, source)
        made = bench.put(self.type, version, inputs, self.attributes, name=name)
        if self.output >= len(made.layer.outputs):
            raise UsageError(
                f"{self.type} has {len(made.layer.outputs)} outputs, {self.output} is handed on"
            )
        bench.feed(users, Source(made.layer, self.output))
        desk.made = made.layer
        desk.report.note("inserted", f'{self.type} at "{source.spelled}"', made.layer)


class ReplaceLayer(Edit):
    """Put a new layer in the place of one: it takes what that took, and feeds what that fed."""

    named_by_paths = ("layer",)

    op: Literal["replace-layer"]
    layer: Key = Field(description="the layer that goes")
    type: str = Field(description="the type of the new layer")
    version: Word | None = Field(None, description="its opset; that of the newest version")
    name: Word | None = Field(None, description="its name; that of the layer that goes")
    attributes: dict[str, Any] = Field(default_factory=dict, description="its attributes")
    inputs: list[Any] | None = Field(
        None, description='its inputs, if others: "@" is the first of before'
    )

    def _carry_out(self, desk: Desk) -> None:
        bench, old = desk.bench, desk.bench.layer(self.layer)
        if old.type == "Result":
            raise UsageError(
                "it is an output, in whose place no layer stands",
                old.where,
                "insert the layer before it (insert), or remove the output (remove-output)",
            )
        before = [bench.feeder(old, index) for index in range(len(old.inputs))]
        name = self.name or old.name
        bench.refuse_taken(old, name)
        inputs = before
        if self.inputs is not None:
            inputs = sources_of(desk, self.inputs, self.type, name, before[0] if before else None)
        version = self.version or newest(self.type)
        made = bench.put(self.type, version, inputs, self.attributes, name=f"{name}/new").layer
        used = [i for i in range(len(old.outputs)) if bench.users(Source(old, i))]
        if max(used, default=-1) >= len(made.outputs):
            raise UsageError(
                f"output {used[-1]} is used, {self.type} has {len(made.outputs)} outputs",
                old.where,
            )
        for index in range(min(len(old.outputs), len(made.outputs))):
            bench.move_names(Source(old, index), Source(made, index))
            bench.feed(bench.users(Source(old, index)), Source(made, index))
        bench.take_out([old])
        bench.rename_layer(made, name)
        desk.made = made
        desk.report.note("replaced", f"{made.type} {made.version} for {old.type}", made)


class Connect(Edit):
    """Feed an input of a layer from another tensor."""

    op: Literal["connect"]
    tensor: str = Field(alias="from", description="the tensor")
    to: str = Field(description="the input of a layer, as LAYER:INDEX")

    def _carry_out(self, desk: Desk) -> None:
        layer, index = input_place(desk, self.to)
        source, old = desk.bench.tensor(self.tensor), desk.bench.feeder(layer, index)
        desk.bench.feed([(layer, index)], source)
        desk.bench.drop_unused(old.layer)
        desk.report.note("connected", f'input {index} is fed by "{source.spelled}"', layer)


LAYER_EDITS = (
    Rename, SetAttribute, SetVersion, SetInfo, SetConstant, Delete, Bypass, Insert, ReplaceLayer,
    Connect,
)  # fmt: skip
