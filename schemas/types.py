"""The element types: their spelling in attributes and on ports, their width, their NumPy type."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .errors import IRError, UsageError


class _Row(NamedTuple):
    """What a type's name does not say."""

    port: str
    bits: int
    kind: str  # r real, i signed, u unsigned, b boolean, s string, ? unknown
    dtype: Any  # a text: the name it has in ml_dtypes


class ElementType(StrEnum):
    """An element type; its value is its spelling in attributes, so it equals that string."""

    DYNAMIC = "dynamic"
    BOOLEAN = "boolean"
    BF16 = "bf16"
    F16 = "f16"
    F32 = "f32"
    F64 = "f64"
    I4 = "i4"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U1 = "u1"
    U2 = "u2"
    U3 = "u3"
    U4 = "u4"
    U6 = "u6"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    NF4 = "nf4"
    F8E4M3 = "f8e4m3"
    F8E5M2 = "f8e5m2"
    STRING = "string"
    F4E2M1 = "f4e2m1"
    F8E8M0 = "f8e8m0"

    @classmethod
    def parse(cls, text: str) -> ElementType:
        """Read the spelling of an attribute; letter case is free, as in OpenVINO."""
        known = SPELLED.get(text)
        if known is not None:
            return known
        name = text.lower()
        if name == "undefined":
            return cls.DYNAMIC
        try:
            return cls(name)
        except ValueError:
            pass
        near = _PORTS.get(text.upper()) or _by_numpy_name(name)
        hint = f'; write "{near}"' if near else f"; known are {', '.join(cls)}"
        raise ValueError(f'"{text}" is not an element type{hint}')

    @classmethod
    def named(cls, given: object) -> ElementType:
        """The type that a caller names: by its spelling, or as NumPy's or Python's own type."""
        if isinstance(given, str):
            try:
                return cls.parse(given)
            except ValueError as error:
                raise UsageError(str(error)) from None
        try:
            if given is not None:  # which is a float to NumPy
                return cls.of(given)
        except (TypeError, ValueError):
            pass
        raise UsageError(f"{given!r:.60} is not an element type", hint="write one such as f32")

    @classmethod
    def parse_port(cls, text: str) -> ElementType:
        """Read the spelling of a port's precision."""
        known = _PORTS.get(text) or _PORT_ALIASES.get(text)
        if known is None:
            raise ValueError(f'"{text}" is not a precision; known are {", ".join(_PORTS)}')
        return known

    @classmethod
    def of(cls, dtype: Any) -> ElementType:
        """The element type that holds a NumPy type."""
        dtype = np.dtype(dtype)
        if dtype.kind in "SUO" or dtype == np.dtypes.StringDType():
            return cls.STRING
        known = _by_dtype(native=True).get(dtype) or _by_dtype(native=False).get(dtype)
        if known is None:
            raise ValueError(f"no element type holds NumPy's {dtype}")
        return known

    @property
    def port(self) -> str:
        """The spelling on ports, such as FP32."""
        return _ROWS[self].port

    @property
    def bits(self) -> int:
        """Bits an element takes in the .bin; 0 where that varies."""
        return _ROWS[self].bits

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type that holds the values while they are worked with.

        NumPy has no nf4 (held as the float32 it stands for), and no u1, u3, u6 (held as uint8).
        """
        found = _dtype(self)
        if found is None:
            raise ValueError("a dynamic element type has no NumPy type")
        return found

    @property
    def is_real(self) -> bool:
        """Whether values may have a fraction."""
        return _ROWS[self].kind == "r"

    @property
    def is_integral(self) -> bool:
        """Whether it is an integer type; boolean is not counted."""
        return _ROWS[self].kind in "iu"

    @property
    def is_signed(self) -> bool:
        """Whether values may be negative."""
        return _ROWS[self].kind in "ri"

    @property
    def is_numeric(self) -> bool:
        """Whether one can calculate with it; boolean is not counted."""
        return _ROWS[self].kind in "riu"

    @property
    def is_dynamic(self) -> bool:
        """Whether the type is not known."""
        return self is ElementType.DYNAMIC

    def merge(self, other: ElementType) -> ElementType:
        """The type both stand for, where an unknown one stands for any."""
        if self is other or other.is_dynamic:
            return self
        if self.is_dynamic:
            return other
        raise IRError(f"element types {self} and {other} differ")

    def nbytes(self, count: int) -> int:
        """Bytes that ``count`` elements take in the .bin (strings: not known by count)."""
        group = _GROUPS.get(self)
        if group is not None:
            values, size = group
            return -(-count // values) * size
        return -(-count * self.bits // 8)


#: What a caller names an element type by: its spelling, or a type of NumPy's or Python's own.
TypeLike: TypeAlias = ElementType | str | type | np.dtype[Any]

#: The types by their spelling as it is written: found without a look at its letters.
SPELLED: dict[str, ElementType] = {kind.value: kind for kind in ElementType}

_ROWS: dict[ElementType, _Row] = {
    ElementType.DYNAMIC: _Row("UNSPECIFIED", 0, "?", None),
    ElementType.BOOLEAN: _Row("BOOL", 8, "b", np.bool_),
    ElementType.BF16: _Row("BF16", 16, "r", "bfloat16"),
    ElementType.F16: _Row("FP16", 16, "r", np.float16),
    ElementType.F32: _Row("FP32", 32, "r", np.float32),
    ElementType.F64: _Row("FP64", 64, "r", np.float64),
    ElementType.I4: _Row("I4", 4, "i", "int4"),
    ElementType.I8: _Row("I8", 8, "i", np.int8),
    ElementType.I16: _Row("I16", 16, "i", np.int16),
    ElementType.I32: _Row("I32", 32, "i", np.int32),
    ElementType.I64: _Row("I64", 64, "i", np.int64),
    ElementType.U1: _Row("BIN", 1, "u", np.uint8),
    ElementType.U2: _Row("U2", 2, "u", "uint2"),
    ElementType.U3: _Row("U3", 3, "u", np.uint8),
    ElementType.U4: _Row("U4", 4, "u", "uint4"),
    ElementType.U6: _Row("U6", 6, "u", np.uint8),
    ElementType.U8: _Row("U8", 8, "u", np.uint8),
    ElementType.U16: _Row("U16", 16, "u", np.uint16),
    ElementType.U32: _Row("U32", 32, "u", np.uint32),
    ElementType.U64: _Row("U64", 64, "u", np.uint64),
    ElementType.NF4: _Row("NF4", 4, "r", np.float32),
    ElementType.F8E4M3: _Row("F8E4M3", 8, "r", "float8_e4m3fn"),
    ElementType.F8E5M2: _Row("F8E5M2", 8, "r", "float8_e5m2"),
    ElementType.STRING: _Row("STRING", 0, "s", np.dtypes.StringDType()),
    ElementType.F4E2M1: _Row("F4E2M1", 4, "r", "float4_e2m1fn"),
    ElementType.F8E8M0: _Row("F8E8M0", 8, "r", "float8_e8m0fnu"),
}

# Types whose elements straddle bytes: so many values in so many bytes.
_GROUPS = {ElementType.U3: (8, 3), ElementType.U6: (4, 3)}

_PORTS: dict[str, ElementType] = {row.port: kind for kind, row in _ROWS.items()}
_PORT_ALIASES: dict[str, ElementType] = {str(kind): kind for kind in ElementType} | {
    "undefined": ElementType.DYNAMIC,
    "bin": ElementType.U1,
    "U1": ElementType.U1,
}


def _by_numpy_name(name: str) -> ElementType | None:
    """The type that NumPy calls by a name, such as float32."""
    if not (name.isascii() and name.isidentifier()):
        return None
    if name == "float":  # of 64 bits to NumPy alone
        return ElementType.F32
    try:
        kind = ElementType.of(name)
    except (TypeError, ValueError):
        return None
    return None if kind is ElementType.STRING else kind


@cache
def _dtype(kind: ElementType) -> np.dtype[Any] | None:
    """The NumPy type of an element type; ml_dtypes is imported when one of its own is met."""
    named = _ROWS[kind].dtype
    if isinstance(named, str):
        import ml_dtypes

        named = getattr(ml_dtypes, named)
    return None if named is None else np.dtype(named)


@cache
def _by_dtype(*, native: bool) -> dict[np.dtype[Any], ElementType]:
    """NumPy type to element type; the types that borrow another's are left out."""
    borrowed = {ElementType.U1, ElementType.U3, ElementType.U6, ElementType.NF4}
    found = {}
    for kind, row in _ROWS.items():
        if native != isinstance(row.dtype, str) and kind not in borrowed:
            dtype = _dtype(kind)
            if dtype is not None:
                found[dtype] = kind
    return found


def numbers(dtype: np.dtype[Any]) -> Any:
    """The limits of a type of numbers, NumPy's own or not, as ``np.iinfo`` and ``np.finfo``."""
    if dtype.isbuiltin != 2:  # 2: registered by another package
        return np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    import ml_dtypes

    limits: Any = ml_dtypes.finfo if ElementType.of(dtype).is_real else ml_dtypes.iinfo
    return limits(dtype)
