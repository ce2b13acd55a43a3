"""Operations run within the budget that is open."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod

import numpy as np

from ..schemas import Array, ElementType, Tensor
from .base import Op
from .budget import require
from .elementwise import Broadcasting, Unary
from .value_bounds import CARRIED, nothing

#: Outputs of so many elements fit everywhere.
_SMALL = 1 << 20


def give_back() -> None:
    """Hand what was let go of back to the system, which the C library may keep for later."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    """What does so in glibc; others do it by themselves, or cannot be asked."""
    if sys.platform != "linux":
        return None
    return getattr(ctypes.PyDLL(None), "malloc_trim", None)


@contextmanager
def without_collection() -> Iterator[None]:
    """Where very many objects are made and all are kept: looking for rings costs half the time."""
    collects = gc.isenabled()
    try:
        gc.disable()  # here: an interrupt may come right after it
        yield
    finally:
        if collects:
            gc.enable()


def run_within_memory(op: Op, *arrays: Array) -> tuple[Array, ...]:
    """``run``, after a look at how much it will take; what is empty is given without it."""
    if isinstance(op, (Unary, Broadcasting)) and prod(a.size for a in arrays) <= _SMALL:
        return op.run(*arrays)
    outputs = _outputs(op, arrays)
    empty = None if op.rows_vary else nothing(outputs)
    if empty is not None:
        return empty
    require(nbytes(outputs) * (1 + op.rooms))
    return op.run(*arrays)


def _outputs(op: Op, arrays: Sequence[Array]) -> tuple[Tensor, ...]:
    """What comes out; nothing where that is not known beforehand."""
    try:
        inputs = [
            Tensor(ElementType.of(a.dtype), a.shape, a if a.size <= CARRIED else None)
            for a in arrays
        ]
        with np.errstate(all="ignore"):
            return op.infer(*inputs)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return ()  # the kernel says it, or takes it: nf4 is held as f32, u1 as u8


def nbytes(tensors: Sequence[Tensor]) -> int:
    """Bytes of tensors, as far as their types and shapes are known."""
    return sum(
        prod(tensor.shape.static) * tensor.type.dtype.itemsize
        for tensor in tensors
        if tensor.shape.is_static and not tensor.type.is_dynamic
    )
