"""A sample of an old layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from vinoir.schemas import Array

RNG = np.random.default_rng(7)


def draw(*dims: int) -> Array:
    return RNG.normal(0, 1, dims).astype(np.float32)


class Case(NamedTuple):
    """One layer: sizes of its inputs (arrays are constants), attributes, blobs, outputs."""

    type: str
    inputs: Sequence[Any]
    data: dict[str, Any]
    blobs: dict[str, Any]
    outputs: Sequence[Sequence[int]]
    #: What the outputs are of the inputs (constants among them).
    expected: Callable[..., Any]
    version: int = 6
    precision: str = ""
    more: dict[str, Any] = {}  # noqa: RUF012  # nobody writes to it


#: Sizes of an image.
X4 = (2, 3, 4, 5)
