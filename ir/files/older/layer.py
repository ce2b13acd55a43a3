"""One old layer during its upgrade: its attributes, inputs, blobs, and what makes layers of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ....schemas import Array, ElementType, IRError, Shape, Tensor, Where
from ....schemas.shapes import MOST_AXES
from ...document import Builder, Kind, Layer, Origin, Output, Port, Remark, no_bin
from ...inference import constant
from .document import Blob, OldLayer
from .table import Entry

if TYPE_CHECKING:
    from ...storage import Weights

#: The element type in which an old precision is held and computed.
TYPES = {
    "FP32": ElementType.F32,
    "FP16": ElementType.F32,
    "I64": ElementType.I64,
    "I32": ElementType.I32,
    "I16": ElementType.I16,
    "U64": ElementType.U64,
    "U16": ElementType.U16,
    "U8": ElementType.U8,
    "I8": ElementType.I8,
    "BOOL": ElementType.BOOLEAN,
    "BIN": ElementType.U1,
}
#: The element type of the bytes of a blob.
STORED = TYPES | {"FP16": ElementType.F16}

_TRUE = frozenset({"true", "1"})
_FALSE = frozenset({"false", "0"})


class NoCounterpartError(IRError):
    """No operation of today computes what an old layer did."""


@dataclass
class Scene:
    """What the layers of one graph share."""

    version: int
    builder: Builder
    weights: Weights | None
    bin_place: str | None
    need_weights: bool | None
    origin: Origin
    #: The walk through the old graph that makes it; loops walk through bodies by it.
    walk: Any
    #: Matrices that resize an axis, by its sizes before and after.
    matrices: dict[tuple[int, int], Output] = field(default_factory=dict)


class Old:
    """One layer of the old document, being upgraded."""

    def __init__(
        self, layer: OldLayer, entry: Entry, scene: Scene, inputs: Sequence[Output]
    ) -> None:
        self.layer, self.entry, self.scene = layer, entry, scene
        self.inputs = list(inputs)
        self.used: set[str] = set()
        self.made: list[Layer] = []

    # What feeds it.

    def __getitem__(self, index: int) -> Output:
        if index >= len(self.inputs):
            raise IRError(
                f"{self.layer.type} takes input {index}, the layer has {len(self.inputs)} inputs"
            )
        return self.inputs[index]

    def __len__(self) -> int:
        return len(self.inputs)

    def dims(self, index: int = 0, least: int = 0, most: int = MOST_AXES) -> tuple[int, ...]:
        """The sizes of an input of so many axes: what feeds it gives them, else its port."""
        shape, dims = self[index].tensor.shape, self.layer.inputs[index].dims
        if shape.is_static:
            dims = shape.static
        elif shape.rank not in (None, len(dims)):
            raise IRError(
                f"input {index} is declared as {list(dims)}, what feeds it gives [{shape}]"
            )
        return self._of_rank(f"input {index}", dims, least, most)

    def declared(self, index: int = 0, least: int = 0, most: int = MOST_AXES) -> tuple[int, ...]:
        """The sizes of an output of so many axes, as its port declares them."""
        return self._of_rank(f"output {index}", self.layer.output(index).dims, least, most)

    def _of_rank(self, what: str, dims: tuple[int, ...], least: int, most: int) -> tuple[int, ...]:
        if not least <= len(dims) <= most:
            counts = f"{least}" if least == most else f"{least} to {most}"
            raise IRError(
                f"{what} is {list(dims)}, which has {len(dims)} axes: {self.layer.type} has "
                f"{counts} there"
            )
        return dims

    def value(self, index: int) -> Array | None:
        """The value of an input where it is known without running anything."""
        return self[index].tensor.value

    def reals(self, index: int) -> Output:
        """An input as f32."""
        return self.cast(self[index], ElementType.F32)

    def whole(self, index: int) -> Output:
        """An input that counts or indexes as i64; old files hold such numbers as floats, too."""
        one = self[index]
        return one if one.tensor.type is ElementType.I32 else self.cast(one, ElementType.I64)

    def flat(self, index: int) -> Output:
        """Counting input as a list of one axis."""
        one = self.whole(index)
        return one if one.tensor.rank == 1 else self.reshape(one, (-1,))

    def scalar_count(self, index: int) -> Output:
        """Counting input as a scalar: before v10 there were none, one element stood for it."""
        one = self.whole(index)
        return one if one.tensor.rank == 0 else self.reshape(one, ())

    # What it says.

    def has(self, name: str) -> bool:
        """Whether the file gives the attribute."""
        self.used.add(name)
        return name in self.layer.attributes

    def text(self, name: str) -> str:
        """An attribute, or its default in the table."""
        if name not in self.entry.attributes:
            raise KeyError(f"the table does not list {name} for {self.entry.type}")
        self.used.add(name)
        found = self.layer.attributes.get(name, self.entry.attributes[name])
        if found is None:
            raise IRError(f"attribute {name} is missing, which {self.layer.type} needs")
        return found.strip()

    def integer(self, name: str, least: int | None = None) -> int:
        """An attribute as a whole number."""
        return _bounded(name, _integer(name, self.text(name)), least)

    def integers(self, name: str, least: int | None = None) -> tuple[int, ...]:
        """An attribute as a list of whole numbers."""
        return tuple(_bounded(name, _integer(name, part), least) for part in self._parts(name))

    def real(self, name: str) -> float:
        """An attribute as a number."""
        return real(name, self.text(name))

    def numbers(self, name: str) -> tuple[float, ...]:
        """An attribute as a list of numbers."""
        return tuple(real(name, part) for part in self._parts(name))

    def flag(self, name: str) -> bool:
        """An attribute as yes or no: a word, or a number that is not 0."""
        text = self.text(name).lower()
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        return _integer(name, text) != 0

    def choice(self, name: str, known: Mapping[str, str]) -> str:
        """What one of the known words stands for."""
        text = self.text(name)
        if text not in known:
            raise IRError(f'{name} is "{text[:60]}"; known are {", ".join(filter(None, known))}')
        return known[text]

    def _parts(self, name: str) -> list[str]:
        text = self.text(name)
        return [part.strip() for part in text.split(",")] if text else []

    # What it decides.

    def remark(
        self,
        message: str,
        kind: Kind = "changed",
        hint: str | None = None,
        *,
        fixed: int | None = None,
    ) -> None:
        """Report where the upgraded layer is not exactly the old one.

        ``fixed`` is the input of whose sizes, but for the batch, it holds alone.
        """
        layer, told = self.layer, None
        if fixed is not None and self.scene.walk.outer:
            told = self[fixed].layer.id, self[fixed].index
        self.scene.origin.remarks.append(
            Remark(kind, message, layer.where, hint, told, layer.element)
        )

    # What it puts down.

    def add(
        self,
        type: str,
        opset: str,
        inputs: Iterable[Output] = (),
        data: Mapping[str, Any] | None = None,
        **attributes: Any,
    ) -> Output:
        """A new layer; errors of its rule are told as the old layer's."""
        try:
            made = self.scene.builder.add(
                type, opset, inputs, name=f"{self.layer.name}/{type}", data=data, **attributes
            )
        except IRError as error:
            error.where = Where()
            error.message = f"as {type} of {opset}: {error.message}"
            raise
        return self._take(made)

    def constant(self, value: Any, kind: ElementType | None = None) -> Output:
        """A constant; whole numbers are i64, others f32."""
        array = np.asarray(value)
        if kind is None and array.dtype.kind == "f":
            array = array.astype(np.float32, copy=False)
        made = self.scene.builder.constant(array, kind, name=f"{self.layer.name}/value")
        return self._take(made)

    def filled(self, number: float, kind: ElementType, *dims: int) -> Output:
        """One number in sizes of the file, which may be larger than any memory."""
        scalar = self.constant(np.array(number, kind.dtype), kind)
        return self.add("Broadcast", "opset1", [scalar, self.indices(*dims)], mode="numpy")

    def indices(self, *numbers: int) -> Output:
        """A list of whole numbers as a constant."""
        return self.constant(np.array(numbers, np.int64))

    def _take(self, made: Output) -> Output:
        made.layer.made_of(self.layer.element)  # errors of later runs point into the old file
        self.made.append(made.layer)
        return made

    def cast(self, one: Output, kind: ElementType) -> Output:
        """An output as another element type."""
        if one.tensor.type is kind:
            return one
        return self.add("Convert", "opset1", [one], destination_type=str(kind))

    def reshape(self, one: Output, sizes: Sequence[int], *, copied: bool = False) -> Output:
        """An output in other sizes; -1 is what is left, 0 its own size where they are copied."""
        pattern = self.constant(np.array(sizes, np.int64))
        return self.add("Reshape", "opset1", [one, pattern], special_zero=copied)

    def sizes(self, one: Output, *axes: int) -> Output:
        """The sizes of an output along some axes, which follow it when it is reshaped."""
        shape = self.add("ShapeOf", "opset3", [one], output_type="i64")
        inputs = [shape, self.indices(*axes), self.constant(np.array(0, np.int64))]
        return self.add("Gather", "opset1", inputs)

    def chain(self, type: str, inputs: Sequence[Output], **attributes: Any) -> Output:
        """An operation of two inputs over all of them, from the left."""
        total = inputs[0]
        for one in inputs[1:]:
            total = self.add(type, "opset1", [total, one], **attributes)
        return total

    # Its weights.

    def blob(self, name: str, shape: Sequence[int]) -> Output | None:
        """A blob as f32 (or, of whole numbers, as it is); None where the layer has none."""
        held = self.layer.blobs.get(name)
        if held is None:
            return None
        kind = self.blob_type(held, math.prod(shape))
        # No shape depends on weights, which would be fetched one by one from behind a URL.
        made = self.stored(held, kind, shape, is_read=False)
        if kind.is_real or kind is ElementType.U1:
            return self.cast(made, ElementType.F32) if kind is ElementType.F16 else made
        self.remark(f"{name} are {kind} and are taken as the numbers they are, without a scale")
        return self.cast(made, ElementType.F32)

    def weights(self, name: str, shape: Sequence[int]) -> Output:
        """A blob that must be there."""
        made = self.blob(name, shape)
        if made is None:
            raise IRError(f"{self.layer.type} has no {name}", hint=f"<blobs> needs <{name}>")
        return made

    def count(self, name: str) -> int | None:
        """How many values a blob of numbers by channel holds; None where the layer has none.

        The bytes of a calibrated layer's blob may be real numbers: as many as there are channels,
        or one, if they fit.
        """
        held, dims = self.layer.blobs.get(name), self.dims()
        if held is None:
            return None
        for likely in (*dims[1:2], *dims[-1:], 1):
            if self.blob_type(held, likely).nbytes(likely) == held.size:
                return likely
        return held.size * 8 // self.blob_type(held).bits

    def blob_type(self, held: Blob, count: int | None = None) -> ElementType:
        """The element type of a blob's bytes."""
        said = held.precision or self.layer.precision
        if said == "Q78":
            raise IRError(f"{held.name} are Q78, fixed-point numbers that no CPU ran")
        kind = STORED[said] if said is not None else ElementType.F32
        if held.precision is None and not kind.is_real and count is not None:
            # A calibrated layer is called I8, and keeps its real weights.
            fits = (ElementType.F32, ElementType.F16)
            return next((real for real in fits if real.nbytes(count) == held.size), kind)
        return kind

    def stored(
        self, held: Blob, kind: ElementType, shape: Sequence[int], *, is_read: bool = True
    ) -> Output:
        """A constant of the bytes of the .bin, which stay where they are.

        A small one is read, unless nothing is to follow from its value.
        """
        needed = kind.nbytes(math.prod(shape))
        size = held.size
        if size < needed:
            raise IRError(f"{held.name} has {size} bytes, {kind}{list(shape)} takes {needed}")
        if size > needed:
            self.remark(
                f"of the {size} bytes of {held.name} the first {needed} are read: "
                f"{kind}{list(shape)} takes no more"
            )
        scene = self.scene
        if scene.weights is not None and scene.need_weights is not False:
            scene.weights.check(held.offset, needed)
        elif scene.weights is None and scene.need_weights:
            raise no_bin(held.offset, needed, scene.bin_place)
        data = {
            "element_type": str(kind), "shape": ", ".join(map(str, shape)),
            "offset": str(held.offset), "size": str(needed),
        }  # fmt: skip
        name = scene.builder.free(f"{self.layer.name}/{held.name}")
        layer = Layer(
            "Const", "opset1", name, data=data, outputs=[Port.of(0, Tensor(kind, Shape(shape)))]
        )
        scene.builder.graph.add(layer)
        known = self._known(layer) if is_read else layer.outputs[0].tensor
        return self._take(Output(layer, 0, [known]))

    def _known(self, layer: Layer) -> Tensor:
        """What a constant is; its value where it is small and there."""
        try:
            return constant(layer)
        except IRError:
            if self.scene.need_weights is not False:
                raise
            return layer.outputs[0].tensor


def _integer(name: str, text: str) -> int:
    shown = text if len(text) <= 40 else text[:40] + "…"
    try:
        if not text.isascii() or "_" in text or len(text) > 40:
            raise ValueError
        number = float(text)
        if not number.is_integer() or abs(number) >= 2**53:
            raise ValueError
    except (ValueError, OverflowError):
        raise IRError(f'{name} is "{shown}", not a whole number') from None
    return int(number)


def real(name: str, text: str) -> float:
    """A number of an attribute or of a mean."""
    shown = text if len(text) <= 40 else text[:40] + "…"
    try:
        if not text.isascii() or "_" in text or len(text) > 60:
            raise ValueError
        return float(text)
    except ValueError:
        raise IRError(f'{name} is "{shown}", not a number') from None


def _bounded(name: str, number: int, least: int | None) -> int:
    if least is not None and number < least:
        raise IRError(f"{name} is {number}, at least {least} is needed")
    if number > 2**31 - 1:
        raise IRError(f"{name} is {number}, at most {2**31 - 1} is allowed")
    return number
