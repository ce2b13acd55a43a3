"""Edits of inputs and outputs: more, fewer, other types, shapes and layouts."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ...schemas import ElementType, IRError, Shape, Tensor, UsageError, Where
from ..document import Info, Port, array_of, axis_names, keep_symbols, layout_spelling, layout_text
from .orders import Desk, Edit, Key, Valued, Word
from .workbench import Source, Workbench


class AddOutput(Edit):
    """Hand a tensor out."""

    op: Literal["add-output"]
    tensor: str = Field(description="the tensor")
    name: Word | None = Field(None, description="a further name for it")

    def _carry_out(self, desk: Desk) -> None:
        desk.outermost("outputs")
        source = desk.bench.tensor(self.tensor)
        if self.name is not None:
            desk.bench.name_tensor(source, [self.name])
        result = desk.bench.result(source)
        desk.made = result
        desk.report.note("output", f'"{source.spelled}" is handed out', result)


class RemoveOutput(Edit):
    """Hand an output out no more, and take out what only it needed."""

    op: Literal["remove-output"]
    output: str = Field(description="the output")

    def _carry_out(self, desk: Desk) -> None:
        desk.outermost("outputs")
        result = desk.bench.output(self.output)
        desk.bench.take_out([result])
        desk.report.note("deleted", "is no output any more", result)


class AddInput(Edit):
    """Feed a tensor from outside; what only it needed is taken out."""

    op: Literal["add-input"]
    tensor: str = Field(description="the tensor, which keeps its names")
    name: Word | None = Field(None, description="the name of the input's layer")

    def _carry_out(self, desk: Desk) -> None:
        desk.outermost("inputs")
        bench = desk.bench
        source = bench.tensor(self.tensor)
        if source.layer.type == "Parameter":
            raise UsageError("it is an input already", source.layer.where)
        tensor = bench.known(source)
        names = source.port.names or (bench.own_name(source),)
        users, others = bench.users(source), _other_users(bench, source)
        if not others:
            bench.take_out([source.layer])
        source.port.names = ()
        name = self.name or (names[0] if others else source.layer.name)
        made = bench.parameter(Tensor(tensor.type, tensor.shape), name=name, names=names)
        bench.feed(users, made)
        desk.report.note("input", f"{tensor} is fed from outside", made.layer)


def _other_users(bench: Workbench, source: Source) -> bool:
    """Whether other outputs of the layer are used."""
    layer = source.layer
    return any(
        bench.users(Source(layer, index))
        for index in range(len(layer.outputs))
        if index != source.index
    )


class RemoveInput(Edit):
    """Take out an input that feeds nothing."""

    op: Literal["remove-input"]
    input: str = Field(description="the input")

    def _carry_out(self, desk: Desk) -> None:
        parameter = desk.input(self.input)
        users = desk.bench.users(Source(parameter, 0))
        if users:
            user, place = users[0]
            raise UsageError(
                f'it feeds input {place} of layer "{user.name}" ({user.type})',
                parameter.where,
                "make it a constant (input-to-constant), or feed the layer from elsewhere",
            )
        desk.bench.take_out([parameter])
        desk.report.note("deleted", "is no input any more", parameter)


class ConstantToInput(Edit):
    """Make a constant an input of the model."""

    op: Literal["constant-to-input"]
    layer: Key = Field(description="the constant")
    shape: str | None = Field(None, description="another shape, such as ?,3")

    def _carry_out(self, desk: Desk) -> None:
        desk.outermost("inputs")
        bench = desk.bench
        layer = bench.layer(self.layer)
        if not layer.is_constant:
            raise UsageError(f"{layer.type} is no constant", layer.where)
        shape = Shape(layer.sizes) if self.shape is None else read_shape(self.shape)
        source = Source(layer, 0)
        users, names = bench.users(source), source.port.names or (layer.name,)
        bench.take_out([layer])
        made = bench.parameter(Tensor(layer.element_type, shape), name=layer.name, names=names)
        bench.feed(users, made)
        desk.report.note(
            "input", f"{layer.element_type}[{shape.spelling}] was a constant", made.layer
        )


class InputToConstant(Valued):
    """Make an input of the model a constant."""

    op: Literal["input-to-constant"]
    input: str = Field(description="the input")

    def _carry_out(self, desk: Desk) -> None:
        bench, parameter = desk.bench, desk.input(self.input)
        source = Source(parameter, 0)
        tensor = bench.known(source)
        array = self.array(desk, tensor.type)
        try:
            tensor.shape.merge(Shape(array.shape))
        except IRError:
            raise UsageError(
                f"the value has the shape {list(array.shape)}, the input {tensor.shape.spelling}",
                parameter.where,
            ) from None
        users, names = bench.users(source), source.port.names
        bench.take_out([parameter])
        made = bench.constant(array, tensor.type, name=parameter.name)
        made.port.names = names
        bench.feed(users, made)
        desk.report.note("constant", f"{tensor} was an input", made.layer)


class SetType(Edit):
    """Give an input or a constant another element type."""

    reshapes: ClassVar[bool] = True
    op: Literal["set-type"]
    input: str | None = Field(None, description="the input")
    constant: Key | None = Field(None, description="the constant, whose value is converted")
    type: str = Field(description="the element type, such as f16")

    def _carry_out(self, desk: Desk) -> None:
        kind = ElementType.named(self.type)
        if self.constant is not None and self.input is None:
            layer = desk.bench.layer(self.constant)
            if not layer.is_constant:
                raise UsageError(f"{layer.type} is no constant", layer.where)
            old = layer.element_type
            layer.set_value(array_of(layer.value, kind, "the constant"), kind)
        elif self.input is not None and self.constant is None:
            layer = desk.bench.input(self.input)
            old = desk.bench.known(Source(layer, 0)).type
            layer.data = {**layer.data, "element_type": str(kind)}
        else:
            raise UsageError('give one of "input" and "constant"')
        desk.report.note("type", f"{kind}, was {old}", layer)


class SetShape(Edit):
    """Give an input another shape."""

    reshapes: ClassVar[bool] = True
    op: Literal["set-shape"]
    input: str = Field(description="the input")
    shape: str = Field(description="the shape, such as 1,3,?,? or 1..8,3,224,224")

    def _carry_out(self, desk: Desk) -> None:
        layer = desk.bench.input(self.input)
        shape, old = read_shape(self.shape), layer.data.get("shape", "")
        layer.data = {**layer.data, "shape": shape.spelling}
        keep_symbols(layer, shape)
        desk.report.note("shape", f"{shape.spelling}, was {old}", layer)


class SetLayout(Edit):
    """Say what the axes of an input or output mean."""

    op: Literal["set-layout"]
    input: str | None = Field(None, description="the input")
    output: str | None = Field(None, description="the output")
    layout: str = Field(
        description="one letter for each axis, such as NCHW, or words: [N,CHAN,H,W], N...C"
    )

    def _carry_out(self, desk: Desk) -> None:
        if (self.input is None) == (self.output is None):
            raise UsageError('give one of "input" and "output"')
        if self.input is not None:
            source = Source(desk.bench.input(self.input), 0)
        else:
            source = desk.bench.feeder(desk.bench.output(self.output or ""), 0)
        axes_of(self.layout, desk.bench.known(source).rank, source.layer.where)
        set_layout(source.port, self.layout)
        desk.report.note("layout", self.layout, source.layer)


def axes_of(
    layout: str, rank: int | None = None, where: Where | None = None, what: str = "the tensor"
) -> tuple[str, ...]:
    """The names of a layout's axes, "?" of one without a name; by the rank where "..." stands."""
    text = layout.strip()
    if "," in text and not text.startswith("["):
        text = f"[{text}]"
    try:
        names = axis_names(text)
    except ValueError as error:
        raise UsageError(
            f'"{layout}" is no layout: {error}',
            where,
            "write one letter for each axis: NCHW; words as [N,CHAN,H,W]; ... for any axes: N...C",
        ) from None
    if rank is None:
        return names
    count = f"{len(names)}"
    if "..." in names:
        place = names.index("...")
        count = f"{len(names) - 1} or more"
        unnamed = ("?",) * (rank - len(names) + 1)
        names = (*names[:place], *unnamed, *names[place + 1 :])
    if len(names) != rank:
        raise UsageError(f"layout {layout} has {count} axes, {what} {rank}", where)
    return names


def layout_of(port: Port, rank: int | None = None) -> str | None:
    """A letter, or "?", for each axis of the layout that a port says; None where it says none.

    The rank, where "..." stands for any number of axes, is that of the port unless it is given.
    """
    text = said_layout(port)
    if text is None:
        return None
    where = None if port.layer is None else port.layer.where
    names = axes_of(text, None, where)
    if "..." in names:
        rank = rank or len(port.dims)
        if not rank:  # nothing tells which axis is which
            return None
        names = axes_of(text, rank, where)
    return "".join(name if len(name) == 1 else "?" for name in names)


def said_layout(port: Port) -> str | None:
    """The layout that a port says, if that is anything: "..." is not."""
    text = layout_text(port)
    return None if text is None or text.strip() in ("", "...", "[...]") else text


def set_layout(port: Port, layout: str) -> None:
    """Let a port say its layout, as OpenVINO writes it."""
    info = port.rt_info or Info("rt_info")
    text = layout_spelling(axes_of(layout))
    for child in info:
        if child.key == "layout":
            child.attributes["layout"] = text
            break
    else:
        info.children.append(Info("attribute", {"name": "layout", "version": "0", "layout": text}))
    port.rt_info = info


def read_shape(text: str) -> Shape:
    """A shape that a caller wrote."""
    try:
        return Shape.parse(text, symbols=True)
    except ValueError as error:
        raise UsageError(str(error)) from None


END_EDITS = (
    AddOutput, RemoveOutput, AddInput, RemoveInput, ConstantToInput, InputToConstant, SetType,
    SetShape, SetLayout,
)  # fmt: skip
