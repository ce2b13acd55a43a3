"""What kernels share: scratch memory, blocks of rows, padded sources, epilogues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....layers.base import Op
from ....layers.budget import budget, require
from ....schemas import Array
from ..memory import private, root_of
from ..plan import CONVOLUTIONS, Joined, Node, Value
from ..workers import Helpers, Part, Step, Threads, integer_products, spans
from ..workers import sequence as sequence
from .activations import activation, leaked, sloped
from .beside_levels import beside, joined
from .calls import call, called
from .lines import LINE
from .quantizing import quantized, rounding
from .repeats import repeats as repetitions
from .rooms import NEAR, NEAR_FOR_THREADS, Rooms
from .tabled import looked_up

T = TypeVar("T")

#: Scratch memory grows by so many bytes.
SCRATCH = 8 << 20
#: What a block's working set should not pass, so that it stays in a core's own cache.
CACHE = 1 << 19


#: Products of integers read less than so many numbers beyond what they are given.
SPARE = 16

#: Blocks that workers share are a multiple of so many, and begin at a cache line of columns.
SHARED = 4

#: Makes memory of so many bytes.
Allocate = Callable[[int], Array]


class Room:
    """Memory of one worker, handed out piece by piece and taken back as a whole."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._chunks: list[Array] = []
        #: So many numbers of each chunk have been handed out: the rest of it takes no memory yet.
        self._counted: list[int] = []
        self._chunk, self._used = 0, 0

    def reset(self) -> None:
        """All of it is free again."""
        self._chunk, self._used = 0, 0

    def take(self, part: int, *shape: int) -> Array:
        """The next piece; there is more memory where what there is does not do."""
        count = prod(shape)
        while self._chunk < len(self._chunks):
            chunk, start = self._chunks[self._chunk], self._used
            if start + count <= chunk.size - SPARE:
                self._used = start + -(-count // 16) * 16
                more = self._used - self._counted[self._chunk]
                if more > 0:
                    budget().keep(4 * more)
                    self._counted[self._chunk] += more
                return chunk[start : start + count].reshape(shape)
            self._chunk, self._used = self._chunk + 1, 0
        require(4 * count)
        self._chunks.append(self._allocate(max(4 * count, SCRATCH) + 4 * SPARE).view(np.float32))
        self._counted.append(0)
        return self.take(part, *shape)

    def take_bytes(self, part: int, *shape: int) -> Array:
        """The same for int8."""
        count = prod(shape)
        return self.take(part, -(-count // 4)).view(np.int8)[:count].reshape(shape)


class Scratch:
    """Memory that belongs to a worker for the length of one part."""

    def __init__(
        self,
        threads: int,
        shared: Allocate,
        each: Allocate = private,
        *,
        by_threads: bool = False,
    ) -> None:
        #: Whether workers are threads, who wait for each other between calls.
        self.by_threads = by_threads
        #: So many numbers are worked on at once, pass after pass.
        self.near = NEAR_FOR_THREADS if by_threads else NEAR
        #: Memory for temporaries, a copy in each process; None where each thread has its own.
        self.own = None if by_threads else Rooms()
        self._rooms = [Room(each) for _ in range(threads)]
        self._tiles: dict[tuple[object, ...], tuple[Array, Array]] = {}
        #: Memory for what one step leaves to the next.
        self.shared = Room(shared)
        #: Memory for the images that a volume is made of; kernels for images use the other.
        self.volumes = Room(shared)
        #: Rows that were made digits or halves last, for all that multiply these.
        self.digits: Any = None
        self.digits_room = Room(shared)

    def reset(self) -> None:
        """Begin the next block: all memory is free again."""
        for room in self._rooms:
            room.reset()

    def take(self, part: int, *shape: int) -> Array:
        """Memory for a part, of the thread that will run it."""
        return self._rooms[part % len(self._rooms)].take(part, *shape)

    def take_bytes(self, part: int, *shape: int) -> Array:
        """The same for int8."""
        return self._rooms[part % len(self._rooms)].take_bytes(part, *shape)

    def told(self, hire: Callable[..., Helpers]) -> Callable[..., Helpers]:
        """The same as ``hire``; threads that come where processes should do not share memory."""

        def hired(steps: Sequence[Step], size: int) -> Helpers:
            helpers = hire(steps, size)
            if self.own is not None:
                self.own.is_shared = isinstance(helpers, Threads)
            return helpers

        return hired

    def dealt(self, pieces: Sequence[T]) -> Iterator[tuple[int, T]]:
        """Pieces of work as parts, in whose order each worker gets some that are neighbours.

        Workers take parts in turn. What one made in a step it finds in its cache in the next.
        """
        workers = len(self._rooms)
        turns = -(-len(pieces) // workers)
        hands = [pieces[len(pieces) * w // workers : len(pieces) * (w + 1) // workers]
                 for w in range(workers)]  # fmt: skip
        hands.sort(key=len, reverse=True)
        dealt = [hand[turn] for turn in range(turns) for hand in hands if turn < len(hand)]
        return enumerate(dealt)

    def runs(self, lines: int, lanes: int) -> Iterator[tuple[int, tuple[int, int]]]:
        """Runs of lines as parts, so many at most, and one for each worker.

        For what gives the same, however it is cut: the fewer the calls, the sooner it is done.
        """
        return self.dealt(spans(lines, min(lanes, len(self._rooms))))

    def tile(self, row: Array, times: int) -> Array:
        """A row repeated, made once for all who ask for it."""
        if row.size and not row.strides[0]:
            # One number: whoever made an array of it, it is the same. Not -0.0 for 0.0.
            key: tuple[object, ...] = (row[:1].tobytes(), row.size * times)
        else:
            key = (row.ctypes.data if row.size else 0, row.size, row.strides[0], times)
        if key not in self._tiles:
            # The row is kept with it, so that its place names nothing else.
            self._tiles[key] = (row, np.tile(row, times))
        return self._tiles[key][1]


def even(count: int, wide: int) -> int:
    """How wide blocks of columns are, at most so much, that workers get as many of them each."""
    blocks = -(-count // wide // SHARED) * SHARED
    return max(LINE, -(-count // blocks // LINE) * LINE)


def kept(value: Value, shape: tuple[int, ...], last: bool) -> Array:
    """A value as it lies in memory, brought to a shape (in the model's order of axes)."""
    array = np.broadcast_to(value.array, shape)
    return np.moveaxis(array, 1, -1) if last else array


#: Makes the parts of an elementwise step: from a block of the output, at an index, to a target.
Follower = Callable[[Array, Any, Array], list[Part]]


def epilogue(node: Node, scratch: Scratch) -> list[Follower]:
    """For each follower of a node: what makes its parts for a block and the block's index."""
    found, library = node.table, integer_products()
    if found is not None and library is not None:
        return [lambda block, index, target: [looked_up(found, block, target, library)]]
    finite = node.integers is not None or _sums_levels(node)
    return followers(
        node.epilogue, node.outputs[0], scratch,
        premultiplied=node.premultiplied, finite=finite, sums=node.joined,
    )  # fmt: skip


def is_finite(value: Value) -> bool:
    """Whether a value is known to hold no other numbers: sums of integers, or levels, moved."""
    root, _ = root_of(value)
    node = root.producer
    if _is_rounded(value) or _is_rounded(root):
        return True
    if node is None or node.is_outside:
        return False
    return not node.epilogue and (node.integers is not None or _sums_levels(node))


def _sums_levels(node: Node) -> bool:
    """Whether a node makes weighted sums of levels, that are finite as sums of integers are."""
    if node.kind not in CONVOLUTIONS or node.prologue or not _is_rounded(node.inputs[0]):
        return False
    given = [value.constant for value in node.inputs[1:]]
    return all(array is not None and are_moderate(array) for array in given)


def _is_rounded(value: Value) -> bool:
    """Whether a value holds levels, or the numbers that these stand for."""
    node = value.producer
    if value.grid is not None or node is None or node.is_outside:
        return value.grid is not None
    op = node.epilogue[-1][0] if node.epilogue else node.op
    others = node.epilogue[-1][1][1:] if node.epilogue else node.inputs[1:]
    ends = [value.constant for value in others if value is not None]
    return op.xml_type == QUANTIZE and all(
        array is not None and are_moderate(array) for array in ends
    )


def followers(
    steps: Sequence[tuple[Op, list[Value | None]]],
    output: Value,
    scratch: Scratch,
    *,
    premultiplied: float | None = None,
    finite: bool = False,
    sums: Sequence[Joined] = (),
) -> list[Follower]:
    """The same for any steps on a value, or on twice that."""
    found: list[Follower] = []
    for op, others in steps:
        grids = [value.grid for value in others if value is not None and value.grid is not None]
        if grids:
            (value,) = (value for value in others if value is not None)
            levels = kept(value, output.shape, output.last)
            first = others[0] is None
            if sums:
                found.append(joined(levels, sums[0], scratch.own))
                sums = sums[1:]
                continue
            found.append(beside(_binary(op.xml_type), levels, grids[0], first=first))
            finite &= op.xml_type in ("Add", "Subtract")
            continue
        if op.xml_type in UFUNCS or op.xml_type == "SquaredDifference":
            given = [None if v is None else kept(v, output.shape, output.last) for v in others]
        elif op.xml_type == "PReLU":
            given = [None, slopes(others[1], output)]
        elif op.xml_type == QUANTIZE:
            given = [None, *limits(others[1:], output)]
        else:
            # Parameters of activations: numbers.
            given = [None if v is None else v.constant for v in others]
        fixed, first = tileable(others, output), not found
        found.append(
            follower(
                op,
                given,
                scratch,
                fixed=fixed,
                premultiplied=premultiplied if first else None,
                finite=finite,
            )
        )
        finite &= op.xml_type in FINITE
    return found


def _binary(kind: str) -> Callable[..., Any]:
    """The function of an elementwise operation of two arrays."""
    return UFUNCS.get(kind, squared_difference)


def squared_difference(left: Array, right: Array, out: Array) -> None:
    """The square of what two arrays differ by."""
    np.subtract(left, right, out=out)
    np.multiply(out, out, out=out)


def sloped_below(x: Array, slope: Array, out: Array) -> None:
    """``x``, below zero times a slope that need not be a finite number."""
    below = x < 0
    np.copyto(out, x)
    np.multiply(out, slope, out, where=below)


def slopes(value: Value | None, output: Value) -> Array:
    """The slopes of a PReLU as they lie beside its output: one for a channel, if as many."""
    assert value is not None
    slope = value.constant
    assert slope is not None
    if slope.size == 1:
        slope = slope.reshape(())
    elif slope.shape == output.shape[1:2]:
        slope = slope.reshape(1, -1, *[1] * (len(output.shape) - 2))
    return kept(Value(slope.shape, slope.dtype, slope), output.shape, output.last)


def limits(values: Sequence[Value | None], output: Value) -> list[Array]:
    """The limits of a FakeQuantize beside its output; where all are one number, as that."""
    arrays = [value.constant for value in values if value is not None]
    return [
        array.reshape(()) if array.size == 1
        else kept(Value(array.shape, array.dtype, array), output.shape, output.last)
        for array in arrays if array is not None
    ]  # fmt: skip


def tileable(values: Sequence[Value | None], output: Value) -> bool:
    """Whether what is broadcast is constant, so that it may be tiled beforehand."""
    return all(v is None or v.constant is not None or v.shape == output.shape for v in values)


def follower(
    op: Op,
    given: Sequence[Array | None],
    scratch: Scratch,
    *,
    fixed: bool,
    premultiplied: float | None = None,
    finite: bool = False,
) -> Follower:
    """Make the parts of one elementwise operation, from a block to a target of its shape.

    Of what it is given it may be known that all are finite numbers.
    """
    kind = op.xml_type
    numbers = None
    if kind == QUANTIZE:
        steps: int = op.levels - 1  # type: ignore[attr-defined]  # FakeQuantize has them
        numbers = rounding(steps, [limit for limit in given if limit is not None])

    def make(block: Array, index: Any, target: Array) -> list[Part]:
        if kind in UFUNCS:
            others = [None if array is None else array[index] for array in given]
            left, right = (block if other is None else other for other in others)
            return [lined(UFUNCS[kind], left, right, target, scratch, fixed=fixed)]
        if kind == "ReLU":
            return [rectified(block, target, scratch)]
        if kind == "Clamp":
            return [bounded(block, op.min, op.max, target)]  # type: ignore[attr-defined]  # Clamp has them
        if kind == "ShuffleChannels":
            # A plan may say how many channels stay together, which the operation itself cannot.
            unit = 1 if given[-1] is None else int(given[-1])
            return shuffled(block, target, op.group, unit)  # type: ignore[attr-defined]  # it has one
        if kind == "PReLU":
            assert given[1] is not None
            return [leaking(block, given[1][index], target, scratch)]
        if kind == "SquaredDifference":
            other = next(array[index] for array in given if array is not None)
            return [partial(squared_difference, block, other, target)]
        if kind == QUANTIZE:
            if numbers is not None and block.size:
                some = numbers.at(index)
                return [
                    quantized(some, block, target, scratch.tile, finite=finite, own=scratch.own)
                ]
            bounds = [x[index] if x.ndim else x for x in given if x is not None]
            return [lambda: np.copyto(target, op.run(block, *bounds)[0], casting="unsafe")]
        rest = given[1:]
        prepared = activation(
            op,
            block,
            target,
            rest,
            premultiplied=premultiplied,
            near=scratch.near,
            own=scratch.own,
        )
        if prepared is not None:
            return [prepared]
        return [lambda: np.copyto(target, op.run(block, *rest)[0])]

    return make


def followed(
    chain: Sequence[Follower], block: Array, index: Any, target: Array | None = None
) -> list[Part]:
    """All followers on a block; the last leaves its result in the target."""
    target = block if target is None else target
    if not chain:
        return [] if target is block else [call(np.copyto, target, block)]
    parts: list[Part] = []
    for each in chain[:-1]:
        parts += each(block, index, block)
    return parts + chain[-1](block, index, target)


def shuffled(block: Array, target: Array, groups: int, unit: int = 1) -> list[Part]:
    """The channels of a block, or so many together, dealt out in turn from each group."""
    if unit == 1:
        each = block.shape[-1] // groups
        return [
            call(np.copyto, target[..., group::groups], block[..., group * each :][..., :each])
            for group in range(groups)
        ]
    # What stays together is copied as one element.
    given, made = (array.view(f"V{block.itemsize * unit}") for array in (block, target))
    given = given.reshape(*given.shape[:-1], groups, -1)
    made = made.reshape(*made.shape[:-1], -1, groups).swapaxes(-2, -1)
    return [call(np.copyto, made, given)]


def rectified(block: Array, target: Array, scratch: Scratch) -> Part:
    """The larger of a block and zero."""
    if block.size < MANY:
        zeros = np.broadcast_to(ZERO, block.shape)
        return lined(np.maximum, block, zeros, target, scratch)
    return bounded(block, 0, np.inf, target)


def bounded(block: Array, low: float, high: float, target: Array) -> Part:
    """A block, from one number to another: in half the time of NumPy's maximum by a number."""
    with np.errstate(over="ignore"):
        ends = np.array(low, np.float32), np.array(high, np.float32)
    return call(block.clip, *ends, target)


def leaking(block: Array, slope: Array, target: Array, scratch: Scratch) -> Part:
    """A block, below zero times a slope, in few passes where no slope is above one.

    One that is zero would make no number of what is endless.
    """
    slope = np.broadcast_to(slope, block.shape)
    each = slope[tuple(slice(None) if step else slice(1) for step in slope.strides)]
    axis = next((axis for axis, size in enumerate(block.shape) if size > 1), None)
    whole = sloped if np.isfinite(each).all() else sloped_below
    if axis is None or not block.size:
        return call(whole, block, slope, target)
    if whole is sloped and ((each <= 1) & (each != 0)).all():
        whole = leaked
    parts = []
    for begin, end in spans(block.shape[axis], -(-block.size // scratch.near)):
        index = (slice(None),) * axis + (slice(begin, end),)
        x, by, out = block[index], slope[index], target[index]
        if not any(by.strides):
            by = np.array(by[(0,) * by.ndim])
        elif not any(by.strides[:-1]) and x.flags.c_contiguous and out.flags.c_contiguous:
            channels = x.shape[-1]
            times = repetitions(x.size // channels, channels)
            by = scratch.tile(by[(0,) * (by.ndim - 1)], times)
            x, out = (array.reshape(-1, times * channels) for array in (x, out))
        parts.append(call(whole, x, by, out))
    return sequence(parts)


def lined(
    function: Callable[..., Any],
    left: Array,
    right: Array,
    target: Array,
    scratch: Scratch,
    *,
    fixed: bool = True,
) -> Part:
    """A call on two arrays with inner loops as long as can be.

    What repeats along all rows (a bias, a scale, a bound) is tiled: NumPy is several times
    faster on two long runs of memory than on many short ones, or on a run and a number. What is
    not fixed is tiled at each call.
    """
    channels = target.shape[-1] if target.ndim else 1
    whole = target.flags.c_contiguous
    arrays = []
    for array in (left, right):
        repeats = not any(array.strides[:-1]) and target.size > channels
        whole &= repeats or (array.flags.c_contiguous and array.shape == target.shape)
        arrays.append((array, repeats))
    rows = target.size // max(channels, 1)
    times = repetitions(rows, channels) if whole else 1
    shape = (rows // times, times * channels) if whole else target.shape
    if not fixed:
        repeated = [array for array, repeats in arrays if repeats]
        if times < FEW or len(repeated) != 1:
            return called(function, left, right, target)
        tile = np.empty(times * channels, np.float32)
        both = [tile if repeats else array.reshape(shape) for array, repeats in arrays]
        fill = call(np.copyto, tile.reshape(times, channels), repeated[0][(0,) * (left.ndim - 1)])
        return sequence([fill, call(function, *both, out=target.reshape(shape))])
    bound = [
        scratch.tile(array[(0,) * (array.ndim - 1)], times) if repeats
        else array.reshape(shape) if whole else array
        for array, repeats in arrays
    ]  # fmt: skip
    first, second = bound
    return called(function, first, second, target.reshape(shape) if whole else target)


def turned(weights: Array, wide: int) -> Iterator[tuple[int, Array]]:
    """Some outer channels at a time: where they begin, and they as (kh, kw, inner, outer).

    They are copied side by side first: rows that lie a power of two apart push each other out
    of the cache, and turning them then takes more than twice as long.
    """
    outer, taken = len(weights), prod(weights.shape[1:])
    room = np.empty((min(wide, outer), taken + 16), np.float32)[:, :taken]
    for start in range(0, outer, wide):
        some = weights[start : start + wide].reshape(-1, taken)
        rows = room[: len(some)]
        rows[...] = some
        yield start, rows.reshape(-1, *weights.shape[1:]).transpose(2, 3, 1, 0)


ZERO = np.float32(0)
QUANTIZE = "FakeQuantize"
#: What makes finite numbers of such, however large they are.
FINITE = frozenset(
    {"Clamp", "FakeQuantize", "Gelu", "HSigmoid", "HSwish", "ReLU", "Sigmoid", "Swish", "Tanh"}
)
#: Products of numbers below this, as many as windows have, add up to what is finite.
HUGE = 1e15


def are_moderate(*numbers: Array | float) -> bool:
    """Whether all numbers are such that sums of products with them stay finite."""
    return all(bool((np.abs(some) < HUGE).all()) for some in numbers)


#: Fewer times are not worth it to tile a row at each call.
FEW = 4
#: For fewer numbers than this `clip` takes longer to begin than it saves.
MANY = 4096
UFUNCS: dict[str, Any] = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "Divide": np.divide,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
}


def padded(
    source: Array,
    rows: tuple[int, int],
    columns: tuple[int, int],
    room: Array,
    fill: float | Array | np.int8,
    put: Callable[[Array, Array], list[Part]] | None = None,
) -> list[Part]:
    """Parts that copy rows ``rows`` and columns ``columns`` of an image (H, W, C) into ``room``.

    Rows and columns may reach beyond the image; there stands ``fill``, a number or one for each
    channel. What is more than a copy is done by ``put``.
    """
    height, width = source.shape[:2]
    (top, bottom), (left, right) = rows, columns
    begin, end = max(top, 0), min(bottom, height)
    first, stop = max(left, 0), min(right, width)
    target = room[: bottom - top, : right - left]
    if begin >= end or first >= stop:
        return [filling(target, fill)]
    inner = target[begin - top : end - top, first - left : stop - left]
    given = source[begin:end, first:stop]
    if put is not None:
        parts = put(given, inner)
    elif given.strides[2] == given.itemsize:
        parts = [call(np.copyto, inner, given)]
    else:  # channel by channel, since each is a plane of its own
        channels = range(given.shape[2])
        parts = [call(np.copyto, inner[:, :, c], given[:, :, c]) for c in channels]
    borders = [
        target[: begin - top], target[end - top :],
        target[:, : first - left], target[:, stop - left :],
    ]  # fmt: skip
    parts += [filling(border, fill) for border in borders if border.size]
    return parts


def filling(border: Array, fill: float | Array | np.int8) -> Part:
    """Let all of an array be one number, or each channel its own."""
    if isinstance(fill, np.ndarray):
        return call(np.copyto, border, fill)
    return lambda: border.fill(fill)


def taps(
    image: Array,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    counts: tuple[int, int],
) -> Array:
    """All windows of an image (H, W, C): a view (stops down, stops across, kh, kw, C)."""
    down, across, deep = image.strides
    return as_strided(
        image,
        (*counts, *kernel, image.shape[2]),
        (down * strides[0], across * strides[1], down * dilations[0], across * dilations[1], deep),
        writeable=False,
    )  # fmt: skip
