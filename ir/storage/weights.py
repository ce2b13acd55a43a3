"""The bytes of the .bin: mapped read-only, or held in memory; never read whole from a file."""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import pickle
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import prod
from os import PathLike
from typing import Any, SupportsIndex, TypeAlias
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ...schemas import UnreadableError, UsageError, Where
from ...schemas.packing import Buffer

Path: TypeAlias = "str | PathLike[str]"


#: Elements that are looked at at once.
_BLOCK = 1 << 20
#: Bytes from which on it pays to let go of them.
_LARGE = 1 << 16
#: Bytes that tell most from others, from so many places.
_SAMPLE, _PLACES = 16, 4
#: Of fewer bytes a sample has all.
WHOLE = _SAMPLE * _PLACES
#: How the small file begins that Git LFS leaves in place of a large one, and what brings that.
LFS_POINTER, LFS_HINT = b"version https://git-lfs.github.com/spec/", "`git lfs pull` fetches it"
#: Bytes that such a file has at most.
_LARGEST_POINTER = 1024


class Weights:
    """The bytes that constants point into."""

    __slots__ = ("__weakref__", "_digest", "_map", "_seen", "data", "identity", "path")

    def __init__(self, data: Buffer, path: Path | None = None) -> None:
        try:
            self.data: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        except (TypeError, ValueError, BufferError):
            raise UsageError(
                f"weights are bytes, not {type(data).__name__}",
                hint="Weights.map and ir.read take paths",
            ) from None
        self.data.flags.writeable = False
        self.path = path
        self._digest: bytes | None = None
        self._map: mmap.mmap | None = None
        #: Device, inode, size, time of writing and of any change of the mapped file.
        self.identity: tuple[int, ...] | None = None
        #: The same, as it was when these bytes were last known to be those that were mapped.
        self._seen: tuple[int, ...] | None = None

    @classmethod
    def map(cls, path: Path) -> Weights:
        """Map a file."""
        descriptor = open_regular(path)
        try:
            status = os.fstat(descriptor)
            if status.st_size == 0:
                weights = cls(b"", path)
            else:
                mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
                weights = cls(memoryview(mapped), path)
                weights._map = mapped
        except OSError as error:
            raise UnreadableError(
                f"cannot be mapped: {error.strerror}", Where(str(path))
            ) from None
        finally:
            os.close(descriptor)
        weights.identity = weights._seen = identity(status)
        _mapped.add(weights)
        return weights

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.data)

    @property
    def looked_at(self) -> int:
        """Bytes that may be looked at just to see what they say."""
        return 64 << 20

    @property
    def is_pointer(self) -> bool:
        """Whether these are no weights, but what Git LFS leaves in their place."""
        return self.size <= _LARGEST_POINTER and self.data.tobytes().startswith(LFS_POINTER)

    def reaches(self, end: int) -> bool:
        """Whether all bytes before an end are there; of what stands for a file none are."""
        return end <= self.size and not self.is_pointer

    def check(self, offset: int, size: int) -> None:
        """Refuse a range that is not all there, with the number of bytes that are missing."""
        end = offset + size
        if self.reaches(end):
            return
        needed = f"bytes {offset} to {end} are needed"
        name = "the weights" if self.path is None else str(self.path)
        if self.is_pointer:
            what = f"{needed}, {name} is a Git LFS pointer of {self.size} bytes"
            raise UnreadableError(what, hint=LFS_HINT)
        missing = end - max(offset, self.size)
        raise UnreadableError(f"{needed}, {name} has {self.size}: {missing} are missing")

    def refuse_changed(self) -> None:
        """Refuse bytes of a file that another program has written to since it was mapped.

        Of a file that is cut the system takes the bytes away, and whoever looks at them is ended.
        A file that was replaced keeps its bytes for as long as it is mapped.
        """
        if self._seen is None or self.path is None or not self.size:
            return  # of an empty file nothing is held, and another may have its number
        try:
            now = identity(os.stat(self.path))
        except OSError:  # removed: here it is there still
            return
        # A time of change alone may be that of other rights, or of another name.
        if now[:2] == self._seen[:2] and now[2:4] != self._seen[2:4]:
            then = f"{self._seen[2]} bytes then, {now[2]} now"
            raise UnreadableError(
                f"was changed after it was read: {then}",
                Where(os.fspath(self.path)),
                "read it again",
            )

    def release(self) -> None:
        """Drop the pages of a mapped file from memory; they are read again when used."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def begins_with(self, piece: NDArray[np.uint8]) -> bool:
        """Whether bytes are the first of these, in the same memory."""
        return (
            0 < len(piece) <= len(self.data)
            and piece.__array_interface__["data"][0] == self.data.__array_interface__["data"][0]
        )

    def view(self, offset: int, size: int) -> NDArray[np.uint8]:
        """A range of the bytes, without a copy."""
        self.check(offset, size)
        return self.data[offset : offset + size]

    # Copies: by reference where a file is still what was mapped, else with all bytes.

    @property
    def digest(self) -> bytes:
        """A digest of the bytes."""
        if self._digest is None:
            self._digest = digest_of(self.data)
        return self._digest

    def __copy__(self) -> Weights:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Weights:
        return self  # nobody changes them

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        self.refuse_changed()
        if self.identity is not None and self.path is not None:
            path = os.path.abspath(self.path)
            with suppress(OSError):
                if identity(os.stat(path)) == self.identity:
                    return _mapped_again, (path, self.size, self.identity, self.digest)
        data = pickle.PickleBuffer(self.data.data) if int(protocol) >= 5 else self.data.tobytes()
        return Weights, (data, None if self.path is None else os.fspath(self.path))


#: The weights of this process that are mapped.
_mapped: WeakSet[Weights] = WeakSet()


def note_longer(before: os.stat_result, after: os.stat_result) -> None:
    """Note that a file has new bytes behind its end; those that were mapped are as they were."""
    for weights in list(_mapped):
        if weights._seen == identity(before):
            weights._seen = identity(after)


def _mapped_again(path: str, size: int, known: tuple[int, ...], digest: bytes) -> Weights:
    """The weights of a pickled model, which refers to their file."""
    weights = Weights.map(path)
    # The same file on the same machine need not be read whole.
    if weights.identity != known and (weights.size, weights.digest) != (size, digest):
        raise UnreadableError(
            "is not what it was when the model that refers to it was pickled: it had "
            f"{size} bytes with the digest {digest.hex()[:12]}, now {weights.size} with "
            f"{weights.digest.hex()[:12]}",
            Where(path),
            "pickle the model again",
        )
    return weights


def sample_of(content: Buffer) -> bytes:
    """Some of the bytes, by which most are told from others at once; of few bytes all."""
    piece = np.frombuffer(content, np.uint8)
    if len(piece) < WHOLE:
        return piece.tobytes()
    starts = [(len(piece) - _SAMPLE) * number // (_PLACES - 1) for number in range(_PLACES)]
    return b"".join([piece[start : start + _SAMPLE].tobytes() for start in starts])


def same_bytes(one: Buffer, other: Buffer) -> bool:
    """Whether all bytes are equal; of mapped files not more than a block is in memory."""
    left, right = np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)
    if len(left) != len(right):
        return False
    if len(left) <= _LARGE:
        return left.tobytes() == right.tobytes()
    return all(map(np.array_equal, blocks(left), blocks(right)))


def digest_of(content: Buffer) -> bytes:
    """What tells bytes from any others; of a mapped file not more than a block is in memory."""
    import hashlib  # reading does without

    digest = hashlib.blake2b(digest_size=20)
    for block in blocks(np.frombuffer(content, np.uint8)):
        digest.update(block.data)
    return digest.digest()


def blocks(flat: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The parts of an array in order, for whoever goes through it once.

    Those of a mapped file are let go of, so that not more than a part is in memory.
    """
    for start in range(0, len(flat), _BLOCK):
        block = flat[start : start + _BLOCK]
        yield block
        if block.nbytes >= _LARGE:
            let_go(block)


def parts(shape: Sequence[int]) -> Iterator[tuple[int | slice, ...]]:
    """Indices of the parts of an array in order, together all of it; none is larger than a block.

    Unlike ``blocks``, for arrays that lie in any order, and several of one shape side by side.
    """
    axis, size = 0, prod(shape[1:])
    while size > _BLOCK:
        axis += 1
        size = prod(shape[axis + 1 :])
    if not shape:
        yield ()
        return
    step = max(1, _BLOCK // max(1, size))
    for outer in itertools.product(*map(range, shape[:axis])):
        for start in range(0, shape[axis], step):
            yield *outer, slice(start, start + step)


def map_of(piece: NDArray[Any]) -> mmap.mmap | None:
    """The mapped file that bytes lie in, where nobody can have written; else None."""
    base: Any = piece
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return None
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None


def let_go(piece: NDArray[Any]) -> None:
    """Drop the pages of a mapped file that bytes lie in; nothing, if they lie elsewhere.

    What is looked at again is read again; so only where nobody can have written.
    """
    mapped = map_of(piece)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def identity(status: os.stat_result) -> tuple[int, ...]:
    """A key that tells an unchanged file from any other."""
    # Who keeps the time of writing, as rsync does, cannot keep that of the change.
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )  # fmt: skip


def open_regular(path: Path) -> int:
    """Open an ordinary file for reading, and nothing that could block or never end."""
    where = Where(os.fspath(path))
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise UnreadableError("is not an ordinary file", where)
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise UnreadableError("no such file", where) from None
        raise UnreadableError(f"cannot be opened: {error.strerror}", where) from None
    except ValueError as error:  # a NUL in the name
        raise UnreadableError(f"cannot be opened: {error}", where) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadableError("is not an ordinary file", where)
    return descriptor
