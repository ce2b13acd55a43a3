"""Products of int8 matrices with int32 sums, where the extra ``fast`` is installed (numkong).

Its kernels are chosen at run time by what the processor has; it lets go of the interpreter's lock
while it multiplies. What is multiplied by is packed once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from .team import Part, sequence

#: How many int8 products a core does while BLAS does one of float32, by what the processor has;
#: measured at the sizes of networks, the quickest first, which multiply by tiles. Without any of
#: these: half as many. And of how many levels a vector is: what is left over, where a sum is no
#: multiple of that, takes as long as some vectors.
TILES = 8.0
RATES = (
    (("sapphireamx", "graniteamx", "smebi32"), TILES, 1),
    (("icelake", "diamond"), 2.0, 64),
    (("alder", "sierra", "neonsdot", "svesdot"), 1.5, 16),
)
SLOW = (), 0.7, 16
#: For which processors it rounds, and makes sums of numbers, as quickly as NumPy adds them.
QUICK_LINES = ("skylake", "haswell")
#: Blocks of columns are a multiple of so many, and about so wide: their sums should stay in the
#: nearest cache.
LINE, WIDE = 16, 256
#: By vectors, up to so many rows are multiplied in one go.
ROWS = 64
#: If there are twice as many columns, and a multiple of eight, rows are met one by one. That takes
#: so long for each sum, and for each of its products (ns).
SINGLE = 0.505, 0.008
#: Else four rows meet four columns, which takes so long, for each of the products, and longer
#: where there are not four of both.
FOUR = 4
SQUARE, LOOSE = (11.5, 0.0788), 8.0
#: As long takes a block, and what is to be done with its sums, or a call that has none of these.
CALL, AGAIN = 4000, 500
#: So many numbers at a time it does alike, if it does fewer otherwise: vectors of AVX2, AVX-512.
LANES = (1, 8, 16)
#: The library's names of what it rounds to.
NAMES: dict[type, str] = {
    np.int8: "int8", np.uint8: "uint8", np.uint16: "uint16", np.float32: "float32",
}  # fmt: skip


#: What is rounded more often than need be is so near, at least.
NEARLY = 1e-6
#: Their ends.
ENDS: dict[type[np.integer[Any]], tuple[int, int]] = {
    np.int8: (-128, 127), np.uint8: (0, 255), np.uint16: (0, 65535),
}  # fmt: skip


class IntegerProducts:
    """A library that multiplies int8 matrices."""

    def __init__(self, library: Any) -> None:
        self._library = library
        has = library.get_capabilities()
        rates = (told for told in RATES if any(has.get(name) for name in told[0]))
        #: Products of int8 while BLAS does one of float32; sums of a multiple of so many.
        _, self.rate, self._vector = next(rates, SLOW)
        #: Whether it multiplies by tiles, for which matrices have to be packed.
        self.by_tiles = self.rate >= TILES
        #: Whether it rounds to int8 as it should, and makes sums, many numbers at a time.
        quick = any(has.get(name) for name in QUICK_LINES)
        #: So many numbers are its vector, of which it does fewer otherwise; 1 where it does not.
        self._lanes = 1
        self.rounds = quick and self._rounds() and any(map(self._lines, LANES))

    def blocks(self, rows: int, taken: int, columns: int, shares: int = 1) -> list[int]:
        """How wide the blocks are in which columns are packed, as many for each who shares them.

        The last may be somewhat wider than what there is of it.
        """
        most = columns if self.by_tiles else WIDE
        count = -(-columns // (most * shares)) * shares
        wide = -(-columns // (LINE * count)) * LINE if count > 1 else columns
        alike = [min(wide, columns - begin) for begin in range(0, columns, wide)]
        if self.by_tiles:
            return alike
        whole = self._whole(taken)
        return min(
            (alike, _odd(columns, count, shares)),
            key=lambda found: sum(_effort(rows, whole, wide) + CALL for wide in found),
        )

    def pack(self, rows: Array, wide: int = 0) -> Any:
        """A matrix (columns, taken) of int8, to multiply by: so many columns, if it has fewer."""
        columns, taken = rows.shape
        whole = np.zeros((max(wide, columns), self._whole(taken)), np.int8)
        whole[:columns, :taken] = rows
        return self._library.dots_pack(whole, dtype="int8")

    def multiplied(self, left: Array, packed: Any, out: Array) -> Part:
        """What puts ``left @ rows.T`` into an int32 array without gaps; left rows may overlap.

        Rows are read up to a multiple of a vector: what that meets is multiplied by zeros.
        """
        assert left.dtype == np.int8
        assert out.dtype == np.int32
        assert left.strides[1] == 1
        assert out.flags.c_contiguous
        given, bring = self._reaching(left)
        parts = [] if bring is None else [bring]
        for run in self._runs(len(given), given.shape[1], out.shape[1]):
            rows, made = (seen(self._library, matrix[run]) for matrix in (given, out))
            parts.append(partial(self._library.dots_packed, rows, packed, out=made))
        return sequence(parts)

    def _runs(self, rows: int, taken: int, columns: int) -> list[slice]:
        """Rows that are multiplied together: the last few may be sooner done with some before."""
        fours = rows - rows % FOUR
        if self.by_tiles or not FOUR < fours < rows:
            return [slice(rows)]
        whole, most, last = (_effort(count, taken, columns) for count in (rows, fours, FOUR))
        if whole <= most + last + AGAIN:
            return [slice(rows)]
        return [slice(fours), slice(rows - FOUR, rows)]

    def _whole(self, taken: int) -> int:
        return -(-taken // self._vector) * self._vector

    def _reaching(self, left: Array) -> tuple[Array, Part | None]:
        """Rows as long as those that were packed; what copies them where memory ends before."""
        (rows, taken), whole = left.shape, self._whole(left.shape[1])
        if whole == taken or not rows:
            return left, None
        root = left
        while isinstance(root.base, np.ndarray):
            root = root.base
        last = left.ctypes.data + (rows - 1) * left.strides[0]
        if left.strides[0] >= 0 and last + whole <= root.ctypes.data + root.nbytes:
            return as_strided(left, (rows, whole), left.strides), None
        room = np.zeros((rows, whole), np.int8)
        return room, partial(np.copyto, room[:, :taken], left)

    def multiplied_anew(self, left: Array, rows: Array, out: Array) -> Part:
        """The same by a few rows, which are packed at each call."""
        return packed_anew(self._library, left, rows, out)

    def rounded(self, numbers: Array, out: Array) -> Part:
        """What puts the nearest int8, uint8 or uint16 to each number into an array of such.

        Those beyond the ends are the ends, and what is no number the least. Neither has gaps.
        """
        given, made = self._flat(numbers), self._flat(out)
        return partial(self._library.astype, given, NAMES[out.dtype.type], out=made)

    def lined(self, scale: float, shift: float, numbers: Array, out: Array) -> Part:
        """What puts ``scale * x + shift`` of each number into an array; neither has gaps."""
        return self._by_lanes(partial(self._library.scale, alpha=scale, beta=shift), numbers, out)

    def summed(self, factors: tuple[float, float], x: Array, y: Array, out: Array) -> Part:
        """What puts ``a * x + b * y`` into an array; none has gaps."""
        a, b = factors
        return self._by_lanes(partial(self._library.blend, alpha=a, beta=b), x, y, out)

    def fused(
        self, x: Array, y: Array, z: Array, out: Array, factors: tuple[float, float] = (1, 1)
    ) -> Part:
        """What puts ``a * x * y + b * z`` into an array; none has gaps."""
        a, b = map(float, factors)
        return self._by_lanes(partial(self._library.fma, alpha=a, beta=b), x, y, z, out)

    def _by_lanes(self, make: Callable[..., Any], *arrays: Array) -> Part:
        """What makes the last of these arrays of the others, each number as in any other place.

        Fewer than a vector the library may do one by one, and rounds otherwise: these are put
        into vectors.
        """
        *given, made = map(self._flat, arrays)
        size = arrays[-1].size
        rest = size % self._lanes
        if not rest:
            return partial(make, *given, out=made)
        whole = [array.reshape(-1)[: size - rest] for array in arrays]
        ends = [array.reshape(-1)[size - rest :] for array in arrays]
        beside = np.zeros((len(arrays), self._lanes), np.float32)
        *others, last = map(self._flat, beside)
        parts = [self._by_lanes(make, *whole)] if size > rest else []
        return sequence([
            *parts,
            *map(partial(partial, np.copyto), beside[:-1, :rest], ends[:-1]),
            partial(make, *others, out=last),
            partial(np.copyto, ends[-1], beside[-1, :rest]),
        ])  # fmt: skip

    def _flat(self, array: Array) -> Any:
        """An array without gaps as the library takes it."""
        assert array.flags.c_contiguous
        place = array.__array_interface__["data"][0]
        kind = NAMES[array.dtype.type]
        return self._library.from_pointer(place, (array.size,), kind, owner=array)

    def _lines(self, lanes: int) -> bool:
        """Whether sums are right, and a number's is the same wherever it stands."""
        self._lanes = lanes
        numbers = np.linspace(-300, 300, 1001, dtype=np.float32)
        scale, shift = np.float32(0.37), np.float32(-12.1)
        wanted = np.float64(scale) * numbers + np.float64(shift)
        others = np.sqrt(np.abs(numbers))
        first: list[Array] = []
        for cut in range(20):
            x, y = numbers[cut:], others[cut:]
            found = [np.empty(numbers.size - cut, np.float32) for _ in range(4)]
            made = (
                (self.lined(float(scale), float(shift), x, found[0]), wanted[cut:]),
                (self.summed((0.5, 2.0), x, y, found[1]), x / 2 + 2 * y),
                (self.fused(x, y, y, found[2]), x * np.float64(y) + y),
                (self.fused(x, y, x, found[3], (0.7, 0.3)), 0.7 * x * np.float64(y) + 0.3 * x),
            )
            for (part, right), out in zip(made, found, strict=True):
                part()
                if (np.abs(out - right) > NEARLY * (1 + np.abs(right))).any():
                    return False
            first = first or found
            if any((out != whole[cut:]).any() for out, whole in zip(found, first, strict=True)):
                return False
        return True

    def _rounds(self) -> bool:
        ends = [np.nan, np.inf, -np.inf, 1e9, -1e9, 3e38, -3e38, 127.5, -128.5]
        halves = np.concatenate([np.arange(-130, 259, 0.5), np.arange(65500, 65540, 0.5)])
        sides = np.array([[-np.inf], [np.inf]], np.float32)
        near = np.nextafter(halves.astype(np.float32), sides)
        numbers = np.concatenate([ends, halves, near.ravel()]).astype(np.float32)
        # Of odd lengths, too, where ends are done otherwise.
        for kind, (least, most) in ENDS.items():
            wanted = np.rint(np.fmin(np.fmax(numbers, least), most))
            for cut in range(20):
                found = np.empty(numbers.size - cut, kind)
                self.rounded(numbers[cut:], found)()
                if (found != wanted[cut:]).any():
                    return False
        return True


def _odd(columns: int, count: int, shares: int) -> list[int]:
    """Blocks of an odd number of fours: rows meet these four by four, however many there are."""
    fours = -(-columns // FOUR)
    count = min(count, fours)
    if (fours - count) % 2:
        count, fours = (count + 1, fours) if shares == 1 else (count, fours + 1)
    pairs = (fours - count) // 2
    ends = [pairs * number // count for number in range(count + 1)]
    return [FOUR * (1 + 2 * (stop - first)) for first, stop in pairwise(ends)]


def _effort(rows: int, taken: int, columns: int) -> float:
    """About how long a product by vectors takes (ns)."""
    whole, rest = divmod(rows, ROWS)
    return sum(
        times * _effort_at_once(some, taken, columns)
        for times, some in ((whole, ROWS), (1, rest))
        if times and some
    )


def _effort_at_once(rows: int, taken: int, columns: int) -> float:
    if columns % 8 == 0 and columns >= 2 * rows:
        return rows * columns * (SINGLE[0] + SINGLE[1] * taken)
    squares = -(-rows // FOUR) * -(-columns // FOUR)
    loose = LOOSE if rows % FOUR or columns % FOUR else 0.0
    return squares * (SQUARE[0] + SQUARE[1] * taken + loose)


def seen(library: Any, array: Array) -> Any:
    """An array as the library takes it: it is looked at once, not at each call."""
    place, kind = array.ctypes.data, array.dtype.name
    return library.from_pointer(place, array.shape, kind, strides=array.strides, owner=array)


def packed_anew(library: Any, left: Array, few: Array, out: Array) -> Part:
    """What puts ``left @ few.T`` into an array; the few rows are packed at each call.

    Rows of both may lie apart. Up to four take as long as one.
    """
    given, others, made = (seen(library, matrix) for matrix in (left, few, out))
    multiply, pack, kind = library.dots_packed, library.dots_pack, few.dtype.name
    return lambda: multiply(given, pack(others, dtype=kind), out=made)


@cache
def integer_products() -> IntegerProducts | None:
    """The library, if it is there and gives what a product is."""
    try:
        library = importlib.import_module("numkong")
        found = IntegerProducts(library)
        numbers = (np.arange(5 * 67) % 251 - 125).astype(np.int8)
        rows = numbers.reshape(5, 67)
        out = np.zeros((5, 5), np.int32)
        found.multiplied(rows, found.pack(rows), out)()
        if (out != rows.astype(np.int32) @ rows.T.astype(np.int32)).any():
            return None
        # Windows over a line of numbers.
        rows = np.ndarray((5, 67), np.int8, numbers, 0, (3, 1))
        found.multiplied(rows, found.pack(rows), out)()
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        return None  # not installed, or another than what is known here
    return found if (out == rows.astype(np.int32) @ rows.T.astype(np.int32)).all() else None
