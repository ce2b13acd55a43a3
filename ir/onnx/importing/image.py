"""Images: other sizes, samples at places, regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np

from ....layers.image_sizes import scaled
from ....schemas import Array, IRError, UnsupportedError
from ...document import Output
from .node import Made, Node, Number, converts, normal, static
from .pooling import window_of
from .weighing import REASON, SYMMETRIC, weigh

_TRANSFORMS = {
    "half_pixel": "half_pixel", "pytorch_half_pixel": "pytorch_half_pixel",
    "asymmetric": "asymmetric", "tf_half_pixel_for_nn": "tf_half_pixel_for_nn",
    "align_corners": "align_corners",
}  # fmt: skip
_MODES = {"nearest": "nearest", "linear": "linear_onnx", "bilinear": "linear_onnx",
          "cubic": "cubic"}  # fmt: skip


def interpolate(
    node: Node, x: Output, target: Output, kind: str, axes: Sequence[int], **attributes: object
) -> Output:
    """Interpolate-11 over some axes."""
    mode = _MODES.get(node.text("mode", "nearest"))
    if mode is None:
        raise IRError(f'mode="{node.text("mode")}" is not one of {", ".join(_MODES)}')
    if mode == "linear_onnx" and len(axes) not in (2, 3):
        mode = "linear"
    return node.add(
        "Interpolate-11", x, target, node.ints64(list(axes)), mode=mode,
        shape_calculation_mode=kind, **attributes,
    )  # fmt: skip


def scaled_axes(node: Node, scales: Output, rank: int) -> tuple[Output, list[int]]:
    """Scales and axes without those that keep their size."""
    value = scales.tensor.value
    if value is None:
        return scales, list(range(rank))
    if value.shape != (rank,):
        raise IRError(f"{value.size} scales, the input has {rank} axes")
    if (value <= 0).any():
        raise IRError(f"a scale is {value.min()}, it must be above 0")
    axes = [axis for axis in range(rank) if value[axis] != 1] or [rank - 1]
    return node.constant(value[axes].astype(np.float32)), axes


def scaled_from_zero(node: Node, scales: Output, rank: int) -> Made:
    """Interpolate-11 by scales, as long as there was but one way to count places.

    Both runtimes take the place before where an axis grows, and the place after where it shrinks.
    """
    scales, axes = scaled_axes(node, scales, rank)
    return interpolate(
        node, node[0], scales, "scales", axes,
        coordinate_transformation_mode="asymmetric", nearest_mode="simple",
    )  # fmt: skip


@converts("Upsample")
def upsample(node: Node) -> Made:
    """Interpolate-11 by scales."""
    rank = node.rank()
    if node.version >= 9:
        scales = node[1]
    elif node.version >= 7:
        scales = node.constant(np.array(node.attribute("scales"), np.float32))
    else:
        pair = [1.0, 1.0, node.real("height_scale"), node.real("width_scale")]
        scales = node.constant(np.array(pair, np.float32))
    return scaled_from_zero(node, scales, rank)


@converts("Resize", until=10)
def resize_ten(node: Node) -> Made:
    """Interpolate-11 by scales."""
    return scaled_from_zero(node, node[1], node.rank())


@converts("Resize", since=11)
def resize(node: Node) -> Made:
    """Interpolate-11 by scales or sizes."""
    x, rank = node[0], node.rank()
    word = node.text("coordinate_transformation_mode", "half_pixel")
    otherwise = _weighs_otherwise(node)
    if word not in _TRANSFORMS and not otherwise:
        raise UnsupportedError(f"coordinate_transformation_mode={word}: IR has no such")
    attributes: dict[str, object] = {
        "coordinate_transformation_mode": _TRANSFORMS.get(word),
        "nearest_mode": node.text("nearest_mode", "round_prefer_floor"),
        "cube_coeff": node.real("cubic_coeff_a", -0.75),
    }
    chosen = [normal(axis, rank) for axis in node.integers("axes")] or list(range(rank))
    sizes = node.get(3)
    scales = node.get(2)
    if sizes is not None and sizes.tensor.shape != (0,):
        one_each(sizes, chosen, "sizes")
        if node.text("keep_aspect_ratio_policy", "stretch") != "stretch":
            return _in_proportion(node, sizes, chosen, attributes)
        return _to_sizes(node, sizes, chosen, attributes)
    if scales is None:
        raise IRError("neither scales nor sizes are given")
    one_each(scales, chosen, "scales")
    if otherwise:
        return weigh(node, chosen, known(scales.tensor.value), by_scale=True)
    if scales.tensor.value is not None and len(chosen) == rank:
        scales, chosen = scaled_axes(node, scales, rank)
    return interpolate(node, x, node.convert(scales, "f32"), "scales", chosen, **attributes)


def one_each(values: Output, axes: Sequence[int], what: str) -> None:
    """Refuse another number of sizes or scales than there are axes."""
    shape = values.tensor.shape
    if shape.is_static and shape != (len(axes),):
        raise IRError(f"{what} has the shape {shape}, one is needed for each of {len(axes)} axes")


def known(values: Array | None) -> list[float]:
    """Sizes or scales that must be constant."""
    if values is None:
        raise UnsupportedError(f"{REASON}: the sizes are not constant")
    return [float(value) for value in values]


def _weighs_otherwise(node: Node) -> bool:
    """Whether the neighbours count for other shares than in IR."""
    if node.text("mode", "nearest") == "nearest":
        return False
    if node.text("coordinate_transformation_mode") == SYMMETRIC:
        return True
    if node.flag("antialias") and _may_shrink(node):
        return True
    return node.flag("exclude_outside") and node.text("mode") == "cubic"


def _may_shrink(node: Node) -> bool:
    """Whether any axis may become shorter; else antialias changes nothing."""
    scales, sizes = node.value(2), node.value(3)
    if sizes is not None and sizes.size == node.rank() and node[0].tensor.shape.is_static:
        return bool((sizes < np.array(node[0].tensor.shape.static)).any())
    return scales is None or not scales.size or bool((scales < 1).any())


def _to_sizes(
    node: Node, sizes: Output, axes: Sequence[int], attributes: dict[str, object]
) -> Output:
    """Each axis to its own size."""
    value, shape = sizes.tensor.value, node[0].tensor.shape
    if _weighs_otherwise(node):
        return weigh(node, axes, known(value), by_scale=False)
    if value is not None:
        kept = [i for i, axis in enumerate(axes) if shape[axis] != int(value[i])]
        kept = kept or [len(axes) - 1]
        sizes, axes = node.constant(value[kept]), [axes[i] for i in kept]
    return interpolate(node, node[0], sizes, "sizes", axes, **attributes)


def _in_proportion(
    node: Node, sizes: Output, axes: Sequence[int], attributes: dict[str, object]
) -> Output:
    """All axes by one scale: the smallest (not_larger) or the largest that fits.

    The sizes are rounded, the scale is not: it says where the pixels lie.
    """
    policy = node.text("keep_aspect_ratio_policy")
    if policy not in ("not_larger", "not_smaller"):
        raise IRError(f'keep_aspect_ratio_policy="{policy}" is not known')
    wanted, shape = sizes.tensor.value, node[0].tensor.shape
    by_corners = attributes["coordinate_transformation_mode"] == "align_corners"
    old = [size for axis in axes if isinstance(size := shape[axis], int)]
    if wanted is None or len(old) < len(axes):
        now, share = _share(node, sizes, axes, policy)
        made = node.add("Floor-1", node.add(
            "Add-1", node.add("Multiply-1", now, share), node.like(0.5, now)
        ))  # fmt: skip
        target = node.convert(made, "i64")
        if by_corners or _weighs_otherwise(node):
            return _to_sizes(node, target, axes, attributes)
        if attributes["coordinate_transformation_mode"] == "pytorch_half_pixel":
            raise UnsupportedError(
                f"keep_aspect_ratio_policy={policy} and pytorch_half_pixel: whether an axis "
                "shrinks to one pixel is not known; the sizes must be constant"
            )
        more = node.convert(_rows_behind(node, now, share), "i64")
        rows = [node.cut(more, index, index + 1, 0) for index in range(len(axes))]
        scales = node.add("Broadcast-3", share, node.ints64([len(axes)]))
        return _scaled_to(node, node[0], dict(zip(axes, rows, strict=True)), scales, target, axes,
                          attributes)  # fmt: skip
    if 0 in old:
        raise IRError(f"axis {axes[old.index(0)]} has no elements to be resized in proportion")
    lengths = np.array(old, np.float32)
    ratios = wanted.astype(np.float32) / lengths
    scale = ratios.min() if policy == "not_larger" else ratios.max()
    news = np.floor(lengths * scale + np.float32(0.5))
    if _weighs_otherwise(node):
        return weigh(node, axes, news.tolist(), by_scale=False, scale=scale)
    if by_corners or (news == lengths * scale).all():
        return _to_sizes(node, node.constant(news.astype(np.int64)), axes, attributes)
    x, more_rows = node[0], dict[int, Number]()
    for axis, size, new in zip(axes, old, news.astype(int).tolist(), strict=True):
        if new == 1 and attributes["coordinate_transformation_mode"] == "pytorch_half_pixel":
            x = node.cut(x, 0, 1, axis)
        elif (size, new) != (1, 1):
            fits = scaled(size, scale) == new != size
            more_rows[axis] = 0 if fits else _rows_needed(size, float(scale))
    target = node.ints64([int(new) for axis, new in zip(axes, news, strict=True)
                          if axis in more_rows])  # fmt: skip
    scales = node.constant(np.full(len(more_rows), scale, np.float32))
    return _scaled_to(node, x, more_rows, scales, target, list(more_rows), attributes)


def _share(node: Node, sizes: Output, axes: Sequence[int], policy: str) -> tuple[Output, Output]:
    """The lengths of axes, and the one scale for all."""
    now = node.add("Gather-8", node.shape(node[0]), node.ints64(list(axes)), node.ints64(0))
    now = node.convert(now, "f32")
    share = node.add("Divide-1", node.convert(sizes, "f32"), now)
    kind = "ReduceMin-1" if policy == "not_larger" else "ReduceMax-1"
    return now, node.add(kind, share, node.ints64([0]), keep_dims=True)


# Interpolate rounds a size down that is made by a scale, and leaves an axis as it is whose size
# stays. So edges are repeated behind, until a row more than wanted comes out, and another size.


def _rows_needed(size: int, scale: float) -> int:
    """How many rows an axis has to have behind its own."""
    apart = ceil(1 / (scale - 1)) + 2 - size if scale > 1 else 0
    return max(ceil(1 / scale) + 1, apart)


def _rows_behind(node: Node, sizes: Output, scale: Output) -> Output:
    """As ``_rows_needed``, of what is not known yet."""
    one, two = node.like(1, scale), node.like(2, scale)
    more = node.add("Add-1", node.add("Ceiling-1", node.add("Divide-1", one, scale)), one)
    beyond = node.add("Subtract-1", scale, one)
    apart = node.add("Add-1", node.add("Ceiling-1", node.add("Divide-1", one, beyond)), two)
    apart = node.add("Select-1", node.add("Greater-1", scale, one), apart, node.like(0, scale))
    return node.add("Maximum-1", more, node.add("Subtract-1", apart, sizes))


def _scaled_to(
    node: Node, x: Output, more: Mapping[int, Number], scales: Output, target: Output,
    axes: Sequence[int], attributes: dict[str, object],
) -> Output:  # fmt: skip
    """Axes by scales, with rows behind them, of which as many are kept as the target says."""
    if not axes:
        return x
    rank = node.rank()
    if any(not isinstance(one, int) or one for one in more.values()):
        ends = node.vector([more.get(axis, 0) for axis in range(rank)])
        x = node.add("Pad-1", x, node.ints64([0] * rank), ends, pad_mode="edge")
    made = interpolate(node, x, scales, "scales", axes, **attributes)
    return node.add(
        "Slice-8", made, node.ints64([0] * len(axes)), target, node.ints64([1] * len(axes)),
        node.ints64(list(axes)),
    )  # fmt: skip


@converts("GridSample")
def grid_sample(node: Node) -> Made:
    """GridSample-9, over two axes."""
    if node.rank() != 4:
        raise UnsupportedError(f"the input has {node.rank()} axes, IR samples grids over 2 of 4")
    words = {"linear": "bilinear", "cubic": "bicubic"}
    mode = node.text("mode", "bilinear")
    return node.add(
        "GridSample-9", node[0], node[1], align_corners=node.flag("align_corners"),
        mode=words.get(mode, mode), padding_mode=node.text("padding_mode", "zeros"),
    )  # fmt: skip


@converts("AffineGrid")
def affine_grid(node: Node) -> Made:
    """MatMul-1 of the places of all pixels, from -1 to 1, and theta."""
    theta, kind = node[0], node[0].tensor.type
    entries = node[1].tensor.shape
    if entries not in ((4,), (5,)):
        raise IRError(f"size has {entries} entries, 4 or 5 are needed")
    spatial = 2 if entries == (4,) else 3
    if theta.tensor.rank is not None and theta.tensor.shape[1:] != (spatial, spatial + 1):
        raise IRError(f"theta is {theta.tensor.shape}, N,{spatial},{spatial + 1} is needed")
    whole = node.cut(node[1], 2, 2 + spatial, 0)
    parts: list[Output] = []
    for axis in reversed(range(spatial)):
        count = node.convert(node.cut(whole, axis, axis + 1, 0), kind)
        row = _places(node, count, node.flag("align_corners"))
        row = node.reshape(row, [-1 if i == axis else 1 for i in range(spatial)] + [1])
        parts.append(row)
    parts.append(node.like(np.ones([1] * (spatial + 1)), parts[0]))
    column = node.vector([whole, node.ints64([1])])
    parts = [node.add("Broadcast-3", part, column) for part in parts]
    places = node.reshape(node.add("Concat-1", *parts, axis=spatial), [-1, spatial + 1])
    made = node.add("MatMul-1", places, theta, transpose_b=True)
    shape = node.vector([node.ints64([-1]), whole, node.ints64([spatial])])
    return node.reshape(made, shape)


def _places(node: Node, count: Output, corners: bool) -> Output:
    """Where so many pixels lie: their middles, or the first and the last at the ends."""
    one, kind = node.like(1, count), count.tensor.type
    scalar = node.squeeze(count, [0])
    ranks = node.add("Range-4", node.like(0, scalar), scalar, node.like(1, scalar),
                     output_type=kind)  # fmt: skip
    if not corners:
        middles = node.add("Add-1", node.add("Add-1", ranks, ranks), one)
        return node.add("Subtract-1", node.add("Divide-1", middles, count), one)
    last = node.add("Subtract-1", count, one)
    left = node.add("Subtract-1", last, ranks)
    share = node.add("Divide-1", left, node.add("Maximum-1", last, one))
    return node.add("Subtract-1", one, node.add("Add-1", share, share))


@converts("RoiAlign")
def roi_align(node: Node) -> Made:
    """ROIAlign-9."""
    usual = "half_pixel" if node.version >= 16 else "output_half_pixel"
    word = node.text("coordinate_transformation_mode", usual)
    # IR's own half_pixel also moves the corners before they are scaled.
    modes = {"half_pixel": "half_pixel_for_nn", "output_half_pixel": "asymmetric"}
    if word not in modes:
        raise IRError(f'coordinate_transformation_mode="{word}" is not one of {", ".join(modes)}')
    if node.text("mode", "avg") == "max" and node.semantics != "openvino":
        raise UnsupportedError(
            "mode=max: ONNX takes the largest of the weighted neighbours, IR of their sums"
        )
    return node.add(
        "ROIAlign-9", node[0], node[1], node[2], pooled_h=node.integer("output_height", 1),
        pooled_w=node.integer("output_width", 1), spatial_scale=node.real("spatial_scale", 1.0),
        sampling_ratio=node.integer("sampling_ratio", 0), mode=node.text("mode", "avg"),
        aligned_mode=modes[word],
    )  # fmt: skip


@converts("MaxRoiPool")
def max_roi_pool(node: Node) -> Made:
    """ROIPooling-1."""
    sizes = node.integers("pooled_shape")
    if len(sizes) != 2:
        raise IRError(f"pooled_shape has {len(sizes)} sizes, 2 are needed: height and width")
    return node.add(
        "ROIPooling-1", node[0], node[1], pooled_h=sizes[0], pooled_w=sizes[1], method="max",
        spatial_scale=node.real("spatial_scale", 1.0),
    )  # fmt: skip


@converts("MaxUnpool")
def max_unpool(node: Node) -> Made:
    """Zeros, and ScatterElementsUpdate-12 at the Indices."""
    x, shape = node[0], static(node[0].tensor.shape, "the input")
    window = window_of(node)
    rows = zip(shape[2:], window.strides, window.begin, window.end, window.kernel, strict=True)
    own = [*shape[:2], *((n - 1) * s - (b + e) + k for n, s, b, e, k in rows)]
    if node.get(2) is not None and node[2].tensor.shape != (len(own),):
        raise IRError(f"output_shape has {node[2].tensor.shape} sizes, the input {len(own)}")
    # The Indices count in the shape that the pooling had.
    places = node.reshape(node[1], [-1])
    zeros = node.add("Broadcast-3", node.like(0, x), node.ints64([int(np.prod(own))]))
    flat = node.add(
        "ScatterElementsUpdate-12", zeros, places, node.reshape(x, [-1]), node.ints64(0)
    )
    made = node.reshape(flat, own)
    if node.get(2) is None:
        return made
    more = node.add("Subtract-1", node[2], node.ints64(own))
    more = node.add("Maximum-1", more, node.ints64(0))
    return node.add(
        "Pad-1", made, node.ints64([0] * len(own)), more, node.like(0, made), pad_mode="constant"
    )


@converts("Col2Im")
def col2im(node: Node) -> Made:
    """Col2Im-15, over two axes."""
    axes = node[2].tensor.shape
    if axes != (2,):
        raise UnsupportedError(f"block_shape has {axes} entries, IR joins columns over 2 axes")
    pads = node.integers("pads") or [0, 0, 0, 0]
    return node.add(
        "Col2Im-15", node[0], node[1], node[2], strides=node.integers("strides") or [1, 1],
        dilations=node.integers("dilations") or [1, 1], pads_begin=pads[:2], pads_end=pads[2:],
    )  # fmt: skip
