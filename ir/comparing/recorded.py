"""Recorded tensors that a run is compared with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import islice
from zipfile import is_zipfile

import numpy as np

from ...schemas import Array, UnreadableError, UsageError
from ...schemas.packing import UNLIKE_ARRAYS, array_in
from ..document import Layer, Model, named_inputs
from ..inference import Inferred
from .extraction import Spot, Values
from .naming import Names

#: How a file of tensors comes about.
RECORD = 'record tensors: np.savez(path, **{**inputs, **ir.run(model, inputs, outputs="all")})'


class Recorded:
    """Arrays of an .npz, by the names of tensors or layers."""

    asks_again = False
    narrows = False

    def __init__(self, model: Model, path: str) -> None:
        self.model, self.name = model, os.path.basename(path)
        if not os.path.exists(path):
            raise UsageError(f"{path} is not there", hint=RECORD)
        if not is_zipfile(path):
            raise UsageError(f"{path} is no .npz", hint=RECORD)
        try:
            # Of a file that it opened itself NumPy leaves one open that is cut.
            with open(path, "rb") as file:
                np.load(file, allow_pickle=False)
            self.content = np.load(path, allow_pickle=False)
        except UNLIKE_ARRAYS as error:
            raise UsageError(f"{path} is no .npz of arrays: {error}", hint=RECORD) from None
        self.held, self.names = {*self.content.files}, Names(model)
        if not self.names.known & self.held:
            held, wanted = (
                ", ".join(f'"{name}"' for name in islice(some, 4))
                for some in (self.content.files, sorted(self.names.known))
            )
            self.content.close()
            raise UsageError(
                f"no array of {path} has the name of a tensor or layer: it has {held}",
                hint=f"names of this model are {wanted}; {RECORD}",
            )

    def inputs(self) -> dict[str, Array]:
        """The inputs that were recorded with the rest."""
        found: dict[str, Array] = {}
        for _, names in named_inputs(self.model.parameters):
            for name in names:
                if name in self.held and names[0] not in found:
                    found[names[0]] = self._read(name)
        return found

    def begin(self, arrays: Mapping[int, Array], inferred: Inferred) -> None:
        """Keep the types of this sample."""
        self.inferred = inferred

    def tolerance(self, layer: Layer) -> float | None:
        """As its type allows."""
        return None

    def told(self, layers: Sequence[Layer], known: Values) -> Mapping[Spot, Array]:
        """Those of their outputs that were recorded."""
        rows = self.names.told(layers, self.held)
        return {spot: self._array(spot, names) for spot, names in rows}

    def _read(self, name: str) -> Array:
        """An array of the file, of which none was looked at before."""
        try:
            return array_in(self.content, name)
        except UNLIKE_ARRAYS as error:
            raise UnreadableError(
                f'"{name}" of {self.name} cannot be read: {error}', hint=RECORD
            ) from None

    def _array(self, spot: Spot, names: Sequence[str]) -> Array:
        """What was recorded of a tensor; under several names it must be the same."""
        arrays = [self._read(name) for name in names]
        for name, array in zip(names[1:], arrays[1:], strict=True):
            if not np.array_equal(arrays[0], array, equal_nan=array.dtype.kind in "fc"):
                raise UsageError(
                    f'{self.name} holds two things of one tensor: "{names[0]}" and "{name}" '
                    "are its names, and their arrays differ",
                    hint="record each tensor once",
                )
        layer, array = self.model.layer(spot[0]), arrays[0]
        text = layer.type != "Result" and self.inferred.of(layer)[spot[1]].type == "string"
        kinds = "SUTO" if text else "biuf" if layer.type != "Result" else "biufSUTO"
        if array.dtype.kind not in kinds:
            raise UsageError(
                f'"{names[0]}" of {self.name} is of the type {array.dtype}, '
                f"{'text' if text else 'real numbers'} would be wanted",
                hint=f"record what NumPy has no type for as float32; {RECORD}",
            )
        return array
