"""Slices and elements taken or replaced by their indices; evenly spaced ones are a copy."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..plan import Node
from ..workers import Part, spans
from .blocks import Scratch
from .calls import call
from .copies import SMALL, copied

#: Grids of more axes than this are taken as they come.
MOST = 6


def slices(node: Node, threads: int) -> list[list[Part]] | None:
    """The steps of a Gather; where an index is not there, the definition says what to do."""
    data, indices, axes = (value.array for value in node.inputs)
    op: Any = node.op
    target, at = node.outputs[0].array, node.layer.at
    axis = node.inputs[2].constant
    if axis is None or getattr(op, "batch_dims", False) or not target.flags.c_contiguous:
        return None
    if indices.dtype.kind not in "iu":
        return None
    place = int(axis.reshape(())) % data.ndim
    size = data.shape[place]
    if node.inputs[1].constant is not None and _are_within(indices, size):
        found = grid(indices) if node.inputs[0].constant is None else None
        if found is not None:
            step, outer = data.strides[place], data.strides[:place]
            view = as_strided(
                data[(slice(None),) * place + (slice(found.first, None),)],
                (*data.shape[:place], *found.sizes, *data.shape[place + 1 :]),
                (*outer, *(step * n for n in found.steps), *data.strides[place + 1 :]),
                writeable=False,
            )
            return [copied(view, target.reshape(view.shape), threads)]
        if place == 0 and indices.ndim:
            return [[_taken(data, indices[some], target[some]) for some in _runs(target, threads)]]

    def run() -> None:
        if _are_within(indices, size):
            np.take(data, indices, place, out=target, mode="clip")
            return
        with at():
            np.copyto(target, op.run(data, indices, axes)[0])

    return [[run]]


def elements(node: Node, threads: int, scratch: Scratch) -> list[list[Part]] | None:
    """The steps of a GatherElements; where an index is not there, the definition says so."""
    data, indices = (value.array for value in node.inputs)
    op: Any = node.op
    target, at = node.outputs[0].array, node.layer.at
    place = op.axis % data.ndim
    size = data.shape[place]
    if not target.flags.c_contiguous or not target.size or indices.dtype.kind not in "iu":
        return None
    before: list[list[Part]] = []
    if not data.flags.c_contiguous:
        if data.dtype != np.float32 or not data.size:
            return None
        scratch.shared.reset()
        room = scratch.shared.take(0, *data.shape)
        before, data = [copied(data, room, threads)], room
    flat = data.reshape(-1)
    # Where the elements before and after along the other axes are, in the data.
    jumps = [stride // data.itemsize for stride in data.strides]
    starts = np.zeros((), np.intp)
    for axis, count in enumerate(indices.shape):
        if axis != place:
            line = np.arange(count) * jumps[axis]
            starts = starts + line.reshape(-1, *[1] * (indices.ndim - axis - 1))
    if node.inputs[1].constant is not None:
        if not _are_within(indices, size, least=-size):
            return None
        wrapped = np.where(indices < 0, indices.astype(np.intp) + size, indices)
        places = wrapped * jumps[place] + starts
        found = grid(places)
        if found is not None:
            taken = found.of(flat, writeable=False)
            return [*before, copied(taken, target.reshape(found.sizes), threads)]
        # Runs of elements that lie side by side are taken as one.
        each = _run_of(places, data.shape[place + 1 :])
        listed = places.reshape(-1, each)[:, 0] // each
        rows, made = (x.reshape((-1, each) if each > 1 else -1) for x in (flat, target))
        parts = [_taken(rows, listed[some], made[some]) for some in _runs(made, threads)]
        return [*before, parts]

    def run() -> None:
        if _are_within(indices, size):
            places = np.multiply(indices, jumps[place], dtype=np.intp)
            np.add(places, starts, out=places)
            np.take(flat, places, out=target, mode="clip")
            return
        with at():
            np.copyto(target, op.run(data, indices)[0])

    return [*before, [run]]


def replaced(node: Node, threads: int) -> list[list[Part]] | None:
    """The steps of a ScatterNDUpdate at known places; None where the definition does it."""
    data, target = node.inputs[0].array, node.outputs[0].array
    indices, op = node.inputs[1].constant, node.op
    if indices is None or not indices.size or getattr(op, "reduction", "none") != "none":
        return None
    depth = indices.shape[-1]
    if not target.flags.c_contiguous or not target.size or not depth:
        return None
    outer, inner = data.shape[:depth], data.shape[depth:]
    if any(not _are_within(indices[..., axis], size) for axis, size in enumerate(outer)):
        return None
    places = indices[..., 0].astype(np.intp, copy=False)
    for axis, size in enumerate(outer[1:], 1):
        places = places * size + indices[..., axis]
    slots, updates = target.reshape(-1, *inner), node.inputs[2].array
    copy = copied(data, target, threads)
    found = grid(places)
    if found is None or not found.is_apart():
        listed, rows = places.reshape(-1), updates.reshape(-1, *inner)
        if not np.may_share_memory(rows, updates):
            return None
        return [copy, [call(slots.__setitem__, listed, rows)]]
    put = found.of(slots, writeable=True)
    rows = updates.reshape(put.shape)
    if not np.may_share_memory(rows, updates):
        return None
    whole = places.size == len(slots)
    return [*([] if whole else [copy]), copied(rows, put, threads)]


class Grid(NamedTuple):
    """Places one after the other, by so much apart along each axis."""

    first: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]

    def of(self, slots: Array, *, writeable: bool) -> Array:
        """What is at these places along the first axis."""
        return as_strided(
            slots[self.first :],
            (*self.sizes, *slots.shape[1:]),
            (*(step * slots.strides[0] for step in self.steps), *slots.strides[1:]),
            writeable=writeable,
        )

    def is_apart(self) -> bool:
        """Whether no place is there twice, as far as can be seen."""
        reach = 0
        for step, size in sorted(zip(self.steps, self.sizes, strict=True)):
            if step <= reach:
                return False
            reach += step * (size - 1)
        return True


def grid(indices: Array) -> Grid | None:
    """Indices as a grid, whatever their shape; None where they are none, or hardly one."""
    if not indices.size:
        return None
    line = indices.reshape(-1).astype(np.intp, copy=False)
    first = int(line[0])
    sizes: list[int] = []
    steps: list[int] = []
    while len(line) > 1:
        step = int(line[1] - line[0])
        ends = np.flatnonzero(np.diff(line) != step)
        run = int(ends[0]) + 1 if ends.size else len(line)
        if len(line) % run or len(sizes) == MOST:
            return None
        rows = line.reshape(-1, run)
        line = rows[:, 0]
        if (rows != line[:, None] + step * np.arange(run)).any():
            return None
        sizes.insert(0, run)
        steps.insert(0, step)
    return Grid(first, tuple(sizes), tuple(steps))


def _run_of(places: Array, inner: tuple[int, ...]) -> int:
    """The longest run of elements, of whole inner axes, that are asked for as they lie."""
    for begin in range(len(inner)):
        each = prod(inner[begin:])
        if places.shape[places.ndim - len(inner) + begin :] == inner[begin:] and each > 1:
            runs = places.reshape(-1, each)
            if not (runs[:, 0] % each).any() and (runs == runs[:, :1] + np.arange(each)).all():
                return each
    return 1


def _are_within(indices: Array, size: int, least: int = 0) -> bool:
    """Whether all indices are there."""
    return bool(not indices.size or (indices.min() >= least and indices.max() < size))


def _taken(data: Array, indices: Array, target: Array) -> Part:
    """A part that takes what is known to be there."""

    def run() -> None:
        np.take(data, indices, 0, out=target, mode="clip")

    return run


def _runs(target: Array, threads: int) -> list[slice]:
    """The parts of a target along its first axis."""
    pieces = threads if target.nbytes >= SMALL else 1
    return [slice(*run) for run in spans(len(target), pieces)]
