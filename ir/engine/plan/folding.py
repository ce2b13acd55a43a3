"""What is constant is computed when the plan is made, and once if it is the same.

Exporters write an assignment to a part of a tensor as the places of all its elements, counted
from 0, of which that part is cut: each block of a network has some, as large as those before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from ....layers.base import Op
from ....layers.budget import require
from ....layers.casting import aligned
from ....layers.memory import nbytes
from ....schemas import Array, ElementType, Tensor
from ...document import Layer
from .constants import Folded, Made
from .nodes import Value

#: Element types that have no place in an arena of bytes.
UNPLANNED = (ElementType.DYNAMIC, ElementType.STRING)
#: Constants of at most so many bytes are the same if their bytes are, larger ones if they are one.
COMPARED = 256
#: Of so many bytes on it is looked up whether the same was made before.
LARGE = 1 << 16


def fold(
    layer: Layer,
    op: Op,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    known: Iterable[Tensor],
    folded: Folded,
) -> bool:
    """Compute a layer whose inputs are all constant, or whose value inference knows.

    Of real numbers inference knows what they are in the types that the file declares, which are
    not always those in which they are computed.
    """
    tensors = list(known)
    if all(tensor.value is not None and not tensor.type.is_real for tensor in tensors):
        for value, tensor in zip(outputs, tensors, strict=True):
            value.constant = tensor.value
        return True
    if not inputs or op.is_random or any(value.constant is None for value in inputs):
        return False
    if any(tensor.type in UNPLANNED for tensor in tensors):
        return False
    with layer.at():
        wanted = nbytes(tensors)
        # What operations of others give may differ from call to call.
        if wanted < LARGE or not op.is_standard:
            require(wanted)
            results = _results(op, inputs)
        else:
            key = type(op), *map(_told, inputs)
            before = folded.find(key, op)
            if before is None:
                require(wanted)
                before = _results(op, inputs)
                folded.keep(key, Made(op, [value.array for value in inputs], before))
            results = before
    for value, result in zip(outputs, results, strict=True):
        value.constant, value.shape = result, result.shape
    return True


def _results(op: Op, inputs: Sequence[Value]) -> list[Array]:
    kernel = op.prepare([value.tensor for value in inputs])
    return [aligned(result) for result in kernel(*(value.constant for value in inputs))]


def _told(value: Value) -> Hashable:
    """By what a constant is known: what it is, or where."""
    array = value.array
    if array.nbytes > COMPARED or array.dtype.hasobject:
        return id(array), value.element
    return array.tobytes(), array.dtype, array.shape, value.element
