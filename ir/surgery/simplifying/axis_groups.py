"""The axes of two shapes of as many elements, in groups that hold the same elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

from ....schemas import Dim, Shape, Size
from ...document import Layer
from .patterns import same_shape, same_size
from .reshape_chains import RESHAPES, pattern_of, put_reshape
from .rewriter import Rewriter, Value


def axis_groups(one: Shape, other: Shape) -> list[tuple[range, range]] | None:
    """The shortest runs of axes of two shapes that have as many elements, in order.

    None where that is not certain, or nothing is there.
    """
    if one.rank is None or other.rank is None:
        return None
    sides = (one.sizes, other.sizes)
    groups: list[tuple[range, range]] = []
    starts = [0, 0]
    while starts[0] < len(sides[0]) and starts[1] < len(sides[1]):
        ends = [starts[0] + 1, starts[1] + 1]
        counts: list[Size] = [sides[0][starts[0]], sides[1][starts[1]]]
        while not same_size(*counts):
            short = _shorter(*counts)
            if 0 in counts or ends[short] == len(sides[short]):
                return None
            counts[short] = counts[short] * sides[short][ends[short]]
            ends[short] += 1
        if 0 in counts:
            return None
        groups.append((range(starts[0], ends[0]), range(starts[1], ends[1])))
        starts = ends
    rest = [range(start, len(sizes)) for start, sizes in zip(starts, sides, strict=True)]
    if any(sides[side][axis] != 1 for side in (0, 1) for axis in rest[side]):
        return None
    if groups:
        last = groups.pop()
        groups.append((range(last[0].start, rest[0].stop), range(last[1].start, rest[1].stop)))
    return groups or None


def _shorter(one: Size, other: Size) -> int:
    """Which of two counts takes the next size."""
    if isinstance(one, Dim) or isinstance(other, Dim):
        return 1 if isinstance(one, Dim) else 0
    return 0 if one < other else 1


def moved_into(small: Shape, given: Shape, made: Shape) -> list[Size] | None:
    """The sizes by which what is broadcast to one shape broadcasts alike to another.

    In each group of axes it has all elements of the one shape, or one.
    """
    groups = axis_groups(given, made)
    if groups is None or small.rank is None or given.rank is None or made.rank is None:
        return None
    if small.rank > given.rank:
        return None
    wide: list[Size] = [*[1] * (given.rank - small.rank), *small.sizes]
    sizes: list[Size] = [1] * made.rank
    for axes, places in groups:
        if all(wide[axis] == 1 for axis in axes):
            continue
        if not all(same_size(wide[axis], given.sizes[axis]) for axis in axes):
            return None
        for place in places:
            sizes[place] = made.sizes[place]
    return sizes


def reshaped(net: Rewriter, value: Value, wanted: Sequence[Size], like: Layer) -> Value | None:
    """A value that broadcasts as one of other sizes does; None where that takes a layer more."""
    layer, given = value[0], net.tensor(value).shape
    if given.rank is not None and given.rank <= len(wanted) and (
        same_shape(without_ones(given.sizes), without_ones(wanted))
    ):  # fmt: skip
        return value
    if layer.is_constant:
        array, sizes = net.known(value), [one for one in wanted if not isinstance(one, Dim)]
        if array is None or len(sizes) < len(wanted):
            return None
        return net.constant(array.reshape(sizes), net.kind(value), layer)
    if layer.type == "Convert" and net.inputs(layer)[0][0].is_constant:
        narrow = reshaped(net, net.inputs(layer)[0], wanted, like)
        return None if narrow is None else net.copy(layer, [narrow])
    pattern = pattern_of(given, Shape(wanted))
    if layer.type not in RESHAPES or not net.is_private(value) or pattern is None:
        return None
    return put_reshape(net, value, pattern, like)


def without_ones(sizes: Sequence[Size]) -> Shape:
    """Sizes from the first on that is not one."""
    return Shape(list(dropwhile(lambda size: size == 1, sizes)))


__all__ = ["axis_groups", "moved_into", "reshaped", "without_ones"]
