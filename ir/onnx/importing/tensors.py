"""Tensors of a protobuf as arrays, their bytes checked; also those kept in files beside it."""

from __future__ import annotations

import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ....schemas import Array, Dim, ElementType, IRError, Shape, UnreadableError, UnsupportedError
from ....schemas.packing import unpack
from ...storage import Weights

#: The numbers of ``TensorProto.DataType``; older releases of onnx lack the names of some.
KINDS: dict[int, ElementType] = {
    1: ElementType.F32,
    2: ElementType.U8,
    3: ElementType.I8,
    4: ElementType.U16,
    5: ElementType.I16,
    6: ElementType.I32,
    7: ElementType.I64,
    8: ElementType.STRING,
    9: ElementType.BOOLEAN,
    10: ElementType.F16,
    11: ElementType.F64,
    12: ElementType.U32,
    13: ElementType.U64,
    16: ElementType.BF16,
    17: ElementType.F8E4M3,
    19: ElementType.F8E5M2,
    21: ElementType.U4,
    22: ElementType.I4,
    23: ElementType.F4E2M1,
    24: ElementType.F8E8M0,
    25: ElementType.U2,
}

#: What IR has no type for.
OTHERS = {
    14: "complex64",
    15: "complex128",
    18: "float8e4m3fnuz",
    20: "float8e5m2fnuz",
    26: "int2",
}

#: The repeated field that holds a type's values, where they are not raw bytes.
_FIELDS = {
    ElementType.F32: "float_data",
    ElementType.F64: "double_data",
    ElementType.I64: "int64_data",
    ElementType.U32: "uint64_data",
    ElementType.U64: "uint64_data",
}

#: No array of a file is larger than this many elements unless its bytes are there.
_MOST_AXES = 64


def kind_of(number: int) -> ElementType:
    """The element type of a number in the protobuf."""
    known = KINDS.get(number)
    if known is not None:
        return known
    if number in OTHERS:
        raise UnsupportedError(f"IR has no element type for {OTHERS[number]}")
    raise IRError(f"{number} is not the number of an element type")


def shape_of(shape: Any) -> Shape:
    """The shape of a value's type; a named size keeps its name."""
    sizes: list[int | Dim] = []
    for dim in shape.dim:
        if dim.HasField("dim_value"):
            # Exporters write 0 or -1 for sizes that they do not know.
            sizes.append(dim.dim_value if dim.dim_value >= 0 else Dim())
        elif dim.dim_param:
            sizes.append(Dim(0, None, dim.dim_param))
        else:
            sizes.append(Dim())
    return Shape(sizes)


class Store:
    """Where the tensors of a model have their bytes: in it, or in files of its folder."""

    def __init__(self, model: Path | None) -> None:
        self.model = model
        self._files: dict[Path, Weights] = {}

    @property
    def files(self) -> list[Path]:
        """The files in which tensors were found so far."""
        return list(self._files)

    def array(self, tensor: Any) -> tuple[Array, ElementType]:
        """The values of a tensor, and their type."""
        try:
            return self._array(tensor)
        except IRError as error:
            kind = type(error)
            name = f'tensor "{tensor.name}"' if tensor.name else "a tensor"
            raise kind(f"{name}: {error.message}", error.where, error.hint) from None

    def _array(self, tensor: Any) -> tuple[Array, ElementType]:
        kind = kind_of(tensor.data_type)
        dims = tuple(tensor.dims)
        if len(dims) > _MOST_AXES:
            raise IRError(f"{len(dims)} axes, the most are {_MOST_AXES}")
        if any(size < 0 for size in dims):
            raise IRError(f"shape {list(dims)} has a negative size")
        count = prod(dims)
        if not count and prod(size or 1 for size in dims) * kind.dtype.itemsize > sys.maxsize:
            raise UnsupportedError(f"shape {list(dims)} is too large, also for no elements")
        if tensor.data_location == 1:  # EXTERNAL
            if kind is ElementType.STRING:
                raise IRError("strings cannot be external data")
            return unpack(self._external(tensor, kind.nbytes(count)), kind, dims), kind
        if kind is ElementType.STRING:
            words = [word.decode("utf-8", "replace") for word in tensor.string_data]
            _same(len(words), count, "strings", dims)
            return np.array(words, np.dtypes.StringDType()).reshape(dims), kind
        if tensor.HasField("raw_data"):
            raw = tensor.raw_data  # a copy each time it is asked for
            _same(len(raw), kind.nbytes(count), "bytes", dims)
            return unpack(raw, kind, dims), kind
        field = getattr(tensor, _FIELDS.get(kind, "int32_data"))
        if kind.bits < 8:
            data = np.array(field, np.int64).astype(np.uint8)
            _same(len(data), kind.nbytes(count), "bytes", dims)
            return unpack(data, kind, dims), kind
        _same(len(field), count, "values", dims)
        if kind in _FIELDS or kind is ElementType.BOOLEAN or kind.is_integral:
            try:
                return np.array(field, np.int64 if kind.is_signed and kind.is_integral else None
                                ).astype(kind.dtype).reshape(dims), kind  # fmt: skip
            except OverflowError as error:
                raise IRError(str(error)) from None
        # Narrow real types are kept as their bits.
        bits = np.array(field, np.int64).astype(np.uint16 if kind.bits == 16 else np.uint8)
        return bits.view(kind.dtype).reshape(dims), kind

    def _external(self, tensor: Any, size: int) -> Any:
        """The bytes of a tensor in a file; only files inside the model's folder are opened.

        Of a model that is a link, as in the cache of a hub, also those where it leads.
        """
        facts = {entry.key: entry.value for entry in tensor.external_data}
        location = facts.get("location", "")
        if not location:
            raise IRError("its external data has no location")
        if self.model is None:
            raise IRError(
                f'its data is in the file "{location}", the model has no folder',
                hint="give the path of the model, or load it with its external data",
            )
        offset, length = _count(facts, "offset", 0), _count(facts, "length", 0)
        if length not in (size, 0):  # some write 0 for what is not known
            raise IRError(f"{size} bytes are needed, its external data has {length}")
        weights = self._map(location)
        weights.check(offset, size)
        return weights.view(offset, size)

    def _map(self, location: str) -> Weights:
        model = self.model
        if model is None or "\0" in location:
            raise IRError(f'"{location!r}" cannot be the name of a file')
        try:
            homes = model.parent.resolve(), model.resolve().parent
            path = (homes[0] / location).resolve()
        except (OSError, RuntimeError) as error:  # a link that leads to itself
            raise IRError(f'its data is in "{location}", which cannot be found: {error}') from None
        if Path(location).is_absolute() or not any(map(path.is_relative_to, homes)):
            raise IRError(
                f'its data is in "{location}", which is outside the folder of the model',
                hint="files outside are not read",
            )
        if path not in self._files:
            try:
                self._files[path] = Weights.map(path)
            except UnreadableError as error:
                raise UnreadableError(
                    f'its data is in "{location}", which {_told(error.message)}'
                ) from None
        return self._files[path]


def _told(message: str) -> str:
    return "is not there" if message == "no such file" else message


def _same(there: int, needed: int, what: str, dims: tuple[int, ...]) -> None:
    if there != needed:
        raise IRError(f"shape {list(dims)} takes {needed} {what}, {there} are there")


def _count(facts: dict[str, str], name: str, default: int) -> int:
    text = facts.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise IRError(f'{name} "{text[:30]}" of its external data is not a number of bytes')
    return int(text)
