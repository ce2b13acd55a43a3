"""Large nodes outside the arena, cut among threads: each piece by the operation's own definition.

Shapes alone tell how they are cut, so that any number of threads gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

import numpy as np

from ....layers.base import Kernel, Op
from ....layers.budget import budget, require
from ....schemas import Array
from ..plan import UNARY, claimed_type
from ..workers import lanes, side_by_side, spans
from .activations import leaked
from .loose_windows import convolution, met

#: So many products of numbers take longer than threads take to begin.
LONG = 1 << 25
#: So many numbers do, where little is done to each.
MUCH = 1 << 18

#: What computes each piece of an output, and the axis along which they are joined.
Pieces: TypeAlias = "tuple[list[Callable[[], tuple[Array, ...]]], int]"


def shared(op: Any, others: Sequence[Array | None], threads: int, general: Kernel) -> Kernel:
    """What computes an operation, on several threads where that is large.

    ``others`` are its inputs but for the first, where they are known beforehand.
    """
    operation: type[Op] = type(op)
    kind = claimed_type(operation)
    known = [other for other in others if other is not None]
    if len(known) < len(others):
        return general
    if kind == "Convolution":
        return convolution(op, known[0], threads, general)
    if kind == "GroupConvolution":
        return _joining(op, _by_rows, threads, general)
    if kind in ("ConvolutionBackpropData", "GroupConvolutionBackpropData"):
        return _joining(op, _by_images, threads, general)
    if kind == "PReLU" and known[0].size == 1 and 0 < known[0].flat[0] <= 1:
        return _leaking(known[0].reshape(()), threads, general)
    if kind in UNARY and all(other.size == 1 for other in known):
        return _each(op, threads, general)
    return general


def _joining(
    op: Any,
    cut: Callable[[Any, Kernel, Array, Array, tuple[Array, ...], int], Pieces | None],
    threads: int,
    general: Kernel,
) -> Kernel:
    """A convolution cut into pieces; ``general`` where it is small, or somebody counts bytes."""

    def run(data: Array, filters: Array, *rest: Array) -> tuple[Array, ...]:
        channels = max(data.shape[1], 1) if data.ndim > 2 else 1
        amount = data.size // channels * filters.size
        if data.dtype != np.float32 or amount < LONG or budget().max_memory is not None:
            return general(data, filters, *rest)
        found = cut(op, general, data, filters, rest, lanes(amount))
        if found is None:
            return general(data, filters, *rest)
        pieces, axis = found
        made: list[Any] = [None] * len(pieces)
        side_by_side(
            [partial(_put, made, place, one) for place, one in enumerate(pieces)], threads
        )
        require(sum(piece.nbytes for piece in made))
        return (np.concatenate(made, axis),)

    return run


def _put(made: list[Any], place: int, piece: Callable[[], tuple[Array, ...]]) -> None:
    made[place] = piece()[0]


def _by_images(
    op: Any, general: Kernel, data: Array, filters: Array, rest: tuple[Array, ...], count: int
) -> Pieces | None:
    """Some images each; of few, some of the channels that are made, where these are no groups."""
    if len(data) >= count:
        images = [data[slice(*run)] for run in spans(len(data), count)]
        return [partial(general, some, filters, *rest) for some in images], 0
    if filters.ndim > data.ndim or filters.shape[1] < count:
        return None
    outer = [filters[:, slice(*run)] for run in spans(filters.shape[1], count)]
    return [partial(general, data, some, *rest) for some in outer], 1


def _by_rows(
    op: Any, general: Kernel, data: Array, filters: Array, rest: tuple[Array, ...], count: int
) -> Pieces | None:
    """Some images each; of few, some of the rows that are made."""
    if len(data) >= count:
        return _by_images(op, general, data, filters, rest, count)
    kernel = filters.shape[-(data.ndim - 2) :]
    pads, stops = op.settled(data, kernel)
    if stops[0] < count or not prod(stops):
        return None
    found: list[Callable[[], tuple[Array, ...]]] = []
    for run in spans(stops[0], count):
        rows, missing = met(op, data, kernel, pads, run)
        around = [missing, *pads[1:]]
        changes = {
            "auto_pad": "explicit",
            "pads_begin": tuple(before for before, _ in around),
            "pads_end": tuple(after for _, after in around),
        }
        piece = op.model_copy(update=changes)
        found.append(partial(piece.run, data[:, :, rows], filters))
    return found, 2


def _leaking(slope: Array, threads: int, general: Kernel) -> Kernel:
    """What is larger of each number and its product with a slope, which is one at most."""

    def part(numbers: Array, out: Array) -> None:
        leaked(numbers, slope, out)

    def run(data: Array, given: Array) -> tuple[Array, ...]:
        if data.dtype != np.float32 or not data.flags.c_contiguous:
            return general(data, given)
        return _run_by_run(part, data, max(1, data.size // MUCH), threads)

    return run


def _each(op: Any, threads: int, general: Kernel) -> Kernel:
    """What is done to each number by itself."""

    def run(data: Array, *rest: Array) -> tuple[Array, ...]:
        if data.dtype != np.float32 or data.size < MUCH or not data.flags.c_contiguous:
            return general(data, *rest)

        def part(numbers: Array, out: Array) -> None:
            out[...] = op.run(numbers, *rest)[0]

        return _run_by_run(part, data, max(2, lanes(20 * data.size)), threads)

    return run


def _run_by_run(
    part: Callable[[Array, Array], None], data: Array, count: int, threads: int
) -> tuple[Array, ...]:
    """What is made of numbers, so many runs of them side by side."""
    require(data.nbytes)
    made = np.empty_like(data)
    given, out = data.reshape(-1), made.reshape(-1)
    runs = [slice(*run) for run in spans(data.size, count)]
    side_by_side([partial(part, given[run], out[run]) for run in runs], threads)
    return (made,)
