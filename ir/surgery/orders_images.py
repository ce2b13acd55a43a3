"""Edits that put into a model what is done before it (images) and after it (scores, boxes)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from ...schemas import ANY, Dim, ElementType, Size, Tensor, UsageError
from ..document import FreeNames, Info, Layer, keep_symbols, layout_spelling
from .orders import Desk, Edit
from .orders_ends import axes_of, said_layout, set_layout
from .workbench import Source

#: The layout of images in a model that says none.
USUAL = {3: "CHW", 4: "NCHW", 5: "NCDHW"}
#: What sizes and numbers of things may be at the most.
_MOST = (1 << 31) - 1


class Preprocess(Edit):
    """Let an input take images as they come: the steps are done in the order of these fields."""

    op: Literal["preprocess"]
    input: str = Field(description="the input")
    type: str | None = Field(None, description="the element type that is given, such as u8")
    layout: str | None = Field(None, description="the layout that is given, such as NHWC")
    model_layout: str | None = Field(
        None, description="the layout of the model; what its input says, else NCHW"
    )
    resize: bool | list[int] = Field(
        False, description="true: any height and width are given; [480, 640]: these"
    )
    mode: Literal["linear", "nearest", "cubic"] = Field("linear", description="how to resize")
    reverse_channels: bool = Field(False, description="BGR is given for RGB, or the reverse")
    mean: float | list[float] | None = Field(None, description="what is subtracted")
    scale: float | list[float] | None = Field(None, description="what it is divided by then")

    def _carry_out(self, desk: Desk) -> None:
        bench, parameter = desk.bench, desk.input(self.input)
        source = Source(parameter, 0)
        tensor = bench.known(source)
        if tensor.rank is None:
            raise UsageError("its rank is not known", parameter.where, "give it a shape first")
        own = self._model_layout(parameter, tensor.rank)
        text = own if self.layout is None else self.layout
        inner, given = (axes_of(x, tensor.rank, parameter.where, "the input") for x in (own, text))
        if sorted(given) != sorted(inner):
            raise UsageError(
                f"layout {text} has other axes than that of the model, {own}",
                parameter.where,
                None if self.model_layout else 'say what its axes are: "model_layout"',
            )
        users = bench.users(source)
        kind = tensor.type if self.type is None else ElementType.named(self.type)
        self._redeclare(desk, parameter, tensor, kind, given, inner)
        bench.forget_tensors()
        steps = _Steps(desk, source, parameter.name, given)
        computes = self.resize is not False or self.mean is not None or self.scale is not None
        if computes:
            # Means of f16 lose digits, and a scale of 70000 is infinite in it: both want f32.
            kinds = (ElementType.F32, kind, tensor.type)
            steps.convert(max((x for x in kinds if x.is_real), key=lambda x: x.bits))
        if self.resize is not False:
            steps.resize([tensor.shape[inner.index(x)] for x in "HW"], self.mode)
        if self.reverse_channels:
            steps.reverse()
        if self.mean is not None:
            steps.by_channel("Subtract", self.mean)
        if self.scale is not None:
            steps.by_channel("Divide", self.scale)
        steps.transpose(inner)
        steps.convert(tensor.type)
        if steps.at != source:
            bench.feed(users, steps.at)
        elif self.layout is None:
            raise UsageError("it asks for nothing to be done", parameter.where)
        set_layout(source.port, text)
        named = _spelled(given)
        desk.report.note("preprocess", f"takes {bench.known(source)} in {named}", parameter)

    def _model_layout(self, parameter: Layer, rank: int) -> str:
        """What its axes are: what is given, else what it says; guessed only if it says nothing."""
        said = said_layout(parameter.outputs[0])
        found = self.model_layout or (USUAL.get(rank) if said is None else said)
        if found is None:
            raise UsageError(
                f"its layout is not known, it has rank {rank}",
                parameter.where,
                'give "model_layout"',
            )
        return found

    def _redeclare(
        self,
        desk: Desk,
        parameter: Layer,
        tensor: Tensor,
        kind: ElementType,
        given: tuple[str, ...],
        inner: tuple[str, ...],
    ) -> None:
        """Give the input the type and shape that are given from now on."""
        sizes: list[Size] = [tensor.shape[axis] for axis in _order(inner, given)]
        if self.resize is not False:
            if not {"H", "W"} <= set(given):
                raise UsageError(
                    f"layout {_spelled(given)} has no H and W to resize", parameter.where
                )
            wanted: list[Size] = [ANY, ANY]
            if isinstance(self.resize, list):
                if len(self.resize) != 2 or min(self.resize) < 1:
                    raise UsageError("resize needs a height and a width", parameter.where)
                wanted = list(self.resize)
            for letter, size in zip("HW", wanted, strict=True):
                sizes[given.index(letter)] = size
        made = Tensor(kind, sizes)
        desk.keep(parameter, "data", "rt_info")
        parameter.data = {
            **parameter.data, "shape": made.shape.spelling, "element_type": str(kind)
        }  # fmt: skip
        keep_symbols(parameter, made.shape)


class _Steps:
    """A chain of layers behind an input."""

    def __init__(self, desk: Desk, at: Source, name: str, layout: tuple[str, ...]) -> None:
        self.desk, self.at, self.name, self.layout = desk, at, name, layout
        self.where = at.layer.where

    def add(self, type: str, version: str, more: list[Source], **data: Any) -> None:
        """One more layer."""
        name = f"{self.name}/{type}"
        self.at = self.desk.bench.put(type, version, [self.at, *more], data, name=name)

    def constant(self, value: Any, kind: ElementType | str) -> Source:
        """A constant for the next layer."""
        return self.desk.bench.constant(value, kind, name=f"{self.name}/constant")

    @property
    def tensor(self) -> Tensor:
        """What is known at this point."""
        return self.desk.bench.known(self.at)

    def convert(self, kind: ElementType) -> None:
        """Another element type, where it is another."""
        if self.tensor.type is not kind:
            self.add("Convert", "opset1", [], destination_type=kind)

    def resize(self, sizes: list[Size], mode: str) -> None:
        """The height and width of the model, which have to be known."""
        if any(isinstance(size, Dim) for size in sizes):
            raise UsageError(
                f"height and width of the model are {sizes[0]} and {sizes[1]}, resizing needs "
                "them known",
                self.where,
                "give the input a shape first (set-shape)",
            )
        axes = [self.layout.index(letter) for letter in "HW"]
        more = [self.constant(np.array(sizes, np.int64), "i64"), self.constant(axes, "i64")]
        self.add(
            "Interpolate", "opset11", more, mode=mode, shape_calculation_mode="sizes",
            coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor",
            antialias=False, pads_begin=[0], pads_end=[0], cube_coeff=-0.75,
        )  # fmt: skip

    def channels(self) -> tuple[int, int]:
        """The axis of the channels, and their number."""
        if "C" not in self.layout:
            raise UsageError(
                f"layout {_spelled(self.layout)} has no C",
                self.where,
                'say which are the channels: "model_layout"',
            )
        axis = self.layout.index("C")
        size = self.tensor.shape[axis]
        if isinstance(size, Dim):
            raise UsageError(f"the number of channels is {size}", self.where)
        return axis, size

    def reverse(self) -> None:
        """The channels in the reverse order."""
        axis, count = self.channels()
        order = np.arange(count, dtype=np.int64)[::-1].copy()
        more = [self.constant(order, "i64"), self.constant(np.int64(axis), "i64")]
        self.add("Gather", "opset8", more, batch_dims=0)

    def by_channel(self, type: str, numbers: float | list[float]) -> None:
        """Arithmetic with a number, or one for each channel."""
        kind = self.tensor.type
        value = np.asarray(numbers, np.float64)
        if value.ndim:
            axis, count = self.channels()
            if value.shape != (count,):
                raise UsageError(
                    f"{value.size} numbers are given for {count} channels", self.where
                )
            shape = [1] * len(self.layout)
            shape[axis] = count
            value = value.reshape(shape)
        with np.errstate(over="ignore"):
            value = value.astype(kind.dtype)
        if not np.isfinite(value).all():
            raise UsageError(f"{numbers} is more than {kind} holds", self.where)
        if type == "Divide" and not value.all():
            raise UsageError("a scale is 0", self.where)
        words = {"m_pythondiv": True} if type == "Divide" else {}
        more = [self.constant(value, kind)]
        self.add(type, "opset1", more, auto_broadcast="numpy", **words)
        # As OpenVINO marks it: its CPU would join it to a resizing, and fail in some layouts.
        mark = Info("attribute", {"name": "preprocessing", "version": "0"})
        self.at.layer.rt_info = Info("rt_info", children=[mark])

    def transpose(self, layout: tuple[str, ...]) -> None:
        """Another layout, where it is another."""
        if layout != self.layout:
            order = _order(self.layout, layout)
            self.add("Transpose", "opset1", [self.constant(np.array(order), "i64")])
            self.layout = layout


def _spelled(layout: tuple[str, ...]) -> str:
    """A layout in letters, where these suffice."""
    return "".join(layout) if max(map(len, layout), default=1) == 1 else layout_spelling(layout)


def _order(layout: tuple[str, ...], wanted: tuple[str, ...]) -> list[int]:
    """Where a layout has the axes of another; those without a letter keep their order."""
    unnamed = (axis for axis, letter in enumerate(layout) if letter == "?")
    return [next(unnamed) if letter == "?" else layout.index(letter) for letter in wanted]


class _OnOutput(Edit):
    """Something done to an output."""

    output: str = Field(description="the output")

    def ends(self, desk: Desk) -> tuple[Layer, Source]:
        """The Result, and what feeds it."""
        desk.outermost("outputs")
        result = desk.bench.output(self.output)
        return result, desk.bench.feeder(result, 0)

    def hand_out(self, desk: Desk, result: Layer, new: Source) -> None:
        """Let an output give another tensor, under the same names."""
        desk.bench.feed([(result, 0)], new, self.output)


class Softmax(_OnOutput):
    """Turn an output into probabilities."""

    op: Literal["softmax"]
    axis: int = Field(-1, description="the axis of the classes")

    def _carry_out(self, desk: Desk) -> None:
        result, source = self.ends(desk)
        name = f"{source.layer.name}/SoftMax"
        new = desk.bench.put("SoftMax", "opset8", [source], {"axis": self.axis}, name=name)
        self.hand_out(desk, result, new)
        desk.report.note("postprocess", f"softmax over axis {self.axis}", new.layer)


class TopK(_OnOutput):
    """Let an output give the greatest values, and a further one their places."""

    op: Literal["top-k"]
    k: int = Field(ge=1, le=_MOST, description="how many")
    axis: int = Field(-1, description="the axis of the classes")
    type: Literal["i32", "i64"] = Field("i64", description="the type of the places")

    def _carry_out(self, desk: Desk) -> None:
        result, source = self.ends(desk)
        new = _top(desk, source, self.k, self.axis, self.type)
        first = source.port.names[:1] or (source.spelled,)
        self.hand_out(desk, result, new)
        places = Source(new.layer, 1)
        desk.bench.name_tensor(places, [f"{first[0]}/indices"])
        desk.bench.result(places)
        desk.report.note("postprocess", f"the {self.k} greatest over axis {self.axis}", new.layer)


def _top(desk: Desk, source: Source, k: int, axis: int, kind: str) -> Source:
    name = f"{source.layer.name}/TopK"
    count = desk.bench.constant(np.int64(k), "i64", name=f"{name}/k")
    data = {"axis": axis, "mode": "max", "sort": "value", "index_element_type": kind,
            "stable": True}  # fmt: skip
    return desk.bench.put("TopK", "opset11", [source, count], data, name=name)


class Argmax(_OnOutput):
    """Let an output give the place of the greatest value."""

    op: Literal["argmax"]
    axis: int = Field(-1, description="the axis of the classes")
    keep_dims: bool = Field(False, description="whether the axis stays, with size 1")
    type: Literal["i32", "i64"] = Field("i64", description="the type of the places")

    def _carry_out(self, desk: Desk) -> None:
        result, source = self.ends(desk)
        new = Source(_top(desk, source, 1, self.axis, self.type).layer, 1)
        if not self.keep_dims:
            name = f"{source.layer.name}/Squeeze"
            axis = desk.bench.constant(np.int64(self.axis), "i64", name=f"{name}/axis")
            new = desk.bench.put("Squeeze", "opset1", [new, axis], name=name)
        self.hand_out(desk, result, new)
        desk.report.note("postprocess", f"argmax over axis {self.axis}", new.layer)


class NonMaxSuppression(Edit):
    """Choose among boxes; the outputs are the chosen indices, their scores and their number."""

    op: Literal["nms"]
    boxes: str = Field(description="the tensor of the boxes, [batch, boxes, 4]")
    scores: str = Field(description="the tensor of the scores, [batch, classes, boxes]")
    max_boxes: int = Field(
        ge=1, le=_MOST, description="how many boxes of a class are chosen at the most"
    )
    iou_threshold: float = Field(0.5, ge=0, le=1, description="overlap from which boxes are one")
    score_threshold: float = Field(0.0, description="scores below are left out")
    encoding: Literal["corner", "center"] = Field("corner", description="what a box says")
    keep: bool = Field(False, description="whether boxes and scores remain outputs")

    def _carry_out(self, desk: Desk) -> None:
        desk.outermost("outputs")
        bench = desk.bench
        boxes, scores = bench.tensor(self.boxes), bench.tensor(self.scores)
        name = f"{scores.layer.name}/NonMaxSuppression"
        numbers = [
            bench.constant(np.int64(self.max_boxes), "i64", name=f"{name}/max_boxes"),
            bench.constant(np.float32(self.iou_threshold), "f32", name=f"{name}/iou"),
            bench.constant(np.float32(self.score_threshold), "f32", name=f"{name}/score"),
        ]
        data = {"box_encoding": self.encoding, "sort_result_descending": True,
                "output_type": "i64"}  # fmt: skip
        new = bench.put("NonMaxSuppression", "opset9", [boxes, scores, *numbers], data, name=name)
        if not self.keep:
            for source in (boxes, scores):
                bench.take_out(user for user, _ in bench.users(source) if user.type == "Result")
        words = ("selected_indices", "selected_scores", "valid_outputs")
        for index, word in enumerate(words):
            source = Source(new.layer, index)
            bench.name_tensor(source, [FreeNames(bench.has_tensor)(word)])
            bench.result(source)
        desk.report.note("postprocess", f"at most {self.max_boxes} boxes of a class", new.layer)


IMAGE_EDITS = (Preprocess, Softmax, TopK, Argmax, NonMaxSuppression)
