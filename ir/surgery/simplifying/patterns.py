"""What several patterns look for: what made a value, products of scalars, equal sizes."""

from __future__ import annotations

from collections.abc import Iterator
from math import frexp, isclose, ldexp, prod

import numpy as np

from ....schemas import Array, Dim, ElementType, Shape, Tensor
from ...document import Layer
from ...storage import let_go, parts
from ..scratch import LARGE
from .rewriter import Rewriter, Value

#: Types of which arithmetic with constants is done beforehand.
REALS = frozenset({ElementType.F32, ElementType.F64})
#: Types of activations; f16 is computed in f32 by every runtime.
FLOATS = REALS | {ElementType.F16, ElementType.BF16}

#: Operations that compute each element from the elements in the same place.
UNARY = frozenset({
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceiling", "Clamp", "Convert", "Cos",
    "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu", "HSigmoid", "HSwish", "Log", "LogicalNot",
    "Mish", "Negative", "ReLU", "Round", "Sigmoid", "Sign", "Sin", "Sinh", "SoftPlus", "SoftSign",
    "Sqrt", "Tan", "Tanh", "IsFinite", "IsInf", "IsNaN", "BitwiseNot",
})  # fmt: skip
#: The same of two inputs that are broadcast by NumPy's rule.
BINARY = frozenset({
    "Add", "Divide", "Equal", "FloorMod", "Greater", "GreaterEqual", "Less", "LessEqual",
    "LogicalAnd", "LogicalOr", "LogicalXor", "Maximum", "Minimum", "Mod", "Multiply", "NotEqual",
    "Power", "SquaredDifference", "Subtract", "BitwiseAnd", "BitwiseOr", "BitwiseXor",
})  # fmt: skip


#: How far from what is meant a constant may be, relative to it: digits of an exporter.
_CLOSE = 1e-5
#: Bits that bf16 and f16 have.
_BITS = (8, 11)


def made_by(net: Rewriter, value: Value, *types: str) -> Layer | None:
    """The layer that makes a value, where it is of these types and the value its first output."""
    layer, index = value
    return layer if layer.type in types and index == 0 else None


def reshaped_transpose(net: Rewriter, layer: Layer) -> tuple[Value, list[int]] | None:
    """``(split, 0)`` and the order of axes, of a layer over ``Transpose(split: Reshape)``.

    Nobody else uses what lies between.
    """
    transpose = made_by(net, net.inputs(layer)[0], "Transpose")
    if transpose is None or not net.is_private((transpose, 0)):
        return None
    split = made_by(net, net.inputs(transpose)[0], "Reshape")
    order = order_of(net, transpose)
    if split is None or order is None or not net.is_private((split, 0)):
        return None
    return (split, 0), order


def broadcasts(layer: Layer) -> bool:
    """Whether a layer of two inputs broadcasts as NumPy does."""
    return layer.data.get("auto_broadcast", "numpy").lower() == "numpy"


def with_constant(net: Rewriter, layer: Layer) -> tuple[Value, Array] | None:
    """The input that varies and the number array of the other, of a layer of two inputs."""
    one, other = net.inputs(layer)
    for varying, fixed in ((one, other), (other, one)):
        array = net.known(fixed) if fixed[0].is_constant else None
        if array is not None and not varying[0].is_constant and broadcasts(layer):
            return varying, array
    return None


def operands(net: Rewriter, layer: Layer) -> Iterator[tuple[Value, Value]]:
    """The two inputs of a commutative layer, in both orders."""
    one, other = net.inputs(layer)
    yield one, other
    yield other, one


def is_near(number: float | None, wanted: float) -> bool:
    """Whether a constant is meant to be a number, which f16 or bf16 may have rounded.

    They may have rounded what is divided by, too.
    """
    if number is None:
        return False
    meant = [wanted, *(_rounded(wanted, bits) for bits in _BITS)]
    meant += [1 / _rounded(1 / wanted, bits) for bits in _BITS]
    return any(isclose(number, one, rel_tol=_CLOSE) for one in meant)


def _rounded(number: float, bits: int) -> float:
    """The nearest number of so many bits."""
    part, exponent = frexp(number)
    return ldexp(round(part * 2**bits), exponent - bits)


def plus_one(net: Rewriter, value: Value) -> Value | None:
    """What one is added to."""
    layer = made_by(net, value, "Add")
    if layer is not None:
        for other, one in operands(net, layer):
            if net.scalar(one) == 1.0:
                return other
    return None


def square_of(net: Rewriter, value: Value) -> Value | None:
    """What a value is the square of."""
    layer = made_by(net, value, "Power", "Multiply")
    if layer is None:
        return None
    one, other = net.inputs(layer)
    if layer.type == "Multiply":
        return one if one == other else None
    return one if net.scalar(other) == 2.0 else None


def factors(net: Rewriter, layer: Layer, most: int = 6) -> tuple[float, list[Value]] | None:
    """A product as its scalar and its other factors, products of single use taken apart.

    Division by a scalar counts as a product.
    """
    scalar, found, stack = 1.0, [], [(layer, 0)]
    while stack:
        value = stack.pop()
        number = _factor(net, value, layer)
        maker = made_by(net, value, "Multiply", "Divide")
        inner = value[0] is layer or net.is_private(value)
        if number is not None:
            scalar *= number
        elif maker is not None and inner and maker.type == "Multiply" and broadcasts(maker):
            stack += net.inputs(maker)
        elif maker is not None and inner and maker.type == "Divide" and (
            divisor := _factor(net, net.inputs(maker)[1], layer)
        ):  # fmt: skip
            scalar /= divisor
            stack.append(net.inputs(maker)[0])
        else:
            found.append(value)
        if len(found) + len(stack) > most:
            return None
    return scalar, found


def _factor(net: Rewriter, value: Value, product: Layer) -> float | None:
    """A constant number; None where its axes may be more than those of the rest of a product."""
    array = net.known(value) if value[0].is_constant else None
    if array is None or (array.ndim and net.tensor((product, 0)).rank is None):
        return None
    return net.scalar(value)


def scaled(net: Rewriter, value: Value) -> tuple[float, Value]:
    """A value as a scalar times another of the same shape."""
    layer = made_by(net, value, "Multiply", "Divide")
    if layer is None:
        return 1.0, value
    pairs = list(operands(net, layer))
    for source, fixed in pairs if layer.type == "Multiply" else pairs[:1]:
        number, array = net.scalar(fixed), net.known(fixed)
        if not fixed[0].is_constant or not number or array is None:
            continue
        if fits_into(array.shape, net.tensor(source).shape):
            return (number if layer.type == "Multiply" else 1 / number), source
    return 1.0, value


def same_size(one: object, other: object) -> bool:
    """Whether two sizes are certain to be the same: equal numbers, or of the same name."""
    if isinstance(one, Dim) and isinstance(other, Dim):
        return one.symbol is not None and one.symbol == other.symbol
    return not isinstance(one, Dim) and not isinstance(other, Dim) and one == other


def same_shape(one: Shape, other: Shape, *, count: bool = False) -> bool:
    """Whether two shapes are certain to be the same; ``count``: they have as many elements."""
    if one.rank is None or one.rank != other.rank:
        return False
    open_ = [pair for pair in zip(one.sizes, other.sizes, strict=True) if not same_size(*pair)]
    if not open_:
        return True
    rest = [size for size in one.sizes if not isinstance(size, Dim)]
    unknown = sum(isinstance(size, Dim) for size in one.sizes)
    return (
        count
        and len(open_) == 1
        and unknown == 1
        and isinstance(open_[0][0], Dim)
        and isinstance(open_[0][1], Dim)
        and prod(rest) > 0
    )


def fits_into(small: tuple[int, ...], shape: Shape) -> bool:
    """Whether what has a shape still has it after broadcasting with what has a small one."""
    if shape.rank is None or len(small) > shape.rank:
        return not small
    last = shape.sizes[shape.rank - len(small) :]
    # One number changes no shape, also one of which nobody knows the sizes.
    return all(one in (1, size) for one, size in zip(small, last, strict=True))


def kept_axes(given: Shape, made: Shape) -> dict[int, int]:
    """Axes that a Reshape leaves as they are: to each that comes out, the one that goes in.

    Those before which as many elements lie, and that have as many as before, more than one.
    """
    places = {place: axis for axis, place in _places(given)}
    return {axis: places[place] for axis, place in _places(made) if place in places}


def _places(shape: Shape) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Axes with how many elements lie before them, as far as that is known, and their sizes."""
    count, symbols = 1, list[str]()
    for axis, size in enumerate(shape.sizes or ()):
        if isinstance(size, Dim):
            if size.symbol is None:
                return
            symbols.append(str(size.symbol))
            continue
        if size > 1:
            yield axis, (count, tuple(sorted(symbols)), size)
        count *= size


def as_declared(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are of one type and of sizes that may be, and are known to be, alike."""
    if one.type != other.type or one.rank != other.rank:
        return False
    if one.shape.rank is None:
        return True
    return all(
        isinstance(a, Dim) == isinstance(b, Dim) and (isinstance(a, Dim) or a == b)
        for a, b in zip(one.shape.sizes, other.shape.sizes, strict=True)
    )


def fuse(net: Rewriter, old: Layer, new: Value) -> bool:
    """Put a new layer in the place of an old one, where type and shape are those it had."""
    return as_declared(net.tensor((old, 0)), net.tensor(new)) and net.replace((old, 0), new)


def axes_of(net: Rewriter, value: Value, rank: int | None) -> list[int] | None:
    """Known axes, counted from the front and in order."""
    axes = net.ints(value)
    if axes is None or rank is None or any(not -rank <= axis < rank for axis in axes):
        return None
    return sorted({axis % rank for axis in axes})


def order_of(net: Rewriter, transpose: Layer) -> list[int] | None:
    """The order of a Transpose; an empty one turns the axes around."""
    data, order = net.inputs(transpose)
    axes, rank = net.ints(order), net.tensor(data).rank
    if axes is None or rank is None:
        return None
    axes = axes or list(reversed(range(rank)))
    return [axis % rank for axis in axes] if len(axes) == rank else None


def fall_short(product: Array, one: Array, other: Array) -> Array:
    """Where a product of two normal numbers is too small for one, so that digits were lost."""
    tiny = np.finfo(product.dtype).tiny
    short: Array = np.abs(product) < tiny
    return short & (np.abs(one) >= tiny) & (np.abs(other) >= tiny) if short.any() else short


def holds(kind: ElementType, number: float) -> bool:
    """Whether a type has a number with all its digits: not too large, not too small for that."""
    limits = np.finfo(np.float32 if kind is ElementType.BF16 else kind.dtype)
    return bool(limits.tiny <= abs(number) <= limits.max)


def is_plain(array: Array) -> bool:
    """Whether an array holds finite real numbers."""
    if array.dtype.kind != "f":
        return False
    for index in parts(array.shape):
        if not np.isfinite(array[index]).all():
            return False
        if array.nbytes >= LARGE:
            let_go(array)
    return True
