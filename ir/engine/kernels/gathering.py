"""Slices and elements by their indices, prepared; evenly spaced ones are a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....schemas import Array
from ..plan import Node
from ..workers import Part, spans
from .copies import SMALL, copied


def slices(node: Node, threads: int) -> list[list[Part]] | None:
    """The steps of a Gather; where an index is not there, the definition says what to do."""
    data, indices, axes = (value.array for value in node.inputs)
    op: Any = node.op
    target, at = node.outputs[0].array, node.layer.at
    axis = node.inputs[2].constant
    if axis is None or getattr(op, "batch_dims", False) or not target.flags.c_contiguous:
        return None
    place = int(axis.reshape(())) % data.ndim
    size = data.shape[place]
    if node.inputs[1].constant is not None and _are_within(indices, size):
        steps = spacing(indices) if node.inputs[0].constant is None else None
        if steps is not None:
            step, first = data.strides[place], int(indices.flat[0])
            view = as_strided(
                data[(slice(None),) * place + (slice(first, None),)],
                target.shape,
                (*data.strides[:place], *(step * n for n in steps), *data.strides[place + 1 :]),
                writeable=False,
            )
            return [copied(view, target, threads)]
        if place == 0 and indices.ndim:
            return [[_taken(data, indices[some], target[some]) for some in _runs(target, threads)]]

    def run() -> None:
        if _are_within(indices, size):
            np.take(data, indices, place, out=target, mode="clip")
            return
        with at():
            np.copyto(target, op.run(data, indices, axes)[0])

    return [[run]]


def elements(node: Node, threads: int) -> list[list[Part]] | None:
    """The steps of a GatherElements; where an index is not there, the definition says so."""
    data, indices = (value.array for value in node.inputs)
    op: Any = node.op
    target, at = node.outputs[0].array, node.layer.at
    place = op.axis % data.ndim
    size = data.shape[place]
    if not data.flags.c_contiguous or not target.flags.c_contiguous or not target.size:
        return None
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
        steps = spacing(places)
        if steps is not None:
            view = as_strided(
                flat[int(places.flat[0]) :],
                target.shape,
                [step * data.itemsize for step in steps],
                writeable=False,
            )
            return [copied(view, target, threads)]
        made = target.reshape(-1)
        listed = places.reshape(-1)
        return [[_taken(flat, listed[some], made[some]) for some in _runs(made, threads)]]

    def run() -> None:
        if _are_within(indices, size):
            places = np.multiply(indices, jumps[place], dtype=np.intp)
            np.add(places, starts, out=places)
            np.take(flat, places, out=target, mode="clip")
            return
        with at():
            np.copyto(target, op.run(data, indices)[0])

    return [[run]]


def spacing(indices: Array) -> list[int] | None:
    """By how much indices grow along each axis; None where that is not the same everywhere."""
    if not indices.size:
        return None
    first = int(indices.flat[0])
    steps, even = [], np.full((), first, np.intp)
    for axis, count in enumerate(indices.shape):
        second = (0,) * axis + (1,) + (0,) * (indices.ndim - axis - 1)
        steps.append(int(indices[second]) - first if count > 1 else 0)
        line = np.arange(count) * steps[-1]
        even = even + line.reshape(-1, *[1] * (indices.ndim - axis - 1))
    return steps if np.array_equal(even, indices) else None


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
