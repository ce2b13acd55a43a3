"""Values among the inputs of a layer that is built: the element types that each may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...schemas import Array, ElementType, Tensor, UsageError

#: What becomes a constant: an array, a number, a word, or lists of such.
Value: TypeAlias = "Array | np.generic | bool | int | float | str | Sequence[Any]"
#: The same value in each type that it may have, the most usual first.
Literals: TypeAlias = tuple[Tensor, ...]


def literals(value: Any, others: Sequence[ElementType], what: str) -> Literals:
    """A value in the element types that it may have beside inputs of these types.

    An array has its own. A whole number is i64, or has the type of another input; a fraction
    has the real type of another input, or is f32.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return (Tensor.of(value),)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None
    known = [kind for kind in others if not kind.is_dynamic and kind is not ElementType.STRING]
    match array.dtype.kind if array.size else "i":
        case "b":
            types = [ElementType.BOOLEAN]
        case "i":
            types = [ElementType.I64, *known, ElementType.I32]
        case "f":
            types = [*(kind for kind in known if kind.is_real), ElementType.F32]
        case "U":
            types = [ElementType.STRING]
        case _:
            raise UsageError(
                f"{what} is {value!r:.60}, neither an output of a layer nor a value",
                hint="give what parameter, constant or add returned, an array or numbers",
            )
    tensors = []
    for kind in dict.fromkeys(types):
        with np.errstate(over="ignore"):
            typed = array.astype(kind.dtype)
        # A whole number that a type does not hold is not meant to be of it.
        if array.dtype.kind != "i" or np.array_equal(typed.astype(np.int64), array):
            tensors.append(Tensor(kind, array.shape, typed))
    return tuple(tensors)


def array_of(value: Any, held: ElementType | None, where: str) -> Array:
    """A value that a caller gave, as an array; of the type that is wanted where it holds it."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise UsageError(f"the rows of {where} are of different lengths") from None
    try:
        kind = None if array.dtype.kind == "O" else ElementType.of(array.dtype)
    except ValueError:
        kind = None
    if kind is None:
        if any(isinstance(one, int) for one in array.flat):
            raise UsageError(f"{where} has a whole number that 64 bits do not hold")
        raise UsageError(f"{where} is no array of numbers: it holds {array.dtype}")
    if held is None:
        return array
    if held.is_dynamic:
        raise UsageError(f"{where} cannot be dynamic", hint="give an element type such as f32")
    if (held is ElementType.STRING) != (kind is ElementType.STRING):
        what = "text" if kind is ElementType.STRING else "numbers"
        raise UsageError(f"{where} has {what}, which {held} does not hold")
    if kind is ElementType.STRING or array.dtype == held.dtype:
        return array
    with np.errstate(all="ignore"):
        cast = array.astype(held.dtype)
        same = cast.astype(array.dtype) == array
        if kind.is_real and held.is_real:
            # Digits may be lost; a number that becomes an infinity, or none, is.
            same = np.isfinite(cast) | ~np.isfinite(array)
    if not np.all(same | (array != array)):
        wrong = array[~same].ravel()[0]
        raise UsageError(
            f"{where} has {wrong}, which {held} does not hold", hint="give another type"
        )
    return cast
