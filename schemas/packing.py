"""Values to the bytes of the .bin and back, for every element type.

Byte-wide types are views on the buffer, nothing is copied. The narrow ones are unpacked:

    u1                     eight to a byte, most significant bit first
    u2, u4, i4, nf4, f4e2m1  low bits first
    u3, u6                 groups of three bytes: two of low parts, one of top parts, first high
    string                 count, count + 1 offsets (32 bits each), then the UTF-8 bytes
"""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import IRError
from .tensor import Array
from .types import ElementType

#: Anything that holds bytes.
Buffer: TypeAlias = "bytes | bytearray | memoryview | NDArray[np.uint8]"

_Bytes: TypeAlias = NDArray[np.uint8]

#: What unpacking raises of damaged bytes; Python can be built without lzma.
_BAD_LZMA: type[Exception] = zlib.error
with suppress(ImportError):
    import lzma

    _BAD_LZMA = lzma.LZMAError

#: What NumPy and zipfile raise where a .npy or an .npz is not what they expect, or is not there:
#: a RuntimeError of what seems to be encrypted, a TokenError of a header that does not end.
UNLIKE_ARRAYS = (
    ValueError, EOFError, OSError, KeyError, RuntimeError, SyntaxError, struct.error,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error, _BAD_LZMA,
)  # fmt: skip


def array_in(archive: Mapping[str, Any], name: str) -> Array:
    """An array of an .npz; NumPy hands out the bytes of what is none."""
    found = archive[name]
    if not isinstance(found, np.ndarray):
        raise ValueError("it does not begin as an array does")
    return found


#: The sixteen values of nf4, as float32 (Dettmers et al., "QLoRA").
NF4 = np.array(
    [
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
        -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
        0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
    ],
    np.float32,
)  # fmt: skip

#: Shift of each value in its byte, for the types that divide a byte.
_SHIFTS = {
    ElementType.U1: np.arange(7, -1, -1, dtype=np.uint8),
    ElementType.U2: np.arange(0, 8, 2, dtype=np.uint8),
    ElementType.U4: np.array([0, 4], np.uint8),
    ElementType.I4: np.array([0, 4], np.uint8),
    ElementType.NF4: np.array([0, 4], np.uint8),
    ElementType.F4E2M1: np.array([0, 4], np.uint8),
}

#: NumPy offers no array of more elements than this.
_MOST = 2**63 - 1


def needed(kind: ElementType, shape: Sequence[int]) -> int | None:
    """Bytes that a constant takes at least; None for strings, whose bytes depend on the text."""
    if kind is ElementType.DYNAMIC:
        raise IRError("a constant needs an element type, this is dynamic")
    if any(size < 0 for size in shape):
        raise IRError(f"shape {list(shape)} of a constant has a negative size")
    count = prod(shape)
    if count > _MOST:
        raise IRError(f"shape {list(shape)} has {count} elements, which do not fit 64 bits")
    return None if kind is ElementType.STRING else kind.nbytes(count)


def unpack(buffer: Buffer, kind: ElementType, shape: Sequence[int]) -> Array:
    """The values of a constant; read-only, and a view on the buffer where the type allows it."""
    data = np.frombuffer(buffer, np.uint8)
    data.flags.writeable = False
    size = needed(kind, shape)
    shape = tuple(shape)
    if size is None:
        return _unpack_strings(data, shape)
    if len(data) < size:
        raise IRError(f"{kind}{list(shape)} takes {size} bytes, here are {len(data)}")
    count = prod(shape)
    if kind.bits >= 8:
        if len(shape) > 64:
            raise IRError(f"shape has {len(shape)} axes, NumPy has at most 64")
        raw = data[:size]
        values = raw != 0 if kind is ElementType.BOOLEAN and _is_odd(raw) else raw.view(kind.dtype)
    elif kind in _SHIFTS:
        shifts = _SHIFTS[kind]
        mask = np.uint8((1 << kind.bits) - 1)
        codes = ((data[:size, None] >> shifts) & mask).reshape(-1)[:count]
        values = _decode(codes, kind)
    else:
        values = _join_planes(data[:size].reshape(-1, 3), kind.bits).reshape(-1)[:count]
    values = values.reshape(shape)
    values.flags.writeable = False
    return values


def plain_texts(array: Array) -> Array:
    """Texts in NumPy's type of a fixed width, which files hold and other types cast to."""
    if array.dtype.kind == "T":  # NumPy does not say how wide it would be
        return np.array(array.tolist(), np.str_).reshape(array.shape)
    return array.astype(np.str_)


def pack(array: Array, kind: ElementType) -> bytes:
    """The bytes of the .bin for these values; an error where one does not fit the type."""
    if kind is ElementType.DYNAMIC:
        raise IRError("values of a dynamic element type cannot be written")
    if kind is ElementType.STRING:
        return _pack_strings(array)
    array = np.asarray(array)
    if kind in _SHIFTS:
        codes = _encode(array.reshape(-1), kind)
        shifts = _SHIFTS[kind]
        padded = np.zeros((kind.nbytes(codes.size), len(shifts)), np.uint8)
        padded.reshape(-1)[: codes.size] = codes
        return np.bitwise_or.reduce(padded << shifts, axis=1).astype(np.uint8).tobytes()
    if kind.bits < 8:
        return _split_planes(_encode(array.reshape(-1), kind), kind.bits)
    return _fitted(array, kind).tobytes()


def packed(array: Array, kind: ElementType) -> Buffer:
    """The same bytes, those of the array itself where it holds them in that form."""
    plain = kind.is_numeric and kind.bits >= 8 and array.dtype == kind.dtype
    if plain and array.size and array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8)
    return pack(array, kind)


def kept(array: Array, cast: Array) -> NDArray[np.bool_]:
    """Which numbers are the same in another type; -1 comes back from u64, and is not in it."""
    same: NDArray[np.bool_] = (cast.astype(array.dtype) == array) & ((cast < 0) == (array < 0))
    return same


def _is_odd(raw: _Bytes) -> bool:
    """Whether bytes stand for booleans that NumPy would not take for 0 or 1."""
    return bool(raw.size) and int(raw.max()) > 1


def _fitted(array: Array, kind: ElementType) -> Array:
    """The values in the type that holds them; whole numbers must not change by it."""
    dtype = kind.dtype
    if array.dtype == dtype:
        return array
    if kind.is_integral or kind is ElementType.BOOLEAN:
        with np.errstate(all="ignore"):
            cast = array.astype(dtype)
            same = kept(array, cast)
        if not bool(np.all(same)):
            bad = np.asarray(array)[~same].ravel()[0]
            raise IRError(f"value {bad} does not fit element type {kind}")
        return cast
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _encode(values: Array, kind: ElementType) -> _Bytes:
    """The bits of each value, in the low bits of a byte."""
    if kind is ElementType.NF4:
        middles = (NF4[1:] + NF4[:-1]) / 2
        return np.searchsorted(middles, values.astype(np.float32)).astype(np.uint8)
    if kind is ElementType.F4E2M1:
        with np.errstate(all="ignore"):
            return values.astype(ElementType.F4E2M1.dtype).view(np.uint8)
    low, high = (-8, 7) if kind is ElementType.I4 else (0, (1 << kind.bits) - 1)
    if values.dtype.kind not in "biuf" or values.dtype.itemsize > 1:
        values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    elif values.dtype != np.uint8:
        values = values.astype(np.int64)
    bad = (values < low) | (values > high)
    if bool(np.any(bad)):
        raise IRError(f"value {values[bad][0]} does not fit element type {kind}")
    codes: _Bytes = values.astype(np.int64).astype(np.uint8) & np.uint8((1 << kind.bits) - 1)
    return codes


def _decode(codes: _Bytes, kind: ElementType) -> Array:
    """Values from their bits."""
    if kind is ElementType.NF4:
        return NF4[codes]
    if kind is ElementType.I4:
        return ((codes.astype(np.int8) ^ 8) - 8).astype(kind.dtype)
    if kind is ElementType.F4E2M1:
        return codes.view(ElementType.F4E2M1.dtype)
    return codes.astype(kind.dtype)


def _join_planes(groups: _Bytes, bits: int) -> _Bytes:
    """Values of u3 or u6 from their low and top parts."""
    low, per_byte = (2, 4) if bits == 3 else (4, 2)
    shifts = np.arange(8 - low, -1, -low, dtype=np.uint8)
    lows = (groups[:, :2, None] >> shifts) & np.uint8((1 << low) - 1)
    top = bits - low
    top_shifts = np.arange(8 - top, -1, -top, dtype=np.uint8)
    tops = (groups[:, 2, None] >> top_shifts) & np.uint8((1 << top) - 1)
    joined: _Bytes = lows.reshape(-1, 2 * per_byte) | (tops << np.uint8(low))
    return joined


def _split_planes(codes: _Bytes, bits: int) -> bytes:
    """Low and top parts of u3 or u6, in groups of three bytes."""
    low, per_byte = (2, 4) if bits == 3 else (4, 2)
    groups = -(-codes.size // (2 * per_byte))
    padded = np.zeros((groups, 2 * per_byte), np.uint8)
    padded.reshape(-1)[: codes.size] = codes
    shifts = np.arange(8 - low, -1, -low, dtype=np.uint8)
    lows = (padded & np.uint8((1 << low) - 1)).reshape(groups, 2, per_byte) << shifts
    top = bits - low
    tops = (padded >> np.uint8(low)) << np.arange(8 - top, -1, -top, dtype=np.uint8)
    out = np.empty((groups, 3), np.uint8)
    out[:, :2] = np.bitwise_or.reduce(lows, axis=2)
    out[:, 2] = np.bitwise_or.reduce(tops, axis=1)
    return out.tobytes()


def _unpack_strings(data: _Bytes, shape: tuple[int, ...]) -> Array:
    """The strings of a block, checked against its length and the shape's number of elements."""
    count = prod(shape)
    if len(data) < 4:
        raise IRError(f"a block of strings takes 4 bytes at least, here are {len(data)}")
    found = int(data[:4].view("<i4")[0])
    if found != count:
        raise IRError(f"block holds {found} strings, shape {list(shape)} asks for {count}")
    header = 4 * (count + 2)
    if len(data) < header:
        raise IRError(f"offsets of {count} strings take {header} bytes, here are {len(data)}")
    ends = data[4:header].view("<i4").astype(np.int64)
    text = data[header:].data
    if ends[0] != 0 or bool(np.any(np.diff(ends) < 0)) or int(ends[-1]) > len(text):
        raise IRError(f"offsets of the {count} strings do not ascend within {len(text)} bytes")
    values = np.empty(count, np.dtypes.StringDType())
    marks = ends.tolist()
    for index in range(count):
        raw = bytes(text[marks[index] : marks[index + 1]])
        try:
            values[index] = raw.decode()
        except UnicodeDecodeError as error:
            raise IRError(f"string {index} is not UTF-8: {error.reason}") from None
    values = values.reshape(shape)
    values.flags.writeable = False
    return values


def _pack_strings(array: Any) -> bytes:
    """The block of an array of strings (or of bytes that are UTF-8)."""
    flat = np.asarray(array).reshape(-1).tolist()
    texts = [item if isinstance(item, bytes) else str(item).encode() for item in flat]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    if len(texts) > 2**31 - 1 or int(ends[-1]) > 2**31 - 1:
        raise IRError(
            f"{len(texts)} strings of {int(ends[-1])} bytes do not fit a block's 32 bits"
        )
    header = np.concatenate(([len(texts)], ends)).astype("<i4")
    return header.tobytes() + b"".join(texts)
