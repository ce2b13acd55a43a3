"""A batch of another size: patterns, slices and constants that say the old one say it no more.

A model that was exported for one image has that number in more places than its inputs: in the
patterns of Reshapes, in slices, in tokens that are put beside those of each image. Here a size
with a name goes from the inputs from layer to layer, and where one would not hand it on, the
constant that has the old number is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...layers import StridedSliceV1
from ...schemas import Array, Dim, ElementType, IRError, Shape, Size, Tensor, UsageError
from ...schemas.shapes import number
from ..document import Layer, is_on
from .orders import Desk
from .workbench import Source

#: What is known of the layers of the model for the batch that it has.
Known = Mapping[int, tuple[Tensor, ...]]

#: The name of the size; names of models are words.
_NAME = "the batch"
_BATCH = Dim(2, None, _NAME)

#: Inputs that have a row for each sample, as the first has.
_BESIDE_FIRST = {
    "LSTMSequence": (1, 2, 3), "GRUSequence": (1, 2), "RNNSequence": (1, 2), "LSTMCell": (1, 2),
    "GRUCell": (1,), "RNNCell": (1,), "ReverseSequence": (1,),
}  # fmt: skip
#: What lists the finds of all samples, each with the number of its sample.
LISTS = frozenset(
    {"DetectionOutput", "MatrixNms", "MulticlassNms", "NMSRotated", "NonMaxSuppression"}
)


class Batch:
    """A batch on its way through a graph; ``before`` is what is known of the old one."""

    def __init__(self, desk: Desk, before: Known, axes: Mapping[Layer, int], old: int) -> None:
        self.desk, self.bench, self.old = desk, desk.bench, old
        self._before = dict(before)
        self._axes = axes
        #: How many elements of an axis come before each sample, where it is not the outermost.
        self._outer: dict[Source, int] = {}
        #: Layers that are fed samples and give none.
        self._lost: set[Layer] = set()
        self._size: Source | None = None
        #: Layers that give lists of what is found in all samples.
        self._lists: set[Layer] = set()
        #: Layers that outputs are made of and that no samples get lost in.
        self._clean: set[Layer] = set()
        #: Constants that may feed nothing any more.
        self._loose: list[Layer] = []

    def follow(self) -> set[Layer]:
        """Go through the layers, and let each hand the batch on; the outputs that are lists.

        Raises:
            UsageError: A layer cannot, or an output would not tell samples apart.
        """
        self.bench.forget_tensors()
        for layer, axis in self._axes.items():
            (tensor,) = self._before[layer.id]
            self.bench.learn(layer, Tensor(tensor.type, tensor.shape.with_size(axis, _BATCH)))
        for layer in self.bench.graph.order():
            if layer.type == "Result":
                continue
            feeders = self._feeders(layer)
            if any(self._axis(one) is not None for one in feeders):
                self._through(layer, feeders)
        ends = [layer for layer in self.bench.graph.results if not self.bench.is_gone(layer)]
        return {layer for layer in ends if self._is_list(layer)}

    def finish(self) -> None:
        """Take out what feeds nothing any more."""
        for layer in self._loose:
            self.bench.drop_unused(layer)

    def _through(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Let a layer that is fed samples hand them on."""
        kind = type(layer.op)
        patch = _PATCHES.get(layer.type)
        if patch is None and "auto_broadcast" in getattr(kind, "model_fields", ()):
            patch = Batch._elementwise
        try:
            if patch is not None:
                patch(self, layer, feeders)
            made = self._given(layer)
        except IRError as error:
            what = f"it does not take a batch of another size: {error.message}"
            raise UsageError(what, layer.where, error.hint) from None
        # A file may leave out outputs that nothing takes.
        was = self._before.get(layer.id, made)[: len(made)]
        if any(len({one.rank, two.rank} - {None}) > 1 for one, two in zip(was, made, strict=True)):
            raise UsageError(
                f"of {was[0].shape} a batch makes {made[0].shape}, with another number of axes",
                layer.where,
                "it takes the batch for an axis of one: take it out first (bypass)",
            )
        carried = [Source(layer, index) for index in range(len(made))]
        carried = [one for one in carried if self._axis(one) is not None]
        if not carried and layer.type not in ("ShapeOf", "Assign"):
            self._lost.add(layer)
        if layer.type in LISTS or any(one.layer in self._lists for one in feeders):
            self._lists.add(layer)
        apart = [self._outer[one] for one in feeders if one in self._outer]
        for one in carried if apart else ():
            self._outer.setdefault(one, apart[0])

    def _is_list(self, result: Layer) -> bool:
        """Whether an output lists what is found in all samples.

        Raises:
            UsageError: It is made of samples, and hands on nothing of each.
        """
        source = self.bench.feeder(result, 0)
        if self._axis(source) is not None and source.layer not in self._lists:
            return False
        pending = [source.layer]
        while pending:
            layer = pending.pop()
            if layer in self._lists:
                what = "lists what is found in all samples"
                self.desk.report.note("batch", what, result)
                return True
            feeders = self._feeders(layer)
            if layer in self._lost:
                fed = next(one for one in feeders if self._axis(one) is not None)
                shape = str(self.bench.known(fed).shape).replace(_NAME, "N")
                hint = "samples meet in this layer, it stands in the way of a batch"
                if layer.bodies:
                    hint = "its body says the old number, or samples meet in it"
                raise UsageError(
                    f'the output "{source.spelled}" would not tell samples apart: here '
                    f"{shape} becomes {self._given(layer)[0].shape}",
                    layer.where,
                    hint,
                )
            fresh = {one.layer for one in feeders} - self._clean
            self._clean |= fresh
            pending += fresh
        return False

    # What is known.

    def _feeders(self, layer: Layer) -> list[Source]:
        """What feeds a layer."""
        return [Source(*row) for row in self.bench.graph.sources(layer) if row is not None]

    def _axis(self, source: Source) -> int | None:
        """The axis along which samples lie, if there is one."""
        if source.layer.is_constant:
            return None
        shape = self.bench.known(source).shape
        if shape.rank is None:
            return None
        found = [axis for axis, size in enumerate(shape) if _is_batch(size)]
        return found[0] if len(found) == 1 else None

    def _given(self, layer: Layer) -> list[Tensor]:
        """What is known of the outputs of a layer."""
        return [self.bench.known(Source(layer, index)) for index in range(len(layer.outputs))]

    def _was(self, source: Source) -> Shape:
        """The shape that a tensor has for the old batch."""
        known = self._before.get(source.layer.id)
        return self.bench.known(source).shape if known is None else known[source.index].shape

    def _value(self, layer: Layer, place: int) -> Array | None:
        """The numbers of an input that is a constant."""
        source = self.bench.graph.producer(layer, place)
        return None if source is None else self.bench.known(Source(*source)).value

    # What is changed.

    def _put(self, layer: Layer, place: int, value: Any) -> None:
        """Feed an input from a constant of other numbers."""
        old = self.bench.feeder(layer, place)
        kind = self.bench.known(old).type
        new = self.bench.constant(np.asarray(value), kind, name=old.layer.name)
        self._before[new.layer.id] = (self.bench.known(new),)
        self._feed(layer, place, new)
        self._loose.append(old.layer)

    def _feed(self, layer: Layer, place: int, new: Source) -> None:
        """Feed an input from another tensor, until it is undone."""
        old = self.bench.feeder(layer, place)
        self.desk.undoing.append(partial(self.bench.rewire, old, layer, place))
        self.bench.rewire(new, layer, place)

    def _note(self, layer: Layer, old: object, new: object) -> None:
        self.desk.report.note("batch", f"{old} is now {new}", layer)

    def _repeat(self, layer: Layer, place: int, axis: int) -> None:
        """Give each sample what all share: an input is repeated along an axis."""
        source = self.bench.feeder(layer, place)
        was = self.bench.known(source)
        shape = self._was(source)
        if self.old != 1:
            # Those of the first sample; whether it is the same for all is seen on trial.
            ends = [[0], [number(shape[axis]) // self.old], [1], [axis]]
            name = f"{source.layer.name}/of_one"
            parts = [self.bench.constant(x, ElementType.I64, name=f"{name}/ends") for x in ends]
            source = self.bench.put("Slice", "opset8", [source, *parts], name=name)
        ones = [
            self.bench.constant([1] * count, ElementType.I64, name=f"{layer.name}/ones")
            for count in (axis, len(shape) - axis - 1)
            if count
        ]
        parts = [*ones[:1], self.size(), *ones[1:]] if axis else [self.size(), *ones]
        name = f"{source.layer.name}/for_each"
        times = parts[0]
        if len(parts) > 1:
            times = self.bench.put("Concat", "opset1", parts, {"axis": 0}, name=f"{name}/times")
        new = self.bench.put("Tile", "opset1", [source, times], name=name)
        self._before[new.layer.id] = (Tensor(was.type, shape),)
        self._feed(layer, place, new)
        self.desk.report.note("batch", f"input {place} is repeated for each sample", layer)

    def size(self) -> Source:
        """The number of samples, as a list of one number."""
        if self._size is None:
            layer, axis = next(iter(self._axes.items()))
            name = f"{layer.name}/batch"
            sizes = self.bench.put("ShapeOf", "opset3", [Source(layer, 0)], name=f"{name}/sizes")
            picks = [
                self.bench.constant(value, ElementType.I64, name=f"{name}/axis")
                for value in ([axis], 0)
            ]
            self._size = self.bench.put("Gather", "opset8", [sizes, *picks], name=name)
        return self._size

    # Layers by their types.

    def _reshape(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Reshape: the pattern says the old size where samples lie, or -1 where they do not."""
        axis, pattern = self._axis(feeders[0]), self._value(layer, 1)
        before, after = self._was(feeders[0]), self._was(Source(layer, 0))
        lead = _count(before, axis)
        if axis is None or lead is None or after.rank is None:
            return
        found = _place(lead * self._outer.get(feeders[0], 1), self.old, after)
        if found is None:
            if lead == 1 and after.rank and isinstance(after[0], Dim):
                self._reshape_open(layer)
            return
        place, outer = found
        if outer > 1:
            self._outer[Source(layer, 0)] = outer
        if pattern is None:
            # It is computed: of some sizes, it may be, and not of all.
            if after.is_static and self._axis(Source(layer, 0)) != place:
                wanted = [*after.static]
                wanted[place] = -1
                self._put(layer, 1, wanted)
                self._note(layer, "the computed pattern", wanted)
                self.bench.learn(layer)
            return
        special = is_on(layer, "special_zero")
        wanted = [int(entry) for entry in pattern.ravel()]
        copies = special and place == axis and place < len(before) and (
            after[place] == before[place] and self._outer.get(feeders[0], 1) == outer
        )  # fmt: skip
        for at, entry in enumerate(wanted):
            loses = entry == -1 or (entry == 0 and special and at == axis)
            size = after[at]
            if at != place and loses and not (entry == -1 and copies):
                if isinstance(size, Dim):
                    return
                wanted[at] = size
        if wanted[place] != -1 and not (wanted[place] == 0 and copies):
            wanted[place] = 0 if copies else -1
        if wanted != pattern.ravel().tolist():
            self._put(layer, 1, wanted)
            self._note(layer, pattern.ravel().tolist(), wanted)

    def _reshape_open(self, layer: Layer) -> None:
        """What is first in a shape whose other sizes are open counts samples, if it may."""
        made = self.bench.known(Source(layer, 0))
        if made.rank and isinstance(made.shape[0], Dim) and self._axis(Source(layer, 0)) is None:
            self.bench.learn(layer, Tensor(made.type, made.shape.with_size(0, _BATCH)))

    def _concat(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Concat: what all samples share is put beside each."""
        axis = next(axis for one in feeders if (axis := self._axis(one)) is not None)
        for place, one in enumerate(feeders):
            rank = self.bench.known(one).rank
            if self._axis(one) is None and rank is not None and rank > axis:
                joined = int(layer.data.get("axis", 0))
                if joined not in (axis, axis - rank):
                    self._repeat(layer, place, axis)

    def _elementwise(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Operations of many tensors that are aligned at their last axes."""
        ranks = [len(self._was(one)) for one in feeders]
        given = next(place for place, one in enumerate(feeders) if self._axis(one) is not None)
        axis = self._axis(feeders[given])
        assert axis is not None
        size, back = self._was(feeders[given])[axis], ranks[given] - axis
        for place, one in enumerate(feeders):
            at, own = ranks[place] - back, self._axis(one)
            if own is not None:
                beside = ranks[given] - ranks[place] + own
                if own != at and beside >= 0 and self._was(feeders[given])[beside] != 1:
                    raise UsageError(
                        f"samples lie along other axes of input {given} than of input {place}",
                        hint='say in "inputs" which inputs of the model take samples',
                    )
            elif at >= 0 and size != 1 and self._was(one)[at] == size:
                if feeders[given] in self._outer:
                    raise UsageError(
                        f"input {place} has something for each row, and rows lie around samples",
                        hint="that is not spread over a batch",
                    )
                self._repeat(layer, place, at)

    def _matmul(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Products of stacks of matrices: the axes before the last two are aligned."""
        found = [self._axis(one) for one in feeders]
        ranks = [len(self._was(one)) for one in feeders]
        if any(
            axis is not None and axis < rank - 2 for axis, rank in zip(found, ranks, strict=True)
        ):
            self._elementwise(layer, feeders)

    def _beside_first(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Inputs with a row for each sample, such as the state that a sequence begins with."""
        rows = getattr(layer.op, "batch_axis", 0)  # ReverseSequence's own
        if self._axis(feeders[0]) != rows % len(self._was(feeders[0])):
            return
        for place in _BESIDE_FIRST[layer.type]:
            if place < len(feeders) and self._axis(feeders[place]) is None:
                self._repeat(layer, place, 0)

    def _strided_slice(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """StridedSlice: all samples are taken, not those up to the old number."""
        op, axis = layer.op, self._axis(feeders[0])
        starts, stops, steps = (self._value(layer, place) for place in (1, 2, 3))
        if axis is None or starts is None or stops is None or not isinstance(op, StridedSliceV1):
            return
        for what, entry, at in op.rows(len(self._was(feeders[0])), len(starts)):
            if what != "slice" or at != axis or entry >= len(stops):
                continue
            first = 0 if _has(op.begin_mask, entry) else int(starts[entry])
            step = 1 if steps is None else int(steps[entry])
            size = self._was(feeders[0])[axis]
            if isinstance(size, Dim) or first or step != 1:
                continue
            if not _has(op.end_mask, entry) and int(stops[entry]) >= size:
                masks = {
                    name: [int(_has(mask, one)) for one in range(len(stops))]
                    for name, mask in (("begin_mask", op.begin_mask), ("end_mask", op.end_mask))
                }
                masks["end_mask"][entry] = 1
                self.desk.keep(layer, "data")
                layer.data |= {name: ",".join(map(str, mask)) for name, mask in masks.items()}
                self._note(layer, f"the end {stops[entry]} of axis {axis}", "that of the batch")

    def _slice(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Slice: as StridedSlice."""
        axis = self._axis(feeders[0])
        starts, stops, steps = (self._value(layer, place) for place in (1, 2, 3))
        if axis is None or starts is None or stops is None or steps is None:
            return
        rank, size = len(self._was(feeders[0])), self._was(feeders[0])[axis]
        end = int(np.iinfo(stops.dtype).max)
        axes = self._value(layer, 4) if len(feeders) > 4 else np.arange(len(starts))
        for entry, at in enumerate(() if axes is None else axes.tolist()):
            whole = starts[entry] == 0 and steps[entry] == 1 and not isinstance(size, Dim)
            if at % rank == axis and whole and size <= stops[entry] < end:
                ends = [int(stop) for stop in stops]
                ends[entry] = end
                self._put(layer, 2, ends)
                self._note(layer, f"the end {stops[entry]} of axis {axis}", "that of the batch")

    def _broadcast(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Broadcast: the target says the old size, and is made to go by that of the data."""
        axis, target = self._axis(feeders[0]), self._value(layer, 1)
        if axis is None or target is None or len(feeders) > 2:
            return
        place = axis + len(target) - len(self._was(feeders[0]))
        if place >= 0 and target[place] == self._was(feeders[0])[axis]:
            wanted = [int(size) for size in target]
            wanted[place] = 1
            self._put(layer, 1, wanted)
            self.desk.keep(layer, "data", "version")
            layer.version, layer.data = "opset3", {"mode": "bidirectional"}
            self._note(layer, target.tolist(), f"{wanted} and what it is given")

    def _interpolate(self, layer: Layer, feeders: Sequence[Source]) -> None:
        """Interpolate: the batch is none of the axes that are resized, or keeps its size."""
        axis, last = self._axis(feeders[0]), 3 if layer.version == "opset4" else 2
        rank, sizes = self._was(feeders[0]).rank, self._value(layer, 1)
        if axis is None or rank is None:
            return
        if len(feeders) > last:
            axes = self._value(layer, last)
            if axes is None or axis not in [a % rank for a in axes]:
                return
            keep = [place for place, a in enumerate(axes.tolist()) if a % rank != axis]
            for place in range(1, last):
                value = self._value(layer, place)
                if value is not None:
                    self._put(layer, place, value[keep])
            self._put(layer, last, axes[keep])
            self._note(layer, f"axes {axes.tolist()}", axes[keep].tolist())
        elif layer.data.get("shape_calculation_mode") == "sizes" and sizes is not None:
            if sizes[axis] != self.old or self._was(feeders[0])[axis] != self.old:
                return
            kind = self.bench.known(feeders[1]).type
            name = f"{layer.name}/sizes"
            parts = [
                self.bench.constant(some, kind, name=name)
                for some in (sizes[:axis], sizes[axis + 1 :])
            ]
            parts.insert(1, self._size_as(kind))
            parts = [one for one in parts if self.bench.known(one).shape.count != 0]
            whole = self.bench.put("Concat", "opset1", parts, {"axis": 0}, name=name)
            self._feed(layer, 1, whole)
            self._note(layer, f"sizes {sizes.tolist()}", f"{sizes.tolist()} but for the batch")

    def _size_as(self, kind: ElementType) -> Source:
        """The number of samples in an integer type."""
        if kind is ElementType.I64:
            return self.size()
        data = {"destination_type": str(kind)}
        return self.bench.put("Convert", "opset1", [self.size()], data, name="batch/converted")


_Patch = Callable[[Batch, Layer, Sequence[Source]], None]
_PATCHES: dict[str, _Patch] = {
    "Reshape": Batch._reshape,
    "Concat": Batch._concat,
    "MatMul": Batch._matmul,
    "StridedSlice": Batch._strided_slice,
    "Slice": Batch._slice,
    "Broadcast": Batch._broadcast,
    "Interpolate": Batch._interpolate,
    **dict.fromkeys(_BESIDE_FIRST, Batch._beside_first),
}


def _is_batch(size: Size) -> bool:
    """Whether a size is the batch, or so many times the batch."""
    if not isinstance(size, Dim) or size.symbol is None or _NAME not in size.symbol.names:
        return False
    ones = dict.fromkeys(size.symbol.names, 1)
    return size.symbol.value(ones | {_NAME: 2}) == 2 * size.symbol.value(ones)


def _has(mask: Sequence[int], entry: int) -> bool:
    return entry < len(mask) and bool(mask[entry])


def _count(shape: Shape, axis: int | None) -> int | None:
    """The elements before an axis, in the order of the axes; None where they are not known."""
    count = 1
    for size in shape.sizes[:axis] if axis is not None else ():
        if isinstance(size, Dim):
            return None
        count *= size
    return count


def _place(lead: int, old: int, shape: Shape) -> tuple[int, int] | None:
    """The axis of a shape where samples lie that so many elements come before.

    And how many of these are within the axis: none (1) where it begins with samples. What comes
    last are features: rows are rather put together with samples than those are.
    """
    prefix, within = 1, None
    for axis, size in enumerate(shape):
        if isinstance(size, Dim) or not size:
            break
        if prefix == lead and size % old == 0:
            if within is None or size == old or axis < len(shape) - 1:
                return axis, 1
            break
        inner, left = divmod(lead, prefix)
        if not left and within is None and size % (inner * old) == 0:
            within = axis, inner
        prefix *= size
    return within
