"""Element types changed, and strings taken apart.

Specification pages: Convert-1, ConvertLike-1, ConvertPromoteTypes-14, StringTensorPack-15,
StringTensorUnpack-15.

Real numbers lose their fraction on the way to integers; what does not fit wraps around, as
integers do. What is beyond 32 bits (for the types of 64 bits and u32: beyond 64), and NaN, becomes
the lowest integer of so many bits before it wraps, as x86 has it. Real types round to the nearest,
ties to even, f8e4m3 and f8e5m2 by way of f16; f8e4m3 has NaN for what is too large, f4e2m1 its
largest value, also for NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..schemas import ANY, Array, ElementType, IRError, Shape, Size, Tensor, UnsupportedError
from ..schemas.attributes import Bool, Type
from ..schemas.packing import NF4
from ..schemas.tensor import Bounds
from .base import Kernel, Op
from .budget import pieces, require, steps
from .casting import as_float, as_half
from .value_bounds import as_reals, ends, is_narrow, without

#: Middles between neighbours of nf4: what lies above counts up.
_NF4_STEPS = (NF4[1:] + NF4[:-1]) / 2

#: The types that ConvertPromoteTypes brings together, boolean apart.
_PROMOTED = frozenset(ElementType) - {
    "boolean", "dynamic", "f4e2m1", "f8e8m0", "nf4", "string", "u2", "u3", "u6",
}  # fmt: skip


class ConvertV1(Op):
    """Values in another element type."""

    until = 17

    carries_sizes = True

    destination_type: Type

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(self.destination_type, data.shape),)

    def run(self, data: Array) -> tuple[Array, ...]:
        return (converted(data, self.destination_type),)

    def bounds(self, lows: Sequence[Array], highs: Sequence[Array]) -> Sequence[Bounds] | None:
        kind = self.destination_type
        low, high = as_reals(lows[0]), as_reals(highs[0])
        if kind is ElementType.BOOLEAN:
            return [((low > 0) | (high < 0), (low != 0) | (high != 0))]
        if kind.is_real and kind.bits <= 8:
            return None  # what is too large for it may be NaN
        least, most = ends(kind.dtype)
        # "Without limit" is another number in the other type, what wraps around is any.
        below, above = low < least, high > most
        wraps = (kind.is_integral & (low != high)) & (
            (below & (np.isfinite(low) | is_narrow(kind) | (least == 0)))
            | (above & (np.isfinite(high) | is_narrow(kind)))
        )
        return [
            (
                without(self.run(lows[0])[0], wraps | (low == -np.inf), least),
                without(self.run(highs[0])[0], wraps | (high == np.inf), most),
            )
        ]

    def carry_sizes(self, data: Array) -> Sequence[Array | None] | None:
        wide = self.destination_type.is_integral and not is_narrow(self.destination_type)
        return (data,) if wide else None


class ConvertLikeV1(Op):
    """Values in the element type of another tensor."""

    def infer(self, data: Tensor, like: Tensor) -> tuple[Tensor, ...]:
        return (Tensor(like.type, data.shape),)

    def run(self, data: Array, like: Array) -> tuple[Array, ...]:
        return (converted(data, ElementType.of(like.dtype)),)

    def prepare(self, inputs: Sequence[Tensor]) -> Kernel:
        # Arrays do not tell u1 from u8, tensors do.
        kind = inputs[1].type
        return self.run if kind.is_dynamic else lambda data, _: (converted(data, kind),)


class ConvertPromoteTypesV14(Op):
    """Two tensors in the least element type that serves both."""

    output_count = (2, 2)

    promote_unsafe: Bool = False
    pytorch_scalar_promotion: Bool = False
    u64_integer_promotion_target: Type = ElementType.F32

    def infer(self, input_0: Tensor, input_1: Tensor) -> tuple[Tensor, ...]:
        kind = self.promoted(input_0, input_1)
        return Tensor(kind, input_0.shape), Tensor(kind, input_1.shape)

    def run(self, input_0: Array, input_1: Array) -> tuple[Array, ...]:
        kind = self.promoted(*(like(array) for array in (input_0, input_1)))
        return converted(input_0, kind), converted(input_1, kind)

    def prepare(self, inputs: Sequence[Tensor]) -> Kernel:
        kind = self.promoted(*inputs)
        if kind.is_dynamic:
            return self.run
        return lambda one, other: (converted(one, kind), converted(other, kind))

    def promoted(self, one: Tensor, other: Tensor) -> ElementType:
        """The element type for both."""
        a, b = one.type, other.type
        known = {a, b} - {ElementType.DYNAMIC, ElementType.BOOLEAN}
        if not known <= _PROMOTED:
            raise IRError(f"element type {min(known - _PROMOTED)} takes no part in promotion")
        if ElementType.DYNAMIC in (a, b):
            return ElementType.DYNAMIC
        if a is b or b is ElementType.BOOLEAN:
            return a
        if a is ElementType.BOOLEAN:
            return b
        if a.is_real is not b.is_real:
            real, whole = (a, b) if a.is_real else (b, a)
            return self.safe(real, a, b, real.bits >= 2 * whole.bits)
        if self.pytorch_scalar_promotion:
            if one.rank is None or other.rank is None:
                return ElementType.DYNAMIC
            if (one.rank == 0) is not (other.rank == 0):
                scalar, wide = (a, b) if one.rank == 0 else (b, a)
                room = 2 * wide.bits if wide.is_signed > scalar.is_signed else wide.bits
                fits = wide.is_signed >= scalar.is_signed and scalar.bits <= room
                return self.safe(wide, a, b, fits)
        return self.of_one_kind(a, b)

    def of_one_kind(self, a: ElementType, b: ElementType) -> ElementType:
        """The least type that holds two real types, or two integer types."""
        large, small = (a, b) if a.bits >= b.bits else (b, a)
        if large.is_real:
            if large.bits > small.bits:
                return large
            return self.safe(ElementType.F32 if large.bits == 16 else ElementType.F16, a, b, False)
        if a.is_signed is b.is_signed:
            return large
        signed, unsigned = (a, b) if a.is_signed else (b, a)
        bits = max(signed.bits, 2 * unsigned.bits)
        if bits > 64:
            return self.safe(self.u64_integer_promotion_target, a, b, False)
        return self.safe(ElementType(f"i{bits}"), a, b, bits == signed.bits)

    def safe(self, kind: ElementType, a: ElementType, b: ElementType, safe: bool) -> ElementType:
        """The promoted type, unless values may be lost and that is not allowed."""
        if not safe and not self.promote_unsafe:
            raise IRError(f"{a} and {b} become {kind}, which promote_unsafe=false does not allow")
        return kind


class StringTensorPackV15(Op):
    """Strings from their UTF-8 bytes and the places where each begins and ends."""

    def infer(self, begins: Tensor, ends: Tensor, symbols: Tensor) -> tuple[Tensor, ...]:
        if begins.type is not ends.type or begins.type not in ("i32", "i64"):
            raise IRError(f"begins are {begins.type}, ends are {ends.type}; both i32 or i64")
        if symbols.type is not ElementType.U8:
            raise IRError(f"symbols are {symbols.type}, they have to be u8")
        if symbols.rank not in (None, 1):
            raise IRError(f"symbols have the shape {symbols.shape}, they are a list")
        return (Tensor(ElementType.STRING, begins.shape.merge(ends.shape)),)

    def run(self, begins: Array, ends: Array, symbols: Array) -> tuple[Array, ...]:
        texts = np.empty(begins.size, ElementType.STRING.dtype)
        for index, (begin, end) in enumerate(zip(steps(begins.flat), ends.flat, strict=True)):
            if not 0 <= begin <= end <= len(symbols):
                raise IRError(f"string {index} is {begin} to {end} of {len(symbols)} symbols")
            try:
                texts[index] = symbols[begin:end].tobytes().decode()
            except UnicodeDecodeError as error:
                raise IRError(f"string {index} is not UTF-8: {error.reason}") from None
        return (texts.reshape(begins.shape),)


class StringTensorUnpackV15(Op):
    """The UTF-8 bytes of strings, and the places where each begins and ends."""

    output_count = (3, 3)

    def infer(self, data: Tensor) -> tuple[Tensor, ...]:
        if data.type is not ElementType.STRING:
            raise IRError(f"the data are {data.type}, they have to be string")
        places = Tensor(ElementType.I32, data.shape)
        count: Size = ANY
        if data.value is not None:
            count = sum(len(text.encode()) for text in data.value.ravel().tolist())
        elif data.rank is not None and 0 in data.shape.sizes:
            count = 0
        return places, places, Tensor(ElementType.U8, Shape((count,)))

    def run(self, data: Array) -> tuple[Array, ...]:
        texts = data.reshape(-1)
        parts = [*pieces(texts.size, _OF_A_TEXT)]
        stops = np.zeros(texts.size + 1, np.int64)
        for some in parts:
            stops[1:][some] = [len(text.encode()) for text in texts[some].tolist()]
        np.cumsum(stops, out=stops)
        require(12 * data.size + int(stops[-1]))
        symbols = np.empty(stops[-1], np.uint8)
        for some in parts:
            joined = "".join(texts[some].tolist()).encode()
            symbols[stops[some.start] : stops[some.stop]] = np.frombuffer(joined, np.uint8)
        stops = stops.astype(np.int32)
        return stops[:-1].reshape(data.shape), stops[1:].reshape(data.shape), symbols


#: Bytes that a short text takes as an object of Python, with its number in a list.
_OF_A_TEXT = 200
#: Bytes that a number takes on the way to another type.
_ON_THE_WAY = 64


def like(array: Array) -> Tensor:
    """Type and shape of an array."""
    return Tensor(ElementType.of(array.dtype), array.shape)


def converted(data: Array, kind: ElementType) -> Array:
    """The same values in another element type."""
    source = ElementType.of(data.dtype)
    if source is ElementType.STRING and kind is ElementType.STRING:
        return data
    if kind.is_dynamic or ElementType.STRING in (source, kind):
        raise UnsupportedError(f"{source} is not converted to {kind}")
    if kind.is_real and kind.dtype == data.dtype and kind is not ElementType.NF4:
        return data
    found = np.empty(data.shape, kind.dtype)
    given, flat = data.reshape(-1), found.reshape(-1)
    with np.errstate(all="ignore"):
        for some in pieces(given.size, _ON_THE_WAY):
            flat[some] = _converted(given[some], source, kind)
    return found


def _converted(data: Array, source: ElementType, kind: ElementType) -> Array:
    """Some values in another element type."""
    if kind.is_real:
        return _as_real(data, kind)
    # Narrow types do not hold the limits they are compared with.
    narrow = source.bits < (32 if source.is_real else 8)
    wide = data.astype(np.float32) if narrow else data
    if kind is ElementType.BOOLEAN:
        return wide != 0
    whole = _truncated(wide, kind) if source.is_real else wide
    return _wrapped(whole, kind)


def _as_real(data: Array, kind: ElementType) -> Array:
    """Values in a real type; the narrow ones round from float32."""
    if kind.dtype in (data.dtype, np.float64) and kind is not ElementType.NF4:
        return data.astype(kind.dtype, copy=False)
    wide = as_float(data)
    if kind is ElementType.NF4:
        codes = np.searchsorted(_NF4_STEPS, wide.ravel()).reshape(wide.shape)
        return NF4[np.where(np.isnan(wide), 0, codes)]
    if kind is ElementType.F4E2M1:
        wide = np.nan_to_num(wide, nan=6, posinf=6, neginf=-6)
    elif kind is ElementType.F8E8M0:
        return _as_power_of_two(wide)
    elif kind in (ElementType.F8E4M3, ElementType.F8E5M2):
        wide = as_half(wide)  # OpenVINO rounds twice
    return wide.astype(kind.dtype, copy=False)


def _as_power_of_two(wide: Array) -> Array:
    """Positive values to the nearest of 2**-127 to 2**127; ties to the even exponent."""
    # The least of them is no normal number of 32 bits.
    wide = wide.astype(np.float64)
    mantissa, exponent = np.frexp(np.clip(np.nan_to_num(wide, nan=1), 2.0**-127, 2.0**127))
    # frexp has 0.5 <= mantissa < 1; the stored exponent of a half is one less, plus 127.
    stored = exponent + 126
    up = (mantissa > 0.75) | ((mantissa == 0.75) & (stored % 2 == 1))
    codes = np.where(np.isnan(wide), 255, np.minimum(stored + up, 254))
    return codes.astype(np.uint8).view(ElementType.F8E8M0.dtype)


def _truncated(wide: Array, kind: ElementType) -> Array:
    """Real values without their fraction, as int64; uint64 for u64."""
    end = 2.0**63 if kind.bits == 64 or kind is ElementType.U32 else 2.0**31
    inside = (wide >= -end) & (wide < end)
    whole = np.where(inside, wide, -end).astype(np.int64)
    if kind is not ElementType.U64:
        return whole
    beyond = np.where(wide < 2.0**64, wide, 0).astype(np.uint64)
    return np.where(wide >= end, beyond, whole.astype(np.uint64))


def _wrapped(whole: Array, kind: ElementType) -> Array:
    """Integers in another integer type, the bits beyond its width dropped."""
    if kind.bits >= 8:
        return whole.astype(kind.dtype)
    codes = whole.astype(np.int64) & ((1 << kind.bits) - 1)
    if kind.is_signed:
        codes = (codes ^ 8) - 8
    return codes.astype(kind.dtype)
