"""Activations, prepared: few passes, each over what is still in the nearest cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ....layers.base import Op
from ....schemas import Array
from ..workers import IntegerProducts, Part, integer_products, sequence, spans
from .lines import LINE
from .processor import is_zen_5
from .rooms import NEAR, Rooms, all_of, in_rooms, rooms

#: Puts what it makes of the first array into the second; they may be the same.
Function: TypeAlias = Callable[[Array, Array], Any]


class Way(NamedTuple):
    """How an activation is made: by calls on numbers, their results, and so many temporaries."""

    temporaries: int
    calls: Callable[..., list[Part]]
    #: The same in fewer passes by a library that makes sums of products, which it is given first.
    by_sums: Way | None = None


def activation(
    op: Op,
    block: Array,
    target: Array,
    parameters: Sequence[Array | None] = (),
    *,
    premultiplied: float | None = None,
    near: int = NEAR,
    own: Rooms | None = None,
) -> Part | None:
    """An activation from a block to a target; None where its definition does as well.

    Of Swish, the block may hold what it takes times a number. So many numbers are worked on at
    once, in memory of its own, or of the thread that does it.
    """
    found = _found(op, parameters) if premultiplied is None else SWISH_OF[premultiplied]
    if found is None or not block.ndim:
        return None
    if block.flags.c_contiguous and target.flags.c_contiguous:
        block, target = block.reshape(-1), target.reshape(-1)
    axis = next((axis for axis, size in enumerate(block.shape) if size > 1), None)
    if op.xml_type in UFUNCS or axis is None:
        return done(found, block, target, own)
    # Runs begin at cache lines: what is left of a vector takes calls of its own.
    rows, unit = block.shape[axis], LINE if block.ndim == 1 else 1
    lead = (slice(None),) * axis
    runs = [
        slice(begin * unit, min(end * unit, rows))
        for begin, end in spans(-(-rows // unit), -(-block.size // near))
    ]
    pairs = [(block[(*lead, run)], target[(*lead, run)]) for run in runs]
    return sequence([done(found, *pair, own) for pair in pairs])


def done(found: Function | Way, block: Array, target: Array, own: Rooms | None = None) -> Part:
    """An activation of a block, by sums of products where a library makes them in one pass."""
    if not isinstance(found, Way):
        return partial(found, block, target)
    library = integer_products()
    if found.by_sums is not None and library is not None and library.rounds:
        number, make, _ = found.by_sums
        found = Way(number, partial(make, library))
    return _made(found, block, target, own)


def _made(way: Way, block: Array, target: Array, own: Rooms | None) -> Part:
    """The calls of a way: what lies with gaps, which each would meet, is put side by side."""
    is_line, into_line = block.flags.c_contiguous, target.flags.c_contiguous
    size = block.size

    def make(*temporaries: Array) -> list[Part]:
        *others, line = temporaries
        x = block.reshape(-1) if is_line else target.reshape(-1) if into_line else line
        out = target.reshape(-1) if into_line else line
        first = [] if is_line else [partial(np.copyto, x.reshape(block.shape), block)]
        last = [] if into_line else [partial(np.copyto, target, out.reshape(target.shape))]
        return [*first, *way.calls(x, out, *others), *last]

    return in_rooms(make, [size] * way.temporaries + [0 if into_line else size], own)


def _found(op: Any, parameters: Sequence[Array | None]) -> Function | Way | None:
    """What computes an activation."""
    kind = op.xml_type
    if kind in UFUNCS:
        return UFUNCS[kind]
    if kind == "Round":
        return np.rint if op.mode == "half_to_even" else None
    if kind == "Gelu" and getattr(op, "approximation_mode", "ERF") == "TANH":
        return GELU_BY_TANH if QUICK_TANH else GELU_BY_POWERS
    if kind == "Gelu":
        return GELU_BY_QUICK_TANH if QUICK_TANH else GELU
    if kind == "Swish":
        beta = next((float(array.reshape(())) for array in parameters if array is not None), 1.0)
        if SWISH_FACTOR == HALF:
            return swish_of(beta)
        return swish_by_powers(beta, by_two=SWISH_FACTOR != MINUS_ONE)
    if kind == "Elu" and math.isfinite(op.alpha):  # what is not times zero is no zero
        return lambda x, out: bent(x, np.float32(op.alpha), out)
    return FUNCTIONS.get(kind)


def sigmoid(x: Array, out: Array, *, by_two: bool) -> list[Part]:
    """``1 / (1 + exp(-x))``, or the same by powers of two."""
    return [
        partial(np.multiply, x, MINUS_LOG2, out) if by_two else partial(np.negative, x, out),
        power_of_two(out, out) if by_two else partial(np.exp, out, out),
        partial(np.add, out, ONE, out),
        # By a division of many: to ask for reciprocals takes twice as long.
        partial(np.divide, ONE, out, out),
    ]


def power_of_two(exponents: Array, out: Array) -> Part:
    """``2 ** exponents``, to which one is added: so those next to nothing may be as large as any.

    NumPy takes ten to a hundred times as long for powers that are next to nothing or endless. So
    now and then it is looked whether there are such, and if so, exponents are kept away from
    there: who is below gets a little more, and who is above gets it by a product, but for the few
    that are between the largest power and none. To results neither makes a difference.
    """
    turn = count()
    faint = strong = False

    def kept_away() -> None:
        if strong:
            beyond = np.subtract(exponents, QUICK_EXPONENT)
            between = np.flatnonzero((beyond > ZERO) & (beyond < TWO))
            large = np.exp2(exponents[between])
            np.exp2(beyond.clip(ZERO, TWO, beyond), beyond)
        most = QUICK_EXPONENT if strong else ENDLESS
        np.exp2(exponents.clip(-QUICK_EXPONENT, most, out), out)
        if strong:
            np.multiply(out, beyond, out)
            out[between] = large

    def run() -> None:
        nonlocal faint, strong
        if next(turn) % LOOKED_AT == 0:
            faint = bool(np.fmin.reduce(exponents, axis=None) < -QUICK_EXPONENT)
            strong = bool(np.fmax.reduce(exponents, axis=None) > QUICK_EXPONENT)
        if faint or strong:
            kept_away()
        else:
            np.exp2(exponents, out)

    return run


def swish_of(beta: float) -> Way:
    """``x * sigmoid(beta * x)`` as ``x / 2 * (1 + tanh(beta * x / 2))``."""
    (slope,) = numbers(beta / 2)
    return Way(2, partial(_swish, slope), Way(1, partial(_swish_by_sums, slope)))


def _swish(slope: Array, x: Array, out: Array, half: Array, value: Array) -> list[Part]:
    first: list[Part] = [partial(np.multiply, x, HALF, half)]
    if slope == HALF:
        return first + swish_of_half(half, out, value)
    return [
        *first,
        partial(np.multiply, x, slope, value),
        partial(np.tanh, value, value),
        partial(np.add, value, ONE, value),
        partial(np.multiply, half, value, out),
    ]


def _swish_by_sums(
    slope: Array, library: IntegerProducts, x: Array, out: Array, value: Array
) -> list[Part]:
    return [
        partial(np.multiply, x, slope, value),
        partial(np.tanh, value, value),
        library.fused(x, value, x, out, (0.5, 0.5)),
    ]


def swish_of_half(half: Array, out: Array, value: Array) -> list[Part]:
    """``half * (1 + tanh(half))``."""
    return [
        partial(np.tanh, half, value),
        partial(np.add, value, ONE, value),
        partial(np.multiply, half, value, out),
    ]


def swish_of_half_by_sums(
    library: IntegerProducts, half: Array, out: Array, value: Array
) -> list[Part]:
    """``half + half * tanh(half)``."""
    return [partial(np.tanh, half, value), library.fused(half, value, half, out)]


def swish_by_powers(beta: float, *, by_two: bool) -> Way:
    """``x / (1 + exp(-beta * x))``, or the same by powers of two."""
    (factor,) = numbers(-beta / math.log(2) if by_two else -beta)

    def calls(x: Array, out: Array, value: Array) -> list[Part]:
        power = power_of_two(value, value) if by_two else partial(np.exp, value, value)
        return [partial(np.multiply, x, factor, value), power, *_weighted(x, value, out)]

    return Way(1, calls)


def _weighted(x: Array, power: Array, out: Array) -> list[Part]:
    """``x / (1 + power)``, which is written over."""
    return [
        partial(np.add, power, ONE, power),
        partial(np.divide, x, power, out),
    ]


def swish_of_power(scaled: Array, out: Array, value: Array) -> list[Part]:
    """``h / (c * (1 + exp2(h)))``, h being ``c * x`` and c minus the logarithm of e."""
    return [
        power_of_two(scaled, value),
        partial(np.multiply, value, MINUS_LOG2, value),
        partial(np.add, value, MINUS_LOG2, value),
        partial(np.divide, scaled, value, out),
    ]


def swish_of_power_by_sums(
    library: IntegerProducts, scaled: Array, out: Array, value: Array
) -> list[Part]:
    """The same by sums of products."""
    factor = float(MINUS_LOG2)
    return [
        power_of_two(scaled, value),
        library.lined(factor, factor, value, value),
        partial(np.divide, scaled, value, out),
    ]


def swish_of_negative(negative: Array, out: Array, value: Array) -> list[Part]:
    """``h / (-1 - exp(h))``, h being -x."""
    return [
        partial(np.exp, negative, value),
        partial(np.subtract, MINUS_ONE, value, value),
        partial(np.divide, negative, value, out),
    ]


def gelu(x: Array, out: Array, t: Array, power: Array) -> list[Part]:
    """``x / 2 + abs(x) / 2 - t * p(t) ** 32``, t being ``abs(x)`` and p a polynomial.

    That is what is positive of x, less t times the distribution of a normal variable at -t, whose
    root a polynomial comes near: to square that five times takes less than to make a power.
    """
    steepest, *others, last = NORMAL_ROOT
    parts: list[Part] = [
        partial(np.abs, x, t),
        # Of two halves: the sum is no number where x is endless below, as by the definition.
        partial(np.multiply, x, HALF, out),
        partial(np.multiply, t, HALF, power),
        partial(np.add, out, power, out),
        partial(np.minimum, t, all_of(EDGE, x.size), out=t),
        partial(np.multiply, t, steepest, power),
    ]
    for number in others:
        parts += [partial(np.add, power, number, power), partial(np.multiply, power, t, power)]
    return [
        *parts,
        partial(np.add, power, last, power),
        *[partial(np.square, power, power)] * SQUARES,
        partial(np.multiply, power, t, power),
        partial(np.subtract, out, power, out),
    ]


def gelu_by_sums(
    library: IntegerProducts, x: Array, out: Array, t: Array, power: Array
) -> list[Part]:
    """The same by sums of products."""
    ones = all_of(1, x.size)
    steepest, next_to_it, *others = map(float, NORMAL_ROOT)
    return [
        partial(np.abs, x, t),
        library.summed((0.5, 0.5), x, t, out),
        partial(np.minimum, t, all_of(EDGE, x.size), out=t),
        library.lined(steepest, next_to_it, t, power),
        *(library.fused(power, t, ones, power, (1, number)) for number in others),
        *[partial(np.square, power, power)] * SQUARES,
        library.fused(power, t, out, out, (-1, 1)),
    ]


def gelu_by_quick_tanh(
    library: IntegerProducts, x: Array, out: Array, u: Array, q: Array, value: Array
) -> list[Part]:
    """``x / 2 + x / 2 * tanh(x * p)``, p being ``q * (a * q ** 2 + b) + c * u + d``.

    There u is ``x ** 2 / 20 + g``, and q is ``u ** 2 + h``.
    """
    g, h, a, b, c, d = HALF_LOGIT
    ones = all_of(1, x.size)
    if not np.may_share_memory(x, out):
        u = out  # less memory, more of which is in the nearest cache
    # Powers of what is far out are endless, and with the sign of x: the tangent of that is one.
    return [
        library.fused(x, x, ones, u, (1 / 20, g)),
        library.fused(u, u, ones, q, (1, h)),
        library.fused(q, q, ones, value, (a, b)),
        library.fused(q, value, u, value, (1, c)),
        library.fused(value, x, x, value, (1, d)),
        partial(np.tanh, value, value),
        library.fused(x, value, x, out, (0.5, 0.5)),
    ]


def gelu_by_tanh(x: Array, out: Array, value: Array) -> list[Part]:
    """``x * (1 / 2 + tanh(x * (a + b * x ** 2)) / 2)``."""
    first, more = TANH_CURVE
    return [
        partial(np.multiply, x, x, value),
        partial(np.multiply, value, more, value),
        partial(np.add, value, first, value),
        partial(np.multiply, value, x, value),
        partial(np.tanh, value, value),
        partial(np.multiply, value, HALF, value),
        partial(np.add, value, HALF, value),
        partial(np.multiply, x, value, out),
    ]


def gelu_by_tanh_by_sums(
    library: IntegerProducts, x: Array, out: Array, value: Array
) -> list[Part]:
    """``x / 2 + x / 2 * tanh(a * x + b * x ** 3)``."""
    first, more = map(float, TANH_CURVE)
    return [
        partial(np.multiply, x, x, value),
        library.fused(value, x, x, value, (more, first)),
        partial(np.tanh, value, value),
        library.fused(x, value, x, out, (0.5, 0.5)),
    ]


def gelu_by_powers(x: Array, out: Array, value: Array) -> list[Part]:
    """``x / (1 + exp(-2 * x * (a + b * x ** 2)))``, of Gelu's approximation by tanh."""
    first, more = EXP_CURVE
    return [
        partial(np.multiply, x, x, value),
        partial(np.multiply, value, more, value),
        partial(np.add, value, first, value),
        partial(np.multiply, value, x, value),
        partial(np.exp, value, value),
        *_weighted(x, value, out),
    ]


def bent(x: Array, alpha: np.float32, out: Array) -> None:
    """``x``, below zero ``alpha * (exp(x) - 1)``: the larger of both, for alpha up to one."""
    below, is_larger = rooms.take(0, x.size).reshape(x.shape), 0 <= alpha <= 1
    x.clip(-ENDLESS, ZERO, below)
    if QUICK_DIFFERENCE:
        np.expm1(below, below)
    else:  # 2 * t / (1 - t), t being tanh(x / 2): no digits are lost near zero
        beside = rooms.take(1, x.size).reshape(x.shape)
        np.multiply(below, HALF, below)
        np.tanh(below, below)
        np.subtract(ONE, below, beside)
        np.divide(below, beside, below)
        alpha = np.float32(2 * alpha)
    if alpha != 1:
        np.multiply(below, alpha, below)
    if is_larger:
        np.maximum(x, below, out=out)
    else:
        x.clip(ZERO, ENDLESS, out)
        np.add(out, below, out)


def sloped(x: Array, slope: Array, out: Array) -> None:
    """``max(x, 0) + slope * min(x, 0)``, for slopes of any size."""
    clip: Any = x.clip
    below = rooms.take(0, x.size).reshape(x.shape)
    clip(-ENDLESS, ZERO, below)
    np.multiply(below, slope, below)
    clip(ZERO, ENDLESS, out)
    np.add(out, below, out)


def leaked(x: Array, slope: Array, out: Array) -> None:
    """``max(x, slope * x)``."""
    value = rooms.take(0, x.size).reshape(x.shape)
    np.multiply(x, slope, value)
    np.maximum(x, value, out=out)


def three_lines(x: Array, out: Array) -> list[Part]:
    """``min(max(x + 3, 0), 6) / 6``."""
    clip: Any = out.clip
    return [
        partial(np.add, x, THREE, out),
        partial(clip, ZERO, SIX, out),
        partial(np.multiply, out, SIXTH, out),
    ]


def weighted_lines(x: Array, out: Array, value: Array) -> list[Part]:
    """``x`` times that."""
    return [*three_lines(x, value), partial(np.multiply, x, value, out)]


def three_lines_by_sums(library: IntegerProducts, x: Array, out: Array) -> list[Part]:
    """``min(max(x / 6 + 1 / 2, 0), 1)``."""
    clip: Any = out.clip
    return [library.lined(1 / 6, 0.5, x, out), partial(clip, ZERO, ONE, out)]


def weighted_lines_by_sums(
    library: IntegerProducts, x: Array, out: Array, value: Array
) -> list[Part]:
    """``x`` times that."""
    return [*three_lines_by_sums(library, x, value), partial(np.multiply, x, value, out)]


def mish(x: Array, out: Array, value: Array, more: Array) -> list[Part]:
    """``x * tanh(log(1 + exp(x)))``, which is ``x * w / (w + 2)``, w being ``e * (e + 2)``."""
    return [
        *_raised(x, value),
        partial(np.add, value, TWO, more),
        partial(np.multiply, value, more, value),
        *_of_mish(x, out, value, more),
    ]


def mish_by_sums(
    library: IntegerProducts, x: Array, out: Array, value: Array, more: Array
) -> list[Part]:
    """The same by sums of products."""
    squared = library.fused(value, value, value, value, (1, 2))
    return [*_raised(x, value), squared, *_of_mish(x, out, value, more)]


def _of_mish(x: Array, out: Array, value: Array, more: Array) -> list[Part]:
    return [
        partial(np.add, value, TWO, more),
        partial(np.divide, value, more, value),
        partial(np.multiply, x, value, out),
    ]


def sign(x: Array, out: Array) -> list[Part]:
    """-1, 0 or 1, without a look at each: times so much that the least number is beyond one."""
    clip: Any = out.clip
    return [
        partial(np.multiply, x, LARGEST_POWER, out),
        partial(np.multiply, out, LARGEST_POWER, out),
        partial(clip, MINUS_ONE, ONE, out),
        partial(np.add, out, ZERO, out),  # of two zeros the one without a sign
    ]


def soft_sign(x: Array, out: Array, value: Array) -> list[Part]:
    """``x / (1 + abs(x))``."""
    return [
        partial(np.abs, x, value),
        partial(np.add, value, ONE, value),
        partial(np.divide, x, value, out),
    ]


def soft_plus(x: Array, out: Array, value: Array) -> list[Part]:
    """``log(1 + exp(x))``, which is x from far below where it is endless on."""
    return [
        *_raised(x, value),
        partial(np.log1p, value, value),
        partial(np.maximum, x, value, out=out),
    ]


def soft_plus_by_logarithms(
    x: Array, out: Array, value: Array, more: Array, kept: Array
) -> list[Part]:
    """The same where ``log(1 + e)`` has to make up for what rounding ``u = 1 + e`` lost.

    That is ``log(u) + (e - (u - 1)) / u``.
    """
    return [
        *_raised(x, value),
        partial(np.add, value, ONE, more),
        partial(np.subtract, more, ONE, kept),
        partial(np.subtract, value, kept, value),
        partial(np.divide, value, more, value),
        partial(np.log, more, more),
        partial(np.add, value, more, value),
        partial(np.maximum, x, value, out=out),
    ]


def _raised(x: Array, value: Array) -> list[Part]:
    """``exp(x)``, of large x that of less."""
    return [
        partial(np.minimum, x, all_of(STEEP, x.size), out=value),
        partial(np.exp, value, value),
    ]


def numbers(*values: float) -> tuple[Array, ...]:
    """Numbers as ufuncs take them soonest."""
    return tuple(np.array(value, np.float32) for value in values)


def _kernels(name: str) -> str:
    """For which processors the loop is that NumPy takes here for float32."""
    if not hasattr(np.lib, "introspect"):
        return "baseline"
    found = np.lib.introspect.opt_func_info(func_name=f"^{name}$").get(name, {})
    return str(found.get("ff", {}).get("current", "baseline"))


#: Whether NumPy has loops for AVX-512 here: of those, tanh takes less time than exp.
QUICK_TANH = _kernels("tanh").startswith("X86_V4") or "AVX512" in _kernels("tanh")
#: Whether NumPy takes many powers less one at a time; else a tangent is three times as quick.
QUICK_DIFFERENCE = not _kernels("expm1").startswith("baseline")
#: Whether NumPy takes many logarithms at a time on this machine, and whether it does so with
#: powers of two in each process.
QUICK_LOGARITHMS = not _kernels("log1p").startswith("baseline")
QUICK_POWERS = not (_kernels("exp2").startswith("baseline") or is_zen_5())
ONE, MINUS_ONE, TWO, HALF, THREE, SIX, ZERO, SIXTH = numbers(1, -1, 2, 0.5, 3, 6, 0, 1 / 6)
(LARGEST_POWER,) = numbers(2.0**127)
#: What turns a power of e into the inverse of one of two.
(MINUS_LOG2,) = numbers(-1 / math.log(2))
#: What Swish would rather have what it takes multiplied by: of powers of two, a tangent, or powers
#: of e, this takes the least time here.
SWISH_FACTOR = float(MINUS_LOG2) if QUICK_POWERS else 0.5 if QUICK_TANH else -1.0
#: Powers of two with larger exponents take long; two more, and they are endless.
(QUICK_EXPONENT,) = numbers(126)
#: So often exponents are looked at.
LOOKED_AT = 16
#: From here on Mish and SoftPlus are x.
STEEP = 20.0

#: The distribution of a normal variable at -t is nearly such a power of a polynomial, within
#: 1.1e-7 when t times it is taken; from the highest power of t on, and how often it is squared.
NORMAL_ROOT = numbers(
    -1.306862861e-05, 0.0002497469532, -0.0008972014491, -0.009417978621, -0.02440195381,
    0.9785721831,
)  # fmt: skip
SQUARES = 5
#: From here on t times that is nothing beside t, and stays what it is here.
EDGE = 6.0
ENDLESS = np.float32(math.inf)
#: Half the logarithm of how much sooner a normal variable is below x than above it, divided by x,
#: is nearly such a polynomial of the square of x: what x times the distribution errs by is 8e-8 up
#: to one, 1.2e-7 up to two, and at most 3.1e-7, between four and five.
HALF_LOGIT = (
    -0.73335334448, -0.31037324423, 0.083562804291, -0.150228018620, 0.525425541589, 1.21639012297,
)  # fmt: skip
TANH_CURVE = numbers(math.sqrt(2 / math.pi), math.sqrt(2 / math.pi) * 0.044715)
EXP_CURVE = numbers(*(-2 * float(number) for number in TANH_CURVE))

UFUNCS: dict[str, Any] = {
    "Tanh": np.tanh, "Exp": np.exp, "Sqrt": np.sqrt, "Abs": np.abs, "Negative": np.negative,
    "Floor": np.floor, "Ceiling": np.ceil, "Log": np.log, "Sin": np.sin, "Cos": np.cos,
    "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan, "Sinh": np.sinh,
    "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
}  # fmt: skip
GELU = Way(2, gelu, Way(2, gelu_by_sums))
GELU_BY_QUICK_TANH = Way(2, gelu, Way(3, gelu_by_quick_tanh))
GELU_BY_TANH = Way(1, gelu_by_tanh, Way(1, gelu_by_tanh_by_sums))
GELU_BY_POWERS = Way(1, gelu_by_powers)
SWISH_OF_POWER = Way(1, swish_of_power, Way(1, swish_of_power_by_sums))
SWISH_OF_NEGATIVE = Way(1, swish_of_negative)
SWISH_OF_HALF = Way(1, swish_of_half, Way(1, swish_of_half_by_sums))
#: Swish of what was multiplied by such a number.
SWISH_OF = {
    float(MINUS_LOG2): SWISH_OF_POWER,
    0.5: SWISH_OF_HALF,
    -1.0: SWISH_OF_NEGATIVE,
}
MISH = Way(2, mish, Way(2, mish_by_sums))
SOFT_PLUS = Way(1, soft_plus)
SOFT_PLUS_BY_LOGARITHMS = Way(3, soft_plus_by_logarithms)
HSIGMOID = Way(0, three_lines, Way(0, three_lines_by_sums))
HSWISH = Way(1, weighted_lines, Way(1, weighted_lines_by_sums))
FUNCTIONS: dict[str, Function | Way] = {
    "Sigmoid": Way(0, partial(sigmoid, by_two=QUICK_POWERS)),
    "HSigmoid": HSIGMOID,
    "HSwish": HSWISH,
    "Mish": MISH,
    "Sign": Way(0, sign),
    "SoftSign": Way(1, soft_sign),
    "SoftPlus": SOFT_PLUS if QUICK_LOGARITHMS else SOFT_PLUS_BY_LOGARITHMS,
}
