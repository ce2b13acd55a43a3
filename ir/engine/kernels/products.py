"""Products of a matrix by weights, in pieces that BLAS multiplies as they lie.

OpenBLAS copies large matrices into an order of its own before it multiplies them. For processors
with AVX-512 it takes products of at most a million steps from where they are, and at a tenth more
operations a second: there weights are kept in blocks of columns, and rows are taken so many at a
time. Where sums are long that leaves too few rows for each block: there a sum is cut into some
that are added afterwards. Of very many rows BLAS's own order pays, and other processors have no
such kernels: there pieces are large. All of it begins on cache lines: else each load meets two.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ....schemas import Array
from ..plan import Origin
from ..workers import WIDE_KERNELS, Part, blas, spans
from .blocks import CACHE, Scratch, turned
from .calls import call
from .in_use import made_once
from .lines import laid_out, on_lines
from .processor import is_zen_5
from .repeats import divisor

#: Steps of a product that is taken as it lies.
MILLION = 1_000_000
#: Columns of weights that are multiplied together, at best; and at most, to make equal blocks.
WIDE, WIDER = 64, 128
#: The same where they are copied first: so that there are several blocks, and at most.
COPIED, BLOCK = 128, 512
#: BLAS takes twelve rows at a time, or six; of many columns four.
DOZEN, HALF, FOUR = 12, 6, 4
#: Sums of more products leave too few rows for pieces that are taken as they lie: they are cut
#: into equal ones of at most so many. Of so many rows some are enough; to copy longer sums pays,
#: but for Zen 5, where such as these take 0.84 to 0.9 of the time, and shorter ones stay whole.
LONG, CUT, PAYING, SHORTER = 512, 1024, 384, 768
#: So many times as many products a second Zen 5 makes.
TWICE = 1.9
#: So few are multiplied together, by as many columns as that leaves, at least 16.
FEW_ROWS = 24
#: About how long products by 16, 32, 48 and 64 columns take as they lie, a call, and others' call.
NARROW, CALL, COPYING = (0, 16, 24, 40, 43), 3, 7
#: Most blocks of columns are as wide as divides this.
EVEN = 192
#: Shares of work are even enough where none is more than so many times another.
UNEVEN = 1.05


def cuts(taken: int, rows: int | None = None) -> int:
    """Into how many sums one is cut so that small pieces are multiplied; 0 where large ones are.

    Args:
        taken: How many products a sum has.
        rows: By how many rows the weights are multiplied in all, where they are too large to stay
            in the cache from call to call.
    """
    if blas_copies():
        return 0
    if rows is None:
        return int(taken <= LONG)
    if rows > PAYING and (taken <= CUT or not is_zen_5()):
        return int(taken <= CUT)
    if rows <= FEW_ROWS:
        least = -(-rows * taken * WIDE // MILLION)
    elif rows > PAYING:
        least = -(-taken // SHORTER)
    else:
        least = 1 if taken <= (SHORTER if is_zen_5() else LONG) else max(2, -(-taken // CUT))
    found = next((count for count in range(least, 2 * least) if taken % count == 0), 0)
    if not found and rows <= FEW_ROWS:
        return int(rows * taken * 16 <= MILLION)  # by fewer columns
    return found


def blas_copies() -> bool:
    """Whether BLAS copies whatever it multiplies."""
    library = blas()
    if library is None or library.name != "OpenBLAS":
        return False
    return library.kernels not in WIDE_KERNELS


def makes_most_of_zen_5() -> bool:
    """Whether it is Zen 5, and BLAS has kernels as wide: those for AVX2 make no use of it."""
    return is_zen_5() and not blas_copies()


def quickness() -> float:
    """How many times quicker products are than those suppose who choose between ways."""
    return TWICE if makes_most_of_zen_5() else 1.0


def width(outer: int, taken: int, rows: int | None = None, lanes: int = 1) -> int:
    """How many columns of weights (taken, outer) make a block.

    Args:
        outer: The columns that there are.
        taken: How many products a sum has.
        rows: By how many rows the weights are multiplied, where they come from memory each time.
        lanes: Among how many the blocks of columns are dealt then.
    """
    parts = cuts(taken, rows)
    if not parts:
        # Where there are fewer rows than columns, it is these that workers share.
        most = COPIED if rows is None or rows < outer else BLOCK
        if outer % 16 == 0:
            return divisor(outer // 16, most // 16) * 16
        return outer if most == BLOCK else divisor(outer, most)
    taken //= parts
    alone = lanes == 1 and (rows is None or rows > FEW_ROWS)
    if outer <= WIDE or (alone and outer % WIDE and _fits(outer, taken)):
        return outer
    if rows is not None and rows > FEW_ROWS:
        for wide in (WIDE, *range(WIDER, WIDE // 2 - 1, -16)):
            if outer % (wide * lanes) == 0 and _fits(wide, taken):
                return wide
    fitting = [wide for wide in (WIDE, 32, 48, 16) if outer % wide == 0]
    if not fitting:
        return next((wide for wide in range(WIDE, 15, -1) if outer % wide == 0), outer)
    for together in (rows,) if rows is not None and rows <= FEW_ROWS else (DOZEN, HALF):
        for wide in fitting:
            if together * wide * taken <= MILLION:
                return wide
    return fitting[-1]


def _fits(wide: int, taken: int) -> bool:
    """Whether a dozen rows by so many columns are few enough to be taken as they lie."""
    return wide <= WIDER and DOZEN * wide * taken <= MILLION


def equal(outer: int, taken: int, rows: int | None = None) -> int:
    """How many columns of weights make equal blocks; those that are left make one of their own.

    Blocks of other widths take up to a third longer than these and such a rest.
    """
    parts = cuts(taken, rows)
    if not parts or outer % WIDE == 0 or (rows is not None and rows <= FEW_ROWS):
        return outer
    fits, whole = (_fits(wide, taken // parts) for wide in (WIDE, outer))
    return outer if whole or not fits else outer - outer % WIDE


def shared_width(
    outer: int, taken: int, rows: int | None, lanes: int, *, equal: bool = False
) -> int:
    """How wide blocks of columns are so that shares of them take about as long.

    That is the usual width, if none makes the longest share much shorter. Blocks may have to be
    equal.
    """
    usual = [width(even, taken, rows, lanes) for even in (outer - outer % EVEN or outer, outer)]
    parts = cuts(taken, rows)
    others = range(WIDER if parts else COPIED, 31, -16)
    fitting = [wide for wide in others if not parts or _fits(wide, taken // parts)]
    times = {
        wide: _longest(outer, wide, lanes, as_it_lies=parts > 0)
        for wide in (*usual, *fitting)
        if wide <= outer and not (equal and outer % wide)
    }
    best = min(times, key=times.__getitem__)
    known = min((wide for wide in usual if wide in times), key=times.__getitem__, default=best)
    return known if times[known] <= UNEVEN * times[best] else best


@cache
def _longest(outer: int, wide: int, lanes: int, *, as_it_lies: bool) -> float:
    """About how long the longest share of blocks of so many columns takes."""
    blocks = [wide] * (outer // wide) + ([outer % wide] if outer % wide else [])
    times = [
        NARROW[-1] * (each // WIDE) + NARROW[-(-(each % WIDE) // 16)] + CALL if as_it_lies
        else each + COPYING
        for each in blocks
    ]  # fmt: skip
    return max(sum(times[begin:end]) for begin, end in spans(len(blocks), lanes))


def in_columns(
    weights: Array, rows: int, lanes: int = 1, of: Array | Origin | None = None
) -> list[Array]:
    """Weights as equal blocks, and one of the columns that are left.

    Args:
        weights: Of a convolution (outer, inner, kh, kw).
        rows: By how many rows they are multiplied.
        lanes: Among how many the blocks are dealt.
        of: The constant that they are; plans share what is made of it.
    """
    outer, taken = len(weights), weights[0].size
    wide = shared_width(outer, taken, rows, lanes) if lanes > 1 else 0
    even = outer - outer % wide if wide else equal(outer, taken, rows)
    found = [in_blocks(weights[:even], wide, rows=rows, of=of)]
    if even < outer:
        found.append(in_blocks(weights[even:], outer - even, of=of, begin=even))
    return found


def in_blocks(
    weights: Array,
    wide: int = 0,
    *,
    rows: int | None = None,
    of: Array | Origin | None = None,
    begin: int = 0,
) -> Array:
    """Weights (outer, inner, kh, kw) as blocks (outer / wide, kh * kw * inner, wide).

    Of a constant, from an outer channel on, plans share them.
    """
    outer, inner, *kernel = weights.shape
    taken = inner * int(np.prod(kernel))
    wide = wide or width(outer, taken, rows)

    def make() -> Array:
        found = on_lines(outer // wide, *kernel, inner, wide)
        for start, some in turned(weights, wide):
            found[start // wide] = some
        return found.reshape(-1, taken, wide)

    if of is None:
        return make()
    return made_once(of, ("taps", begin, outer, wide), (outer // wide, taken, wide), make)


def columns_in_blocks(matrices: Array, rows: int, wide: int = 0) -> Array:
    """Matrices (taken, outer) by which so many rows are multiplied, one or a stack, so."""
    *stack, taken, outer = matrices.shape
    wide = wide or width(outer, taken, rows)
    return laid_out(matrices.reshape(*stack, taken, outer // wide, wide).swapaxes(-3, -2))


def rows_at_once(rows: int, taken: int, wide: int) -> int:
    """How many rows are multiplied together, so that all pieces are of about one size."""
    together = FOUR if wide % WIDE == 0 else HALF
    most = max(1, MILLION // max(taken * wide, 1))
    most -= most % together if most > together else 0
    pieces = -(-rows // most)
    return min(most, -(-rows // (pieces * together)) * together)


def sums(scratch: Scratch, part: int, taken: int, rows: int) -> Array | None:
    """Room for the sums into which one is cut, if it is."""
    return scratch.take(part, CACHE // 4) if cuts(taken, rows) > 1 else None


def multiplied(
    windows: Array,
    blocks: Array,
    out: Array,
    *,
    rows: int | None = None,
    room: Array | None = None,
    cut: int | None = None,
) -> list[Part]:
    """Parts that multiply rows (rows, taken) by blocks of columns into (rows, columns).

    How many rows there are in all is as it was when blocks were made. Those may be stacked for
    groups, which stand side by side in rows and columns. Sums that are cut want room; into how
    many may be said.
    """
    groups, count, taken, wide = blocks.shape if blocks.ndim == 4 else (1, *blocks.shape)
    blocks = blocks.reshape(groups, count, taken, wide)
    lines = len(windows)
    if cut is None:
        cut = cuts(taken, rows) if wide <= COPIED else 0
    if cut:
        each = rows_at_once(lines, taken // cut, wide)
    else:  # to copy weights for fewer takes twice as long as to read them for each
        each = 1 if lines < FOUR and blas_copies() else lines
    whole = lines - lines % each
    parts = []
    for begin, end in ((0, whole), (whole, lines)):
        if begin == end:
            continue
        height = min(each, end - begin)
        left = windows[begin:end].reshape(-1, height, groups, taken).transpose(0, 2, 1, 3)
        into = out[begin:end].reshape(-1, height, groups, count, wide).transpose(0, 2, 3, 1, 4)
        if cut > 1:
            assert room is not None
            parts += _in_sums(left, blocks, into, cut, room)
        elif blocks.nbytes > left.nbytes:
            # Block by block, so that each is fetched once.
            left, into = left.swapaxes(0, 1)[:, None], into.transpose(1, 2, 0, 3, 4)
            parts.append(call(np.matmul, left, blocks[:, :, None], out=into))
        else:
            parts.append(call(np.matmul, left[:, :, None], blocks, out=into))
    return parts


def by_long_rows(matrix: Array, rows: Array, out: Array) -> Part:
    """The part that multiplies a matrix by few long rows, in pieces that are taken as they lie."""
    (made, given), wide = matrix.shape, rows.shape[1]
    pieces = -(-made * given * wide // MILLION)
    pieces = next(count for count in range(max(pieces, 1), wide + 1) if wide % count == 0)
    cut, into = (some.reshape(len(some), pieces, -1).swapaxes(0, 1) for some in (rows, out))
    assert np.may_share_memory(into, out)
    return call(np.matmul, matrix, cut, out=into)


def by_runs(
    windows: Array, matrices: list[Array], out: Array, *, rows: int, room: Array | None
) -> list[Part]:
    """The same by several such runs of columns, or of groups of these, one beside the other."""
    parts, first = [], 0
    for blocks in matrices:
        stop = first + blocks.size // blocks.shape[-2]
        parts += multiplied(windows, blocks, out[:, first:stop], rows=rows, room=room)
        first = stop
    return parts


def _in_sums(left: Array, blocks: Array, into: Array, cut: int, room: Array) -> list[Part]:
    """Parts that multiply pieces (pieces, groups, height, taken), each sum cut into equal ones.

    Those of some pieces and blocks are side by side in the room, and added from there.
    """
    pieces, groups, height, taken = left.shape
    _, count, _, wide = blocks.shape
    left = left.reshape(pieces, groups, height, cut, taken // cut).transpose(1, 3, 0, 2, 4)
    blocks = blocks.reshape(groups, count, cut, 1, taken // cut, wide)
    held = min(cut, room.size // (height * wide))
    at_once = min(pieces, max(1, room.size // (cut * height * wide)))
    together = min(count, max(1, room.size // (cut * at_once * height * wide)))
    parts: list[Part] = []
    for group, start in np.ndindex(groups, -(-pieces // at_once)):
        some = slice(start * at_once, (start + 1) * at_once)
        for first in range(0, count, together):
            chosen = slice(first, first + together)
            target = into[some, group, chosen].transpose(0, 2, 1, 3)
            for begin in range(0, cut, held):
                these = slice(begin, min(begin + held, cut))
                size = these.stop - begin
                made = room[: size * target.size].reshape(size, *target.shape)
                products = made.transpose(3, 0, 1, 2, 4)
                given, by = left[group, these, some], blocks[group, chosen, these]
                parts.append(call(np.matmul, given, by, out=products))
                before, after = (target, made) if begin else (made[0], made[1:])
                for one in after:
                    parts.append(call(np.add, before, one, out=target))
                    before = target
    return parts
