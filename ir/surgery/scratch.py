"""New values of many constants, kept in files until the model is written."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from ...schemas import Array
from ..storage import let_go, map_of, parts

#: Values begin at multiples of this.
_ALIGNMENT = 64
#: Values of fewer bytes stay in memory.
LARGE = 1 << 16
#: Bytes that a file has room for, or such a part of all that was put in: a map takes a descriptor
#: of the process, and a file goes only with all that is in it.
_ROOM, _SHARE = 1 << 26, 16


class Scratch:
    """Files without names: each is gone when no value in it is used any more.

    Where no file can be made, or the disk is full, values are kept in memory.
    """

    def __init__(self, held: int = 0) -> None:
        #: Bytes that are kept in memory before the first go into a file.
        self._held = held
        #: The file that is being filled, its bytes, and how many of them are taken.
        self._file: IO[bytes] | None = None
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._taken = 0
        #: Bytes that were put into files.
        self._total = 0
        self._refused = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def keep(self, value: Array) -> Array:
        """A value that is there, in a file where it is large and memory holds enough others."""
        is_there = value.flags.c_contiguous and map_of(value) is not None
        if value.nbytes < LARGE or is_there or value.dtype.kind not in "biuf":
            return value
        if value.nbytes <= self._held:
            self._held -= value.nbytes
            return value
        return self.put(value.shape, value.dtype, _pieces(value))

    def put(self, shape: Sequence[int], dtype: np.dtype[Any], pieces: Iterable[Array]) -> Array:
        """A value that is made piece by piece, of which not more than one is in memory.

        One that is small, or of which memory may hold as much, is made there.
        """
        size, shape = prod(shape) * dtype.itemsize, tuple(shape)
        if size < LARGE or size <= self._held or not self._has_room(size):
            return _in_memory(shape, dtype, pieces)
        start, at = self._taken, self._taken
        remaining = iter(pieces)
        for piece in remaining:
            plain = np.ascontiguousarray(piece, dtype).reshape(-1).view(np.uint8)
            try:
                self._write(at, plain)
            except OSError:  # the disk is full
                before = self._bytes[start:at].view(dtype)
                self._close()
                self._refused = True
                return _in_memory(shape, dtype, _chained(before, piece, remaining))
            at += len(plain)
        assert at == start + size, "the pieces make the value"
        self._taken += size
        self._total += size
        value = self._bytes[start : start + size].view(dtype).reshape(shape)
        let_go(value)
        return value

    def _has_room(self, size: int) -> bool:
        """Whether the file has room for so many bytes; another is begun where it has not."""
        self._taken = -(-self._taken // _ALIGNMENT) * _ALIGNMENT
        if self._file is not None and self._taken + size <= len(self._bytes):
            return True
        if self._refused:
            return False
        self._close()
        room = max(size, _ROOM, self._total // _SHARE)
        try:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed when full
            self._file.truncate(room)
            mapped = mmap.mmap(self._file.fileno(), room, access=mmap.ACCESS_READ)
        except OSError:  # no folder can be written to, or there are too many files
            self._close()
            self._refused = True
            return False
        self._bytes, self._taken = np.frombuffer(mapped, np.uint8), 0
        return True

    def _write(self, at: int, plain: NDArray[np.uint8]) -> None:
        assert self._file is not None
        self._file.seek(at)
        rest = plain.data
        while rest:
            rest = rest[self._file.write(rest) :]

    def _close(self) -> None:
        """Put no more into the file, which stays as long as its values do."""
        if self._file is not None:
            self._file.close()
        self._file, self._bytes = None, np.empty(0, np.uint8)


def _pieces(value: Array) -> Iterator[Array]:
    for index in parts(value.shape):
        yield value[index]
        let_go(value)


def _in_memory(shape: tuple[int, ...], dtype: np.dtype[Any], pieces: Iterable[Array]) -> Array:
    """A value made of pieces; of one it is that."""
    flat, at = np.empty(0, dtype), 0
    for piece in pieces:
        if piece.size == prod(shape) and piece.dtype == dtype:
            return piece.reshape(shape)
        if not flat.size:
            flat = np.empty(prod(shape), dtype)
        flat[at : at + piece.size] = piece.reshape(-1)
        at += piece.size
    assert at == prod(shape), "the pieces make the value"
    return flat.reshape(shape)


def _chained(before: Array, piece: Array, after: Iterator[Array]) -> Iterator[Array]:
    if before.size:
        yield before
    yield piece
    yield from after
