"""Constants, shapes, and operators that move elements about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....layers.movement import check_pieces
from ....schemas import ElementType, IRError, Size, UnsupportedError
from ....schemas.shapes import same
from ...document import Output
from .node import Made, Node, Number, converts, normal
from .tensors import KINDS

#: Places along an axis are written out up to so many.
_FEW = 1 << 16


@converts("Constant")
def constant(node: Node) -> Made:
    """Const."""
    names = ("value", "value_float", "value_floats", "value_int", "value_ints",
             "value_string", "value_strings", "sparse_value")  # fmt: skip
    given = [name for name in names if node.gives(name)]
    if len(given) != 1:
        raise IRError(f"one of {', '.join(names)} is needed, {len(given)} are given")
    value = node.attribute(given[0])
    if given[0] == "value":
        return node.later(*node.importer.store.array(value))
    if given[0] == "sparse_value":
        from .sparse import dense

        return node.later(*dense(node.importer.store, value))
    kinds: dict[str, Any] = {"f": np.float32, "i": np.int64, "s": np.dtypes.StringDType()}
    array = np.array(value, kinds[given[0][6]])
    return node.later(array, ElementType.of(array.dtype))


@converts("ConstantOfShape")
def constant_of_shape(node: Node) -> Made:
    """Const where the shape is known and there is room, else Broadcast-3 of one value."""
    tensor = node.attribute("value")
    if tensor is None or not tensor.data_type:
        value, kind = np.zeros((), np.float32), KINDS[1]
    else:
        value, kind = node.importer.store.array(tensor)
        if value.size != 1:
            raise IRError(f"value has {value.size} elements, one is needed")
    known = node.value(0)
    if known is not None and known.ndim != 1:
        raise IRError(f"the shape has {known.ndim} axes, one is needed")
    shape = [-1] if known is None else known.tolist()
    made = None
    if min(shape, default=0) >= 0:
        made = node.repeated(value.reshape(()), kind, tuple(shape))
    if made is not None:
        return made
    return node.add("Broadcast-3", node.constant(value.reshape(()), kind), node[0])


@converts("Shape")
def shape(node: Node) -> Made:
    """ShapeOf-3, and Slice-8 for a part of it."""
    made = node.shape(node[0])
    start, end = node.integer("start", 0), node.attribute("end")
    if start == 0 and end is None:
        return made
    last = np.iinfo(np.int64).max if end is None else int(end)
    return node.cut(made, start, last, 0)


@converts("Size")
def size(node: Node) -> Made:
    """The product of the shape."""
    return node.add("ReduceProd-1", node.shape(node[0]), node.ints64([0]), keep_dims=False)


@converts("Reshape")
def reshape(node: Node) -> Made:
    """Reshape-1."""
    if node.version < 5:
        return node.add(
            "Reshape-1", node[0], node.ints64(node.integers("shape")), special_zero=True
        )
    keeps = not node.flag("allowzero")
    return node.add("Reshape-1", node[0], node[1], special_zero=keeps)


@converts("Transpose")
def transpose(node: Node) -> Made:
    """Transpose-1; without perm the axes are reversed."""
    order = node.integers("perm")
    if not node.gives("perm"):
        rank = node[0].tensor.rank
        order = [] if rank is None else list(reversed(range(rank)))
    return node.add("Transpose-1", node[0], node.ints64(order))


def axes_of(node: Node, index: int = 1) -> Output | None:
    """The axes as a tensor: an attribute in old versions, then an input; None: not given."""
    if node.gives("axes"):
        return node.ints64(node.integers("axes"))
    return node.get(index)


@converts("Squeeze")
def squeeze(node: Node) -> Made:
    """Squeeze-1."""
    axes = axes_of(node)
    return node.add("Squeeze-1", node[0], *([axes] if axes is not None else []))


@converts("Unsqueeze")
def unsqueeze(node: Node) -> Made:
    """Unsqueeze-1."""
    axes = axes_of(node)
    if axes is None:
        raise IRError("axes are missing")
    return node[0] if axes.tensor.shape == (0,) else node.add("Unsqueeze-1", node[0], axes)


@converts("Concat")
def concat(node: Node) -> Made:
    """Concat-1."""
    parts = [node[index] for index in range(len(node.inputs))]
    return node.add("Concat-1", *parts, axis=node.integer("axis", 1))


@converts("Split")
def split(node: Node) -> Made:
    """VariadicSplit-1 where lengths are given, else Split-1; the last part may be smaller."""
    axis, count = node.integer("axis", 0), node.integer("num_outputs", len(node.outputs))
    x = node[0]
    lengths = node.get(1)
    if lengths is None and node.gives("split"):
        lengths = node.ints64(node.integers("split"))
    if lengths is not None:
        if not lengths.tensor.shape.is_static:  # the node says how many there are
            lengths = node.reshape(lengths, [len(node.outputs)])
        return list(node.add("VariadicSplit-1", x, node.ints64(axis), lengths))
    if count < 1:
        raise IRError(f"num_outputs is {count}, the least is 1")
    check_pieces(count)
    room = x.tensor.shape[normal(axis, x.tensor.rank)] if x.tensor.rank else None
    if isinstance(room, int) and room % count:
        if node.version < 18:
            raise IRError(f"axis {axis} has {room} elements, which do not divide into {count}")
        each = -(-room // count)
        sizes = [max(min(each, room - each * i), 0) for i in range(count)]
        return list(node.add("VariadicSplit-1", x, node.ints64(axis), node.ints64(sizes)))
    if not isinstance(room, int) and node.version >= 18 and count > 1 and x.tensor.rank:
        lengths = _open_lengths(node, axis, count)
        return list(node.add("VariadicSplit-1", x, node.ints64(axis), lengths))
    return list(node.add("Split-1", x, node.ints64(axis), num_splits=count))


def _open_lengths(node: Node, axis: int, count: int) -> Output:
    """The lengths of parts of an axis that is not known yet; the last may be shorter, or empty."""
    size = node.vector([node.size(node[0], axis)])
    more = node.add("Add-1", size, node.ints64([count - 1]))
    each = node.add("Divide-1", more, node.ints64([count]))
    begins = node.add("Multiply-1", each, node.ints64(list(range(count))))
    left = node.add("Maximum-1", node.add("Subtract-1", size, begins), node.ints64([0]))
    return node.add("Minimum-1", left, each)


@converts("Slice", until=9)
def slice_attributes(node: Node) -> Made:
    """Slice-8."""
    starts, ends = node.integers("starts"), node.integers("ends")
    axes = node.integers("axes") or list(range(len(starts)))
    if not len(starts) == len(ends) == len(axes):
        raise IRError(f"{len(starts)} starts, {len(ends)} ends and {len(axes)} axes")
    steps = node.ints64([1] * len(starts))
    return node.add(
        "Slice-8", node[0], node.ints64(starts), node.ints64(ends), steps, node.ints64(axes)
    )


@converts("Slice", since=10)
def slice_(node: Node) -> Made:
    """Slice-8."""
    starts, ends, axes, steps = node[1], node[2], node.get(3), node.get(4)
    if steps is None:
        steps = node.like(1, starts)
        steps = node.add("Broadcast-3", steps, node.shape(starts))
    inputs = [node[0], starts, ends, steps]
    return node.add("Slice-8", *inputs, *([axes] if axes is not None else []))


@converts("Gather")
def gather(node: Node) -> Made:
    """Gather-8."""
    return node.add("Gather-8", node[0], node[1], node.ints64(node.integer("axis", 0)))


@converts("GatherElements")
def gather_elements(node: Node) -> Made:
    """GatherElements-6, with indices below zero counted from the end."""
    x, axis = node[0], node.axis(0)
    indices = counted(node, node[1], node.size(x, axis))
    # Other axes of the indices may be shorter, which IR does not allow.
    taken, there = indices.tensor.shape, x.tensor.shape
    if taken.rank == there.rank:
        for other in range(node.rank()):
            if other != axis and _may_be_less(taken[other], there[other]):
                x = node.cut(x, 0, node.size(indices, other), other)
    return node.add("GatherElements-6", x, indices, axis=axis)


def _may_be_less(one: Size, other: Size) -> bool:
    """Whether a size may be less than another."""
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    return not same(one, other)


def counted(node: Node, indices: Output, size: Number) -> Output:
    """Indices that are not below zero."""
    value = indices.tensor.value
    if value is not None and (value >= 0).all():
        return indices
    if value is not None and isinstance(size, int):
        return node.constant(np.where(value < 0, value + size, value).astype(value.dtype))
    whole = size if isinstance(size, Output) else node.ints64(size)
    kind = indices.tensor.type
    whole = node.convert(whole, kind)
    below = node.add("Less-1", indices, node.like(0, indices))
    return node.add("Select-1", below, node.add("Add-1", indices, whole), indices)


@converts("GatherND")
def gather_nd(node: Node) -> Made:
    """GatherND-8."""
    return node.add("GatherND-8", node[0], node[1], batch_dims=node.integer("batch_dims", 0))


_REDUCTIONS = {"none": "none", "add": "sum", "mul": "prod", "min": "min", "max": "max"}


def reduction_of(node: Node) -> str:
    """IR's word for what becomes of what is there already."""
    word = node.text("reduction", "none")
    if word not in _REDUCTIONS:
        raise IRError(f'reduction="{word}" is not one of {", ".join(_REDUCTIONS)}')
    return _REDUCTIONS[word]


@converts("Scatter", "ScatterElements")
def scatter_elements(node: Node) -> Made:
    """ScatterElementsUpdate-12."""
    axis = node.ints64(node.integer("axis", 0))
    return node.add(
        "ScatterElementsUpdate-12", node[0], node[1], node[2], axis, reduction=reduction_of(node)
    )


@converts("ScatterND")
def scatter_nd(node: Node) -> Made:
    """ScatterNDUpdate-3, -15 for a reduction."""
    word = reduction_of(node)
    if word == "none":
        return node.add("ScatterNDUpdate-3", node[0], node[1], node[2])
    return node.add("ScatterNDUpdate-15", node[0], node[1], node[2], reduction=word)


@converts("TensorScatter", since=24)
def tensor_scatter(node: Node) -> Made:
    """ScatterElementsUpdate-12, at places that follow where each of the batch begins."""
    past, update, axis = node[0], node[1], node.axis(-2)
    mode = node.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise IRError(f'mode="{mode}" is not linear or circular')
    places = node.counted(node.size(update, axis))
    beside = [1] * node.rank()
    places = node.reshape(places, [*beside[:axis], -1, *beside[axis + 1 :]])
    if node.get(2) is not None:
        starts = node.reshape(node.convert(node[2], "i64"), [-1, *beside[1:]])
        places = node.add("Add-1", starts, places)
    if mode == "circular":
        places = node.add("FloorMod-1", places, node.vector([node.size(past, axis)]))
    return put_along(node, past, update, places, axis)


def put_along(node: Node, whole: Output, new: Output, places: Output, axis: int) -> Output:
    """Slices in their places along an axis, which are broadcast to all of what is new."""
    places = node.add("Broadcast-3", places, node.shape(new))
    return node.add("ScatterElementsUpdate-12", whole, places, new, node.ints64(axis))


_PAD_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect"}


@converts("Pad")
def pad(node: Node) -> Made:
    """Pad-1, -12 where elements are taken away; mode wrap by Concat."""
    x, mode = node[0], node.text("mode", "constant")
    if node.version < 11:
        pads = node.integers("pads") or node.integers("paddings")
        amounts: Output = node.ints64(pads)
        fill = node.like(node.real("value", 0.0), x)
    else:
        amounts = node[1]
        fill = node[2] if node.get(2) is not None else node.like(0, x)
        if fill.tensor.rank not in (0, None):
            fill = node.reshape(fill, node.ints64([]))
    axes, rank = node.value(3), x.tensor.rank
    if node.get(3) is not None:
        if axes is None:
            amounts = _unknown_axes(node, amounts)
        else:
            some = [normal(int(axis), node.rank()) for axis in axes.reshape(-1)]
            amounts = _all_axes(node, amounts, some)
    known = amounts.tensor.value
    if rank is None:
        if known is None:
            raise UnsupportedError("neither the rank of the input nor the pads are known")
        rank = known.size // 2
    if known is not None and known.shape != (2 * rank,):
        raise IRError(f"pads has the shape {known.shape}, the input has {rank} axes")
    if mode == "wrap":
        return _wrapped(node, x, amounts, rank)
    if mode not in _PAD_MODES:
        raise IRError(f'mode="{mode}" is not one of {", ".join([*_PAD_MODES, "wrap"])}')
    if known is not None:
        begin, end = node.constant(known[:rank]), node.constant(known[rank:])
        spec = "Pad-12" if (known < 0).any() else "Pad-1"
    else:
        begin, end = node.cut(amounts, 0, rank, 0), node.cut(amounts, rank, 2 * rank, 0)
        spec = "Pad-12"
    return node.add(spec, x, begin, end, fill, pad_mode=_PAD_MODES[mode])


def _all_axes(node: Node, amounts: Output, axes: Sequence[int]) -> Output:
    """Paddings of some axes, as those of all."""
    rank, known = node.rank(), amounts.tensor.value
    if known is not None:
        if known.shape != (2 * len(axes),) or not rank:
            raise IRError(f"pads has {known.size} entries for {len(axes)} of {rank} axes")
        every = np.zeros(2 * rank, np.int64)
        for place, axis in enumerate(axes):
            every[axis], every[axis + rank] = known[place], known[place + len(axes)]
        return node.constant(every)
    places = np.array([[a] for a in [*axes, *(axis + rank for axis in axes)]], np.int64)
    zeros = node.ints64([0] * (2 * rank))
    return node.add("ScatterNDUpdate-3", zeros, node.constant(places), amounts)


def _unknown_axes(node: Node, amounts: Output) -> Output:
    """As ``_all_axes``, for axes that are not known yet."""
    rank = node.rank()
    axes = node.add("FloorMod-1", node.convert(node[3], "i64"), node.ints64(rank))
    both = node.add("Concat-1", axes, node.add("Add-1", axes, node.ints64(rank)), axis=0)
    zeros = node.ints64([0] * (2 * rank))
    return node.add("ScatterNDUpdate-3", zeros, node.unsqueeze(both, [1]), amounts)


def _wrapped(node: Node, x: Output, amounts: Output, rank: int) -> Output:
    """The array goes on from its other end; where an end is taken away, from what is left."""
    known, shape = amounts.tensor.value, x.tensor.shape
    for axis in range(rank):
        length = shape[axis]
        few = known is not None and np.abs(known).max(initial=0) <= _FEW
        if known is not None and few and isinstance(length, int) and length <= _FEW:
            begin, end = int(known[axis]), int(known[axis + rank])
            if begin == end == 0:
                continue
            ahead, kept = max(-begin, 0), length + min(begin, 0) + min(end, 0)
            if kept < 1:
                raise UnsupportedError(f"axis {axis} has no elements to go on from")
            going = np.arange(-begin, length + end)
            places = node.constant((going - ahead) % kept + ahead)
        else:
            size = node.vector([node.size(x, axis)])
            begins = node.cut(amounts, axis, axis + 1, 0)
            ends = node.cut(amounts, axis + rank, axis + rank + 1, 0)
            start = node.squeeze(node.add("Negative-1", begins), [0])
            stop = node.squeeze(node.add("Add-1", size, ends), [0])
            line = node.add("Range-4", start, stop, node.ints64(1), output_type="i64")
            if known is not None and min(known[axis], known[axis + rank]) >= 0:
                places = node.add("FloorMod-1", line, size)
            else:
                zero = node.ints64([0])
                first = node.add("Maximum-1", node.add("Negative-1", begins), zero)
                left = node.add("Add-1", size, node.add("Minimum-1", ends, zero))
                left = node.add("Subtract-1", left, first)
                line = node.add("Subtract-1", line, first)
                places = node.add("Add-1", node.add("FloorMod-1", line, left), first)
        x = node.add("Gather-8", x, places, node.ints64(axis))
    return x


@converts("Expand")
def expand(node: Node) -> Made:
    """Broadcast-3."""
    return node.add("Broadcast-3", node[0], node[1], mode="bidirectional")


@converts("Tile")
def tile(node: Node) -> Made:
    """Tile-1."""
    if node.version < 6:
        rank, axis = node.rank(), node.single(2, "axis")
        if axis is None or not rank:
            raise UnsupportedError(f"the axis (input 2) of {rank} is not constant")
        times: list[Number] = [1] * rank
        times[normal(int(axis), rank)] = node.reshape(node.convert(node[1], "i64"), [1])
        return node.add("Tile-1", node[0], node.vector(times))
    return node.add("Tile-1", node[0], node[1])


@converts("DepthToSpace")
def depth_to_space(node: Node) -> Made:
    """DepthToSpace-1."""
    mode = "depth_first" if node.text("mode", "DCR") == "CRD" else "blocks_first"
    return node.add("DepthToSpace-1", node[0], block_size=node.integer("blocksize"), mode=mode)


@converts("SpaceToDepth")
def space_to_depth(node: Node) -> Made:
    """SpaceToDepth-1."""
    mode = "depth_first" if node.text("mode", "DCR") == "CRD" else "blocks_first"
    return node.add("SpaceToDepth-1", node[0], block_size=node.integer("blocksize"), mode=mode)


@converts("ReverseSequence")
def reverse_sequence(node: Node) -> Made:
    """ReverseSequence-1."""
    return node.add(
        "ReverseSequence-1", node[0], node[1], batch_axis=node.integer("batch_axis", 1),
        seq_axis=node.integer("time_axis", 0),
    )  # fmt: skip


@converts("Compress")
def compress(node: Node) -> Made:
    """NonZero-3 of the condition, then Gather-8."""
    x = node[0]
    if not node.gives("axis"):
        x = node.reshape(x, [-1])
    where = node.add("NonZero-3", node[1], output_type="i64")
    return node.add("Gather-8", x, node.squeeze(where, [0]), node.ints64(node.integer("axis", 0)))


@converts("Trilu")
def trilu(node: Node) -> Made:
    """Select-1 by the numbers of rows and columns."""
    x, rank = node[0], node.rank()
    offset = node.convert(node[1], "i64") if node.get(1) is not None else node.ints64(0)
    columns = node.counted(node.size(x, rank - 1))
    down = node.unsqueeze(node.counted(node.size(x, rank - 2)), [1])
    rows = node.add("Add-1", down, node.reshape(offset, [1, 1]))
    spec = "GreaterEqual-1" if node.flag("upper", True) else "LessEqual-1"
    kept = node.add(spec, node.unsqueeze(columns, [0]), rows)
    return node.add("Select-1", kept, x, node.like(0, x))


@converts("OneHot")
def one_hot(node: Node) -> Made:
    """OneHot-1, with indices below zero counted from the end."""
    depth = node.convert(node[1], "i64")
    if depth.tensor.rank != 0:
        depth = node.reshape(depth, node.ints64([]))
    indices = node.convert(node[0], "i64")
    if indices.tensor.value is None or (indices.tensor.value < 0).any():
        below = node.add("Less-1", indices, node.ints64(0))
        indices = node.add("Select-1", below, node.add("Add-1", indices, depth), indices)
    off = node.add("Gather-8", node[2], node.ints64(0), node.ints64(0))
    on = node.add("Gather-8", node[2], node.ints64(1), node.ints64(0))
    return node.add("OneHot-1", indices, depth, on, off, axis=node.integer("axis", -1))
