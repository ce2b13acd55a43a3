"""Smaller sizes and numbers from a seed, put in place of those of a model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from ...schemas import ANY, Array, InternalError, IRError, Shape
from ..document import Model
from ..surgery import reshape

#: Constants up to this many elements are left alone: shapes, axes, scales.
SMALL = 16


def resized(
    model: Model,
    samples: list[list[Array]],
    size: int,
    new: int,
    only: tuple[int, int] | None,
) -> tuple[Model, list[list[Array]]] | None:
    """A model in which a size is smaller: of one input's axis, or wherever it stands.

    None where shapes do not go together then.
    """
    made = deepcopy(model)
    given = [list(sample) for sample in samples]
    for place, parameter in enumerate(made.parameters):
        dims = parameter.outputs[0].dims
        axes = [
            axis
            for axis, held in enumerate(dims)
            if held == size and only in (None, (place, axis))
        ]
        if not axes:
            continue
        smaller = [new if axis in axes else held for axis, held in enumerate(dims)]
        spelt = Shape(ANY if s < 0 else s for s in smaller).spelling
        parameter.data = {**parameter.data, "shape": spelt}
        for sample in given:
            sample[place] = _cut(sample[place], axes, new)
    for layer in made.constants if only is None else []:
        if not layer.has_value:
            continue
        array, kind = layer.value, layer.element_type
        axes = [axis for axis, held in enumerate(array.shape) if held == size]
        if axes:
            layer.set_value(_cut(array, axes, new).copy(), kind)
        elif _names_sizes(array) and (array == size).any():
            layer.set_value(np.where(array == size, new, array).astype(array.dtype), kind)
    try:
        reshape(made)
    except (IRError, InternalError):
        return None
    return made, given


def _names_sizes(array: Array) -> bool:
    """Whether a constant may be a shape."""
    return array.dtype.kind in "iu" and array.ndim == 1 and array.size <= SMALL


def _cut(array: Array, axes: Sequence[int], size: int) -> Array:
    """The first elements along axes."""
    where = tuple(slice(size) if axis in axes else slice(None) for axis in range(array.ndim))
    return np.ascontiguousarray(array[where]).reshape(array[where].shape)


def like(array: Array, seed: int = 0) -> tuple[str, Array | None]:
    """Random numbers of the same type, shape, mean and spread, and how to make them."""
    rng = np.random.default_rng(seed)
    if array.dtype.kind in "iu" and array.size:
        low, high = int(array.min()), int(array.max())
        kind = array.dtype.name
        text = f'default_rng({seed}).integers({low}, {high}, {array.shape}, "{kind}", True)'
        return text, rng.integers(low, high, array.shape, array.dtype, endpoint=True)
    if array.dtype.kind != "f" or not array.size:
        return "", None
    with np.errstate(all="ignore"):  # infinity and NaN are values like others
        held = array.astype(np.float64)
        mean, spread = float(f"{held.mean():.3g}"), float(f"{held.std():.3g}")
        if not np.isfinite([mean, spread]).all():
            return "", None
        text = f"{mean:g} + {spread:g} * default_rng({seed}).standard_normal({array.shape})"
        return text, (mean + spread * rng.standard_normal(array.shape)).astype(array.dtype)
