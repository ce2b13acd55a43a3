"""Arrays too large for the machine, refused before they are asked for.

Where the system promises memory that it does not have, asking for it ends the process.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from math import prod

import numpy as np

from ..schemas import Array, ElementType, Tensor
from .base import Op
from .elementwise import Broadcasting, Unary
from .value_bounds import CARRIED

#: Outputs of so many elements fit everywhere.
_SMALL = 1 << 20


@cache
def memory() -> int:
    """Bytes of memory that the machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return 1 << 36


def require(nbytes: int) -> None:
    """Refuse what the machine has not the memory for."""
    if nbytes > memory():
        raise MemoryError(f"{nbytes} bytes are needed, the machine has {memory()}")


@contextmanager
def without_collection() -> Iterator[None]:
    """Where very many objects are made and all are kept: looking for rings costs half the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def run_within_memory(op: Op, *arrays: Array) -> tuple[Array, ...]:
    """``run``, after a look at how large the outputs will be."""
    if not isinstance(op, (Unary, Broadcasting)) or prod(a.size for a in arrays) > _SMALL:
        require(_outputs(op, arrays))
    return op.run(*arrays)


def _outputs(op: Op, arrays: Sequence[Array]) -> int:
    """Bytes that the outputs take; 0 where that is not known beforehand."""
    try:
        inputs = [
            Tensor(ElementType.of(a.dtype), a.shape, a if a.size <= CARRIED else None)
            for a in arrays
        ]
        with np.errstate(all="ignore"):
            outputs = op.infer(*inputs)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return 0  # the kernel says it, or takes it: nf4 is held as f32, u1 as u8
    return sum(
        prod(out.shape.static) * out.type.dtype.itemsize
        for out in outputs
        if out.shape.is_static and not out.type.is_dynamic
    )
