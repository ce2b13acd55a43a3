"""Pooling, in the form that gives the right answer for every version and attribute.

What the runtimes disagree about, and what is answered here:

- ``ceil_mode``: a last window that would begin in the end padding is dropped, as ONNX says
  since version 22 and ONNX Runtime does for every version: ``ceil_torch``. The text before 22
  (``semantics="onnx"``) and OpenVINO's own importer (``"openvino"``) keep it.
- ``count_include_pad`` with ``ceil_mode``: the padding counts, what overhangs it does not. No
  AvgPool divides so; the padding becomes a Pad of zeros, and the AvgPool leaves the rest out.
- ``SAME_*``: ``ceil(size / stride)`` windows over the dilated kernel; a kernel shorter than its
  stride needs no padding. ONNX Runtime forgets the dilation, and refuses the short kernel.
- ``storage_order=1``: Indices count the spatial axes from the first to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from ....layers.windows import reach, stops
from ....schemas import Dim, IRError, Size
from ....schemas.shapes import number
from ...document import Output
from .node import Made, Node, Number, converts

_AUTO_PAD = {
    "": "explicit",
    "NOTSET": "explicit",
    "VALID": "valid",
    "SAME_UPPER": "same_upper",
    "SAME_LOWER": "same_lower",
}


class Window(NamedTuple):
    """The attributes that all windows share; a number for each spatial axis."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    begin: list[int]
    end: list[int]
    auto_pad: str
    ceil: bool

    @property
    def explicit(self) -> bool:
        """Whether the paddings are given as numbers."""
        return self.auto_pad == "explicit"

    @property
    def padded(self) -> bool:
        """Whether there are paddings given as numbers."""
        return any(self.begin) or any(self.end)

    @property
    def dilated(self) -> bool:
        """Whether there are holes between the elements of a window."""
        return any(step > 1 for step in self.dilations)

    def attributes(self, rounding: str | None = None) -> dict[str, Any]:
        """The attributes of a pooling in IR."""
        return {
            "kernel": self.kernel,
            "strides": self.strides,
            "pads_begin": self.begin,
            "pads_end": self.end,
            "auto_pad": self.auto_pad,
            "rounding_type": rounding or "floor",
        }

    def counts(self, sizes: Sequence[Size], rounding: Any) -> list[Size]:
        """How often the window stops on each axis, where the paddings are given."""
        rows = zip(sizes, self.begin, self.end, self.kernel, self.dilations, self.strides,
                   strict=True)  # fmt: skip
        return [stops(n, (b, e), reach(k, d), s, rounding) for n, b, e, k, d, s in rows]


def window_of(node: Node, kernel: Sequence[int] | None = None) -> Window:
    """Read and check the attributes of a window."""
    kernel = list(kernel or node.integers("kernel_shape"))
    axes = len(kernel)
    rank = node[0].tensor.rank
    if not kernel:
        raise IRError("required attribute kernel_shape is missing")
    if rank is not None and rank != axes + 2:
        raise IRError(f"kernel_shape has {axes} axes, the input has {rank - 2} spatial axes")
    if axes > 3:
        raise IRError(f"{axes} spatial axes, IR has windows over 1 to 3")
    lists = {"kernel_shape": kernel}
    for name in ("strides", "dilations"):
        lists[name] = node.integers(name) or [1] * axes
        if len(lists[name]) != axes:
            raise IRError(f"{name} has {len(lists[name])} entries, kernel_shape {axes}")
    for name, values in lists.items():
        if min(values) < 1:
            raise IRError(f"{name} has {min(values)}, the least is 1")
    word = node.text("auto_pad", "NOTSET")
    if word not in _AUTO_PAD:
        raise IRError(f'auto_pad="{word}" is not one of {", ".join(filter(None, _AUTO_PAD))}')
    pads = node.integers("pads") or [0] * (2 * axes)
    if _AUTO_PAD[word] != "explicit":
        if any(pads):
            node.note("auto_pad", f"pads are given beside auto_pad={word}, and not used")
        pads = [0] * (2 * axes)
    if len(pads) != 2 * axes:
        raise IRError(f"pads has {len(pads)} entries, two for each of {axes} axes are needed")
    if min(pads) < 0:
        raise IRError(f"pads has {min(pads)}, the least is 0")
    window = Window(
        kernel, lists["strides"], lists["dilations"], pads[:axes], pads[axes:],
        _AUTO_PAD[word], node.flag("ceil_mode"),
    )  # fmt: skip
    if window.auto_pad.startswith("same"):
        spans = [number(reach(k, d)) for k, d in zip(kernel, window.dilations, strict=True)]
        if window.dilated:
            node.note(
                "auto_pad",
                f"auto_pad={word} pads for the dilated kernel; ONNX Runtime pads for the kernel "
                "without its dilation, which gives fewer windows",
            )
        elif any(span < stride for span, stride in zip(spans, window.strides, strict=True)):
            node.note(
                "auto_pad",
                f"auto_pad={word} with a kernel shorter than its stride needs no padding; "
                "ONNX Runtime refuses it or pads by a negative number",
            )
    if window.auto_pad == "valid":
        ceil = window.ceil and node.semantics != "onnx"
        if window.ceil and not ceil:
            node.note("ceil rule", "the formula for VALID comes to the floor, also with ceil_mode")
        window = window._replace(auto_pad="explicit" if ceil else "valid", ceil=ceil)
    elif window.auto_pad != "explicit":
        window = window._replace(ceil=False)  # the padding makes every window whole
    return window


def rounding_of(node: Node, window: Window, keeps: bool) -> str:
    """How the number of windows is rounded; ``keeps``: windows in the end padding stay."""
    if not window.ceil:
        return "floor"
    shape = node[0].tensor.shape
    sizes = shape[2:] if shape.rank is not None else ()
    differs = "may differ"
    if sizes and not any(isinstance(size, Dim) for size in sizes):
        kept, dropped = (window.counts(sizes, rule) for rule in ("ceil", "ceil_torch"))
        differs = "agree here" if kept == dropped else f"differ here: {kept} and {dropped} windows"
    chosen = "kept" if keeps else "dropped"
    node.note(
        "ceil rule",
        f"a window that begins in the end padding is {chosen}; the rules of versions before 22 "
        f"and since {differs}",
    )
    return "ceil" if keeps else "ceil_torch"


@converts("MaxPool")
def max_pool(node: Node) -> Made:
    """MaxPool-1, -8 (dilations, Indices) or -14 (ceil_mode); Indices as storage_order says."""
    window = window_of(node)
    letter = node.semantics == "onnx" and node.version < 22
    rounding = rounding_of(node, window, keeps=letter or node.semantics == "openvino")
    attributes = window.attributes(rounding)
    indexed = node.wants(1)
    if rounding == "ceil_torch":
        spec = "MaxPool-14"
    else:
        spec = "MaxPool-8" if indexed or window.dilated else "MaxPool-1"
    if spec != "MaxPool-1":
        attributes |= {"dilations": window.dilations, "index_element_type": "i64", "axis": 0}
    pooled = node.add(spec, node[0], **attributes)
    if not indexed:
        return pooled
    indices = pooled[1]
    if node.integer("storage_order") == 1 and len(window.kernel) > 1:
        if node.semantics == "openvino":
            node.note(
                "storage_order", "Indices are transposed, as OpenVINO does: not as ONNX says"
            )
            spatial = range(2, len(window.kernel) + 2)
            indices = node.transpose(indices, [0, 1, *reversed(spatial)])
        else:
            node.note(
                "storage_order",
                "Indices are renumbered so that the first spatial axis counts fastest; OpenVINO "
                "transposes them instead",
            )
            indices = renumbered(node, indices, len(window.kernel))
    elif node.integer("storage_order") not in (0, 1):
        raise IRError(f"storage_order is {node.integer('storage_order')}, it is 0 or 1")
    return [pooled, indices]


def renumbered(node: Node, indices: Output, axes: int) -> Output:
    """Flat indices of planes in row order, as indices of planes in column order."""
    sizes = [node.size(node[0], axis + 2) for axis in range(axes)]

    def scalar(value: Number) -> Output:
        return value if isinstance(value, Output) else node.ints64(value)

    plane: Number = 1
    for size in sizes:
        plane = node.calculate("Multiply-1", plane, size)
    rest = node.add("FloorMod-1", indices, scalar(plane))
    total = node.add("Subtract-1", indices, rest)
    # From the last axis to the first: each digit, by how many elements stand before it.
    before: list[Number] = [1]
    for size in sizes[:-1]:
        before.append(node.calculate("Multiply-1", before[-1], size))
    for axis in reversed(range(axes)):
        digit = node.add("FloorMod-1", rest, scalar(sizes[axis])) if axis else rest
        moved = node.add("Multiply-1", digit, scalar(before[axis])) if axis else digit
        total = node.add("Add-1", total, moved)
        if axis:
            rest = node.add("Divide-1", rest, scalar(sizes[axis]))
    return total


@converts("AveragePool")
def average_pool(node: Node) -> Made:
    """AvgPool-1, -14 (ceil_mode) or -16 (dilations); Pad and Slice where padding is counted."""
    window = window_of(node)
    counted = node.flag("count_include_pad")
    keeps = node.semantics == "onnx" and node.version < 22
    rounding = rounding_of(node, window, keeps)
    if not (counted and window.ceil and window.padded) or whole(node, window):
        if counted and window.ceil and window.padded:
            rounding = "floor"
        # Without padding, what overhangs is not counted by either.
        excluded = not counted or (window.ceil and not window.padded)
        return _average(node, node[0], window, rounding, excluded)
    if node.semantics == "openvino":
        node.note("count_include_pad", "the divisor is the whole kernel, also where it overhangs")
        return _average(node, node[0], window, rounding, excluded=False)
    node.note(
        "count_include_pad",
        "with ceil_mode the padding counts and what overhangs it does not: Pad, then AvgPool",
    )
    data = node[0]
    padded = pad_zeros(node, data, window.begin, window.end)
    bare = window._replace(begin=[0] * len(window.begin), end=[0] * len(window.end))
    pooled = _average(node, padded, bare, rounding, excluded=True)
    return pooled if keeps else without_late(node, pooled, window)


def _average(node: Node, data: Output, window: Window, rounding: str, excluded: bool) -> Output:
    attributes = window.attributes(rounding) | {"exclude_pad": excluded}
    if window.dilated:
        return node.add("AvgPool-16", data, **attributes, dilations=window.dilations)
    return node.add("AvgPool-14" if rounding == "ceil_torch" else "AvgPool-1", data, **attributes)


def whole(node: Node, window: Window) -> bool:
    """Whether windows certainly end where the padding ends, so that ceil and floor are one."""
    shape = node[0].tensor.shape
    if shape.rank is None or not all(isinstance(size, int) for size in shape[2:]):
        return False
    rows = zip(shape[2:], window.begin, window.end, window.kernel, window.dilations,
               window.strides, strict=True)  # fmt: skip
    exact = all((n + b + e - reach(k, d)) % s == 0 for n, b, e, k, d, s in rows)
    return exact and window.counts(shape[2:], "floor") == window.counts(shape[2:], "ceil_torch")


def pad_zeros(node: Node, data: Output, begin: Sequence[int], end: Sequence[int]) -> Output:
    """Zeros around the spatial axes."""
    return node.add(
        "Pad-1", data, node.ints64([0, 0, *begin]), node.ints64([0, 0, *end]),
        node.like(0, data), pad_mode="constant",
    )  # fmt: skip


def without_late(node: Node, pooled: Output, window: Window) -> Output:
    """Without the windows that begin in the end padding."""
    for axis, (begin, stride) in enumerate(zip(window.begin, window.strides, strict=True)):
        room = node.calculate("Add-1", node.size(node[0], axis + 2), begin + stride - 1)
        most = node.calculate("Divide-1", room, stride)
        there = pooled.tensor.shape[axis + 2]
        if isinstance(most, int) and isinstance(there, int) and there <= most:
            continue
        pooled = node.cut(pooled, 0, most, axis + 2)
    return pooled


@converts("LpPool")
def lp_pool(node: Node) -> Made:
    """The sum of powers as an AvgPool times the size of its kernel, then the root."""
    window = window_of(node)
    power = node.real("p", 2.0)
    data = powers(node, node[0], power)
    if window.explicit:
        # Zeros count for nothing in a sum: the overhang may be padded as well.
        pooled = by_whole_kernels(node, data, window)
    else:
        pooled = _average(node, data, window, "floor", excluded=False)
    total = node.add("Multiply-1", pooled, node.like(prod(window.kernel), pooled))
    return root(node, total, power)


def by_whole_kernels(node: Node, data: Output, window: Window) -> Output:
    """Sums divided by the size of the kernel, wherever it lies: padding and overhang are zeros."""
    more = [stride - 1 if window.ceil else 0 for stride in window.strides]
    end = [e + m for e, m in zip(window.end, more, strict=True)]
    if any(window.begin) or any(end):
        data = pad_zeros(node, data, window.begin, end)
    bare = window._replace(begin=[0] * len(end), end=[0] * len(end))
    pooled = _average(node, data, bare, "floor", excluded=True)
    if window.ceil and not (node.semantics == "onnx" and node.version < 22):
        rounding_of(node, window, keeps=False)
        pooled = without_late(node, pooled, window)
    return pooled


def powers(node: Node, data: Output, power: float) -> Output:
    """The powers of the magnitudes."""
    if power <= 0:
        raise IRError(f"p is {power:g}, it must be above 0")
    if power == 2:
        return node.add("Multiply-1", data, data)
    magnitude = node.add("Abs-1", data)
    return magnitude if power == 1 else node.add("Power-1", magnitude, node.like(power, data))


def root(node: Node, total: Output, power: float) -> Output:
    """The root of sums of powers."""
    if power == 2:
        return node.add("Sqrt-1", total)
    return total if power == 1 else node.add("Power-1", total, node.like(1 / power, total))


def scalar(node: Node, x: Output) -> Output:
    """A tensor of one element without its axes."""
    return x if x.tensor.rank == 0 else node.reshape(x, node.ints64([]))


def spatial_axes(node: Node) -> Output:
    """All axes after the first two, also where their number is not known."""
    rank = node[0].tensor.rank
    if rank is not None:
        if rank < 2:
            raise IRError(f"the input has {rank} axes, a batch and channels are needed")
        return node.ints64(list(range(2, rank)))
    count = node.add("ShapeOf-3", node.shape(node[0]), output_type="i64")
    stop = node.squeeze(count, [0])
    return node.add("Range-4", node.ints64(2), stop, node.ints64(1), output_type="i64")


@converts("GlobalAveragePool")
def global_average_pool(node: Node) -> Made:
    """ReduceMean over the spatial axes."""
    return node.add("ReduceMean-1", node[0], spatial_axes(node), keep_dims=True)


@converts("GlobalMaxPool")
def global_max_pool(node: Node) -> Made:
    """ReduceMax over the spatial axes."""
    return node.add("ReduceMax-1", node[0], spatial_axes(node), keep_dims=True)


@converts("GlobalLpPool")
def global_lp_pool(node: Node) -> Made:
    """ReduceL1, ReduceL2, or the root of a ReduceSum of powers."""
    power, axes = node.real("p", 2.0), spatial_axes(node)
    if power in (1, 2):
        return node.add(f"ReduceL{int(power)}-4", node[0], axes, keep_dims=True)
    total = node.add("ReduceSum-1", powers(node, node[0], power), axes, keep_dims=True)
    return root(node, total, power)
