"""Weights in the order of their kernels, once for all processes of a user on a machine.

Workers that prepare the same model would each have a copy of its weights. Where that is wished,
the first puts a large array into sealed memory that nobody can change, and notes where; others
that come to the same array look there, and compare every byte before they take it for theirs.
The memory lives as long as somebody looks at it. Where the system lacks anything of this (it has
it on Linux), each keeps its own.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from weakref import finalize

import numpy as np

from ....layers.refusals import from_system, unless_refused
from ....schemas import Array

if sys.platform == "linux":
    import fcntl

#: Smaller arrays are not worth a file descriptor.
LEAST = 4 << 20
#: What is copied and compared at a time.
_PIECE = 1 << 24
#: Linux's MADV_COLLAPSE: put it into large pages now, for all who map it.
_COLLAPSE = 25
#: A large page: what is shared lies so far behind the begin of its memory, and some bytes more.
_LARGE = 2 << 20
#: Those bytes. malloc lays large arrays so, too: from there BLAS copies blocks of weights in rows
#: up to a fifth faster than from the begin of a page or a line.
_BESIDE = 16
#: So often a place is sought at which the system can use large pages.
_TRIES = 4

_wished: ContextVar[bool] = ContextVar("wished", default=False)


@contextmanager
def shared_weights() -> Iterator[None]:
    """Share what is prepared inside with other processes that prepare the same."""
    token = _wished.set(sys.platform == "linux" and hasattr(os, "memfd_create"))
    try:
        yield
    finally:
        _wished.reset(token)


def is_wished() -> bool:
    """Whether what is prepared now is to be shared."""
    return _wished.get()


def shelved(array: Array) -> Array:
    """An array of the same bytes in memory that others share; the array itself where none is."""
    if array.nbytes < LEAST or not (array.flags.c_contiguous and array.flags.writeable):
        return array
    with unless_refused():
        folder = _folder()
        if folder is not None:
            return _shared(array, folder)
    return array


def _folder() -> str | None:
    """Where notes are left, if nobody else can write there."""
    path = os.path.join(tempfile.gettempdir(), f"vinoir-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    status = os.lstat(path)
    return path if status.st_uid == os.getuid() and status.st_mode & 0o777 == 0o700 else None


def _shared(array: Array, folder: str) -> Array:
    """The array that a note leads to; with a new note where it leads nowhere."""
    data = array.reshape(-1).view(np.uint8)
    name = hashlib.blake2b(data.data, digest_size=20).hexdigest()
    path = os.path.join(folder, name)
    note = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(note, fcntl.LOCK_EX)  # who comes at the same time waits for the copy
        try:
            found = _found(os.read(note, 100), array, data)
            if found is None:
                memory = _sealed(data)
                found = _mapped(memory, array)
                os.ftruncate(note, 0)
                os.pwrite(note, f"{os.getpid()} {memory}".encode(), 0)
                finalize(found, _take_away, path, memory, os.getpid())
        finally:
            # Said, not left to closing: who was forked meanwhile has the same open file.
            fcntl.flock(note, fcntl.LOCK_UN)
    finally:
        os.close(note)
    return found


def _found(text: bytes, array: Array, data: Array) -> Array | None:
    """The memory that a note speaks of, if it is there, sealed, and the same."""
    fields = text.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    try:
        memory = os.open(f"/proc/{int(fields[0])}/fd/{int(fields[1])}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        from_system(error)
        return None  # whoever had it is gone
    try:
        if os.fstat(memory).st_size != _extent(data.size) + _LARGE:
            return None
        if fcntl.fcntl(memory, fcntl.F_GET_SEALS) & _seals() != _seals():
            return None
        found = _mapped(memory, array)
    except OSError as error:
        from_system(error)
        return None  # no such memory at all
    finally:
        os.close(memory)
    pieces = range(0, data.size, _PIECE)
    theirs = found.reshape(-1).view(np.uint8)
    same = all(np.array_equal(theirs[at : at + _PIECE], data[at : at + _PIECE]) for at in pieces)
    return found if same else None


def _sealed(data: Array) -> int:
    """Memory with these bytes, which nobody can change from now on."""
    memory = os.memfd_create("vinoir", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.truncate(memory, _extent(data.size) + _LARGE)
        for at in range(0, data.size, _PIECE):
            os.pwrite(memory, data[at : at + _PIECE].data, _LARGE + _BESIDE + at)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _seals())
    except BaseException:
        os.close(memory)
        raise
    return memory


def _seals() -> int:
    return fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def _extent(size: int) -> int:
    """How much is mapped of memory for so many bytes."""
    return _LARGE + _BESIDE + size


def _mapped(memory: int, like: Array) -> Array:
    """Memory as an array like another, of which every part keeps it alive."""
    extent, offset = _extent(like.nbytes), 0
    mapped = mmap.mmap(memory, extent, access=mmap.ACCESS_READ)
    for _ in range(_TRIES):
        # Large pages hold what has the same remainder in memory as in the file. A map lies where
        # one of its size has just been, so the next one begins with the remainder of this one.
        place = np.frombuffer(mapped, np.uint8).ctypes.data % _LARGE
        if place == offset:
            break
        mapped.close()
        offset = place
        mapped = mmap.mmap(memory, extent, access=mmap.ACCESS_READ, offset=offset)
    begin = _LARGE - offset
    with unless_refused():  # in small pages it would be read more slowly
        mapped.madvise(_COLLAPSE, begin, like.nbytes // _LARGE * _LARGE)
    return np.ndarray(like.shape, like.dtype, mapped, begin + _BESIDE)


def _take_away(path: str, memory: int, owner: int) -> None:
    """Take a note away with the memory it speaks of, unless it speaks of another's by now."""
    if os.getpid() != owner:
        return
    with suppress(OSError):
        with open(path, "rb") as note:
            ours = note.read() == f"{owner} {memory}".encode()
        if ours:
            os.unlink(path)
    with suppress(OSError):
        os.close(memory)
