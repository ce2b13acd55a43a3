"""Replace `put(put(x, r0, 0), r1, 1)`, and so on for all rows of x, by `Concat(r0, r1, ...)`.

A row is put there by `ScatterUpdate`, or by `Concat` of what is before it, itself and what is
behind it. Loops whose turns are known have a tensor go from turn to turn so, copied in each.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ....layers.base import Op
from ..plan import Node, Plan, Value, constant, reshaping


class _Run(NamedTuple):
    """Some rows of a value."""

    value: Value
    first: int
    stop: int


class _Rows(NamedTuple):
    """Of which rows of others a value consists along an axis; whether some were put there."""

    axis: int
    runs: list[_Run]
    put: bool


def write_once(plan: Plan) -> None:
    """Apply the pass."""
    known: dict[Value, _Rows] = {}
    for node in plan.nodes:
        found = _rows(node, known)
        if found is not None:
            known[node.outputs[0]] = found
    replaced: dict[Node, list[Node]] = {}
    for node in plan.nodes:
        rows = known.get(node.outputs[0]) if node.outputs else None
        if rows is None or not rows.put or not _is_last(node.outputs[0], rows, known):
            continue
        if rows.runs and not any(_is_loose(run.value) for run in rows.runs):
            replaced[node] = _joined(node, rows)
    plan.replace(replaced)
    if replaced:
        plan.prune()


def _rows(node: Node, known: dict[Value, _Rows]) -> _Rows | None:
    """Of which rows what a node gives consists, if it only puts rows together."""
    if not node.op.is_standard or len(node.outputs) != 1 or node.epilogue:
        return None
    source, (output,) = node.inputs[0] if node.inputs else None, node.outputs
    if source is None or not output.shape:
        return None
    if output.inferred is not None and not output.inferred.shape.is_static:
        return None
    kind = node.op.xml_type
    if kind == "ScatterUpdate":
        return _put(node, known)
    if kind == "Broadcast" and source.shape == output.shape and not _is_loose(source):
        return known.get(source)
    if kind == "Concat":
        axis = node.op.axis % len(output.shape)  # type: ignore[attr-defined]  # Concat has it
        parts = [_along(value, axis, known) for value in node.inputs]
        if any(part is None for part in parts):
            return None
        runs = [run for part in parts if part is not None for run in part.runs]
        return _Rows(axis, _merged(runs), any(part is not None and part.put for part in parts))
    return _cut(node, known) if kind == "Slice" else None


def _along(value: Value, axis: int, known: dict[Value, _Rows]) -> _Rows | None:
    """The rows of a value along an axis: of others, or its own."""
    rows = known.get(value)
    if rows is not None and rows.axis == axis:
        return rows
    if axis >= len(value.shape):
        return None
    return _Rows(axis, [_Run(value, 0, value.shape[axis])] if 0 not in value.shape else [], False)


def _put(node: Node, known: dict[Value, _Rows]) -> _Rows | None:
    """Rows of which some are those of an update."""
    data, indices, updates, axes = node.inputs
    if indices.constant is None or axes.constant is None or not data.shape:
        return None
    axis, places = int(axes.array.reshape(())) % len(data.shape), indices.array.ravel()
    rows = _along(data, axis, known)
    if rows is None or len(updates.shape) != len(data.shape) or len(places) != 1:
        return None
    place, size = int(places[0]), data.shape[axis]
    if not -size <= place < size:
        return None  # which its definition refuses
    place %= size
    runs = [
        *_between(rows.runs, 0, place),
        _Run(updates, 0, 1),
        *_between(rows.runs, place + 1, data.shape[axis]),
    ]
    return _Rows(axis, _merged(runs), put=True)


def _cut(node: Node, known: dict[Value, _Rows]) -> _Rows | None:
    """The rows of a run of rows: of a value that is made of others."""
    data, *words = node.inputs
    rows = known.get(data)
    if rows is None or len(words) != 4 or any(word.constant is None for word in words):
        return None
    begins, ends, steps, axes = (word.array.ravel().tolist() for word in words)
    found = (0, data.shape[rows.axis])
    for begin, end, step, axis in zip(begins, ends, steps, axes, strict=True):
        size = data.shape[axis]
        run = range(*slice(begin, end, step).indices(size)) if step == 1 else None
        if run is None or (axis % len(data.shape) != rows.axis and len(run) != size):
            return None
        if axis % len(data.shape) == rows.axis:
            found = (run.start, max(run.start, run.stop))
    return _Rows(rows.axis, _between(rows.runs, *found), put=True)


def _between(runs: list[_Run], first: int, stop: int) -> list[_Run]:
    """The rows from one place to another."""
    found, begin = [], 0
    for run in runs:
        size = run.stop - run.first
        low, high = max(first, begin), min(stop, begin + size)
        if low < high:
            shift = run.first - begin
            found.append(_Run(run.value, low + shift, high + shift))
        begin += size
    return found


def _merged(runs: list[_Run]) -> list[_Run]:
    """Runs, of which none goes on where one before it ends."""
    found = runs[:1]
    for before, run in pairwise(runs):
        if run.value is before.value and run.first == before.stop:
            found[-1] = found[-1]._replace(stop=run.stop)
        else:
            found.append(run)
    return found


def _is_last(value: Value, rows: _Rows, known: dict[Value, _Rows]) -> bool:
    """Whether somebody wants a value for more than to put other rows there."""
    return value.is_output or any(
        (after := known.get(user.outputs[0]) if user.outputs else None) is None
        or not after.put
        or after.axis != rows.axis
        for user in value.users
    )


def _is_loose(value: Value) -> bool:
    """Whether a value has a place of its own at each call."""
    return value.is_outside and value.constant is None


def _joined(node: Node, rows: _Rows) -> list[Node]:
    """One Concat of all rows."""
    (output,) = node.outputs
    node.detach()
    found, parts = [], []
    slicing = Op.registry["Slice", 8].read({})
    for value, first, stop in rows.runs:
        size = value.shape[rows.axis]
        if (first, stop) == (0, size):
            parts.append(value)
            continue
        shape = list(value.shape)
        shape[rows.axis] = stop - first
        part = Value(tuple(shape), value.type, element=value.element)
        words = [constant(np.array([n])) for n in (first, stop, 1, rows.axis)]
        found.append(Node(node.layer, slicing, [value, *words], [part]))
        parts.append(part)
    if len(parts) == 1:
        return [*found, reshaping(node.layer, parts[0], output)]
    op = Op.registry["Concat", 1].read({"axis": str(rows.axis)})
    return [*found, Node(node.layer, op, parts, [output])]
