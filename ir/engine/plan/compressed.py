"""Weights that are kept as levels of few bits: ``(level - zero) * scale``.

Files hold them as integers, with the layers that make numbers of them. Here those layers are read
as one thing, so that the numbers need not be made before somebody multiplies by them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

import numpy as np

from ....layers.casting import rounded_to_half
from ....schemas import Array, ElementType
from ...document import Layer
from ...execution import Halves
from ...inference import Inferred
from .grid import WHOLE

#: By layer id: what feeds each input.
Sources: TypeAlias = Mapping[int, Sequence[tuple[Layer, int] | None]]
#: Who may read levels: the type of a layer, and at which input.
READERS = frozenset({("MatMul", 1), ("Convolution", 1), ("GroupConvolution", 1), ("Gather", 0)})
#: The types in which levels are made numbers.
_REAL = (ElementType.F16, ElementType.F32)


class Beside(NamedTuple):
    """What goes with levels (groups, each, columns), wherever these lie."""

    shape: tuple[int, ...]
    #: For each group and column.
    zero: Array | None
    scale: Array


class Columns(NamedTuple):
    """A matrix (groups * each, columns) whose scales are those of groups of rows.

    Levels are (groups, each, columns), zeros and scales (groups, columns).
    """

    levels: Array
    zero: Array | None
    scale: Array

    @property
    def beside(self) -> Beside:
        """What is not the levels: who has laid these out should not keep them."""
        return Beside(self.levels.shape, self.zero, self.scale)


class Compressed:
    """Weights as a file holds them, and what is made of them once for all plans."""

    def __init__(
        self, levels: Layer, zero: Array | None, scale: Array, shape: tuple[int, ...]
    ) -> None:
        self._levels, self.zero, self.scale, self.shape = levels, zero, scale, shape
        self._expanded: ref[Array] | None = None
        #: As kernels want them, by whatever tells how.
        self.laid_out: dict[object, Any] = {}

    @property
    def inner(self) -> tuple[int, ...]:
        """The shape of the levels."""
        return self._levels.outputs[0].tensor.shape.static

    @property
    def levels(self) -> Array:
        """The levels, as int8 or uint8: a view of the file where they have 8 bits."""
        value = self._levels.value
        return value if self._middle or value.dtype == np.int8 else value.astype(np.int8)

    @property
    def _middle(self) -> int:
        """What is taken from levels to make them signed."""
        return 128 if self._levels.element_type is ElementType.U8 else 0

    @property
    def signed(self) -> Array:
        """The levels as int8, those of uint8 less 128."""
        levels = self.levels
        if levels.dtype == np.uint8:
            return (levels ^ np.uint8(128)).view(np.int8)
        return levels

    @property
    def is_symmetric(self) -> bool:
        """Whether a signed level of zero stands for zero."""
        if self.zero is None:
            return not self._middle
        return bool((self.zero == self._middle).all())

    def expanded(self) -> Array:
        """The numbers, made once for all who have them."""
        found = None if self._expanded is None else self._expanded()
        if found is None:
            found = self._numbers(self.levels, self.zero, self.scale).reshape(self.shape)
            self._expanded = ref(found)
        return found

    def chosen(self, which: Hashable, choose: Callable[[Array], Array]) -> Compressed:
        """Some of the levels, or all of them in another order; the same for all plans."""
        found: Compressed | None = self.laid_out.get(("chosen", which))
        if found is None:
            found = self.laid_out["chosen", which] = _Chosen(self, choose)
        return found

    def rows(self, levels: Array, places: Array) -> Array:
        """Some rows of the numbers, of levels that the caller holds."""
        zero, scale = (self._at(array, places) for array in (self.zero, self.scale))
        assert scale is not None
        made = self._numbers(levels[places], zero, scale)
        return made.reshape((*places.shape, *self.shape[1:]))

    def _at(self, array: Array | None, places: Array) -> Array | None:
        if array is None or array.ndim < len(self.inner):
            return array
        # Of one place there is no axis of places.
        return array[0] if len(array) == 1 else array[places]

    @staticmethod
    def _numbers(levels: Array, zero: Array | None, scale: Array) -> Array:
        found = np.asarray(levels.astype(np.float32))  # of a single one NumPy makes a number
        if zero is not None:
            np.subtract(found, zero, out=found)
        return np.multiply(found, scale, out=found)

    def has_columns(self, *, transposed: bool) -> bool:
        """Whether scales are those of columns, or of groups of rows in them."""
        return self._sides(transposed=transposed) is not None

    def _sides(self, *, transposed: bool) -> tuple[tuple[int, ...], Array, Array] | None:
        """The levels' shape by groups, and zeros and scales by group and column."""
        if len(self.shape) != 2 or len(self.inner) not in (2, 3):
            return None
        sizes = self.inner
        if len(sizes) == 2:
            sizes = (sizes[0], 1, sizes[1]) if transposed else (1, *sizes)
        along = 2 if transposed else 1
        zero = np.zeros((), np.float32) if self.zero is None else self.zero
        zeros, scales = (_by_group(x, self.inner, sizes, along) for x in (zero, self.scale))
        outer = (sizes[0], sizes[1] * sizes[2]) if transposed else (sizes[0] * sizes[1], sizes[2])
        if zeros is None or scales is None or outer != self.shape:
            return None
        return sizes, zeros, scales

    def columns(self, *, transposed: bool) -> Columns | None:
        """The matrix to multiply by, its levels as int8; None where scales are not by groups."""
        found = self._sides(transposed=transposed)
        if found is None:
            return None
        sizes, zeros, scales = found
        if self._middle:
            zeros = zeros - np.float32(self._middle)
        levels = self.signed.reshape(sizes)
        if transposed:
            levels, zeros, scales = levels.transpose(1, 2, 0), zeros.T, scales.T
        scales = np.ascontiguousarray(scales, np.float32)
        if not zeros.any():
            return Columns(levels, None, scales)
        without = _without_zeros(levels, zeros)
        if without is not None:
            return Columns(without, None, scales)
        return Columns(levels, np.ascontiguousarray(zeros), scales)


class Rounded(Compressed):
    """Weights that a FakeQuantize rounds: levels less that of zero, which is a whole one."""

    def __init__(self, layer: Layer, data: Layer, limits: Sequence[Array], gain: Array) -> None:
        self._rounding, self._limits = layer, limits
        super().__init__(data, None, gain, data.outputs[0].tensor.shape.static)

    @property
    def _middle(self) -> int:
        return 0

    @property
    def levels(self) -> Array:
        """The levels, found again among the numbers."""
        return np.rint(self.expanded() / self.scale).astype(np.int8)

    def expanded(self) -> Array:
        """The numbers that the operation gives."""
        found = None if self._expanded is None else self._expanded()
        if found is None:
            op = self._rounding.op
            assert op is not None
            (found,) = op.run(self._levels.value.astype(np.float32, copy=False), *self._limits)
            self._expanded = ref(found)
        return found


class _Chosen(Compressed):
    """Levels chosen of others, with their scales: those of the first axis, which stays."""

    def __init__(self, source: Compressed, choose: Callable[[Array], Array]) -> None:
        self._source, self._choose = source, choose
        shape = choose(np.broadcast_to(np.int8(0), source.shape)).shape
        super().__init__(source._levels, source.zero, source.scale, shape)

    @property
    def inner(self) -> tuple[int, ...]:
        return self.shape

    @property
    def levels(self) -> Array:
        return self._choose(self._source.levels.reshape(self._source.shape))

    @property
    def signed(self) -> Array:
        return self._choose(self._source.signed.reshape(self._source.shape))

    def expanded(self) -> Array:
        return self._choose(self._source.expanded())


def _by_group(
    array: Array, inner: tuple[int, ...], sizes: tuple[int, ...], along: int
) -> Array | None:
    """Numbers beside levels as one for each group and column; None where they vary in groups."""
    array = array.reshape((1,) * (len(inner) - array.ndim) + array.shape)
    if len(inner) == 2:
        array = array[:, None] if along == 2 else array[None]
    if array.shape[along] != 1:
        return None
    wanted = tuple(1 if axis == along else size for axis, size in enumerate(sizes))
    return np.broadcast_to(array, wanted).squeeze(along)


def _without_zeros(levels: Array, zeros: Array) -> Array | None:
    """Levels less their zeros, where these are whole and what comes out has 8 bits, too."""
    if not (np.abs(zeros) <= 255).all() or (zeros != np.rint(zeros)).any():
        return None
    if levels.min() - zeros.max() < -128 or levels.max() - zeros.min() > 127:
        return None
    # What wraps around comes back.
    return levels - zeros.astype(np.int16).astype(np.int8)[:, None]


def compressed_weights(
    order: Sequence[Layer],
    sources: Sources,
    fixed: Collection[int],
    halved: Halves,
    inferred: Inferred,
) -> dict[int, Compressed]:
    """The layers whose constant output can stay levels, since none but ``READERS`` read it.

    What is made of levels that are rounded to half precision on the way is not; those who round
    it when they read it have numbers of their own, and ShapeOf wants none.
    """
    found: dict[int, Compressed] = {}
    refused: set[int] = set()
    for layer in order:
        for place, source in enumerate(sources[layer.id]):
            if source is None or source[0].id not in fixed:
                continue
            if layer.type == "ShapeOf" or (layer.id, place) in halved.inputs:
                continue
            end = source[0]
            if layer.id in fixed or (layer.type, place) not in READERS:
                refused.add(end.id)
            elif end.id not in found:
                shape = inferred.of(end)[0].shape
                chain = _chain(end, sources, halved, shape.static) if shape.is_static else None
                if chain is not None:
                    found[end.id] = chain
    return {place: one for place, one in found.items() if place not in refused}


def _chain(
    layer: Layer, sources: Sources, halved: Halves, shape: tuple[int, ...]
) -> Compressed | None:
    """``Multiply(Subtract(Convert(levels), zero), scale)``, reshaped or converted after."""
    if layer.type == "FakeQuantize":
        return _rounded(layer, sources, halved)
    while layer.type in ("Convert", "Reshape"):
        source = sources[layer.id][0]
        if source is None or source[0].is_constant or not _is_plain(layer):
            return None
        if (layer.id, 0) in halved.inputs:
            return None
        layer = source[0]
    pair = None if layer.id in halved.layers else _split(layer, "Multiply", sources, halved)
    if pair is None:
        return None
    layer, scale = pair
    zero = None
    if layer.type == "Subtract":
        pair = _split(layer, "Subtract", sources, halved)
        if pair is None:
            return None
        layer, zero = pair
    if layer.type != "Convert" or not _is_plain(layer):
        return None
    (source,) = sources[layer.id]
    if source is None or not source[0].is_constant or not _is_integer(source[0]):
        return None
    levels = source[0]
    sizes = levels.outputs[0].tensor.shape.static
    with_others = [sizes, scale.shape, *([] if zero is None else [zero.shape])]
    if not sizes or 0 in sizes or np.broadcast_shapes(*with_others) != sizes:
        return None
    return Compressed(levels, zero, scale, shape)


def _rounded(layer: Layer, sources: Sources, halved: Halves) -> Rounded | None:
    """A FakeQuantize of a constant, to at most 256 levels of which one is zero."""
    op: Any = layer.op
    if not _is_plain(layer) or op.levels > 256 or op.auto_broadcast != "numpy":
        return None
    feeders = [source[0] for source in sources[layer.id] if source is not None]
    if len(feeders) != 5 or any(feeder.id in halved.layers for feeder in feeders):
        return None
    given = [_held(feeder, sources) for feeder in feeders]
    data, *limits = given
    if data is None or not data.outputs[0].tensor.shape.is_static:
        return None
    arrays = [limit.value.astype(np.float32) for limit in limits if limit is not None]
    if len(arrays) != 4:
        return None
    low, high, first, last = arrays
    with np.errstate(all="ignore"):
        gain = np.asarray((last - first) / np.float32(op.levels - 1))
        zero = -first / gain
        whole = np.rint(zero)
        ends = np.stack(np.broadcast_arrays(-whole, op.levels - 1 - whole))
        fits = (abs(zero - whole) < WHOLE).all() and (low < high).all() and (gain > 0).all()
    if not fits or ends.min() < -128 or ends.max() > 127:
        return None
    sizes = data.outputs[0].tensor.shape.static
    if not sizes or 0 in sizes or np.broadcast_shapes(sizes, *(x.shape for x in arrays)) != sizes:
        return None
    return Rounded(layer, data, arrays, gain)


def _split(
    layer: Layer, kind: str, sources: Sources, halved: Halves
) -> tuple[Layer, Array] | None:
    """The layer and the numbers that an operation joins."""
    if layer.type != kind or not _is_plain(layer):
        return None
    if getattr(layer.op, "auto_broadcast", "") != "numpy":
        return None
    pairs = [(0, 1), (1, 0)] if kind == "Multiply" else [(0, 1)]
    for first, second in pairs:
        data, other = sources[layer.id][first], sources[layer.id][second]
        if data is None or other is None or data[0].is_constant:
            continue
        numbers = _numbers(other[0], sources, halved)
        if numbers is not None:
            return data[0], numbers
    return None


def _numbers(layer: Layer, sources: Sources, halved: Halves) -> Array | None:
    """A constant, or one that is converted, as float32."""
    held = _held(layer, sources)
    if held is None:
        return None
    numbers = held.value.astype(np.float32)
    numbers = rounded_to_half(numbers) if layer.id in halved.layers else numbers
    # By what is endless sums are not multiplied: their parts may be no numbers.
    return numbers if np.isfinite(numbers).all() else None


def _held(layer: Layer, sources: Sources) -> Layer | None:
    """The constant that a layer is or converts, of real numbers or integers of few bits."""
    if layer.type == "Convert" and _is_plain(layer):
        (source,) = sources[layer.id]
        if source is None:
            return None
        layer = source[0]
    known = layer.is_constant and (_is_integer(layer) or layer.element_type in _REAL)
    return layer if known else None


def _is_integer(layer: Layer) -> bool:
    """Whether a constant is of integers of few bits."""
    kind = layer.element_type
    return kind.is_integral and 4 <= kind.bits <= 8


def _is_plain(layer: Layer) -> bool:
    """Whether a layer is what its name says, and gives numbers that are computed in float32."""
    op = layer.op
    return op is not None and op.is_standard and layer.outputs[0].tensor.type in _REAL


def by_digits(packed: Compressed, rows: int, columns: int, integers: float) -> bool:
    """Whether so many rows are multiplied sooner as integers than by numbers made of levels."""
    taken = prod(packed.shape) // max(columns * _groups(packed), 1)
    if not integers or taken > LONGEST:
        return False
    return _digits(packed, rows, columns, integers) < rows + EXPANDED


def as_quick(
    packed: Compressed, rows: int, columns: int, integers: float, patience: float = 1.0
) -> bool:
    """Whether levels are multiplied no later than numbers that are there and come from memory.

    That may take some times as long. Levels take a quarter of the memory, but more calls; all of
    it is told in products of a row.
    """
    numbers, groups = prod(packed.shape), _groups(packed)
    scaled = rows * SCALED * columns / numbers
    taken = rows + scaled + MADE + (BEGUN + GROUP * groups) / numbers
    if integers:
        digits = _digits(packed, rows, columns, integers)
        taken = min(taken, digits + (CALLS + GROUP_CALLS * groups) / numbers)
    return FETCHED / 4 + taken <= patience * (FETCHED + rows)


def _groups(packed: Compressed) -> int:
    """How many groups of rows with scales of their own a column has."""
    return packed.inner[-2] if len(packed.inner) == 3 else 1


def _digits(packed: Compressed, rows: int, columns: int, integers: float) -> float:
    """As how many rows so many take for each weight, if integers are multiplied.

    An integer product takes four of int8, for each group of rows one of its sums, and digits of
    each number.
    """
    joined = JOINED * _groups(packed) * columns / prod(packed.shape)
    return rows * (4 / integers + joined + SPLIT / columns)


#: Sums of so many products of bytes are held by 32 bits, whatever these are.
LONGEST = ((1 << 31) - 1) >> 14
#: To make a number of a level takes as long as to multiply it by so many rows, to scale and add up
#: the sums of a group of products as long as so many of these, and to make digits of a number.
EXPANDED, JOINED, SPLIT = 12, 130, 120
#: To scale a sum and bring it to where it belongs takes as long as so many products.
SCALED = 100
#: To fetch a number from memory takes as long as to multiply it by so many rows; to make it in
#: cache, less what else it would wait for. The calls for levels take as long as so many products,
#: and for each group as long as so many more; those for digits of a few rows far less.
FETCHED, MADE, BEGUN, GROUP = 9, 5, 7_000_000, 270_000
CALLS, GROUP_CALLS = 2_000_000, 100_000


__all__ = ["Beside", "Columns", "Compressed", "as_quick", "by_digits", "compressed_weights"]
