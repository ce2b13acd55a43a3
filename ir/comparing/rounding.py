"""How far results are apart, and whether rounding alone may have taken them there.

A decision (a step of a FakeQuantize, the larger of two) between values that rounding tells apart
makes results differ by far more than a rounding; what comes after takes that on. So a model is
run with all that it computes shaken in the last digits: what moves as far says nothing of a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...layers.budget import within
from ...layers.leftovers import tidy
from ...schemas import Array, ElementType
from ...schemas.numbers import integers_apart
from ...schemas.packing import plain_texts
from ..document import Layer, Model
from ..execution import Interpreter, InterpreterStep, State, check_inputs, infer_for
from .references import ENDS, REFUSALS, TOLERANCES, from_constants

#: By which part of the tolerance values are shaken (another runtime fuses layers, and may never
#: hold exactly what it tells).
_SHAKE = 0.5
#: How often a whole model is run on shaken values, and how many times as far as it moves then two
#: results may be apart; when they are so many times as far apart, two runs have said enough.
_RUNS, _TIMES, _FAR = 4, 2, 50
#: How many times as far as those of a layer the outputs of a whole model may be off.
MODEL_TIMES = 4
#: Elements that are compared at a time.
_PIECE = 1 << 14
#: Up to here a float of 64 bits tells whole numbers apart, and up to there it has their squares.
_TOLD, _SQUARED = 1 << 53, 1e100


class Shake:
    """Moves values in their last digits; every other turn goes against the one before.

    A value next to an edge goes over it in one of the two.
    """

    def __init__(self, turn: int) -> None:
        self.random = np.random.default_rng(turn // 2)
        self.sign = 1 if turn % 2 else -1

    def whole(self, base: Array) -> Array:
        """The values moved by a part of what their type allows; of other types, as they are."""
        allowed = TOLERANCES.get(ElementType.of(base.dtype))
        return base if allowed is None or not base.size else self(base, allowed)

    def __call__(self, base: Array, allowed: float) -> Array:
        """The values moved by a part of what they are allowed to be off."""
        # A sum inside is rounded as its largest part is.
        moves = np.asarray(np.abs(base) + base.dtype.type(_level(base, base)))
        moves *= base.dtype.type(self.sign * _SHAKE * allowed)
        coins = np.frombuffer(self.random.bytes(-(-base.size // 8)), np.uint8)
        heads = np.unpackbits(coins, count=base.size).view(np.bool_).reshape(base.shape)
        np.negative(moves, out=moves, where=heads)
        moved = np.asarray(base + moves)
        # The largest numbers have nowhere to go: that they overflow says nothing.
        return moved if np.isfinite(moved).all() else np.where(np.isfinite(moved), moved, base)


@tidy
def may_be_rounding(
    model: Model,
    sample: Sequence[Array],
    found: Sequence[Array],
    wanted: Sequence[Array],
    max_seconds: float | None = None,
    ends: Sequence[Layer] | None = None,
    state: State | None = None,
) -> bool:
    """Whether outputs are no farther apart than those of a run whose values are shaken.

    Outputs are what ``ends`` give, or the Results of the model; variables begin with ``state``.
    """
    ends, state = model.results if ends is None else ends, {} if state is None else state
    moved = [np.zeros(2) for _ in wanted]
    apart = [
        np.zeros(2) if error(one, right) <= allowed_for(right) else _distance(one, right)
        for one, right in zip(found, wanted, strict=True)
    ]
    fixed = from_constants(model)
    with within(None, max_seconds):
        arrays = check_inputs(model, list(sample))
        inferred = infer_for(model, arrays, state)
        walk = Interpreter(model, [(layer, 0) for layer in ends], inferred=inferred)
        steps = walk.steps
        for turn in range(_RUNS):
            shake = Shake(turn)
            walk.steps = [
                step
                if step.kernel is None or step.layer.type in ENDS or step.layer.id in fixed
                else step._replace(kernel=_shaken(step, shake.whole))
                for step in steps
            ]
            try:
                outputs = walk(
                    {key: shake.whole(array) for key, array in arrays.items()}, {**state}
                )
            except REFUSALS:
                return False
            for number, layer in enumerate(ends):
                one, right = outputs[layer.id][0], wanted[number]
                if one.shape != right.shape:
                    return True  # how many there are is decided by such values
                moved[number] = np.maximum(moved[number], _distance(one, right))
            if _reach(apart, moved, _TIMES):
                return True
            # By then what stands next to an edge went over it.
            if turn % 2 and not _reach(apart, moved, _FAR):
                return False
    return False


def _reach(apart: Sequence[Array], moved: Sequence[Array], times: int) -> bool:
    """Whether everything moved as far as outputs are apart, or some times less."""
    return all(bool((one <= times * other).all()) for one, other in zip(apart, moved, strict=True))


def allowed_for(wanted: Array) -> float:
    """How far an output of a whole model may be off."""
    return MODEL_TIMES * TOLERANCES.get(ElementType.of(wanted.dtype), 0.0)


def _shaken(
    step: InterpreterStep, shake: Callable[[Array], Array]
) -> Callable[..., tuple[Array, ...]]:
    """A kernel whose outputs are shaken."""
    assert step.kernel is not None
    kernel = step.kernel
    return lambda *inputs: tuple(map(shake, kernel(*inputs)))


def _distance(one: Array, other: Array) -> Array:
    """The largest difference, and the root of the mean square of all of them."""
    if one.shape != other.shape or "T" in (one.dtype.kind, other.dtype.kind):
        return np.full(2, np.inf)
    x, y = real(one), real(other)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(all="ignore"):
        off = np.where(same, 0.0, np.abs(x - y))
    if not off.size:
        return np.zeros(2)
    if not np.isfinite(off).all():
        return np.full(2, np.inf)
    return np.array([off.max(), np.sqrt(np.mean(np.square(off)))])


def identical(one: Array, two: Array) -> bool:
    """Whether two arrays hold the same, NaN being what NaN is."""
    if one is two:
        return True
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype.kind not in "fc" or one.size <= _PIECE:
        return bool(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc"))
    # NumPy would copy both where they are no NaN.
    pairs = _pieces(one, two) if one.dtype.kind == "f" else [(one, two)]
    return all(bool(np.array_equal(x, y, equal_nan=True)) for x, y in pairs)


def same_bits(one: Array, two: Array) -> bool:
    """Whether two arrays are identical, and a zero has the sign of the other."""
    if not identical(one, two):
        return False
    return one is two or one.dtype.kind != "f" or np.array_equal(np.signbit(one), np.signbit(two))


def error(found: Array, wanted: Array) -> float:
    """The largest difference, relative to the value there and the root of the mean square."""
    if found.shape != wanted.shape:
        return float("inf")
    if _are_beyond(found, wanted):
        return _exact_error(found, wanted)
    if found.dtype.kind == "T" or wanted.dtype.kind == "T":
        return 0.0 if np.array_equal(plain_texts(found), plain_texts(wanted)) else float("inf")
    if not found.size or identical(found, wanted):
        return 0.0
    worst = 0.0
    with np.errstate(all="ignore"):
        for x, y in _pieces(found, wanted):
            finite = np.isfinite(x) & np.isfinite(y)
            if not (finite | (x == y) | (np.isnan(x) & np.isnan(y))).all():
                return float("inf")
        level = _level(found, wanted)
        for x, y in _pieces(found, wanted):
            finite = np.isfinite(x) & np.isfinite(y) & (x != y)
            off, size = np.abs(x - y)[finite], np.abs(y[finite]) + level
            if not (np.isfinite(off).all() and np.isfinite(size).all()):
                off, size = np.abs(x / 2 - y / 2)[finite], np.abs(y[finite]) / 2 + level / 2
            relative = off / np.where(size > 0, size, 1.0)
            worst = max(worst, float(relative.max(initial=0.0)))
    return worst


def _are_beyond(found: Array, wanted: Array) -> bool:
    """Whether both are integers, and there are some that are to be told apart exactly."""
    whole = found.dtype.kind in "iu" and wanted.dtype.kind in "iu"
    return whole and (_is_beyond(found) or _is_beyond(wanted))


def _is_beyond(array: Array) -> bool:
    """Whether there are integers that 64 bits of a float do not tell apart."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or not array.size:
        return False
    return int(array.max()) > _TOLD or int(array.min()) < -_TOLD


def _exact_error(found: Array, wanted: Array) -> float:
    """``error`` of integers that are to be told apart."""
    sizes = np.abs(real(wanted)) + _level(found, wanted)
    return float(np.max(integers_apart(found, wanted) / np.where(sizes > 0, sizes, 1.0)))


def _pieces(one: Array, other: Array) -> Iterator[tuple[Array, Array]]:
    """Two arrays of one shape piece by piece: in 64 bits they would take far more memory.

    What does not lie in one row is gone through axis by axis, by as many steps at once as make a
    piece: in one row it would be copied.
    """
    if one.flags.c_contiguous and other.flags.c_contiguous:
        ones, others = one.reshape(-1), other.reshape(-1)
        for start in range(0, ones.size, _PIECE):
            yield real(ones[start : start + _PIECE]), real(others[start : start + _PIECE])
    elif one.size <= _PIECE:
        yield real(one).reshape(-1), real(other).reshape(-1)
    else:
        steps = max(1, _PIECE // max(one[0].size, 1))
        for start in range(0, len(one), steps):
            some = slice(start, start + steps) if steps > 1 else start
            yield from _pieces(one[some], other[some])


def endless(array: Array) -> int:
    """How many values are NaN or infinite."""
    return sum(int(np.count_nonzero(~np.isfinite(x))) for x, _ in _pieces(array, array))


def farthest(found: Array, wanted: Array) -> int:
    """Where in the flat array the largest difference is; endless where one is no number."""
    worst, place, start = -1.0, 0, 0
    for x, y in _pieces(found, wanted):
        with np.errstate(all="ignore"):  # infinite in both, or far beyond
            off = np.abs(x - y)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        off = np.where(same, 0, np.where(np.isnan(off), np.inf, off))
        if off.max() > worst:
            worst, place = float(off.max()), start + int(off.argmax())
        start += len(x)
    return place


def too_far(found: Array, wanted: Array, allowed: float) -> Array:
    """Where in the flat array values are farther apart than is allowed, as ``error`` has it."""
    rows, start = [], 0
    level = _level(found, wanted)
    if _are_beyond(found, wanted):
        off = integers_apart(found, wanted).reshape(-1)
        return np.flatnonzero(off > allowed * (np.abs(real(wanted)).reshape(-1) + level))
    with np.errstate(all="ignore"):
        for x, y in _pieces(found, wanted):
            off = np.abs(x - y)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            near = np.isfinite(off) & (off <= allowed * (np.abs(y) + level))
            rows.append(start + np.flatnonzero(~(same | near)))
            start += len(x)
    return np.concatenate(rows) if rows else np.zeros(0, np.intp)


def _level(found: Array, wanted: Array) -> float:
    """The root of the mean square of what is finite in both."""
    most, total, count = 0.0, 0.0, 0
    for x, y in _pieces(found, wanted):
        finite = y[np.isfinite(x) & np.isfinite(y)]
        most, count = max(most, float(np.abs(finite).max(initial=0))), count + len(finite)
    if not most:
        return 0.0
    # Of squares of the largest numbers there would be none.
    by = most if most > _SQUARED else 1.0
    for x, y in _pieces(found, wanted):
        finite = y[np.isfinite(x) & np.isfinite(y)]
        total += float(np.square(finite / by).sum())
    return by * (total / count) ** 0.5


def real(array: Array) -> Array:
    """The numbers in 64 bits, in which they are compared."""
    return np.asarray(array, np.float64)


def has_nan(array: Array) -> bool:
    """Whether an array has what is no number."""
    # Types that NumPy has not are of the kind V.
    return array.dtype.kind in "fV" and bool(np.isnan(array).any())
