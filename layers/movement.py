"""Moving whole elements: reordering axes, joining, splitting, repeating, reversing.

Specification pages: Transpose-1, Concat-1, Split-1, VariadicSplit-1, Broadcast-1, -3, Tile-1,
Roll-7, Reverse-1, ReverseSequence-1. Slices and padding are in ``movement_slice``, the
rearrangements by blocks in ``movement_blocks``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ..schemas import ANY, Array, Dim, ElementType, IRError, Shape, Size, Tensor
from ..schemas.attributes import Alias, Int
from ..schemas.shapes import at_least, compatible, merge
from .axes import as_size, axes_of, axis_of, broadcast, within_axis
from .base import Op, element_type
from .shape import integral, numeric

#: Each output is a port with lines of its own in the file: no model comes near this.
MOST_OUTPUTS = 1 << 16


class TransposeV1(Op):
    """The axes in another order; an empty order reverses them."""

    carries_sizes = "first"

    def infer(self, arg: Tensor, input_order: Tensor) -> tuple[Tensor, ...]:
        count, order = listed(input_order, "input_order"), input_order.ints()
        rank = arg.rank
        if rank is None:
            return (Tensor(arg.type, Shape.of_rank(len(order) if order else None)),)
        if count != 0 and not compatible(count, rank):
            raise IRError(f"the order has {count} axes, the input has {rank}")
        if order is None:
            return (Tensor(arg.type, Shape.of_rank(rank)),)
        axes = self.checked(order, rank)
        return (Tensor(arg.type, Shape(arg.shape[axis] for axis in axes)),)

    def run(self, arg: Array, input_order: Array) -> tuple[Array, ...]:
        return (np.transpose(arg, self.checked(input_order.tolist(), arg.ndim)),)

    def checked(self, order: Sequence[int], rank: int) -> Sequence[int]:
        """An order of axes that are not counted from the end; an empty one turns all around."""
        order = order or range(rank)[::-1]
        if sorted(order) != [*range(rank)]:
            raise IRError(f"the order {[*order]} is not that of {rank} axes, each once")
        return order


class ConcatV1(Op):
    """The inputs, one after the other along an axis."""

    carries_sizes = True

    axis: Int

    def infer(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        if not inputs:
            raise IRError("there is nothing to join, at least one input is needed")
        kind, shape = ElementType.DYNAMIC, Shape.UNKNOWN
        length: Size = 0
        for tensor in inputs:
            kind = kind.merge(tensor.type)
            if tensor.rank is None:
                length = length + ANY
                continue
            axis = axis_of(self.axis, tensor.rank)
            length = length + tensor.shape[axis]
            shape = shape.merge(tensor.shape.with_size(axis, ANY))
        if shape.rank is not None:
            shape = shape.with_size(axis_of(self.axis, shape.rank), length)
        return (Tensor(kind, shape),)

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        return (np.concatenate(inputs, self.axis),)


class SplitV1(Op):
    """The input, cut into equal pieces along an axis."""

    output_count = (1, None)
    carries_sizes = "first"

    num_splits: Int

    def infer(self, data: Tensor, axis: Tensor) -> tuple[Tensor, ...]:
        integral(axis, "axis")
        if axis.rank not in (None, 0):
            raise IRError(f"axis has {axis.rank} axes ({axis.shape}), it is a scalar")
        if self.num_splits < 1:
            raise IRError(f"num_splits is {self.num_splits}, the least is 1")
        check_pieces(self.num_splits)
        shape = Shape.of_rank(data.rank)
        given = axis.ints()
        if given is not None and data.rank is not None:
            place = axis_of(given[0], data.rank)
            shape = data.shape.with_size(place, self.piece(data.shape[place]))
        return (Tensor(data.type, shape),) * self.num_splits

    def piece(self, size: Size) -> Size:
        """Size of each piece of an axis."""
        if not isinstance(size, Dim):
            if size % self.num_splits:
                raise IRError(f"size {size} is not divisible into {self.num_splits} pieces")
        elif size < self.num_splits:
            raise IRError(f"size {size} is too small for {self.num_splits} pieces")
        return size // self.num_splits

    def run(self, data: Array, axis: Array) -> tuple[Array, ...]:
        return tuple(np.split(data, self.num_splits, axis_of(int(axis), data.ndim)))


class VariadicSplitV1(Op):
    """The input, cut into pieces of given lengths; one of them may be -1, the rest."""

    output_count = (1, None)
    carries_sizes = "first"

    def infer(self, data: Tensor, axis: Tensor, split_lengths: Tensor) -> tuple[Tensor, ...]:
        integral(axis, "axis")
        if axis.rank not in (None, 0) and not axis.shape.merge(Shape([1])):
            raise IRError(f"axis has shape {axis.shape}, it is a scalar")
        count = listed(split_lengths, "split_lengths")
        if isinstance(count, Dim):
            raise IRError("the number of outputs is not known: that of split_lengths is not")
        check_pieces(count)
        place, lengths = axis.ints(), split_lengths.ints()
        if place is None or data.rank is None:
            return (Tensor(data.type, Shape.of_rank(data.rank)),) * count
        at = axis_of(place[0], data.rank)
        pieces = [ANY] * count if lengths is None else self.pieces(data.shape[at], lengths)
        return tuple(Tensor(data.type, data.shape.with_size(at, size)) for size in pieces)

    def pieces(self, size: Size, lengths: Sequence[int]) -> list[Size]:
        """Sizes of the pieces of an axis."""
        if min(lengths, default=0) < -1 or list(lengths).count(-1) > 1:
            raise IRError(f"lengths {list(lengths)} are none: at most one is -1, none is below")
        total = sum(length for length in lengths if length != -1)
        if -1 in lengths:
            if not isinstance(size, Dim) and size < total:
                raise IRError(f"pieces of {total} in all are cut out of a size of {size}")
            rest = size - total if not isinstance(size, Dim) else ANY
            return [rest if length == -1 else length for length in lengths]
        if not isinstance(size, Dim) and size != total:
            raise IRError(f"pieces of {total} in all are cut out of a size of {size}")
        return list(lengths)

    def run(self, data: Array, axis: Array, split_lengths: Array) -> tuple[Array, ...]:
        place = axis_of(int(axis.reshape(())), data.ndim)
        lengths = self.pieces(data.shape[place], split_lengths.tolist())
        ends = np.cumsum(np.array(lengths, np.int64))[:-1]
        return tuple(np.split(data, ends, place))


class Broadcast(Op):
    """The input, repeated along axes until it has the target shape."""

    carries_sizes = "first"

    @property
    def rule(self) -> str:
        """How data and target come together; "explicit": a third input maps the axes."""
        raise NotImplementedError

    @property
    def start(self) -> int:
        """From which axis of the target the data is laid; -1 for as far back as it fits."""
        return 0

    def infer(
        self, data: Tensor, target_shape: Tensor, axes_mapping: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        count = listed(target_shape, "target_shape")
        target = shape_of(target_shape)
        if target is None:
            target = Shape.of_rank(None if isinstance(count, Dim) else count)
            known = False
        else:
            known = True
        if self.rule == "explicit" and axes_mapping is not None:
            listing = target_shape.rank is not None
            shape = self.mapped(data.shape, target, axes_mapping) if listing else target
        elif self.rule == "bidirectional":
            shape = broadcast(data.shape, target)
        elif not known:
            shape = target
        elif self.rule == "pdpd":
            shape = self.laid(data.shape, target)
        else:
            shape = self.stretched(data.shape, target)
        return (Tensor(data.type, shape),)

    def stretched(self, data: Shape, target: Shape) -> Shape:
        """The target, if the data fits it from the last axis on."""
        if data.rank is not None:
            if len(data) > len(target):
                raise IRError(f"the input has {len(data)} axes, the target shape {target} fewer")
            check_fit(data, target, range(len(target) - len(data), len(target)))
        return target

    def laid(self, data: Shape, target: Shape) -> Shape:
        """The target, if the data fits its last axes one by one; either may be 1."""
        if data.rank is None:
            return Shape.of_rank(target.rank)
        start = self.start if self.start >= 0 else max(len(target) - len(data), 0)
        if start + len(data) != len(target):
            raise IRError(
                f"the input has {len(data)} axes, the target shape {len(target) - start} "
                f"from axis {start} on"
            )
        laid = (
            wide if size == 1 else size if wide == 1 else merge(size, wide)
            for size, wide in zip(data, target[start:], strict=True)
        )
        return Shape([*target[:start], *laid])

    def mapped(self, data: Shape, target: Shape, axes_mapping: Tensor) -> Shape:
        """The target, if the data fits the axes that it is mapped to."""
        count = listed(axes_mapping, "axes_mapping")
        if data.rank is None or isinstance(count, Dim):
            return target
        # A scalar may be mapped to one axis of size 1.
        rank = 1 if data.rank == 0 and count else data.rank
        if count != rank:
            raise IRError(f"axes_mapping has {count} axes, the input has {rank}")
        axes = axes_mapping.ints()
        if axes is not None and target.rank is not None:
            if axes != sorted(axes):
                raise IRError(f"axes_mapping {axes} is not in order, Broadcast does not transpose")
            if axes and not 0 <= axes[0] <= axes[-1] < target.rank:
                raise IRError(
                    f"axes_mapping {axes} is beyond the {target.rank} axes of the target"
                )
            if not data.rank and any(not compatible(target[axis], 1) for axis in axes):
                raise IRError(f"a scalar is mapped to axes {axes} of {target}, not to a size of 1")
            check_fit(data if data.rank else Shape([1] * count), target, axes)
        return target

    def run(
        self, data: Array, target_shape: Array, axes_mapping: Array | None = None
    ) -> tuple[Array, ...]:
        target = tuple(target_shape.tolist())
        if self.rule == "explicit" and axes_mapping is not None:
            self.mapped(Shape(data.shape), Shape(target), Tensor.of(axes_mapping))
            sizes = [1] * len(target)
            for axis, size in zip(axes_mapping.tolist(), data.shape, strict=False):
                sizes[axis] = size
            data = data.reshape(sizes)
        elif self.rule in ("bidirectional", "pdpd"):
            target = np.broadcast_shapes(data.shape, target)
        return (np.broadcast_to(data, target),)


class BroadcastV1(Broadcast):
    """Broadcast to a target shape; without a mapping of axes, by NumPy's rule."""

    mode: Annotated[Literal["none", "numpy", "pdpd"], Alias("explicit", "none")] = "numpy"
    #: Written beside ``pdpd`` only.
    broadcast_axis: Int = Field(default=0, alias="mode.auto_broadcast_axis")

    def attributes(self) -> dict[str, str]:
        texts = super().attributes()
        if self.mode != "pdpd":
            del texts["mode.auto_broadcast_axis"]
        return texts

    @property
    def rule(self) -> str:
        return "explicit" if self.mode == "none" else self.mode

    @property
    def start(self) -> int:
        return self.broadcast_axis


class BroadcastV3(Broadcast):
    """Broadcast-1 with a mode in which the data may also be repeated to, not only from."""

    mode: Annotated[
        Literal["numpy", "explicit", "bidirectional", "pdpd"], Alias("none", "explicit")
    ] = "numpy"

    @property
    def rule(self) -> str:
        return self.mode

    def unknown_inputs(self) -> list[Tensor]:
        given = super().unknown_inputs()
        return [*given, given[0]] if self.rule == "explicit" else given

    def infer(
        self, data: Tensor, target_shape: Tensor, axes_mapping: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        if (axes_mapping is not None) != (self.rule == "explicit"):
            raise IRError(f'axes_mapping goes with mode "explicit", this is "{self.mode}"')
        return super().infer(data, target_shape, axes_mapping)


class TileV1(Op):
    """The input, repeated a number of times along each axis."""

    carries_sizes = "first"

    def infer(self, data: Tensor, repeats: Tensor) -> tuple[Tensor, ...]:
        count = listed(repeats, "repeats")
        times = repeats.sizes() if repeats.parts is not None else None
        if data.rank is None or (times is None and isinstance(count, Dim)):
            return (Tensor(data.type, Shape.UNKNOWN),)
        if times is None:
            rank = max(data.rank, int(count) if isinstance(count, int) else 0)
            return (Tensor(data.type, Shape.of_rank(rank)),)
        rank = max(data.rank, len(times))
        sizes = [1] * (rank - data.rank) + list(data.shape)
        often = [1] * (rank - len(times)) + [self.times(value) for value in times]
        return (Tensor(data.type, Shape(a * b for a, b in zip(sizes, often, strict=True))),)

    @staticmethod
    def times(value: Size) -> Size:
        """How often an axis is repeated; less than nothing is nothing."""
        return at_least(value, 0)

    def run(self, data: Array, repeats: Array) -> tuple[Array, ...]:
        return (np.tile(data, [max(value, 0) for value in repeats.tolist()]),)


class RollV7(Op):
    """The input, shifted along axes; what falls off one end comes in at the other."""

    def infer(self, data: Tensor, shift: Tensor, axes: Tensor) -> tuple[Tensor, ...]:
        for tensor, name in ((shift, "shift"), (axes, "axes")):
            element_type(tensor, ElementType.I32, ElementType.I64, what=name)
            if tensor.rank is not None and tensor.rank > 1:
                raise IRError(f"{name} has {tensor.rank} axes, it is a scalar or a list")
        if shift.rank != 0:
            try:
                shift.shape.merge(axes.shape)
            except IRError:
                raise IRError(f"shift {shift.shape} and axes {axes.shape} differ") from None
        places = axes.ints()
        if places is not None and data.rank is not None:
            for place in places:
                axis_of(place, data.rank)
        return (Tensor(data.type, data.shape),)

    def run(self, data: Array, shift: Array, axes: Array) -> tuple[Array, ...]:
        places = [axis_of(axis, data.ndim) for axis in axes.ravel().tolist()]
        steps = np.broadcast_to(shift.ravel(), len(places)).tolist()
        return (np.roll(data, steps, places),)


class ReverseV1(Op):
    """The input with the order along axes reversed."""

    until: ClassVar[int | None] = 1

    mode: Literal["index", "mask"]

    def infer(self, data: Tensor, reversed_axes: Tensor) -> tuple[Tensor, ...]:
        kind = reversed_axes.type
        if not kind.is_dynamic and (self.mode == "mask") != (kind is ElementType.BOOLEAN):
            raise IRError(f'axes of element type {kind} do not go with mode "{self.mode}"')
        if self.mode == "index":
            integral(reversed_axes, "axes")
        count = length(reversed_axes, "reversed_axes")
        if data.rank is not None:
            if self.mode == "mask":
                if not compatible(count, data.rank):
                    raise IRError(f"the mask has {count} elements, the input {data.rank} axes")
            else:
                self.check_axes(reversed_axes.ints() or (), data.rank)
        return (Tensor(data.type, data.shape),)

    def check_axes(self, axes: Iterable[int], rank: int) -> None:
        """Refuse axes that the input does not have; they are not counted from the end."""
        for axis in axes:
            if not 0 <= axis < rank:
                raise IRError(f"axis {axis} is beyond the {rank} axes of the input")

    def run(self, data: Array, reversed_axes: Array) -> tuple[Array, ...]:
        mask = self.mode == "mask"
        axes = set((np.flatnonzero(reversed_axes) if mask else reversed_axes).tolist())
        self.check_axes(axes, data.ndim)
        return (np.flip(data, tuple(axes)),)


class ReverseSequenceV1(Op):
    """The input, whose first elements along ``seq_axis`` are reversed, per batch so many."""

    rooms = 1

    batch_axis: Int = 0
    seq_axis: Int = 1

    def infer(self, data: Tensor, seq_lengths: Tensor) -> tuple[Tensor, ...]:
        numeric(seq_lengths, "seq_lengths")
        count = length(seq_lengths, "seq_lengths")
        shape = data.shape
        if shape.rank is None:
            return (Tensor(data.type, shape),)
        if shape.rank < 2:
            raise IRError(f"the input has {shape.rank} axes ({shape}), at least 2 are needed")
        batch = axis_of(self.batch_axis, shape.rank, "batch_axis")
        axis_of(self.seq_axis, shape.rank, "seq_axis")
        if not compatible(count, shape[batch]):
            raise IRError(f"{count} lengths, the batch axis has {shape[batch]}")
        return (Tensor(data.type, shape.with_size(batch, merge(shape[batch], count))),)

    def run(self, data: Array, seq_lengths: Array) -> tuple[Array, ...]:
        batch, axis = axes_of((self.batch_axis, self.seq_axis), data.ndim)
        steps = along(np.arange(data.shape[axis]), axis, data.ndim)
        lengths = along(seq_lengths.astype(np.int64), batch, data.ndim)
        order = np.where(steps < lengths, lengths - 1 - steps, steps)
        return (np.take_along_axis(data, within_axis(order, data.shape[axis]), axis),)


def along(values: Array, axis: int, rank: int) -> Array:
    """A list laid along one axis of many."""
    return values.reshape([-1 if i == axis else 1 for i in range(rank)])


def check_pieces(count: int) -> None:
    """Refuse more outputs than any layer has."""
    if count > MOST_OUTPUTS:
        raise IRError(f"{count} pieces are asked for, the most are {MOST_OUTPUTS}")


def listed(tensor: Tensor, name: str) -> Size:
    """Number of elements of an input that is a list of integers."""
    integral(tensor, name)
    return length(tensor, name)


def length(tensor: Tensor, name: str) -> Size:
    """Number of elements of an input that is a list."""
    if tensor.rank is None:
        return ANY
    if tensor.rank != 1:
        raise IRError(f"{name} has {tensor.rank} axes ({tensor.shape}), it is a list")
    return tensor.shape[0]


def shape_of(tensor: Tensor) -> Shape | None:
    """The shape that a tensor's value is, None where nothing is known of the value."""
    sizes = tensor.sizes() if tensor.parts is not None else None
    return None if sizes is None else Shape(as_size(size) for size in sizes)


def check_fit(data: Shape, target: Shape, axes: Sequence[int]) -> None:
    """Refuse data that neither is 1 nor of the target's size on the axes it goes to."""
    for size, axis in zip(data, axes, strict=True):
        if not compatible(size, 1) and not compatible(size, target[axis]):
            raise IRError(f"size {size} does not broadcast to {target[axis]} of {target}")
