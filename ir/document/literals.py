"""Values that callers give: as arrays, in the element types that each may have."""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from ...schemas import Array, ElementType, Tensor, UsageError
from ...schemas.packing import kept, pack, unpack
from ...schemas.types import TypeLike

#: What becomes a constant: an array, a number, a word, or lists of such.
Value: TypeAlias = "Array | np.generic | bool | int | float | str | Sequence[Any]"
#: The same value in each type that it may have, the most usual first.
Literals: TypeAlias = tuple[Tensor, ...]


def literals(value: Any, others: Sequence[ElementType], what: str) -> Literals:
    """A value in the element types that it may have beside inputs of these types.

    An array has its own. A whole number is i64, or has the type of another input; a fraction
    has the real type of another input, or is f32. A type that does not hold it is not meant.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return (Tensor.of(owned(array_of(value, None, what))),)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise UsageError(f"{what}: {error}") from None
    known = [kind for kind in others if not kind.is_dynamic and kind is not ElementType.STRING]
    match array.dtype.kind if array.size else "i":
        case "b":
            types = [ElementType.BOOLEAN]
        case "i" | "u":
            types = [ElementType.I64, *known, ElementType.I32]
        case "f":
            types = [*(kind for kind in known if kind.is_real), ElementType.F32]
        case "U":
            types = [ElementType.STRING]
        case "O" if all(isinstance(one, int) for one in array.flat):
            raise UsageError(f"{what} has {_TOO_LARGE}")
        case _:
            raise UsageError(
                f"{what} is {value!r:.60}, neither an output of a layer nor a value",
                hint="give what parameter, constant or add returned, an array or numbers",
            )
    tensors = []
    refusal: UsageError | None = None
    for kind in dict.fromkeys(types):
        try:
            tensors.append(Tensor(kind, array.shape, array_of(array, kind, what)))
        except UsageError as error:
            refusal = refusal or error
    if not tensors and refusal is not None:
        raise refusal
    return tuple(tensors)


_TOO_LARGE = "a whole number that 64 bits do not hold"


def array_of(value: Any, held: ElementType | None, where: str, *, exact: bool = True) -> Array:
    """A value that a caller gave, as an array; of the type that is wanted where it holds it.

    Unless it is to be exact, a whole number may lose digits in a real type, as fractions do.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        raise UsageError(f"the rows of {where} are of different lengths") from None
    if array.dtype.kind in "SU" or (
        array.dtype.kind == "O" and all(isinstance(one, str) for one in array.flat)
    ):
        array = _texts(array, where)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    try:
        kind = None if array.dtype.kind == "O" else ElementType.of(array.dtype)
    except ValueError:
        kind = None
    if kind is None:
        if any(isinstance(one, int) for one in array.flat):
            raise UsageError(f"{where} has {_TOO_LARGE}")
        raise UsageError(f"{where} is no array of numbers or text: it holds {array.dtype}")
    if held is None:
        return array
    if held.is_dynamic:
        raise UsageError(f"{where} cannot be dynamic", hint="give an element type such as f32")
    if array.dtype == held.dtype:
        return array
    if not array.size:
        return array.astype(held.dtype)
    if (held is ElementType.STRING) != (kind is ElementType.STRING):
        what = "text" if kind is ElementType.STRING else "numbers"
        raise UsageError(f"{where} has {what}, which {held} does not hold")
    with np.errstate(all="ignore"):
        cast = array.astype(held.dtype)
        if held.is_real and (kind.is_real or not exact):
            # Digits may be lost; a number that becomes an infinity, or none, is.
            same = np.isfinite(cast) | ~np.isfinite(array)
        else:
            same = kept(array, cast)
    if held.is_real:
        same = same | (array != array)  # no number stays none
    if not np.all(same):
        wrong = array[~same].ravel()[0]
        raise UsageError(
            f"{where} has {wrong}, which {held} does not hold", hint="give another type"
        )
    return _made(cast)


def _texts(array: Array, where: str) -> Array:
    """Texts in NumPy's type of any width."""
    try:
        decoded = np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
        return decoded.astype(np.dtypes.StringDType())
    except (TypeError, ValueError):
        raise UsageError(
            f"{where} has text that UTF-8 does not hold",
            hint="a lone surrogate is no character",
        ) from None


def held_value(
    value: Any, type: TypeLike | None, held: ElementType | None
) -> tuple[ElementType, Array]:
    """A value as a constant holds it, read-only and in memory that nobody else changes.

    Args:
        value: What the caller gave.
        type: The type that it is to have; None for the array's own.
        held: The type that the constant had, kept where NumPy holds both alike, such as nf4.
    """
    if type is not None:
        kind = ElementType.named(type)
        array = array_of(value, kind, "the value", exact=False)
    else:
        array = array_of(value, None, "the value")
        kind = ElementType.of(array.dtype)
        if held is not None and not held.is_dynamic and held.dtype == array.dtype:
            kind = held
    if 0 < kind.bits < 8:
        # What is held is what will be read again: nf4 has sixteen values only.
        return kind, unpack(pack(array, kind), kind, array.shape)
    return kind, owned(array)


def owned(array: Array) -> Array:
    """The same values read-only, where nobody else changes them; repeated ones are held once."""
    if is_fixed(array):
        return array
    # What is left of no axes is an array, too, and no text of its own.
    once = [slice(0, None if step else 1) for step in array.strides]
    held = _made(np.array(array[(*once, ...)]))
    return held if held.shape == array.shape else np.broadcast_to(held, array.shape)


def is_fixed(array: Array) -> bool:
    """Whether nobody can write to an array, nor through an older view of what it looks at.

    So it is of bytes, of a map that is read-only, and of what was made here.
    """
    base: Any = array
    while True:
        if isinstance(base, np.ndarray):
            if base.flags.writeable:
                return False
            if base.base is None:
                return _MADE.get(id(base)) is base
            base = base.base
        elif isinstance(base, memoryview):
            if not base.readonly:
                return False
            base = base.obj
        else:
            return isinstance(base, bytes) or (
                isinstance(base, mmap) and memoryview(base).readonly
            )


#: The arrays that were made here and are still held, by their ids: nobody else has seen them.
_MADE: WeakValueDictionary[int, Array] = WeakValueDictionary()


def _made(array: Array) -> Array:
    """An array that nobody else holds, which constants can hold as it is from now on."""
    array.flags.writeable = False
    if array.base is None:
        _MADE[id(array)] = array
    return array
