"""Arrays for inputs of which nothing but type and shape is known."""

from __future__ import annotations

from math import prod

import numpy as np

from ...layers.budget import PIECE, pieces, require
from ...schemas import Array, Shape, UnsupportedError, UsageError
from ..document import Layer

#: What an input may be filled with.
FILLINGS = ("random", "zeros", "ones")


def is_filling(word: str) -> bool:
    """Whether a word says how to fill an input: ``zeros``, or with sizes ``random:1,3,64,64``."""
    return word.partition(":")[0] in FILLINGS


def fill(parameter: Layer, text: str, rng: np.random.Generator) -> Array:
    """An array for an input, filled as a word says, in the sizes that follow it."""
    if parameter.op is None:
        raise UnsupportedError(f"{parameter.type} {parameter.version} is not known")
    (tensor,) = parameter.op.infer()
    word, colon, sizes = text.partition(":")
    asked = Shape.parse(sizes) if colon else Shape.UNKNOWN
    shape = filled(tensor.shape.merge(asked), parameter)
    if tensor.type.is_dynamic:
        raise UsageError(
            f'input "{parameter.name}" has no element type, an array is needed',
            hint=f"--input {parameter.name}=FILE.npy",
        )
    count = prod(shape)
    # Random numbers are made with 8 bytes each, a piece at a time.
    beside = min(8 * count, PIECE) if word == "random" else 0
    require(count * tensor.type.dtype.itemsize + beside)
    if word == "zeros":
        return np.zeros(shape, tensor.type.dtype)
    if word == "ones":
        return np.ones(shape, tensor.type.dtype)
    made = np.empty(shape, tensor.type.dtype)
    flat, end = made.reshape(-1), 2 if tensor.type == "boolean" else 10
    for some in pieces(flat.size, 8):
        count = some.stop - some.start
        flat[some] = (
            rng.standard_normal(count) if tensor.type.is_real else rng.integers(0, end, count)
        )
    return made


def filled(shape: Shape, parameter: Layer) -> tuple[int, ...]:
    """Numbers for a shape: the least that an unknown size may be, but no less than 1."""
    if shape.rank is None:
        raise UsageError(
            f'input "{parameter.name}" has no rank, an array is needed',
            hint=f"--input {parameter.name}=FILE.npy",
        )
    return tuple(size if isinstance(size, int) else max(size.low or 0, 1) for size in shape)
