"""The state of a model: the values of its variables, kept from call to call."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, TypeAlias
from zipfile import ZipFile

import numpy as np

from ...layers.budget import is_owned, owners_of, require
from ...layers.casting import as_computed, computed
from ...schemas import Array, ElementType, IRError, Tensor, UsageError
from ...schemas.packing import UNLIKE_ARRAYS, array_in
from ...schemas.printing import Table, meant, printable_name
from ..document import Model
from ..faces import Shown
from .sizes import Room

#: The values of variables, by their ids.
State: TypeAlias = dict[str, Array]


class Variables(Shown, dict[str, Array]):
    """The values of a model's variables by their ids; those that were not assigned are missing.

    Example::

        program = ir.compile(model)
        program({"token": [1]})
        program.state["cache"].shape
        program.state.save("warm.npz")
        program.reset()
        program.state.load("warm.npz")
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        #: What the model declares of each variable; of an older one nothing.
        self.declared: dict[str, Tensor] = {}
        self._rooms: dict[str, Room] = {}
        for layer in model.everywhere():
            if layer.type in ("ReadValue", "Assign"):
                name, op = layer.data.get("variable_id", ""), layer.op
                kind: ElementType = getattr(op, "variable_type", None) or ElementType.DYNAMIC
                shape = getattr(op, "variable_shape", None)
                if layer.type == "ReadValue" or name not in self.declared:
                    self.declared[name] = Tensor(kind, shape)

    def __missing__(self, name: str) -> Array:
        if name in self.declared:
            raise UsageError(
                f'variable "{name}" has no value yet', hint="a call assigns it; or give it one"
            )
        raise self._stranger(name)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, self._checked(name, value))

    def update(self, *args: Any, **values: Any) -> None:
        """Give several variables values; none, where one is refused."""
        found = {name: self._checked(name, one) for name, one in dict(*args, **values).items()}
        super().update(found)

    def __ior__(self, values: Any) -> Self:  # type: ignore[override,misc]  # of any values
        self.update(values)
        return self

    def setdefault(self, name: str, value: Any = None) -> Array:
        """What a variable holds, or the value that it is given."""
        if name not in self:
            self[name] = value
        return self[name]

    def commit(self, values: State) -> None:
        """Keep what a call has assigned; nothing, where one has a shape that is not declared.

        Raises:
            IRError: A variable was assigned what it cannot hold.
        """
        for name, value in values.items():
            if name in self.declared and not self._room(name).takes(value.shape):
                raise IRError(
                    f'variable "{name}" has the shape {self.declared[name].shape}, it is assigned '
                    f"{value.shape}",
                    hint="give its ReadValue another variable_shape, with ? for sizes that change",
                )
        dict.update(self, values)

    def reset(self, *names: str) -> None:
        """Let variables begin anew, all where none are named."""
        for name in names:
            if name not in self.declared:
                raise self._stranger(name)
        for name in names or list(self):
            self.pop(name, None)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the values into an .npz.

        Raises:
            UsageError: The file is there, and is not to be overwritten.
        """
        target = Path(path)
        if target.exists() and not force:
            raise UsageError(f"{target} is already there", hint="force=True overwrites it")
        for name, value in self.items():
            if value.dtype.kind not in "biufcV":
                raise UsageError(f'variable "{name}" holds {value.dtype}, an .npz cannot')
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            with beside.open("xb") as file, ZipFile(file, "w") as archive:
                for name, value in self.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, _as_numpy(as_computed(value)))
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Take over the values of an .npz that was saved; others begin anew."""
        try:
            file = np.load(path, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it is no .npz, as save writes it")
            with file:
                values = {name: array_in(file, name) for name in file.files}
        except UNLIKE_ARRAYS as error:
            # What NumPy does not know it takes for pickled, and tells how to run it.
            why = "it is no .npz, as save writes it" if "pickle" in str(error) else error
            raise UsageError(f"{path} cannot be read: {why}") from None
        found = {name: self._checked(name, self._read(name, one)) for name, one in values.items()}
        self.clear()
        super().update(found)

    def _checked(self, name: str, value: Any) -> Array:
        """A value that the variable may have."""
        if name not in self.declared:
            raise self._stranger(name)
        wanted, array = self.declared[name], np.asarray(value)
        if not self._room(name).takes(array.shape):
            raise UsageError(
                f'variable "{name}" has the shape {wanted.shape}, the array {array.shape}'
            )
        if wanted.type.is_dynamic:
            return array
        allowed = {wanted.type.dtype, computed(wanted.type).dtype}
        if array.dtype not in allowed:
            raise UsageError(
                f'variable "{name}" is {wanted.type}, the array is {array.dtype}',
                hint=how_to_convert(wanted.type),
            )
        return array

    def _room(self, name: str) -> Room:
        """What is declared of the shape of a variable."""
        if name not in self._rooms:
            self._rooms[name] = Room.of(self.declared[name].shape)
        return self._rooms[name]

    def _read(self, name: str, value: Array) -> Array:
        """What was saved, in the type that the variable has."""
        kind = self.declared[name].type if name in self.declared else ElementType.DYNAMIC
        if kind.is_dynamic or _is_numpys(kind.dtype):
            return value
        if value.dtype.kind == "V" and value.dtype.itemsize == kind.dtype.itemsize:
            return value.view(kind.dtype)  # bytes of a type that NumPy has no name for
        return value.astype(kind.dtype) if value.dtype == np.float32 else value

    def _stranger(self, name: str) -> UsageError:
        listed = ", ".join(map(printable_name, self.declared)) or "none"
        return UsageError(
            f'no variable is named "{name}"; there are {listed}', hint=meant(name, self.declared)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.declared, dict(self))

    def as_table(self) -> Table:
        """What each variable holds."""
        held = f"{len(self)} of {len(self.declared)} variables have a value"
        names = ", ".join(map(printable_name, list(self.declared)[:8]))
        return Table(
            f"state: {held}: {names}" if names else "state: there are no variables",
            ("variable", "declared", "held", "values"),
            map(self._row, self.declared),
            len(self.declared),
            "state.save(path), state.load(path), state.reset()" if self.declared else "",
        )

    def _row(self, name: str) -> tuple[object, ...]:
        if name not in self:
            return name, self.declared[name], "not set", ""
        return name, self.declared[name], Tensor.of(self[name]), self[name]


def keep(state: State, found: State, given: Iterable[Array]) -> None:
    """Let variables hold what a call has found for them: all of it, or nothing.

    Definitions may hand on what they were given: what lies in memory of the inputs, or may not be
    written, is copied.
    """
    lent = list(given)
    fresh = {
        name: value.copy()
        if not value.flags.writeable or any(np.may_share_memory(value, one) for one in lent)
        else value
        for name, value in found.items()
        if state.get(name) is not value
    }
    # Either is one call in C: an interrupt finds all of them or none.
    if isinstance(state, Variables):
        state.commit(fresh)
    else:
        state.update(fresh)


def own_copies(arrays: Iterable[Array], lent: Iterable[Array]) -> list[Array]:
    """Arrays as they are handed out, each in memory of its own, one number after the other."""
    owners = owners_of(lent)
    found = []
    for array in arrays:
        flags = array.flags
        if is_owned(array, owners) or not (flags.writeable and flags.c_contiguous):
            require(array.nbytes)
            array = np.array(array, order="C")
        owners |= owners_of([array])
        found.append(array)
    return found


def how_to_convert(kind: ElementType) -> str:
    """What makes an array one of an element type: a hint."""
    spelled = repr("T" if kind is ElementType.STRING else kind.dtype.name)
    if kind.dtype.type.__module__ == "ml_dtypes":
        spelled = f"ml_dtypes.{kind.dtype.name}"  # NumPy does not know it by its name
    return f"convert it: array.astype({spelled})"


def _is_numpys(dtype: np.dtype[Any]) -> bool:
    """Whether a type is NumPy's own: others an .npz does not tell from bytes."""
    return dtype.type.__module__ == "numpy"


def _as_numpy(array: Array) -> Array:
    """The same values in a type that an .npz can name: numbers of few bits as float32."""
    return array if _is_numpys(array.dtype) else array.astype(np.float32)


def _again(declared: dict[str, Tensor], values: State) -> Variables:
    made = Variables(Model())
    made.declared = declared
    dict.update(made, values)
    return made
