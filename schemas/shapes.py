"""Sizes and shapes, known or partly known.

A size is an ``int`` where it is known, else a :class:`Dim`: an interval, perhaps without an
upper end, perhaps with a name. Both take part in the same arithmetic, so that a rule such as
``room // stride + 1`` serves both. A :class:`Shape` is a row of sizes, or of unknown rank.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import index
from typing import Any, TypeAlias, cast, overload

from .errors import IRError, UsageError
from .symbols import Expression

#: A known size, or what is known of it.
Size: TypeAlias = "int | Dim"

#: OpenVINO keeps sizes in 64 signed bits.
LARGEST = 2**63 - 1

#: NumPy's arrays have at most so many axes: nothing of a higher rank could be computed. It also
#: keeps a shape that is made from a value, such as Reshape's, from being as long as the value.
MOST_AXES = 64
_INT = frozenset({int})


class Dim:
    """A size that is not known exactly: ``low`` to ``high`` (None: without limit).

    Arithmetic is that of intervals; where an outcome is a single number it is an ``int``. A
    value that is no dimension may reach below zero (``low`` None: without limit).
    """

    __slots__ = ("high", "low", "symbol")

    low: int | None
    high: int | None
    symbol: Expression | None

    def __init__(
        self, low: int | None = 0, high: int | None = None, symbol: Expression | str | None = None
    ) -> None:
        if low is not None and high is not None and low > high:
            raise IRError(f"interval {low}..{high} ends before it begins")
        self.low, self.high = low, high
        self.symbol = Expression.atom(symbol) if isinstance(symbol, str) else symbol

    def __repr__(self) -> str:
        return f"Dim({self})"

    def __str__(self) -> str:
        if self.symbol is not None:
            return str(self.symbol)
        if self.low is None:
            return "?" if self.high is None else f"..{self.high}"
        if self.high is None:
            return f"{self.low}.." if self.low else "?"
        return f"{self.low}..{self.high}" if self.low else f"..{self.high}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dim):
            return False
        return (self.low, self.high, self.symbol) == (other.low, other.high, other.symbol)

    def __hash__(self) -> int:
        return hash((self.low, self.high, self.symbol))

    # Arithmetic. Each operation: the interval, then what becomes of the symbol.

    def __add__(self, other: Size) -> Size:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        (a, b), (c, d) = limits(self), limits(other)
        low = None if a is None or c is None else a + c
        high = None if b is None or d is None else b + d
        return interval(low, high, _combine(self, other, Expression.__add__))

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        if same(self, other):
            return 0
        return self + other * -1

    def __rsub__(self, other: int) -> Size:
        return self * -1 + other

    def __mul__(self, other: Size) -> Size:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        if other == 0:
            return 0
        if other == 1:
            return self
        low, high = _corners(limits(self), limits(other))
        return interval(low, high, _combine(self, other, Expression.__mul__))

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        if same(self, other):
            return 1
        (a, b), (c, d) = limits(self), limits(other)
        if isinstance(other, Dim):
            # Only what shapes need: a divisor that is at least one.
            if c is None or c < 1 or a is None or a < 0:
                return Dim(None, None)
            low = 0 if d is None else a // d
            return interval(low, None if b is None else b // c)
        if other == 1:
            return self
        if other < 0:
            return (-self) // -other
        if other == 0:
            raise IRError(f"division of {self} by zero")
        symbol = None if self.symbol is None else self.symbol.floordiv(other).if_short()
        return interval(
            None if a is None else a // other, None if b is None else b // other, symbol
        )

    def __rfloordiv__(self, other: int) -> Size:
        if self.low is None or self.low < 1 or other < 0:
            return Dim(None, None)
        return interval(0 if self.high is None else other // self.high, other // self.low)

    def __mod__(self, other: Size) -> Size:
        low, _ = limits(other)
        if low is None or low < 1 or self.low is None or self.low < 0:
            return Dim(None, None)
        if (
            isinstance(other, int)
            and self.high is not None
            and (self.low // other == self.high // other)
        ):
            return interval(self.low % other, self.high % other)
        _, high = limits(other)
        return Dim(0, None if high is None else high - 1)

    # A comparison is True where it holds for every value the sizes may take.

    def __lt__(self, other: Size) -> bool:
        low, _ = limits(other)
        return self.high is not None and low is not None and self.high < low

    def __le__(self, other: Size) -> bool:
        low, _ = limits(other)
        return self.high is not None and low is not None and self.high <= low

    def __gt__(self, other: Size) -> bool:
        _, high = limits(other)
        return self.low is not None and high is not None and self.low > high

    def __ge__(self, other: Size) -> bool:
        _, high = limits(other)
        return self.low is not None and high is not None and self.low >= high


#: A dimension of which nothing is known.
ANY = Dim()


def any_sizes(rank: int) -> tuple[Size, ...]:
    """The sizes of a shape of which only the rank is known."""
    if rank > MOST_AXES:
        raise IRError(f"the shape has {rank} axes, the most are {MOST_AXES}")
    return (ANY,) * rank


def limits(size: Size) -> tuple[int | None, int | None]:
    """The least and the greatest value a size may have."""
    return (size.low, size.high) if isinstance(size, Dim) else (int(size), int(size))


def interval(low: int | None, high: int | None, symbol: Expression | None = None) -> Size:
    """The size between two limits: a number where they are one."""
    if low is not None and low == high:
        return low
    if symbol is not None and symbol.is_number:
        return symbol.value({})
    return Dim(low, high, symbol)


def at_least(size: Size, least: int) -> Size:
    """A size, or ``least`` where that is more: what may be raised loses its name."""
    if not isinstance(size, Dim):
        return max(size, least)
    if size.low is not None and size.low >= least:
        return size
    return interval(least, None if size.high is None else max(size.high, least))


def not_below(size: Size, least: int) -> Size:
    """A size that is refused where it is less than ``least``: it keeps its name."""
    raised = at_least(size, least)
    if isinstance(size, Dim) and isinstance(raised, Dim):
        return interval(raised.low, raised.high, size.symbol)
    return raised


def number(size: Size) -> int:
    """A size that must be known, as a number."""
    if isinstance(size, Dim):
        raise NotKnownError(f"size {size} is not known exactly")
    return int(size)


def same(one: Size, other: Size) -> bool:
    """Whether two sizes are certainly equal."""
    if isinstance(one, Dim) and isinstance(other, Dim):
        return one.symbol is not None and one.symbol == other.symbol
    return not isinstance(one, Dim) and not isinstance(other, Dim) and one == other


def compatible(one: Size, other: Size) -> bool:
    """Whether two sizes may be equal."""
    (a, b), (c, d) = limits(one), limits(other)
    return not (
        (b is not None and c is not None and b < c) or (d is not None and a is not None and d < a)
    )


def merge(one: Size, other: Size) -> Size:
    """The size that both stand for; an error where they cannot be equal."""
    if isinstance(one, int):
        if other == one:
            return one
    elif not isinstance(other, int) and one == other:
        return one
    if not compatible(one, other):
        raise IRError(f"sizes {one} and {other} differ")
    (a, b), (c, d) = limits(one), limits(other)
    low = a if c is None else c if a is None else max(a, c)
    high = b if d is None else d if b is None else min(b, d)
    symbols = [size.symbol for size in (one, other) if isinstance(size, Dim)]
    return interval(low, high, next((symbol for symbol in symbols if symbol is not None), None))


def union(one: Size, other: Size) -> Size:
    """What is known of a size that is one or the other."""
    if one == other:
        return one
    (a, b), (c, d) = limits(one), limits(other)
    low = None if a is None or c is None else min(a, c)
    return interval(low, None if b is None or d is None else max(b, d))


def _combine(
    one: Size, other: Size, rule: Callable[[Expression, Expression], Expression]
) -> Expression | None:
    """The symbol of a result; None unless both operands have one or are numbers."""
    pair = []
    for size in (one, other):
        if isinstance(size, Dim):
            if size.symbol is None:
                return None
            pair.append(size.symbol)
        else:
            pair.append(Expression.number(int(size)))
    return rule(*pair).if_short()


def _corners(
    one: tuple[int | None, int | None], other: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """Limits of a product, from the products of the limits."""
    infinite = float("inf")
    a, b = (-infinite if one[0] is None else one[0]), (infinite if one[1] is None else one[1])
    c, d = (
        (-infinite if other[0] is None else other[0]),
        (infinite if other[1] is None else other[1]),
    )
    corners = [0 if x == 0 or y == 0 else x * y for x in (a, b) for y in (c, d)]
    low, high = min(corners), max(corners)
    return (
        None if low == -infinite else int(low),
        None if high == infinite else int(high),
    )


class NotKnownError(IRError):
    """A rule asked for what is not known of a shape."""


class UnknownRankError(NotKnownError):
    """A rule asked for the sizes of a shape whose rank is unknown."""


class Shape:
    """Sizes in order, or (``Shape.UNKNOWN``) not even their number. Equals a tuple of sizes."""

    __slots__ = ("_sizes",)

    UNKNOWN: Shape

    def __init__(self, sizes: Iterable[Size] | None = ()) -> None:
        self._sizes: tuple[Size, ...] | None = None
        if sizes is None:
            return
        row = sizes if isinstance(sizes, tuple) else tuple(islice(sizes, MOST_AXES + 1))
        if len(row) > MOST_AXES:
            many = f"{len(row)}" if row is sizes else f"more than {MOST_AXES}"
            raise IRError(f"the shape has {many} axes, the most are {MOST_AXES}")
        for size in row:
            # Products of products soon have more digits than memory holds.
            if isinstance(size, int) and not 0 <= size <= LARGEST:
                if size < 0:
                    raise IRError(f"the shape has a size of {size}, the least is 0")
                raise IRError(f"the shape has a size of {size.bit_length()} bits, the most are 63")
        self._sizes = row

    @classmethod
    def of_rank(cls, rank: int | None) -> Shape:
        """A shape of which only the rank is known."""
        return cls(None if rank is None else any_sizes(rank))

    @classmethod
    def of(cls, given: ShapeLike | None) -> Shape:
        """A shape from what a caller may give: text such as ``1,3,H,2..10``, or a list of sizes.

        In a list, -1 and None are unknown sizes, and texts are read as they are in a text.
        """
        if isinstance(given, Shape):
            return given
        try:
            if isinstance(given, str):
                return cls.parse(given, symbols=True)
            return cls(given if given is None else map(_size_of, given))
        except IRError:
            raise
        except (TypeError, ValueError) as error:
            message = f"{given!r} is no shape" if isinstance(error, TypeError) else str(error)
            hint = 'a shape is text such as "1,3,?", or a list of sizes'
            raise UsageError(message, hint=hint) from None

    @classmethod
    def parse(cls, text: str, *, symbols: bool = False) -> Shape:
        """Read OpenVINO's spelling of a partial shape, such as ``1,3,2..10,?``.

        Refuses what OpenVINO misreads silently (``-2``, ``5..2``, ``1..-1``, numbers beyond 64
        bits) or refuses (``1 .. 4``). With ``symbols``, as people write it: blanks may stand in an
        interval, and a word stands for a named unknown size.
        """
        body = text.strip()
        if body.startswith("[") and body.endswith("]"):
            body = body[1:-1].strip()
        elif body[:1] == "[" or body[-1:] == "]":
            raise ValueError(f'shape "{text}" has half a bracket')
        if body == "...":
            return cls.UNKNOWN
        if not body:
            return cls(())
        return cls(_parse_size(field.strip(), text, symbols) for field in body.split(","))

    @property
    def rank(self) -> int | None:
        """Number of axes, None where it is unknown."""
        return None if self._sizes is None else len(self._sizes)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The sizes; an error where the rank is unknown."""
        if self._sizes is None:
            raise UnknownRankError("the rank of the shape is not known")
        return self._sizes

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return self._sizes is not None and Dim not in map(type, self._sizes)

    @property
    def static(self) -> tuple[int, ...]:
        """The sizes as numbers; an error where one is unknown."""
        sizes = self._sizes
        if sizes is None or Dim in map(type, sizes):
            raise NotKnownError(f"shape {self} is not known exactly")
        if _INT.issuperset(map(type, sizes)):
            return cast("tuple[int, ...]", sizes)
        return tuple([int(size) for size in sizes if not isinstance(size, Dim)])

    @property
    def count(self) -> Size:
        """Number of elements."""
        product: Size = 1
        for size in self.sizes:
            product = product * size
        return product

    def merge(self, other: Shape) -> Shape:
        """The shape both stand for; an error where they cannot be equal."""
        if self._sizes is None:
            return other
        if other._sizes is None:
            return self
        if len(self._sizes) != len(other._sizes):
            ranks = f"{len(self._sizes)} and {len(other._sizes)}"
            raise IRError(f"shapes [{self}] and [{other}] differ in rank: {ranks}")
        try:
            return Shape(
                merge(one, two) for one, two in zip(self._sizes, other._sizes, strict=True)
            )
        except IRError:
            raise IRError(f"shapes {self} and {other} differ") from None

    def with_size(self, axis: int, size: Size) -> Shape:
        """The same shape with another size on one axis."""
        sizes = list(self.sizes)
        sizes[axis] = size
        return Shape(sizes)

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Size]:
        return iter(self.sizes)

    @overload
    def __getitem__(self, index: int) -> Size: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Size, ...]: ...
    def __getitem__(self, index: int | slice) -> Size | tuple[Size, ...]:
        try:
            return self.sizes[index]
        except IndexError:
            raise IRError(f"axis {index} is beyond the {len(self)} axes of {self}") from None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self._sizes == other._sizes
        return isinstance(other, (tuple, list)) and self._sizes == tuple(other)

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __str__(self) -> str:
        return "..." if self._sizes is None else ",".join(str(size) for size in self._sizes)

    def __repr__(self) -> str:
        return f"Shape({self})"

    @property
    def spelling(self) -> str:
        """OpenVINO's spelling, for files: like ``str`` but without symbols."""
        if self._sizes is None:
            return "..."
        return ",".join(
            str(Dim(s.low, s.high)) if isinstance(s, Dim) else str(s) for s in self._sizes
        )


Shape.UNKNOWN = Shape(None)

#: A shape as a caller may give it.
ShapeLike: TypeAlias = "Shape | str | Iterable[Size | str | None]"

_RANGE = re.compile(r"([0-9]*)\s*\.\.\s*([0-9]*)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def _size_of(given: Any) -> Size:
    """A size as a caller may give it."""
    if given is None or isinstance(given, Dim):
        return ANY if given is None else given
    if isinstance(given, str):
        return _parse_size(given.strip(), given, symbols=True)
    size = index(given)
    return ANY if size == -1 else size


def _parse_size(field: str, text: str, symbols: bool) -> Size:
    """Read one size of a shape's text."""
    if field in ("?", "-1"):
        return ANY
    if field.isascii() and field.isdigit():
        return _digits(field, text)
    found = _RANGE.fullmatch(field)
    if found and (symbols or not any(map(str.isspace, field))):
        low = _digits(found[1], text) if found[1] else 0
        high = _digits(found[2], text) if found[2] else None
        if high is not None and high < low:
            raise ValueError(f'"{field}" in shape "{text}" ends before it begins')
        return interval(low, high)
    if symbols and _WORD.fullmatch(field):
        return Dim(0, None, field)
    if not field:
        raise ValueError(f'shape "{text}" has an empty field')
    blanks = " without blanks" if found else ""
    raise ValueError(
        f'"{field}" in shape "{text}" is not a size (a number, ?, or low..high{blanks})'
    )


def _digits(digits: str, text: str) -> int:
    number = int(digits) if len(digits) <= 30 else LARGEST + 1
    if number >= LARGEST:
        raise ValueError(f'"{digits}" in shape "{text}" does not fit 64 bits')
    return number
