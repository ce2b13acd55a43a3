"""f(constants) → constant, where no bytes are added; so with ShapeOf where sizes are known.

Compressed weights stay compressed: what widens them is left to the runtime, and so is what half
precision is declared to hold, is not rounded to it when it runs, and would be as a constant. Parts
of a constant that together are no more than it are taken out together. Where there is little
room, all that leads from constants to a layer that needs more than them is done at once: its
outcome alone takes bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

import numpy as np

from ....layers.base import Op
from ....layers.casting import as_computed, computing
from ....layers.elementwise import Broadcasting, Unary
from ....layers.memory import run_within_memory
from ....schemas import Array, ElementType
from ...document import Layer
from ...storage import let_go, parts
from ..scratch import LARGE
from .readings import halves_of
from .rewriter import LAYER_BYTES, Rewriter, Rule, Value

_TYPES = frozenset(
    kind for kind in ElementType
    if kind.bits >= 8 and not kind.value.startswith("f8") and kind not in ("bf16", "string")
) | {ElementType.BOOLEAN}  # fmt: skip
#: They say how numbers are kept, or have an effect, or are there for themselves.
KEPT = frozenset({
    "Assign", "Const", "FakeConvert", "FakeQuantize", "If", "Loop", "Parameter", "ReadValue",
    "Result", "TensorIterator",
})  # fmt: skip
#: They take out parts of what they are given.
_PARTS = frozenset({"Gather", "Slice", "Split", "StridedSlice", "VariadicSplit"})
#: They add up real numbers, each runtime in its own order.
_SUMS = ("ReduceMean", "ReduceSum")
#: Bytes up to which numbers may be kept in more bits than what made them.
_SMALL = 1 << 14
#: The most layers that are looked at for what becomes free.
_CONE = 64


def _apply(net: Rewriter, layer: Layer) -> bool:
    if layer.type in KEPT:
        return False
    is_next = net.gives_known(layer) or all(_is_fixed(net, one) for one in net.inputs(layer))
    if not is_next and not (net.tight and is_made_of_constants(net, layer)):
        return False
    used = [(layer, i) for i in range(len(layer.outputs)) if net.uses((layer, i))]
    if not used or not _may_be_done(net, layer, used):
        return False
    # What is left of weights that stay compressed is left, too, though inference may know it.
    # Of what ShapeOf is asked, no number is kept.
    widened = [] if layer.type == "ShapeOf" or not is_next else [
        one for one in net.inputs(layer)
        if net.kind(one).dtype.kind == "f" and not one[0].is_constant
    ]  # fmt: skip
    if not all(_is_widened(net, one) for one in widened):
        return False
    shapes = [net.shape(one) for one in used]
    if None in shapes:
        return False
    size = sum(prod(shape or ()) * (net.kind(one).bits // 8) for one, shape in
               zip(used, shapes, strict=True))  # fmt: skip
    free = _freed(net, layer)
    growth = 0 if _is_piece(net, layer) else max(0, size - free)
    if growth and _is_summed(net, used):
        return False
    # With what is kept in fewer bits nothing is computed that takes more bytes.
    if (
        (growth and widened)
        or not net.may_grow(growth)
        or any(net.feeds_result(one) and len(used) > 1 for one in used)
        or (growth and net.tight and not _is_last(net, layer))
    ):
        return False
    found = _values(net, layer, used) if is_next else _outcome(net, layer, used, {})
    if found is None:
        return False
    for one, array in zip(used, found, strict=True):
        if array.shape != net.shape(one):
            return False
    net.spare -= growth
    for one, array in zip(used, found, strict=True):
        new = net.constant(array, net.kind(one), layer)
        net.memory.setdefault("carried", {})[new[0]] = max(0, free - size)
        net.replace(one, new)
    return True


def _may_be_done(net: Rewriter, layer: Layer, used: list[Value]) -> bool:
    """Whether a layer gives the same whenever it runs, of types that are computed alike."""
    kind = layer.kind
    if kind is None or kind.is_random or kind.rows_vary:
        return False
    return all(net.kind(one) in _TYPES for one in used) and not _widens(net, layer)


def is_made_of_constants(net: Rewriter, layer: Layer) -> bool:
    """Whether a few layers, none of which adds up, lie between constants and what one gives."""
    stack, seen = [layer], {layer}
    while stack:
        one = stack.pop()
        if one.is_constant:
            continue
        outputs = [(one, index) for index in range(len(one.outputs))]
        if one.type in KEPT or not net.inputs(one) or not _may_be_done(net, one, outputs):
            return False
        if one.type in _SUMS and net.kind((one, 0)).dtype.kind == "f":
            return False
        new = {source for source, _ in net.inputs(one)} - seen
        seen |= new
        stack += new
        if len(seen) > _CONE:
            return False
    return True


def _is_last(net: Rewriter, layer: Layer) -> bool:
    """Whether something that a layer feeds needs more than constants."""
    return any(
        user.type in KEPT or not is_made_of_constants(net, user)
        for index in range(len(layer.outputs))
        for user, _ in net.uses((layer, index))
    )


def _outcome(
    net: Rewriter, layer: Layer, used: list[Value], made: dict[Layer, list[Array] | None]
) -> list[Array] | None:
    """What a layer gives, with all that is between it and constants."""
    if layer not in made:
        arrays: list[Array] = []
        for source, index in net.inputs(layer):
            outputs = [(source, i) for i in range(len(source.outputs))]
            one = _fixed(net, (source, index))
            given = _outcome(net, source, outputs, made) if one is None else None
            if one is None and given is None:
                return None
            arrays.append(one if given is None else given[index])  # type: ignore[arg-type]
        if any(net.kind(one) not in _TYPES for one in net.inputs(layer)):
            return None
        made[layer] = _run(net, layer, used, arrays)
    return made[layer]


def _values(net: Rewriter, layer: Layer, used: list[Value]) -> list[Array] | None:
    # What inference knows in half precision is rounded.
    known = [None if net.kind(one) is ElementType.F16 else net.tensor(one).value for one in used]
    if all(array is not None for array in known):
        return [array for array in known if array is not None]
    sources = net.inputs(layer)
    arrays = [_fixed(net, one) for one in sources]
    if not arrays or any(array is None for array in arrays):
        return None
    if any(net.kind(one) not in _TYPES for one in sources):
        return None
    return _run(net, layer, used, [array for array in arrays if array is not None])


def _run(
    net: Rewriter, layer: Layer, used: list[Value], arrays: list[Array]
) -> list[Array] | None:
    """What a layer gives; None where half precision does not hold what is not rounded to it."""
    op = layer.op
    assert op is not None
    op, types = computing(op), [net.kind(one).dtype for one in used]
    holds = True

    def made(given: Iterable[Array]) -> list[Array]:
        nonlocal holds
        with np.errstate(all="ignore"):
            found = run_within_memory(op, *map(as_computed, given))
            declared = []
            for (_, index), dtype in zip(used, types, strict=True):
                whole = np.asarray(found[index])
                declared.append(whole.astype(dtype, copy=False))
                if dtype == np.float16:
                    holds = holds and np.array_equal(declared[-1], whole, equal_nan=True)
            return declared

    def pieces(shape: tuple[int, ...]) -> Iterator[Array]:
        wide = [np.broadcast_to(array, shape) for array in arrays]
        for index in parts(shape):
            yield made(array[index] for array in wide)[0]
            for array in arrays:
                let_go(array)

    shape = np.broadcast_shapes(*(array.shape for array in arrays)) if _is_by_elements(op) else ()
    if prod(shape) * types[0].itemsize < LARGE:
        found = made(arrays)
    else:
        found = [net.scratch.put(shape, types[0], pieces(shape))]
    return found if holds or layer.id in halves_of(net).layers else None


def _is_by_elements(op: Op) -> bool:
    """Whether an operation computes each element from those in the same place, as NumPy does."""
    return isinstance(op, Unary) or (isinstance(op, Broadcasting) and op.auto_broadcast == "numpy")


def _is_summed(net: Rewriter, used: list[Value]) -> bool:
    """Whether real numbers are added up next, which each runtime does in its own order."""
    return any(
        user.type in _SUMS and net.kind(one).dtype.kind == "f"
        for one in used
        for user, _ in net.uses(one)
    )


def _is_piece(net: Rewriter, layer: Layer) -> bool:
    """Whether a layer takes out a part of a constant, of which all parts are as large as it."""
    pieces = net.memory.setdefault("pieces", {})
    source = net.inputs(layer)[0] if net.inputs(layer) else None
    if layer in pieces or source is None or layer.type not in _PARTS:
        return layer in pieces
    if not source[0].is_constant or not net.has_own_bytes(source[0]):
        return False
    users = [user for user, _ in net.uses(source)]
    if len(users) < 2 or any(user.type not in _PARTS for user in users):
        return False
    shapes = [net.shape((user, i)) for user in users for i in range(len(user.outputs))]
    if None in shapes or any(
        not _is_fixed(net, one) for user in users for one in net.inputs(user)
    ):
        return False
    if sum(prod(shape or ()) for shape in shapes) > prod(net.shape(source) or ()):
        return False
    pieces.update(dict.fromkeys(users))
    return True


def _is_fixed(net: Rewriter, value: Value) -> bool:
    """Whether a value is known, or a constant, or one that is kept in fewer bits."""
    return value[0].is_constant or net.tensor(value).value is not None or _is_widened(net, value)


def _is_widened(net: Rewriter, value: Value) -> bool:
    """Whether a value is a constant of real numbers that is kept in fewer bits."""
    if value[0].type != "Convert":
        return False
    narrow = net.inputs(value[0])[0]
    return narrow[0].is_constant and net.kind(narrow) is ElementType.F16


def _fixed(net: Rewriter, value: Value) -> Array | None:
    """The numbers of a constant, also of one that is kept in fewer bits."""
    array = net.known(value)
    if array is None and value[0].type == "Convert":
        array = net.known(net.inputs(value[0])[0])
        array = None if array is None else array.astype(net.kind(value).dtype)
    return array


def _widens(net: Rewriter, layer: Layer) -> bool:
    """Whether a Convert, or a Gather of a table's numbers, lets weights be kept in fewer bits."""
    if layer.type == "Gather" and net.kind((layer, 0)).dtype.kind == "f":
        return net.kind(net.inputs(layer)[1]).bits <= 8
    if layer.type not in ("Convert", "ConvertLike"):
        return False
    given, made = net.kind(net.inputs(layer)[0]), net.kind((layer, 0))
    if made.dtype.kind != "f" or given.bits >= made.bits or given is ElementType.BOOLEAN:
        return False
    # A number of its own is no weights; of integers it may be the zero point of some.
    shape = net.shape((layer, 0))
    return given.bits <= 8 or shape is None or prod(shape) != 1


def _freed(net: Rewriter, layer: Layer) -> int:
    """Bytes that are free when a layer goes, with all that fed nothing else."""
    carried = net.memory.setdefault("carried", {})
    total, stack, seen = 0, [layer], {layer}
    while stack:
        one = stack.pop()
        total += LAYER_BYTES
        if one.is_constant and net.has_own_bytes(one):
            value = (one, 0)
            total += carried.get(one, 0)
            total += prod(net.shape(value) or ()) * net.kind(value).bits // 8
        for source, _ in net.inputs(one):
            if len(seen) < _CONE and source not in seen and _feeds_only(net, source, one):
                seen.add(source)
                stack.append(source)
    return total


def _feeds_only(net: Rewriter, source: Layer, layer: Layer) -> bool:
    """Whether a layer feeds one other alone, perhaps twice, and goes with it."""
    if source.type in ("Parameter", "ReadValue"):
        return False
    users = [user for index in range(len(source.outputs)) for user, _ in net.uses((source, index))]
    return all(user is layer for user in users)


__all__ = ["KEPT", "is_made_of_constants"]

RULE = Rule("fold-constants", (), _apply)
