"""Parts of tensors: joined, cut, moved, repeated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....schemas import ElementType, IRError
from ....schemas.shapes import MOST_AXES
from ...document import whole
from .layer import Old
from .table import Made, converts

#: A place behind all others.
LAST = 2**31 - 1


def until(*cut: int) -> list[int]:
    """Where a Slice ends that leaves out so many of the last places of its axes."""
    return [-count if count else LAST for count in cut]


@converts("Concat", "axis=1", becomes="Concat-1")
def concat(old: Old) -> Made:
    """Along an axis; one input alone is what comes out."""
    if not len(old):
        raise IRError("Concat has no inputs")
    axis = old.integer("axis")
    if len(old) == 1:
        return old[0]
    kinds = {one.tensor.type for one in old.inputs}
    inputs = old.inputs if len(kinds) == 1 else [old.reals(i) for i in range(len(old))]
    return old.add("Concat", "opset1", inputs, axis=axis)


@converts("Split Slice", "axis=1 num_split?", becomes="Split-1 VariadicSplit-1", idle="out_sizes")
def split(old: Old) -> Made:
    """Along an axis, into the declared sizes of the outputs."""
    axis, dims = old.integer("axis"), old.dims()
    if not -len(dims) <= axis < len(dims):
        raise IRError(f"axis {axis} is beyond the {len(dims)} axes of the input {list(dims)}")
    ports = range(len(old.layer.outputs))
    if not ports:
        raise IRError(f"{old.layer.type} has no outputs")
    if any(len(old.declared(i)) != len(dims) for i in ports):
        raise IRError(f"an output has another number of axes than the input {list(dims)}")
    sizes = [old.declared(i)[axis] for i in ports]
    if sum(sizes) != dims[axis]:
        raise IRError(f"the outputs have {sizes} on axis {axis}, the input has {dims[axis]}")
    if len(sizes) == 1:
        return old[0]
    place = old.constant(np.array(axis, np.int64))
    if len(set(sizes)) == 1:
        return list(old.add("Split", "opset1", [old[0], place], num_splits=len(sizes)))
    return list(old.add("VariadicSplit", "opset1", [old[0], place, old.indices(*sizes)]))


@converts(
    "Crop", "axis= offset= dim= crop_begin= crop_end=",
    becomes="Slice-8 ShapeOf-3 Gather-1 Add-1",
)  # fmt: skip
def crop(old: Old) -> Made:
    """Three forms: a second input has the sizes; ``dim`` has them; ``crop_begin``, ``crop_end``.

    Children ``<crop axis offset>`` say one axis each; their sizes are the declared ones.
    """
    dims = old.dims()
    if old.layer.parts:
        rows = [{"axis": "0", "offset": "0"} | part for part in old.layer.parts]
        axes = tuple(whole(row["axis"], "axis of <crop>", -MOST_AXES) for row in rows)
        begin = tuple(whole(row["offset"], "offset of <crop>") for row in rows)
    else:
        axes = old.integers("axis")
        begin = old.integers("offset", 0) or old.integers("crop_begin", 0)
    if not axes:
        raise IRError("Crop has no axis")
    if any(not -len(dims) <= axis < len(dims) for axis in axes):
        raise IRError(f"axis {list(axes)} of the {len(dims)} axes of the input {list(dims)}")
    if not begin:
        begin = (0,) * len(axes)
    if len(begin) == 1 and len(axes) > 1:
        begin *= len(axes)
    if len(begin) != len(axes):
        raise IRError(f"{len(begin)} offsets for {len(axes)} axes")
    first, steps, places = old.indices(*begin), old.indices(*[1] * len(axes)), old.indices(*axes)
    if len(old) > 1:
        others = old.dims(1, max(axis + 1 if axis >= 0 else -axis for axis in axes))
        _ends(old, axes, begin, [others[axis] for axis in axes])
        sizes = old.add("ShapeOf", "opset3", [old[1]], output_type="i64")
        picked = old.add("Gather", "opset1", [sizes, places, old.constant(np.int64(0))])
        end = old.add("Add", "opset1", [first, picked])
    elif old.text("crop_end") and not old.text("dim"):
        cut = old.integers("crop_end", 0)
        if len(cut) != len(axes):
            raise IRError(f"crop_end has {len(cut)} numbers for {len(axes)} axes")
        left = [
            dims[axis] - front - back for axis, front, back in zip(axes, begin, cut, strict=True)
        ]
        _ends(old, axes, begin, left)
        end = old.indices(*until(*cut))
    else:
        end = old.indices(*_ends(old, axes, begin, _sizes(old, axes)))
    return old.add("Slice", "opset8", [old[0], first, end, steps, places])


def _sizes(old: Old, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of what is left, from ``dim`` or as they are declared."""
    if not old.text("dim"):
        declared = old.declared(0, len(old.dims()), len(old.dims()))
        _tell_sizes(old, axes)
        return tuple(declared[axis] for axis in axes)
    sizes = old.integers("dim", 1)
    if len(sizes) != len(axes):
        raise IRError(f"dim has {len(sizes)} numbers for {len(axes)} axes")
    return sizes


def _ends(
    old: Old, axes: tuple[int, ...], begin: tuple[int, ...], sizes: Sequence[int]
) -> list[int]:
    """Where a cut ends, which leaves something that lies within the input."""
    dims, ends = old.dims(), []
    for axis, first, size in zip(axes, begin, sizes, strict=True):
        ends.append(first + size)
        if size < 1 or ends[-1] > dims[axis]:
            raise IRError(
                f"the cut on axis {axis} begins at {first} and ends at {ends[-1]}, the input has "
                f"{dims[axis]} places"
            )
    return ends


def _tell_sizes(old: Old, axes: tuple[int, ...]) -> None:
    """Report that the declared sizes are taken, where no others say the same."""
    declared = old.declared()
    said = [part.get("dim") for part in old.layer.parts]
    if not any(said):
        old.remark(f"says no sizes: the declared ones {list(declared)} are taken")
    for axis, text in zip(axes, said, strict=False):
        if text and text.strip() != str(declared[axis]):
            old.remark(
                f"<crop> says dim {text[:40]} on axis {axis}, the output declares "
                f"{declared[axis]}, which is taken"
            )


@converts(
    "StridedSlice",
    "begin_mask= end_mask= ellipsis_mask= new_axis_mask= shrink_axis_mask=",
    becomes="StridedSlice-1",
)  # fmt: skip
def strided_slice(old: Old) -> Made:
    """In begin_mask and end_mask 1 meant to take the value, today it means not to."""
    count = old.dims(1)[0] if old.dims(1) else 1
    if count > MOST_AXES:
        raise IRError(f"input 1 has {count} numbers, one an axis; {MOST_AXES} are the most")

    def mask(name: str, missing: int) -> list[int]:
        bits = [int(bool(bit)) for bit in old.integers(name)]
        return bits + [missing] * (count - len(bits))

    masks = {
        "begin_mask": [1 - bit for bit in mask("begin_mask", 1)],
        "end_mask": [1 - bit for bit in mask("end_mask", 1)],
        "new_axis_mask": mask("new_axis_mask", 0),
        "shrink_axis_mask": mask("shrink_axis_mask", 0),
        "ellipsis_mask": mask("ellipsis_mask", 0),
    }
    inputs = [old[0], *(old.cast(old.flat(i), ElementType.I64) for i in range(1, len(old)))]
    return old.add("StridedSlice", "opset1", inputs, masks)


@converts("Gather", "axis=0", becomes="Gather-1 Squeeze-1")
def gather(old: Old) -> Made:
    """The places of input 1, whose numbers may be floats.

    Where the declared output has an axis less, the one place stood for a scalar.
    """
    places, axis = old.whole(1), old.constant(np.array(old.integer("axis"), np.int64))
    made = old.add("Gather", "opset1", [old[0], places, axis])
    declared = old.declared()
    alone = len(declared) == len(old.dims()) - 1 and old.dims(1) in ((1,), ())
    if alone and made.tensor.rank != len(declared):
        return old.add("Squeeze", "opset1", [made, old.indices(old.integer("axis"))])
    return made


@converts("GatherTree", becomes="GatherTree-1 Reshape-1")
def gather_tree(old: Old) -> Made:
    """Input 3, the token of the end, as a scalar."""
    inputs = [old[0], old[1], old[2]]
    token = old[3] if old[3].tensor.rank == 0 else old.reshape(old[3], ())
    return old.add("GatherTree", "opset1", [*inputs, token])


@converts("ScatterUpdate", becomes="ScatterUpdate-3")
def scatter_update(old: Old) -> Made:
    """Input 3 is the axis."""
    return old.add("ScatterUpdate", "opset3", [old[0], old.whole(1), old[2], old.whole(3)])


@converts("ScatterElementsUpdate", becomes="ScatterElementsUpdate-3")
def scatter_elements_update(old: Old) -> Made:
    """Input 3 is the axis."""
    inputs = [old[0], old.whole(1), old[2], old.whole(3)]
    return old.add("ScatterElementsUpdate", "opset3", inputs)


@converts("Tile", "axis tiles", becomes="Tile-1")
def tile(old: Old) -> Made:
    """So often along one axis."""
    axis, rank = old.integer("axis"), len(old.dims())
    if not -rank <= axis < rank:
        raise IRError(f"axis {axis} is beyond the {rank} axes of the input")
    repeats = [1] * rank
    repeats[axis] = old.integer("tiles", 1)
    return old.add("Tile", "opset1", [old[0], old.indices(*repeats)])


@converts("Pad", "pads_begin pads_end pad_mode=constant pad_value=0", becomes="Pad-1")
def pad(old: Old) -> Made:
    """All axes in both lists."""
    mode = old.choice("pad_mode", {m: m for m in ("constant", "edge", "reflect", "symmetric")})
    begin, end = old.integers("pads_begin", 0), old.integers("pads_end", 0)
    inputs = [old[0], old.indices(*begin), old.indices(*end)]
    if mode == "constant":
        inputs.append(old.cast(old.constant(old.real("pad_value")), old[0].tensor.type))
    return old.add("Pad", "opset1", inputs, pad_mode=mode)


@converts("Broadcast", becomes="Broadcast-1")
def broadcast(old: Old) -> Made:
    """To the sizes in input 1."""
    return old.add("Broadcast", "opset1", [old[0], old.flat(1)], mode="numpy")


@converts("Fill", becomes="Broadcast-1")
def fill(old: Old) -> Made:
    """Input 1, one number, in the sizes of input 0."""
    return old.add("Broadcast", "opset1", [old[1], old.flat(0)], mode="numpy")


@converts("Range", becomes="Range-4 Reshape-1")
def numbers(old: Old) -> Made:
    """From, to and step, each in a list of one element."""
    kind = old[0].tensor.type
    ends = [old.cast(old.reshape(old[i], ()), kind) for i in range(3)]
    return old.add("Range", "opset4", ends, output_type=str(kind))


@converts("ReverseSequence", "batch_axis=0 seq_axis=1", becomes="ReverseSequence-1")
def reverse_sequence(old: Old) -> Made:
    """Each element of the batch up to its length."""
    return old.add(
        "ReverseSequence", "opset1", [old[0], old.flat(1)],
        batch_axis=old.integer("batch_axis"), seq_axis=old.integer("seq_axis"),
    )  # fmt: skip


@converts("DepthToSpace", "block_size=1 mode=blocks_first", becomes="DepthToSpace-1")
def depth_to_space(old: Old) -> Made:
    """Channels into blocks."""
    size, mode = old.integer("block_size", 1), old.text("mode")
    return old.add("DepthToSpace", "opset1", [old[0]], block_size=size, mode=mode)


@converts("SpaceToDepth", "block_size=1 mode=blocks_first", becomes="SpaceToDepth-1")
def space_to_depth(old: Old) -> Made:
    """Blocks into channels."""
    size, mode = old.integer("block_size", 1), old.text("mode")
    return old.add("SpaceToDepth", "opset1", [old[0]], block_size=size, mode=mode)


@converts("SpaceToBatch", becomes="SpaceToBatch-2")
def space_to_batch(old: Old) -> Made:
    """Sizes of the blocks and the padding are inputs."""
    return old.add("SpaceToBatch", "opset2", [old[0], *(old.flat(i) for i in (1, 2, 3))])


@converts("BatchToSpace", becomes="BatchToSpace-2")
def batch_to_space(old: Old) -> Made:
    """Sizes of the blocks and what is cut off are inputs."""
    return old.add("BatchToSpace", "opset2", [old[0], *(old.flat(i) for i in (1, 2, 3))])


@converts("ShuffleChannels", "axis=1 group=1", becomes="ShuffleChannels-1")
def shuffle_channels(old: Old) -> Made:
    """Groups of channels taken in turn."""
    return old.add(
        "ShuffleChannels", "opset1", [old[0]],
        axis=old.integer("axis"), group=old.integer("group", 1),
    )  # fmt: skip


@converts("OneHot", "axis=-1 depth on_value=1.0 off_value=0.0", becomes="OneHot-1")
def one_hot(old: Old) -> Made:
    """The two values may be words, True and False.

    A list of one place stands for a scalar where the output has one axis, too.
    """
    words = {"True": 1.0, "False": 0.0}
    values = [
        old.constant(words[old.text(name)] if old.text(name) in words else old.real(name))
        for name in ("on_value", "off_value")
    ]
    depth = old.constant(np.array(old.integer("depth", 1), np.int64))
    alone = old.dims() == (1,) and len(old.declared()) == 1
    places = old.scalar_count(0) if alone else old.whole(0)
    return old.add("OneHot", "opset1", [places, depth, *values], axis=old.integer("axis"))


@converts("ExtractImagePatches", "sizes strides rates auto_pad", becomes="ExtractImagePatches-3")
def image_patches(old: Old) -> Made:
    """Windows of an image along its channels."""
    words = {name: old.integers(name, 1) for name in ("sizes", "strides", "rates")}
    pad = old.text("auto_pad").lower()
    return old.add("ExtractImagePatches", "opset3", [old[0]], words, auto_pad=pad)


@converts("SparseToDense", becomes="Broadcast-3 ScatterNDUpdate-3 Reshape-1")
def sparse_to_dense(old: Old) -> Made:
    """Indices, sizes, values, and what stands in between, which is 0 where it is not given."""
    values = old[2]
    if len(old) > 3:
        between = old.cast(old.reshape(old[3], ()), values.tensor.type)
    else:
        between = old.cast(old.constant(0.0), values.tensor.type)
    base = old.add("Broadcast", "opset3", [between, old.flat(1)], mode="numpy")
    return old.add("ScatterNDUpdate", "opset4", [base, old.whole(0), values])
