"""Sparse tensors, which IR has not: their dense values."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....schemas import Array, ElementType, IRError
from .tensors import Store

#: A few bytes of a file must not become gigabytes.
_MOST = 1 << 26


def dense(store: Store, sparse: Any) -> tuple[Array, ElementType]:
    """The values of a sparse tensor, with the zeros between them."""
    values, kind = store.array(sparse.values)
    indices, _ = store.array(sparse.indices)
    shape = tuple(sparse.dims)
    if any(size < 0 for size in shape) or prod(shape) > _MOST:
        raise IRError(f"sparse tensor of shape {list(shape)}; the most elements are {_MOST}")
    if values.ndim != 1 or indices.shape not in {values.shape, (len(values), len(shape))}:
        raise IRError(f"{values.shape} sparse values have indices of shape {indices.shape}")
    full = np.zeros(shape, kind.dtype)
    limits = np.array([full.size] if indices.ndim == 1 else shape, np.int64)
    if ((indices < 0) | (indices >= limits)).any():
        raise IRError(f"an index of a sparse tensor is beyond its shape {list(shape)}")
    if indices.ndim == 1:
        full.reshape(-1)[indices] = values
    else:
        full[tuple(indices.T)] = values
    return full, kind
