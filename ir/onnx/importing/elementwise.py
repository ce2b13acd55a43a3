"""Operators that work element by element: arithmetic, comparison, logic, activations, casts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ....schemas import ElementType, IRError, Shape, UnsupportedError
from ...document import Output
from .node import Made, Node, converts, normal
from .tensors import kind_of

#: One input, no attributes, one layer.
UNARY = {
    "Abs": "Abs-1", "Acos": "Acos-1", "Acosh": "Acosh-3", "Asin": "Asin-1", "Asinh": "Asinh-3",
    "Atan": "Atan-1", "Atanh": "Atanh-3", "BitwiseNot": "BitwiseNot-13", "Ceil": "Ceiling-1",
    "Cos": "Cos-1", "Cosh": "Cosh-1", "Erf": "Erf-1", "Exp": "Exp-1", "Floor": "Floor-1",
    "HardSwish": "HSwish-4", "IsNaN": "IsNaN-10", "Log": "Log-1", "Mish": "Mish-4",
    "Neg": "Negative-1", "Not": "LogicalNot-1", "Relu": "ReLU-1", "Round": "Round-5",
    "Sigmoid": "Sigmoid-1", "Sign": "Sign-1", "Sin": "Sin-1", "Sinh": "Sinh-1",
    "Softplus": "SoftPlus-4", "Softsign": "SoftSign-9", "Sqrt": "Sqrt-1", "Tan": "Tan-1",
    "Tanh": "Tanh-1",
}  # fmt: skip

#: Two inputs that broadcast, one layer.
BINARY = {
    "Add": "Add-1", "And": "LogicalAnd-1", "BitwiseAnd": "BitwiseAnd-13",
    "BitwiseOr": "BitwiseOr-13", "BitwiseXor": "BitwiseXor-13", "Equal": "Equal-1",
    "Greater": "Greater-1", "GreaterOrEqual": "GreaterEqual-1", "Less": "Less-1",
    "LessOrEqual": "LessEqual-1", "Mul": "Multiply-1", "Or": "LogicalOr-1", "Sub": "Subtract-1",
    "Xor": "LogicalXor-1",
}  # fmt: skip

#: Of bytes, what wraps around in ONNX and stops at the ends of the type in IR.
WRAPPING = {
    ElementType.U8: {"Add", "Mul", "Sub"},
    ElementType.I8: {"Abs", "Add", "Div", "Mul", "Neg", "Sub"},
}

#: Any number of inputs that broadcast, one layer between two.
FOLDED = {"Sum": "Add-1", "Max": "Maximum-1", "Min": "Minimum-1"}


@converts(*UNARY)
def unary(node: Node) -> Made:
    """The operation of the same meaning; of bytes that wrap around, in 32 bits."""
    return whole(node, UNARY[node.kind], node[0])


@converts(*BINARY)
def binary(node: Node) -> Made:
    """The operation of the same meaning, broadcast as by NumPy; bytes that wrap, in 32 bits."""
    return whole(node, BINARY[node.kind], *operands(node))


def whole(node: Node, spec: str, *inputs: Output, **attributes: Any) -> Output:
    """A layer; arithmetic of bytes in 32 bits, of which the last eight are kept."""
    kind = inputs[0].tensor.type
    if node.kind not in WRAPPING.get(kind, ()) or node.semantics == "openvino":
        return node.add(spec, *inputs, **attributes)
    wide = [node.convert(one, "i32") for one in inputs]
    return node.convert(node.add(spec, *wide, **attributes), kind)


def operands(node: Node) -> tuple[Output, Output]:
    """Both inputs; before opset 7 the second may be told to which axes of the first it goes."""
    a, b = node[0], node[1]
    if not node.flag("broadcast"):
        return a, b
    axis = node.attribute("axis")
    if axis is None:
        return a, b
    one, other = a.tensor.rank, b.tensor.rank
    if one is None or other is None:
        raise UnsupportedError("broadcast along an axis needs inputs of known rank")
    after = one - normal(int(axis), one) - other
    if after < 0:
        raise IRError(f"axis {axis} and {other} axes are more than the {one} axes of the first")
    return a, node.unsqueeze(b, list(range(other, other + after)))


@converts(*FOLDED)
def folded(node: Node) -> Made:
    """The operation between the first two, between that and the third, and so on."""
    total = node[0]
    for index in range(1, len(node.inputs)):
        total = node.add(FOLDED[node.kind], total, node[index])
    return total


@converts("Mean")
def mean(node: Node) -> Made:
    """The sum of all, divided by their number."""
    total = node[0]
    for index in range(1, len(node.inputs)):
        total = node.add("Add-1", total, node[index])
    return node.add("Divide-1", total, node.like(len(node.inputs), total))


@converts("Div")
def div(node: Node) -> Made:
    """Divide-1; of whole numbers towards zero, as C divides."""
    a, b = operands(node)
    return whole(node, "Divide-1", a, b, m_pythondiv=False)


@converts("Pow")
def power(node: Node) -> Made:
    """Power-1, the exponent in the type of the base; of whole numbers by broken ones, in f64."""
    a, b = operands(node)
    kind, other = a.tensor.type, b.tensor.type
    if kind == other or kind.is_dynamic or other.is_dynamic:
        return node.add("Power-1", a, b)
    if kind.is_real or not other.is_real:
        return node.add("Power-1", a, node.convert(b, kind))
    # A whole base with a broken exponent: f32 would not hold what comes of it.
    return node.convert(node.add("Power-1", *(node.convert(one, "f64") for one in (a, b))), kind)


@converts("Mod")
def modulo(node: Node) -> Made:
    """FloorMod-1 (sign of the divisor), or Mod-1 with fmod=1 (sign of the dividend)."""
    return node.add("Mod-1" if node.flag("fmod") else "FloorMod-1", node[0], node[1])


@converts("Reciprocal")
def reciprocal(node: Node) -> Made:
    """One divided by the input."""
    return node.add("Divide-1", node.like(1, node[0]), node[0])


@converts("BitShift")
def bit_shift(node: Node) -> Made:
    """BitwiseLeftShift-15 or BitwiseRightShift-15."""
    word = node.text("direction")
    if word not in ("LEFT", "RIGHT"):
        raise IRError(f'direction="{word}" is not LEFT or RIGHT')
    return node.add(f"Bitwise{word.capitalize()}Shift-15", node[0], node[1])


@converts("Where")
def where(node: Node) -> Made:
    """Select-1."""
    return node.add("Select-1", node[0], node[1], node[2])


@converts("IsInf")
def is_inf(node: Node) -> Made:
    """IsInf-10."""
    return node.add(
        "IsInf-10", node[0], detect_negative=node.flag("detect_negative", True),
        detect_positive=node.flag("detect_positive", True),
    )  # fmt: skip


# Activations.


@converts("LeakyRelu")
def leaky_relu(node: Node) -> Made:
    """PReLU-1 with one slope."""
    return node.add("PReLU-1", node[0], node.like([node.real("alpha", 0.01)], node[0]))


@converts("PRelu")
def prelu(node: Node) -> Made:
    """PReLU-1 where the slope is a number or one for each channel, else by Select."""
    x, slope = node[0], node[1]
    rank, other = x.tensor.rank, slope.tensor.rank
    if node.version < 7 and other == 1 and rank is not None and rank > 2:
        slope = node.unsqueeze(slope, list(range(1, rank - 1)))
    channels = _per_channel(x.tensor.shape, slope.tensor.shape)
    if channels and x.tensor.type.is_real:
        return node.add("PReLU-1", x, node.reshape(slope, [channels]))
    zero = node.like(0, x)
    scaled = node.add("Multiply-1", x, slope)
    return node.add("Select-1", node.add("Less-1", x, zero), scaled, x)


def _per_channel(shape: Shape, slope: Shape) -> int | None:
    """How many slopes there are, where it is one number or one for each channel."""
    if shape.rank is None or not slope.is_static or len(slope.static) > shape.rank:
        return None
    sizes = [1] * (shape.rank - len(slope.static)) + list(slope.static)
    if set(sizes) <= {1}:
        return 1
    beside = [size for axis, size in enumerate(sizes) if axis != 1]
    fits = shape.rank > 1 and set(beside) <= {1} and shape.sizes[1] == sizes[1]
    return sizes[1] if fits else None


@converts("Elu")
def elu(node: Node) -> Made:
    """Elu-1."""
    return node.add("Elu-1", node[0], alpha=node.real("alpha", 1.0))


@converts("Celu")
def celu(node: Node) -> Made:
    """Elu-1 of the input divided by alpha, times alpha."""
    alpha = node.real("alpha", 1.0)
    if alpha == 1:
        return node.add("Elu-1", node[0], alpha=1.0)
    inner = node.add("Divide-1", node[0], node.like(alpha, node[0]))
    positive = node.add("ReLU-1", node[0])
    if alpha < 0:
        below = node.add("Subtract-1", node.add("Exp-1", inner), node.like(1, inner))
        below = node.add("Multiply-1", below, node.like(alpha, below))
        return node.add("Add-1", positive, node.add("Minimum-1", node.like(0, below), below))
    low = node.add("Minimum-1", node.like(0, inner), node.add("Elu-1", inner, alpha=1.0))
    return node.add("Add-1", positive, node.add("Multiply-1", low, node.like(alpha, low)))


@converts("Selu")
def selu(node: Node) -> Made:
    """Selu-1."""
    alpha = node.real("alpha", 1.67326319217681884765625)
    gamma = node.real("gamma", 1.05070102214813232421875)
    if node.version < 6 and not node.gives("alpha"):
        alpha, gamma = node.real("alpha", 1.6732), node.real("gamma", 1.0507)
    return node.add("Selu-1", node[0], node.like([alpha], node[0]), node.like([gamma], node[0]))


@converts("HardSigmoid")
def hard_sigmoid(node: Node) -> Made:
    """HardSigmoid-1."""
    x = node[0]
    alpha, beta = node.real("alpha", 0.2), node.real("beta", 0.5)
    return node.add("HardSigmoid-1", x, node.like(alpha, x), node.like(beta, x))


@converts("ThresholdedRelu")
def thresholded_relu(node: Node) -> Made:
    """What is above alpha, else zero."""
    x = node[0]
    above = node.add("Greater-1", x, node.like(node.real("alpha", 1.0), x))
    return node.add("Select-1", above, x, node.like(0, x))


@converts("Shrink")
def shrink(node: Node) -> Made:
    """Two Selects around lambd; of whole numbers in f64, as bias and lambd may be broken."""
    kind, limit, bias = node[0].tensor.type, node.real("lambd", 0.5), node.real("bias", 0.0)
    x = node.convert(node[0], "f64") if kind.is_integral else node[0]
    low, high = (node.add(spec, x, node.like(bias, x)) for spec in ("Add-1", "Subtract-1"))
    up = node.add("Less-1", x, node.like(-limit, x))
    down = node.add("Greater-1", x, node.like(limit, x))
    made = node.add("Select-1", up, low, node.add("Select-1", down, high, node.like(0, x)))
    return node.convert(made, kind)


@converts("Gelu")
def gelu(node: Node) -> Made:
    """Gelu-7."""
    mode = "TANH" if node.text("approximate", "none") == "tanh" else "ERF"
    return node.add("Gelu-7", node[0], approximation_mode=mode)


@converts("Swish")
def swish(node: Node) -> Made:
    """Swish-4."""
    return node.add("Swish-4", node[0], node.like(node.real("alpha", 1.0), node[0]))


@converts("Softmax", "LogSoftmax", since=13)
def softmax(node: Node) -> Made:
    """SoftMax-8 or LogSoftmax-5 along one axis."""
    kind = "SoftMax-8" if node.kind == "Softmax" else "LogSoftmax-5"
    return node.add(kind, node[0], axis=node.integer("axis", -1))


@converts("Softmax", "LogSoftmax", until=12)
def softmax_flattened(node: Node) -> Made:
    """SoftMax-8 or LogSoftmax-5 over all axes from one on, as one axis."""
    x, kind = node[0], "SoftMax-8" if node.kind == "Softmax" else "LogSoftmax-5"
    axis, rank = node.axis(1), node.rank()
    if axis == rank - 1:
        return node.add(kind, x, axis=axis)
    flat = flattened(node, x, axis)
    return node.reshape(node.add(kind, flat, axis=1), node.shape(x))


def flattened(node: Node, x: Output, axis: int) -> Output:
    """A matrix: the axes before one, and those from it on."""
    rank = len(x.tensor.shape)
    if x.tensor.shape.is_static:
        sizes = x.tensor.shape.static
        return node.reshape(x, [int(np.prod(sizes[:axis])), int(np.prod(sizes[axis:]))])
    if axis == 0:
        return node.reshape(x, [1, -1])
    if axis == rank:
        return node.reshape(x, [-1, 1])
    behind = [size if isinstance(size, int) else 0 for size in x.tensor.shape[axis:]]
    count = int(np.prod(behind))
    if axis == 1:
        return node.add("Reshape-1", x, node.ints64([0, count or -1]), special_zero=True)
    if count:
        return node.reshape(x, [-1, count])
    # Of nothing, the other number would not tell either.
    whole = node.shape(x)
    both = [
        node.add("ReduceProd-1", node.cut(whole, *ends, 0), node.ints64([0]), keep_dims=True)
        for ends in ((0, axis), (axis, rank))
    ]
    return node.reshape(x, node.vector(both))


@converts("Flatten")
def flatten(node: Node) -> Made:
    """Reshape-1 to a matrix."""
    rank = node.rank()
    axis = node.integer("axis", 1)
    if not -rank <= axis <= rank:
        raise IRError(f"axis {axis} is beyond the {rank} axes")
    return flattened(node, node[0], axis + rank if axis < 0 else axis)


@converts("Hardmax")
def hardmax(node: Node) -> Made:
    """A one at the first largest value: TopK-11 and OneHot-1."""
    x, rank = node[0], node.rank()
    axis = node.axis(-1 if node.version >= 13 else 1)
    shape = x.tensor.shape
    if node.version < 13 and axis != rank - 1:
        x, axis = flattened(node, x, axis), 1
    size = x.tensor.shape[axis]
    depth = node.ints64(size) if isinstance(size, int) else node.squeeze(
        _out(node.size(x, axis)), [0]
    )  # fmt: skip
    best = node.add(
        "TopK-11", x, node.ints64(1), axis=axis, mode="max", sort="value",
        index_element_type="i64", stable=True,
    )[1]  # fmt: skip
    places = node.squeeze(best, [axis])
    made = node.add("OneHot-1", places, depth, node.like(1, x), node.like(0, x), axis=axis)
    return made if x is node[0] else (
        node.reshape(made, shape.static if shape.is_static else node.shape(node[0]))
    )  # fmt: skip


def _out(number: int | Output) -> Output:
    if isinstance(number, int):
        raise TypeError("a size that is known needs no layer")
    return number


# Limits and types.


@converts("Clip", until=10)
def clip_attributes(node: Node) -> Made:
    """Clamp-1."""
    low, high = node.real("min", -3.4028234663852886e38), node.real("max", 3.4028234663852886e38)
    return node.add("Clamp-1", node[0], min=low, max=high)


@converts("Clip", since=11)
def clip(node: Node) -> Made:
    """Clamp-1 where both limits are constant and real, else Maximum-1 and Minimum-1."""
    x, low, high = node[0], node.single(1, "min"), node.single(2, "max")
    given = [node.get(1) is not None, node.get(2) is not None]
    fixed = (low is not None or not given[0]) and (high is not None or not given[1])
    kind = x.tensor.type
    if fixed and kind in (ElementType.F32, ElementType.F16) and any(given):
        least = -3.4028234663852886e38 if low is None else float(low)
        most = 3.4028234663852886e38 if high is None else float(high)
        if least <= most and np.isfinite(least) and np.isfinite(most) and all(given):
            return node.add("Clamp-1", x, min=least, max=most)
    made = x
    if given[0]:
        made = node.add("Maximum-1", made, node[1])
    if given[1]:
        made = node.add("Minimum-1", made, node[2])
    return made


@converts("Cast")
def cast(node: Node) -> Made:
    """Convert-1."""
    to = node.attribute("to")
    if isinstance(to, str):
        words = {"FLOAT": "f32", "DOUBLE": "f64", "FLOAT16": "f16", "BOOL": "boolean"}
        number = words.get(to) or to.lower().replace("uint", "u").replace("int", "i")
        return _converted(node, node[0], ElementType.parse(number))
    return _converted(node, node[0], kind_of(int(to)))


@converts("CastLike")
def cast_like(node: Node) -> Made:
    """Convert-1 to the type of the second input, ConvertLike-1 where that is not known."""
    kind = node[1].tensor.type
    if kind.is_dynamic:
        return node.add("ConvertLike-1", node[0], node[1])
    return _converted(node, node[0], kind)


def _converted(node: Node, x: Output, kind: ElementType) -> Output:
    if ElementType.STRING in (x.tensor.type, kind) and x.tensor.type != kind:
        raise UnsupportedError("IR has no operation between strings and numbers")
    is_wide = x.tensor.type is not ElementType.BOOLEAN
    if (
        kind in (ElementType.F8E4M3, ElementType.F8E5M2)
        and is_wide
        and node.flag("saturate", True)
    ):
        x = saturated(node, x, kind)
    return node.convert(x, kind)


def saturated(node: Node, x: Output, kind: ElementType) -> Output:
    """Held within the limits of a real type."""
    info: Any = ml_dtypes.finfo  # it has no annotations
    most = float(info(kind.dtype).max)
    return node.add("Clamp-1", x, min=-most, max=most)


@converts("Identity")
def identity(node: Node) -> Made:
    """No layer: another name of the same tensor."""
    return node[0]


@converts("Dropout")
def dropout(node: Node) -> Made:
    """No layer: nothing is dropped outside training; the mask is all true."""
    ratio, training = node.value(1), node.get(2)
    if training is not None:
        on = training.tensor.value
        if on is None or (on.any() and (ratio is None or ratio.any())):
            raise UnsupportedError("training_mode: IR has no dropout")
    if not node.wants(1):
        return [node[0]]
    true = node.constant(np.array(True))
    mask = node.add("Broadcast-3", true, node.shape(node[0]))
    return [node[0], mask if node.version >= 10 else node.convert(mask, node[0].tensor.type)]
