"""Kernels for arrays of whatever shape: small steps that depend on values, done without ado.

Each is tried before the definition of its operation, and gives what that gives, or None where
arrays are not of the plain kind that it knows: of plain types, in range, and small enough that
nobody need ask for memory. The caller has told NumPy to say nothing of infinities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ....layers.base import Kernel, Op
from ....layers.budget import budget
from ....layers.sort import first_few
from ....schemas import Array, ElementType
from .blocks import UFUNCS

#: What an operation gives; None: the definition has to tell.
Quick: TypeAlias = "Callable[..., tuple[Array, ...] | None]"

#: Types in which NumPy computes as the definitions do, each with itself alone.
PLAIN = tuple(map(np.dtype, (np.float32, np.int32, np.int64)))
_NUMBERS = (ElementType.F32, ElementType.I32, ElementType.I64)
#: The plain types, and truth values: types that are moved and compared.
MOVED = (*PLAIN, np.dtype(np.bool_))
#: So many elements fit everywhere, unless someone has said how many bytes there are.
LITTLE = 1 << 17
#: Every type of whole numbers has numbers below this.
FAR = 1 << 31


def fits(size: float) -> bool:
    """Whether nobody need be asked for memory for so many elements."""
    return size <= LITTLE and budget().max_memory is None


def _shape(op: Any) -> Quick:
    kind = op.kind().dtype
    return lambda data: (np.array(data.shape, kind),)


def _reshape(op: Any) -> Quick:
    keeps = op.special_zero

    def run(data: Array, shape: Array) -> tuple[Array, ...] | None:
        pattern = shape.tolist()
        if not pattern or min(pattern) < -1:
            return None
        if 0 in pattern:
            if not keeps or 0 in pattern[data.ndim :]:
                return None
            pattern = [size or data.shape[place] for place, size in enumerate(pattern)]
        if not data.size and -1 in pattern and 0 in pattern:
            return None  # what is left may be any number
        try:
            return (data.reshape(pattern),)
        except ValueError:
            return None

    return run


def _split(op: Any) -> Quick:
    """Equal pieces."""
    count = op.num_splits

    def run(data: Array, axis: Array) -> tuple[Array, ...] | None:
        place = int(axis)
        if not -data.ndim <= place < data.ndim or data.shape[place] % count:
            return None
        return _cut(data, place, [data.shape[place] // count] * count)

    return run


def _varied_split(op: Any) -> Quick:
    """Pieces of such lengths."""

    def run(data: Array, axis: Array, lengths: Array) -> tuple[Array, ...] | None:
        place, sizes = int(axis.reshape(())), lengths.tolist()
        if not -data.ndim <= place < data.ndim or min(sizes, default=-1) < 0:
            return None
        if sum(sizes) != data.shape[place]:
            return None
        return _cut(data, place, sizes)

    return run


def _cut(data: Array, axis: int, sizes: Sequence[int]) -> tuple[Array, ...]:
    """Pieces of such lengths along an axis, which they fill."""
    lead, ends = (slice(None),) * (axis % data.ndim), [0, *accumulate(sizes)]
    return tuple(data[(*lead, slice(*run))] for run in pairwise(ends))


def _concatenated(op: Any) -> Quick:
    def run(*arrays: Array) -> tuple[Array, ...] | None:
        kind, rank = arrays[0].dtype, arrays[0].ndim
        if any(array.dtype is not kind or array.ndim != rank for array in arrays):
            return None
        if not -rank <= op.axis < rank or not fits(sum(array.size for array in arrays)):
            return None
        try:
            return (np.concatenate(arrays, op.axis),)
        except ValueError:
            return None  # of shapes that do not go together

    return run


def _sliced(op: Any) -> Quick:
    """Neighbours along one axis."""

    def run(
        data: Array, start: Array, stop: Array, step: Array, axes: Array | None = None
    ) -> tuple[Array, ...] | None:
        if not start.size == stop.size == step.size == 1 or step.item() != 1:
            return None
        place = 0 if axes is None else int(axes.item()) if axes.size == 1 else data.ndim
        if not -data.ndim <= place < data.ndim:
            return None
        lead = (slice(None),) * (place % data.ndim)
        return (data[(*lead, slice(start.item(), stop.item()))],)

    return run


def _scattered(op: Any) -> Quick:
    """No elements at all, what takes the place of others, or is added to rows, each once."""
    reduction = getattr(op, "reduction", "none")
    adds = reduction == "sum" and op.use_init_val

    def run(data: Array, indices: Array, updates: Array, axis: Array) -> tuple[Array, ...] | None:
        place = int(axis.reshape(()))
        if indices.shape != updates.shape or not -data.ndim <= place < data.ndim:
            return None
        if indices.ndim != data.ndim:
            return None
        if not indices.size:
            sizes = list(zip(indices.shape, data.shape, strict=True))
            del sizes[place]
            return (data,) if all(count <= size for count, size in sizes) else None
        if reduction == "none":
            known = data.dtype in PLAIN and updates.dtype is data.dtype and indices.dtype in _WHOLE
            if not known or not data.size or not fits(data.size):
                return None  # of nothing the definition does not look at the indices
            replaced: tuple[Array, ...] = op.run(data, indices, updates, axis)
            return replaced
        if not adds or data.ndim != 2 or place % 2 or indices.shape[1] != data.shape[1]:
            return None
        if data.dtype != np.float32 or updates.dtype != np.float32 or not fits(data.size):
            return None
        rows = indices[:, 0]
        if rows[0] < 0 or rows[-1] >= len(data) or (rows[1:] <= rows[:-1]).any():
            return None
        if (indices != rows[:, None]).any():
            return None
        found = data.copy()
        found[rows] += updates
        return (found,)

    return run


def _changed(op: Any) -> Quick:
    """Nothing, of which each number by itself would be changed."""

    def run(data: Array, *others: Array) -> tuple[Array, ...] | None:
        plain = data.dtype == np.float32 and all(other.size == 1 for other in others)
        return (data,) if plain and not data.size else None

    return run


def _unsqueeze(op: Any) -> Quick:
    def run(data: Array, axes: Array) -> tuple[Array, ...] | None:
        if axes.size != 1:
            return None
        place, rank = int(axes.reshape(())), data.ndim + 1
        if not -rank <= place < rank:
            return None
        place %= rank
        return (data.reshape(*data.shape[:place], 1, *data.shape[place:]),)

    return run


def _squeeze(op: Any) -> Quick:
    def run(data: Array, axes: Array | None = None) -> tuple[Array, ...] | None:
        if axes is None or axes.size != 1:
            return None
        place, rank = int(axes.reshape(())), data.ndim
        if not -rank <= place < rank or data.shape[place] != 1:
            return None
        place %= rank
        return (data.reshape(data.shape[:place] + data.shape[place + 1 :]),)

    return run


def _rows(op: Any) -> Quick:
    """GatherND by one index each: slices of the first axis."""
    if op.batch_dims:
        return _never

    def run(data: Array, indices: Array) -> tuple[Array, ...] | None:
        if indices.shape[-1] != 1 or data.dtype not in MOVED or not len(data):
            return None
        if not fits(indices.size * (data.size // len(data))):
            return None
        with suppress(IndexError):
            return (data.take(indices.reshape(indices.shape[:-1]), 0),)
        return None

    return run


def _places(op: Any) -> Quick:
    """NonZero of a list."""
    kind = op.output_type.dtype

    def run(data: Array) -> tuple[Array, ...] | None:
        if data.ndim != 1 or data.dtype not in MOVED or not fits(data.size):
            return None
        return (data.nonzero()[0].reshape(1, -1).astype(kind, copy=False),)

    return run


def _best(op: Any) -> Quick:
    """TopK of a list."""
    if op.sort == "index":
        return _never
    kind, largest = op.index_element_type.dtype, op.mode == "max"

    def run(data: Array, k: Array) -> tuple[Array, ...] | None:
        if data.ndim != 1 or data.dtype not in PLAIN or not fits(data.size):
            return None
        count = int(k)
        if not 0 <= count <= len(data):
            return None
        places = first_few(data, 0, count, largest=largest)
        return data[places], places.astype(kind, copy=False)

    return run


def _slices(op: Any) -> Quick:
    if getattr(op, "batch_dims", 0):
        return _never

    def run(data: Array, indices: Array, axis: Array) -> tuple[Array, ...] | None:
        place = int(axis.reshape(()))
        if data.dtype not in MOVED or not -data.ndim <= place < data.ndim or not data.size:
            return None
        if indices.dtype.kind not in "iu":
            return None
        if not fits(indices.size * (data.size // data.shape[place])):
            return None
        with suppress(IndexError):
            return (np.asarray(data.take(indices, place)),)
        return None

    return run


def _broadcast(op: Any) -> Quick:
    """An array, repeated along axes; by the other mode its own sizes may be the larger."""
    if op.rule not in ("numpy", "bidirectional"):
        return _never
    both = op.rule == "bidirectional"

    def run(data: Array, target: Array, axes: Array | None = None) -> tuple[Array, ...] | None:
        shape: Sequence[int] = target.tolist()
        if axes is not None or min(shape, default=0) < 0 or data.ndim > len(shape):
            return None
        try:
            if both and data.ndim:
                shape = np.broadcast_shapes(data.shape, tuple(shape))
            if tuple(shape) == data.shape:
                return (data,)
            if not fits(prod(shape)):
                return None
            found = np.empty(shape, data.dtype)
            np.copyto(found, data)
        except ValueError:
            return None  # of shapes that do not go together
        return (found,)

    return run


def _convert(op: Any) -> Quick:
    kind = op.destination_type.dtype

    def run(data: Array) -> tuple[Array, ...] | None:
        # Real numbers are rounded, and may be beyond what integers hold.
        if data.dtype not in MOVED or (data.dtype.kind == "f" and kind.kind == "i"):
            return None
        return (data.astype(kind, copy=False),)

    return run if op.destination_type in (*_NUMBERS, ElementType.BOOLEAN) else _never


def _range(op: Any) -> Quick:
    """Whole numbers, so far apart."""
    given: ElementType | None = getattr(op, "output_type", None)

    def run(start: Array, stop: Array, step: Array) -> tuple[Array, ...] | None:
        kind = start.dtype if given is None else given.dtype
        if not (start.size == stop.size == step.size == 1) or kind not in _WHOLE:
            return None
        if not (start.dtype.kind == stop.dtype.kind == step.dtype.kind == "i"):
            return None
        first, last, apart = (int(array.item()) for array in (start, stop, step))
        if not apart or not -FAR < first < FAR or not -FAR < last < FAR:
            return None
        if not fits(abs(last - first) // abs(apart)):
            return None
        return (np.arange(first, last, apart, dtype=kind),)

    return run


def _select(op: Any) -> Quick:
    if op.auto_broadcast != "numpy":
        return _never

    def run(condition: Array, then: Array, other: Array) -> tuple[Array, ...] | None:
        if condition.dtype != np.bool_ or then.dtype != other.dtype or then.dtype not in MOVED:
            return None
        if not fits(condition.size * then.size * other.size):
            return None
        try:
            return (np.asarray(np.where(condition, then, other)),)
        except ValueError:
            return None  # of shapes that do not go together

    return run


def _pairs(op: Any, function: np.ufunc, kinds: tuple[np.dtype, ...]) -> Quick:
    if getattr(op, "auto_broadcast", "") != "numpy":
        return _never

    def run(one: Array, other: Array) -> tuple[Array, ...] | None:
        if one.dtype is not other.dtype or one.dtype not in kinds:
            return None
        if one.shape != other.shape and not fits(one.size * other.size):
            return None
        try:
            return (np.asarray(function(one, other)),)
        except ValueError:
            return None  # of shapes that do not go together

    return run


def _pairing(function: np.ufunc, kinds: tuple[np.dtype, ...]) -> Callable[[Any], Quick]:
    return lambda op: _pairs(op, function, kinds)


def _joined(op: Any, function: np.ufunc, kinds: tuple[np.dtype, ...]) -> Quick:
    """A list, joined to one number."""
    keep = op.keep_dims

    def run(data: Array, axes: Array) -> tuple[Array, ...] | None:
        if data.ndim != 1 or not data.size or data.dtype not in kinds or axes.ravel().any():
            return None
        if not axes.size:
            return None
        return (np.asarray(function.reduce(data, 0, data.dtype, keepdims=keep)),)

    return run


def _joining(function: np.ufunc, kinds: tuple[np.dtype, ...]) -> Callable[[Any], Quick]:
    return lambda op: _joined(op, function, kinds)


def _never(*arrays: Array) -> None:
    """The definition tells."""


_COMPARISONS = {
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "NotEqual": np.not_equal,
}
_TRUTHS = {"LogicalAnd": np.logical_and, "LogicalOr": np.logical_or}
_BITS = {
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}
#: Of whole numbers these are more than what NumPy does, and division is none of them.
_ARITHMETIC = ("Add", "Subtract", "Multiply", "Maximum", "Minimum")
_REAL, _WHOLE = PLAIN[:1], PLAIN[1:]

_MAKERS: dict[str, Callable[[Any], Quick]] = {
    **dict.fromkeys(("Gelu", "ReLU", "Sigmoid", "Swish", "Tanh"), _changed),
    "Broadcast": _broadcast,
    "Concat": _concatenated,
    "Convert": _convert,
    "Gather": _slices,
    "GatherND": _rows,
    "NonZero": _places,
    "Range": _range,
    "ReduceMax": _joining(np.maximum, PLAIN),
    "ReduceMin": _joining(np.minimum, PLAIN),
    "ReduceProd": _joining(np.multiply, _WHOLE),
    "ReduceSum": _joining(np.add, _WHOLE),
    "Reshape": _reshape,
    "ScatterElementsUpdate": _scattered,
    "Select": _select,
    "ShapeOf": _shape,
    "Slice": _sliced,
    "Split": _split,
    "Squeeze": _squeeze,
    "TopK": _best,
    "Unsqueeze": _unsqueeze,
    "VariadicSplit": _varied_split,
    "Divide": _pairing(np.divide, _REAL),
    **{name: _pairing(UFUNCS[name], PLAIN) for name in _ARITHMETIC},
    **{name: _pairing(function, MOVED) for name, function in _COMPARISONS.items()},
    **{name: _pairing(function, MOVED[-1:]) for name, function in _TRUTHS.items()},
    **{name: _pairing(function, MOVED[1:]) for name, function in _BITS.items()},
}


def quick(op: Op, general: Kernel) -> Kernel:
    """What computes an operation: without ado where that is possible, else by ``general``."""
    maker = _MAKERS.get(op.xml_type) if op.is_standard else None
    if maker is None:
        return general
    kernel = maker(op)
    if kernel is _never:
        return general

    def run(*arrays: Array) -> tuple[Array, ...]:
        found = kernel(*arrays)
        return general(*arrays) if found is None else found

    return run
