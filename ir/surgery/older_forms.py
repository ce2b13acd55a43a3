"""Lowerings: operations expressed by older ones, where they can be.

Each entry of the table takes one layer, and gives what its outputs are then, or refuses with the
reason. What it puts into the graph may be newer than wanted too: it is brought down in its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod, sqrt
from typing import Any, TypeAlias

import numpy as np

from ...schemas import Dim, ElementType, Tensor
from ..document import Layer
from .workbench import Source, Workbench


class Cannot(Exception):  # noqa: N818  # no error: the answer to a question
    """Why an operation cannot be expressed by older ones here."""


class Lowering:
    """One layer that is to be expressed by older operations."""

    def __init__(self, bench: Workbench, layer: Layer) -> None:
        self.bench, self.layer = bench, layer
        self.inputs = [bench.feeder(layer, index) for index in range(len(layer.inputs))]
        op = layer.op
        self.texts: Mapping[str, str] = layer.data if op is None else op.attributes()
        self.made: list[Layer] = []

    @property
    def data(self) -> Source:
        """The first input."""
        return self.inputs[0]

    def tensor(self, index: int = 0) -> Tensor:
        """What is known of an input."""
        return self.bench.known(self.inputs[index])

    def numbers(self, name: str) -> list[int]:
        """An attribute that lists whole numbers."""
        return [int(text) for text in self.texts.get(name, "").split(",") if text.strip()]

    def flag(self, name: str) -> bool:
        """An attribute that is true or false."""
        return self.texts.get(name, "false").lower() in ("true", "1")

    def value(self, index: int) -> Any:
        """The value of an input, where it is known."""
        found = self.tensor(index).value
        return None if found is None else np.asarray(found)

    def static(self, index: int = 0) -> list[int]:
        """The sizes of an input, which have to be known."""
        shape = self.tensor(index).shape
        if not shape.is_static:
            raise Cannot(f"input {index} has sizes that are not known: {shape.spelling}")
        return list(shape.static)

    def is_used(self, output: int) -> bool:
        """Whether an output feeds anything."""
        return output < len(self.layer.outputs) and bool(
            self.bench.users(Source(self.layer, output))
        )

    def put(self, type: str, *inputs: Source, version: str = "opset1", **data: Any) -> Source:
        """A layer that is older."""
        words = {key.replace("__", "-"): value for key, value in data.items()}
        name = f"{self.layer.name}/{type}"
        made = self.bench.put(type, version, inputs, words, name=name)
        self.made.append(made.layer)
        return made

    def binary(self, type: str, one: Source, other: Source | float) -> Source:
        """Arithmetic; a number takes the type of the tensor that it meets."""
        if not isinstance(other, Source):
            kind = self.bench.known(one).type
            if not kind.is_real:
                raise Cannot(f"of {kind} it gives what arithmetic of older operations does not")
            other = self.number(other, kind)
        words: dict[str, Any] = {"m_pythondiv": True} if type == "Divide" else {}
        return self.put(type, one, other, auto_broadcast="numpy", **words)

    def number(self, value: Any, kind: ElementType | str = "i64") -> Source:
        """A constant."""
        array = np.asarray(value)
        dtype = ElementType(kind).dtype
        name = f"{self.layer.name}/constant"
        made = self.bench.constant(array.astype(dtype), kind, name=name)
        self.made.append(made.layer)
        return made

    def again(
        self, version: str, *inputs: Source, drop: Sequence[str] = (), **data: Any
    ) -> Source:
        """The same operation in an older version, without some attributes."""
        words = {k: v for k, v in self.texts.items() if k not in drop} | data
        name = f"{self.layer.name}/{self.layer.type}"
        made = self.bench.put(
            self.layer.type, version, inputs or tuple(self.inputs), words, name=name
        )
        self.made.append(made.layer)
        return made


#: What stands for the outputs of the layer, in order.
Rule: TypeAlias = Callable[[Lowering], Sequence[Source]]


def _same(version: str, *drop: str, **only: str) -> Rule:
    """The older version is the same, as long as attributes have these values."""

    def rule(form: Lowering) -> Sequence[Source]:
        for name, value in only.items():
            held = form.texts.get(name, value)
            if held.lower() != value:
                raise Cannot(f"{name}={held} is younger, only {value} is as old")
        made = form.again(version, drop=(*drop, *only))
        return [Source(made.layer, i) for i in range(len(made.layer.outputs))]

    return rule


def _plain_dilations(form: Lowering) -> None:
    dilations = form.numbers("dilations")
    if any(number != 1 for number in dilations):
        raise Cannot(f"dilations are {dilations}, older versions have none")


def _max_pool_8(form: Lowering) -> Sequence[Source]:
    _plain_dilations(form)
    if form.is_used(1):
        raise Cannot("its indices are used, MaxPool-1 gives none")
    return [form.again("opset1", drop=("dilations", "index_element_type", "axis"))]


def _max_pool_14(form: Lowering) -> Sequence[Source]:
    made = form.again("opset8", **_without_ceil_torch(form))
    return [made, Source(made.layer, 1)]


def _avg_pool_14(form: Lowering) -> Sequence[Source]:
    changed = _without_ceil_torch(form)
    if (
        "pads_end" in changed
        and changed["pads_end"] != form.numbers("pads_end")
        and not (form.flag("exclude-pad"))
    ):
        raise Cannot("rounding_type=ceil_torch with padding that counts is younger")
    return [form.again("opset1", **changed)]


def _avg_pool_16(form: Lowering) -> Sequence[Source]:
    _plain_dilations(form)
    return [form.again("opset14", drop=("dilations",))]


def _without_ceil_torch(form: Lowering) -> dict[str, Any]:
    """The attributes of a pooling in which ``ceil_torch`` is said by the padding at the end.

    ``ceil_torch`` counts as many windows as begin inside of the data and the padding before it;
    with the end of the last one as the end of the padding, ``floor`` counts as many.
    """
    if form.texts.get("rounding_type") != "ceil_torch":
        return {}
    auto = form.texts.get("auto_pad", "explicit")
    if auto in ("same_upper", "same_lower"):
        return {"rounding_type": "ceil"}
    kernel, strides = form.numbers("kernel"), form.numbers("strides")
    begin, end = form.numbers("pads_begin"), form.numbers("pads_end")
    if auto == "valid":
        begin, end = [0] * len(kernel), [0] * len(kernel)
    dilations = form.numbers("dilations") or [1] * len(kernel)
    sizes = form.tensor().shape
    counted = form.layer.op
    assert counted is not None
    out = counted.infer_outputs([form.tensor()])[0].shape
    ends = []
    for axis, (reach, stride) in enumerate(zip(kernel, strides, strict=True)):
        if stride == 1:
            ends.append(end[axis])  # every rounding is the same
            continue
        given = sizes[axis + 2] if sizes.rank is not None else Dim()
        made = out[axis + 2] if out.rank is not None else Dim()
        if isinstance(given, Dim) or isinstance(made, Dim):
            raise Cannot("rounding_type=ceil_torch is younger, and sizes that would tell the "
                         "padding are not known")  # fmt: skip
        whole = (reach - 1) * dilations[axis] + 1
        ends.append(max(0, (made - 1) * stride + whole - given - begin[axis]))
    return {
        "rounding_type": "floor", "auto_pad": "explicit", "pads_begin": begin, "pads_end": ends
    }  # fmt: skip


def _softmax_8(form: Lowering) -> Sequence[Source]:
    axis, rank = int(form.texts["axis"]), form.tensor().rank
    if axis < 0:
        if rank is None:
            raise Cannot(f"axis={axis} is younger, and the rank is not known")
        axis += rank
    return [form.again("opset1", axis=axis)]


def _may_count_from_end(form: Lowering) -> bool:
    """Whether indices, input 1, may be negative."""
    tensor = form.tensor(1)
    if tensor.value is not None:
        return bool(np.size(tensor.value)) and bool(np.min(tensor.value) < 0)
    return tensor.type.is_signed and (tensor.bounds is None or bool(np.min(tensor.bounds[0]) < 0))


def _size_of_axis(form: Lowering, index: int) -> int:
    """The size of the axis that an input names, in the type of the indices."""
    axis, sizes, kind = form.value(index), form.tensor().shape, form.tensor(1).type
    if axis is None or sizes.rank is None:
        raise Cannot("indices may be negative, and the axis is not known")
    size = sizes[int(axis.item())]
    if isinstance(size, Dim):
        raise Cannot("indices may be negative, and the size of the axis is not known")
    if size > np.iinfo(kind.dtype).max:
        raise Cannot(f"indices may be negative, and are {kind}: too small for the size {size}")
    return size


def _gather_8(form: Lowering) -> Sequence[Source]:
    if not _may_count_from_end(form):
        return [form.again("opset7")]
    value = form.value(1)
    if value is None:
        raise Cannot("indices may be negative, which counts from the end since Gather-8")
    counted = np.where(value < 0, value + _size_of_axis(form, 2), value)
    indices = form.number(counted, form.tensor(1).type)
    return [form.again("opset7", form.data, indices, form.inputs[2])]


def _scatter_elements_12(form: Lowering) -> Sequence[Source]:
    if (held := form.texts.get("reduction", "none").lower()) != "none":
        raise Cannot(f"reduction={held} is younger, only none is as old")
    indices = form.inputs[1]
    if _may_count_from_end(form):
        size = form.number(_size_of_axis(form, 3), form.tensor(1).type)
        indices = form.put("FloorMod", indices, size, auto_broadcast="numpy")
    inputs = form.data, indices, *form.inputs[2:]
    return [form.again("opset3", *inputs, drop=("use_init_val", "reduction"))]


def _gather_7(form: Lowering) -> Sequence[Source]:
    if int(form.texts.get("batch_dims", "0")):
        raise Cannot("batch_dims is younger than Gather-1")
    return [form.again("opset1", drop=("batch_dims",))]


def _gather_nd_8(form: Lowering) -> Sequence[Source]:
    if int(form.texts.get("batch_dims", "0")) > 1:
        raise Cannot("batch_dims above 1 gives other shapes in GatherND-5")
    return [form.again("opset5")]


def _interpolate_11(form: Lowering) -> Sequence[Source]:
    if form.texts["mode"] not in ("nearest", "linear", "linear_onnx", "cubic"):
        raise Cannot(f"mode={form.texts['mode']} is younger")
    shape = form.tensor(1).shape
    if shape.rank is None or isinstance(shape[0], Dim):
        raise Cannot("the number of axes is not known")
    count, axes = shape[0], form.inputs[2:]
    if form.texts["shape_calculation_mode"] == "sizes":
        more = [form.inputs[1], form.number([1.0] * count, "f32"), *axes]
    else:
        more = [form.number([1] * count), form.inputs[1], *axes]
    return [form.again("opset4", form.data, *more)]


def _pad_12(form: Lowering) -> Sequence[Source]:
    for index in (1, 2):
        value = form.value(index)
        if value is None or (value.size and value.min() < 0):
            said = "not known" if value is None else f"{value.tolist()}"
            raise Cannot(f"pads are {said}, negative ones are younger than Pad-1")
    return [form.again("opset1")]


def _read_value_6(form: Lowering) -> Sequence[Source]:
    if not form.inputs:
        raise Cannot("it has no initial value, ReadValue-3 needs one")
    known, kept = form.tensor(), form.bench.known(Source(form.layer, 0))
    if known.type is not kept.type or known.shape != kept.shape:
        raise Cannot(f"the variable is {kept}, its initial value {known}")
    return [form.again("opset3", drop=("variable_type", "variable_shape"))]


def _multiclass_9(form: Lowering) -> Sequence[Source]:
    if len(form.inputs) > 2:
        raise Cannot("roisnum is younger")
    made = form.again("opset8")
    return [Source(made.layer, index) for index in range(3)]


def _suppression_9(form: Lowering) -> Sequence[Source]:
    if len(form.inputs) > 5:
        sigma = form.value(5)
        if sigma is None or sigma.any():
            raise Cannot("a soft_nms_sigma that is not 0 means another thing in older ones")
    return _same("opset5")(form)


def _deformable_8(form: Lowering) -> Sequence[Source]:
    if len(form.inputs) > 3 or form.flag("bilinear_interpolation_pad"):
        raise Cannot("a mask and bilinear_interpolation_pad are younger")
    return [form.again("opset1", drop=("bilinear_interpolation_pad",))]


def _swish(form: Lowering) -> Sequence[Source]:
    beta = form.inputs[1:]
    scaled = form.binary("Multiply", form.data, beta[0]) if beta else form.data
    return [form.binary("Multiply", form.data, form.put("Sigmoid", scaled))]


def _hsigmoid(form: Lowering) -> Sequence[Source]:
    clamped = form.put("Clamp", form.binary("Add", form.data, 3.0), min=0.0, max=6.0)
    return [form.binary("Divide", clamped, 6.0)]


def _hswish(form: Lowering) -> Sequence[Source]:
    return [form.binary("Multiply", form.data, *_hsigmoid(form))]


def _softplus(form: Lowering) -> Sequence[Source]:
    # log(1 + exp(x)), so that nothing overflows.
    far = form.put("Exp", form.put("Negative", form.put("Abs", form.data)))
    near = form.put("Log", form.binary("Add", far, 1.0))
    return [form.binary("Add", form.put("ReLU", form.data), near)]


def _mish(form: Lowering) -> Sequence[Source]:
    return [form.binary("Multiply", form.data, form.put("Tanh", *_softplus(form)))]


def _softsign(form: Lowering) -> Sequence[Source]:
    below = form.binary("Add", form.put("Abs", form.data), 1.0)
    return [form.binary("Divide", form.data, below)]


def _gelu_2(form: Lowering) -> Sequence[Source]:
    inner = form.put("Erf", form.binary("Divide", form.data, sqrt(2.0)))
    half = form.binary("Multiply", form.data, 0.5)
    return [form.binary("Multiply", half, form.binary("Add", inner, 1.0))]


def _gelu_7(form: Lowering) -> Sequence[Source]:
    if form.texts["approximation_mode"].lower() == "erf":
        return [form.again("opset2", drop=("approximation_mode",))]
    x = form.data
    cube = form.binary("Multiply", form.binary("Multiply", x, x), x)
    inner = form.binary("Add", x, form.binary("Multiply", cube, 0.044715))
    bent = form.put("Tanh", form.binary("Multiply", inner, sqrt(2.0 / np.pi)))
    half = form.binary("Multiply", x, 0.5)
    return [form.binary("Multiply", half, form.binary("Add", bent, 1.0))]


def _log_softmax(form: Lowering) -> Sequence[Source]:
    axis = form.number([int(form.texts["axis"])])
    most = form.put("ReduceMax", form.data, axis, keep_dims=True)
    less = form.binary("Subtract", form.data, most)
    total = form.put("ReduceSum", form.put("Exp", less), axis, keep_dims=True)
    return [form.binary("Subtract", less, form.put("Log", total))]


def _identity(form: Lowering) -> Sequence[Source]:
    return [form.data]


def _is_nan(form: Lowering) -> Sequence[Source]:
    return [form.binary("NotEqual", form.data, form.data)]


def _is_finite(form: Lowering) -> Sequence[Source]:
    # What is not finite less itself is no number, and equal to nothing.
    return [form.binary("Equal", form.binary("Subtract", form.data, form.data), 0.0)]


def _promoted(form: Lowering) -> Sequence[Source]:
    kind = form.bench.known(Source(form.layer, 0)).type
    return [_converted(form, index, kind) for index in range(2)]


def _converted(form: Lowering, index: int, kind: ElementType) -> Source:
    if kind.is_dynamic:
        raise Cannot("the type to convert to is not known")
    if form.tensor(index).type is kind:
        return form.inputs[index]
    return form.put("Convert", form.inputs[index], destination_type=kind)


def _batch_norm_5(form: Lowering) -> Sequence[Source]:
    data, gamma, beta, mean, variance = form.inputs
    return [form.again("opset1", gamma, beta, data, mean, variance)]


def _mvn_6(form: Lowering) -> Sequence[Source]:
    axes = form.inputs[1]
    mean = form.put("ReduceMean", form.data, axes, keep_dims=True)
    centred = form.binary("Subtract", form.data, mean)
    if not form.flag("normalize_variance"):
        return [centred]
    square = form.binary("Multiply", centred, centred)
    variance = form.put("ReduceMean", square, axes, keep_dims=True)
    eps = float(form.texts["eps"])
    if form.texts["eps_mode"].lower() == "inside_sqrt":
        below = form.put("Sqrt", form.binary("Add", variance, eps))
    else:
        below = form.binary("Add", form.put("Sqrt", variance), eps)
    return [form.binary("Divide", centred, below)]


def _group_normalization(form: Lowering) -> Sequence[Source]:
    sizes, groups = form.static(), int(form.texts["num_groups"])
    inner = form.put(
        "Reshape", form.data, form.number([sizes[0], groups, prod(sizes[1:]) // groups]),
        special_zero=False,
    )  # fmt: skip
    normal = form.put(
        "MVN", inner, form.number([2]), version="opset6", normalize_variance=True,
        eps=float(form.texts["epsilon"]), eps_mode="inside_sqrt",
    )  # fmt: skip
    whole = form.put("Reshape", normal, form.number(sizes), special_zero=False)
    each = form.number([1, sizes[1], *[1] * (len(sizes) - 2)])
    scale, bias = (form.put("Reshape", one, each, special_zero=False) for one in form.inputs[1:3])
    return [form.binary("Add", form.binary("Multiply", whole, scale), bias)]


def _attention(form: Lowering) -> Sequence[Source]:
    if len(form.inputs) > 5:
        raise Cannot("an attention sink is younger")
    query, key, value = form.inputs[:3]
    kind, shape = form.tensor().type, form.tensor().shape
    product = form.put("MatMul", query, key, transpose_a=False, transpose_b=True)
    if len(form.inputs) > 4:
        scaled = form.binary("Multiply", product, form.inputs[4])
    else:
        depth = shape[-1] if shape.rank is not None else Dim()
        if isinstance(depth, Dim):
            raise Cannot("the scale follows from a size that is not known")
        scaled = form.binary("Multiply", product, 1.0 / sqrt(depth))
    if form.flag("causal"):
        rows, columns = form.static()[-2], form.static(1)[-2]
        mask = np.triu(np.full((rows, columns), -np.inf), 1)
        scaled = form.binary("Add", scaled, form.number(mask, kind))
    elif len(form.inputs) > 3:
        if form.tensor(3).type is ElementType.BOOLEAN:
            none, never = form.number(0.0, kind), form.number(-np.inf, kind)
            chosen = form.put("Select", form.inputs[3], none, never, auto_broadcast="numpy")
            scaled = form.binary("Add", scaled, chosen)
        else:
            scaled = form.binary("Add", scaled, form.inputs[3])
    parts = form.put("SoftMax", scaled, version="opset8", axis=-1)
    return [form.put("MatMul", parts, value, transpose_a=False, transpose_b=False)]


def _logical(type: str) -> Rule:
    """Of booleans, bits are truth."""

    def rule(form: Lowering) -> Sequence[Source]:
        if (kind := form.tensor().type) is not ElementType.BOOLEAN:
            raise Cannot(f"of {kind} no older operation takes the bits, of boolean {type} does")
        words: dict[str, Any] = {} if type == "LogicalNot" else dict(form.texts)
        return [form.put(type, *form.inputs, **words)]

    return rule


#: By type and version of the operation.
RULES: dict[tuple[str, int], Rule] = {
    ("Assign", 6): _same("opset3"),
    ("AvgPool", 14): _avg_pool_14,
    ("AvgPool", 16): _avg_pool_16,
    ("BatchNormInference", 5): _batch_norm_5,
    ("BitwiseAnd", 13): _logical("LogicalAnd"),
    ("BitwiseNot", 13): _logical("LogicalNot"),
    ("BitwiseOr", 13): _logical("LogicalOr"),
    ("BitwiseXor", 13): _logical("LogicalXor"),
    ("ConvertPromoteTypes", 14): _promoted,
    ("DeformableConvolution", 8): _deformable_8,
    ("Gather", 7): _gather_7,
    ("Gather", 8): _gather_8,
    ("GatherND", 8): _gather_nd_8,
    ("Gelu", 2): _gelu_2,
    ("Gelu", 7): _gelu_7,
    ("GroupNormalization", 12): _group_normalization,
    ("HSigmoid", 5): _hsigmoid,
    ("HSwish", 4): _hswish,
    ("Identity", 16): _identity,
    ("Interpolate", 11): _interpolate_11,
    ("IsFinite", 10): _is_finite,
    ("IsNaN", 10): _is_nan,
    ("LogSoftmax", 5): _log_softmax,
    ("MVN", 6): _mvn_6,
    ("MaxPool", 8): _max_pool_8,
    ("MaxPool", 14): _max_pool_14,
    ("Mish", 4): _mish,
    ("MulticlassNms", 9): _multiclass_9,
    ("NonMaxSuppression", 9): _suppression_9,
    ("Pad", 12): _pad_12,
    ("OneHot", 16): _same(
        "opset1", "negative_indices_mode", negative_indices_mode="ignore_negative"
    ),
    ("PriorBox", 8): _same("opset1", min_max_aspect_ratios_order="true"),
    ("ROIAlign", 9): _same("opset3", aligned_mode="asymmetric"),
    ("ReadValue", 6): _read_value_6,
    ("ScaledDotProductAttention", 13): _attention,
    ("ScatterElementsUpdate", 12): _scatter_elements_12,
    ("ScatterNDUpdate", 15): _same("opset4", reduction="none"),
    ("ShapeOf", 3): _same("opset1", output_type="i64"),
    ("SoftMax", 8): _softmax_8,
    ("SoftPlus", 4): _softplus,
    ("SoftSign", 9): _softsign,
    ("Squeeze", 15): _same("opset1", allow_axis_skip="false"),
    ("Swish", 4): _swish,
    ("TopK", 3): _same("opset1"),
    ("TopK", 11): _same("opset3", stable="false"),
}

__all__ = ["RULES", "Cannot", "Lowering", "Rule"]
